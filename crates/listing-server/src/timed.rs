//! Which part of a container server's work a PUT or GET was, timed for StatsD as OpenStack's server does.
//!
//! Always holds: without anybody who takes metrics nothing is looked at; what is refused before the part begins (no
//! timestamp, no device, a query nobody understands) is the request's own time alone, which is told elsewhere.

use crate::reply::Refusal;
use crate::request::Request;
use crate::service::Shared;
use http::{Method, StatusCode};
use peer::Response;
use std::time::Duration;

/// A part under way.
pub(crate) struct Part {
    name: &'static str,
    began: Duration,
}

impl Part {
    /// The part that `request` is of a container server's work, if somebody wants to know how long it takes.
    pub(crate) fn of(shared: &Shared, request: &Request) -> Option<Self> {
        if !shared.options.statsd.is_wanted() {
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
        let began = shared.world.clock.elapsed();
        Some(Self { name, began })
    }

    /// It is over.
    pub(crate) fn tell(self, shared: &Shared, answered: &Result<Response, Refusal>) {
        let status = match answered {
            Ok(response) => response.status(),
            Err(refusal) => refusal.status(),
        };
        let (name, took) = (self.name, shared.world.clock.elapsed().saturating_sub(self.began));
        match status {
            StatusCode::INSUFFICIENT_STORAGE | StatusCode::PRECONDITION_FAILED | StatusCode::NOT_ACCEPTABLE => {}
            status if status.is_server_error() => {
                let timing = format_args!("{name}.errors.timing");
                shared.options.statsd.timing(timing, took);
            }
            _ => shared.options.statsd.timing(format_args!("{name}.timing"), took),
        }
    }
}
