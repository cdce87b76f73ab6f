//! Which part of a container server's work a PUT or GET was, timed for StatsD as OpenStack's server does.
//!
//! Always holds: where no metrics are sent nothing is looked at; what is refused before the part begins (no timestamp,
//! no device, a query that cannot be read) is the request's own time alone, which is measured elsewhere.

use crate::request::is_about_shards;
use crate::state::ListingServerState;
use http::StatusCode;
use peer::Response;
use peer::message::{HeaderField, Message, RowChange};
use std::time::Duration;
use storage_shell::Refusal;
use vocabulary::Timestamp;

/// Measures a part of the work that has begun.
pub(crate) struct RequestTimer {
    name: &'static str,
    began: Duration,
}

impl RequestTimer {
    /// Of the part that answering this message is, if metrics are sent.
    pub(crate) fn of(state: &ListingServerState, message: &Message) -> Option<Self> {
        if !state.options.statsd.is_wanted() {
            return None;
        }
        let (name, timestamp) = match message {
            Message::UpdateContainer(row) if row.change == RowChange::Put => ("PUT_object", &row.timestamp),
            Message::PutContainer(put) => match is_about_shards(&put.record_type) {
                true => ("PUT_shard", &put.timestamp),
                false => ("PUT_container", &put.timestamp),
            },
            Message::ReadContainer(read) if !read.head_only => match is_about_shards(&read.record_type) {
                true => ("GET_shard", &HeaderField::Value(Timestamp::ZERO)),
                false => ("GET_object", &HeaderField::Value(Timestamp::ZERO)),
            },
            _ => return None,
        };
        // What is refused before the part begins is none.
        timestamp.value()?;
        let began = state.world.clock.elapsed();
        Some(Self { name, began })
    }

    /// The part is over.
    pub(crate) fn end(self, state: &ListingServerState, done: &Result<Response, Refusal>) {
        let status = match done {
            Ok(response) => response.status(),
            Err(refusal) => refusal.status(),
        };
        let (name, took) = (self.name, state.world.clock.elapsed().saturating_sub(self.began));
        match status {
            StatusCode::INSUFFICIENT_STORAGE | StatusCode::PRECONDITION_FAILED | StatusCode::NOT_ACCEPTABLE => {}
            status if status.is_server_error() => {
                let timing = format_args!("{name}.errors.timing");
                state.options.statsd.timing(timing, took);
            }
            _ => state.options.statsd.timing(format_args!("{name}.timing"), took),
        }
    }
}
