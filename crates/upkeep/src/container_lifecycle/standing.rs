//! What a key is, as far as an upload of it goes: whether its object, or one of its versions, was made by it.
//!
//! Only versions are looked at that the upload can have made: none that is older than its begin, or than its parts. A
//! marker that was written anew, as what the upload made was about to be deleted (`remove.rs`), says so, and then all
//! versions are looked at. A marker that an earlier build wrote anew does not say so: its parts say when the upload
//! was, unless they have been changed since.
//! What was found out of a version is kept for the next uploads of its key, so that many uploads of a key with many
//! versions cost the sum of both. A look takes about a page of versions and may be gone on with: what has come since is
//! looked at then, too.
//! Always holds: a version that cannot be looked at is an error, so that its parts stay, and so are servers that do not
//! list the same versions (`listed_alike.rs`); what may be overwritten (what has no version) and what was not found is
//! looked at again each time; memory is bounded.

use super::remover::{DueUpload, HeldKeyLock, Remover, RuledBucket, UPLOAD_OF_OBJECT, look};
use super::rows::{BucketRow, PageMarker};
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use futures_util::StreamExt;
use futures_util::stream;
use http::{HeaderMap, HeaderName, Method};
use peer::Response;
use peer::message::header_names::{X_DATA_TIMESTAMP, X_UPLOAD_REOPENED};
use std::collections::HashMap;
use vocabulary::names::quote;
use vocabulary::{PartNumbers, Timestamp};

/// The numbers of an object's parts.
const NUMBERS_OF_OBJECT: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-part-numbers");
/// Seconds by which the clocks of gateways may differ without a loss.
pub(super) const CLOCKS_DIFFER: u64 = 3600;
/// Versions of a key of which it is kept by what they were made.
const MOST_KNOWN: usize = 20_000;

/// What a key is, as far as an upload of it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyStanding {
    /// There is no object.
    Nothing,
    /// Objects or versions that others have made.
    MadeOtherwise,
    /// The upload made the object, or a version of it; of parts with these numbers, where it says them.
    MadeByIt(Option<PartNumbers>),
    /// Not known yet: there are more versions.
    Unknown,
    /// The lock may have been lost while versions were looked at.
    NotAlone,
}

/// By which uploads the versions of a key were made.
#[derive(Debug, Default)]
pub(super) struct KnownVersions {
    key: String,
    made_by: HashMap<Timestamp, Option<Box<str>>>,
}

impl KnownVersions {
    /// Forgets those of other keys.
    fn of_key(&mut self, key: &str) {
        if self.key != key {
            *self = Self {
                key: key.to_owned(),
                made_by: HashMap::new(),
            };
        }
    }

    /// Whether a version is known to be made by something else than this upload.
    fn is_by_other(&self, version: &str, upload: &str) -> bool {
        let made_by = version.parse().ok().and_then(|version| self.made_by.get(&version));
        made_by.is_some_and(|made_by| made_by.as_deref() != Some(upload))
    }

    /// Keeps what a look at a version has found, if it stays so; whether it does.
    fn note(&mut self, version: &str, found: &Response) -> bool {
        let is_there = found.status().is_success() || found.status() == 405;
        let Some(version) = version.parse().ok().filter(|_| is_there) else {
            return false;
        };
        if self.made_by.len() >= MOST_KNOWN {
            return false;
        }
        let made_by = found.headers().get(UPLOAD_OF_OBJECT);
        let made_by = made_by.map(|made_by| String::from_utf8_lossy(made_by.as_bytes()).into());
        self.made_by.insert(version, made_by);
        true
    }
}

/// From when on the upload with this marker, and with parts of these rows, can have made a version; `None` where that
/// is not known.
pub(super) fn may_have_made_since(marker: &HeaderMap, parts: &[BucketRow]) -> Option<Timestamp> {
    if marker.contains_key(X_UPLOAD_REOPENED) {
        return None;
    }
    let mut first: Timestamp = marker.get(&X_DATA_TIMESTAMP)?.to_str().ok()?.parse().ok()?;
    for part in parts {
        first = first.min(part.changed()?);
    }
    Some(Timestamp::from_seconds(first.seconds().saturating_sub(CLOCKS_DIFFER)))
}

fn is_before(row: &BucketRow, since: Option<Timestamp>) -> bool {
    let written = row.version_id().parse::<Timestamp>();
    since.is_some_and(|since| written.is_ok_and(|written| written < since))
}

fn made_by(found: &Response, upload: &DueUpload) -> Option<KeyStanding> {
    let made_by = found.headers().get(UPLOAD_OF_OBJECT)?;
    (made_by.as_bytes() == upload.id.as_bytes()).then(|| KeyStanding::MadeByIt(numbers_of(found.headers())))
}

/// The numbers of an object's parts, where it says them.
pub(super) fn numbers_of(object: &HeaderMap) -> Option<PartNumbers> {
    object.get(NUMBERS_OF_OBJECT)?.to_str().ok()?.parse().ok()
}

impl Remover {
    /// What the key is, its versions `since` then included.
    pub(super) async fn standing(
        &self,
        bucket: &RuledBucket,
        upload: &DueUpload,
        since: Option<Timestamp>,
        known: &mut KnownVersions,
        lock: Option<&dyn HeldKeyLock>,
    ) -> Result<KeyStanding, UnexpectedStatus> {
        // Where container servers do not answer, a gateway finds no object either.
        let container = InternalRequest::new(Method::HEAD, bucket.path.clone());
        self.client.tell(&container, &[2]).await?;
        let current = self.look_at(bucket, upload, String::new()).await?;
        if let Some(made_by_it) = made_by(&current, upload) {
            return Ok(made_by_it);
        }
        let standing = match current.status().is_success() {
            true => KeyStanding::MadeOtherwise,
            false => KeyStanding::Nothing,
        };
        if !bucket.keeps_versions() {
            return Ok(standing);
        }
        known.of_key(&upload.key);
        let (mut behind, mut noted) = (PageMarker::default(), 0);
        loop {
            let query = behind.query(&upload.key, self.page, true);
            let is_behind = |rows: &[BucketRow]| rows.last().is_none_or(|last| behind.is_before(last, true));
            let rows: Vec<BucketRow> = self.client.listing(&bucket.path, query, is_behind).await?;
            let to_look_at = rows
                .iter()
                .filter(|row| row.name() == upload.key && !is_before(row, since));
            let looks = to_look_at
                .map(BucketRow::version_id)
                .filter(|id| !known.is_by_other(id, &upload.id))
                .map(|id| async move {
                    let query = format!("version-id={}", quote(id));
                    (id, self.look_at(bucket, upload, query).await)
                });
            let looks: Vec<_> = looks.collect();
            let has_looked = !looks.is_empty();
            let mut looking = stream::iter(looks).buffer_unordered(self.concurrency);
            while let Some((id, found)) = looking.next().await {
                let found = found?;
                if let Some(made_by_it) = made_by(&found, upload) {
                    return Ok(made_by_it);
                }
                noted += usize::from(known.note(id, &found));
            }
            let last = rows.last().filter(|last| last.name() == upload.key);
            let Some(last) = last.filter(|last| !is_before(last, since)) else {
                self.check_listed_alike(bucket, &upload.key, since).await?;
                return Ok(standing);
            };
            if noted >= self.page {
                return Ok(KeyStanding::Unknown);
            }
            if let Some(lock) = lock
                && has_looked
                && !lock.keep().await
            {
                return Ok(KeyStanding::NotAlone);
            }
            behind = PageMarker {
                name: last.name().to_owned(),
                version: last.version_id().to_owned(),
            };
        }
    }

    /// The newest of the key, or a version of it.
    pub(super) async fn look_at(
        &self,
        bucket: &RuledBucket,
        upload: &DueUpload,
        query: String,
    ) -> Result<Response, UnexpectedStatus> {
        let path = bucket.path.with_object(upload.key.as_str());
        self.client.ask(&look(path, query), &[2, 404, 405]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_from_the_marker_or_the_oldest_part_on() {
        let at = |seconds| Timestamp::from_seconds(seconds);
        let part = |seconds| {
            let json = serde_json::json!({"name": "k/u/1", "last_modified": at(seconds).iso()});
            serde_json::from_value::<BucketRow>(json).unwrap()
        };
        let marker = |seconds| {
            let header = (X_DATA_TIMESTAMP, at(seconds).normal().parse().unwrap());
            [header].into_iter().collect::<HeaderMap>()
        };
        let since = |marker: &HeaderMap, parts: &[BucketRow]| may_have_made_since(marker, parts);
        assert_eq!(since(&marker(50_000), &[]), Some(at(46_400)));
        assert_eq!(since(&marker(50_000), &[part(60_000), part(51_000)]), Some(at(46_400)));
        // A marker that was written anew and does not say so; one that does.
        assert_eq!(since(&marker(50_000), &[part(60_000), part(9_000)]), Some(at(5_400)));
        let mut reopened = marker(50_000);
        reopened.insert(X_UPLOAD_REOPENED, "true".parse().unwrap());
        assert_eq!(since(&reopened, &[part(60_000), part(9_000)]), None);
        assert_eq!(since(&HeaderMap::new(), &[part(9_000)]), None);
        assert_eq!(since(&marker(50_000), &[BucketRow::default()]), None);
    }

    #[test]
    fn what_may_change_is_not_kept() {
        let mut known = KnownVersions::default();
        let found = |status: u16, upload: &str| {
            let mut response = Response::new(peer::Body::empty());
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            if !upload.is_empty() {
                response.headers_mut().insert(UPLOAD_OF_OBJECT, upload.parse().unwrap());
            }
            response
        };
        known.of_key("k");
        assert!(!known.note("null", &found(200, "")) && !known.note("0000000005.00000", &found(404, "")));
        assert!(!known.is_by_other("0000000005.00000", "u"));
        assert!(known.note("0000000005.00000", &found(200, "u")) && known.note("0000000006.00000", &found(405, "")));
        assert!(!known.is_by_other("0000000005.00000", "u") && known.is_by_other("0000000005.00000", "v"));
        assert!(known.is_by_other("0000000006.00000", "u"));
        known.of_key("l");
        assert!(!known.is_by_other("0000000006.00000", "u"));
    }
}
