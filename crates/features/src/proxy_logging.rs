//! The access log: one line per request, once the client has all of the answer or has gone.
//!
//! The line goes to tracing's target `access`. Where the filter stands twice in a pipeline, the outer
//! one writes the line of what a client asked, the inner one those of what features ask by themselves.
//! Always holds: every request that came this far has exactly one line, with the bytes that passed and
//! the status the client got: 499 when it went away, 500 when the answer broke off. Answers in memory
//! stay in memory and are logged at once.
//! Deliberately absent: the format (`access_line.rs`).

use crate::access_line::{Begun, Over};
use crate::watched::{End, Watcher, declared_length, watch};
use crate::{ClientRequest, Feature, Next, Response, reply};
use http::{HeaderMap, Method, StatusCode};
use settings::{LogLevel, ProxyLoggingSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{Level, enabled};
use vocabulary::PolicyIndex;
use world::Clock;

/// Swift's `proxy_logging`.
pub struct ProxyLogging {
    settings: ProxyLoggingSettings,
    clock: Arc<dyn Clock>,
}

impl ProxyLogging {
    /// As configured.
    pub fn new(settings: ProxyLoggingSettings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock }
    }

    fn begin(&self, request: &ClientRequest, received: Arc<AtomicU64>) -> Pending {
        Pending {
            begun: Begun::new(request, &self.settings),
            over: Over::default(),
            received,
            level: self.settings.access_log_level,
            clock: self.clock.clone(),
            written: false,
        }
    }
}

#[async_trait::async_trait]
impl Feature for ProxyLogging {
    fn name(&self) -> &'static str {
        "proxy_logging"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next<'_>) -> Response {
        if !is_heard(self.settings.access_log_level) || !request.notes.claim_line() {
            return next.run(request).await;
        }
        let received = Arc::new(AtomicU64::new(0));
        let mut pending = self.begin(&request, received.clone());
        let is_head = request.method == Method::HEAD;
        request.body = watch(request.body, None, Received(received));
        let response = next.run(request).await;
        pending.answered(&response);
        let length = declared_length(response.headers());
        if is_head || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            pending.ended(End::Whole);
            return response;
        }
        response.map(|body| watch(body, length, pending))
    }
}

/// Counts what comes from the client.
struct Received(Arc<AtomicU64>);

impl Watcher for Received {
    fn passed(&mut self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
    fn ended(&mut self, _how: End) {}
}

/// A line to be written.
struct Pending {
    begun: Begun,
    over: Over,
    received: Arc<AtomicU64>,
    level: LogLevel,
    clock: Arc<dyn Clock>,
    written: bool,
}

impl Pending {
    fn answered(&mut self, response: &Response) {
        self.over.status = response.status().as_u16();
        self.over.policy = policy(response.headers());
    }

    fn write(&mut self) {
        self.written = true;
        self.over.received = self.received.load(Ordering::Relaxed);
        self.over.at = self.clock.elapsed();
        emit(self.level, &self.begun.line(&self.over));
    }
}

impl Watcher for Pending {
    fn passed(&mut self, bytes: u64) {
        self.over.sent += bytes;
    }

    fn ended(&mut self, how: End) {
        match how {
            End::Whole => {}
            End::Failed => self.over.status = 500,
            End::Left => self.over.status = reply::CLIENT_DISCONNECT,
        }
        self.write();
    }
}

impl Drop for Pending {
    /// Not written yet: the request was given up while it was being answered.
    fn drop(&mut self) {
        if !self.written {
            let panicking = std::thread::panicking();
            self.ended(if panicking { End::Failed } else { End::Left });
        }
    }
}

/// Which storage policy the core says it was about.
fn policy(headers: &HeaderMap) -> Option<PolicyIndex> {
    let value = headers.get("x-backend-storage-policy-index")?;
    value.to_str().ok()?.parse().ok().map(PolicyIndex)
}

fn is_heard(level: LogLevel) -> bool {
    match level {
        LogLevel::Debug => enabled!(target: "access", Level::DEBUG),
        LogLevel::Info | LogLevel::Notice => enabled!(target: "access", Level::INFO),
        LogLevel::Warning => enabled!(target: "access", Level::WARN),
        LogLevel::Error | LogLevel::Critical => enabled!(target: "access", Level::ERROR),
    }
}

fn emit(level: LogLevel, line: &str) {
    match level {
        LogLevel::Debug => tracing::debug!(target: "access", "{line}"),
        LogLevel::Info | LogLevel::Notice => tracing::info!(target: "access", "{line}"),
        LogLevel::Warning => tracing::warn!(target: "access", "{line}"),
        LogLevel::Error | LogLevel::Critical => tracing::error!(target: "access", "{line}"),
    }
}

#[cfg(test)]
mod tests;
