//! One frame for all upkeep: passes at an interval, steps at a pace, and how far it has got.
//!
//! An [`UpkeepJob`] goes over everything it is responsible for, step by step; the step that finds nothing
//! more ends the pass. [`Daemon`] repeats passes. A test calls [`UpkeepJob::step`] itself.
//! Daemons that start together need not work together: [`Daemon::scattered`].
//! Always holds: a shutdown is heeded between two steps and ends any waiting at once, a step itself is
//! never cut off; a step that panics costs its pass, and not the daemon; time comes from the world's clock alone.

use crate::recon::{PASSES, ReconFile, ReconWriter};
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use telemetry::metrics::MetricsSource;
use tokio::sync::watch;
use vocabulary::Timestamp;
use world::World;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpkeepStep {
    /// There may be more to do. What was dealt with counts for the pace, what was merely looked at does not.
    Did {
        /// Dealt with, for good.
        done: u64,
        /// Left for a later pass.
        failed: u64,
    },
    /// Everything has been looked at once; the next step begins anew.
    PassOver,
}

impl UpkeepStep {
    /// Something was looked at, and nothing had to be done.
    pub const LOOKED: UpkeepStep = UpkeepStep::Did { done: 0, failed: 0 };
}

/// One kind of upkeep.
#[async_trait::async_trait]
pub trait UpkeepJob: Send + Sync {
    /// As in `[object-updater]`.
    fn name(&self) -> &'static str;

    /// Does the next bit of work, bounded in time and memory. What goes wrong is logged here, where it
    /// is known what it means, and counted as failed.
    async fn step(&mut self) -> UpkeepStep;

    /// How long the last step should have taken at least for reasons of its own, beside the pace; asked once
    /// after each.
    fn due(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Since when the oldest thing that is left to do has been waiting, where things wait.
    fn oldest(&self) -> Option<Timestamp> {
        None
    }

    /// From now on `statsd` is sent, too, what OpenStack's daemon of that name would send it.
    fn set_statsd(&mut self, _statsd: Statsd) {}

    /// What else there is for Prometheus.
    fn metrics(&self) -> Option<Arc<dyn MetricsSource>> {
        None
    }

    /// The recon figures of a pass (see [`ReconWriter::note`]), if there are any.
    fn figures(&self, _pass: &PassProgress) -> Option<(ReconFile, Value)> {
        None
    }
}

/// How fast to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpkeepPace {
    /// Things dealt with per second at most; 0 for no limit.
    pub per_second: f64,
    /// From the beginning of one pass to that of the next, at least.
    pub interval: Duration,
}

impl UpkeepPace {
    /// How long `count` things should take.
    fn span(&self, count: u64) -> Duration {
        match self.per_second > 0.0 {
            true => Duration::try_from_secs_f64(count as f64 / self.per_second).unwrap_or(Duration::MAX),
            false => Duration::ZERO,
        }
    }
}

/// How far upkeep has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassProgress {
    /// Passes that are over.
    pub passes: u64,
    /// Dealt with in this pass, or in the last one between passes.
    pub done: u64,
    /// Left for later in this pass, or in the last one between passes.
    pub failed: u64,
    /// When this pass began; `None` between passes.
    pub since: Option<Timestamp>,
    /// How long the last pass took.
    pub last_pass: Option<Duration>,
    /// Since when the oldest thing that is left to do has been waiting, as far as this or the last pass saw.
    pub oldest: Option<Timestamp>,
}

impl PassProgress {
    /// How long the last pass took, in seconds.
    pub fn seconds(&self) -> f64 {
        self.last_pass.unwrap_or_default().as_secs_f64()
    }
}

/// A live view of a daemon's progress; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DaemonStatus(Arc<Mutex<PassProgress>>);

impl DaemonStatus {
    /// As of now.
    pub fn progress(&self) -> PassProgress {
        *self.0.lock()
    }
}

/// A job that is repeated.
pub struct Daemon {
    world: World,
    job: Box<dyn UpkeepJob>,
    pace: UpkeepPace,
    status: DaemonStatus,
    recon: Option<ReconWriter>,
    scattered: bool,
}

/// The longest that a daemon waits for its first pass.
const LONGEST_SCATTER: Duration = Duration::from_secs(30);

/// From a step that panicked to the next pass, at least.
const REST_AFTER_PANIC: Duration = Duration::from_secs(60);

/// A pass was broken off by a panic, which the log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPanicked;

/// Why waiting or a pass came to its end.
#[derive(PartialEq, Eq)]
enum Outcome {
    Over,
    ShutDown,
    Panicked,
}

impl Daemon {
    /// Not running yet.
    pub fn new(world: World, job: impl UpkeepJob + 'static, pace: UpkeepPace) -> Self {
        let (job, status) = (Box::new(job), DaemonStatus::default());
        Self {
            world,
            job,
            pace,
            status,
            recon: None,
            scattered: false,
        }
    }

    /// With a first pass that begins at a random moment of the first interval, half a minute from now at most: all
    /// upkeep of a machine is often started at once, and its passes would fall together from then on. Concerns
    /// [`Daemon::run_forever`] only.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self {
            scattered: true,
            ..self
        }
    }

    /// With figures written after each pass.
    pub fn with_recon(self, recon: ReconWriter) -> Self {
        Self {
            recon: Some(recon),
            ..self
        }
    }

    /// With metrics sent to `statsd`.
    pub fn with_statsd(mut self, statsd: Statsd) -> Self {
        self.job.set_statsd(statsd);
        self
    }

    /// As in `[object-updater]`.
    pub fn name(&self) -> &'static str {
        self.job.name()
    }

    /// What else there is for Prometheus.
    pub fn metrics(&self) -> Option<Arc<dyn MetricsSource>> {
        self.job.metrics()
    }

    /// For watching it while it runs.
    pub fn status(&self) -> DaemonStatus {
        self.status.clone()
    }

    /// One pass; also over when `shutdown` begins.
    ///
    /// # Errors
    /// A step panicked, and the pass was broken off.
    pub async fn run_once(&mut self, mut shutdown: watch::Receiver<bool>) -> Result<PassProgress, StepPanicked> {
        match self.pass(&mut shutdown).await {
            Outcome::Panicked => Err(StepPanicked),
            Outcome::Over | Outcome::ShutDown => Ok(self.status.progress()),
        }
    }

    /// Passes until `shutdown` begins. A caller that waits for all receivers to be dropped waits for the step
    /// under way.
    pub async fn run_forever(mut self, mut shutdown: watch::Receiver<bool>) {
        let wait = if self.scattered { self.scatter() } else { Duration::ZERO };
        if self.rest(wait, &mut shutdown).await == Outcome::ShutDown {
            return;
        }
        loop {
            let began = self.world.clock.elapsed();
            let least = match self.pass(&mut shutdown).await {
                Outcome::ShutDown => return,
                Outcome::Over => Duration::ZERO,
                Outcome::Panicked => REST_AFTER_PANIC,
            };
            let took = self.world.clock.elapsed().saturating_sub(began);
            let rest = self.pace.interval.saturating_sub(took).max(least);
            if self.rest(rest, &mut shutdown).await == Outcome::ShutDown {
                return;
            }
        }
    }

    fn scatter(&self) -> Duration {
        let share = self.world.random.next_u64() as f64 / u64::MAX as f64;
        self.pace.interval.min(LONGEST_SCATTER).mul_f64(share)
    }

    async fn pass(&mut self, shutdown: &mut watch::Receiver<bool>) -> Outcome {
        let began = self.world.clock.elapsed();
        self.begin_pass();
        loop {
            if *shutdown.borrow() {
                return Outcome::ShutDown;
            }
            let step_began = self.world.clock.elapsed();
            let (done, failed) = match AssertUnwindSafe(self.job.step()).catch_unwind().await {
                Ok(UpkeepStep::Did { done, failed }) => (done, failed),
                Ok(UpkeepStep::PassOver) => break,
                Err(_) => {
                    self.break_off_pass();
                    return Outcome::Panicked;
                }
            };
            self.note(done, failed);
            let took = self.world.clock.elapsed().saturating_sub(step_began);
            let span = self.pace.span(done + failed).max(self.job.due());
            let rest = span.saturating_sub(took);
            if self.rest(rest, shutdown).await == Outcome::ShutDown {
                return Outcome::ShutDown;
            }
        }
        self.end_pass(self.world.clock.elapsed().saturating_sub(began)).await;
        Outcome::Over
    }

    /// Waits, but not beyond the beginning of a shutdown.
    async fn rest(&self, time: Duration, shutdown: &mut watch::Receiver<bool>) -> Outcome {
        if time.is_zero() {
            return Outcome::Over;
        }
        // A sender that is gone means the process is ending, too.
        let begun = async { drop(shutdown.wait_for(|begun| *begun).await) };
        match self.world.timeout(time, begun).await {
            Ok(()) => Outcome::ShutDown,
            Err(_) => Outcome::Over,
        }
    }

    fn begin_pass(&self) {
        let mut progress = self.status.0.lock();
        (progress.done, progress.failed) = (0, 0);
        progress.since = Some(self.world.clock.now());
    }

    fn note(&self, done: u64, failed: u64) {
        let mut progress = self.status.0.lock();
        progress.done += done;
        progress.failed += failed;
        progress.oldest = self.job.oldest();
    }

    /// Figures and metrics go on naming the last whole pass.
    fn break_off_pass(&self) {
        let mut progress = self.status.0.lock();
        progress.failed += 1;
        progress.since = None;
        // What it was stands in the line of the panic itself.
        tracing::error!("{}: a step ended in a panic, and its pass with it", self.job.name());
    }

    async fn end_pass(&self, took: Duration) {
        let progress = {
            let mut progress = self.status.0.lock();
            progress.passes += 1;
            progress.since = None;
            progress.last_pass = Some(took);
            progress.oldest = self.job.oldest();
            *progress
        };
        let PassProgress { done, failed, .. } = progress;
        let name = self.job.name();
        match done + failed {
            0 => tracing::debug!("{name}: nothing to do ({took:.1?})"),
            _ => tracing::info!("{name}: {done} done, {failed} left for later, in {took:.1?}"),
        }
        let Some(recon) = &self.recon else { return };
        // Daemons without figures have a file of their own: OpenStack's leave none.
        let cache = match self.job.figures(&progress) {
            Some((cache, figures)) => {
                recon.note(cache, figures).await;
                cache
            }
            None => ReconFile::passes_of(name),
        };
        let ended = self.world.clock.now().as_f64();
        let pass = json!({ "last": ended, "seconds": progress.seconds() });
        recon.note(cache, json!({ PASSES: { name: pass } })).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pass: two steps that do something.
    struct Counting(u64);

    #[async_trait::async_trait]
    impl UpkeepJob for Counting {
        fn name(&self) -> &'static str {
            "with_statsd"
        }

        async fn step(&mut self) -> UpkeepStep {
            self.0 += 1;
            match self.0 % 3 {
                0 => UpkeepStep::PassOver,
                _ => UpkeepStep::Did { done: 2, failed: 1 },
            }
        }
    }

    fn daemon(per_second: f64, interval: Duration) -> Daemon {
        Daemon::new(World::real(), Counting(0), UpkeepPace { per_second, interval })
    }

    #[tokio::test]
    async fn a_pass_counts_what_it_did() {
        let running = watch::Sender::new(false);
        let mut daemon = daemon(0.0, Duration::ZERO);
        for pass in 1..3 {
            let progress = daemon.run_once(running.subscribe()).await.unwrap();
            assert_eq!((progress.passes, progress.done, progress.failed), (pass, 4, 2));
            assert_eq!(progress.since, None);
        }
    }

    #[tokio::test]
    async fn the_first_pass_of_the_scattered_waits_for_a_part_of_the_interval() {
        for (interval, longest) in [
            (Duration::from_secs(7), Duration::from_secs(7)),
            (Duration::MAX, LONGEST_SCATTER),
            (Duration::ZERO, Duration::ZERO),
        ] {
            let waits: Vec<Duration> = (0..100).map(|_| daemon(0.0, interval).scatter()).collect();
            assert!(waits.iter().all(|wait| *wait <= longest));
            assert!(longest.is_zero() || waits.iter().any(|wait| *wait != waits[0]));
        }
        let (running, daemon) = (watch::Sender::new(false), daemon(0.0, Duration::MAX).scattered());
        let status = daemon.status();
        let task = tokio::spawn(daemon.run_forever(running.subscribe()));
        tokio::task::yield_now().await;
        running.send_replace(true);
        task.await.unwrap();
        assert_eq!(status.progress(), PassProgress::default());
    }

    /// Its second step panics.
    struct Panicking(Counting);

    #[async_trait::async_trait]
    impl UpkeepJob for Panicking {
        fn name(&self) -> &'static str {
            "panicking"
        }

        async fn step(&mut self) -> UpkeepStep {
            let step = self.0.step().await;
            assert_ne!(self.0.0, 2, "meant to panic");
            step
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_panics_costs_its_pass() {
        let running = watch::Sender::new(false);
        let pace = UpkeepPace {
            per_second: 0.0,
            interval: Duration::from_secs(10),
        };
        let mut once = Daemon::new(World::real(), Panicking(Counting(0)), pace);
        assert_eq!(once.run_once(running.subscribe()).await, Err(StepPanicked));
        let daemon = Daemon::new(World::real(), Panicking(Counting(0)), pace);
        let status = daemon.status();
        let began = tokio::time::Instant::now();
        let task = tokio::spawn(daemon.run_forever(running.subscribe()));
        while status.progress().passes == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // The pass that began anew found what the broken one had left.
        assert!(began.elapsed() >= REST_AFTER_PANIC);
        assert_eq!((status.progress().done, status.progress().since), (0, None));
        running.send_replace(true);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn shutdown_ends_any_waiting() {
        let running = watch::Sender::new(false);
        for (per_second, interval, passes) in [(0.0, Duration::MAX, 1), (0.000_001, Duration::ZERO, 0)] {
            let daemon = daemon(per_second, interval);
            let status = daemon.status();
            let task = tokio::spawn(daemon.run_forever(running.subscribe()));
            while status.progress().done == 0 {
                tokio::task::yield_now().await;
            }
            running.send_replace(true);
            task.await.unwrap();
            assert_eq!(status.progress().passes, passes);
            running.send_replace(false);
        }
    }
}
