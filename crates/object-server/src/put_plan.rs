//! [`PutPlan`]: what a PUT asks for, whether it may happen, and what becomes of it on the device.
//!
//! Always holds: what decides without the body (lengths, names, expiry, metadata) is checked when the plan is made,
//! before a device is asked.

use crate::devices::ObjectDevice;
use crate::expiry;
use crate::incoming::too_large;
use crate::kept;
use crate::object_lock;
use crate::refusal::refusal_of;
use crate::request::{ObjectRequest, PutHead, text};
use crate::state::ObjectServerState;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use object_engine::{Commit, EngineError, FoundObject, ObjectKey, ObjectMetadata, OpenOptions};
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::conditional::bare_etag;
use vocabulary::limits::LimitError;
use vocabulary::object_lock::bucket_of;
use vocabulary::{Conditions, Outcome, Timestamp};
use world::Clock;

/// What is to be written, as far as the request's head says.
pub(crate) struct PutPlan {
    pub(crate) timestamp: Timestamp,
    pub(crate) content_type: HeaderValue,
    conditions: Conditions,
    /// The checksum the sender expects.
    pub(crate) etag: Option<String>,
    /// The write lock without which it must not be written.
    pub(crate) write_lock: Option<HeaderValue>,
    /// Headers that stay.
    pub(crate) kept: ObjectMetadata,
    /// Another node's upkeep brings it.
    is_replication: bool,
    clock: Arc<dyn Clock>,
}

/// What was there before.
pub(crate) struct PriorObject {
    pub(crate) delete_at: Option<i64>,
    /// Whether there was an object.
    pub(crate) is_there: bool,
}

impl PutPlan {
    /// Checks the head of a PUT, in OpenStack's order; `length` is that of the body, when it is known.
    pub(crate) fn of(
        request: &mut ObjectRequest,
        head: &PutHead,
        length: Option<u64>,
        state: &ObjectServerState,
    ) -> Result<Self, Refusal> {
        let (timestamp, options) = (request.timestamp()?, &state.options);
        if length.is_some_and(|length| length > options.limits.max_file_size) {
            return Err(too_large());
        }
        if let Err(error @ LimitError::TooLong { what: "Object", .. }) =
            options.limits.check_names(&request.target.path)
        {
            return Err(Refusal::bad_request(error.to_string()));
        }
        let content_type = request.headers.get(CONTENT_TYPE);
        let content_type = content_type.filter(|value| text(value).is_some_and(|text| !text.is_empty()));
        let content_type = content_type.cloned();
        let content_type = content_type.ok_or_else(|| Refusal::bad_request("Invalid Content-Type"))?;
        expiry::resolve_delete_at(request, timestamp)?;
        kept::check_limits(&request.headers, &options.limits)?;
        let mut kept = ObjectMetadata::new();
        kept::keep_for_put(
            &mut kept,
            &request.headers,
            head.replication_headers.as_ref(),
            &options.allowed_headers,
        );
        if !request.is_replication {
            object_lock::check_expiry(&kept)?;
        }
        Ok(Self {
            is_replication: request.is_replication,
            clock: state.world.clock.clone(),
            timestamp,
            content_type,
            conditions: Conditions::new(None, head.if_none_match.as_ref().and_then(text), None, None),
            etag: head.etag.as_ref().and_then(text).map(|etag| bare_etag(etag).to_owned()),
            write_lock: head.write_lock.clone(),
            kept,
        })
    }

    /// Whether the write may happen. Blocks.
    pub(crate) fn look(&self, device: &ObjectDevice, key: &ObjectKey) -> Result<PriorObject, Refusal> {
        self.judge(device.engine().open(key, OpenOptions::BEFORE_WRITE), device)
    }

    /// Whether the write may happen in view of what was found.
    pub(crate) fn judge(
        &self,
        found: Result<FoundObject, EngineError>,
        device: &ObjectDevice,
    ) -> Result<PriorObject, Refusal> {
        let nothing = PriorObject {
            delete_at: None,
            is_there: false,
        };
        let found = match found {
            Ok(found) => found,
            Err(EngineError::NotFound { deleted_at }) => {
                return match deleted_at.filter(|deleted| *deleted >= self.timestamp) {
                    None => Ok(nothing),
                    newer => Err(Refusal::conflict(newer)),
                };
            }
            Err(EngineError::Quarantined { .. }) => return Ok(nothing),
            Err(error) => return Err(refusal_of(&error, device)),
        };
        let expired = expiry::has_expired(&found.metadata, self.timestamp);
        let etag = found.metadata.text("ETag").unwrap_or_default();
        let unwanted = || self.conditions.check_read(&[etag], found.timestamps.data) != Outcome::Proceed;
        if !expired && unwanted() {
            return Err(Refusal::Page(StatusCode::PRECONDITION_FAILED));
        }
        if found.timestamps.data >= self.timestamp {
            return Err(Refusal::conflict(Some(found.timestamps.data)));
        }
        object_lock::check_removal(&found, self.clock.now(), self.is_replication, false)?;
        let delete_at = expiry::delete_at(&found.metadata).filter(|_| !expired);
        Ok(PriorObject {
            delete_at,
            is_there: true,
        })
    }

    /// Looks again before a body that took its time is published, where a lock may have come meanwhile: over an object,
    /// or in a container that keeps versions or parts. Blocks.
    pub(crate) fn look_again(
        &self,
        device: &ObjectDevice,
        request: &ObjectRequest,
        prior: &PriorObject,
    ) -> Result<(), Refusal> {
        let container = request.target.path.container.as_deref().unwrap_or_default();
        if !prior.is_there && bucket_of(container) == container {
            return Ok(());
        }
        match device.engine().open(&request.key, OpenOptions::BEFORE_WRITE) {
            Ok(found) if found.timestamps.data < self.timestamp => {
                object_lock::check_removal(&found, self.clock.now(), self.is_replication, false)
            }
            // What else there is decides when the body is published.
            _ => Ok(()),
        }
    }

    /// What to commit, once the bytes' checksum and number are known.
    pub(crate) fn commit(&self, etag: &str, size: u64) -> Result<Commit, Refusal> {
        if self.etag.as_deref().is_some_and(|expected| expected != etag) {
            return Err(Refusal::Page(StatusCode::UNPROCESSABLE_ENTITY));
        }
        let mut metadata = ObjectMetadata::with_capacity(4 + self.kept.len())
            .with("X-Timestamp", self.timestamp.internal())
            .with("Content-Type", self.content_type.as_bytes())
            .with("Content-Length", size.to_string())
            .with("ETag", etag);
        self.kept.iter().for_each(|(name, value)| metadata.set(name, value));
        Ok(Commit {
            timestamp: self.timestamp,
            metadata,
        })
    }
}
