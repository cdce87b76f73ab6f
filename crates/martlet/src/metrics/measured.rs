//! Services whose requests are counted.
//!
//! Always holds: what is asked and answered is not changed; a request that is given up counts as gone.

use peer::{Body, Call, HttpService, Meter, Response, Service};
use std::net::SocketAddr;
use std::sync::Arc;
use telemetry::metrics::Requests;
use world::Clock;

/// Counts bytes that come.
struct Received(Arc<Requests>);

impl Meter for Received {
    fn passed(&self, bytes: u64) {
        self.0.received(bytes);
    }
}

/// Counts bytes that go.
struct Sent(Arc<Requests>);

impl Meter for Sent {
    fn passed(&self, bytes: u64) {
        self.0.sent(bytes);
    }
}

/// What counting takes.
struct Counter {
    requests: Arc<Requests>,
    received: Arc<Received>,
    sent: Arc<Sent>,
    clock: Arc<dyn Clock>,
}

impl Counter {
    fn new(requests: Arc<Requests>, clock: Arc<dyn Clock>) -> Self {
        Self {
            received: Arc::new(Received(requests.clone())),
            sent: Arc::new(Sent(requests.clone())),
            requests,
            clock,
        }
    }

    async fn count(&self, method: &http::Method, answer: impl Future<Output = Response>) -> Response {
        let under = self.requests.begin(method.as_str());
        let began = self.clock.elapsed();
        let response = answer.await;
        under.answered(response.status().as_u16(), self.clock.elapsed().saturating_sub(began));
        response.map(|body| body.metered(&self.sent))
    }
}

/// A gateway whose requests are counted.
pub struct MeasuredGateway {
    gateway: Arc<dyn HttpService>,
    counter: Counter,
}

impl MeasuredGateway {
    /// Counts in `requests`.
    pub fn new(gateway: Arc<dyn HttpService>, requests: Arc<Requests>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let counter = Counter::new(requests, clock);
        Arc::new(Self { gateway, counter })
    }
}

#[async_trait::async_trait]
impl HttpService for MeasuredGateway {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
        let method = request.method().clone();
        let request = request.map(|body| body.metered(&self.counter.received));
        self.counter.count(&method, self.gateway.serve(request, from)).await
    }

    fn is_for_monitors(&self, request: &http::Request<Body>, from: SocketAddr) -> bool {
        self.gateway.is_for_monitors(request, from)
    }
}

/// A storage service whose requests are counted, whether they come over a connection or not.
pub struct MeasuredService {
    service: Arc<dyn Service>,
    counter: Counter,
}

impl MeasuredService {
    /// Counts in `requests`.
    pub fn new(service: Arc<dyn Service>, requests: Arc<Requests>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let counter = Counter::new(requests, clock);
        Arc::new(Self { service, counter })
    }
}

#[async_trait::async_trait]
impl Service for MeasuredService {
    async fn call(&self, mut call: Call) -> Response {
        let method = call.message.method();
        call.body = call.body.metered(&self.counter.received);
        self.counter.count(&method, self.service.call(call)).await
    }
}
