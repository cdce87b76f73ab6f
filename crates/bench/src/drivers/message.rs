//! What a controller and a driver say to each other, as JSON in the frames of `channel.rs`.
//!
//! ```text
//! controller            driver
//! Clock             ->
//!                   <-  Clock               several times: how far apart the clocks are
//! Order             ->
//! Replay …          ->                      of a replay: what its log says, in pieces (`replay_pieces.rs`)
//!                   <-  Ready               stores are open, containers were looked at; or Refused, with why
//! Clock             ->                      before each stage: who is still there
//!                   <-  Clock
//! Stage             ->                      the works of the stage, the driver's part of each, when they begin
//!                   <-  Progress …          what was counted since the last one
//! Stop              ->                      if the user has had enough
//!                   <-  WorkDone, Counted … of each work, in pieces
//!                   <-  StageDone
//! ```
//!
//! A driver that serves another controller says Busy to the first message. Pieces of a record, if the order asks for
//! one, come in frames of their own before StageDone.
//! Always holds: figures are counts of times, so that those of all drivers are added and no percentile is averaged;
//! what does not belong to the work that was ordered is refused.

use super::replay_pieces::ReplayPiece;
use crate::figures::{Failure, Latencies, OperationFigures};
use crate::load::share::DriverShare;
use crate::workload::{Arrivals, WorkEnd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use vocabulary::Timestamp;

/// Bytes of the longest frame that a driver takes: a workload and a little more.
pub(super) const LONGEST_TO_DRIVER: u32 = 20 << 20;
/// Bytes of the longest frame that a controller takes: one histogram whose every bucket is used, and a little more.
pub(super) const LONGEST_TO_CONTROLLER: u32 = 4 << 20;

/// To a driver.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToDriver {
    /// What time is it?
    Clock,
    /// What the run is about.
    Order(Box<RunOrder>),
    /// Of a run whose order says that it replays a log: a piece of that.
    Replay(ReplayPiece),
    /// Do this.
    Stage(StageOrder),
    /// Begin no further request.
    Stop,
}

/// From a driver.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromDriver {
    /// The time.
    Clock(DriverTime),
    /// It serves another controller.
    Busy {
        /// The address of that one.
        serves: String,
    },
    /// The stages can begin.
    Ready,
    /// They cannot, or not go on.
    Refused {
        /// Why.
        why: String,
    },
    /// What was counted since the last one.
    Progress(ProgressCounts),
    /// What is known of a work beside its figures.
    WorkDone(DoneWork),
    /// Figures of an operation.
    Counted(CountedOperation),
    /// All of the stage has been said.
    StageDone {
        /// When its works began, by the driver's own measure.
        began: Duration,
        /// How long threads of the load waited for the record.
        waited: Duration,
    },
}

/// The two clocks of a driver, in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct DriverTime {
    /// Since 1970.
    pub(super) wall: u64,
    /// Since it was started.
    pub(super) elapsed: u64,
}

/// Microseconds since 1970.
pub fn wall_micros(time: Timestamp) -> u64 {
    // A tick is ten microseconds.
    time.ticks().saturating_mul(10)
}

/// A run. It may hold passwords: its debug output is its driver's name alone.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct RunOrder {
    /// The workload, as a file has it.
    pub source: String,
    /// What stands instead of what the workload says.
    pub redirection: StoreRedirection,
    /// Whether certificates of the store are not verified.
    pub insecure: bool,
    /// Every body that is read is compared with what was written.
    pub verifies: bool,
    /// Containers are not looked at before.
    pub anything_goes: bool,
    /// What all dice begin with.
    pub seed: u64,
    /// The stages that are run; all of them if empty.
    pub stages: Vec<String>,
    /// The name of the driver.
    pub name: String,
    /// By how many microseconds the driver's clock is ahead of the controller's.
    pub clock_is_ahead: i64,
    /// Whether every operation is recorded.
    pub records: bool,
    /// Whether pieces of a log follow, which is replayed.
    pub replays: bool,
}

impl fmt::Debug for RunOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunOrder({})", self.name)
    }
}

/// Which store is loaded, where it is not the workload's.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRedirection {
    /// Type and parameters.
    pub storage: Option<String>,
    /// Where a token is had.
    pub auth: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// The password.
    pub key: Option<String>,
    /// Storage policy of containers.
    pub policy: Option<String>,
}

/// A stage, as far as it is this driver's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StageOrder {
    /// Its place among the stages that are run.
    pub(super) stage: usize,
    /// Its works.
    pub(super) works: Vec<WorkOrder>,
    /// When they begin, by the driver's own measure.
    pub(super) begins: Duration,
}

/// A work, as far as it is this driver's.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct WorkOrder {
    /// Its place in the stage.
    pub(super) work: usize,
    /// Workers of the work, of all drivers together.
    pub(super) workers: u32,
    /// The driver's part.
    pub(super) share: DriverShare,
    /// When it ends, of all drivers together.
    pub(super) end: WorkEnd,
    /// When requests begin, of all drivers together.
    pub(super) arrivals: Arrivals,
    /// Before it is counted.
    pub(super) ramp_up: Duration,
    /// After it is counted.
    pub(super) ramp_down: Duration,
}

/// Requests that ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ProgressCounts {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// Microseconds, and how often each.
    pub(super) latency: Vec<(u64, u64)>,
}

/// A work that has ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct DoneWork {
    pub(super) work: usize,
    pub(super) measured: Duration,
    pub(super) cpu: Duration,
    pub(super) lasted: Duration,
    pub(super) threads: usize,
}

/// Figures of an operation: of a step over time, or between the ramps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CountedOperation {
    pub(super) work: usize,
    pub(super) step: Option<usize>,
    pub(super) operation: usize,
    succeeded: u64,
    bytes: u64,
    failures: Vec<(Failure, u64)>,
    latency: Vec<(u64, u64)>,
    first_byte: Vec<(u64, u64)>,
}

impl CountedOperation {
    /// These figures; nothing where nothing was counted.
    pub(super) fn of(work: usize, step: Option<usize>, operation: usize, figures: &OperationFigures) -> Option<Self> {
        (figures.succeeded > 0 || figures.failed() > 0).then(|| Self {
            work,
            step,
            operation,
            succeeded: figures.succeeded,
            bytes: figures.bytes,
            failures: figures.failures.iter().map(|(why, count)| (*why, *count)).collect(),
            latency: figures.latency.counts(),
            first_byte: figures.first_byte.counts(),
        })
    }

    /// The figures; nothing when they cannot have been counted.
    pub(super) fn figures(&self) -> Option<OperationFigures> {
        let (mut latency, mut first_byte) = (Latencies::default(), Latencies::default());
        let mut failures: BTreeMap<Failure, u64> = BTreeMap::new();
        for (why, count) in &self.failures {
            failures.insert(*why, *count);
        }
        let all = failures
            .values()
            .try_fold(self.succeeded, |sum, count| sum.checked_add(*count));
        let fits = all.is_some_and(|all| all <= MOST_REQUESTS) && self.bytes <= MOST_BYTES;
        (fits && latency.add_counts(&self.latency) && first_byte.add_counts(&self.first_byte)).then_some(
            OperationFigures {
                latency,
                first_byte,
                succeeded: self.succeeded,
                bytes: self.bytes,
                failures,
            },
        )
    }
}

/// No driver has done more in one step or work: so the sums of all of them fit.
const MOST_REQUESTS: u64 = 1 << 48;
const MOST_BYTES: u64 = 1 << 56;

impl ProgressCounts {
    /// The times; nothing when they cannot have been counted.
    pub(super) fn latencies(&self) -> Option<Latencies> {
        let mut latencies = Latencies::default();
        let fits = self.succeeded <= MOST_REQUESTS && self.failed <= MOST_REQUESTS && self.bytes <= MOST_BYTES;
        (fits && latencies.add_counts(&self.latency)).then_some(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::CountedOperation;
    use crate::figures::{Failure, OperationFigures, RequestOutcome, WorkFigures};
    use std::time::Duration;

    fn counted(millis: u64, failure: Option<Failure>) -> RequestOutcome {
        RequestOutcome {
            bytes: 10,
            latency: Duration::from_millis(millis),
            first_byte: Some(Duration::from_millis(millis / 2)),
            failure,
        }
    }

    fn over_the_wire(figures: &OperationFigures) -> OperationFigures {
        let sent = CountedOperation::of(0, None, 0, figures).unwrap();
        let text = serde_json::to_vec(&sent).unwrap();
        serde_json::from_slice::<CountedOperation>(&text)
            .unwrap()
            .figures()
            .unwrap()
    }

    /// Percentiles of figures that came from two drivers are those of all their requests together.
    #[test]
    fn figures_are_added_and_not_averaged() {
        let second = Duration::from_secs(1);
        let (mut one, mut other) = (WorkFigures::new(1, second), WorkFigures::new(1, second));
        let mut both = WorkFigures::new(1, second);
        for number in 0..1000 {
            let outcome = counted(1 + number % 7, None);
            one.record(0, second, true, &outcome);
            both.record(0, second, true, &outcome);
        }
        for number in 0..10 {
            let outcome = counted(500 + number, (number == 3).then_some(Failure::Status(503)));
            other.record(0, second, true, &outcome);
            both.record(0, second, true, &outcome);
        }
        let mut merged = WorkFigures::new(1, second);
        for figures in [&one, &other] {
            assert!(merged.add(None, 0, &over_the_wire(&figures.counted[0])));
            assert!(merged.add(Some(1), 0, &over_the_wire(&figures.over_time[1][0])));
        }
        for (found, expected) in [
            (&merged.counted[0], &both.counted[0]),
            (&merged.over_time[1][0], &both.over_time[1][0]),
        ] {
            assert_eq!((found.succeeded, found.bytes), (expected.succeeded, expected.bytes));
            assert_eq!(found.failures, expected.failures);
            assert_eq!(found.latency.counts(), expected.latency.counts());
            assert_eq!(found.first_byte.counts(), expected.first_byte.counts());
        }
        let (p50, p99) = (
            both.counted[0].latency.percentile(50.0),
            both.counted[0].latency.percentile(99.5),
        );
        assert_eq!(merged.counted[0].latency.percentile(50.0), p50);
        assert_eq!(merged.counted[0].latency.percentile(99.5), p99);
        assert!(p50 < Duration::from_millis(8) && p99 > Duration::from_millis(499));
        assert!(!merged.add(None, 1, &one.counted[0]), "there is no second operation");
    }

    #[test]
    fn figures_that_cannot_be_are_refused() {
        let good = r#"{"work":0,"step":null,"operation":0,"succeeded":1,"bytes":1,"failures":[["Timeout",2]],
            "latency":[[5,1]],"first_byte":[]}"#;
        let read = |text: &str| {
            serde_json::from_str::<CountedOperation>(text)
                .unwrap()
                .figures()
                .is_some()
        };
        assert!(read(good));
        for (from, to) in [
            ("[[5,1]]", "[[0,1]]"),
            ("[[5,1]]", "[[18446744073709551615,1]]"),
            ("[[5,1]]", "[[5,18446744073709551615],[6,1]]"),
            ("\"succeeded\":1", "\"succeeded\":18446744073709551615"),
            ("\"bytes\":1", "\"bytes\":18446744073709551615"),
        ] {
            assert!(!read(&good.replace(from, to)), "{to}");
        }
    }
}
