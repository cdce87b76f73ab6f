//! DELETE: leave a tombstone, unless something newer is here.
//!
//! The expirer's DELETE (`X-If-Delete-At`) is stamped with the time at which the object was to expire. A version that was
//! written before that time, on servers that this one could not hear, must outlive it: so the tombstone left here is only just
//! newer than the version it deletes. OpenStack's has the time of the request, and takes such a version along.

use crate::expiry::{self, Change};
use crate::refusal::{Refusal, X_BACKEND_TIMESTAMP, empty, page, put_header};
use crate::request::Request;
use crate::service::Shared;
use crate::updates::{Noted, Operation, Row};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::rules::{FileName, Part};
use object_engine::{EngineError, ObjectEngine, ObjectKey, OpenOptions};
use peer::Response;
use std::sync::Arc;
use vocabulary::Timestamp;

const X_BACKEND_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-backend-content-type");

/// Answers a DELETE.
pub(crate) async fn delete(shared: &Arc<Shared>, request: Request) -> Result<Response, Refusal> {
    let deletion = Deletion::of(&request)?;
    let request = Arc::new(request);
    let (its, work) = (request.clone(), shared.clone());
    let job = move |engine: &dyn ObjectEngine| deletion.carry_out(engine, &its, &work);
    let ran = shared.devices.run(&request.device, request.lane, job).await;
    let (done, device) = ran.map_err(|trouble| Refusal::from_trouble(trouble, &request.device))?;
    let (done, noted) = done?;
    shared.updates.tell(noted, &device).await;
    Ok(done.into_response())
}

/// The file of a deletion.
fn tombstone(timestamp: Timestamp) -> FileName {
    let part = Part::Tombstone;
    FileName { timestamp, part }
}

/// What a DELETE asks for.
pub(crate) struct Deletion {
    asked_at: Timestamp,
    /// `X-If-Delete-At`: the expirer deletes only what still expires when it thinks.
    only_if: Option<HeaderValue>,
    opens_expired: bool,
}

/// What was there.
struct Before {
    /// Clients could see it.
    visible: bool,
    timestamp: Option<Timestamp>,
    /// The last of what was written there, a later POST too.
    last: Timestamp,
    delete_at: Option<i64>,
    content_type: Vec<u8>,
}

/// An outcome, a refusal, or a device in trouble.
type Decided = Result<Result<Done, Refusal>, EngineError>;

/// What became of a DELETE.
pub(crate) struct Done {
    pub(crate) status: StatusCode,
    /// The time of the tombstone that was left.
    left_at: Option<Timestamp>,
    newest: Timestamp,
    delete_at: Option<i64>,
    content_type: Vec<u8>,
}

impl Deletion {
    pub(crate) fn of(request: &Request) -> Result<Self, Refusal> {
        Ok(Self {
            asked_at: request.timestamp()?,
            only_if: request.headers.get("x-if-delete-at").cloned(),
            opens_expired: request.opens_expired(),
        })
    }

    /// Blocks.
    fn carry_out(
        &self,
        engine: &dyn ObjectEngine,
        request: &Request,
        shared: &Shared,
    ) -> Result<Result<(Done, Noted), Refusal>, EngineError> {
        let done = match self.decide(engine, &request.key)? {
            Ok(done) => done,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut noted = Noted::nothing();
        if let Some(at) = done.left_at {
            noted = Noted::take(engine, &request.key, tombstone(at), done.rows(shared, request));
            engine.delete(&request.key, at)?;
        }
        Ok(Ok((done, noted)))
    }

    /// Many at once; with what is to be told of those that came about. Blocks.
    pub(crate) fn carry_out_all(
        engine: &dyn ObjectEngine,
        deletions: &[(Self, Arc<Request>)],
        shared: &Shared,
    ) -> (Vec<Decided>, Noted) {
        let decide = |(deletion, request): &(Self, Arc<Request>)| deletion.decide(engine, &request.key);
        let mut outcomes: Vec<_> = deletions.iter().map(decide).collect();
        let (mut places, mut tombstones, mut changes) = (vec![], vec![], vec![]);
        for (place, (decided, (_, request))) in outcomes.iter().zip(deletions).enumerate() {
            if let Ok(Ok(done)) = decided
                && let Some(at) = done.left_at
            {
                places.push(place);
                tombstones.push((request.key.clone(), at));
                changes.push((&request.key, tombstone(at), done.rows(shared, request)));
            }
        }
        let mut noted = Noted::take_all(engine, changes);
        for (number, deleted) in engine.delete_all(&tombstones).into_iter().enumerate() {
            if let Err(error) = deleted {
                noted.pass_over(number);
                outcomes[places[number]] = Err(error);
            }
        }
        (outcomes, noted)
    }

    /// What is to become of it: the tombstone that the outcome speaks of is still to be left.
    fn decide(&self, engine: &dyn ObjectEngine, key: &ObjectKey) -> Decided {
        let before = self.look(engine, key)?;
        let confirmed = match self.check_condition(&before) {
            Ok(confirmed) => confirmed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let left_at = match before.timestamp.is_none_or(|old| old < self.asked_at) {
            true if confirmed => Some(before.last.just_after().min(self.asked_at)),
            true => Some(self.asked_at),
            false => None,
        };
        let status = match (before.visible || confirmed, left_at) {
            (true, Some(_)) => StatusCode::NO_CONTENT,
            (true, None) => StatusCode::CONFLICT,
            (false, _) => StatusCode::NOT_FOUND,
        };
        Ok(Ok(Done {
            status,
            left_at,
            newest: before.timestamp.unwrap_or_default().max(self.asked_at),
            delete_at: before.delete_at,
            content_type: before.content_type,
        }))
    }

    fn look(&self, engine: &dyn ObjectEngine, key: &ObjectKey) -> Result<Before, EngineError> {
        let found = match engine.open(key, OpenOptions::BEFORE_WRITE) {
            Ok(found) => found,
            Err(EngineError::NotFound { deleted_at }) => return Ok(Before::nothing(deleted_at)),
            Err(EngineError::Quarantined { .. }) => return Ok(Before::nothing(None)),
            Err(error) => return Err(error),
        };
        let visible = self.opens_expired || !expiry::has_expired(&found.metadata, self.asked_at);
        // A newer POST does not save the body: its metadata are for what was PUT.
        let timestamp = match visible {
            true => found.timestamps.data,
            false => found.timestamps.newest(),
        };
        Ok(Before {
            visible,
            timestamp: Some(timestamp),
            last: found.timestamps.newest(),
            delete_at: expiry::delete_at(&found.metadata),
            content_type: found.metadata.get("Content-Type").unwrap_or_default().to_vec(),
        })
    }

    /// Whether `X-If-Delete-At` is there and agrees.
    fn check_condition(&self, before: &Before) -> Result<bool, Refusal> {
        let Some(wanted) = &self.only_if else {
            return Ok(false);
        };
        let wanted = wanted.to_str().ok().and_then(|text| text.parse::<Timestamp>().ok());
        let wanted = wanted.ok_or(Refusal::Html(
            StatusCode::BAD_REQUEST,
            "Bad X-If-Delete-At header value",
        ))?;
        if before.timestamp.is_none() {
            return Err(Refusal::not_found(None));
        }
        if before.timestamp >= Some(self.asked_at) {
            return Err(Refusal::conflict(before.timestamp.unwrap_or_default()));
        }
        if before.due() != Some(wanted) {
            return Err(Refusal::Html(
                StatusCode::PRECONDITION_FAILED,
                "X-If-Delete-At and X-Delete-At do not match",
            ));
        }
        Ok(true)
    }
}

impl Before {
    /// When it expires.
    fn due(&self) -> Option<Timestamp> {
        u64::try_from(self.delete_at?).ok().map(Timestamp::from_seconds)
    }

    fn nothing(deleted_at: Option<Timestamp>) -> Self {
        Self {
            visible: false,
            timestamp: deleted_at,
            last: deleted_at.unwrap_or_default(),
            delete_at: None,
            content_type: Vec::new(),
        }
    }
}

impl Done {
    /// The rows that follow from it.
    fn rows(&self, shared: &Shared, request: &Request) -> Vec<Row> {
        let Some(timestamp) = self.left_at else {
            return vec![];
        };
        let row = Row::of_object(request, Operation::Delete, timestamp, HeaderMap::new());
        let change = Change {
            old: self.delete_at,
            new: None,
            size: 0,
            timestamp,
            content_type_timestamp: timestamp,
        };
        let mut rows = expiry::queue_rows(request, &shared.options, &change);
        rows.extend(row);
        rows
    }

    fn into_response(self) -> Response {
        let mut response = match self.status {
            StatusCode::NO_CONTENT => empty(self.status),
            status => page(status),
        };
        put_header(&mut response, X_BACKEND_TIMESTAMP, &self.newest.internal());
        if let Ok(value) = HeaderValue::from_bytes(&self.content_type) {
            response.headers_mut().insert(X_BACKEND_CONTENT_TYPE, value);
        }
        response
    }
}
