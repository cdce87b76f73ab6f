//! `martlet bench search`: the highest rate that a store bears.
//!
//! Stages of special works run as they are; in each stage of normal ones these become open loops, which are run for a
//! while at each rate that the search asks for (`load/search.rs`).
//! Always holds: a rate counts as borne only when the store did all that was asked at that rate, fast enough and with
//! few enough failures.

use crate::arguments::SearchArguments;
use crate::benchmark::Prepared;
use crate::load::LoadWatch;
use crate::load::search::RateSearch;
use crate::report::StageReport;
use crate::workload::{Arrivals, Stage, WorkEnd, WorkKind};
use operator_tools::{Console, ToolStatus};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Of what was asked for: less was done by a store that falls behind.
const ALL_DONE: f64 = 0.97;
/// Before a rate is measured.
const RAMP_UP: Duration = Duration::from_secs(1);

/// Refuses workloads whose rate cannot be chosen.
pub fn searchable(prepared: Prepared) -> Result<Prepared, Fault> {
    match prepared.workload.replay.is_some() {
        true => Err(Fault::caller(
            "a replay has the rate of its log: run it at several --speed",
        )),
        false => prepared.without_filling(),
    }
}

/// Runs the search.
pub async fn run(
    prepared: &mut Prepared,
    arguments: &SearchArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let (watch, notices) = (Arc::new(LoadWatch::default()), prepared.runner.notices());
    let mut interrupted = std::pin::pin!(interrupted);
    let mut status = ToolStatus::SUCCESS;
    for (at, stage) in prepared.workload.stages.iter().enumerate() {
        let is_searched = stage.works.iter().any(|work| work.kind == WorkKind::Normal);
        let mut search = RateSearch::new(arguments.from);
        while let Some(rate) = search.next_rate() {
            let tried = if is_searched {
                at_rate(stage, rate, arguments)
            } else {
                stage.clone()
            };
            let running = prepared.runner.run_stage(world, at, &tried, &watch);
            let mut running = std::pin::pin!(running);
            let finished = loop {
                tokio::select! {
                    finished = &mut running => break finished,
                    () = &mut interrupted, if !watch.is_stopped() => watch.stop(),
                }
            };
            let report = match finished {
                Ok(report) => report,
                Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
            };
            if watch.is_stopped() {
                console.complain("interrupted: the rates above were tried until then; what was made is still there")?;
                return Ok(ToolStatus::FAILURE);
            }
            let lost = notices.take();
            if !lost.is_empty() {
                lost.iter().try_for_each(|line| console.complain(line))?;
                console.complain("a rate that fewer drivers bear is another one: the search ends here")?;
                return Ok(ToolStatus::FAILURE);
            }
            if !is_searched {
                break;
            }
            let is_borne = judge(&report, rate, arguments, console)?;
            search.tell(rate, is_borne);
        }
        if is_searched {
            match search.borne() {
                Some(rate) => console.say(format_args!(
                    "{}: bears {rate:.1} requests a second with p99 up to {:?} and {} % errors",
                    stage.name, arguments.p99, arguments.errors
                ))?,
                None => {
                    status = ToolStatus::FAILURE;
                    console.complain(format_args!(
                        "{}: no rate was borne, not even one request a second",
                        stage.name
                    ))?;
                }
            }
        }
    }
    Ok(status)
}

/// The stage with open loops of this rate, which its normal works share by their workers.
fn at_rate(stage: &Stage, rate: f64, arguments: &SearchArguments) -> Stage {
    let mut stage = stage.clone();
    let workers: u32 = stage.works.iter().map(|work| work.workers).sum();
    for work in &mut stage.works {
        let rate = rate * f64::from(work.workers) / f64::from(workers.max(1));
        work.arrivals = if arguments.constant {
            Arrivals::Constant(rate)
        } else {
            Arrivals::Poisson(rate)
        };
        work.end = WorkEnd::After(arguments.step);
        (work.ramp_up, work.ramp_down) = (RAMP_UP, Duration::ZERO);
    }
    stage
}

/// Whether a rate was borne, and a line about it.
fn judge(report: &StageReport, rate: f64, arguments: &SearchArguments, console: &mut Console<'_>) -> io::Result<bool> {
    let (mut done, mut failed, mut p99): (f64, u64, f64) = (0.0, 0, 0.0);
    let mut succeeded = 0;
    for work in &report.works {
        done += work.total.rate;
        failed += work.total.failed;
        succeeded += work.total.succeeded;
        p99 = p99.max(work.total.latency.at("99"));
    }
    let errors = failed as f64 / (failed + succeeded).max(1) as f64 * 100.0;
    let limit = arguments.p99.as_secs_f64() * 1000.0;
    let is_borne = p99 <= limit && errors <= arguments.errors && done >= rate * ALL_DONE;
    let verdict = if is_borne { "borne" } else { "too much" };
    console.say(format_args!(
        "{rate:>10.1} asked for: {done:>10.1} op/s, p99 {p99:>9.2} ms, {errors:.2} % errors: {verdict}"
    ))?;
    console.out.flush()?;
    Ok(is_borne)
}
