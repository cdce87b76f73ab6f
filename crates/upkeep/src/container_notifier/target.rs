//! A target in one run: where it is, what waits, and why deliveries failed.

use super::NotifierShared;
use super::pauses::TargetPauses;
use parking_lot::Mutex;
use peer::Url;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use vocabulary::Timestamp;

/// Reasons that are kept of a run.
const MOST_REASONS: usize = 20;

/// Where events of a target go.
#[derive(Clone)]
pub struct Webhook {
    /// Its address, path and query.
    pub url: Url,
    /// Signs what is posted.
    pub secret: Option<String>,
    /// Whose events may go there; everybody's when empty.
    pub accounts: Vec<String>,
}

impl Webhook {
    /// Whether events of this account's buckets may go there.
    pub(super) fn serves(&self, account: &str) -> bool {
        self.accounts.is_empty() || self.accounts.iter().any(|own| own == account)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.url.authority())
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryOutcome {
    /// Posted, and taken out.
    Delivered,
    /// It stays, and is tried again.
    Failed,
    /// Taken out undelivered, with a line in the log.
    Dropped,
    /// Taken out: its write was not made.
    Unmade,
    /// It stays: it was not its time.
    Waiting,
    /// There is none: another daemon was faster, or the listing is late.
    Gone,
}

/// Where a run has left a shard with failed deliveries.
#[derive(Debug, Clone)]
pub(super) struct ShardPosition {
    /// The last entry that was seen to.
    pub(super) behind: String,
    /// The oldest event that waits before it.
    pub(super) oldest: Option<Timestamp>,
}

/// A run, before it begins.
pub(super) struct TargetRun {
    pub(super) shared: Arc<NotifierShared>,
    /// The target.
    pub(super) name: String,
    /// Where it is; absent where the operator's file does not have it.
    pub(super) hook: Option<Arc<Webhook>>,
    pub(super) pauses: Arc<TargetPauses>,
    /// The names of the containers of its queue.
    pub(super) containers: VecDeque<String>,
    /// Where those are gone on with that the last run has left.
    pub(super) positions: BTreeMap<String, ShardPosition>,
    /// Why deliveries failed, and how often.
    pub(super) failures: Mutex<BTreeMap<String, u64>>,
}

impl TargetRun {
    /// A delivery failed; the run says so at its end.
    pub(super) fn note_failure(&self, why: &str) {
        let mut failures = self.failures.lock();
        if failures.len() < MOST_REASONS || failures.contains_key(why) {
            *failures.entry(why.to_owned()).or_default() += 1;
        }
    }
}
