//! Three storage services in this process that record what they are sent, and a ring of them.

#![allow(dead_code, reason = "each test file uses its part")]

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use peer::{Address, Body, Call, Peers, Response, Service, Timeouts};
use placement::{Device, Ring, RingBuilder};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use upkeep::{RingClient, UpkeepJob, UpkeepStep};
use vocabulary::{HashPrefix, calendar};
use world::World;

/// Where requests went and what they said: `PUT /sd0/3/a/c/o`.
#[derive(Default)]
pub struct Fake {
    /// `(request line, headers)`, in order.
    pub received: Mutex<Vec<(String, http::HeaderMap)>>,
    /// What came along with them, where something did.
    pub bodies: Mutex<Vec<String>>,
    /// What a device answers instead of 201.
    pub refusing: Mutex<HashMap<String, (u16, Option<String>)>>,
    /// What a device answers to GET.
    pub listing: Mutex<HashMap<String, (u16, String)>>,
    /// The headers of that.
    pub listing_headers: Mutex<Vec<(&'static str, &'static str)>>,
    /// What a device says that time is, in seconds since 1970, where it does not list.
    pub dates: Mutex<HashMap<String, u64>>,
}

#[async_trait::async_trait]
impl Service for Fake {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let line = format!("{} {}", call.method, call.address.url_path());
        let Address::Entity(target) = &call.address else {
            panic!("{line}")
        };
        self.received.lock().push((line, call.headers));
        let body = call.body.collect(1 << 20).await.unwrap();
        if !body.is_empty() {
            self.bodies.lock().push(String::from_utf8(body.to_vec()).unwrap());
        }
        let mut response = Response::new(Body::empty());
        if let Some((status, text)) = self.listing.lock().get(&*target.device).cloned() {
            *response.body_mut() = Body::whole(text);
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            for (name, value) in &*self.listing_headers.lock() {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            return response;
        }
        let (status, location) = match self.refusing.lock().get(&*target.device) {
            Some((status, location)) => (*status, location.clone()),
            None => (201, None),
        };
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        if let Some(seconds) = self.dates.lock().get(&*target.device) {
            let date = calendar::http(*seconds).parse().unwrap();
            response.headers_mut().insert("date", date);
        }
        if let Some(location) = location {
            response.headers_mut().insert("location", location.parse().unwrap());
        }
        response
    }
}

impl Fake {
    /// The request lines since the last call, sorted.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = std::mem::take(&mut *self.received.lock())
            .into_iter()
            .map(|t| t.0)
            .collect();
        lines.sort();
        lines
    }
}

/// `sd0`, `sd1` and `sd2` hold every partition.
pub fn ring_client(fake: &Arc<Fake>) -> RingClient {
    ring_client_of(fake, 3.0)
}

/// So many of them hold every partition; the others are its handoffs.
pub fn ring_client_of(fake: &Arc<Fake>, replicas: f64) -> RingClient {
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.2", 6299, fake.clone());
    peers.register("127.0.0.1", 6201, fake.clone());
    let wait = Duration::from_secs(30);
    RingClient {
        ring: Arc::new(ArcSwap::from_pointee(ring(replicas))),
        hash: HashPrefix::new("a", "b").unwrap(),
        peers: Arc::new(peers),
        timeouts: Timeouts {
            connect: wait,
            response: wait,
        },
    }
}

fn ring(replicas: f64) -> Ring {
    let mut builder = RingBuilder::new(4, replicas, 1).unwrap();
    for id in 0..3 {
        builder.add(device(id)).unwrap();
    }
    builder.rebalance(1, 0).unwrap();
    Ring::new(builder.to_ring().unwrap())
}

fn device(id: u32) -> Device {
    Device {
        region: 1,
        zone: id,
        weight: 1.0,
        ip: "127.0.0.1".into(),
        port: 6201,
        replication_ip: "127.0.0.2".into(),
        replication_port: 6299,
        device: format!("sd{id}"),
        ..Device::default()
    }
}

/// Steps until the pass is over: done and failed.
pub async fn pass(job: &mut impl UpkeepJob) -> (u64, u64) {
    let mut sum = (0, 0);
    loop {
        match job.step().await {
            UpkeepStep::Did { done, failed } => sum = (sum.0 + done, sum.1 + failed),
            UpkeepStep::PassOver => return sum,
        }
    }
}

/// The warnings and errors that are logged on the test's own thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Collects while the guard lives.
    pub fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        // Where there is only one subscriber, tracing asks that of the thread which first comes to a line of the log:
        // a test without one would switch the line off for all.
        static SECOND: LazyLock<tracing::Dispatch> = LazyLock::new(|| tracing::Dispatch::new(Log::default()));
        LazyLock::force(&SECOND);
        let log = Self::default();
        (log.clone(), tracing::subscriber::set_default(log))
    }

    /// The lines with `word` in them since the last call.
    pub fn lines(&self, word: &str) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.0.lock());
        lines.retain(|line| line.contains(word));
        lines
    }
}

struct LogMessage(String);

impl tracing::field::Visit for LogMessage {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = LogMessage(String::new());
        event.record(&mut message);
        self.0.lock().push(message.0);
    }
    fn enter(&self, _span: &tracing::span::Id) {}
    fn exit(&self, _span: &tracing::span::Id) {}
}
