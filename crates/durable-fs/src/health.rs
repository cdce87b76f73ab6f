//! Whether a drive can be relied on, judged by what is seen of it.
//!
//! Everybody who works on a drive shares its [`Health`]: jobs are announced ([`Health::enter`]), errors
//! told ([`Health::saw`]), and the answer asked before anything is begun ([`Health::check`]). Somebody calls
//! [`Health::tick`] every second and, when that asks for it, tries the drive out and tells the outcome.
//!
//! | seen | the drive | comes back |
//! |---|---|---|
//! | a failed sync, a trial that finds it read-only | takes no writes | when a trial succeeds twice |
//! | an error that says the drive is gone | serves nothing | likewise |
//! | a trial that fails, [`MANY_ERRORS`] errors within [`WINDOW`] seconds | serves nothing | likewise, after a rest that doubles each time |
//! | jobs under way and none ending for [`HUNG`] seconds | serves nothing | likewise, once jobs end again |
//! | a trial that has not ended for [`NO_TRIAL`] seconds without a sync that did (writes hang, and reads may not) | serves nothing | likewise |
//!
//! Always holds: the state changes with one line in the log each time; asking costs one load; a second is
//! counted when it is seen to pass, so a process that was stopped does not take its own sleep for the drive's;
//! without anybody who looks after it a drive stays in service whatever it says, but for a failed sync.
//! Deliberately absent: threads, clocks, what a trial is (`trial.rs`).

use crate::error::FsError;
use crate::trial::Outcome;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use tokio::sync::Notify;

/// A job of any size ends sooner on a drive that works at all.
pub const HUNG: u32 = 30;
/// A trial waits for what others have written: longer than [`HUNG`] where that is much, on a drive that works.
pub const NO_TRIAL: u32 = 60;
/// So many errors make a drive useless although a trial may succeed.
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
pub enum Service {
    /// Everything.
    Full,
    /// Reading.
    ReadOnly,
    /// Nothing.
    Out,
}

impl Service {
    /// As figures and log lines spell it.
    pub fn word(self) -> &'static str {
        match self {
            Service::Full => "in service",
            Service::ReadOnly => "read-only",
            Service::Out => "out of service",
        }
    }
}

/// The health of one drive.
pub struct Health {
    root: PathBuf,
    level: AtomicU8,
    begun: AtomicU64,
    ended: AtomicU64,
    synced: AtomicU64,
    gone: Notify,
    state: Mutex<State>,
}

struct State {
    service: Service,
    why: String,
    /// It is not there, which everybody notices by himself.
    absent: Option<String>,
    ended: u64,
    stuck: u32,
    errors: u32,
    window: u32,
    /// Seconds until it may come back.
    rest: u32,
    passed: u32,
    falls: u32,
    quiet: u32,
    /// Somebody calls [`Health::tick`].
    watched: bool,
    trial_asked: bool,
    trial_running: bool,
    /// Seconds since it began, or since a sync ended.
    trial_took: u32,
    synced: u64,
    unlooked: u32,
}

/// A job under way on a drive; it ends when this is dropped.
pub struct Job(Arc<Health>);

impl Drop for Job {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
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
            gone: Notify::new(),
            state: Mutex::new(State {
                service: Service::Full,
                why: String::new(),
                absent: None,
                ended: 0,
                stuck: 0,
                errors: 0,
                window: 0,
                rest: 0,
                passed: 0,
                falls: 0,
                quiet: 0,
                watched: false,
                trial_asked: false,
                trial_running: false,
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
        match self.level.load(Ordering::Acquire) >= Service::Out as u8 {
            true => Err(self.refusal()),
            false => Ok(()),
        }
    }

    /// Refuses when the drive may not be written to.
    pub fn check_writable(&self) -> Result<(), FsError> {
        match self.level.load(Ordering::Acquire) >= Service::ReadOnly as u8 {
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
    pub fn service(&self) -> (Service, String) {
        let state = self.state.lock();
        match (&state.absent, state.service) {
            (Some(why), Service::Full) => (Service::Out, why.clone()),
            (_, service) => (service, state.why.clone()),
        }
    }

    /// Announces a job.
    pub fn enter(self: &Arc<Self>) -> Job {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Job(self.clone())
    }

    /// Completes once the drive is out of service: nobody need wait for it any longer.
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

    /// Tells of an error that the system gave for something on the drive.
    pub fn saw(&self, error: &io::Error) {
        let symptom = judge(error);
        if matches!(symptom, Symptom::Other) {
            return;
        }
        let state = &mut *self.state.lock();
        state.trial_asked = true;
        match symptom {
            // Nobody would ever bring it back.
            _ if !state.watched => {}
            Symptom::Gone => self.fall(state, Service::Out, error.to_string()),
            Symptom::Drive => {
                state.errors += 1;
                if state.errors >= MANY_ERRORS {
                    let why = format!("{} errors within {WINDOW} seconds, the last: {error}", state.errors);
                    self.fall(state, Service::Out, why);
                }
            }
            _ => {}
        }
    }

    /// Somebody has reason to doubt the drive: it is tried out soon.
    pub fn suspect(&self) {
        self.state.lock().trial_asked = true;
    }

    /// Reports a sync that succeeded.
    pub fn has_synced(&self) {
        self.synced.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports a failed sync of `path`: what was written since the last one may be lost, whatever the system says from now on.
    pub fn sync_failed(&self, path: &Path, error: &io::Error) {
        let why = format!("fsync of {} failed: {error}", path.display());
        self.fall(&mut self.state.lock(), Service::ReadOnly, why);
        self.saw(error);
    }

    /// A second has passed; whether the drive is to be tried out now.
    pub fn tick(&self) -> bool {
        let state = &mut *self.state.lock();
        state.watched = true;
        self.watch_progress(state);
        self.watch_trial(state);
        state.window += 1;
        if state.window >= WINDOW {
            (state.window, state.errors) = (0, 0);
        }
        state.rest = state.rest.saturating_sub(1);
        state.quiet = if state.service == Service::Full {
            state.quiet + 1
        } else {
            0
        };
        if state.quiet >= FORGIVEN {
            state.falls = 0;
        }
        state.unlooked += 1;
        let due = match state.service {
            Service::Full => state.trial_asked || state.unlooked >= LOOK,
            _ => state.rest == 0,
        };
        let try_now = due && !state.trial_running;
        if try_now {
            (state.trial_running, state.trial_asked, state.unlooked) = (true, false, 0);
            state.trial_took = 0;
        }
        try_now
    }

    fn watch_progress(&self, state: &mut State) {
        let ended = self.ended.load(Ordering::Relaxed);
        let under_way = self.begun.load(Ordering::Relaxed).saturating_sub(ended);
        state.stuck = match under_way > 0 && ended == state.ended {
            true => state.stuck.saturating_add(1),
            false => 0,
        };
        state.ended = ended;
        if state.stuck >= HUNG {
            let why = format!(
                "{under_way} jobs under way, none of which has ended for {} seconds",
                state.stuck
            );
            self.fall(state, Service::Out, why);
        }
    }

    /// What is read from memory ends on a drive that takes nothing any more; a trial does not.
    fn watch_trial(&self, state: &mut State) {
        if !state.trial_running {
            return;
        }
        let synced = self.synced.load(Ordering::Relaxed);
        state.trial_took = match synced == state.synced {
            true => state.trial_took.saturating_add(1),
            false => 0,
        };
        state.synced = synced;
        if state.trial_took >= NO_TRIAL {
            let why = format!("a trial has not ended for {} seconds", state.trial_took);
            self.fall(state, Service::Out, why);
        }
    }

    /// Tells how a trial went.
    pub fn tried(&self, outcome: Outcome) {
        let state = &mut *self.state.lock();
        state.trial_running = false;
        if !matches!(outcome, Outcome::Well) {
            state.passed = 0;
        }
        if !matches!(outcome, Outcome::Absent(_)) && state.absent.take().is_some() {
            tracing::info!("device {} is there again", self.root.display());
        }
        match outcome {
            Outcome::Well => self.passed(state),
            Outcome::ReadOnly(why) => self.fall(state, Service::ReadOnly, why),
            Outcome::Sick(why) => self.fall(state, Service::Out, why),
            Outcome::Absent(why) => {
                if state.absent.is_none() {
                    tracing::error!("device {}: {why}", self.root.display());
                }
                state.absent = Some(why);
            }
        }
    }

    fn passed(&self, state: &mut State) {
        state.passed += 1;
        if state.service == Service::Full || state.passed < TRIALS || state.rest > 0 || state.stuck > 0 {
            return;
        }
        tracing::warn!("device {} is well again and back in service", self.root.display());
        (state.service, state.errors, state.quiet) = (Service::Full, 0, 0);
        state.why.clear();
        self.level.store(Service::Full as u8, Ordering::Release);
    }

    fn fall(&self, state: &mut State, to: Service, why: String) {
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
        if to == Service::Out {
            self.gone.notify_waiters();
        }
    }
}

/// What an error of the system says about the drive.
enum Symptom {
    /// Not the drive's.
    Other,
    /// A trial will tell.
    Doubt,
    /// It is no longer there to be asked.
    Gone,
    Drive,
}

/// Error numbers, most of which `io::ErrorKind` has no name for.
fn judge(error: &io::Error) -> Symptom {
    const EIO: i32 = 5;
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    const EROFS: i32 = 30;
    const ENOTCONN: i32 = 107;
    const ESHUTDOWN: i32 = 108;
    const ESTALE: i32 = 116;
    const EUCLEAN: i32 = 117;
    const EREMOTEIO: i32 = 121;
    const ENOMEDIUM: i32 = 123;
    match error.raw_os_error() {
        Some(EROFS) => Symptom::Doubt,
        Some(ENXIO | ENODEV | ENOTCONN | ESHUTDOWN | ESTALE | ENOMEDIUM) => Symptom::Gone,
        Some(EIO | EUCLEAN | EREMOTEIO) => Symptom::Drive,
        _ => Symptom::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    /// Ticks until a trial is wanted, and lets it end so.
    fn try_out(health: &Health, outcome: Outcome) -> u32 {
        let waited = (0..LONGEST_REST * 2).take_while(|_| !health.tick()).count();
        health.tried(outcome);
        waited as u32
    }

    fn service(health: &Health) -> Service {
        health.service().0
    }

    #[test]
    fn a_failed_sync_refuses_writes_until_the_drive_is_well() {
        let health = Health::new("/srv/sda");
        health.sync_failed(Path::new("/srv/sda/x"), &os(28));
        assert!(health.check().is_ok() && health.check_writable().is_err());
        assert!(health.service().1.contains("/srv/sda/x"));
        try_out(&health, Outcome::Well);
        assert!(health.check_writable().is_err());
        try_out(&health, Outcome::Well);
        assert!(health.check_writable().is_ok());
    }

    #[test]
    fn an_error_asks_for_a_trial_and_its_failure_ends_service() {
        let health = Health::new("/srv/sda");
        health.saw(&os(2));
        assert!(!health.tick());
        health.saw(&os(5));
        assert!(health.tick());
        assert_eq!(service(&health), Service::Full);
        assert!(!health.tick(), "one trial at a time");
        health.tried(Outcome::Sick("it hurts".into()));
        assert_eq!(health.service(), (Service::Out, "it hurts".into()));
        assert!(health.check().unwrap_err().to_string().contains("it hurts"));
    }

    #[test]
    fn many_errors_end_service_for_longer_each_time() {
        let health = Health::new("/srv/sda");
        (0..MANY_ERRORS).for_each(|_| health.saw(&os(5)));
        assert_eq!(service(&health), Service::Full, "nobody looks after it");
        try_out(&health, Outcome::Well);
        let mut rests = vec![];
        for _ in 0..3 {
            (0..MANY_ERRORS).for_each(|_| health.saw(&os(5)));
            assert_eq!(service(&health), Service::Out);
            rests.push(try_out(&health, Outcome::Well));
            assert_eq!(service(&health), Service::Out);
            try_out(&health, Outcome::Well);
            assert_eq!(service(&health), Service::Full);
        }
        assert!(rests.windows(2).all(|pair| pair[0] < pair[1]), "{rests:?}");
        // Spread over time they are bad luck.
        for _ in 0..MANY_ERRORS * 2 {
            health.saw(&os(5));
            for _ in 0..WINDOW {
                if health.tick() {
                    health.tried(Outcome::Well);
                }
            }
        }
        assert_eq!(service(&health), Service::Full);
    }

    #[tokio::test]
    async fn a_hung_drive_lets_nobody_wait() {
        let health = Health::new("/srv/sda");
        let job = health.enter();
        let waiting = tokio::spawn({
            let health = health.clone();
            async move { health.gone().await }
        });
        for _ in 0..HUNG {
            health.tick();
            health.tried(Outcome::Well);
        }
        assert_eq!(service(&health), Service::Out);
        waiting.await.unwrap();
        for _ in 0..5 {
            try_out(&health, Outcome::Well);
        }
        assert_eq!(service(&health), Service::Out, "the job has not ended");
        drop(job);
        try_out(&health, Outcome::Well);
        assert_eq!(service(&health), Service::Full);
    }

    #[test]
    fn a_drive_is_hung_whose_trial_does_not_end_whatever_else_does() {
        let health = Health::new("/srv/sda");
        while !health.tick() {}
        for _ in 0..NO_TRIAL * 2 {
            // Slow, and not hung.
            health.has_synced();
            health.tick();
        }
        for _ in 1..NO_TRIAL {
            drop(health.enter());
            health.tick();
        }
        assert_eq!(service(&health), Service::Full);
        health.tick();
        assert_eq!(service(&health), Service::Out);
        health.tried(Outcome::Well);
        assert_eq!(service(&health), Service::Out);
        try_out(&health, Outcome::Well);
        assert_eq!(service(&health), Service::Full);
    }

    #[test]
    fn a_busy_drive_is_not_hung() {
        let health = Health::new("/srv/sda");
        let mut jobs: Vec<Job> = (0..4).map(|_| health.enter()).collect();
        for at in 0..HUNG as usize * 3 {
            if at % 20 == 0 {
                jobs[0] = health.enter();
            }
            health.tick();
            health.tried(Outcome::Well);
        }
        assert_eq!(service(&health), Service::Full);
    }

    #[test]
    fn what_is_gone_serves_nothing_and_what_is_absent_is_told() {
        let health = Health::new("/srv/sda");
        health.saw(&os(30));
        assert_eq!(try_out(&health, Outcome::ReadOnly("read-only".into())), 0);
        assert_eq!(service(&health), Service::ReadOnly);
        health.saw(&os(19));
        assert_eq!(service(&health), Service::Out);
        let health = Health::new("/srv/sda");
        try_out(&health, Outcome::Absent("not mounted".into()));
        assert_eq!(service(&health), Service::Out);
        assert!(health.check().is_ok(), "everybody sees for himself");
        try_out(&health, Outcome::Well);
        assert_eq!(service(&health), Service::Full);
    }
}
