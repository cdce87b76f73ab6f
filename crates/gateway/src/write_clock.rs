//! The clock of writes: a hybrid logical clock. It shows the machine's time, or the moment after the newest timestamp
//! that storage servers have shown, whichever is later; so a write comes after all that this gateway has seen, whatever
//! the clock that wrote that. How long after is left to chance: two gateways that follow one timestamp seldom give
//! writes the same. Where that chance is small, since little time has passed, writes that follow still differ: their
//! times have a random offset. Of two bodies of one time each server would keep the one that it got first, for
//! good.
//!
//! Always holds: timestamps that it gives are unique and do not go back, unless the machine's clock is set back by more
//! than `max_clock_skew`; what storage shows moves it ahead of the machine's clock by that at most, and what the
//! machine's clock was before it was set back by about twice that, so that one broken time does not spoil all writes.

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

/// Following a timestamp goes beyond it by fewer ticks.
const MOST_BEYOND: u64 = 1_000;
/// Of the time since it last did, no more than one part in so many, or gateways that follow each other's times would
/// run away from their machines' clocks.
const BEYOND_PART: u32 = 100;

/// A clock that follows nothing is no more ticks ahead of the machine's: so many writes never begin within one.
const MOST_IN_A_TICK: u64 = 10;
/// Offsets of chance are as large.
const MOST_OFFSET: usize = u32::MAX as usize;

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
    random: Arc<dyn Random>,
    /// When it last followed a timestamp, by the machine's monotonic time.
    followed: Mutex<Duration>,
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
        Self {
            machine: world.clock.clone(),
            random: world.random.clone(),
            followed: Mutex::default(),
            last: AtomicU64::new(0),
            most_ahead: ticks(max_skew),
            max_skew,
            statsd,
            metrics: Arc::default(),
            warnings: SkewWarnings::default(),
        }
    }

    /// A timestamp later than all that were given or seen before, but for those that are far further ahead of the
    /// machine's clock than is allowed: they were given before that was set back.
    pub(crate) fn next(&self) -> Timestamp {
        let now = self.machine.now();
        let far = self.most_ahead.saturating_mul(2).saturating_add(TICKS_PER_SECOND);
        let after = |last: u64| match last.saturating_sub(now.ticks()) > far {
            true => now.ticks(),
            false => now.ticks().max(last + 1),
        };
        // The closure never answers `None`, so both arms hold the value before.
        let last = match (self.last).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last))) {
            Ok(last) | Err(last) => last,
        };
        Timestamp::from_ticks(after(last)).unwrap_or(now)
    }

    /// The same for a write, whose time differs from those of other gateways that follow the same timestamp.
    pub(crate) fn next_of_a_write(&self) -> Timestamp {
        let now = self.machine.now();
        let next = self.next();
        match next.ticks().saturating_sub(now.ticks()) > MOST_IN_A_TICK {
            true => next.with_offset(1 + self.random.below(MOST_OFFSET) as u64),
            false => next,
        }
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
        let is_new = at.ticks() > self.last.load(Ordering::Relaxed);
        let beyond = match ahead > 0 && is_new {
            true => self.beyond().min(self.most_ahead - ahead),
            false => 0,
        };
        self.last.fetch_max(at.ticks() + beyond, Ordering::Relaxed);
        if ahead > 0 { Distance::Ahead } else { Distance::Past }
    }

    /// How far beyond a timestamp to go that is followed now.
    fn beyond(&self) -> u64 {
        let now = self.machine.elapsed();
        let since = now.saturating_sub(std::mem::replace(&mut *self.followed.lock(), now));
        let most = ticks(since / BEYOND_PART).min(MOST_BEYOND);
        self.random.below(usize::try_from(most).unwrap_or_default()) as u64
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

fn ticks(time: Duration) -> u64 {
    let ticks = time.as_micros() / u128::from(1_000_000 / TICKS_PER_SECOND);
    u64::try_from(ticks).unwrap_or(u64::MAX)
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

    /// Rolls the same number each time.
    struct Loaded(u8);

    impl Random for Loaded {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(0);
            buffer[0] = self.0;
        }
    }

    fn clock(machine: &Arc<SetClock>, rolls: u8) -> WriteClock {
        let world = World {
            clock: machine.clone(),
            random: Arc::new(Loaded(rolls)),
            ..World::real()
        };
        WriteClock::new(&world, Duration::from_secs(60), Statsd::default())
    }

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(self.0.load(Ordering::Relaxed))
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    /// A machine on which it is that second.
    pub(crate) fn machine(seconds: u64, rolls: u8) -> (Arc<SetClock>, World) {
        let machine = Arc::new(SetClock(AtomicU64::new(seconds)));
        let world = World {
            clock: machine.clone(),
            random: Arc::new(Loaded(rolls)),
            ..World::real()
        };
        (machine, world)
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    #[test]
    fn it_follows_the_machine_or_what_it_has_seen() {
        let machine = Arc::new(SetClock(AtomicU64::new(1000)));
        let clock = clock(&machine, 200);
        assert_eq!(clock.next(), at(1000));
        assert_eq!(clock.next(), at(1000).next_tick());
        machine.0.store(900, Ordering::Relaxed);
        assert!(
            clock.next() > at(1000),
            "it does not go back with a clock that is a little off"
        );
        machine.0.store(878, Ordering::Relaxed);
        let next = [clock.next(), clock.next()];
        assert_eq!(next, [at(878), at(878).next_tick()], "it had been wrong");
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
        let clock = clock(&Arc::new(SetClock(AtomicU64::new(1000))), 200);
        let rewritten = at(1010).with_offset(3);
        assert_eq!(clock.measure(rewritten), Distance::Ahead);
        assert!(clock.next() > rewritten);
        assert_eq!(clock.measure(at(1000)), Distance::Past);
        assert_eq!(clock.measure(at(1061)), Distance::TooFar(Duration::from_secs(61)));
    }

    #[test]
    fn two_that_follow_one_time_part_but_do_not_run_away() {
        let machine = Arc::new(SetClock(AtomicU64::new(1000)));
        let clocks = [clock(&machine, 0), clock(&machine, 200)];
        let follow = |time| {
            clocks
                .each_ref()
                .map(|clock| (clock.measure(time), clock.next().ticks() - time.ticks()))
        };
        assert_eq!(follow(at(1010)), [(Distance::Ahead, 1), (Distance::Ahead, 201)]);
        // However often: what they may go beyond comes back with time alone.
        assert_eq!(follow(at(1011)), [(Distance::Ahead, 1), (Distance::Ahead, 1)]);
        machine.0.store(1001, Ordering::Relaxed);
        assert_eq!(follow(at(1012)), [(Distance::Ahead, 1), (Distance::Ahead, 201)]);
        // Never further ahead than is allowed.
        machine.0.store(1002, Ordering::Relaxed);
        assert_eq!(follow(at(1062)), [(Distance::Ahead, 1), (Distance::Ahead, 1)]);
    }

    #[test]
    fn writes_that_follow_one_time_differ_however_little_time_has_passed() {
        let machine = Arc::new(SetClock(AtomicU64::new(1000)));
        let clocks = [clock(&machine, 7), clock(&machine, 200)];
        for clock in &clocks {
            let own = [(); 3].map(|()| clock.next_of_a_write().offset());
            assert_eq!(own, [0; 3], "nothing is followed");
            clock.measure(at(1010));
            clock.measure(at(1011));
        }
        let times = clocks.each_ref().map(WriteClock::next_of_a_write);
        assert_eq!(times.map(Timestamp::ticks), [at(1011).next_tick().ticks(); 2]);
        assert_eq!(times.map(Timestamp::offset), [8, 201]);
        machine.0.store(1012, Ordering::Relaxed);
        assert_eq!(clocks[0].next_of_a_write(), at(1012));
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
