//! What one connection is doing, as seen from outside: between requests, in a head, or in a request.
//!
//! The connection writes it on its way, with plain stores and no look at a clock; [`Connections`](crate::connections)
//! reads it at intervals and ends what takes too long.
//! Always holds: a seat that is held is given back when the request ends, when its connection ends, or before that when
//! only the client is waited for.

use crate::seats::{Beginning, Seat};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not a byte of the next request has come.
    Idle,
    /// Some of a head has come.
    Head,
    /// From a whole head to the end of its answer.
    Request,
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const REQUEST: u8 = 2;

/// When all connections were last looked at, in milliseconds: what connections date their changes by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ticks(Arc<AtomicU64>);

impl Ticks {
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, now: Duration) {
        self.0
            .store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// See the module's header.
pub(crate) struct Activity {
    ticks: Ticks,
    phase: AtomicU8,
    /// When the phase began: a little earlier than that, see [`Ticks`].
    since: AtomicU64,
    /// Requests so far.
    requests: AtomicU32,
    /// Bytes that the client has sent or taken.
    moved: AtomicU64,
    /// The service waits for bytes of the request's body.
    wants_bytes: AtomicBool,
    /// Bytes wait to be taken by the client.
    has_bytes: AtomicBool,
    too_slow: AtomicBool,
    /// Bytes of an answer that wait in memory; [`Connections`](crate::connections) counts them.
    held: AtomicUsize,
    /// The reader of the body.
    reader: AtomicWaker,
    seat: Mutex<Option<OwnedSemaphorePermit>>,
    /// Until there is an answer, or the client is waited for.
    beginning: Mutex<Option<Beginning>>,
    end: Notify,
}

impl Activity {
    pub(crate) fn new(ticks: Ticks) -> Self {
        Self {
            phase: AtomicU8::new(IDLE),
            since: AtomicU64::new(ticks.now()),
            ticks,
            requests: AtomicU32::new(0),
            moved: AtomicU64::new(0),
            wants_bytes: AtomicBool::new(false),
            has_bytes: AtomicBool::new(false),
            too_slow: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            reader: AtomicWaker::new(),
            seat: Mutex::new(None),
            beginning: Mutex::new(None),
            end: Notify::new(),
        }
    }

    fn become_phase(&self, phase: u8) {
        self.phase.store(phase, Relaxed);
        self.since.store(self.ticks.now(), Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            IDLE => Phase::Idle,
            HEAD => Phase::Head,
            _ => Phase::Request,
        }
    }

    pub(crate) fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Relaxed)
    }

    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// Whether it goes on only when the client does.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.wants_bytes.load(Relaxed) || self.has_bytes.load(Relaxed)
    }

    /// Whether some of an answer has not been taken yet.
    pub(crate) fn has_bytes(&self) -> bool {
        self.has_bytes.load(Relaxed)
    }

    /// Bytes of an answer that wait in memory.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// So many bytes of an answer wait in memory; how many did before.
    pub(crate) fn hold(&self, bytes: usize) -> usize {
        self.held.swap(bytes, Relaxed)
    }

    /// So many bytes came.
    pub(crate) fn received(&self, bytes: usize) {
        if bytes > 0 && self.phase.load(Relaxed) == IDLE {
            self.become_phase(HEAD);
        }
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// The client took so many bytes; `None` when it takes none for now.
    pub(crate) fn sent(&self, bytes: Option<usize>) {
        if self.has_bytes.load(Relaxed) != bytes.is_none() {
            self.has_bytes.store(bytes.is_none(), Relaxed);
        }
        self.moved.fetch_add(bytes.unwrap_or(0) as u64, Relaxed);
    }

    /// A head is whole.
    pub(crate) fn begin(&self) {
        self.too_slow.store(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        self.become_phase(REQUEST);
    }

    /// The request may be worked at.
    pub(crate) fn sit_down(&self, seat: Seat) {
        self.take_seat(seat.permit);
        *self.beginning.lock() = Some(seat.beginning);
    }

    /// The request is worked at again.
    pub(crate) fn take_seat(&self, permit: OwnedSemaphorePermit) {
        *self.seat.lock() = Some(permit);
    }

    /// The request has an answer, or waits for its client.
    pub(crate) fn has_begun(&self) {
        *self.beginning.lock() = None;
    }

    /// The seat is free for another request; whether there was one.
    pub(crate) fn give_up_seat(&self) -> bool {
        self.seat.lock().take().is_some()
    }

    /// The request is over.
    pub(crate) fn finish(&self) {
        self.give_up_seat();
        self.has_begun();
        self.wants_bytes.store(false, Relaxed);
        self.become_phase(IDLE);
    }

    /// The service looks for bytes of the body: whether it has to wait for them.
    pub(crate) fn wants_bytes(&self, waits: bool, reader: &Waker) {
        if self.wants_bytes.load(Relaxed) != waits {
            self.wants_bytes.store(waits, Relaxed);
        }
        if waits {
            self.has_begun();
            self.reader.register(reader);
        }
    }

    /// The service has let go of the body.
    pub(crate) fn wants_no_bytes(&self) {
        self.wants_bytes.store(false, Relaxed);
    }

    /// Whether the body is to fail, because the client is too slow.
    pub(crate) fn is_too_slow(&self) -> bool {
        self.too_slow.load(Relaxed)
    }

    /// Lets the service answer if it waits for the client; else the connection ends.
    pub(crate) fn end_slow(&self) {
        let first = !self.too_slow.swap(true, Relaxed);
        match first && !self.has_bytes() {
            true => self.reader.wake(),
            false => self.end(),
        }
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }

    /// Completes when the connection is to end.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }
}
