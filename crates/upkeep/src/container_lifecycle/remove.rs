//! How an object or a version goes, and only the one that was looked at.
//!
//! | what | how |
//! |---|---|
//! | an object of a bucket without versions | a look at it, then a deletion as of an hour before the look |
//! | a current version | a look at it, then a deletion as of before the look, which leaves a marker |
//! | an older version, a delete marker | by its ID, unless it is the current one |
//! | a large object that S3 made of parts | its upload's marker, then the object, then the parts, then the marker |
//!
//! A marker is left where versions are suspended, too, unless what expires is no version: without it nothing would say
//! since when the version is an older one.
//! What is written after the look is newer than the deletion, and stays. The deletion's time must not be much older: a
//! tombstone that is older than `reclaim_age` is forgotten at once, and a replica that missed it would come back. An
//! older version that a client has made the current one since the look (`PUT ?version-id=`) is distinguished from
//! others by the gateway, under the key's write lock.
//! Always holds: parts go after the object that is made of them; after a crash in between the upload's marker is there,
//! so that it is seen among the open uploads and ended as one; large objects of Swift's clients keep their segments,
//! which others may share.

use super::LifecycleFigures;
use super::alone::MarkerStanding;
use super::newer::NewestVersions;
use super::remover::{Attended, DueUpload, Remover, RuledBucket, ServerFault, UPLOAD_OF_OBJECT, VERSION_ID, look};
use super::rows::{BucketRow, NULL};
use super::standing::{CLOCKS_DIFFER, numbers_of};
use crate::internal_client::{InternalRequest, UnexpectedStatus};
use http::{HeaderMap, Method};
use lifecycle::{KnownTags, PlacedVersion, VersionFate, read_tags};
use peer::message::header_names::{X_LEAVE_MARKER, X_LIFECYCLE, X_OBJECT_TAGS, X_TIMESTAMP, X_UNLESS_CURRENT};
use std::sync::Arc;
use vocabulary::names::quote;
use vocabulary::timestamp::TICKS_PER_SECOND;
use vocabulary::{PartNumbers, Timestamp};

/// What is due in a bucket, or may be.
#[derive(Debug)]
pub(super) struct DueObject {
    pub(super) placed: PlacedVersion,
    pub(super) version_id: String,
    pub(super) may_be_large: bool,
    pub(super) fate: VersionFate,
    /// The newest versions of its key.
    pub(super) newest: Arc<NewestVersions>,
}

/// What came of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LifecycleRemoval {
    /// It is gone, or hidden behind a delete marker.
    Done,
    /// It was gone already.
    Gone,
    /// Something else is in its place now.
    Changed,
    /// It must not be deleted.
    Held,
    /// Servers that did not answer would have to say whether it may be deleted.
    Unknown,
}

impl LifecycleRemoval {
    fn of_status(status: u16) -> Self {
        match status {
            404 => Self::Gone,
            409 | 412 => Self::Changed,
            403 => Self::Held,
            _ => Self::Done,
        }
    }
}

/// Statuses after which nothing is to be tried again in this pass.
const FINAL: &[u16] = &[2, 403, 404, 409, 412];

impl Remover {
    /// Deletes what is due.
    pub(super) async fn attend(&self, bucket: &RuledBucket, mut due: DueObject) -> Attended {
        let (mut figures, mut fault) = (LifecycleFigures::default(), None);
        let key = due.placed.version.key.clone();
        match self.remove(bucket, &mut due).await {
            Ok(LifecycleRemoval::Done) => match due.fate {
                VersionFate::Expires => figures.expired = 1,
                VersionFate::GoesIfLast => figures.markers = 1,
                _ => figures.versions = 1,
            },
            Ok(LifecycleRemoval::Gone) => {}
            Ok(LifecycleRemoval::Changed) => figures.changed = 1,
            Ok(LifecycleRemoval::Held) => figures.held = 1,
            Ok(LifecycleRemoval::Unknown) => {
                figures.failed = 1;
                fault = Some(ServerFault::Markers);
            }
            Err(error) => {
                figures.failed = 1;
                let object = bucket.path.with_object(key.as_str()).path();
                self.failures.note_item(object, error.answer());
                fault = ServerFault::of(&error, key);
            }
        }
        Attended { figures, fault }
    }

    async fn remove(&self, bucket: &RuledBucket, due: &mut DueObject) -> Result<LifecycleRemoval, UnexpectedStatus> {
        let before = self.world.clock.now();
        let mut found = None;
        if due.fate != VersionFate::Goes && due.fate != VersionFate::GoesIfLast || due.may_be_large {
            found = self.look(bucket, due, due.placed.version.is_latest).await?;
            if found.is_none() {
                return Ok(LifecycleRemoval::Gone);
            }
        }
        let found = found.unwrap_or_default();
        let tags = match due.fate {
            // The current version is looked at as a link, which has no tags.
            VersionFate::DependsOnTags if due.placed.version.is_latest && due.version_id != NULL => {
                let version = self.look(bucket, due, false).await?;
                Some(version.as_ref().map(tags_of).unwrap_or_default())
            }
            VersionFate::DependsOnTags => Some(tags_of(&found)),
            _ => None,
        };
        let tags = tags.as_deref().map_or(KnownTags::Unknown, KnownTags::These);
        let (placed, rules) = (&due.placed, &bucket.rules);
        if due.fate == VersionFate::DependsOnTags {
            due.fate = rules.fate(placed, tags, bucket.now, bucket.day);
        }
        if due.fate == VersionFate::Goes {
            let wanted = rules.newer_wanted(placed, tags, bucket.now, bucket.day);
            if !self
                .are_newer_there(bucket, (&due.newest, &due.version_id), wanted)
                .await?
            {
                return Ok(LifecycleRemoval::Changed);
            }
        }
        if due.fate == VersionFate::GoesIfLast {
            match self.marker_standing(bucket, &due.placed.version.key).await {
                MarkerStanding::Alone => {}
                MarkerStanding::NotAlone => return Ok(LifecycleRemoval::Changed),
                MarkerStanding::Unknown => return Ok(LifecycleRemoval::Unknown),
            }
        }
        match due.fate {
            VersionFate::Expires if bucket.keeps_versions() => self.expire_version(bucket, due, &found, before).await,
            VersionFate::Expires => self.expire_object(bucket, due, &found, before).await,
            // What has no ID has no place of its own.
            VersionFate::Goes | VersionFate::GoesIfLast if due.version_id != NULL => {
                let ask = about(bucket, due, Method::DELETE).with(X_LIFECYCLE, "true");
                let ask = match due.fate {
                    VersionFate::Goes => ask.with(X_UNLESS_CURRENT, "true"),
                    _ => ask,
                };
                let upload = self.upload_alone(bucket, due, &found).await?;
                self.with_parts(bucket, upload, &found, &ask).await
            }
            _ => Ok(LifecycleRemoval::Gone),
        }
    }

    async fn tell(&self, ask: &InternalRequest) -> Result<LifecycleRemoval, UnexpectedStatus> {
        self.once.tell(ask, FINAL).await.map(LifecycleRemoval::of_status)
    }

    /// The headers of the version that is due, or of what the key shows now; nothing where it is gone. Links are not
    /// followed: they have their own age.
    async fn look(
        &self,
        bucket: &RuledBucket,
        due: &DueObject,
        is_shown: bool,
    ) -> Result<Option<HeaderMap>, UnexpectedStatus> {
        let about = about(bucket, due, Method::HEAD);
        let query = match is_shown || about.query.is_empty() {
            true => "symlink=get".into(),
            false => format!("{}&symlink=get", about.query),
        };
        let response = self.once.ask(&look(about.path, query), &[2, 404]).await?;
        Ok(response.status().is_success().then(|| response.headers().clone()))
    }

    /// Hides the current version behind a delete marker.
    async fn expire_version(
        &self,
        bucket: &RuledBucket,
        due: &DueObject,
        found: &HeaderMap,
        before: Timestamp,
    ) -> Result<LifecycleRemoval, UnexpectedStatus> {
        let id = found.get(VERSION_ID).and_then(|id| id.to_str().ok()).unwrap_or(NULL);
        let is_same = id == due.version_id && (id != NULL || is_of(found, due.placed.version.changed));
        if !is_same {
            return Ok(LifecycleRemoval::Changed);
        }
        let path = bucket.path.with_object(due.placed.version.key.as_str());
        let mut ask = InternalRequest::new(Method::DELETE, path)
            .at(before)
            .with(X_LIFECYCLE, "true");
        if id != NULL {
            ask = ask.with(X_LEAVE_MARKER, "true");
            return self.tell(&ask).await;
        }
        // Where versions are not kept any more, this is none.
        let upload = self.upload_alone(bucket, due, found).await?;
        self.with_parts(bucket, upload, found, &ask).await
    }

    /// Deletes an object of a bucket without versions.
    async fn expire_object(
        &self,
        bucket: &RuledBucket,
        due: &DueObject,
        found: &HeaderMap,
        before: Timestamp,
    ) -> Result<LifecycleRemoval, UnexpectedStatus> {
        let changed = due.placed.version.changed;
        if !is_of(found, changed) {
            return Ok(LifecycleRemoval::Changed);
        }
        let path = bucket.path.with_object(due.placed.version.key.as_str());
        let ask = InternalRequest::new(Method::DELETE, path)
            .at(deletion_time(changed, before))
            .with(X_LIFECYCLE, "true");
        self.with_parts(bucket, upload_of(found, due), found, &ask).await
    }

    /// The upload that what is due was made by, if it has made nothing else of the key.
    async fn upload_alone(
        &self,
        bucket: &RuledBucket,
        due: &DueObject,
        found: &HeaderMap,
    ) -> Result<Option<DueUpload>, UnexpectedStatus> {
        Ok(match upload_of(found, due) {
            Some(upload) if self.has_twin(bucket, due, &upload).await? => None,
            upload => upload,
        })
    }

    /// Deletes `found`, which was made by an upload, then its parts.
    async fn with_parts(
        &self,
        bucket: &RuledBucket,
        upload: Option<DueUpload>,
        found: &HeaderMap,
        ask: &InternalRequest,
    ) -> Result<LifecycleRemoval, UnexpectedStatus> {
        let Some(upload) = upload else {
            return self.tell(ask).await;
        };
        let named = self.named_parts(&upload, found, ask).await;
        self.open(&bucket.path, &upload).await?;
        let response = self.client.ask(ask, FINAL).await?;
        let removal = LifecycleRemoval::of_status(response.status().as_u16());
        // Where versions are kept (since a moment ago, perhaps), what was deleted is one, and has its parts.
        let is_kept = ask.query.is_empty() && response.headers().contains_key(VERSION_ID);
        match removal {
            LifecycleRemoval::Done if !is_kept => {
                self.remove_parts(&bucket.path, &upload, named.as_ref()).await?;
            }
            // By a first try whose answer was lost, or by others, who may rely on the marker.
            LifecycleRemoval::Gone => {
                self.end_gone(bucket, &upload).await?;
                return Ok(removal);
            }
            _ => {}
        }
        self.close(&bucket.path, &upload).await?;
        Ok(removal)
    }

    /// The numbers of the parts of `found`, which `ask` is going to delete. What OpenStack's s3api has made does not
    /// say them, but its manifest does.
    async fn named_parts(&self, upload: &DueUpload, found: &HeaderMap, ask: &InternalRequest) -> Option<PartNumbers> {
        if let Some(numbers) = numbers_of(found) {
            return Some(numbers);
        }
        let query = match ask.query.is_empty() {
            true => "multipart-manifest=get".into(),
            false => format!("{}&multipart-manifest=get", ask.query),
        };
        // One that cannot be read says nothing; then the listing does.
        let parts: Vec<BucketRow> = self.once.listing(&ask.path, query, |_| true).await.ok()?;
        let prefix = format!("{}/{}/", upload.key, upload.id);
        let number = |part: &BucketRow| {
            let (before, number) = part.name().rsplit_once('/')?;
            let is_part = format!("{before}/").ends_with(&prefix);
            number.parse::<u32>().ok().filter(|_| is_part)
        };
        let mut numbers: Vec<u32> = parts.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Some(PartNumbers::of_ascending(numbers))
    }
}

fn about(bucket: &RuledBucket, due: &DueObject, method: Method) -> InternalRequest {
    let path = bucket.path.with_object(due.placed.version.key.as_str());
    let mut ask = InternalRequest::new(method, path);
    if bucket.keeps_versions() {
        ask.query = format!("version-id={}", quote(&due.version_id));
    }
    ask
}

/// The time of the deletion of an object that was changed last then and looked at after `before`.
fn deletion_time(changed: Timestamp, before: Timestamp) -> Timestamp {
    let margin = before.ticks().saturating_sub(CLOCKS_DIFFER * TICKS_PER_SECOND);
    Timestamp::from_ticks(margin).map_or(changed.next_tick(), |time| time.max(changed.next_tick()))
}

/// Whether what was found was changed last then.
fn is_of(found: &HeaderMap, changed: Timestamp) -> bool {
    let time = found
        .get(&X_TIMESTAMP)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    time.is_some_and(|time: Timestamp| time.normal() == changed.normal())
}

fn tags_of(found: &HeaderMap) -> Vec<(String, String)> {
    let text = found.get(&X_OBJECT_TAGS);
    let text = text.map(|value| String::from_utf8_lossy(value.as_bytes()));
    text.and_then(|text| read_tags(&text)).unwrap_or_default()
}

/// The upload that an object was made by.
fn upload_of(found: &HeaderMap, due: &DueObject) -> Option<DueUpload> {
    let is_large = found.get("x-static-large-object");
    let is_large = is_large.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    let id = found.get(UPLOAD_OF_OBJECT)?.to_str().ok()?;
    (is_large && !id.is_empty() && !id.contains('/')).then(|| DueUpload {
        key: due.placed.version.key.clone(),
        id: id.to_owned(),
    })
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
