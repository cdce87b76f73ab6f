//! Requests inside an SSYNC exchange, through a whole object server whose device is in memory.

use crate::input::{block_on, body, cut, text};
use http::{HeaderMap, Method};
use object_engine::{EngineError, MemoryEngine, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use peer::{Address, Body, PartitionTarget, RawCall, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vocabulary::{HashPrefix, Partition, Policies, Policy, PolicyIndex};
use world::World;

const BEFORE: &[u8] = b":MISSING_CHECK: START\r\n:MISSING_CHECK: END\r\n:UPDATES: START\r\n";
const GOOD: &[u8] =
    b"PUT /a/c/good\r\nContent-Length: 1\r\nContent-Type: t/t\r\nX-Timestamp: 1800000000.00000\r\n\r\nx\
    :UPDATES: END\r\n";
const DONE: &str = ":MISSING_CHECK: END\r\n:UPDATES: START\r\n:UPDATES: END\r\n";

/// Panics of tasks and of threads, which their callers do not see.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// A server and its only device.
struct Receiver {
    server: Arc<ObjectServer>,
    device: Arc<MemoryEngine>,
}

/// The same device by any name.
struct OneDevice(Arc<MemoryEngine>);

impl DeviceSource for OneDevice {
    fn open(&self, _: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        Ok(self.0.clone())
    }
}

/// Requests as a sender sends them after the wishes: whatever they are, the answer is the same in any pieces, nothing
/// panics on the way, and the next exchange of the partition succeeds.
pub(crate) fn ssync_requests(bytes: &[u8]) {
    thread_local! {
        static RECEIVER: Receiver = Receiver::new();
    }
    let (size, sent) = cut(bytes);
    RECEIVER.with(|receiver| {
        let whole = receiver.answer(sent, 1 << 20);
        let pieces = receiver.answer(sent, size);
        // How many have failed when it is given up depends on which were done by then.
        let is_given_up = |answer: &Option<String>| answer.as_ref().is_some_and(|answer| answer.contains("Too many"));
        if !is_given_up(&whole) && !is_given_up(&pieces) {
            assert_eq!(pieces, whole, "pieces of {size}");
        }
        let next = receiver.answer(GOOD, 1 << 20);
        let is_done = next.as_ref().is_some_and(|answer| answer.ends_with(DONE));
        assert!(is_done, "the next exchange: {next:?}");
    });
}

impl Receiver {
    /// Panics where a server cannot have threads: then there is nothing to fuzz.
    #[expect(
        clippy::expect_used,
        reason = "a machine without threads cannot fuzz; the policies are constants"
    )]
    fn new() -> Self {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(panic);
        }));
        let policies = Policies::new(vec![Policy::replication(0, "gold")], Some(PolicyIndex(0)));
        let prefix = HashPrefix::new("before", "after").expect("a prefix");
        let options = ObjectServerOptions::new(prefix, Arc::new(policies.expect("a policy")));
        let device = Arc::new(MemoryEngine::new());
        let source = Arc::new(OneDevice(device.clone()));
        let server = block_on(async { ObjectServer::new(World::real(), options, source) });
        Self {
            server: server.expect("a server"),
            device,
        }
    }

    /// What an empty device's server answers to these requests; `None` when it breaks off.
    fn answer(&self, requests: &[u8], size: usize) -> Option<String> {
        self.device.clear();
        let panics = PANICS.load(Ordering::SeqCst);
        let answered = block_on(async {
            let call = RawCall {
                method: Method::from_bytes(b"SSYNC").ok()?,
                address: Address::Partition(PartitionTarget {
                    device: "sda".into(),
                    partition: Partition(1),
                    rest: String::new(),
                }),
                query: String::new(),
                headers: HeaderMap::new(),
                body: exchange(requests, size),
                interim: None,
            };
            let answer = self.server.call(call.into()).await.into_body();
            let answer = answer.collect(u64::MAX).await.ok()?;
            Some(text(&answer).into_owned())
        });
        assert_eq!(PANICS.load(Ordering::SeqCst), panics, "a task or a thread has panicked");
        answered
    }
}

fn exchange(requests: &[u8], size: usize) -> Body {
    body(&[BEFORE, requests].concat(), size)
}
