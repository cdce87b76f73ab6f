//! Which part of a container server's work a PUT or GET was, timed for StatsD as OpenStack's server does.
//!
//! Always holds: where no metrics are sent nothing is looked at; what is refused before the part begins (no timestamp, no
//! device, a query that cannot be read) is the request's own time alone, which is measured elsewhere.

use crate::request::ListingRequest;
use crate::state::ListingServerState;
use http::{Method, StatusCode};
use peer::Response;
use std::time::Duration;
use storage_shell::Refusal;

/// Measures a part of the work that has begun.
pub(crate) struct RequestTimer {
    name: &'static str,
    began: Duration,
}

impl RequestTimer {
    /// The part that `request` is of a container server's work, if metrics are sent.
    pub(crate) fn of(state: &ListingServerState, request: &ListingRequest) -> Option<Self> {
        if !state.options.statsd.is_wanted() {
            return None;
        }
        let name = match (&request.method, request.is_about_shards()) {
            (&Method::PUT, _) if request.timestamp().is_err() => return None,
            (&Method::PUT, _) if request.object().is_some() => "PUT_object",
            (&Method::PUT, true) => "PUT_shard",
            (&Method::PUT, false) => "PUT_container",
            (&Method::GET, true) => "GET_shard",
            (&Method::GET, false) => "GET_object",
            _ => return None,
        };
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
