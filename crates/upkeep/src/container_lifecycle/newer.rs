//! Whether the newer versions are there that a rule keeps before an older one goes (`NewerNoncurrentVersions`).
//!
//! Listings have rows of versions that are gone: those of a database that missed deletions while its drive was away,
//! and those whose deletion waits for an updater. Counted as newer ones they would make versions due that the rule
//! keeps. So the object servers are asked for as many newer ones as the rule keeps, the newest first. What they say is
//! kept for the other versions of the key in the same page.
//! Always holds: what the key shows is not counted, nor, where it shows nothing, the newest that is there; a version
//! whose newer ones are not found stays for a later pass; memory is bounded.

use super::remover::{Remover, RuledBucket, VERSION_ID, look};
use super::rows::{DELETE_MARKER, NULL};
use crate::internal_client::UnexpectedStatus;
use futures_util::stream::{self, StreamExt};
use http::header::CONTENT_TYPE;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use vocabulary::names::quote;

/// Versions of a key that may be looked at: a rule keeps 100 at most, and as many more may be gone.
const MOST: usize = 200;

/// The newest versions of a key, as they are listed.
#[derive(Debug, Default)]
pub(super) struct NewestVersions {
    key: String,
    /// Their IDs, newest first.
    listed: Mutex<Vec<String>>,
    found: tokio::sync::Mutex<FoundVersions>,
}

/// What looks have found.
#[derive(Debug, Default)]
struct FoundVersions {
    /// The ID of what the key shows, once that is known; `None` in it where the key shows nothing.
    shown: Option<Option<String>>,
    /// Which are there.
    there: HashMap<String, bool>,
}

impl NewestVersions {
    /// Those that a page goes on with: what was found before is looked at anew.
    pub(super) fn of_next_page(&self) -> Arc<Self> {
        Arc::new(Self {
            key: self.key.clone(),
            listed: Mutex::new(self.listed.lock().clone()),
            found: tokio::sync::Mutex::default(),
        })
    }

    /// Those of `key`: these, or a list that begins.
    pub(super) fn of_key(self: Arc<Self>, key: &str) -> Arc<Self> {
        if self.key == key {
            return self;
        }
        Arc::new(Self {
            key: key.to_owned(),
            ..Self::default()
        })
    }

    /// The version that comes next in the listing.
    pub(super) fn push(&self, version_id: &str) {
        let mut listed = self.listed.lock();
        if listed.len() < MOST {
            listed.push(version_id.to_owned());
        }
    }

    fn newer_than(&self, version_id: &str) -> Vec<String> {
        let listed = self.listed.lock();
        let newer = listed.iter().take_while(|id| *id != version_id);
        newer.cloned().collect()
    }
}

impl Remover {
    /// Whether so many versions are there that are newer than this one, beside the current one.
    pub(super) async fn are_newer_there(
        &self,
        bucket: &RuledBucket,
        (newest, version_id): (&NewestVersions, &str),
        wanted: u64,
    ) -> Result<bool, UnexpectedStatus> {
        let mut wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        if wanted == 0 {
            return Ok(true);
        }
        let mut found = newest.found.lock().await;
        let shown = match &found.shown {
            Some(shown) => shown.clone(),
            None => found
                .shown
                .insert(self.shown_version(bucket, &newest.key).await?)
                .clone(),
        };
        wanted = wanted.saturating_add(usize::from(shown.is_none()));
        let mut newer = newest.newer_than(version_id);
        newer.retain(|id| Some(id) != shown.as_ref());
        loop {
            let there = newer.iter().filter(|id| found.there.get(*id) == Some(&true)).count();
            if there >= wanted {
                return Ok(true);
            }
            let unknown = newer.iter().filter(|id| !found.there.contains_key(*id));
            let looks: Vec<_> = unknown
                .take(wanted - there)
                .map(|id| async move { (id, self.is_version_there(bucket, &newest.key, id).await) })
                .collect();
            if looks.is_empty() {
                return Ok(false);
            }
            let mut looking = stream::iter(looks).buffer_unordered(self.concurrency);
            while let Some((id, is_there)) = looking.next().await {
                found.there.insert(id.clone(), is_there?);
            }
        }
    }

    /// The ID of what the key shows, if anything.
    async fn shown_version(&self, bucket: &RuledBucket, key: &str) -> Result<Option<String>, UnexpectedStatus> {
        let response = self
            .once
            .ask(&look(bucket.path.with_object(key), "symlink=get".into()), &[2, 404])
            .await?;
        let id = response.headers().get(VERSION_ID);
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or(NULL);
        Ok(response.status().is_success().then(|| id.to_owned()))
    }

    async fn is_version_there(
        &self,
        bucket: &RuledBucket,
        key: &str,
        version_id: &str,
    ) -> Result<bool, UnexpectedStatus> {
        let query = format!("version-id={}&symlink=get", quote(version_id));
        let path = bucket.path.with_object(key);
        let response = self.once.ask(&look(path, query), &[2, 404]).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        Ok(response.status().is_success() || kind.is_some_and(|kind| kind == DELETE_MARKER))
    }
}
