//! `martlet bench`: the command line.

use crate::benchmark::{Prepared, prepare, read_workload};
use crate::rate_search;
use crate::report::compare::{Verdict, compare};
use crate::workload::Workload;
use crate::workload::named::{self, Extent};
use crate::workload::own_format;
use clap::{Args, Subcommand};
use operator_tools::{Console, ToolStatus};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// Reports that are longer are refused.
const LONGEST_REPORT: u64 = 1 << 30;

/// `martlet bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Run a workload against a store and report how it went.
    ///
    /// WORKLOAD is a file (COSBench's XML, or TOML) or the name of a workload that `martlet bench list` shows. The
    /// exit status is 1 when more requests failed than the workload accepts.
    Run(Box<RunArguments>),
    /// Find the highest rate that a store bears: the workload's normal works become open loops whose rate is raised
    /// until the store no longer answers as fast as --p99 asks, or fails more often than --errors allows.
    Search(Box<SearchArguments>),
    /// Say whether the second of two runs is better or worse, and how sure that is (reports of `run --json`).
    ///
    /// The exit status is 1 when it is worse.
    Compare(CompareArguments),
    /// Read a workload and say what it would do, without doing it.
    Check(CheckArguments),
    /// List the named workloads.
    List,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// A file, or a name.
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    #[command(flatten)]
    extent: ExtentArguments,
    /// Print a named workload as the file it could be.
    #[arg(long)]
    print: bool,
}

/// How large a named workload is.
#[derive(Debug, Args)]
pub(crate) struct ExtentArguments {
    /// Of a named workload: containers.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    containers: u64,
    /// Of a named workload: objects in each container before the load.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..1_000_000_000_000))]
    objects: u64,
    /// Of a named workload: requests under way at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..100_000))]
    workers: u32,
    /// Of a named workload: how long the store is loaded, as 60s or 5m.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    runtime: String,
    /// Of a named workload: requests a second, whatever the store does (an open loop).
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// The report of the first run.
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// The report of the second run.
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
}

/// `martlet bench search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// The latency that 99 of 100 requests may not exceed.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    pub(crate) p99: Duration,
    /// Of a hundred requests, how many may fail.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    pub(crate) errors: f64,
    /// How long each rate is tried.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) step: Duration,
    /// The rate to begin with.
    #[arg(long, value_name = "N", default_value_t = 100.0)]
    pub(crate) from: f64,
    /// Requests at equal distances, instead of at random ones.
    #[arg(long)]
    pub(crate) constant: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    own_format::duration("TIME", text).map_err(|mistake| mistake.to_string())
}

/// `martlet bench run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A file, or a name.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    /// Where a token is had (Swift 1.0, as TempAuth), instead of what the workload says.
    #[arg(short = 'A', long, value_name = "URL")]
    pub(crate) auth: Option<String>,
    /// The user.
    #[arg(short = 'U', long, value_name = "USER", requires = "auth")]
    pub(crate) user: Option<String>,
    /// The password.
    #[arg(short = 'K', long, value_name = "KEY", requires = "auth")]
    pub(crate) key: Option<String>,
    /// Storage policy of the containers that are made.
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Storage of another type than the workload's: mock or none, with parameters: mock:delay=1;capacity=1000.
    #[arg(long, value_name = "TYPE[:PARAMETERS]")]
    pub(crate) storage: Option<String>,
    /// Do not verify certificates.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Authorities in PEM that vouch for the store's certificate.
    #[arg(long, value_name = "FILE")]
    pub(crate) cafile: Option<PathBuf>,
    /// Compare every body that is read with what was written.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Write to containers that no benchmark has made, and delete in them.
    #[arg(long)]
    pub(crate) anything_goes: bool,
    /// What all dice begin with; by chance otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads for each work; one for each processor otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Run only these stages, by their names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) stages: Vec<String>,
    /// Write everything to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write COSBench's files into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,
    /// Number of the run, in names of COSBench's files.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) run: u32,
}

impl ExtentArguments {
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            containers: self.containers,
            objects: self.objects,
            workers: self.workers,
            runtime: self.runtime.clone(),
            rate: self.rate,
        }
    }
}

/// Does what the command line says; `interrupted` completes when the user has had enough.
pub async fn run(
    arguments: &BenchArguments,
    world: &World,
    console: &mut Console<'_>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<ToolStatus> {
    let done = match &arguments.command {
        BenchCommand::List => {
            for one in named::ALL {
                console.say(format_args!("{:<14} {}", one.name, one.about))?;
            }
            return Ok(ToolStatus::SUCCESS);
        }
        BenchCommand::Check(check) => match read_workload(world, &check.workload, &check.extent.extent()) {
            Ok((_, source)) if check.print => return console.say(source.trim_end()).map(|()| ToolStatus::SUCCESS),
            Ok((workload, _)) => return console.say(outline(&workload)).map(|()| ToolStatus::SUCCESS),
            Err(fault) => fault,
        },
        BenchCommand::Run(run) => match prepare(run, world).await {
            Ok(prepared) => return Prepared::run(prepared, run, world, console, interrupted).await,
            Err(fault) => fault,
        },
        BenchCommand::Search(search) => match prepare(&search.run, world).await {
            Ok(prepared) => return rate_search::run(prepared, search, world, console, interrupted).await,
            Err(fault) => fault,
        },
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

fn say_comparisons(
    comparisons: &[crate::report::compare::Comparison],
    console: &mut Console<'_>,
) -> io::Result<ToolStatus> {
    let mut status = ToolStatus::SUCCESS;
    console.say(format_args!(
        "{:<36} {:>11} {:>11} {:>7}  95 % of the ratio",
        "", "before", "after", "ratio"
    ))?;
    for one in comparisons {
        let verdict = match one.verdict() {
            Verdict::Better => "better",
            Verdict::Worse => {
                status = ToolStatus::FAILURE;
                "worse"
            }
            Verdict::NoDifference => "no difference",
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
