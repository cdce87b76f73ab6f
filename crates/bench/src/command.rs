//! `martlet bench`: what its commands do.

use crate::arguments::{BenchArguments, BenchCommand, CompareArguments};
use crate::benchmark::{Prepared, end_record, prepare, read_workload, unless_interrupted};
use crate::drivers::serve;
use crate::rate_search;
use crate::record::reading;
use crate::report::compare::{Comparison, ComparisonVerdict, compare};
use crate::sweep;
use crate::swift_bench;
use crate::workload::{Workload, named};
use operator_tools::{Console, ToolStatus};
use std::io;
use std::path::Path;
use vocabulary::Fault;
use world::World;

/// Reports that are longer are refused.
const LONGEST_REPORT: u64 = 1 << 30;

/// Does what the command line says; `interrupted` completes when the user has had enough.
pub async fn run(
    arguments: &BenchArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let mut interrupted = std::pin::pin!(interrupted);
    let done = match &arguments.command {
        BenchCommand::List => {
            for one in named::ALL {
                console.say(format_args!("{:<14} {}", one.name, one.about))?;
            }
            let about = "a proxy's access log again: --log FILE, --speed FACTOR";
            console.say(format_args!("{:<14} {about}", named::REPLAY))?;
            return Ok(ToolStatus::SUCCESS);
        }
        BenchCommand::Swift(arguments) => return swift_bench::run(arguments, world, console, interrupted).await,
        BenchCommand::Records(arguments) => return reading::run(arguments, world, console, interrupted).await,
        BenchCommand::Driver(arguments) => return serve::run(arguments, world, console, interrupted).await,
        BenchCommand::Check(check) => match read_workload(world, &check.workload, &check.extent.extent()) {
            Ok((_, source)) if check.print => return console.say(source.trim_end()).map(|()| ToolStatus::SUCCESS),
            Ok((workload, _)) => return console.say(outline(&workload)).map(|()| ToolStatus::SUCCESS),
            Err(fault) => fault,
        },
        BenchCommand::Run(run) => match unless_interrupted(prepare(run, world), interrupted.as_mut()).await {
            Ok(prepared) => return Prepared::run(prepared, run, world, console, interrupted).await,
            Err(fault) => fault,
        },
        BenchCommand::Search(search) => {
            let prepared = unless_interrupted(prepare(&search.run, world), interrupted.as_mut()).await;
            let mut prepared = match prepared.and_then(rate_search::searchable) {
                Ok(prepared) => prepared,
                Err(fault) => return console.complain(fault).map(|()| ToolStatus::FAILURE),
            };
            let status = rate_search::run(&mut prepared, search, world, console, interrupted).await?;
            return match end_record(prepared.runner.dismiss().await, console)? {
                ToolStatus::SUCCESS => Ok(status),
                failed => Ok(failed),
            };
        }
        BenchCommand::Sweep(arguments) => return sweep::run(arguments, world, console, interrupted).await,
        BenchCommand::Compare(arguments) => match read_reports(world, arguments).and_then(|(a, b)| compare(&a, &b)) {
            Ok(comparisons) => return say_comparisons(&comparisons, console),
            Err(fault) => fault,
        },
    };
    console.complain(done).map(|()| ToolStatus::FAILURE)
}

fn read_reports(world: &World, arguments: &CompareArguments) -> Result<(serde_json::Value, serde_json::Value), Fault> {
    let read = |path: &Path| {
        let failed = |error: &dyn std::fmt::Display| Fault::caller(format!("{}: {error}", path.display()));
        let bytes = world.files.read(path, LONGEST_REPORT).map_err(|error| failed(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| failed(&format_args!("expected a report of `run --json`: {error}")))
    };
    Ok((read(&arguments.before)?, read(&arguments.after)?))
}

fn say_comparisons(comparisons: &[Comparison], console: &mut Console<'_>) -> io::Result<ToolStatus> {
    let mut status = ToolStatus::SUCCESS;
    console.say(format_args!(
        "{:<36} {:>11} {:>11} {:>7}  95 % of the ratio",
        "", "before", "after", "ratio"
    ))?;
    for one in comparisons {
        let verdict = match one.verdict() {
            ComparisonVerdict::Better => "better",
            ComparisonVerdict::Worse => {
                status = ToolStatus::FAILURE;
                "worse"
            }
            ComparisonVerdict::NoDifference => "no difference",
        };
        let (low, high) = one.interval;
        console.say(format_args!(
            "{:<36} {:>11.2} {:>11.2} {:>7.3}  {low:.3} to {high:.3}: {verdict}",
            one.what, one.before, one.after, one.ratio
        ))?;
    }
    Ok(status)
}

/// What a workload would do, as lines.
fn outline(workload: &Workload) -> String {
    let mut lines = vec![format!("{}: {}", workload.name, workload.description)];
    for stage in &workload.stages {
        for work in &stage.works {
            let storage = match work.storage.kind.as_str() {
                "" => "none",
                kind => kind,
            };
            lines.push(format!(
                "  {} / {}: {} workers on {storage}",
                stage.name, work.name, work.workers
            ));
            for one in &work.operations {
                let size = one
                    .sizes
                    .as_ref()
                    .map_or(String::new(), |sizes| format!(", {:.0} bytes on average", sizes.mean()));
                lines.push(format!("    {:>3} % {}{size}", one.ratio, one.kind.name()));
            }
        }
    }
    lines.join("\n")
}
