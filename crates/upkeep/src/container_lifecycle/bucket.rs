//! A bucket, page after page: first its objects or versions, then its uploads.
//!
//! Always holds: a step lists one page, or does some of what is due in it, and a shutdown and other buckets wait for no
//! more than that; what servers fail to do, but for pages and uploads, is not tried again in this pass; a page that
//! cannot be had and servers that fail for key after key end the bucket for this pass; what is left is found by the
//! next one.

use super::agreed::ReasonToWait;
use super::newer::NewestVersions;
use super::remove::DueObject;
use super::remover::{Remover, RuledBucket, ServerFault};
use super::rows::{BucketRow, PageMarker};
use super::uploads::UploadsToEnd;
use super::{LifecycleFigures, NAME};
use crate::internal_client::UnexpectedStatus;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lifecycle::{KeyHistory, KnownTags, VersionFate};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::EntityPath;

/// Deletions of a step, for each that goes on at the same time.
const ROUNDS: usize = 8;

/// Keys in a row for which servers may fail before the bucket is left for this pass: fewer may be those of a partition.
const MOST_FAILING: usize = 8;

/// Keys for which servers have failed since they last did what they were asked for.
#[derive(Debug, Default)]
struct FailingKeys {
    in_a_row: usize,
    last: String,
}

impl FailingKeys {
    fn note(&mut self, fault: Option<&ServerFault>) {
        match fault {
            Some(ServerFault::Key(key)) if *key == self.last => {}
            Some(ServerFault::Key(key)) => {
                self.in_a_row += 1;
                self.last.clone_from(key);
            }
            Some(ServerFault::Markers) => {}
            None => *self = Self::default(),
        }
    }
}

/// What is being listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Objects,
    Uploads,
    Over,
}

/// A bucket that is walked over.
pub(crate) struct BucketWalk {
    bucket: RuledBucket,
    stage: Stage,
    marker: PageMarker,
    history: KeyHistory,
    newest: Arc<NewestVersions>,
    /// A delete marker that goes if the next row is of another key.
    marker_if_last: Option<DueObject>,
    /// Servers do not say what is left beside markers.
    leaves_markers: bool,
    failing: FailingKeys,
    /// What of the last page is due, or may be.
    due: VecDeque<DueObject>,
    uploads: UploadsToEnd,
}

impl BucketWalk {
    /// From its beginning.
    pub(super) fn new(bucket: RuledBucket) -> Self {
        Self {
            bucket,
            stage: Stage::Objects,
            marker: PageMarker::default(),
            history: KeyHistory::default(),
            newest: Arc::default(),
            marker_if_last: None,
            leaves_markers: false,
            failing: FailingKeys::default(),
            due: VecDeque::new(),
            uploads: UploadsToEnd::default(),
        }
    }

    /// What is walked over.
    pub(super) fn bucket(&self) -> &RuledBucket {
        &self.bucket
    }

    /// What comes is judged by this second, if it is no later than what came before was judged by.
    pub(super) fn judge_by(&mut self, now: u64) {
        self.bucket.now = self.bucket.now.min(now);
    }

    /// Leaves the rest for the next pass.
    pub(super) fn leave(&self, remover: &Remover, why: &ReasonToWait) -> LifecycleFigures {
        let bucket = self.bucket.path.path();
        let words = format!("{why}; the rest of the bucket waits for the next pass");
        match why {
            ReasonToWait::Clocks(differ) => remover.failures.note_at(differ.place.clone(), bucket, words),
            _ => remover.failures.note_item(bucket, words),
        }
        LifecycleFigures {
            failed: 1,
            ..LifecycleFigures::default()
        }
    }

    /// Works on some of a page, or lists the next; whether there is more to do.
    pub(super) async fn step(&mut self, remover: &Remover) -> (LifecycleFigures, bool) {
        if !self.due.is_empty() {
            let figures = self.attend_some(remover).await;
            return self.go_on_unless_failing(remover, figures);
        }
        if !self.uploads.is_empty() {
            let done = remover.end_next(&self.bucket, &mut self.uploads).await;
            self.failing.note(done.fault.as_ref());
            return self.go_on_unless_failing(remover, done.figures);
        }
        let rows = match self.stage {
            Stage::Objects if !self.bucket.rules.concern_objects() => Ok(vec![]),
            Stage::Objects => self.objects(remover).await,
            Stage::Uploads if !self.bucket.rules.concern_uploads() => Ok(vec![]),
            Stage::Uploads => self.uploads(remover).await,
            Stage::Over => return (LifecycleFigures::default(), false),
        };
        let rows = match rows {
            Err(error) => return (self.leave(remover, &ReasonToWait::Listing(error.answer())), false),
            Ok(rows) if self.lacks_keys(&rows) => {
                return (self.leave(remover, &ReasonToWait::Encrypted), false);
            }
            Ok(rows) => rows,
        };
        match rows.last() {
            Some(last) => {
                self.marker.name = last.name().to_owned();
                self.marker.version = last.version_id().to_owned();
            }
            None => {
                self.marker = PageMarker::default();
                self.stage = match self.stage {
                    Stage::Objects => Stage::Uploads,
                    Stage::Uploads | Stage::Over => Stage::Over,
                };
            }
        }
        let figures = LifecycleFigures {
            looked_at: rows.len() as u64,
            ..LifecycleFigures::default()
        };
        (figures, self.stage != Stage::Over)
    }

    /// Whether the gateway cannot tell which versions these rows are of.
    fn lacks_keys(&self, rows: &[BucketRow]) -> bool {
        self.stage == Stage::Objects && self.bucket.keeps_versions() && rows.iter().any(BucketRow::is_encrypted)
    }

    /// What was done, and whether to go on: not where servers fail for one key after the other.
    fn go_on_unless_failing(&self, remover: &Remover, mut figures: LifecycleFigures) -> (LifecycleFigures, bool) {
        let goes_on = self.failing.in_a_row < MOST_FAILING;
        if !goes_on {
            figures.add(self.leave(remover, &ReasonToWait::Servers));
        }
        (figures, goes_on)
    }

    async fn page(
        &self,
        remover: &Remover,
        path: &EntityPath,
        are_versions: bool,
    ) -> Result<Vec<BucketRow>, UnexpectedStatus> {
        let query = self
            .marker
            .query(self.bucket.rules.common_prefix(), remover.page, are_versions);
        let is_behind = |rows: &[BucketRow]| rows.last().is_none_or(|last| self.marker.is_before(last, are_versions));
        remover.client.listing(path, query, is_behind).await
    }

    async fn objects(&mut self, remover: &Remover) -> Result<Vec<BucketRow>, UnexpectedStatus> {
        let rows = self
            .page(remover, &self.bucket.path, self.bucket.keeps_versions())
            .await?;
        self.due = self.judge(&rows).into();
        Ok(rows)
    }

    /// Does some of what is due, and no more once servers have failed.
    async fn attend_some(&mut self, remover: &Remover) -> LifecycleFigures {
        let mut left = remover.concurrency.saturating_mul(ROUNDS);
        let mut figures = LifecycleFigures::default();
        let mut working = FuturesUnordered::new();
        loop {
            while left > 0
                && working.len() < remover.concurrency
                && let Some(due) = self.due.pop_front()
            {
                left -= 1;
                working.push(remover.attend(&self.bucket, due));
            }
            let Some(done) = working.next().await else {
                return figures;
            };
            figures.add(done.figures);
            self.failing.note(done.fault.as_ref());
            match done.fault {
                Some(ServerFault::Key(key)) => {
                    left = 0;
                    self.due.retain(|due| due.placed.version.key != key);
                }
                Some(ServerFault::Markers) => {
                    self.leaves_markers = true;
                    self.due.retain(|due| due.fate != VersionFate::GoesIfLast);
                }
                None => {}
            }
        }
    }

    /// What in a page is due, or may be.
    fn judge(&mut self, rows: &[BucketRow]) -> Vec<DueObject> {
        let mut due = vec![];
        self.newest = self.newest.of_next_page();
        for row in rows {
            let Some(listed) = row.listed(self.bucket.keeps_versions()) else {
                tracing::debug!(
                    "{NAME}: {}: a damaged row is left alone: {row:?}",
                    self.bucket.path.path()
                );
                continue;
            };
            let pending = self.marker_if_last.take();
            due.extend(pending.filter(|marker| marker.placed.version.key != listed.key));
            self.newest = std::mem::take(&mut self.newest).of_key(&listed.key);
            let placed = self.history.place(listed);
            let fate = self
                .bucket
                .rules
                .fate(&placed, KnownTags::Unknown, self.bucket.now, self.bucket.day);
            let found = DueObject {
                placed,
                version_id: row.version_id().to_owned(),
                may_be_large: row.may_be_large(),
                fate,
                newest: self.newest.clone(),
            };
            self.newest.push(row.version_id());
            match fate {
                VersionFate::Stays => {}
                VersionFate::GoesIfLast if self.leaves_markers => {}
                VersionFate::GoesIfLast => self.marker_if_last = Some(found),
                VersionFate::Expires | VersionFate::Goes | VersionFate::DependsOnTags => due.push(found),
            }
        }
        if rows.is_empty() {
            due.extend(self.marker_if_last.take());
        }
        due
    }

    async fn uploads(&mut self, remover: &Remover) -> Result<Vec<BucketRow>, UnexpectedStatus> {
        let rows = self.page(remover, &remover.parts_of(&self.bucket.path), false).await?;
        let due = rows.iter().filter_map(|row| self.bucket.due_upload(row));
        self.uploads.extend(due);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::{DayLength, LifecycleExpiration, LifecycleRule, LifecycleRules};
    use vocabulary::PolicyIndex;

    fn rows(json: &[(&str, &str, bool, bool)]) -> Vec<BucketRow> {
        let row = |(name, id, is_latest, is_marker): &(&str, &str, bool, bool)| {
            let kind = match is_marker {
                true => "application/x-deleted;swift_versions_deleted=1",
                false => "text/plain",
            };
            serde_json::json!({"name": name, "version_id": id, "is_latest": is_latest, "bytes": 1, "hash": "x",
                "content_type": kind, "last_modified": "1970-01-01T00:00:10.000000"})
        };
        let all: Vec<_> = json.iter().map(row).collect();
        serde_json::from_value(all.into()).unwrap()
    }

    /// A delete marker goes only if nothing of its key stands behind it, be it on the next page.
    #[test]
    fn markers_wait_for_the_next_row() {
        let rule = LifecycleRule {
            is_enabled: true,
            expiration: Some(LifecycleExpiration::DeleteMarkers(true)),
            ..LifecycleRule::default()
        };
        let mut walk = BucketWalk::new(RuledBucket {
            path: EntityPath::account("a").with_container("c"),
            rules: LifecycleRules { rules: vec![rule] },
            stored: String::new(),
            versions: Some("v".into()),
            policy: PolicyIndex::LEGACY,
            now: 100,
            day: DayLength::Calendar,
        });
        let keys = |due: Vec<DueObject>| {
            let keys = due.into_iter().map(|due| due.placed.version.key);
            keys.collect::<Vec<_>>()
        };
        let first = rows(&[("a", "5.00000", true, true), ("b", "5.00000", true, true)]);
        assert_eq!(keys(walk.judge(&first)), ["a"]);
        let second = rows(&[("b", "4.00000", false, false), ("c", "5.00000", true, true)]);
        assert_eq!(keys(walk.judge(&second)), [""; 0]);
        assert_eq!(keys(walk.judge(&[])), ["c"]);
        assert_eq!(keys(walk.judge(&[])), [""; 0]);
    }
}
