//! [`AccessLog`]: one line for each request, as OpenStack's storage servers write it.
//!
//! Always holds: a call from within the process is no line, for the gateway's own line is about it; without a reader of
//! the lines nothing is collected for them; requests of replication are lines at DEBUG.

use http::header::{CONTENT_LENGTH, REFERER, USER_AGENT};
use http::{HeaderName, HeaderValue, Method};
use peer::message::Message;
use peer::message::header_names::{X_POLICY_INDEX, X_REPLICATION, X_TRANS_ID};
use peer::{Address, Call, Response};
use std::sync::Arc;
use std::time::Duration;
use telemetry::StorageLine;
use world::{Clock, World};

/// Writes the lines of one server.
pub struct AccessLog {
    clock: Arc<dyn Clock>,
    is_wanted: bool,
}

/// A request that is being answered.
pub struct AccessEntry<'l> {
    log: &'l AccessLog,
    began: Duration,
    remote: String,
    is_replication: bool,
    method: Method,
    address: Address,
    referer: Option<HeaderValue>,
    trans_id: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    policy: Option<u32>,
}

impl AccessLog {
    /// A log that writes lines where `is_wanted` (`log_requests`).
    pub fn new(world: &World, is_wanted: bool) -> Self {
        let clock = world.clock.clone();
        Self { clock, is_wanted }
    }

    /// Collects what the line will say of a request that came over a connection and is not decoded yet; `None` when
    /// there will be no line.
    pub fn begin(&self, call: &Call) -> Option<AccessEntry<'_>> {
        let Message::Raw(raw) = &call.message else { return None };
        let interim = call.interim.as_ref()?;
        let is_replication =
            matches!(raw.method.as_str(), "REPLICATE" | "SSYNC") || raw.headers.contains_key(X_REPLICATION);
        if !self.is_wanted || !telemetry::log::logs_requests(is_replication) {
            return None;
        }
        let remote = interim.from().map(|from| from.ip().to_canonical().to_string());
        let header = |name: HeaderName| raw.headers.get(name).cloned();
        let policy = raw.headers.get(X_POLICY_INDEX);
        Some(AccessEntry {
            log: self,
            began: self.clock.elapsed(),
            remote: remote.unwrap_or_default(),
            is_replication,
            method: raw.method.clone(),
            address: raw.address.clone(),
            referer: header(REFERER),
            trans_id: header(X_TRANS_ID),
            user_agent: header(USER_AGENT),
            policy: policy.and_then(|value| value.to_str().ok()?.parse().ok()),
        })
    }
}

impl AccessEntry<'_> {
    /// Writes the line.
    pub fn end(self, response: &Response) {
        let clock = &self.log.clock;
        let length = response.headers().get(CONTENT_LENGTH);
        let line = StorageLine {
            remote: &self.remote,
            method: self.method.as_str(),
            path: &self.address.url_path(),
            status: response.status().as_u16(),
            length: length.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0),
            referer: bytes(&self.referer),
            trans_id: bytes(&self.trans_id),
            user_agent: bytes(&self.user_agent),
            info: "",
            took: clock.elapsed().saturating_sub(self.began),
            ended: clock.now().seconds(),
            policy: self.policy,
            pid: std::process::id(),
        };
        telemetry::log::storage(&line, self.is_replication);
    }
}

fn bytes(value: &Option<HeaderValue>) -> &[u8] {
    value.as_ref().map_or(b"", HeaderValue::as_bytes)
}
