//! Write locks: which gateway may write an object for the moment.
//!
//! A gateway that writes an object on a condition takes the object's write lock from most of its primaries, looks
//! whether the condition holds, and writes under the lock: a PUT that names a lock which its sender does not hold
//! here (any more) is refused with 503. As two majorities have a server in common, one of two writers finds the
//! other's object. PUTs that name no lock are not held up.
//! Always holds: a lock has one holder; while a PUT under it is being published it has no other, however long that
//! takes; it ends with its lease, and with this process. The table is as large as the number of locks held or waited
//! for.
//! Deliberately absent: what the condition is, how many servers are enough (the gateway's).
//! Tests: below, and `tests/write_locks.rs`.

use crate::request::text;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use object_engine::ObjectKey;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use storage_shell::Refusal;
use tokio::sync::Notify;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, PathHash, PolicyIndex};
use world::Clock;

/// An object on a device.
pub(crate) type LockKey = (Arc<str>, PolicyIndex, PathHash);

/// The locks of this process.
#[derive(Default)]
pub(crate) struct ObjectWriteLocks {
    held: Arc<Mutex<HashMap<LockKey, Held>>>,
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

/// What an attempt to take a lock came to.
pub(crate) enum Attempt {
    /// It was free.
    Taken,
    /// The same holder has it already; its lease begins anew.
    Kept,
    /// Another has it, at least until then; the notice comes earlier where it is given back.
    Held(Arc<Notify>, Duration),
}

/// A PUT under a lock that is being published: until this is dropped the lock gets no other holder.
pub(crate) struct Publishing {
    held: Arc<Mutex<HashMap<LockKey, Held>>>,
    key: LockKey,
}

impl Drop for Publishing {
    fn drop(&mut self) {
        if let Some(held) = self.held.lock().get_mut(&self.key) {
            held.publishing = held.publishing.saturating_sub(1);
            held.given_back.notify_waiters();
        }
    }
}

impl ObjectWriteLocks {
    /// Takes a lock, or keeps it.
    pub(crate) fn attempt(&self, key: &LockKey, holder: &HeaderValue, now: Duration, lease: Duration) -> Attempt {
        let mut all = self.held.lock();
        let until = now + lease;
        if let Some(held) = all.get_mut(key) {
            if held.holder == *holder {
                let is_kept = held.until > now;
                held.until = until;
                return if is_kept { Attempt::Kept } else { Attempt::Taken };
            }
            if held.until > now || held.publishing > 0 {
                return Attempt::Held(held.given_back.clone(), held.until);
            }
            held.holder = holder.clone();
            held.until = until;
            return Attempt::Taken;
        }
        // Those whose lease has ended and that no gateway has asked for since.
        all.retain(|_, held| held.until > now || held.publishing > 0);
        let held = Held {
            holder: holder.clone(),
            until,
            publishing: 0,
            given_back: Arc::default(),
        };
        all.insert(key.clone(), held);
        Attempt::Taken
    }

    /// Ends a lock before its lease does.
    pub(crate) fn give_back(&self, key: &LockKey, holder: &HeaderValue) {
        let mut all = self.held.lock();
        let Some(held) = all.get_mut(key).filter(|held| held.holder == *holder) else {
            return;
        };
        held.given_back.notify_waiters();
        match held.publishing {
            0 => drop(all.remove(key)),
            _ => held.until = Duration::ZERO,
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
        let key = (device.clone(), key.policy, key.hash);
        let mut all = self.held.lock();
        let held = all.get_mut(&key);
        let held = held.filter(|held| held.holder == *lock && held.until > clock.elapsed());
        let held = held.ok_or_else(not_held)?;
        held.publishing += 1;
        Ok(Some(Publishing {
            held: self.held.clone(),
            key,
        }))
    }
}

/// Whether a lock (a random text, then the quoted path of its object) is the one of this object.
pub(crate) fn is_of(lock: &HeaderValue, path: &EntityPath) -> bool {
    let locked = text(lock).and_then(|lock| lock.find('/').map(|at| &lock[at..]));
    locked.is_some_and(|locked| unquote(locked).is_ok_and(|locked| locked == path.path()))
}

/// 503 with `Retry-After`: nothing is wrong with this server.
fn not_held() -> Refusal {
    let text = "the write lock that the request names is not held here".to_owned();
    let mut response = Refusal::Text(StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    Refusal::Whole(Box::new(response))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> LockKey {
        ("sda".into(), PolicyIndex(0), PathHash([7; 16]))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn take(locks: &ObjectWriteLocks, holder: &'static str, now: u64) -> &'static str {
        match locks.attempt(&key(), &HeaderValue::from_static(holder), at(now), at(10)) {
            Attempt::Taken => "taken",
            Attempt::Kept => "kept",
            Attempt::Held(..) => "held",
        }
    }

    #[test]
    fn a_lock_has_one_holder_until_its_lease_ends() {
        let locks = ObjectWriteLocks::default();
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
        let locks = ObjectWriteLocks::default();
        assert_eq!(take(&locks, "a", 0), "taken");
        locks.held.lock().get_mut(&key()).unwrap().publishing = 1;
        let publishing = Publishing {
            held: locks.held.clone(),
            key: key(),
        };
        assert_eq!(take(&locks, "b", 30), "held");
        locks.give_back(&key(), &HeaderValue::from_static("a"));
        assert_eq!(take(&locks, "b", 30), "held");
        drop(publishing);
        assert_eq!(take(&locks, "b", 30), "taken");
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
