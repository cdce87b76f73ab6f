//! What comes back from one driver of a stage, and how the parts become one.
//!
//! Always holds: figures are taken only of works that the driver was given, operations that they have and steps that
//! can have passed; a part counts once it is whole.

use super::message::{CountedOperation, DoneWork, StageOrder};
use crate::figures::WorkFigures;
use crate::load::WorkResult;
use crate::report::DriverReport;
use crate::workload::{Stage, Work};
use std::time::Duration;
use vocabulary::Fault;

/// Steps over time may reach so much further than the controller's own measure.
const SLACK: Duration = Duration::from_secs(60);
/// Threads and times that are believed.
const MOST_THREADS: usize = 1 << 16;
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Works of a stage as one driver did them.
pub(super) struct StagePart {
    works: Vec<PartOfWork>,
    /// When they were to begin, by the controller's measure.
    pub(super) begins: Duration,
}

struct PartOfWork {
    work: usize,
    result: WorkResult,
    is_done: bool,
}

impl StagePart {
    /// Nothing yet, of what was ordered; `now` is the controller's.
    pub(super) fn of(stage: &Stage, order: &StageOrder, begins: Duration) -> Self {
        let works = order.works.iter().filter_map(|ordered| {
            let work = stage.works.get(ordered.work)?;
            Some(PartOfWork {
                work: ordered.work,
                result: nothing(work),
                is_done: false,
            })
        });
        Self {
            works: works.collect(),
            begins,
        }
    }

    fn find(&mut self, work: usize) -> Result<&mut PartOfWork, Fault> {
        let found = self.works.iter_mut().find(|part| part.work == work);
        found.ok_or_else(|| Fault::peer("it spoke of a work that it was not given"))
    }

    /// Takes what is known of a work beside its figures.
    pub(super) fn work_done(&mut self, done: &DoneWork) -> Result<(), Fault> {
        let part = self.find(done.work)?;
        let times = [done.measured, done.cpu, done.lasted];
        if part.is_done || done.threads > MOST_THREADS || times.iter().any(|time| *time > LONGEST) {
            return Err(Fault::peer("its figures cannot be"));
        }
        part.is_done = true;
        part.result.measured = done.measured;
        part.result.cpu = done.cpu;
        part.result.lasted = done.lasted;
        part.result.threads = done.threads;
        Ok(())
    }

    /// Takes figures of an operation; `now` is the controller's.
    pub(super) fn count(&mut self, counted: &CountedOperation, now: Duration) -> Result<(), Fault> {
        let wrong = || Fault::peer("its figures cannot be");
        let passed = now.saturating_sub(self.begins) + SLACK;
        let part = self.find(counted.work)?;
        let figures = counted.figures().ok_or_else(wrong)?;
        let most = passed.as_nanos() / part.result.figures.interval().as_nanos().max(1);
        let is_past = counted.step.is_none_or(|step| step as u128 <= most);
        match is_past && part.result.figures.add(counted.step, counted.operation, &figures) {
            true => Ok(()),
            false => Err(wrong()),
        }
    }

    /// Whether all works have come.
    pub(super) fn done(&self) -> Result<(), Fault> {
        match self.works.iter().all(|part| part.is_done) {
            true => Ok(()),
            false => Err(Fault::peer("it left out a work")),
        }
    }

    /// Adds it to what is reported of the driver.
    pub(super) fn tell(&self, report: &mut DriverReport) {
        for part in &self.works {
            let total = part.result.figures.total();
            report.succeeded += total.succeeded;
            report.failed += total.failed();
            report.bytes += total.bytes;
        }
    }
}

fn nothing(work: &Work) -> WorkResult {
    WorkResult {
        figures: WorkFigures::new(work.operations.len(), work.interval),
        measured: Duration::ZERO,
        cpu: Duration::ZERO,
        lasted: Duration::ZERO,
        threads: 1,
    }
}

/// Of what share of its threads' time a part was busy.
fn busy(result: &WorkResult) -> f64 {
    result.cpu.as_secs_f64() / (result.lasted.as_secs_f64().max(1e-9) * result.threads.max(1) as f64)
}

/// Work `at` of a stage as all drivers did it: figures are added, it was measured as long as the longest of them, and
/// the client was as busy as the busiest of them.
pub(super) fn merged(work: &Work, at: usize, parts: &[StagePart]) -> WorkResult {
    let mut all = nothing(work);
    for part in parts.iter().flat_map(|part| &part.works).filter(|part| part.work == at) {
        let one = &part.result;
        all.figures.merge(&one.figures);
        all.measured = all.measured.max(one.measured);
        if busy(one) >= busy(&all) {
            (all.cpu, all.lasted, all.threads) = (one.cpu, one.lasted, one.threads);
        }
    }
    all
}
