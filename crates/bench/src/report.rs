//! What a run was, and what came of it: the one account that all outputs are made from.
//!
//! | output | file |
//! |---|---|
//! | a table in the terminal | `report/terminal.rs` |
//! | COSBench's files | `report/cosbench.rs` |
//! | a page with pictures | `report/html.rs`, `report/plots.rs` |
//! | JSON | this one, by serde |

pub mod compare;
pub mod cosbench;
pub mod html;
pub mod observed;
mod plots;
pub mod sweep;
pub mod terminal;

use crate::figures::{Latencies, OperationFigures};
use crate::load::WorkResult;
use crate::report::observed::StageObservations;
use crate::workload::{Arrivals, Work};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of processor time beyond which the figures are rather the tool's than the store's.
const BUSY: f64 = 0.85;

/// A run.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Name of the workload.
    pub workload: String,
    /// What it is for.
    pub description: String,
    /// How it can be run again.
    pub manifest: Manifest,
    /// In their order.
    pub stages: Vec<StageReport>,
    /// It was stopped before its end.
    pub interrupted: bool,
}

/// What decides over a run, beside the workload.
#[derive(Debug, Serialize)]
pub struct Manifest {
    /// Of this program.
    pub version: String,
    /// What all dice began with.
    pub seed: u64,
    /// Threads for each work.
    pub threads: usize,
    /// Whether bodies were compared.
    pub verifies: bool,
    /// When it began: seconds since 1970.
    pub begun: f64,
    /// The workload as it was read, its secrets masked.
    pub source: String,
}

/// A stage.
#[derive(Debug, Default, Serialize)]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// In their order.
    pub works: Vec<WorkReport>,
    /// When it began: seconds since 1970.
    pub begun: f64,
    /// From its start to its end, in seconds.
    pub lasted: f64,
    /// What happened beside its load.
    #[serde(flatten)]
    pub observed: StageObservations,
}

/// A work.
#[derive(Debug, Serialize)]
pub struct WorkReport {
    /// Its name.
    pub name: String,
    /// `normal`, `init` and so on.
    pub kind: &'static str,
    /// Requests under way at a time.
    pub workers: u32,
    /// Requests a second that were asked for, of an open loop.
    pub rate: Option<f64>,
    /// How long requests were counted, in seconds.
    pub measured: f64,
    /// Share of the threads' time in which this program was busy, from 0 to 1.
    pub client_load: f64,
    /// Whether the client rather than the store may have been the limit.
    pub client_is_limit: bool,
    /// More failures than the work accepts.
    pub has_failed: bool,
    /// By operation, then of all.
    pub operations: Vec<OperationReport>,
    /// All of them together.
    pub total: OperationReport,
    /// By interval.
    pub over_time: Vec<IntervalReport>,
}

/// An operation.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    /// `op1`, for example.
    pub id: String,
    /// `read`, for example.
    pub kind: String,
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Why, and how often.
    pub failures: BTreeMap<String, u64>,
    /// Of bodies of requests that succeeded.
    pub bytes: u64,
    /// Successes a second.
    pub rate: f64,
    /// Bytes a second.
    pub bandwidth: f64,
    /// To the end of the answer, in milliseconds.
    pub latency: TimesReport,
    /// To its first byte, in milliseconds.
    pub first_byte: TimesReport,
    /// Counts of times up to each multiple of ten milliseconds, as COSBench has them.
    #[serde(skip)]
    pub steps: Vec<u64>,
    /// What is drawn: `80% containers=u(1,4) objects=u(1,10)`, as COSBench has it.
    #[serde(skip)]
    pub names: String,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct TimesReport {
    /// The mean.
    pub mean: f64,
    /// The times that so many per cent do not exceed.
    pub percentiles: BTreeMap<String, f64>,
    /// The longest.
    pub longest: f64,
}

/// What ended in an interval.
#[derive(Debug, Serialize)]
pub struct IntervalReport {
    /// Its end, in seconds from the start of the work.
    pub until: f64,
    /// By operation, in the order of the work's.
    pub operations: Vec<IntervalOperation>,
    /// Of all operations, for pictures.
    #[serde(skip)]
    pub latency: TimesReport,
    /// Of all operations, for phases.
    #[serde(skip)]
    pub latencies: Latencies,
    /// Counts of all operations by tenths of a decade of latency, for pictures.
    #[serde(skip)]
    pub spread: BTreeMap<i32, u64>,
}

/// Of an operation in an interval.
#[derive(Debug, Serialize)]
pub struct IntervalOperation {
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Of bodies of requests that succeeded.
    pub bytes: u64,
    /// Mean latency in milliseconds.
    pub mean: f64,
    /// Mean time to the first byte, in milliseconds.
    pub first_byte: f64,
    /// The latency that 99 of 100 do not exceed, in milliseconds.
    pub p99: f64,
}

/// Percentiles that reports have: COSBench's and those of long tails.
pub const PERCENTILES: [(&str, f64); 8] = [
    ("50", 50.0),
    ("60", 60.0),
    ("80", 80.0),
    ("90", 90.0),
    ("95", 95.0),
    ("99", 99.0),
    ("99.9", 99.9),
    ("99.99", 99.99),
];

fn millis(time: Duration) -> f64 {
    // To a tenth of a microsecond: more digits were not measured.
    (time.as_secs_f64() * 1e7).round() / 1e4
}

impl TimesReport {
    pub(crate) fn of(times: &Latencies) -> Self {
        Self {
            mean: millis(times.mean()),
            percentiles: PERCENTILES
                .iter()
                .map(|(name, percent)| ((*name).to_owned(), millis(times.percentile(*percent))))
                .collect(),
            longest: millis(times.longest()),
        }
    }

    /// One of [`PERCENTILES`].
    pub fn at(&self, name: &str) -> f64 {
        self.percentiles.get(name).copied().unwrap_or(0.0)
    }
}

impl OperationReport {
    fn of(id: &str, kind: &str, figures: &OperationFigures, measured: Duration) -> Self {
        let seconds = measured.as_secs_f64().max(1e-9);
        Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            succeeded: figures.succeeded,
            failed: figures.failed(),
            failures: figures
                .failures
                .iter()
                .map(|(why, count)| (why.to_string(), *count))
                .collect(),
            bytes: figures.bytes,
            rate: figures.succeeded as f64 / seconds,
            bandwidth: figures.bytes as f64 / seconds,
            latency: TimesReport::of(&figures.latency),
            first_byte: TimesReport::of(&figures.first_byte),
            steps: figures.latency.steps(cosbench::STEP),
            names: String::new(),
        }
    }

    /// Of all requests, the share that succeeded, from 0 to 1; none where there was no request.
    pub fn success_ratio(&self) -> Option<f64> {
        let all = self.succeeded + self.failed;
        (all > 0).then(|| self.succeeded as f64 / all as f64)
    }
}

impl WorkReport {
    /// What came of a work.
    pub fn of(work: &Work, result: &WorkResult) -> Self {
        let total = result.figures.total();
        let busy = result.cpu.as_secs_f64() / (result.lasted.as_secs_f64().max(1e-9) * result.threads as f64);
        let operations = work.operations.iter().zip(&result.figures.counted);
        Self {
            name: work.name.clone(),
            kind: work.kind.name(),
            workers: work.workers,
            rate: match work.arrivals {
                Arrivals::AsAnswered => None,
                Arrivals::Constant(rate) | Arrivals::Poisson(rate) => Some(rate),
            },
            measured: result.measured.as_secs_f64(),
            client_load: busy.min(1.0),
            client_is_limit: busy > BUSY,
            has_failed: total.failure_rate() > f64::from(work.accepted_failures),
            operations: operations
                .map(|(operation, figures)| OperationReport {
                    names: operation.drawn(),
                    ..OperationReport::of(&operation.id, operation.kind.name(), figures, result.measured)
                })
                .collect(),
            over_time: intervals(result),
            total: OperationReport::of("all", "all", &total, result.measured),
        }
    }
}

fn intervals(result: &WorkResult) -> Vec<IntervalReport> {
    let length = result.figures.interval().as_secs_f64();
    let of = |figures: &OperationFigures| IntervalOperation {
        succeeded: figures.succeeded,
        failed: figures.failed(),
        bytes: figures.bytes,
        mean: millis(figures.latency.mean()),
        first_byte: millis(figures.first_byte.mean()),
        p99: millis(figures.latency.percentile(99.0)),
    };
    let steps = result.figures.over_time.iter().enumerate();
    steps
        .map(|(at, step)| {
            let mut all = Latencies::default();
            step.iter().for_each(|one| all.merge(&one.latency));
            IntervalReport {
                until: length * (at + 1) as f64,
                operations: step.iter().map(of).collect(),
                latency: TimesReport::of(&all),
                spread: all.spread(),
                latencies: all,
            }
        })
        .collect()
}
