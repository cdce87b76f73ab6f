//! DELETE: leave a tombstone, unless something newer is here.
//!
//! The expirer's DELETE (`X-If-Delete-At`) is stamped with the time at which the object was to expire. A version that
//! was written before that time, on servers that this one could not reach, must outlive it: so the tombstone left here
//! is only just newer than the version it deletes. OpenStack's has the time of the request, and deletes such a version.
//! An expirer whose clock is fast asks for what has not expired yet. By this server's clock that is too early (425), of
//! which an expirer of either make knows only that it has to try again; OpenStack's servers look at no clock.
//!
//! Two gateways may give a PUT and a DELETE of one object the same time. Whichever comes second is refused, as by
//! OpenStack's servers, and sent again with a later time. Where that does not happen the deletion wins, as it does in a
//! hash directory: a replicator's DELETE takes a body of its own time too, or else replicas would stay unlike.

use crate::devices::ObjectDevice;
use crate::expiry::{self, ExpiryChange};
use crate::object_lock;
use crate::refusal::refusal_of;
use crate::request::ObjectRequest;
use crate::state::ObjectServerState;
use crate::updates::{ListingRow, RecordedRows};
use crate::write_locks::Publishing;
use http::{HeaderValue, StatusCode};
use object_engine::rules::{FileName, FilePart};
use object_engine::{EngineError, ObjectKey, OpenOptions};
use peer::Response;
use peer::deletes::CheckedDelete;
use peer::message::header_names::{X_BACKEND_CONTENT_TYPE, X_BACKEND_TIMESTAMP};
use peer::message::{HeaderField, RowChange};
use std::sync::Arc;
use storage_shell::{Lane, Refusal, empty, page, put_time};
use vocabulary::Timestamp;

/// An expirer's clock may be ahead of this server's by so many seconds.
const EXPIRER_AHEAD: u64 = 5;

/// Answers a DELETE.
pub(crate) async fn delete(state: &Arc<ObjectServerState>, deletion: Deletion) -> Result<Response, Refusal> {
    let (device, lane) = (deletion.request.target.device.clone(), deletion.request.lane);
    let outcomes = delete_batch(state, &device, lane, vec![deletion]).await?;
    let outcome = outcomes.into_iter().next().unwrap_or_else(|| Err(Refusal::internal()));
    outcome.map(DeleteOutcome::into_response)
}

/// Carries out deletions on one device together, and sends their listing rows. What became of each, in their order.
pub(crate) async fn delete_batch(
    state: &Arc<ObjectServerState>,
    device: &str,
    lane: Lane,
    deletions: Vec<Deletion>,
) -> Result<Vec<Result<DeleteOutcome, Refusal>>, Refusal> {
    let (device, work) = (state.devices.device(device, lane).await?, state.clone());
    let job = move |device: &ObjectDevice| Ok::<_, Refusal>(carry_out(device, &deletions, &work));
    let (outcomes, rows) = device.run(job).await?;
    state.updates.send(rows, &device).await?;
    Ok(outcomes)
}

/// What deletions on one device would come to, in their order; nothing is changed.
pub(crate) async fn check_batch(
    state: &Arc<ObjectServerState>,
    device: &str,
    lane: Lane,
    deletions: Vec<Deletion>,
) -> Result<Vec<CheckedDelete>, Refusal> {
    let (device, work) = (state.devices.device(device, lane).await?, state.clone());
    let check = move |device: &ObjectDevice, deletion: &Deletion| match deletion.decide(device, &work) {
        Ok(outcome) => CheckedDelete {
            status: outcome.status.as_u16(),
            tombstone: outcome.left_at,
        },
        Err(refusal) => CheckedDelete {
            status: refusal.status().as_u16(),
            tombstone: None,
        },
    };
    let job = move |device: &ObjectDevice| {
        let checked = deletions.iter().map(|deletion| check(device, deletion));
        Ok::<_, Refusal>(checked.collect())
    };
    device.run(job).await
}

/// Blocks.
fn carry_out(
    device: &ObjectDevice,
    deletions: &[Deletion],
    state: &ObjectServerState,
) -> (Vec<Result<DeleteOutcome, Refusal>>, RecordedRows) {
    let decide = |deletion: &Deletion| deletion.decide(device, state);
    let mut outcomes: Vec<_> = deletions.iter().map(decide).collect();
    let mut locks = vec![];
    for (outcome, deletion) in outcomes.iter_mut().zip(deletions) {
        if outcome.is_ok() {
            match deletion.publish(state) {
                Ok(lock) => locks.extend(lock),
                Err(refusal) => *outcome = Err(refusal),
            }
        }
    }
    let (mut numbers, mut tombstones, mut changes) = (vec![], vec![], vec![]);
    for (number, (decided, deletion)) in outcomes.iter().zip(deletions).enumerate() {
        if let Ok(outcome) = decided
            && let Some(at) = outcome.left_at
        {
            let request = &deletion.request;
            numbers.push(number);
            tombstones.push((request.key.clone(), at));
            changes.push((&request.key, tombstone(at), outcome.rows(state, request)));
        }
    }
    let engine = device.engine();
    let mut rows = RecordedRows::record(&**engine, changes);
    let deleted = engine.delete_all(tombstones);
    drop(locks);
    for (change, deleted) in deleted.into_iter().enumerate() {
        let number = numbers[change];
        if let Err(error) = deleted {
            rows.drop_change(change);
            outcomes[number] = Err(refusal_of(&error, device));
        } else if let Err(refusal) = deletions[number].request.link(device) {
            // The tombstone is there, and so are its rows.
            outcomes[number] = Err(refusal);
        }
    }
    (outcomes, rows)
}

/// The file of a deletion.
fn tombstone(timestamp: Timestamp) -> FileName {
    let part = FilePart::Tombstone;
    FileName { timestamp, part }
}

/// What a DELETE asks for.
pub(crate) struct Deletion {
    request: ObjectRequest,
    asked_at: Timestamp,
    /// `X-If-Delete-At`: the expirer deletes only what still expires when it thinks.
    only_if: HeaderField<Timestamp>,
    opens_expired: bool,
}

/// What was there.
struct ObjectBefore {
    /// It has a body, which may have expired.
    exists: bool,
    /// Clients could see it.
    visible: bool,
    timestamp: Option<Timestamp>,
    /// The last of what was written there, a later POST too.
    last: Timestamp,
    delete_at: Option<i64>,
    content_type: Vec<u8>,
}

/// What became of a DELETE.
pub(crate) struct DeleteOutcome {
    pub(crate) status: StatusCode,
    /// The time of the tombstone that was left.
    left_at: Option<Timestamp>,
    newest: Timestamp,
    delete_at: Option<i64>,
    content_type: Vec<u8>,
}

impl Deletion {
    pub(crate) fn of((request, only_if): (ObjectRequest, HeaderField<Timestamp>)) -> Result<Self, Refusal> {
        Ok(Self {
            asked_at: request.timestamp()?,
            only_if,
            opens_expired: request.opens_expired(),
            request,
        })
    }

    /// What the write lock that it names, if any, allows.
    fn publish(&self, state: &ObjectServerState) -> Result<Option<Publishing>, Refusal> {
        let request = &self.request;
        state.write_locks.publish(
            &*state.world.clock,
            (&request.target.device, &request.target.path),
            &request.key,
            request.write_lock.as_ref(),
        )
    }

    /// What is to become of it: the tombstone that the outcome speaks of is still to be left.
    fn decide(&self, device: &ObjectDevice, state: &ObjectServerState) -> Result<DeleteOutcome, Refusal> {
        let now = state.world.clock.now();
        let before = self.look(device, &self.request.key, now)?;
        self.check_time(now)?;
        let confirmed = self.check_condition(&before)?;
        let left_at = match self.wins_over(&before) {
            true if confirmed => Some(before.last.just_after().min(self.asked_at)),
            true => Some(self.asked_at),
            false => None,
        };
        let status = match (before.visible || confirmed, left_at) {
            (true, Some(_)) => StatusCode::NO_CONTENT,
            (true, None) => StatusCode::CONFLICT,
            (false, _) => StatusCode::NOT_FOUND,
        };
        Ok(DeleteOutcome {
            status,
            left_at,
            newest: before.timestamp.unwrap_or_default().max(self.asked_at),
            delete_at: before.delete_at,
            content_type: before.content_type,
        })
    }

    /// Whether nothing here is newer.
    fn wins_over(&self, before: &ObjectBefore) -> bool {
        let wins_tie = self.request.is_replication && before.exists;
        before
            .timestamp
            .is_none_or(|old| old < self.asked_at || (wins_tie && old == self.asked_at))
    }

    fn look(&self, device: &ObjectDevice, key: &ObjectKey, now: Timestamp) -> Result<ObjectBefore, Refusal> {
        let found = match device.engine().open(key, OpenOptions::BEFORE_WRITE) {
            Ok(found) => found,
            Err(EngineError::NotFound { deleted_at }) => return Ok(ObjectBefore::nothing(deleted_at)),
            Err(EngineError::Quarantined { .. }) => return Ok(ObjectBefore::nothing(None)),
            Err(error) => return Err(refusal_of(&error, device)),
        };
        if found.timestamps.data <= self.asked_at {
            let request = &self.request;
            object_lock::check_removal(&found, now, request.is_replication, request.bypasses_governance)?;
        }
        let visible = self.opens_expired || !expiry::has_expired(&found.metadata, self.asked_at);
        // A newer POST does not save the body: its metadata are for what was PUT.
        let timestamp = match visible {
            true => found.timestamps.data,
            false => found.timestamps.newest(),
        };
        Ok(ObjectBefore {
            exists: true,
            visible,
            timestamp: Some(timestamp),
            last: found.timestamps.newest(),
            delete_at: expiry::delete_at(&found.metadata),
            content_type: found.metadata.get("Content-Type").unwrap_or_default().to_vec(),
        })
    }

    /// Refuses what is to expire only later.
    fn check_time(&self, now: Timestamp) -> Result<(), Refusal> {
        let latest = Timestamp::from_seconds(now.seconds().saturating_add(EXPIRER_AHEAD));
        match self.only_if.value().is_some_and(|due| *due > latest) {
            true => Err(Refusal::Html(
                StatusCode::TOO_EARLY,
                "X-If-Delete-At is ahead of this server's clock".into(),
            )),
            false => Ok(()),
        }
    }

    /// Whether `X-If-Delete-At` is there and agrees.
    fn check_condition(&self, before: &ObjectBefore) -> Result<bool, Refusal> {
        let malformed = |_: &_| Refusal::labelled_bad_request("Bad X-If-Delete-At header value");
        let Some(wanted) = self.only_if.optional(malformed)? else {
            return Ok(false);
        };
        if before.timestamp.is_none() {
            return Err(Refusal::not_found(None));
        }
        if before.timestamp >= Some(self.asked_at) {
            return Err(Refusal::conflict(before.timestamp));
        }
        if before.due() != Some(*wanted) {
            return Err(Refusal::Html(
                StatusCode::PRECONDITION_FAILED,
                "X-If-Delete-At and X-Delete-At do not match".into(),
            ));
        }
        Ok(true)
    }
}

impl ObjectBefore {
    /// When it expires.
    fn due(&self) -> Option<Timestamp> {
        u64::try_from(self.delete_at?).ok().map(Timestamp::from_seconds)
    }

    fn nothing(deleted_at: Option<Timestamp>) -> Self {
        Self {
            exists: false,
            visible: false,
            timestamp: deleted_at,
            last: deleted_at.unwrap_or_default(),
            delete_at: None,
            content_type: Vec::new(),
        }
    }
}

impl DeleteOutcome {
    /// The rows that follow from it.
    fn rows(&self, state: &ObjectServerState, request: &ObjectRequest) -> Vec<ListingRow> {
        let Some(timestamp) = self.left_at else {
            return vec![];
        };
        let row = ListingRow::of_object(request, RowChange::Delete, timestamp);
        let change = ExpiryChange {
            old: self.delete_at,
            new: None,
            size: 0,
            timestamp,
            content_type_timestamp: timestamp,
        };
        let mut rows = expiry::queue_rows(request, &state.options, &change);
        rows.extend(row);
        rows
    }

    fn into_response(self) -> Response {
        let mut response = match self.status {
            StatusCode::NO_CONTENT => empty(self.status),
            status => page(status),
        };
        put_time(&mut response, X_BACKEND_TIMESTAMP, self.newest);
        if let Ok(value) = HeaderValue::from_bytes(&self.content_type) {
            response.headers_mut().insert(X_BACKEND_CONTENT_TYPE, value);
        }
        response
    }
}
