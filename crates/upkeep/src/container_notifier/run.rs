//! One run over the events of a target, shard after shard, oldest first.
//!
//! Always holds: a target that does not answer ends its run; a run has about [`MOST`] deliveries, failed ones among
//! them, so that the file of targets and the division of the work count soon; the next run begins behind the shard
//! where this one ended, so that no shard waits for others that always have events. A shard in which [`MOST_FAILED`]
//! have failed is left, and gone on with behind them in the next run, so that events which are refused time and again
//! hold up no others for long; from its end it begins anew.

use super::NAME;
use super::figures::TargetFigures;
use super::target::{EntryOutcome, ShardPosition, TargetRun};
use futures_util::stream::{self, StreamExt};
use notification::noted_at;
use std::collections::BTreeMap;
use vocabulary::{EntityPath, Timestamp};

/// Rows of a page.
const PAGE: usize = 1000;
/// Deliveries of a run.
const MOST: u64 = 10_000;
/// Failed deliveries of a shard in a run.
const MOST_FAILED: u64 = 1_000;

/// What a run came to.
pub(super) struct TargetRunOutcome {
    pub(super) target: String,
    pub(super) figures: TargetFigures,
    /// The oldest event that waits.
    pub(super) oldest: Option<Timestamp>,
    /// It ended because it had done enough.
    pub(super) has_more: bool,
    /// The container in which it ended before the others were seen to.
    pub(super) ended_in: Option<String>,
    /// Where containers are gone on with that were not seen to the end.
    pub(super) positions: BTreeMap<String, ShardPosition>,
}

impl TargetRun {
    /// Goes over all events.
    pub(super) async fn run(mut self) -> TargetRunOutcome {
        let mut outcome = TargetRunOutcome {
            target: self.name.clone(),
            figures: TargetFigures::default(),
            oldest: None,
            has_more: false,
            ended_in: None,
            positions: std::mem::take(&mut self.positions),
        };
        for container in &self.containers {
            let from = outcome.positions.remove(container);
            if let Some(left) = self.run_shard(container, from, &mut outcome).await {
                outcome.positions.insert(container.clone(), left);
            }
            let is_enough = outcome.tried() >= MOST;
            // What is refused time and again waits for the next pass.
            outcome.has_more = is_enough && outcome.figures.delivered >= outcome.figures.failed;
            if is_enough || self.is_paused() {
                outcome.ended_in = Some(container.clone());
                break;
            }
        }
        if self.hook.is_none() && outcome.figures.pending > 0 {
            tracing::warn!(
                "{NAME}: target {} is in no notification-targets.conf: {} events wait",
                self.name,
                outcome.figures.pending
            );
            let now = self.shared.world.clock.elapsed();
            self.pauses.target_failed(now, self.shared.options.max_backoff);
        }
        for (why, times) in &*self.failures.lock() {
            tracing::warn!("{NAME}: target {} {why}: {times} events wait", self.name);
        }
        self.shared.figures.note(&self.name, outcome.figures);
        outcome
    }

    /// Whether the target has failed; then what is left is not even listed.
    fn is_paused(&self) -> bool {
        self.pauses.is_paused(self.shared.world.clock.elapsed())
    }

    /// Goes over a container from there; where it is gone on with, if it was left because of failed deliveries.
    async fn run_shard(
        &self,
        container: &str,
        from: Option<ShardPosition>,
        outcome: &mut TargetRunOutcome,
    ) -> Option<ShardPosition> {
        let (mut marker, mut oldest) = from.map_or_else(Default::default, |from| (from.behind, from.oldest));
        outcome.see_waiting(oldest);
        let failed_before = outcome.figures.failed;
        let path = EntityPath::account(self.shared.options.account.as_str()).with_container(container);
        loop {
            let page = match self.shared.client.page(&path, &marker, Some(PAGE)).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!("{NAME}: {error}; the rest of {container} waits for the next pass");
                    outcome.figures.failed += 1;
                    return None;
                }
            };
            let last = page.last()?;
            marker.clone_from(&last.name);
            let seen = page.iter().map(|row| async {
                let done = self.see_to(&path, &row.name).await;
                (row.name.as_str(), done)
            });
            let seen: Vec<_> = seen.collect();
            let mut seen = stream::iter(seen).buffer_unordered(self.shared.options.concurrency.max(1));
            while let Some((name, done)) = seen.next().await {
                outcome.count(done);
                if matches!(done, EntryOutcome::Failed | EntryOutcome::Waiting) {
                    oldest = earlier(oldest, noted_at(name));
                }
            }
            outcome.see_waiting(oldest);
            if self.is_paused() {
                return None;
            }
            let failed = outcome.figures.failed - failed_before;
            if failed >= MOST_FAILED || outcome.tried() >= MOST {
                let behind = marker;
                return (failed > 0).then_some(ShardPosition { behind, oldest });
            }
        }
    }
}

impl TargetRunOutcome {
    /// Deliveries, failed ones among them.
    fn tried(&self) -> u64 {
        let figures = &self.figures;
        figures.delivered + figures.failed + figures.dropped
    }

    /// Something has been waiting since then.
    fn see_waiting(&mut self, since: Option<Timestamp>) {
        self.oldest = earlier(self.oldest, since);
    }

    fn count(&mut self, done: EntryOutcome) {
        let figures = &mut self.figures;
        match done {
            EntryOutcome::Delivered => figures.delivered += 1,
            EntryOutcome::Dropped => figures.dropped += 1,
            EntryOutcome::Unmade => figures.unmade += 1,
            EntryOutcome::Gone => {}
            EntryOutcome::Failed | EntryOutcome::Waiting => {
                figures.failed += u64::from(done == EntryOutcome::Failed);
                figures.pending += 1;
            }
        }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
