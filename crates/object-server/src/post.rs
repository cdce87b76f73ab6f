//! POST: replace what a client says about an object, leaving its bytes alone.

use crate::devices::ObjectDevice;
use crate::expiry::{self, ExpiryChange};
use crate::kept;
use crate::object_lock;
use crate::refusal::refused_by;
use crate::request::{ObjectRequest, PostHead};
use crate::state::ObjectServerState;
use crate::updates::{ListingRow, RecordedRows};
use http::{HeaderName, HeaderValue, StatusCode};
use object_engine::{EngineError, FoundObject, MetadataUpdate, ObjectMetadata, OpenOptions};
use peer::Response;
use peer::message::RowChange;
use peer::message::header_names::{X_BACKEND_CONTENT_TYPE, X_BACKEND_TIMESTAMP, X_OBJECT_TAGS};
use std::sync::Arc;
use storage_shell::{Refusal, page, put_time};
use vocabulary::Timestamp;
use vocabulary::header_name::title;
use vocabulary::metadata::Entity;

/// Answers a POST.
pub(crate) async fn post(
    state: &Arc<ObjectServerState>,
    (request, head): (ObjectRequest, PostHead),
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    expiry::check_posted_delete_at(&request, timestamp)?;
    kept::check_limits(&request.headers, &state.options.limits)?;
    let change = PostChange::of(&request, &head, timestamp, &state.options.allowed_headers)?;
    let device = state.devices.device(&request.target.device, request.lane).await?;
    let work = state.clone();
    let job = move |device: &ObjectDevice| change.carry_out(device, &request, &work);
    let (done, rows) = device.run(job).await?;
    state.updates.send(rows, &device).await?;
    done.map(PostOutcome::into_response)
}

struct PostChange {
    timestamp: Timestamp,
    opens_expired: bool,
    /// `X-Timestamp` and what stays of the headers.
    metadata: ObjectMetadata,
    /// With the time it was set, which is earlier than the POST when that is made up for here.
    content_type: Option<(Vec<u8>, Timestamp)>,
}

struct PostOutcome {
    /// What its answer says is newer: the posted metadata stay out, and its content type alone is taken.
    newer: Option<Timestamp>,
    timestamp: Timestamp,
    found: FoundObject,
    posted: ObjectMetadata,
    content_type: Vec<u8>,
    content_type_timestamp: Timestamp,
}

impl PostChange {
    fn of(request: &ObjectRequest, head: &PostHead, timestamp: Timestamp, allowed: &[String]) -> Result<Self, Refusal> {
        let mut metadata = ObjectMetadata::new().with("X-Timestamp", timestamp.internal());
        kept::keep_for_post(
            &mut metadata,
            &request.headers,
            head.replication_headers.as_ref(),
            allowed,
        );
        let content_type = request.headers.get(http::header::CONTENT_TYPE);
        let malformed = |_: &_| Refusal::bad_request("Invalid Content-Type-Timestamp header");
        let set_at = head.content_type_timestamp.optional(malformed)?.copied();
        let set_at = set_at.unwrap_or(timestamp);
        let content_type = content_type.map(|value| value.as_bytes().to_vec());
        Ok(Self {
            timestamp,
            opens_expired: request.opens_expired(),
            metadata,
            content_type: content_type
                .filter(|value| !value.is_empty())
                .map(|value| (value, set_at)),
        })
    }

    /// Blocks.
    fn carry_out(
        self,
        device: &ObjectDevice,
        request: &ObjectRequest,
        state: &ObjectServerState,
    ) -> Result<(Result<PostOutcome, Refusal>, RecordedRows), Refusal> {
        let (engine, key) = (device.engine(), &request.key);
        let found = match engine.open(key, OpenOptions::BEFORE_WRITE) {
            // The answer to a POST does not say when the object was deleted.
            Err(EngineError::NotFound { .. }) => return Err(Refusal::not_found(None)),
            found => found.map_err(refused_by(device))?,
        };
        if !self.opens_expired && expiry::has_expired(&found.metadata, self.timestamp) {
            return Err(Refusal::not_found(None));
        }
        let newest = found.timestamps.newest();
        let newer_type = self
            .content_type
            .filter(|(_, set_at)| *set_at > found.timestamps.content_type);
        if newest >= self.timestamp && newer_type.is_none() {
            return Err(Refusal::conflict(Some(newest)));
        }
        let (content_type, content_type_timestamp) = newer_type.unwrap_or_else(|| {
            let current = found.metadata.get("Content-Type").unwrap_or_default();
            (current.to_vec(), found.timestamps.content_type)
        });
        // An older POST may still bring a newer content type; the rest of it is superseded.
        let (timestamp, mut metadata) = match newest >= self.timestamp {
            true => (newest, posted(&found)),
            false => (self.timestamp, self.metadata.clone()),
        };
        if !request.is_replication {
            keep_tags(&mut metadata, &found.metadata);
        }
        object_lock::keep_lock(&mut metadata, &found, request, state.world.clock.now())?;
        // Held until the change is published.
        let _lock = state.write_locks.publish(
            &*state.world.clock,
            (&request.target.device, &request.target.path),
            key,
            request.write_lock.as_ref(),
        )?;
        // The PUT's own content type stays in the body's metadata; only a later one is written again.
        let set_since = content_type_timestamp > found.timestamps.data;
        if set_since {
            metadata.set("Content-Type", content_type.clone());
        }
        let update = MetadataUpdate {
            timestamp,
            metadata,
            content_type_timestamp: set_since.then_some(content_type_timestamp),
        };
        let done = PostOutcome {
            newer: (newest > self.timestamp).then_some(newest),
            timestamp,
            found,
            posted: self.metadata,
            content_type,
            content_type_timestamp,
        };
        let change = (key, update.file(), done.rows(request, state));
        let rows = RecordedRows::record(&**engine, [change]);
        engine.write_metadata(key, update).map_err(refused_by(device))?;
        Ok((request.link(device).map(|()| done), rows))
    }
}

/// S3's tags stay through a POST that does not name them: Swift's clients know nothing of them.
fn keep_tags(posted: &mut ObjectMetadata, found: &ObjectMetadata) {
    let name = title(X_OBJECT_TAGS.as_str());
    if posted.get(&name).is_none()
        && let Some(tags) = found.get(&name).map(<[u8]>::to_vec)
    {
        posted.set(name, tags);
    }
}

/// What the newest POST said, its content type aside.
fn posted(found: &FoundObject) -> ObjectMetadata {
    let mut metadata = ObjectMetadata::new().with("X-Timestamp", found.timestamps.newest().internal());
    for (name, value) in found.posted() {
        metadata.set(name, value);
    }
    metadata
}

impl PostOutcome {
    fn rows(&self, request: &ObjectRequest, state: &ObjectServerState) -> Vec<ListingRow> {
        let change = ExpiryChange {
            old: expiry::delete_at(&self.found.metadata),
            new: Some(&self.posted),
            size: self.found.size,
            timestamp: self.timestamp,
            content_type_timestamp: self.content_type_timestamp,
        };
        let mut rows = expiry::queue_rows(request, &state.options, &change);
        let row = ListingRow::of_object(request, RowChange::Put, self.timestamp);
        rows.extend(row.map(|mut row| {
            let value = |bytes: &[u8]| HeaderValue::from_bytes(bytes).ok();
            // The row is the PUT's still, brought up to date.
            row.update.timestamp = self.found.timestamps.data.into();
            row.update.size = self.found.size.into();
            row.update.etag = self.found.metadata.get("ETag").and_then(value);
            row.update.content_type = value(&self.content_type);
            row.update.content_type_timestamp = self.content_type_timestamp.into();
            row.update.meta_timestamp = self.timestamp.into();
            row.with_overrides([], &self.found.data_metadata)
        }));
        rows
    }

    fn into_response(self) -> Response {
        let mut response = page(StatusCode::ACCEPTED);
        if let Some(newer) = self.newer {
            put_time(&mut response, X_BACKEND_TIMESTAMP, newer);
        }
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_bytes(&self.content_type) {
            headers.insert(X_BACKEND_CONTENT_TYPE, value);
        }
        for (name, value) in self.found.data_metadata.iter() {
            if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
                && Entity::Object.is_system_meta(name.as_str())
                && let Ok(value) = HeaderValue::from_bytes(value)
            {
                headers.insert(name, value);
            }
        }
        response
    }
}
