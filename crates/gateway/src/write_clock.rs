//! The clock of writes: a hybrid logical clock. It shows the machine's time, or the moment after the newest timestamp
//! that storage servers have shown, whichever is later; so a write comes after all that this gateway has seen, whatever
//! the clock that wrote that.
//!
//! Always holds: timestamps that it gives are unique and never go back; what storage shows moves it ahead of the
//! machine's clock by `max_clock_skew` at most, so that one broken timestamp does not spoil those of all writes; two
//! gateways that follow the same timestamp hardly give the same one next, because each adds a step of chance. Gateways
//! that follow each other in turn would so run away from their machines: from half of `max_clock_skew` on no step is
//! added.

use http::HeaderMap;
use http::header::HeaderName;
use parking_lot::Mutex;
use peer::message::header_names::{
    X_BACKEND_DELETE_TIMESTAMP, X_BACKEND_PUT_TIMESTAMP, X_BACKEND_TIMESTAMP, X_PUT_TIMESTAMP,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use telemetry::metrics::catalogue::CLOCK_SKEW;
use telemetry::metrics::{MetricsPage, MetricsSource};
use vocabulary::Timestamp;
use vocabulary::timestamp::TICKS_PER_SECOND;
use world::{Clock, Random, World};

/// Where servers say when something was written. The first has the newest time of an object, the others those of a
/// container, the last that of an account.
const TIMES: [HeaderName; 4] = [
    X_BACKEND_TIMESTAMP,
    X_BACKEND_PUT_TIMESTAMP,
    X_BACKEND_DELETE_TIMESTAMP,
    X_PUT_TIMESTAMP,
];

/// What is added to a timestamp from ahead of the machine's clock is below this, in ticks: a third of a millisecond.
const MOST_STEPS: u64 = 32;

/// Between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// The time of a write, and whether it may have another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteTime {
    /// What to send.
    pub(crate) timestamp: Timestamp,
    /// This gateway's clock gave it; else the request brought it.
    pub(crate) is_own: bool,
    /// The write was sent again, after so many replicas had answered.
    pub(crate) answered: Option<usize>,
}

impl WriteTime {
    /// A time that the request brings.
    pub(crate) fn given(timestamp: Timestamp) -> Self {
        Self {
            timestamp,
            is_own: false,
            answered: None,
        }
    }

    /// A time of this gateway's.
    pub(crate) fn own(timestamp: Timestamp) -> Self {
        Self {
            is_own: true,
            ..Self::given(timestamp)
        }
    }
}

/// Where a stored timestamp lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    /// Not ahead of the machine's clock.
    Past,
    /// Ahead of it, and the clock of writes is past it now.
    Ahead,
    /// So much ahead of it, which is more than is allowed.
    TooFar(Duration),
}

/// See the module.
pub(crate) struct WriteClock {
    machine: Arc<dyn Clock>,
    dice: Arc<dyn Random>,
    /// What was given or seen last, in ticks.
    last: AtomicU64,
    most_ahead: u64,
    pub(crate) max_skew: Duration,
    statsd: Statsd,
    metrics: Arc<ClockSkewMetrics>,
    warnings: SkewWarnings,
}

/// How often stored timestamps lay ahead of a gateway's clock when it wrote, and what became of those writes.
#[derive(Debug, Default)]
pub struct ClockSkewMetrics {
    resent: AtomicU64,
    refused: AtomicU64,
}

impl MetricsSource for ClockSkewMetrics {
    fn report(&self, page: &mut MetricsPage) {
        for (outcome, count) in [("resent", &self.resent), ("refused", &self.refused)] {
            page.whole(&CLOCK_SKEW, &[outcome], count.load(Ordering::Relaxed));
        }
    }
}

impl WriteClock {
    /// That nothing moves further ahead of the machine's clock than `max_skew`.
    pub(crate) fn new(world: &World, max_skew: Duration, statsd: Statsd) -> Self {
        let ticks = max_skew.as_micros() / u128::from(1_000_000 / TICKS_PER_SECOND);
        Self {
            machine: world.clock.clone(),
            dice: world.random.clone(),
            last: AtomicU64::new(0),
            most_ahead: u64::try_from(ticks).unwrap_or(u64::MAX),
            max_skew,
            statsd,
            metrics: Arc::default(),
            warnings: SkewWarnings::default(),
        }
    }

    /// A timestamp later than all that were given or seen before.
    pub(crate) fn next(&self) -> Timestamp {
        let now = self.machine.now();
        let next = |last: u64| Some(now.ticks().max(last + 1));
        // The closure never answers `None`, so both arms hold the value before.
        let last = match self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) | Err(last) => last,
        };
        Timestamp::from_ticks(now.ticks().max(last + 1)).unwrap_or(now)
    }

    /// Takes note of what the head of a server's answer says.
    pub(crate) fn see(&self, headers: &HeaderMap) {
        for name in &TIMES {
            if let Some(at) = header_timestamp(headers, name)
                && at.ticks() > self.last.load(Ordering::Relaxed)
            {
                self.measure(at);
            }
        }
    }

    /// Takes note of a timestamp unless it is too far ahead; tells where it lies.
    pub(crate) fn measure(&self, at: Timestamp) -> Distance {
        let ahead = at.ticks().saturating_sub(self.machine.now().ticks());
        if ahead > self.most_ahead {
            return Distance::TooFar(Duration::from_secs_f64(ahead as f64 / TICKS_PER_SECOND as f64));
        }
        if at.ticks() > self.last.load(Ordering::Relaxed) {
            self.last.fetch_max(at.ticks() + self.step(ahead), Ordering::Relaxed);
        }
        if ahead > 0 { Distance::Ahead } else { Distance::Past }
    }

    /// A step of chance beyond a timestamp that is so much ahead.
    fn step(&self, ahead: u64) -> u64 {
        match ahead {
            0 => 0,
            _ if ahead > self.most_ahead / 2 => 0,
            _ => (self.dice.next_u64() % MOST_STEPS).min(self.most_ahead - ahead),
        }
    }

    /// Counts a write that is sent again.
    pub(crate) fn count_resent(&self) {
        self.statsd.increment("clock_skew.resent");
        self.metrics.resent.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write that is refused, as what is stored is too far ahead.
    pub(crate) fn count_refused(&self) {
        self.statsd.increment("clock_skew.refused");
        self.metrics.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    pub(crate) fn metrics(&self) -> &Arc<ClockSkewMetrics> {
        &self.metrics
    }

    /// How many refusals no warning has named, when it is time for one.
    pub(crate) fn warning_is_due(&self) -> Option<u64> {
        self.warnings.is_due(self.machine.elapsed())
    }
}

/// A header as a timestamp; `None` when it is absent or none.
pub(crate) fn header_timestamp(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Warnings of what is too far ahead: one at a time, for a log that stays readable.
#[derive(Default)]
struct SkewWarnings(Mutex<WarningState>);

#[derive(Default)]
struct WarningState {
    last: Option<Duration>,
    unnamed: u64,
}

impl SkewWarnings {
    fn is_due(&self, now: Duration) -> Option<u64> {
        let mut state = self.0.lock();
        if state.last.is_some_and(|last| now < last + WARNING_INTERVAL) {
            state.unnamed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.unnamed))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use http::HeaderValue;
    use world::BoxFuture;

    /// A clock that shows the second it is set to.
    pub(crate) struct SetClock(pub(crate) AtomicU64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(self.0.load(Ordering::Relaxed))
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    /// Always the same number.
    struct Loaded(u64);

    impl Random for Loaded {
        fn fill(&self, _: &mut [u8]) {}

        fn next_u64(&self) -> u64 {
            self.0
        }
    }

    /// A machine on which it is that second.
    pub(crate) fn machine(seconds: u64, dice: u64) -> (Arc<SetClock>, World) {
        let machine = Arc::new(SetClock(AtomicU64::new(seconds)));
        let world = World {
            clock: machine.clone(),
            random: Arc::new(Loaded(dice)),
            ..World::real()
        };
        (machine, world)
    }

    fn clock(seconds: u64, dice: u64) -> WriteClock {
        WriteClock::new(&machine(seconds, dice).1, Duration::from_secs(60), Statsd::default())
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    #[test]
    fn it_follows_the_machine_or_what_it_has_seen() {
        let (machine, world) = machine(1000, 5);
        let clock = WriteClock::new(&world, Duration::from_secs(60), Statsd::default());
        assert_eq!(clock.next(), at(1000));
        assert_eq!(clock.next(), at(1000).next_tick());
        machine.0.store(900, Ordering::Relaxed);
        assert!(clock.next() > at(1000), "it never goes back");
        machine.0.store(1000, Ordering::Relaxed);
        for (name, seconds, next) in [
            (X_BACKEND_TIMESTAMP, 1030, 1030),
            (X_PUT_TIMESTAMP, 1020, 1030),
            (X_BACKEND_PUT_TIMESTAMP, 1060, 1060),
            (X_BACKEND_DELETE_TIMESTAMP, 1061, 1060),
            (X_BACKEND_TIMESTAMP, 9_000_000_000, 1060),
        ] {
            let value = HeaderValue::from_str(&at(seconds).internal()).unwrap();
            clock.see(&HeaderMap::from_iter([(name, value)]));
            let given = clock.next();
            assert!(given > at(next) && given < at(next + 1), "{given:?} after {seconds}");
        }
        machine.0.store(2000, Ordering::Relaxed);
        assert_eq!(clock.next(), at(2000));
    }

    #[test]
    fn a_rewrite_of_a_moment_is_passed_too() {
        let clock = clock(1000, 0);
        let rewritten = at(1010).with_offset(3);
        assert_eq!(clock.measure(rewritten), Distance::Ahead);
        assert!(clock.next() > rewritten);
        assert_eq!(clock.measure(at(1000)), Distance::Past);
        assert_eq!(clock.measure(at(1061)), Distance::TooFar(Duration::from_secs(61)));
    }

    #[test]
    fn two_clocks_that_follow_one_time_part() {
        let given = [3, 7 + MOST_STEPS].map(|dice| {
            let clock = clock(1000, dice);
            assert_eq!(clock.measure(at(1010)), Distance::Ahead);
            clock.next().ticks() - at(1010).ticks()
        });
        assert_eq!(given, [4, 8]);
        // What is not ahead needs none: the machines' own clocks part them.
        assert_eq!(clock(1000, 3).measure(at(1000)), Distance::Past);
        assert_eq!(clock(1000, 3).next(), at(1000));
    }

    #[test]
    fn clocks_that_follow_each_other_do_not_run_away() {
        let limit = Duration::from_secs(1);
        let clocks = [0, 1].map(|_| WriteClock::new(&machine(1000, MOST_STEPS - 1).1, limit, Statsd::default()));
        let mut newest = at(1000).next_tick();
        for turn in 0..20_000 {
            assert_eq!(
                clocks[turn % 2].measure(newest),
                Distance::Ahead,
                "turn {turn}: {newest:?}"
            );
            newest = clocks[turn % 2].next();
        }
    }

    #[test]
    fn warnings_are_counted_and_kept_apart() {
        let warnings = SkewWarnings::default();
        let due: Vec<_> = [0, 1, 9, 10, 19, 21]
            .map(|second| warnings.is_due(Duration::from_secs(second)))
            .into();
        assert_eq!(due, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
