//! What is counted while a load runs: requests, bytes, times, failures, in all and over time.
//!
//! Always holds: a request is counted once, under its operation, in the interval in which it ended; times are in
//! microseconds with three significant digits, and two over time; merging figures of several threads loses nothing.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Failure {
    /// The store answered with this status.
    Status(u16),
    /// No connection was made.
    Connect,
    /// The connection broke, or what came over it was no answer.
    Broken,
    /// No answer in time.
    Timeout,
    /// The body was not what was written.
    WrongBody,
    /// The body was shorter than what was announced.
    ShortBody,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Connect => f.write_str("no connection"),
            Self::Broken => f.write_str("broken connection"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::WrongBody => f.write_str("wrong body"),
            Self::ShortBody => f.write_str("short body"),
        }
    }
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Of bodies, in either direction.
    pub bytes: u64,
    /// From when it was due to the end of its answer.
    pub latency: Duration,
    /// From when it was due to the first byte of the answer; absent where there was no answer.
    pub first_byte: Option<Duration>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// Microseconds beyond which no time of another process is believed: two weeks and more.
const LONGEST: u64 = 1 << 40;

/// Times in microseconds.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::with_digits(3)
    }
}

impl Latencies {
    fn with_digits(digits: u8) -> Self {
        // One to five digits are what the histogram can have.
        #[allow(clippy::unwrap_used)]
        let mut histogram = Histogram::new(digits).unwrap();
        histogram.auto(true);
        Self(histogram)
    }

    /// Counts one.
    pub fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        // It grows as it must.
        let _ = self.0.record(micros);
    }

    /// Those of another one as well.
    pub fn merge(&mut self, other: &Self) {
        // It grows as it must.
        let _ = self.0.add(&other.0);
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that `percent` of all do not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_micros(self.0.value_at_percentile(percent))
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.0.mean() / 1e6)
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }

    /// What was counted: times in microseconds, and how often each.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let recorded = self.0.iter_recorded();
        recorded
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect()
    }

    /// Counts what [`Latencies::counts`] says of others; false when that cannot have been counted.
    pub fn add_counts(&mut self, counts: &[(u64, u64)]) -> bool {
        counts.iter().all(|&(micros, count)| {
            let fits = (1..=LONGEST).contains(&micros) && self.0.len().checked_add(count).is_some();
            fits && self.0.record_n(micros, count).is_ok()
        })
    }

    /// Counts by tenths of a decade: those of step 20 took from 10^2.0 to 10^2.1 microseconds.
    pub fn spread(&self) -> BTreeMap<i32, u64> {
        let mut counts = BTreeMap::new();
        for value in self.0.iter_recorded() {
            let step = ((value.value_iterated_to() as f64).log10() * 10.0).floor() as i32;
            *counts.entry(step).or_default() += value.count_at_value();
        }
        counts
    }

    /// Counts of times up to each multiple of `step`, as far as there are any.
    pub fn steps(&self, step: Duration) -> Vec<u64> {
        let micros = u64::try_from(step.as_micros()).unwrap_or(u64::MAX).max(1);
        self.0
            .iter_linear(micros)
            .map(|value| value.count_since_last_iteration())
            .collect()
    }
}

/// Of one operation.
#[derive(Debug, Clone)]
pub struct OperationFigures {
    /// Of requests that succeeded.
    pub latency: Latencies,
    /// Of requests that succeeded.
    pub first_byte: Latencies,
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Bytes of bodies of those.
    pub bytes: u64,
    /// Requests that failed.
    pub failures: BTreeMap<Failure, u64>,
}

impl Default for OperationFigures {
    fn default() -> Self {
        Self::with_digits(3)
    }
}

impl OperationFigures {
    fn with_digits(digits: u8) -> Self {
        Self {
            latency: Latencies::with_digits(digits),
            first_byte: Latencies::with_digits(digits),
            succeeded: 0,
            bytes: 0,
            failures: BTreeMap::new(),
        }
    }

    fn record(&mut self, outcome: &RequestOutcome) {
        if let Some(failure) = outcome.failure {
            *self.failures.entry(failure).or_default() += 1;
            return;
        }
        self.succeeded += 1;
        self.bytes += outcome.bytes;
        self.latency.record(outcome.latency);
        if let Some(first_byte) = outcome.first_byte {
            self.first_byte.record(first_byte);
        }
    }

    /// Those of another one as well.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.first_byte.merge(&other.first_byte);
        self.succeeded += other.succeeded;
        self.bytes += other.bytes;
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Of a million requests, how many failed; 0 where there was none.
    pub fn failure_rate(&self) -> f64 {
        let all = self.succeeded + self.failed();
        if all == 0 {
            0.0
        } else {
            self.failed() as f64 / all as f64 * 1e6
        }
    }
}

/// Of one work, or of one thread's share of it.
#[derive(Debug, Clone)]
pub struct WorkFigures {
    /// How long the steps over time are.
    interval: Duration,
    /// Between ramp-up and ramp-down, by operation.
    pub counted: Vec<OperationFigures>,
    /// From the start of the work on, ramps included: by step, then by operation.
    pub over_time: Vec<Vec<OperationFigures>>,
}

impl WorkFigures {
    /// Nothing yet, of so many operations.
    pub fn new(operations: usize, interval: Duration) -> Self {
        Self {
            interval: interval.max(Duration::from_millis(1)),
            counted: vec![OperationFigures::with_digits(3); operations],
            over_time: vec![],
        }
    }

    /// Counts a request that ended `at` after the start of the work.
    pub fn record(&mut self, operation: usize, at: Duration, is_counted: bool, outcome: &RequestOutcome) {
        if is_counted && let Some(figures) = self.counted.get_mut(operation) {
            figures.record(outcome);
        }
        let step = (at.as_nanos() / self.interval.as_nanos()) as usize;
        self.reach(step + 1);
        if let Some(figures) = self.over_time[step].get_mut(operation) {
            figures.record(outcome);
        }
    }

    fn reach(&mut self, steps: usize) {
        let operations = self.counted.len();
        while self.over_time.len() < steps {
            self.over_time.push(vec![OperationFigures::with_digits(2); operations]);
        }
    }

    /// What was counted of one operation elsewhere: in a step over time, or between the ramps. False when there is no
    /// such operation.
    pub fn add(&mut self, step: Option<usize>, operation: usize, figures: &OperationFigures) -> bool {
        let place = match step {
            None => self.counted.get_mut(operation),
            Some(step) => {
                self.reach(step + 1);
                self.over_time[step].get_mut(operation)
            }
        };
        place.map(|place| place.merge(figures)).is_some()
    }

    /// Those of another share of the same work as well.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counted.iter_mut().zip(&other.counted) {
            mine.merge(theirs);
        }
        self.reach(other.over_time.len());
        for (mine, theirs) in self.over_time.iter_mut().zip(&other.over_time) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.merge(theirs);
            }
        }
    }

    /// Of all operations together.
    pub fn total(&self) -> OperationFigures {
        let mut total = OperationFigures::with_digits(3);
        self.counted.iter().for_each(|figures| total.merge(figures));
        total
    }

    /// The length of the steps over time.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, RequestOutcome, WorkFigures};
    use std::time::Duration;

    fn outcome(millis: u64, failure: Option<Failure>) -> RequestOutcome {
        RequestOutcome {
            bytes: 10,
            latency: Duration::from_millis(millis),
            first_byte: Some(Duration::from_millis(millis / 2)),
            failure,
        }
    }

    #[test]
    fn shares_of_a_work_are_one_work() {
        let second = Duration::from_secs(1);
        let (mut one, mut other) = (WorkFigures::new(2, second), WorkFigures::new(2, second));
        one.record(0, Duration::from_millis(500), true, &outcome(10, None));
        one.record(0, Duration::from_millis(2500), false, &outcome(10, None));
        other.record(0, Duration::from_millis(999), true, &outcome(30, None));
        other.record(
            1,
            Duration::from_millis(3000),
            true,
            &outcome(30, Some(Failure::Status(503))),
        );
        one.merge(&other);
        assert_eq!(
            (one.counted[0].succeeded, one.counted[0].bytes, one.counted[1].failed()),
            (2, 20, 1)
        );
        let steps: Vec<u64> = one.over_time.iter().map(|step| step[0].succeeded).collect();
        assert_eq!(steps, [2, 0, 1, 0]);
        let total = one.total();
        assert_eq!((total.latency.count(), total.failure_rate().round()), (2, 333_333.0));
        let longest = total.latency.longest().as_millis();
        assert_eq!((longest, total.latency.mean().as_millis()), (30, 20));
        let spread = total.latency.spread();
        assert_eq!(spread, [(40, 1), (44, 1)].into(), "10 and 30 ms");
        assert_eq!(total.latency.steps(Duration::from_millis(10)).iter().sum::<u64>(), 2);
    }
}
