//! Whether a drive can be relied on, judged by what is seen of it.
//!
//! All that work on a drive share its [`Health`]: jobs are announced ([`Health::enter`]), errors reported
//! ([`Health::saw`]), and the answer asked before anything is begun ([`Health::check`]). A task of the process calls
//! [`Health::tick`] every second and, when that asks for it, tries the drive out and reports the outcome.
//!
//! | seen | the drive | comes back |
//! |---|---|---|
//! | a failed sync, a trial that finds it read-only | takes no writes | when a trial succeeds twice |
//! | an error that says the drive is gone | serves nothing | likewise |
//! | a failed trial, errors of [`MANY_ERRORS`] files in [`WINDOW`] seconds | serves nothing | after a doubling rest |
//! | jobs under way, and for [`HUNG`] seconds nothing done and no trial that succeeded | serves nothing | likewise |
//! | a trial that has not ended for [`NO_TRIAL`] seconds, and no sync that did | serves nothing | likewise |
//!
//! How long a job takes says nothing: what counts is that something is done meanwhile. A job ends, a sync ends, a long
//! job reports a step ([`Health::progressed`]), or a trial succeeds. One step that takes long because it is large, the
//! sync of a whole database, is announced with its size ([`Health::announce`]), and waited for at [`LOWEST_RATE`].
//! What an error says is in `symptom.rs`; one file that cannot be read, however often it is asked for, only asks for a
//! trial, and a process that has run out of descriptors or memory blames no drive.
//!
//! Always holds: the state changes with one line in the log each time; asking costs one load; a second is
//! counted when it is seen to pass, so a process that was stopped does not take its own sleep for the drive's;
//! without a task that calls `tick` a drive stays in service whatever its errors (`StorageDevice` reports no failed
//! sync then).
//! Deliberately absent: threads, clocks, what a trial is (`trial.rs`).

use crate::error::FsError;
use crate::symptom::Symptom;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use tokio::sync::Notify;

/// Something is done sooner on a drive that works at all.
pub const HUNG: u32 = 30;
/// A trial waits for what others have written: longer than [`HUNG`] where that is much, on a drive that works.
pub const NO_TRIAL: u32 = 60;
/// Bytes per second that every drive writes that works at all.
pub const LOWEST_RATE: u64 = 1 << 20;
/// So many files that cannot be read or written make a drive useless although a trial may succeed.
pub const MANY_ERRORS: u32 = 20;
/// Errors are forgotten after so many seconds.
pub const WINDOW: u32 = 60;
/// Between two trials of a drive that seems well.
const LOOK: u32 = 10;
/// Before a drive may come back for the first time.
const REST: u32 = 5;
/// The longest rest.
const LONGEST_REST: u32 = 3_600;
/// Trials that must succeed one after another.
const TRIALS: u32 = 2;
/// After so many quiet seconds earlier falls are forgotten.
const FORGIVEN: u32 = 3_600;

/// What a drive can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriveService {
    /// Everything.
    Full,
    /// Reading.
    ReadOnly,
    /// Nothing.
    Out,
}

impl DriveService {
    /// As figures and log lines spell it.
    pub fn word(self) -> &'static str {
        match self {
            DriveService::Full => "in service",
            DriveService::ReadOnly => "read-only",
            DriveService::Out => "out of service",
        }
    }
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialOutcome {
    /// What was written and synced was read again.
    Well,
    /// It cannot be written to, and may be read.
    ReadOnly(String),
    /// It is not there, or not mounted.
    Absent(String),
    /// It failed.
    Sick(String),
    /// It could not be carried out, for a reason that is not the drive's.
    Unclear(String),
}

/// The health of one drive.
pub struct Health {
    root: PathBuf,
    level: AtomicU8,
    begun: AtomicU64,
    ended: AtomicU64,
    synced: AtomicU64,
    /// Steps of jobs that have not ended.
    steps: AtomicU64,
    /// Bytes that announced steps are about.
    announced: AtomicU64,
    gone: Notify,
    state: Mutex<HealthState>,
}

struct HealthState {
    service: DriveService,
    why: String,
    /// Why it is not there, which every user of it notices without being refused.
    absent: Option<String>,
    /// What was done, as of the last tick: jobs ended, syncs, steps.
    done: u64,
    /// Seconds with jobs under way of which nothing was done.
    stuck: u32,
    /// Seconds since a trial succeeded.
    unproven: u32,
    /// Files that could not be read or written, by a hash of their paths.
    failed: BTreeSet<u64>,
    window: u32,
    /// Seconds until it may come back.
    rest: u32,
    passed: u32,
    falls: u32,
    quiet: u32,
    /// [`Health::tick`] is being called.
    watched: bool,
    trial_asked: bool,
    trial_running: bool,
    /// The last trial could not be carried out, and that was said.
    untried: bool,
    /// Seconds since it began, or since a sync ended.
    trial_took: u32,
    synced: u64,
    unlooked: u32,
}

/// A job under way on a drive; it ends when this is dropped.
pub struct DriveJob(Arc<Health>);

impl Drop for DriveJob {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// A large step under way on a drive; it ends when this is dropped.
pub struct LargeStep {
    health: Arc<Health>,
    bytes: u64,
}

impl Drop for LargeStep {
    fn drop(&mut self) {
        self.health.announced.fetch_sub(self.bytes, Ordering::Relaxed);
        self.health.progressed();
    }
}

impl Health {
    /// Of the drive at `root`, so far without blame.
    pub fn new(root: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            root: root.into(),
            level: AtomicU8::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            gone: Notify::new(),
            state: Mutex::new(HealthState {
                service: DriveService::Full,
                why: String::new(),
                absent: None,
                done: 0,
                stuck: 0,
                unproven: 0,
                failed: BTreeSet::new(),
                window: 0,
                rest: 0,
                passed: 0,
                falls: 0,
                quiet: 0,
                watched: false,
                trial_asked: false,
                trial_running: false,
                untried: false,
                trial_took: 0,
                synced: 0,
                unlooked: 0,
            }),
        })
    }

    /// Where the drive is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Refuses when the drive is out of service.
    pub fn check(&self) -> Result<(), FsError> {
        match self.level.load(Ordering::Acquire) >= DriveService::Out as u8 {
            true => Err(self.refusal()),
            false => Ok(()),
        }
    }

    /// Refuses when the drive may not be written to.
    pub fn check_writable(&self) -> Result<(), FsError> {
        match self.level.load(Ordering::Acquire) >= DriveService::ReadOnly as u8 {
            true => Err(self.refusal()),
            false => Ok(()),
        }
    }

    fn refusal(&self) -> FsError {
        let state = self.state.lock();
        FsError::OutOfService {
            path: self.root.clone(),
            service: state.service.word(),
            why: state.why.clone(),
        }
    }

    /// What it can be used for, and why no more.
    pub fn service(&self) -> (DriveService, String) {
        let state = self.state.lock();
        match (&state.absent, state.service) {
            (Some(why), DriveService::Full) => (DriveService::Out, why.clone()),
            (_, service) => (service, state.why.clone()),
        }
    }

    /// Announces a job.
    pub fn enter(self: &Arc<Self>) -> DriveJob {
        self.begun.fetch_add(1, Ordering::Relaxed);
        DriveJob(self.clone())
    }

    /// Reports that a job that has not ended yet got on: it read, wrote or computed something.
    pub fn progressed(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Announces a step about so many bytes that cannot report before it ends.
    pub fn announce(self: &Arc<Self>, bytes: u64) -> LargeStep {
        self.announced.fetch_add(bytes, Ordering::Relaxed);
        LargeStep {
            health: self.clone(),
            bytes,
        }
    }

    /// Seconds that announced steps may take.
    fn patience(&self) -> u32 {
        let seconds = self.announced.load(Ordering::Relaxed) / LOWEST_RATE;
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// Completes once the drive is out of service: nothing need wait for it any longer.
    pub async fn gone(&self) {
        loop {
            let mut notified = pin!(self.gone.notified());
            notified.as_mut().enable();
            if self.check().is_err() {
                return;
            }
            notified.await;
        }
    }

    /// Reports an error that the system gave for `path`, which is on the drive.
    pub fn saw(&self, path: &Path, error: &io::Error) {
        let symptom = Symptom::of(error);
        if !symptom.asks_for_trial() {
            return;
        }
        let state = &mut *self.state.lock();
        state.trial_asked = true;
        match symptom {
            // Nothing would ever bring it back.
            _ if !state.watched => {}
            Symptom::Gone => self.fall(state, DriveService::Out, error.to_string()),
            Symptom::Unreadable => {
                let mut hasher = DefaultHasher::new();
                path.hash(&mut hasher);
                state.failed.insert(hasher.finish());
                if state.failed.len() >= MANY_ERRORS as usize {
                    let why = format!("errors of {MANY_ERRORS} files within {WINDOW} seconds, the last: {error}");
                    self.fall(state, DriveService::Out, why);
                    state.failed.clear();
                }
            }
            _ => {}
        }
    }

    /// Reports a reason to doubt the drive: it is tried out soon.
    pub fn suspect(&self) {
        self.state.lock().trial_asked = true;
    }

    /// Reports a sync that succeeded.
    pub fn has_synced(&self) {
        self.synced.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports a failed sync of `path`: what was written since the last one may be lost, whatever the system says from
    /// now on. What cannot be synced at all (`EINVAL`: a pipe, say) says nothing of the drive.
    pub fn sync_failed(&self, path: &Path, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidInput {
            return self.saw(path, error);
        }
        let why = format!("fsync of {} failed: {error}", path.display());
        self.fall(&mut self.state.lock(), DriveService::ReadOnly, why);
        self.saw(path, error);
    }

    /// Whether something tries the drive out, and can bring it back: [`Health::tick`] has been called.
    pub fn is_watched(&self) -> bool {
        self.state.lock().watched
    }

    /// A second has passed; whether the drive is to be tried out now.
    pub fn tick(&self) -> bool {
        let state = &mut *self.state.lock();
        state.watched = true;
        self.watch_progress(state);
        self.watch_trial(state);
        state.window += 1;
        if state.window >= WINDOW {
            state.window = 0;
            state.failed.clear();
        }
        state.rest = state.rest.saturating_sub(1);
        state.quiet = if state.service == DriveService::Full {
            state.quiet + 1
        } else {
            0
        };
        if state.quiet >= FORGIVEN {
            state.falls = 0;
        }
        state.unlooked += 1;
        let due = match state.service {
            DriveService::Full => state.trial_asked || state.unlooked >= LOOK,
            _ => state.rest == 0,
        };
        let try_now = due && !state.trial_running;
        if try_now {
            (state.trial_running, state.trial_asked, state.unlooked) = (true, false, 0);
            state.trial_took = 0;
        }
        try_now
    }

    fn watch_progress(&self, state: &mut HealthState) {
        let ended = self.ended.load(Ordering::Relaxed);
        let under_way = self.begun.load(Ordering::Relaxed).saturating_sub(ended);
        let (syncs, steps) = (self.synced.load(Ordering::Relaxed), self.steps.load(Ordering::Relaxed));
        // Each of the three only grows.
        let done = ended.wrapping_add(syncs).wrapping_add(steps);
        state.stuck = match under_way > 0 && done == state.done {
            true => state.stuck.saturating_add(1),
            false => 0,
        };
        state.done = done;
        state.unproven = state.unproven.saturating_add(1);
        if state.stuck.min(state.unproven) >= HUNG.saturating_add(self.patience()) {
            let why = format!(
                "{under_way} jobs under way, nothing done and no trial that succeeded for {} seconds",
                state.stuck.min(state.unproven)
            );
            self.fall(state, DriveService::Out, why);
        }
    }

    /// What is read from memory ends on a drive that takes nothing any more; a trial does not.
    fn watch_trial(&self, state: &mut HealthState) {
        if !state.trial_running {
            return;
        }
        let synced = self.synced.load(Ordering::Relaxed);
        state.trial_took = match synced == state.synced {
            true => state.trial_took.saturating_add(1),
            false => 0,
        };
        state.synced = synced;
        if state.trial_took >= NO_TRIAL.saturating_add(self.patience()) {
            let why = format!("a trial has not ended for {} seconds", state.trial_took);
            self.fall(state, DriveService::Out, why);
        }
    }

    /// Reports how a trial went.
    pub fn tried(&self, outcome: TrialOutcome) {
        let state = &mut *self.state.lock();
        state.trial_running = false;
        if let TrialOutcome::Unclear(why) = &outcome {
            if !std::mem::replace(&mut state.untried, true) {
                tracing::warn!("device {} could not be tried out: {why}", self.root.display());
            }
            return;
        }
        state.untried = false;
        if !matches!(outcome, TrialOutcome::Well) {
            state.passed = 0;
        }
        if !matches!(outcome, TrialOutcome::Absent(_)) && state.absent.take().is_some() {
            tracing::info!("device {} is there again", self.root.display());
        }
        match outcome {
            TrialOutcome::Well => self.passed(state),
            TrialOutcome::ReadOnly(why) => self.fall(state, DriveService::ReadOnly, why),
            TrialOutcome::Sick(why) => self.fall(state, DriveService::Out, why),
            TrialOutcome::Absent(why) => {
                if state.absent.is_none() {
                    tracing::error!("device {}: {why}", self.root.display());
                }
                state.absent = Some(why);
            }
            // Seen to above.
            TrialOutcome::Unclear(_) => {}
        }
    }

    fn passed(&self, state: &mut HealthState) {
        state.passed += 1;
        state.unproven = 0;
        if state.service == DriveService::Full || state.passed < TRIALS || state.rest > 0 {
            return;
        }
        tracing::warn!("device {} is well again and back in service", self.root.display());
        (state.service, state.quiet) = (DriveService::Full, 0);
        state.failed.clear();
        state.why.clear();
        self.level.store(DriveService::Full as u8, Ordering::Release);
    }

    fn fall(&self, state: &mut HealthState, to: DriveService, why: String) {
        if to <= state.service {
            return;
        }
        tracing::error!(
            "device {} is {} ({why}); check the drive",
            self.root.display(),
            to.word()
        );
        (state.service, state.why, state.passed) = (to, why, 0);
        state.rest = REST.saturating_mul(1 << state.falls.min(16)).min(LONGEST_REST);
        state.falls += 1;
        self.level.store(to as u8, Ordering::Release);
        if to == DriveService::Out {
            self.gone.notify_waiters();
        }
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
