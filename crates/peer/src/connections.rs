//! All connections of one server: how many there may be, which of their requests have a seat, which have to end.
//!
//! A connection costs little and there may be many; a seat (`max_clients`) belongs to a request that is worked at. One
//! task looks at all connections every [`LOOK_EVERY`], instead of a timer for each.
//! Always holds: at most `max_connections` are open, besides those that are ending; when there is no room, the one
//! that has been idle longest makes it; a request that only waits for its client gives its seat to one that waits for
//! a seat.
//! What is decided for one connection: `watch.rs`.

use crate::activity::{Activity, Phase, Ticks};
use crate::refusals::{RefusalLog, ServerRefusal, ServerRefusals};
use crate::response_date::ResponseDate;
use crate::seats::{Seat, Seats};
use crate::shares::{AccountPlace, AccountShares};
use crate::watch::{ConnectionVerdict, Watch, WatchLimits};
use http::HeaderValue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;
use vocabulary::IpNetworks;
use world::{Clock, World};

/// Between two looks at all connections, at most.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same while requests wait for a seat.
const LOOK_SOON: Duration = Duration::from_millis(20);
/// Requests that wait for a seat, for each seat; more would only be refused later.
const WAITING_PER_SEAT: usize = 4;
/// Milliseconds after which a connection without a request counts as unused.
const TO_BEGIN: u64 = 1000;
/// One in so many connections makes room when there is none.
const SHARE_ENDED: usize = 64;

/// How many of what there may be, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    pub(crate) seats: usize,
    /// Requests without a seat that wait for their clients. They cost memory, not work.
    pub(crate) parked: usize,
    pub(crate) connections: usize,
    /// 0 for any number.
    pub(crate) per_address: usize,
    /// Addresses that this does not hold for.
    pub(crate) spared: IpNetworks,
    /// Requests; 0 for any number.
    pub(crate) per_account: usize,
    /// How long a request may wait for a seat.
    pub(crate) patience: Duration,
    /// Bytes of long answers that wait in memory.
    pub(crate) held: usize,
    pub(crate) watch: WatchLimits,
}

/// See the module's header.
pub(crate) struct Connections {
    clock: Arc<dyn Clock>,
    limits: ConnectionLimits,
    ticks: Ticks,
    seats: Arc<Seats>,
    /// Bytes of all answers that wait in memory.
    held: AtomicUsize,
    table: Mutex<Table>,
    accounts: Arc<AccountShares>,
    refusals: ServerRefusals,
    date: ResponseDate,
}

#[derive(Default)]
struct Table {
    entries: HashMap<u64, Entry>,
    next: u64,
    /// How many of the entries are ending.
    ending: usize,
    addresses: HashMap<IpAddr, usize>,
    log: RefusalLog,
}

struct Entry {
    activity: Arc<Activity>,
    watch: Watch,
    ending: bool,
}

impl Connections {
    /// None yet; they are looked at as long as the value lives.
    pub(crate) fn start(world: &World, mut limits: ConnectionLimits, refusals: ServerRefusals) -> Arc<Self> {
        let shortest = limits.watch.head.min(limits.watch.idle);
        let look_every = (shortest / 4).clamp(LOOK_SOON, LOOK_EVERY);
        // What connections date by is so much too early, at most.
        limits.watch.head += look_every;
        limits.watch.idle += look_every;
        let connections = Arc::new(Self {
            clock: world.clock.clone(),
            seats: Seats::new(world, limits.seats),
            held: AtomicUsize::new(0),
            accounts: AccountShares::new(limits.per_account, refusals.clone()),
            limits,
            ticks: Ticks::default(),
            table: Mutex::default(),
            refusals,
            date: ResponseDate::default(),
        });
        connections.ticks.set(connections.clock.elapsed());
        world.spawn_unrelated(watch(Arc::downgrade(&connections), look_every));
        connections
    }

    /// A new connection; why there can be none.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, ServerRefusal> {
        let mut table = self.table.lock();
        let open = table.entries.len().saturating_sub(table.ending);
        if open >= self.limits.connections && !self.make_room_in(&mut table) {
            self.refusals.add(ServerRefusal::Connections);
            return Err(ServerRefusal::Connections);
        }
        let activity = Arc::new(Activity::new(self.ticks.clone()));
        let id = table.next;
        table.next += 1;
        let entry = Entry {
            activity: activity.clone(),
            watch: Watch::default(),
            ending: false,
        };
        table.entries.insert(id, entry);
        Ok(Admitted {
            connections: self.clone(),
            id,
            address: None,
            activity,
        })
    }

    /// Ends those that have been idle longest, unused ones first; whether there were any.
    pub(crate) fn make_room(&self) -> bool {
        self.make_room_in(&mut self.table.lock())
    }

    fn make_room_in(&self, table: &mut Table) -> bool {
        let is_idle =
            |entry: &Entry| !entry.ending && entry.activity.phase() != Phase::Request && !entry.activity.has_bytes();
        let idle = table.entries.iter().filter(|(_, entry)| is_idle(entry));
        let now = self.ticks.now();
        let order = |(id, entry): (&u64, &Entry)| {
            let since = entry.activity.since();
            let is_used = entry.activity.requests() > 0 || now.saturating_sub(since) < TO_BEGIN;
            (is_used, since, *id)
        };
        let mut idle: Vec<(bool, u64, u64)> = idle.map(order).collect();
        let share = (self.limits.connections / SHARE_ENDED).max(1);
        if idle.len() > share {
            idle.select_nth_unstable(share);
            idle.truncate(share);
        }
        for (_, _, id) in &idle {
            if let Some(entry) = table.entries.get_mut(id) {
                entry.ending = true;
                entry.activity.end();
                self.refusals.add(ServerRefusal::Idle);
            }
        }
        table.ending += idle.len();
        !idle.is_empty()
    }

    /// The `Date` of an answer now.
    pub(crate) fn date(&self) -> HeaderValue {
        self.date.now(&*self.clock)
    }

    /// Counts a refusal, and keeps the reason of the latest for the log.
    pub(crate) fn refuse(&self, refusal: ServerRefusal, reason: String) {
        self.refusals.add(refusal);
        self.table.lock().log.explain(reason);
    }

    /// Where a new request counts for its account, if accounts have a limit.
    pub(crate) fn account_place(&self) -> Option<AccountPlace> {
        self.accounts.place()
    }

    /// A seat for a request from this address; `None` when there is none in time.
    pub(crate) async fn seat(&self, from: IpAddr) -> Option<Seat> {
        if let Some(seat) = self.seats.sit_down() {
            return Some(seat);
        }
        let seats = self.limits.seats.saturating_mul(WAITING_PER_SEAT);
        let most = seats.saturating_add(self.seats.free());
        let seat = match self.seats.waiting() < most || self.seats.make_place(from) {
            true => {
                let seat = self.seats.wait(from);
                let seat = world::clock::timeout(&*self.clock, self.limits.patience, seat).await;
                seat.ok().flatten()
            }
            false => None,
        };
        if seat.is_none() {
            self.refusals.add(ServerRefusal::Requests);
        }
        seat
    }

    /// Counts so many bytes of an answer, in place of those counted before. When there are too many, the connections
    /// end whose clients take nothing just now, those of the oldest requests first; `false` when these are too few.
    pub(crate) fn hold(&self, activity: &Activity, bytes: usize) -> bool {
        self.let_go(activity);
        let held = self.held.load(Relaxed).saturating_add(bytes);
        if held > self.limits.held && !self.make_memory(held - self.limits.held) {
            self.refusals.add(ServerRefusal::Memory);
            return false;
        }
        activity.hold(bytes);
        self.held.fetch_add(bytes, Relaxed);
        true
    }

    /// Nothing of its answer waits any more.
    pub(crate) fn let_go(&self, activity: &Activity) {
        let bytes = activity.hold(0);
        if bytes > 0 {
            self.held.fetch_sub(bytes, Relaxed);
        }
    }

    /// Ends connections that hold so many bytes; none where all of them together hold less. What they hold goes when
    /// their tasks end.
    fn make_memory(&self, bytes: usize) -> bool {
        let mut table = self.table.lock();
        let (mut ending, mut found) = (0, Vec::new());
        for (id, entry) in &table.entries {
            match (entry.activity.held(), entry.ending) {
                (0, _) => {}
                (held, true) => ending += held,
                (held, false) if entry.activity.has_bytes() => found.push((entry.activity.since(), *id, held)),
                _ => {}
            }
        }
        if ending + found.iter().map(|(_, _, held)| held).sum::<usize>() < bytes {
            return false;
        }
        found.sort_unstable();
        for (_, id, held) in found {
            if ending >= bytes {
                break;
            }
            if let Some(entry) = table.entries.get_mut(&id) {
                entry.ending = true;
                entry.activity.end();
                self.refusals.add(ServerRefusal::Memory);
                ending += held;
                table.ending += 1;
            }
        }
        true
    }

    /// Looks at all connections once.
    fn look(&self) {
        let now = self.clock.elapsed();
        self.ticks.set(now);
        let pressed = self.seats.are_taken();
        let most_parked = self.limits.parked;
        let mut table = self.table.lock();
        let table = &mut *table;
        let mut parked = table.entries.values().filter(|entry| entry.watch.is_parked()).count();
        for entry in table.entries.values_mut().filter(|entry| !entry.ending) {
            let activity = &*entry.activity;
            match entry.watch.look(activity, &self.limits.watch, now, pressed) {
                ConnectionVerdict::GiveUpSeat if parked < most_parked => {
                    entry.watch.park(activity);
                    parked += 1;
                    continue;
                }
                ConnectionVerdict::Stay => continue,
                ConnectionVerdict::TakeSeat => {
                    if let Some(seat) = self.seats.take_free() {
                        entry.watch.unpark();
                        activity.take_seat(seat);
                        if activity.phase() != Phase::Request {
                            // It ended meanwhile, on another thread.
                            activity.give_up_seat();
                        }
                    }
                    continue;
                }
                ConnectionVerdict::Slow | ConnectionVerdict::GiveUpSeat => {
                    if entry.watch.is_slow_for_the_first_time() {
                        self.refusals.add(ServerRefusal::Slow);
                    }
                    activity.end_slow();
                    continue;
                }
                ConnectionVerdict::Late => self.refusals.add(ServerRefusal::Head),
                ConnectionVerdict::Idle => {}
            }
            activity.end();
            entry.ending = true;
            table.ending += 1;
        }
        if let Some(line) = table.log.line(&self.refusals, now) {
            tracing::warn!("in the last seconds: {line}");
        }
    }
}

/// Looks at all connections as long as there are any, or may be.
async fn watch(connections: Weak<Connections>, look_every: Duration) {
    let Some((clock, pressed)) = connections
        .upgrade()
        .map(|all| (all.clock.clone(), all.seats.none_free().clone()))
    else {
        return;
    };
    loop {
        let Some(under_pressure) = connections.upgrade().map(|all| all.seats.are_taken()) else {
            return;
        };
        match under_pressure {
            true => clock.sleep(LOOK_SOON).await,
            false => tokio::select! {
                () = clock.sleep(look_every) => {}
                () = pressed.notified() => {}
            },
        }
        let Some(all) = connections.upgrade() else { return };
        all.look();
    }
}

/// A connection that counts as long as this lives.
pub(crate) struct Admitted {
    connections: Arc<Connections>,
    id: u64,
    address: Option<IpAddr>,
    activity: Arc<Activity>,
}

impl Admitted {
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Says where it comes from; whether that address may have one more. Once it is counted, it stays so.
    pub(crate) fn comes_from(&mut self, address: IpAddr) -> bool {
        if self.address.is_some() {
            return true;
        }
        let limits = &self.connections.limits;
        let most = limits.per_address;
        if most == 0 || limits.spared.has(address) {
            return true;
        }
        let mut table = self.connections.table.lock();
        let open = table.addresses.entry(address).or_default();
        if *open >= most {
            self.connections.refusals.add(ServerRefusal::Address);
            return false;
        }
        *open += 1;
        self.address = Some(address);
        true
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.activity.give_up_seat();
        let mut table = self.connections.table.lock();
        if let Some(address) = self.address
            && let Some(open) = table.addresses.get_mut(&address)
        {
            *open -= 1;
            if *open == 0 {
                table.addresses.remove(&address);
            }
        }
        if table.entries.remove(&self.id).is_some_and(|entry| entry.ending) {
            table.ending -= 1;
        }
    }
}
