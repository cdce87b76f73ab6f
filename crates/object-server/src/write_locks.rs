//! Write locks: which gateway may write an object for the moment.
//!
//! A gateway that writes an object on a condition takes the object's write lock from most of its primaries, looks
//! whether the condition holds, and writes under the lock: a PUT that names a lock which its sender does not hold
//! here (any more) is refused with 503. As two majorities have a server in common, one of two writers finds the
//! other's object. PUTs that name no lock are not held up.
//! Always holds: a lock has one holder; while a PUT under it is being published it has no other, however long that
//! takes; it ends with its lease, and with this process. The locks of a device are those of one process at a time
//! (`ObjectEngine::own_write_locks`): after SIGUSR1 the new worker grants none before those of the old one have ended,
//! which grants none any more and keeps those that it has for [`FAREWELL`].
//! The table is as large as the number of locks held or waited for.
//! Deliberately absent: what the condition is, how many servers are enough (the gateway's).
//! Tests: below, and `tests/write_locks.rs`.

use crate::request::text;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use object_engine::{ObjectKey, WriteLocksOwned};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use storage_shell::Refusal;
use tokio::sync::Notify;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, PathHash, PolicyIndex};
use world::{Clock, World};

/// How often it is looked whether a device still needs its locks here: soon enough for the successor of this process,
/// and for a device that is to be unmounted; seldom enough for many locks to be taken in one go.
const LOOK: Duration = Duration::from_millis(50);

/// How long locks last in a process that leaves: long enough for writes under way to end, as those that begin find the
/// successor; what gateways give back may not find this process any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// An object on a device.
pub(crate) type LockKey = (Arc<str>, PolicyIndex, PathHash);

/// The locks of all devices that this process owns the locks of.
#[derive(Default)]
struct OwnedDevices {
    devices: HashMap<Arc<str>, DeviceLocks>,
    /// When the last lock ends, once this process leaves.
    end: Option<Duration>,
}

/// The locks of this process.
#[derive(Default)]
pub(crate) struct ObjectWriteLocks {
    owned: Arc<Mutex<OwnedDevices>>,
}

/// Those of one device.
struct DeviceLocks {
    held: HashMap<(PolicyIndex, PathHash), Held>,
    /// No other process has a lock of the device meanwhile.
    _owned: WriteLocksOwned,
}

/// A lock that is held, or was until its lease ended.
struct Held {
    holder: HeaderValue,
    /// By the machine's monotonic time.
    until: Duration,
    /// PUTs under it that are being published.
    publishing: usize,
    /// Of those who wait for it.
    given_back: Arc<Notify>,
}

impl Held {
    fn is_over(&self, now: Duration) -> bool {
        self.until <= now && self.publishing == 0
    }
}

/// What an attempt to take a lock came to.
pub(crate) enum Attempt {
    /// It was free.
    Taken,
    /// The same holder has it already; its lease begins anew.
    Kept,
    /// Another has it, at least until then; the notice comes earlier where it is given back.
    Held(Arc<Notify>, Duration),
    /// The locks of the device are not this process's: [`ObjectWriteLocks::own`] comes first.
    NotOwned,
    /// This process leaves, and grants no more.
    Leaving,
}

/// A PUT under a lock that is being published: until this is dropped the lock gets no other holder.
pub(crate) struct Publishing {
    owned: Arc<Mutex<OwnedDevices>>,
    key: LockKey,
}

impl Drop for Publishing {
    fn drop(&mut self) {
        let (device, policy, hash) = &self.key;
        let mut owned = self.owned.lock();
        let locks = owned.devices.get_mut(device);
        if let Some(held) = locks.and_then(|locks| locks.held.get_mut(&(*policy, *hash))) {
            held.publishing = held.publishing.saturating_sub(1);
            held.given_back.notify_waiters();
        }
    }
}

impl ObjectWriteLocks {
    /// Takes a lock, or keeps it.
    pub(crate) fn attempt(
        &self,
        (device, policy, hash): &LockKey,
        holder: &HeaderValue,
        now: Duration,
        lease: Duration,
    ) -> Attempt {
        let mut owned = self.owned.lock();
        let end = owned.end;
        let Some(locks) = owned.devices.get_mut(device) else {
            return end.map_or(Attempt::NotOwned, |_| Attempt::Leaving);
        };
        let until = end.unwrap_or(now + lease);
        let held = match locks.held.entry((*policy, *hash)) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(_) if end.is_some() => return Attempt::Leaving,
            Entry::Vacant(free) => {
                free.insert(Held {
                    holder: holder.clone(),
                    until,
                    publishing: 0,
                    given_back: Arc::default(),
                });
                return Attempt::Taken;
            }
        };
        if held.holder == *holder {
            let is_kept = held.until > now;
            held.until = until;
            return if is_kept { Attempt::Kept } else { Attempt::Taken };
        }
        if end.is_some() {
            return Attempt::Leaving;
        }
        if !held.is_over(now) {
            return Attempt::Held(held.given_back.clone(), held.until);
        }
        held.holder = holder.clone();
        held.until = until;
        Attempt::Taken
    }

    /// From now on locks of this device are granted here, until none is held any more.
    pub(crate) fn own(&self, world: &World, device: &Arc<str>, locks: WriteLocksOwned) {
        match self.owned.lock().devices.entry(device.clone()) {
            // Two that wanted them have asked an engine that only this process can use.
            Entry::Occupied(_) => return,
            Entry::Vacant(free) => free.insert(DeviceLocks {
                held: HashMap::new(),
                _owned: locks,
            }),
        };
        let (owned, device, clock) = (self.owned.clone(), device.clone(), world.clock.clone());
        world.spawn_unrelated(async move {
            loop {
                clock.sleep(LOOK).await;
                if owned.lock().is_left(&device, clock.elapsed()) {
                    return;
                }
            }
        });
    }

    /// From now on no lock is granted here, and those that are held end soon.
    pub(crate) fn leave(&self, now: Duration) {
        let mut owned = self.owned.lock();
        let end = *owned.end.get_or_insert(now + FAREWELL);
        for held in owned.devices.values_mut().flat_map(|locks| locks.held.values_mut()) {
            held.until = held.until.min(end);
            held.given_back.notify_waiters();
        }
    }

    /// Ends a lock before its lease does.
    pub(crate) fn give_back(&self, (device, policy, hash): &LockKey, holder: &HeaderValue) {
        let mut owned = self.owned.lock();
        let Some(locks) = owned.devices.get_mut(device) else {
            return;
        };
        let Entry::Occupied(mut held) = locks.held.entry((*policy, *hash)) else {
            return;
        };
        if held.get().holder != *holder {
            return;
        }
        held.get().given_back.notify_waiters();
        match held.get().publishing {
            0 => drop(held.remove()),
            _ => held.get_mut().until = Duration::ZERO,
        }
    }

    /// Begins the publication of a PUT that names this lock; a refusal unless the lock is held here by its sender.
    /// Nothing where the lock is of another object, which the PUT is a part of.
    pub(crate) fn publish(
        &self,
        clock: &dyn Clock,
        (device, path): (&Arc<str>, &EntityPath),
        key: &ObjectKey,
        lock: Option<&HeaderValue>,
    ) -> Result<Option<Publishing>, Refusal> {
        let Some(lock) = lock.filter(|lock| is_of(lock, path)) else {
            return Ok(None);
        };
        let mut owned = self.owned.lock();
        let locks = owned.devices.get_mut(device);
        let held = locks.and_then(|locks| locks.held.get_mut(&(key.policy, key.hash)));
        let held = held.filter(|held| held.holder == *lock && held.until > clock.elapsed());
        let held = held.ok_or_else(not_held)?;
        held.publishing += 1;
        Ok(Some(Publishing {
            owned: self.owned.clone(),
            key: (device.clone(), key.policy, key.hash),
        }))
    }
}

impl OwnedDevices {
    /// Forgets the locks of a device that are over; whether none was left, so that another process may have them.
    fn is_left(&mut self, device: &Arc<str>, now: Duration) -> bool {
        let Some(locks) = self.devices.get_mut(device) else {
            return true;
        };
        locks.held.retain(|_, held| !held.is_over(now));
        let is_left = locks.held.is_empty();
        if is_left {
            self.devices.remove(device);
        }
        is_left
    }
}

/// Whether a lock (a random text, then the quoted path of its object) is the one of this object.
pub(crate) fn is_of(lock: &HeaderValue, path: &EntityPath) -> bool {
    let locked = text(lock).and_then(|lock| lock.find('/').map(|at| &lock[at..]));
    locked.is_some_and(|locked| unquote(locked).is_ok_and(|locked| locked == path.path()))
}

/// 503 with `Retry-After`: nothing is wrong with this server.
pub(crate) fn not_held() -> Refusal {
    let text = "the write lock that the request names is not held here, or this process ends".to_owned();
    let mut response = Refusal::Text(StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    Refusal::Whole(Box::new(response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_engine::ObjectEngine;

    fn key() -> LockKey {
        ("sda".into(), PolicyIndex(0), PathHash([7; 16]))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn owned() -> ObjectWriteLocks {
        let locks = ObjectWriteLocks::default();
        let memory = DeviceLocks {
            held: HashMap::new(),
            _owned: object_engine::MemoryEngine::new().own_write_locks().unwrap().unwrap(),
        };
        locks.owned.lock().devices.insert("sda".into(), memory);
        locks
    }

    fn take(locks: &ObjectWriteLocks, holder: &'static str, now: u64) -> &'static str {
        match locks.attempt(&key(), &HeaderValue::from_static(holder), at(now), at(10)) {
            Attempt::Taken => "taken",
            Attempt::Kept => "kept",
            Attempt::Held(..) => "held",
            Attempt::NotOwned => "not owned",
            Attempt::Leaving => "leaving",
        }
    }

    #[test]
    fn a_lock_has_one_holder_until_its_lease_ends() {
        let locks = owned();
        assert_eq!(take(&locks, "a", 0), "taken");
        assert_eq!(take(&locks, "b", 9), "held");
        assert_eq!(take(&locks, "a", 9), "kept");
        assert_eq!(take(&locks, "b", 18), "held");
        assert_eq!(take(&locks, "b", 19), "taken");
        assert_eq!(take(&locks, "a", 20), "held");
        locks.give_back(&key(), &HeaderValue::from_static("a"));
        assert_eq!(take(&locks, "a", 20), "held");
        locks.give_back(&key(), &HeaderValue::from_static("b"));
        assert_eq!(take(&locks, "a", 20), "taken");
    }

    #[test]
    fn a_publication_keeps_the_lock_past_its_lease() {
        let locks = owned();
        assert_eq!(take(&locks, "a", 0), "taken");
        let (device, policy, hash) = key();
        let set = |publishing| {
            let mut owned = locks.owned.lock();
            let held = owned
                .devices
                .get_mut(&device)
                .unwrap()
                .held
                .get_mut(&(policy, hash))
                .unwrap();
            held.publishing = publishing;
        };
        set(1);
        let publishing = Publishing {
            owned: locks.owned.clone(),
            key: key(),
        };
        assert_eq!(take(&locks, "b", 30), "held");
        locks.give_back(&key(), &HeaderValue::from_static("a"));
        assert_eq!(take(&locks, "b", 30), "held");
        drop(publishing);
        assert_eq!(take(&locks, "b", 30), "taken");
    }

    #[test]
    fn a_device_is_left_when_none_of_its_locks_is_held() {
        let locks = owned();
        let is_left = |now| locks.owned.lock().is_left(&"sda".into(), at(now));
        assert_eq!(take(&locks, "a", 0), "taken");
        assert!(!is_left(9));
        assert!(is_left(10));
        assert_eq!(take(&locks, "b", 10), "not owned");
    }

    #[test]
    fn a_process_that_leaves_lets_writes_end_and_grants_no_more() {
        let locks = owned();
        assert_eq!(take(&locks, "a", 0), "taken");
        locks.leave(at(3));
        assert_eq!(take(&locks, "b", 3), "leaving");
        assert_eq!(take(&locks, "a", 3), "kept");
        assert!(!locks.owned.lock().is_left(&"sda".into(), at(3)));
        assert!(locks.owned.lock().is_left(&"sda".into(), at(4)));
        assert_eq!(take(&locks, "a", 4), "leaving");
    }

    #[test]
    fn a_lock_names_its_object() {
        let path = EntityPath::split("a/c/o/\u{fc} x").unwrap();
        let is = |text: &str| is_of(&HeaderValue::from_str(text).unwrap(), &path);
        assert!(is("123/a/c/o/%C3%BC%20x"));
        assert!(!is("123/a/c/o"));
        assert!(!is("123"));
    }
}
