//! Objects made of parts: their parts are objects of their own (`bucket+segments`), locked as the whole is.
//!
//! Always holds: a lock comes to every part before it comes to the whole, so that a version which is held has no part
//! that is not; what is freed is freed as a whole first.

use super::super::Operation;
use super::lock_change;
use crate::error::{ACCESS_DENIED, INTERNAL_ERROR, S3Error};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use vocabulary::object_lock::{BucketLock, ObjectLock};
use vocabulary::{EntityPath, Timestamp};

const NOTED_RETENTION: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-noted-retention");
const NOTED_HOLD: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-noted-legal-hold");

/// An entry of the list of a static large object.
#[derive(serde::Deserialize)]
struct PartName {
    name: String,
}

/// Keeps with an upload that is begun what its object is to have; the upload itself is not locked.
pub(crate) fn note_lock(upload: &mut HeaderMap, lock: &ObjectLock) {
    for (name, value) in [
        (NOTED_RETENTION, lock.stored_retention()),
        (NOTED_HOLD, lock.stored_hold()),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            upload.insert(name, value);
        }
    }
}

/// What the object of an upload is to have: what was asked for when it was begun, or the bucket's default.
pub(crate) fn noted_lock(upload: &HeaderMap, bucket: &BucketLock, now: Timestamp) -> ObjectLock {
    let value = |name| upload.get(name).map(HeaderValue::as_bytes);
    let mut lock = ObjectLock::read(value(NOTED_RETENTION), value(NOTED_HOLD));
    if lock.retention.is_none()
        && let Some(default) = bucket.default
    {
        lock = lock.merged(ObjectLock::of_retention(Some(default.from(now)), now));
    }
    lock
}

/// Whether a version has parts.
pub(crate) fn is_made_of_parts(headers: &HeaderMap) -> bool {
    let is_large = headers.get("x-static-large-object");
    is_large.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

impl Operation<'_> {
    /// The parts of a version.
    pub(super) async fn part_names(&self, version: &str) -> Result<Vec<EntityPath>, S3Error> {
        let mut ask = self.further(Method::GET, self.container().with_object(self.key()));
        ask.query = "multipart-manifest=get".into();
        self.aim_at_version(&mut ask, Some(version));
        let response = self.send(ask).await;
        if !response.status().is_success() {
            return Err(self.refusal(&response).await);
        }
        let rows: Vec<PartName> = super::super::listing::rows_of(response).await?;
        let names = rows.iter().map(|row| {
            let (container, object) = row.name.strip_prefix('/')?.split_once('/')?;
            Some(self.account().with_container(container).with_object(object))
        });
        names.collect::<Option<_>>().ok_or_else(|| INTERNAL_ERROR.into())
    }

    /// Changes what keeps parts.
    pub(crate) async fn lock_parts(
        &self,
        parts: &[EntityPath],
        lock: &ObjectLock,
        bypasses: bool,
    ) -> Result<(), S3Error> {
        let concurrency = self.service.settings.multi_delete_concurrency.0;
        let statuses: Vec<u16> = futures_util::stream::iter(parts.to_vec())
            .map(|part| async move {
                let mut post = self.further(Method::POST, part);
                lock_change(&mut post, lock, bypasses);
                self.send(post).await.status().as_u16()
            })
            .buffer_unordered(concurrency)
            .collect()
            .await;
        match statuses.into_iter().find(|status| !matches!(status, 200..=299)) {
            None => Ok(()),
            Some(401 | 403) => Err(ACCESS_DENIED.saying("The retention of a part cannot be weakened.")),
            Some(status) => Err(super::super::refusal_of_status(
                if status == 404 { 500 } else { status },
                self.service.settings.ratelimit_as_client_error,
            )),
        }
    }
}
