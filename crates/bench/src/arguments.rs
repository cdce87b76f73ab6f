//! The command line of `martlet bench`: its commands and their options.

use crate::drivers::addresses::host_and_port;
use crate::swift_bench::options::SwiftBenchArguments;
use crate::workload::named::Extent;
use crate::workload::own_format;
use crate::workload::size::{Sizes, bytes};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// `martlet bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run a workload against a store and report how it went.
    ///
    /// WORKLOAD is a file (COSBench's XML, or TOML) or the name of a workload that `martlet bench list` shows. The
    /// exit status is 1 when more requests failed than the workload accepts.
    Run(Box<RunArguments>),
    /// Find the highest rate that a store bears: the workload's normal works become open loops whose rate is raised
    /// until the store no longer answers as fast as --p99 asks, or fails more often than --errors allows.
    Search(Box<SearchArguments>),
    /// Run a workload with several numbers of workers, sizes, containers and endpoints, as one table and picture.
    ///
    /// --json, --html and --csv (a folder, for sweep.csv) are those of the sweep. The exit status is 1 when more
    /// requests failed than the workload accepts.
    Sweep(Box<SweepArguments>),
    /// Say whether the second of two runs is better or worse, and how sure that is (reports of `run --json`).
    ///
    /// The exit status is 1 when it is worse.
    Compare(CompareArguments),
    /// Read a workload and say what it would do, without doing it.
    Check(CheckArguments),
    /// Summarise a record of every operation (`run --record`), or write it as CSV.
    ///
    /// The exit status is 1 when the file ends in its middle; what was read until then is shown.
    Records(RecordsArguments),
    /// List the named workloads.
    List,
    /// Wait for a run that names this driver (`run --drivers`), and do a part of its load.
    ///
    /// One run at a time. Both ends have the same secret in a file.
    Driver(DriverArguments),
    /// Write, read and delete objects as swift-bench does, with its options, its file and its output.
    Swift(Box<SwiftBenchArguments>),
}

/// `martlet bench check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// A file, or a name.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    /// Print a named workload as the file it could be.
    #[arg(long)]
    pub(crate) print: bool,
}

/// How large a named workload is.
#[derive(Debug, Clone, Args)]
pub struct ExtentArguments {
    /// Of a named workload: containers.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) containers: u64,
    /// Of a named workload: objects in each container before the load.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    pub(crate) objects: u64,
    /// Of a named workload: requests under way at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..100_000))]
    pub(crate) workers: u32,
    /// Of a named workload: how long the store is loaded, as 60s or 5m.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) runtime: String,
    /// Of a named workload: sizes of objects instead of its own, as c(64)KB or u(1,10)MB.
    #[arg(long, value_name = "SIZES")]
    pub(crate) sizes: Option<String>,
    /// Of a named workload: addresses of the store, of Swift's API, that workers are spread over, as
    /// http://a:8080,http://b:8080. A sweep takes the first one, then the first two, up to all.
    #[arg(long, value_name = "URL,URL", value_delimiter = ',')]
    pub(crate) endpoints: Vec<String>,
    /// Of a named workload: fill devices before the load until they are so full, as 60% (with --recon).
    #[arg(long, value_name = "SHARE", requires = "recon")]
    pub(crate) full: Option<String>,
    /// Of a named workload: recon of the storage servers, as http://a:6200/recon,http://b:6200/recon.
    #[arg(long, value_name = "URL,URL", value_delimiter = ',', requires = "full")]
    pub(crate) recon: Vec<String>,
    /// Of `replay`: the log whose requests are sent, a proxy's access log, plain or .gz.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<String>,
    /// Of `replay`: how much faster than they came requests are sent; max: as fast as the store answers.
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub(crate) speed: String,
    /// Of a named workload: requests a second, whatever the store does (an open loop).
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<f64>,
}

/// `martlet bench compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The report of the first run.
    #[arg(value_name = "BEFORE.json")]
    pub(crate) before: PathBuf,
    /// The report of the second run.
    #[arg(value_name = "AFTER.json")]
    pub(crate) after: PathBuf,
}

/// `martlet bench records`.
#[derive(Debug, Args)]
pub struct RecordsArguments {
    /// The record.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write its rows as CSV, instead of a summary.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Only those of this stage.
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<String>,
    /// Only those of this kind: read, write and so on.
    #[arg(long, value_name = "KIND")]
    pub(crate) operation: Option<String>,
    /// Only those that failed.
    #[arg(long)]
    pub(crate) failed: bool,
}

/// `martlet bench driver`.
#[derive(Debug, Args)]
pub struct DriverArguments {
    /// Where controllers connect to.
    #[arg(long, value_name = "HOST:PORT", value_parser = listening)]
    pub(crate) listen: (String, u16),
    /// The secret that this driver and its controllers share: 16 bytes or more.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: PathBuf,
    /// Let workloads send files of this folder and those below it (filewrite); none otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) files: Option<PathBuf>,
    /// Threads for each work; one for each processor otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Authorities in PEM that vouch for the store's certificate.
    #[arg(long, value_name = "FILE")]
    pub(crate) cafile: Option<PathBuf>,
}

/// Drivers that make the load in place of this process.
#[derive(Debug, Clone, Args)]
pub struct FleetArguments {
    /// Have these drivers make the load: HOST:PORT or NAME=HOST:PORT, with commas between.
    #[arg(long, value_name = "DRIVER", value_delimiter = ',', requires = "secret_file")]
    #[arg(conflicts_with_all = ["threads", "cafile"])]
    pub(crate) drivers: Vec<String>,
    /// Have the drivers of this file make the load, one a line.
    #[arg(long, value_name = "FILE", requires = "secret_file", conflicts_with_all = ["drivers", "threads", "cafile"])]
    pub(crate) drivers_file: Option<PathBuf>,
    /// The secret that this program and the drivers share: 16 bytes or more.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// How far the clock of a driver may be from this one's.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    pub(crate) clock_bound: Duration,
}

fn listening(text: &str) -> Result<(String, u16), String> {
    host_and_port(text).ok_or_else(|| "expected HOST:PORT, such as 0.0.0.0:9700".to_owned())
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

/// `martlet bench sweep`.
#[derive(Debug, Args)]
pub struct SweepArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Numbers of workers, of each work that loads the store: 1,4,16.
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..100_000))]
    pub(crate) over_workers: Vec<u32>,
    /// Of a named workload: sizes of objects, as 4KB,1MB.
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',', value_parser = size)]
    pub(crate) over_sizes: Vec<String>,
    /// Of a named workload: numbers of containers.
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) over_containers: Vec<u64>,
}

/// `64KB` as a selector.
fn size(text: &str) -> Result<String, String> {
    let bytes = bytes("SIZE", text).map_err(|mistake| mistake.to_string())?;
    Ok(Sizes::constant(bytes).to_string())
}

/// `martlet bench run`.
#[derive(Debug, Clone, Args)]
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
    /// Let the workload run its commands ([[action]], [cold]) on this machine.
    #[arg(long)]
    pub(crate) allow_actions: bool,
    /// What all dice begin with; by chance otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Threads for each work; one for each processor otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) fleet: FleetArguments,
    /// When interrupted, run the stages of type cleanup and dispose that are left.
    #[arg(long)]
    pub(crate) clean_up: bool,
    /// Run only these stages, by their names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) stages: Vec<String>,
    /// Write everything to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with tables and pictures to this file, as HTML that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a row for every operation to this new file: CSV, compressed with gzip.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
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
            sizes: self.sizes.clone(),
            endpoints: self.endpoints.clone(),
            full: self.full.clone().map(|share| (share, self.recon.clone())),
            log: self.log.clone(),
            speed: self.speed.clone(),
        }
    }
}
