//! Seats for requests (`max_clients`), and which request gets the next one.
//!
//! A request's task is polled many times before the request is answered or waits for its client. If a thousand
//! requests began at once, each poll would wait for a poll of every other one, those of nearly finished requests too.
//! So few begin together ([`BEGINNING`]); beyond those, [`BEYOND`] begin in one round of the runtime's tasks: a round
//! takes long while the processor is busy, and no time while requests wait for drives or other servers. Requests that
//! are not done soon ([`beginnings::EPOCH_MILLIS`]) wait for something else than the processor and no longer count.
//! Always holds: a free seat goes to the next waiting request; addresses take turns, and requests of one address come
//! in their order; a request that is cancelled leaves no place in a queue and holds no seat.
//! Deliberately absent: turns for clients behind one load balancer: nothing in a request that is not yet authenticated
//! tells them apart.

mod beginnings;

use crate::turn_queues::{QueuePlace, QueuedRequest, TurnQueues, client_network};
pub(crate) use beginnings::Beginning;
use beginnings::Beginnings;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use world::{Clock, World};

/// So many requests begin together: they have no answer and do not wait for their clients.
const BEGINNING: usize = 32;
/// Further requests that begin in one round of the runtime's tasks.
const BEYOND: usize = 2;

/// See the module's header.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    beginnings: Arc<Beginnings>,
    queues: Mutex<TurnQueues<IpAddr, Seat>>,
    /// How many requests are in `queues`.
    waiting: AtomicUsize,
    /// Notified when a request begins to wait.
    wanted: Arc<Notify>,
    none_free: Arc<Notify>,
}

/// What a request needs to be worked at.
pub(crate) struct Seat {
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) beginning: Beginning,
}

impl Seats {
    /// So many seats, all free.
    pub(crate) fn new(world: &World, seats: usize) -> Arc<Self> {
        let seats = Arc::new(Self {
            free: Arc::new(Semaphore::new(seats.clamp(1, Semaphore::MAX_PERMITS))),
            clock: world.clock.clone(),
            beginnings: Arc::default(),
            queues: Mutex::default(),
            waiting: AtomicUsize::new(0),
            wanted: Arc::default(),
            none_free: Arc::default(),
        });
        world.spawn_unrelated(give_out(Arc::downgrade(&seats), seats.wanted.clone()));
        seats
    }

    /// A free seat for a request that has begun already.
    pub(crate) fn take_free(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_owned().ok()
    }

    /// A seat at once, if no request waits and few begin.
    pub(crate) fn sit_down(&self) -> Option<Seat> {
        let is_quiet = self.waiting() == 0 && self.few_begin();
        is_quiet
            .then(|| self.take_free())
            .flatten()
            .map(|permit| self.begin(permit))
    }

    fn begin(&self, permit: OwnedSemaphorePermit) -> Seat {
        Seat {
            permit,
            beginning: Beginnings::begin(&self.beginnings, self.clock.elapsed()),
        }
    }

    fn few_begin(&self) -> bool {
        self.beginnings.count(self.clock.elapsed()) < BEGINNING
    }

    /// How many seats are free.
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Refuses the newest request of an address with many, so that one of `address` can wait; whether there was any.
    pub(crate) fn make_place(&self, address: IpAddr) -> bool {
        let refused = self.queues.lock().take_from_longest(&client_network(address));
        if refused.is_some() {
            self.waiting.fetch_sub(1, Relaxed);
        }
        refused.is_some()
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Whether requests wait because no seat is free.
    pub(crate) fn are_taken(&self) -> bool {
        self.waiting() > 0 && self.free() == 0
    }

    /// Notified when a request waits and no seat is free.
    pub(crate) fn none_free(&self) -> &Arc<Notify> {
        &self.none_free
    }

    /// A seat in its turn.
    pub(crate) async fn wait(&self, address: IpAddr) -> Option<Seat> {
        let (seat, given) = oneshot::channel();
        let _waiting = self.enqueue(address, seat);
        self.wanted.notify_one();
        if self.free() == 0 {
            self.none_free.notify_one();
        }
        given.await.ok()
    }

    fn enqueue(&self, address: IpAddr, seat: oneshot::Sender<Seat>) -> Waiting<'_> {
        let mut queues = self.queues.lock();
        self.waiting.fetch_add(1, Relaxed);
        let place = queues.add(client_network(address), seat);
        Waiting { seats: self, place }
    }

    /// The next step of [`give_out`], when so many requests have begun in this round beyond [`BEGINNING`].
    fn next_step(&self, beyond: usize) -> Step {
        if self.waiting() == 0 {
            return Step::Rest;
        }
        let is_beyond = !self.few_begin();
        if is_beyond && beyond == BEYOND {
            return Step::Round;
        }
        if self.are_taken() {
            self.none_free.notify_one();
        }
        Step::Give {
            free: self.free.clone(),
            is_beyond,
        }
    }

    /// Gives the seat to the request whose turn it is.
    fn give(&self, permit: OwnedSemaphorePermit) {
        let mut seat = self.begin(permit);
        while let Some(request) = self.next() {
            match request.awaited.send(seat) {
                Ok(()) => return,
                Err(unwanted) => seat = unwanted,
            }
        }
    }

    fn next(&self) -> Option<QueuedRequest<Seat>> {
        let mut queues = self.queues.lock();
        let next = queues.next();
        if next.is_some() {
            self.waiting.fetch_sub(1, Relaxed);
        }
        next
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        self.wanted.notify_one();
    }
}

/// See [`Seats::next_step`].
enum Step {
    /// No request waits.
    Rest,
    /// No more begin before the next round.
    Round,
    /// The next request may begin, with the next free seat.
    Give { free: Arc<Semaphore>, is_beyond: bool },
}

/// Gives seats to waiting requests as long as there are `seats`. As it is a task like others, all others have been
/// polled when it is polled again: that is a round.
async fn give_out(seats: Weak<Seats>, wanted: Arc<Notify>) {
    let mut beyond = 0;
    loop {
        let Some(next) = seats.upgrade().map(|seats| seats.next_step(beyond)) else {
            return;
        };
        match next {
            Step::Rest => {
                wanted.notified().await;
                beyond = 0;
            }
            Step::Round => {
                tokio::task::yield_now().await;
                beyond = 0;
            }
            Step::Give { free, is_beyond } => {
                // The semaphore is never closed.
                let (Ok(permit), Some(seats)) = (free.acquire_owned().await, seats.upgrade()) else {
                    return;
                };
                seats.give(permit);
                beyond += usize::from(is_beyond);
            }
        }
    }
}

/// A request that waits, until it is dropped.
struct Waiting<'a> {
    seats: &'a Seats,
    place: QueuePlace<IpAddr>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.seats.queues.lock().remove(&self.place) {
            self.seats.waiting.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests;
