//! LOCK: who may write an object for the moment, and the object as it stands.
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

use crate::devices::ObjectDevice;
use crate::expiry;
use crate::refusal::refusal_of;
use crate::request::{object_key, text};
use crate::state::ObjectServerState;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use object_engine::{EngineError, ObjectKey, OpenOptions};
use parking_lot::Mutex;
use peer::Response;
use peer::message::LockObject;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_OBJECT_EXISTS};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{Lane, Refusal, empty, put_time};
use tokio::sync::Notify;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, PathHash, PolicyIndex, Timestamp};
use world::Clock;

/// The longest lease, whatever is asked for.
const LONGEST_LEASE: Duration = Duration::from_secs(120);
/// The longest wait in line.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// An object on a device.
type LockKey = (Arc<str>, PolicyIndex, PathHash);

/// The locks of this process.
#[derive(Default)]
pub(crate) struct WriteLocks {
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
enum Attempt {
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

impl WriteLocks {
    fn attempt(&self, key: &LockKey, holder: &HeaderValue, now: Duration, lease: Duration) -> Attempt {
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
        // Those whose lease has ended and that nobody has asked for since.
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

    fn give_back(&self, key: &LockKey, holder: &HeaderValue) {
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
fn is_of(lock: &HeaderValue, path: &EntityPath) -> bool {
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

/// Answers a LOCK: 201 when the lock was taken, 200 when it was kept, 204 when it was given back, 409 when another has
/// it. With a lock that is taken or kept goes what the server has of the object.
pub(crate) async fn lock(state: &Arc<ObjectServerState>, message: LockObject) -> Result<Response, Refusal> {
    let object = object_key(&message.target, &message.policy, &state.options)?;
    let key = (message.target.device.clone(), object.policy, object.hash);
    let malformed = || Refusal::bad_request("LOCK wants a lock, a lease and a patience");
    let holder = message.write_lock.filter(|lock| is_of(lock, &message.target.path));
    let holder = holder.ok_or_else(malformed)?;
    let lease = *message.lease.value().ok_or_else(malformed)?;
    if lease == 0 {
        state.write_locks.give_back(&key, &holder);
        return Ok(empty(StatusCode::NO_CONTENT));
    }
    let lease = Duration::from_secs(lease).min(LONGEST_LEASE);
    let patience = Duration::from_millis(message.patience.value().copied().unwrap_or_default()).min(LONGEST_WAIT);
    let Some(status) = wait(state, &key, &holder, lease, patience).await else {
        return Err(Refusal::Page(StatusCode::CONFLICT));
    };
    match look(state, &message.target.device, object).await {
        Ok(found) => Ok(granted(status, found)),
        Err(refusal) => {
            state.write_locks.give_back(&key, &holder);
            Err(refusal)
        }
    }
}

/// Takes the lock as soon as it is free.
async fn wait(
    state: &ObjectServerState,
    key: &LockKey,
    holder: &HeaderValue,
    lease: Duration,
    patience: Duration,
) -> Option<StatusCode> {
    let clock = &state.world.clock;
    let deadline = clock.elapsed() + patience;
    loop {
        let now = clock.elapsed();
        let (given_back, until) = match state.write_locks.attempt(key, holder, now, lease) {
            Attempt::Taken => return Some(StatusCode::CREATED),
            Attempt::Kept => return Some(StatusCode::OK),
            Attempt::Held(given_back, until) => (given_back, until),
        };
        let notice = given_back.notified();
        tokio::pin!(notice);
        // From here on no notice is missed; whether one came before is seen by another attempt.
        notice.as_mut().enable();
        match state.write_locks.attempt(key, holder, now, lease) {
            Attempt::Taken | Attempt::Kept => return Some(StatusCode::CREATED),
            Attempt::Held(..) => {}
        }
        let left = deadline.saturating_sub(now);
        if left.is_zero() {
            return None;
        }
        let lease_left = until.saturating_sub(now).max(Duration::from_millis(10));
        // Either is a reason to try again.
        let _ = state.world.timeout(left.min(lease_left), notice).await;
    }
}

/// The time of what the device has of an object, or of its tombstone, and whether it is an object.
type Standing = (Option<Timestamp>, bool);

async fn look(state: &Arc<ObjectServerState>, device: &str, key: ObjectKey) -> Result<Standing, Refusal> {
    let now = state.world.clock.now();
    let device = state.devices.device(device, Lane::Requests).await?;
    let job = move |device: &ObjectDevice| match device.engine().open(&key, OpenOptions::BEFORE_WRITE) {
        Ok(found) => {
            let is_there = !expiry::has_expired(&found.metadata, now);
            Ok::<_, Refusal>((Some(found.timestamps.data), is_there))
        }
        Err(EngineError::NotFound { deleted_at }) => Ok((deleted_at, false)),
        Err(EngineError::Quarantined { .. }) => Ok((None, false)),
        Err(error) => Err(refusal_of(&error, device)),
    };
    device.run(job).await
}

fn granted(status: StatusCode, (timestamp, is_there): Standing) -> Response {
    let mut response = empty(status);
    if let Some(timestamp) = timestamp {
        put_time(&mut response, X_BACKEND_TIMESTAMP, timestamp);
    }
    let is_there = HeaderValue::from_static(if is_there { "true" } else { "false" });
    response.headers_mut().insert(X_OBJECT_EXISTS, is_there);
    response
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

    fn take(locks: &WriteLocks, holder: &'static str, now: u64) -> &'static str {
        match locks.attempt(&key(), &HeaderValue::from_static(holder), at(now), at(10)) {
            Attempt::Taken => "taken",
            Attempt::Kept => "kept",
            Attempt::Held(..) => "held",
        }
    }

    #[test]
    fn a_lock_has_one_holder_until_its_lease_ends() {
        let locks = WriteLocks::default();
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
        let locks = WriteLocks::default();
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
