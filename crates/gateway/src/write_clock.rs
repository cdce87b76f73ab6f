//! The clock of writes: a hybrid logical clock. It shows the machine's time, or the moment after the newest timestamp
//! that storage servers have shown, whichever is later; so a write comes after all that this gateway has seen, whatever
//! the clock that wrote that.
//!
//! Always holds: timestamps that it gives are unique and never go back; what storage shows moves it ahead of the
//! machine's clock by `max_clock_skew` at most, so that one broken timestamp does not spoil those of all writes.

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
use world::Clock;

/// Where servers say when something was written. The first has the newest time of an object, the others those of a
/// container, the last that of an account.
const TIMES: [HeaderName; 4] = [
    X_BACKEND_TIMESTAMP,
    X_BACKEND_PUT_TIMESTAMP,
    X_BACKEND_DELETE_TIMESTAMP,
    X_PUT_TIMESTAMP,
];

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
    pub(crate) fn new(machine: Arc<dyn Clock>, max_skew: Duration, statsd: Statsd) -> Self {
        let ticks = max_skew.as_micros() / u128::from(1_000_000 / TICKS_PER_SECOND);
        Self {
            machine,
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
        self.last.fetch_max(at.ticks(), Ordering::Relaxed);
        if ahead > 0 { Distance::Ahead } else { Distance::Past }
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
mod tests {
    use super::*;
    use http::HeaderValue;
    use world::BoxFuture;

    /// A clock that shows the second it is set to.
    struct SetClock(AtomicU64);

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

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    #[test]
    fn it_follows_the_machine_or_what_it_has_seen() {
        let machine = Arc::new(SetClock(AtomicU64::new(1000)));
        let clock = WriteClock::new(machine.clone(), Duration::from_secs(60), Statsd::default());
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
        let clock = WriteClock::new(
            Arc::new(SetClock(AtomicU64::new(1000))),
            Duration::from_secs(60),
            Statsd::default(),
        );
        let rewritten = at(1010).with_offset(3);
        assert_eq!(clock.measure(rewritten), Distance::Ahead);
        assert!(clock.next() > rewritten);
        assert_eq!(clock.measure(at(1000)), Distance::Past);
        assert_eq!(clock.measure(at(1061)), Distance::TooFar(Duration::from_secs(61)));
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
