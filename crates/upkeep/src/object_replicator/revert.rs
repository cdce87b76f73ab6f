//! A partition that does not belong here: sent to all its primaries, then removed.
//!
//! It goes piece by piece: some suffixes are sent to each primary, and what enough of them have taken is
//! forgotten before the next. What changed meanwhile stays, and with it the partition, for a later pass. So do POSTs
//! whose body is not here, until all primaries have them or something newer, or until they are too old to count.
//! Always holds: what is forgotten was offered to a primary before it said that it has everything, and is
//! on this disk what it was then.

use super::offers::Objects;
use super::ssync::TOGETHER;
use super::tasks::PartitionTask;
use super::{Fate, NAME, Shared};
use object_engine::{PartitionLock, Rehash};
use placement::Device;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vocabulary::{Fault, PathHash};

/// As long as OpenStack's replicator waits for a partition that another works on.
const LOCK_WAIT: Duration = Duration::from_millis(200);

impl Shared {
    /// Sends everything to all primaries and forgets it.
    pub(super) async fn revert(self: &Arc<Self>, task: &PartitionTask) -> Fate {
        match self.try_revert(task).await {
            Ok(true) => {
                self.tally.removed();
                Fate::Done
            }
            Ok(false) => Fate::Left,
            Err(error) => {
                self.handoffs_wait();
                self.failed(task, None, &error)
            }
        }
    }

    /// Notes that a handoff has what primaries lack.
    fn handoffs_wait(&self) {
        self.handoffs_left.store(true, Ordering::Relaxed);
    }

    /// Whether the partition is gone.
    async fn try_revert(self: &Arc<Self>, task: &PartitionTask) -> Result<bool, Fault> {
        let key = task.key;
        let _locked: PartitionLock = task
            .local
            .run(move |engine| engine.replica().lock_partition(key, LOCK_WAIT))
            .await?;
        let Some(ring) = self.ring(task) else {
            return Ok(false);
        };
        let primaries = ring.primaries(key.partition);
        if primaries.is_empty() || primaries.iter().any(|node| node.id == task.own.id) {
            // The ring has just changed.
            return Ok(false);
        }
        let suffixes = task
            .local
            .run(move |engine| engine.suffixes(key.policy, key.partition))
            .await?;
        let (mut complete, mut failed) = (true, BTreeSet::new());
        if !suffixes.is_empty() {
            primaries.iter().for_each(|_| self.tally.sent());
        }
        for suffixes in suffixes.chunks(TOGETHER) {
            complete &= self.revert_some(task, &primaries, suffixes, &mut failed).await?;
        }
        if !suffixes.is_empty() {
            self.tally.succeeded(primaries.len() - failed.len());
        }
        if !complete {
            return Ok(false);
        }
        let gone = task
            .local
            .run(move |engine| {
                let replica = engine.replica();
                if replica.forget_partition(key)? {
                    return Ok(true);
                }
                // What is left may be past its time: tombstones that no other server needs.
                let suffixes = &engine.suffixes(key.policy, key.partition)?;
                let all = Rehash {
                    suffixes,
                    list: true,
                    seen: false,
                };
                replica.suffix_hashes(key, all)?;
                replica.forget_partition(key)
            })
            .await?;
        if !gone {
            tracing::info!("{NAME}: {}/{} is not empty yet", task.local.name, key.partition);
        }
        Ok(gone)
    }

    /// Whether all that is under these suffixes is gone. Primaries that did not take it are added to `failed`.
    async fn revert_some(
        self: &Arc<Self>,
        task: &PartitionTask,
        primaries: &[&Device],
        suffixes: &[String],
        failed: &mut BTreeSet<u32>,
    ) -> Result<bool, Fault> {
        // Objects by how many primaries have them.
        let mut held: HashMap<PathHash, (object_engine::Versions, usize)> = HashMap::new();
        let mut all_took = true;
        for node in primaries {
            match self.send(task, node, suffixes).await {
                Ok(taken) => {
                    for (hash, versions) in taken {
                        let entry = held.entry(hash).or_insert((versions, 0));
                        match entry.0 == versions {
                            true => entry.1 += 1,
                            // It has changed between two primaries.
                            false => *entry = (versions, 1),
                        }
                    }
                }
                Err(error) => {
                    // Once for the partition, however many parts it is sent in.
                    if failed.insert(node.id) {
                        self.failed(task, Some(node), &error);
                    }
                    all_took = false;
                }
            }
        }
        let enough = self
            .options
            .handoff_delete
            .unwrap_or(primaries.len())
            .clamp(1, primaries.len());
        let (safe, other): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, (_, count))| *count >= enough);
        let safe: Objects = safe.into_iter().map(|(hash, (versions, _))| (hash, versions)).collect();
        let count = safe.len();
        let kept = task.local.forget(task.key, safe).await?;
        if count > kept {
            tracing::debug!(
                "{NAME}: {}/{}: {} objects are gone",
                task.local.name,
                task.key.partition,
                count - kept
            );
        }
        let all_answered = all_took || self.options.handoff_delete.is_some();
        // A POST without its body has been offered, and may have to stay for long.
        let is_owed = other.iter().any(|(_, (versions, _))| !versions.is_lone());
        if is_owed || kept > 0 || !all_answered {
            self.handoffs_wait();
        }
        Ok(kept == 0 && other.is_empty() && all_answered)
    }
}
