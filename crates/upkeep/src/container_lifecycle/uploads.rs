//! Uploads that were never completed, and the parts of what was.
//!
//! ```text
//! bucket+segments/KEY/UPLOAD         the marker of an open upload
//! bucket+segments/KEY/UPLOAD/NUMBER  a part
//! ```
//! An upload is ended under the key's write lock, which completions take, too: its parts go, then its marker, so that
//! after a crash the upload is found again. Of one that has become an object (`standing.rs`) those parts go that the
//! object does not name, where it says which are its own.
//! A step takes a lock of its own, and deletes a page of parts or looks at a page of versions. The next one looks at
//! everything anew, but for what does not change.
//! Always holds: parts of an object that was made by the upload stay, whatever its marker says; no part goes when the
//! lock may have been lost; what is no marker of an upload stays.
//! Source: what OpenStack's s3api stores, as `crates/s3/src/operations/multipart/` keeps it.

use super::LifecycleFigures;
use super::remover::{Attended, DueUpload, HeldKeyLock, KeyLockRefusal, Remover, RuledBucket, ServerFault, look};
use super::rows::{BucketRow, PageMarker};
use super::standing::{KeyStanding, KnownVersions, may_have_made_since};
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use futures_util::StreamExt;
use futures_util::stream;
use http::{HeaderName, Method};
use peer::message::header_names::X_UPLOAD_REOPENED;
use std::collections::VecDeque;
use vocabulary::{EntityPath, PartNumbers};

/// Behind a bucket's name: the container of its parts.
const SEGMENTS: &str = "+segments";
/// Whether the client of an upload named a content type: of uploads alone.
const HAS_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-has-content-type");
/// In a gateway's answer about a container that keeps versions, or did.
const VERSIONS_ENABLED: HeaderName = HeaderName::from_static("x-versions-enabled");
/// Parts that an object may name: those that S3 has.
const MOST_PARTS: usize = 10_000;
/// Steps of an upload in a pass: its client may send parts, or make versions, as fast as they are seen to.
const MOST_STEPS: u32 = 100;

impl RuledBucket {
    /// The upload whose marker this row is, if it is due.
    pub(super) fn due_upload(&self, row: &BucketRow) -> Option<DueUpload> {
        let upload = DueUpload::of_name(row.name())?;
        let is_due = (self.rules).is_upload_due(&upload.key, row.changed()?, self.now, self.day);
        is_due.then_some(upload)
    }
}

/// What came of ending an upload.
enum Ended {
    Done,
    /// It became an object.
    Completed,
    /// It is none.
    NoUpload,
    /// It could not be kept from being completed.
    NotAlone,
    /// There is more to do.
    Partly,
}

/// Uploads of a page that are due, and how far the first of them has got.
#[derive(Default)]
pub(super) struct UploadsToEnd {
    due: VecDeque<DueUpload>,
    /// Steps that the first one has taken.
    steps: u32,
    /// The versions of the key of the first one, and perhaps of the next.
    versions: KnownVersions,
}

impl UploadsToEnd {
    /// These come next.
    pub(super) fn extend(&mut self, uploads: impl Iterator<Item = DueUpload>) {
        self.due.extend(uploads);
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

/// What came of removing parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartsRemoval {
    /// All that were to go have gone.
    Done,
    /// Some have.
    Partly,
    /// The lock may have been lost.
    NotAlone,
}

impl Remover {
    /// The container of a bucket's parts.
    pub(super) fn parts_of(&self, bucket: &EntityPath) -> EntityPath {
        let name = bucket.container.as_deref().unwrap_or_default();
        EntityPath::account(bucket.account.as_str()).with_container(format!("{name}{SEGMENTS}"))
    }

    fn marker_of(&self, bucket: &EntityPath, upload: &DueUpload) -> EntityPath {
        self.parts_of(bucket)
            .with_object(format!("{}/{}", upload.key, upload.id))
    }

    /// Goes on with the first upload.
    pub(super) async fn end_next(&self, bucket: &RuledBucket, uploads: &mut UploadsToEnd) -> Attended {
        let (mut figures, mut fault) = (LifecycleFigures::default(), None);
        let Some(upload) = uploads.due.front() else {
            return Attended { figures, fault };
        };
        let key = upload.key.clone();
        let fail = |why: &str| {
            let what = self.marker_of(&bucket.path, upload).path();
            self.failures.note_item(what, why);
            1
        };
        uploads.steps += 1;
        match self.end(bucket, upload, &mut uploads.versions).await {
            Ok(Ended::Partly) if uploads.steps < MOST_STEPS => return Attended { figures, fault },
            Ok(Ended::Partly) => figures.failed = fail("it has more parts and versions than a pass sees to"),
            Ok(Ended::Done) => figures.uploads = 1,
            Ok(Ended::Completed) => figures.changed = 1,
            Ok(Ended::NoUpload) => {}
            Ok(Ended::NotAlone) => {
                figures.failed = fail("its key is locked by other requests, or too few servers answer");
                fault = Some(ServerFault::Key(key));
            }
            Err(error) => {
                figures.failed = fail(&error.answer());
                fault = ServerFault::of(&error, key);
            }
        }
        uploads.due.pop_front();
        uploads.steps = 0;
        Attended { figures, fault }
    }

    async fn end(
        &self,
        bucket: &RuledBucket,
        upload: &DueUpload,
        versions: &mut KnownVersions,
    ) -> Result<Ended, UnexpectedStatus> {
        let key = bucket.path.with_object(upload.key.as_str());
        let lock = match self.locks.take(key, bucket.policy).await {
            Ok(lock) => Some(lock),
            Err(KeyLockRefusal::Unknown) => None,
            Err(KeyLockRefusal::Held) => return Ok(Ended::NotAlone),
        };
        let lock = lock.as_deref();
        let head = look(self.marker_of(&bucket.path, upload), String::new());
        let marker = self.client.ask(&head, &[2, 404]).await?;
        if !marker.status().is_success() {
            return Ok(Ended::Completed);
        }
        // An object of a client, which has the same container to itself.
        if !marker.headers().contains_key(HAS_CONTENT_TYPE) {
            return Ok(Ended::NoUpload);
        }
        let parts = self.part_rows(&bucket.path, upload).await?;
        let since = may_have_made_since(marker.headers(), &parts);
        match self.standing(bucket, upload, since, versions, lock).await? {
            KeyStanding::MadeByIt(numbers) => {
                let removal = match &numbers {
                    Some(numbers) => self.remove_others(bucket, upload, numbers, lock).await?,
                    None => PartsRemoval::Done,
                };
                return match removal {
                    PartsRemoval::Done => {
                        self.close(&bucket.path, upload).await?;
                        Ok(Ended::Completed)
                    }
                    PartsRemoval::Partly => Ok(Ended::Partly),
                    PartsRemoval::NotAlone => Ok(Ended::NotAlone),
                };
            }
            KeyStanding::Unknown => return Ok(Ended::Partly),
            KeyStanding::NotAlone => return Ok(Ended::NotAlone),
            KeyStanding::Nothing if lock.is_some_and(HeldKeyLock::is_there) => return Ok(Ended::NotAlone),
            KeyStanding::Nothing | KeyStanding::MadeOtherwise => {}
        }
        if let Some(lock) = lock
            && !lock.keep().await
        {
            return Ok(Ended::NotAlone);
        }
        if self.delete_rows(&bucket.path, &parts).await? && parts.len() >= self.page {
            return Ok(Ended::Partly);
        }
        self.close(&bucket.path, upload).await?;
        // A part may have come beside the marker's deletion; one that comes later its gateway deletes.
        self.remove_parts(&bucket.path, upload, None).await?;
        Ok(Ended::Done)
    }

    /// Ends an upload, open again, whose object is gone. What cannot be ended now stays an open upload.
    pub(super) async fn end_gone(&self, bucket: &RuledBucket, upload: &DueUpload) -> Result<(), UnexpectedStatus> {
        if !bucket.keeps_versions() && self.has_versions_now(bucket).await? {
            // Since this pass began with it: the object may be one of them.
            return Ok(());
        }
        let mut versions = KnownVersions::default();
        for _ in 0..MOST_STEPS {
            if !matches!(self.end(bucket, upload, &mut versions).await?, Ended::Partly) {
                break;
            }
        }
        Ok(())
    }

    async fn has_versions_now(&self, bucket: &RuledBucket) -> Result<bool, UnexpectedStatus> {
        let head = InternalRequest::new(Method::HEAD, bucket.path.clone());
        let container = self.client.ask(&head, &[2]).await?;
        Ok(container.headers().contains_key(VERSIONS_ENABLED))
    }

    /// Leaves the marker of an open upload.
    pub(super) async fn open(&self, bucket: &EntityPath, upload: &DueUpload) -> Result<(), UnexpectedStatus> {
        let put = InternalRequest::new(Method::PUT, self.marker_of(bucket, upload))
            .with(http::header::CONTENT_TYPE, "application/directory")
            .with(HAS_CONTENT_TYPE, "no")
            .with(X_UPLOAD_REOPENED, "true");
        self.client.tell(&put, &[2]).await.map(drop)
    }

    /// Takes the marker of an upload away.
    pub(super) async fn close(&self, bucket: &EntityPath, upload: &DueUpload) -> Result<(), UnexpectedStatus> {
        let ask = InternalRequest::new(Method::DELETE, self.marker_of(bucket, upload));
        self.client.tell(&ask, &[2, 404]).await.map(drop)
    }

    /// Deletes all parts of an upload of which nothing is made: those that its object named, whether or not servers
    /// list them already, and those that are listed.
    pub(super) async fn remove_parts(
        &self,
        bucket: &EntityPath,
        upload: &DueUpload,
        named: Option<&PartNumbers>,
    ) -> Result<(), UnexpectedStatus> {
        let numbers = named.into_iter().flat_map(PartNumbers::iter).take(MOST_PARTS);
        let named = numbers.map(|number| format!("{}/{}/{number}", upload.key, upload.id));
        self.delete_parts(bucket, named).await?;
        loop {
            let rows = self.part_rows(bucket, upload).await?;
            if !self.delete_rows(bucket, &rows).await? {
                return Ok(());
            }
        }
    }

    /// Deletes the parts of an upload that its object does not name, those of a page.
    async fn remove_others(
        &self,
        bucket: &RuledBucket,
        upload: &DueUpload,
        numbers: &PartNumbers,
        lock: Option<&dyn HeldKeyLock>,
    ) -> Result<PartsRemoval, UnexpectedStatus> {
        let prefix = format!("{}/{}/", upload.key, upload.id);
        let mut marker = PageMarker::default();
        loop {
            let query = marker.query(&prefix, self.page, false);
            let is_behind = |rows: &[BucketRow]| rows.last().is_none_or(|last| marker.is_before(last, false));
            let parts = self.parts_of(&bucket.path);
            let mut rows: Vec<BucketRow> = self.client.listing(&parts, query, is_behind).await?;
            let Some(last) = rows.last() else {
                return Ok(PartsRemoval::Done);
            };
            marker.name = last.name().to_owned();
            rows.retain(|row| is_other(row.name(), &prefix, numbers));
            if let Some(lock) = lock
                && !rows.is_empty()
                && !lock.keep().await
            {
                return Ok(PartsRemoval::NotAlone);
            }
            if self.delete_rows(&bucket.path, &rows).await? {
                return Ok(PartsRemoval::Partly);
            }
        }
    }

    async fn part_rows(&self, bucket: &EntityPath, upload: &DueUpload) -> Result<Vec<BucketRow>, UnexpectedStatus> {
        let prefix = format!("{}/{}/", upload.key, upload.id);
        let query = PageMarker::default().query(&prefix, self.page, false);
        self.client.listing(&self.parts_of(bucket), query, |_| true).await
    }

    /// Deletes what these rows name; whether anything of it was there. Rows of what is gone already are taken away by
    /// updaters.
    async fn delete_rows(&self, bucket: &EntityPath, rows: &[BucketRow]) -> Result<bool, UnexpectedStatus> {
        self.delete_parts(bucket, rows.iter().map(|row| row.name().to_owned()))
            .await
    }

    /// Deletes what has these names; whether anything of it was there.
    async fn delete_parts(
        &self,
        bucket: &EntityPath,
        names: impl Iterator<Item = String>,
    ) -> Result<bool, UnexpectedStatus> {
        let parts = self.parts_of(bucket);
        let asks = names.map(|name| {
            let ask = InternalRequest::new(Method::DELETE, parts.with_object(name));
            async move { self.client.tell(&ask, &[2, 404]).await }
        });
        let asks: Vec<_> = asks.collect();
        let mut deleting = stream::iter(asks).buffer_unordered(self.concurrency);
        let mut was_there = false;
        while let Some(status) = deleting.next().await {
            let status = status?;
            was_there |= status != 404;
        }
        Ok(was_there)
    }
}

/// Whether this is the name of a part that is not among these numbers.
fn is_other(name: &str, prefix: &str, numbers: &PartNumbers) -> bool {
    let number = name.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| !numbers.contain(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_object_are_no_others() {
        let numbers = "1-2,4".parse().unwrap();
        let is_other = |name| is_other(name, "k/u/", &numbers);
        assert!(["k/u/3", "k/u/5", "k/u/10"].into_iter().all(is_other));
        assert!(
            !["k/u/1", "k/u/4", "k/u/04", "k/u/x", "k/u/3/3", "k/v/3", "k/u"]
                .into_iter()
                .any(is_other)
        );
    }

    #[test]
    fn markers_are_not_parts() {
        let read = |name| DueUpload::of_name(name).map(|upload| (upload.key, upload.id));
        assert_eq!(read("a/b/NjE2"), Some(("a/b".into(), "NjE2".into())));
        for part in ["a/b/NjE2/1", "a/b/NjE2/10000", "NjE2", "a/"] {
            assert_eq!(read(part), None, "{part}");
        }
    }
}
