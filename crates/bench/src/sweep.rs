//! `martlet bench sweep`: one workload with several numbers of workers, sizes, containers and endpoints.
//!
//! For each size, number of containers and number of endpoints the workload runs once, from its making of containers to
//! their end; its stages of normal works run within that, once for each number of workers.
//! Always holds: what is compared differs in nothing but the swept dimensions; a point that was measured is in the
//! report, also when a later one fails or the sweep is interrupted.

use crate::arguments::{RunArguments, SweepArguments};
use crate::benchmark::{Prepared, prepare, write_file};
use crate::load::LoadWatch;
use crate::report::sweep::{SweepPoint, SweepReport, page};
use crate::workload::{Stage, WorkKind, named};
use operator_tools::{Console, ToolStatus};
use std::io;
use std::sync::Arc;
use vocabulary::Fault;
use world::World;

/// Runs the sweep.
pub async fn run(
    arguments: &SweepArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let runs = match runs(arguments) {
        Ok(runs) => runs,
        Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
    };
    let mut sweep = Sweep {
        world,
        workers: &arguments.over_workers,
        watch: Arc::new(LoadWatch::default()),
        report: SweepReport::of(&arguments.run.workload),
    };
    console.say(SweepPoint::heading())?;
    let mut interrupted = std::pin::pin!(interrupted);
    let mut status = ToolStatus::SUCCESS;
    for run in &runs {
        let watch = sweep.watch.clone();
        let preparation = tokio::select! {
            prepared = sweep.prepare(run) => prepared.map(Some),
            () = &mut interrupted => Ok(None),
        };
        let done = match preparation {
            Ok(Some(prepared)) => {
                let mut running = std::pin::pin!(sweep.run_once(run, prepared, console));
                loop {
                    tokio::select! {
                        done = &mut running => break done?,
                        () = &mut interrupted, if !watch.is_stopped() => watch.stop(),
                    }
                }
            }
            Ok(None) => {
                watch.stop();
                Ok(())
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = done {
            console.complain(fault)?;
            status = ToolStatus::FAILURE;
            break;
        }
        if watch.is_stopped() {
            console.complain("interrupted: the points above were measured; what was made is still there")?;
            (status, sweep.report.interrupted) = (ToolStatus::FAILURE, true);
            break;
        }
    }
    if sweep.report.points.iter().any(|point| point.has_failed) {
        status = ToolStatus::FAILURE;
    }
    match write_files(&arguments.run, world, &sweep.report) {
        Ok(()) => Ok(status),
        Err(fault) => console.complain(fault).map(|()| ToolStatus::FAILURE),
    }
}

/// The runs: every size with every number of containers and of endpoints.
fn runs(arguments: &SweepArguments) -> Result<Vec<RunArguments>, Fault> {
    let run = &arguments.run;
    if run.record.is_some() {
        return Err(Fault::caller(
            "--record: a sweep has a report of its points, and no record",
        ));
    }
    let is_named = named::ALL
        .iter()
        .any(|one| one.name.eq_ignore_ascii_case(&run.workload));
    let more = [
        ("--over-sizes", arguments.over_sizes.is_empty()),
        ("--over-containers", arguments.over_containers.is_empty()),
        ("--endpoints", run.extent.endpoints.is_empty()),
    ];
    if let Some((option, _)) = more.iter().find(|(_, is_empty)| !is_named && !is_empty) {
        return Err(Fault::caller(format!(
            "{option}: expected a named workload (`martlet bench list`); of a file only --over-workers is swept"
        )));
    }
    let sizes: Vec<Option<String>> = match arguments.over_sizes.is_empty() {
        true => vec![run.extent.sizes.clone()],
        false => arguments.over_sizes.iter().cloned().map(Some).collect(),
    };
    let containers = match arguments.over_containers.is_empty() {
        true => vec![run.extent.containers],
        false => arguments.over_containers.clone(),
    };
    let endpoints = 1..=run.extent.endpoints.len().max(1);
    let mut runs = vec![];
    for endpoints in endpoints {
        for containers in &containers {
            for sizes in &sizes {
                let mut run = run.clone();
                run.extent.containers = *containers;
                run.extent.sizes.clone_from(sizes);
                run.extent.endpoints.truncate(endpoints);
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

struct Sweep<'a> {
    world: &'a World,
    workers: &'a [u32],
    watch: Arc<LoadWatch>,
    report: SweepReport,
}

impl Sweep<'_> {
    /// Gets one run of the workload ready.
    async fn prepare(&self, run: &RunArguments) -> Result<Prepared, Fault> {
        let arguments = RunArguments {
            json: None,
            html: None,
            csv: None,
            ..run.clone()
        };
        prepare(&arguments, self.world)
            .await
            .and_then(Prepared::without_filling)
    }

    /// Runs a workload from its first stage to its last one.
    async fn run_once(
        &mut self,
        run: &RunArguments,
        mut prepared: Prepared,
        console: &mut Console<'_>,
    ) -> io::Result<Result<(), Fault>> {
        let done = self.stages(run, &mut prepared, console).await;
        // There is no record that could have failed.
        let _ = prepared.runner.dismiss().await;
        done
    }

    /// Runs the stages of a workload, those that are swept once for each number of workers.
    async fn stages(
        &mut self,
        run: &RunArguments,
        prepared: &mut Prepared,
        console: &mut Console<'_>,
    ) -> io::Result<Result<(), Fault>> {
        let notices = prepared.runner.notices();
        for (at, stage) in prepared.workload.stages.iter().enumerate() {
            let is_swept = stage.works.iter().any(|work| work.kind == WorkKind::Normal);
            let workers: Vec<Option<u32>> = match is_swept && !self.workers.is_empty() {
                true => self.workers.iter().copied().map(Some).collect(),
                false => vec![None],
            };
            for workers in workers {
                let stage = with_workers(stage, workers);
                let report = match prepared.runner.run_stage(self.world, at, &stage, &self.watch).await {
                    Ok(report) => report,
                    Err(fault) => return Ok(Err(fault)),
                };
                self.world.clock.sleep(stage.closure_delay).await;
                if let Some(lost) = notices.take().pop() {
                    return Ok(Err(Fault::peer(format!("{lost}: its point would be another one"))));
                }
                if self.watch.is_stopped() {
                    return Ok(Ok(()));
                }
                for work in report.works.iter().filter(|_| is_swept) {
                    let point = SweepPoint::of(run, &report.name, work);
                    console.say(&point)?;
                    console.out.flush()?;
                    self.report.points.push(point);
                }
                if !is_swept && let Some(work) = report.works.iter().find(|work| work.has_failed) {
                    let failures: Vec<String> = work.total.failures.keys().cloned().collect();
                    return Ok(Err(Fault::peer(format!(
                        "{} / {}: more requests failed than it accepts ({})",
                        report.name,
                        work.name,
                        failures.join(", ")
                    ))));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// A stage whose normal works have so many workers each.
fn with_workers(stage: &Stage, workers: Option<u32>) -> Stage {
    let mut stage = stage.clone();
    if let Some(workers) = workers {
        stage.works.iter_mut().for_each(|work| work.workers = workers);
    }
    stage
}

fn write_files(arguments: &RunArguments, world: &World, report: &SweepReport) -> Result<(), Fault> {
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(report).map_err(|error| Fault::caller(format!("JSON: {error}")))?;
        write_file(world, path, &(text + "\n"))?;
    }
    if let Some(path) = &arguments.html {
        write_file(world, path, &page(report)?)?;
    }
    if let Some(folder) = &arguments.csv {
        let made = world.files.make_directory(folder);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(Fault::caller(format!("{}: {error}", folder.display())));
        }
        write_file(world, &folder.join("sweep.csv"), &report.csv())?;
    }
    Ok(())
}
