//! The access log: one line per request, once the client has all of the answer or has gone.
//!
//! Where the filter stands twice in a pipeline, the outer one writes the line of what a client asked,
//! the inner one those of what features ask by themselves.
//! Always holds: every request that came this far has exactly one line, with the bytes that passed and
//! the status the client got: 499 when it went away, 500 when the answer broke off. The path and query
//! are the client's own, whatever features made of them. Answers in memory stay in memory and are
//! logged at once. Where metrics are wanted, each such request has them too, by OpenStack's names.
//! Deliberately absent: the line's format and where it goes (`telemetry`).

use http::header::{ETAG, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use peer::message::header_names::X_POLICY_INDEX;
use request_pipeline::{
    AccessNotes, ClientRequest, Feature, Next, Response, reply,
    watched::{End, Watcher, declared_length, watch},
};
use settings::{LogLevel, ProxyLoggingSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::access::{Style, Wrong};
use telemetry::{AccessLine, Statsd};
use vocabulary::{EntityPath, Timestamp};
use world::{Clock, World};

/// Swift's `proxy_logging`.
pub struct ProxyLogging {
    sinks: Arc<Sinks>,
    clock: Arc<dyn Clock>,
    /// What may stand before an account.
    versions: Vec<String>,
}

/// Where what is known about a request goes.
struct Sinks {
    style: Style,
    logs: bool,
    statsd: Statsd,
    /// Verbs that have metrics of their own.
    verbs: Vec<String>,
}

impl Sinks {
    fn logs(&self) -> bool {
        self.logs && telemetry::log::logs_requests(false)
    }
}

/// OpenStack's server says so of every request, whatever the client spoke.
const PROTOCOL: &str = "HTTP/1.0";

/// Headers that every line needs.
const IN_EVERY_LINE: [HeaderName; 6] = [
    ETAG,
    REFERER,
    USER_AGENT,
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-cluster-client-ip"),
    HeaderName::from_static("x-forwarded-for"),
];

impl ProxyLogging {
    /// As configured, with metrics sent to `statsd`; `versions` are those that paths to accounts begin with.
    pub fn new(
        settings: &ProxyLoggingSettings,
        statsd: Statsd,
        versions: Vec<String>,
        world: &World,
    ) -> Result<Self, Wrong> {
        Ok(Self {
            sinks: Arc::new(Sinks {
                style: Style::read(settings)?,
                // Lines are information, whatever they say.
                logs: matches!(settings.access_log_level, LogLevel::Debug | LogLevel::Info),
                statsd,
                verbs: settings.log_statsd_valid_http_methods.clone(),
            }),
            clock: world.clock.clone(),
            versions,
        })
    }

    fn begin(&self, request: &ClientRequest) -> Pending {
        let headers = match self.sinks.style.headers || self.sinks.style.template.is_some() {
            true => request.headers.clone(),
            false => some_headers(&request.headers),
        };
        Pending {
            sinks: self.sinks.clone(),
            clock: self.clock.clone(),
            remote: request.from.ip().to_string(),
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            entity: request
                .entity
                .clone()
                .filter(|_| self.versions.contains(&request.api_version)),
            headers,
            trans_id: request.trans_id.clone(),
            began: request.began,
            notes: request.notes.clone(),
            received: Arc::default(),
            sent: 0,
            status: reply::CLIENT_DISCONNECT,
            wire_status: reply::CLIENT_DISCONNECT,
            first_byte: None,
            policy: None,
            written: false,
        }
    }
}

fn some_headers(all: &HeaderMap) -> HeaderMap {
    let found = |name: HeaderName| Some((name.clone(), all.get(name)?.clone()));
    IN_EVERY_LINE.into_iter().filter_map(found).collect()
}

#[async_trait::async_trait]
impl Feature for ProxyLogging {
    fn name(&self) -> &'static str {
        "proxy_logging"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        (self.sinks.logs() || self.sinks.statsd.is_wanted()) && !request.notes.is_line_claimed()
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        if !request.notes.claim_line() {
            return next.run(request).await;
        }
        let mut pending = self.begin(&request);
        let is_head = request.method == Method::HEAD;
        request.body = watch(request.body, None, Received(pending.received.clone()));
        let response = next.run(request).await;
        pending.policy = policy(response.headers());
        pending.head_is_ready(response.status().as_u16());
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

/// A line to be written: what is known when a request comes in, and what became of it so far.
struct Pending {
    sinks: Arc<Sinks>,
    clock: Arc<dyn Clock>,
    remote: String,
    method: Method,
    path: Arc<str>,
    query: String,
    entity: Option<Arc<EntityPath>>,
    headers: HeaderMap,
    trans_id: Arc<str>,
    began: (Duration, Timestamp),
    notes: AccessNotes,
    received: Arc<AtomicU64>,
    sent: u64,
    status: u16,
    wire_status: u16,
    first_byte: Option<Duration>,
    policy: Option<u32>,
    written: bool,
}

impl Pending {
    fn took(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.began.0)
    }

    /// What the client is answered is known; what becomes of the body is not.
    fn head_is_ready(&mut self, status: u16) {
        let took = self.took();
        self.first_byte = Some(took);
        (self.status, self.wire_status) = (status, status);
        let statsd = &self.sinks.statsd;
        if statsd.is_wanted() && self.method == Method::GET {
            self.each_metric(|name| statsd.timing(format_args!("{name}.first-byte.timing"), took));
        }
    }

    fn policy(&self) -> Option<u32> {
        self.policy.or(self.notes.read().policy.map(|policy| policy.0))
    }

    /// What features know of a path that is not Swift's.
    fn noted_entity(&self) -> Option<Arc<EntityPath>> {
        match self.entity {
            Some(_) => None,
            None => self.notes.read().entity,
        }
    }

    /// Calls `send` with the name that metrics of this request begin with, and with that of its policy's.
    fn each_metric(&self, send: impl Fn(std::fmt::Arguments<'_>)) {
        let noted = self.noted_entity();
        let kind = match self.entity.as_deref().or(noted.as_deref()) {
            None => "UNKNOWN",
            Some(EntityPath { container: None, .. }) => "account",
            Some(EntityPath { object: None, .. }) => "container",
            Some(_) => "object",
        };
        let verb = match self.sinks.verbs.iter().any(|verb| verb == self.method.as_str()) {
            true => self.method.as_str(),
            false => "BAD_METHOD",
        };
        let status = self.status;
        send(format_args!("{kind}.{verb}.{status}"));
        if let Some(policy) = self.policy().filter(|_| kind == "object") {
            send(format_args!("object.policy.{policy}.{verb}.{status}"));
        }
    }

    fn measure(&self, took: Duration) {
        let statsd = &self.sinks.statsd;
        if !statsd.is_wanted() {
            return;
        }
        let bytes = self.sent + self.received.load(Ordering::Relaxed);
        self.each_metric(|name| {
            statsd.timing(format_args!("{name}.timing"), took);
            statsd.count(format_args!("{name}.xfer"), bytes);
        });
    }

    fn write(&mut self) {
        self.written = true;
        let took = self.took();
        self.measure(took);
        if !self.sinks.logs() {
            return;
        }
        let noted = self.notes.read();
        let start = Duration::from_micros(self.began.1.ticks() * 10);
        telemetry::log::access(&AccessLine {
            remote: &self.remote,
            method: self.method.as_str(),
            path: &self.path,
            query: Some(&self.query),
            protocol: PROTOCOL,
            status: self.status,
            headers: &self.headers,
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent,
            transaction_id: &self.trans_id,
            source: noted.source.unwrap_or_default(),
            info: &noted.remarks.join(","),
            start,
            end: start + took,
            policy: self.policy.or(noted.policy.map(|policy| policy.0)),
            first_byte: self.first_byte,
            wire_status: self.wire_status,
            entity: self.entity.as_deref().or(noted.entity.as_deref()),
            user: noted.user.as_deref().unwrap_or_default(),
            style: &self.sinks.style,
        });
    }
}

impl Watcher for Pending {
    fn passed(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    fn ended(&mut self, how: End) {
        match how {
            End::Whole => {}
            End::Failed => self.status = 500,
            End::Left => self.status = reply::CLIENT_DISCONNECT,
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
fn policy(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(X_POLICY_INDEX)?;
    value.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
