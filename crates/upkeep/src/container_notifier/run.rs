//! One run over the events of a target, shard after shard, oldest first.
//!
//! Always holds: a target that does not answer ends its run; a run has at most [`MOST`] deliveries, so that the file of
//! targets and the division of the work count soon; the next run begins behind the shard where this one ended, so that
//! no shard waits for others that always have events.

use super::NAME;
use super::figures::TargetFigures;
use super::target::{EntryOutcome, TargetRun};
use futures_util::stream::{self, StreamExt};
use notification::noted_at;
use vocabulary::{EntityPath, Timestamp};

/// Rows of a page.
const PAGE: usize = 1000;
/// Deliveries of a run.
const MOST: u64 = 10_000;

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
}

impl TargetRun {
    /// Goes over all events.
    pub(super) async fn run(self) -> TargetRunOutcome {
        let mut outcome = TargetRunOutcome {
            target: self.name.clone(),
            figures: TargetFigures::default(),
            oldest: None,
            has_more: false,
            ended_in: None,
        };
        for container in &self.containers {
            self.run_shard(container, &mut outcome).await;
            if outcome.has_more || self.is_paused() {
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

    async fn run_shard(&self, container: &str, outcome: &mut TargetRunOutcome) {
        let path = EntityPath::account(self.shared.options.account.as_str()).with_container(container);
        let mut marker = String::new();
        loop {
            let page = match self.shared.client.page(&path, &marker, Some(PAGE)).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!("{NAME}: {error}; the rest of {container} waits for the next pass");
                    outcome.figures.failed += 1;
                    return;
                }
            };
            let Some(last) = page.last() else { return };
            marker.clone_from(&last.name);
            let seen = page.iter().map(|row| async {
                let done = self.see_to(&path, &row.name).await;
                (row.name.as_str(), done)
            });
            let seen: Vec<_> = seen.collect();
            let mut seen = stream::iter(seen).buffer_unordered(self.shared.options.concurrency.max(1));
            while let Some((name, done)) = seen.next().await {
                outcome.count(name, done);
            }
            if self.is_paused() {
                return;
            }
            if outcome.figures.delivered >= MOST {
                outcome.has_more = true;
                return;
            }
        }
    }
}

impl TargetRunOutcome {
    fn count(&mut self, name: &str, done: EntryOutcome) {
        let figures = &mut self.figures;
        match done {
            EntryOutcome::Delivered => figures.delivered += 1,
            EntryOutcome::Dropped => figures.dropped += 1,
            EntryOutcome::Unmade => figures.unmade += 1,
            EntryOutcome::Gone => {}
            EntryOutcome::Failed | EntryOutcome::Waiting => {
                figures.failed += u64::from(done == EntryOutcome::Failed);
                figures.pending += 1;
                if let Some(noted) = noted_at(name) {
                    self.oldest = Some(self.oldest.map_or(noted, |oldest| oldest.min(noted)));
                }
            }
        }
    }
}
