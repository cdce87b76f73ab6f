//! Who sits down next: requests that wait for a seat, or for others that have just begun.
//!
//! A request that has begun comes to its turn among the runtime's tasks many times before it is answered or waits for its
//! client. A thousand that began at once would make each of them wait for all others each time, and those that are
//! nearly done too. So few begin together ([`BEGINNING`]), and beyond those [`BEYOND`] in one round of all tasks: where
//! the processor has much to do a round takes long; where requests wait for drives or other servers it takes no time.
//! Always holds: a seat that nobody sits on is given to whoever waits; addresses take turns, and the requests of one
//! address come in their order; who has given up waiting takes no room.
//! Deliberately absent: turns for those behind one address, a load balancer's for example: they cannot be told apart
//! by anything that they could not make up.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use world::World;

/// Requests that have begun and neither have an answer nor wait for their clients: beyond so many further ones wait.
const BEGINNING: usize = 32;
/// Further ones that begin nevertheless, in one round of the runtime's tasks.
const BEYOND: usize = 2;

/// See the module's header.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    /// How many [`Beginning`]s there are.
    beginning: AtomicUsize,
    lines: Mutex<Lines>,
    /// How many are in [`Lines`].
    waiting: AtomicUsize,
    /// Notified by who waits.
    wanted: Arc<Notify>,
    none_free: Arc<Notify>,
}

/// Those who wait, by address.
#[derive(Default)]
struct Lines {
    lines: HashMap<IpAddr, VecDeque<Waiter>>,
    /// Addresses with anyone in line, who comes next first.
    order: VecDeque<IpAddr>,
    next: u64,
}

/// To work at a request.
pub(crate) struct Seat {
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) beginning: Beginning,
}

/// A request that counts as one that begins, as long as this lives.
pub(crate) struct Beginning(Arc<Seats>);

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.beginning.fetch_sub(1, Relaxed);
    }
}

struct Waiter {
    id: u64,
    seat: oneshot::Sender<Seat>,
}

impl Lines {
    fn add(&mut self, line: IpAddr, seat: oneshot::Sender<Seat>) -> u64 {
        let id = self.next;
        self.next += 1;
        let waiters = self.lines.entry(line).or_default();
        if waiters.is_empty() {
            self.order.push_back(line);
        }
        waiters.push_back(Waiter { id, seat });
        id
    }

    /// Whose turn it is.
    fn next(&mut self) -> Option<Waiter> {
        let line = self.order.pop_front()?;
        let waiters = self.lines.get_mut(&line)?;
        let waiter = waiters.pop_front();
        match waiters.is_empty() {
            true => drop(self.lines.remove(&line)),
            false => self.order.push_back(line),
        }
        waiter
    }

    /// Whether it was there.
    fn remove(&mut self, line: IpAddr, id: u64) -> bool {
        let Some(waiters) = self.lines.get_mut(&line) else {
            return false;
        };
        let Ok(at) = waiters.binary_search_by_key(&id, |waiter| waiter.id) else {
            return false;
        };
        waiters.remove(at);
        if waiters.is_empty() {
            self.lines.remove(&line);
            self.order.retain(|other| *other != line);
        }
        true
    }
}

impl Seats {
    /// So many, all free.
    pub(crate) fn new(world: &World, seats: usize) -> Arc<Self> {
        let seats = Arc::new(Self {
            free: Arc::new(Semaphore::new(seats.clamp(1, Semaphore::MAX_PERMITS))),
            beginning: AtomicUsize::new(0),
            lines: Mutex::default(),
            waiting: AtomicUsize::new(0),
            wanted: Arc::default(),
            none_free: Arc::default(),
        });
        world.spawn_unrelated(give_out(Arc::downgrade(&seats), seats.wanted.clone()));
        seats
    }

    /// One that is free, for a request that has begun already.
    pub(crate) fn take_free(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_owned().ok()
    }

    /// One at once, where nobody waits and few have just begun.
    pub(crate) fn sit_down(self: &Arc<Self>) -> Option<Seat> {
        let is_quiet = self.waiting() == 0 && self.few_begin();
        is_quiet
            .then(|| self.take_free())
            .flatten()
            .map(|permit| self.begin(permit))
    }

    fn begin(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Seat {
        self.beginning.fetch_add(1, Relaxed);
        Seat {
            permit,
            beginning: Beginning(self.clone()),
        }
    }

    fn few_begin(&self) -> bool {
        self.beginning.load(Relaxed) < BEGINNING
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Whether any wait because there is no seat.
    pub(crate) fn are_taken(&self) -> bool {
        self.waiting() > 0 && self.free.available_permits() == 0
    }

    /// Notified when somebody waits and no seat is free.
    pub(crate) fn none_free(&self) -> &Arc<Notify> {
        &self.none_free
    }

    /// One in its turn.
    pub(crate) async fn wait(&self, address: IpAddr) -> Option<Seat> {
        let (seat, given) = oneshot::channel();
        let line = line_of(address);
        let _place = Place {
            seats: self,
            line,
            id: {
                let mut lines = self.lines.lock();
                self.waiting.fetch_add(1, Relaxed);
                lines.add(line, seat)
            },
        };
        self.wanted.notify_one();
        given.await.ok()
    }

    /// What is to be done, when so many have begun in this round beyond those that may together.
    fn next_step(&self, beyond: usize) -> Step {
        if self.waiting() == 0 {
            return Step::Nobody;
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

    /// To whoever is next in line.
    fn give(self: &Arc<Self>, permit: OwnedSemaphorePermit) {
        let mut seat = self.begin(permit);
        while let Some(waiter) = self.next() {
            match waiter.seat.send(seat) {
                Ok(()) => return,
                Err(unwanted) => seat = unwanted,
            }
        }
    }

    fn next(&self) -> Option<Waiter> {
        let mut lines = self.lines.lock();
        let next = lines.next();
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
    /// Nobody waits.
    Nobody,
    /// The next one may begin in the next round.
    Round,
    /// A seat is for the next in line, once there is one.
    Give { free: Arc<Semaphore>, is_beyond: bool },
}

/// Gives out seats as long as there are any. It is a task like others: when it comes to its turn again, all have had
/// theirs.
async fn give_out(seats: Weak<Seats>, wanted: Arc<Notify>) {
    let mut beyond = 0;
    loop {
        let Some(next) = seats.upgrade().map(|seats| seats.next_step(beyond)) else {
            return;
        };
        match next {
            Step::Nobody => {
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

/// A place in line, as long as this lives.
struct Place<'a> {
    seats: &'a Seats,
    line: IpAddr,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.seats.lines.lock().remove(self.line, self.id) {
            self.seats.waiting.fetch_sub(1, Relaxed);
        }
    }
}

/// Of IPv6 the network: a host has as many addresses there as it likes.
fn line_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]
mod tests;
