//! A bucket, page after page: first its objects or versions, then its uploads.
//!
//! Always holds: a step lists one page, or does some of what is due in it, and a shutdown and other buckets wait for no
//! more than that; a page that cannot be had ends the bucket for this pass, and what is left is found by the next one.

use super::agreed::ReasonToWait;
use super::newer::NewestVersions;
use super::remove::DueObject;
use super::remover::{Remover, RuledBucket};
use super::rows::{BucketRow, PageMarker};
use super::uploads::UploadsToEnd;
use super::{LifecycleFigures, NAME};
use crate::internal_client::UnexpectedStatus;
use futures_util::StreamExt;
use futures_util::stream;
use lifecycle::{KeyHistory, KnownTags, VersionFate};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::EntityPath;

/// Deletions of a step, for each that goes on at the same time.
const ROUNDS: usize = 8;

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
            ReasonToWait::Rules(_) | ReasonToWait::Listing(_) => remover.failures.note_item(bucket, words),
        }
        LifecycleFigures {
            failed: 1,
            ..LifecycleFigures::default()
        }
    }

    /// Works on some of a page, or lists the next; whether there is more to do.
    pub(super) async fn step(&mut self, remover: &Remover) -> (LifecycleFigures, bool) {
        if !self.due.is_empty() {
            return (self.attend_some(remover).await, true);
        }
        if !self.uploads.is_empty() {
            return (remover.end_next(&self.bucket, &mut self.uploads).await, true);
        }
        let rows = match self.stage {
            Stage::Objects if !self.bucket.rules.concern_objects() => Ok(vec![]),
            Stage::Objects => self.objects(remover).await,
            Stage::Uploads if !self.bucket.rules.concern_uploads() => Ok(vec![]),
            Stage::Uploads => self.uploads(remover).await,
            Stage::Over => return (LifecycleFigures::default(), false),
        };
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return (self.leave(remover, &ReasonToWait::Listing(error.answer())), false),
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

    /// Does some of what is due.
    async fn attend_some(&mut self, remover: &Remover) -> LifecycleFigures {
        let count = remover.concurrency.saturating_mul(ROUNDS).min(self.due.len());
        let bucket = &self.bucket;
        let working = self.due.drain(..count).map(|due| remover.attend(bucket, due));
        let working: Vec<_> = working.collect();
        let mut working = stream::iter(working).buffer_unordered(remover.concurrency);
        let mut figures = LifecycleFigures::default();
        while let Some(done) = working.next().await {
            figures.add(done);
        }
        figures
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
                is_large: row.is_large(),
                fate,
                newest: self.newest.clone(),
            };
            self.newest.push(row.version_id());
            match fate {
                VersionFate::Stays => {}
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
