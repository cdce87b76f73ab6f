//! LOCK: takes, keeps or gives back the write lock of an object, and says what this server has of it.
//!
//! Always holds: a lock that is granted goes with the object as it stands then; where that cannot be said the lock is
//! given back.

use crate::devices::ObjectDevice;
use crate::expiry;
use crate::refusal::refusal_of;
use crate::request::object_key;
use crate::state::ObjectServerState;
use crate::write_locks::{Attempt, LockKey, is_of, not_held};
use http::{HeaderValue, StatusCode};
use object_engine::rules::lock_of;
use object_engine::{EngineError, ObjectKey, OpenOptions};
use peer::Response;
use peer::message::LockObject;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_OBJECT_EXISTS, X_OBJECT_LEGAL_HOLD, X_OBJECT_RETENTION};
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{Lane, Refusal, empty, put_time};
use vocabulary::Timestamp;
use vocabulary::object_lock::ObjectLock;

/// The longest lease, whatever is asked for.
const LONGEST_LEASE: Duration = Duration::from_secs(120);
/// The longest wait in line.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often it is looked whether another process still has the locks of a device.
const BETWEEN_PROCESSES: Duration = Duration::from_millis(20);

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
    let Some(status) = wait(state, &key, &holder, lease, patience).await? else {
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

/// Takes the lock as soon as it is free; none when it is not in time.
async fn wait(
    state: &Arc<ObjectServerState>,
    key: &LockKey,
    holder: &HeaderValue,
    lease: Duration,
    patience: Duration,
) -> Result<Option<StatusCode>, Refusal> {
    let clock = &state.world.clock;
    let deadline = clock.elapsed() + patience;
    loop {
        let now = clock.elapsed();
        let left = deadline.saturating_sub(now);
        let (given_back, until) = match state.write_locks.attempt(key, holder, now, lease) {
            Attempt::Taken => return Ok(Some(StatusCode::CREATED)),
            Attempt::Kept => return Ok(Some(StatusCode::OK)),
            Attempt::Held(given_back, until) => (given_back, until),
            Attempt::Leaving => return Err(not_held()),
            Attempt::NotOwned if own(state, &key.0).await? => continue,
            Attempt::NotOwned if left.is_zero() => return Ok(None),
            Attempt::NotOwned => {
                clock.sleep(left.min(BETWEEN_PROCESSES)).await;
                continue;
            }
        };
        let notice = given_back.notified();
        tokio::pin!(notice);
        // From here on no notice is missed; whether one came before is seen by another attempt.
        notice.as_mut().enable();
        match state.write_locks.attempt(key, holder, now, lease) {
            Attempt::Taken | Attempt::Kept => return Ok(Some(StatusCode::CREATED)),
            Attempt::NotOwned | Attempt::Leaving => continue,
            Attempt::Held(..) => {}
        }
        if left.is_zero() {
            return Ok(None);
        }
        let lease_left = until.saturating_sub(now).max(Duration::from_millis(10));
        // Either is a reason to try again.
        let _ = state.world.timeout(left.min(lease_left), notice).await;
    }
}

/// Whether the locks of the device are granted by this process now; another's may not have ended yet.
async fn own(state: &Arc<ObjectServerState>, name: &Arc<str>) -> Result<bool, Refusal> {
    let device = state.devices.device(name, Lane::Requests).await?;
    let job = |device: &ObjectDevice| {
        let owned = device.engine().own_write_locks();
        owned.map_err(|error| refusal_of(&error, device))
    };
    let owned = device.run(job).await?;
    let is_owned = owned.is_some();
    if let Some(owned) = owned {
        state.write_locks.own(&state.world, name, owned);
    }
    Ok(is_owned)
}

/// The time of what the device has of an object, or of its tombstone, whether it is an object, and what holds it.
type Standing = (Option<Timestamp>, bool, ObjectLock);

async fn look(state: &Arc<ObjectServerState>, device: &str, key: ObjectKey) -> Result<Standing, Refusal> {
    let now = state.world.clock.now();
    let device = state.devices.device(device, Lane::Requests).await?;
    let job = move |device: &ObjectDevice| match device.engine().open(&key, OpenOptions::BEFORE_WRITE) {
        Ok(found) => {
            let is_there = !expiry::has_expired(&found.metadata, now);
            Ok::<_, Refusal>((Some(found.timestamps.data), is_there, lock_of(&found.metadata)))
        }
        Err(EngineError::NotFound { deleted_at }) => Ok((deleted_at, false, ObjectLock::default())),
        Err(EngineError::Quarantined { .. }) => Ok((None, false, ObjectLock::default())),
        Err(error) => Err(refusal_of(&error, device)),
    };
    device.run(job).await
}

fn granted(status: StatusCode, (timestamp, is_there, lock): Standing) -> Response {
    let mut response = empty(status);
    for (name, value) in [
        (X_OBJECT_RETENTION, lock.stored_retention()),
        (X_OBJECT_LEGAL_HOLD, lock.stored_hold()),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    if let Some(timestamp) = timestamp {
        put_time(&mut response, X_BACKEND_TIMESTAMP, timestamp);
    }
    let is_there = HeaderValue::from_static(if is_there { "true" } else { "false" });
    response.headers_mut().insert(X_OBJECT_EXISTS, is_there);
    response
}
