//! The command line of `martlet advise`: its commands and their options.

use crate::fit::points::Configuration;
use crate::look::LookArguments;
use crate::search::PurchaseQuestion;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `martlet advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(subcommand)]
    pub(crate) command: AdviseCommand,
}

impl AdviseArguments {
    /// What is run by [`crate::look::run`], as it speaks to servers.
    pub fn look(&self) -> Option<&LookArguments> {
        match &self.command {
            AdviseCommand::Look(line) => Some(line),
            _ => None,
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AdviseCommand {
    /// Print a starter catalogue: an inventory to change. Its prices are placeholders.
    Catalogue,
    /// Print the figures of the software that come with the program, for `--rates`: put in your own.
    Rates,
    /// Say what to buy: the least cost for a capacity and a throughput, the most capacity for a throughput and a
    /// budget, or the most throughput for a capacity and a budget.
    ///
    /// The exit status is 1 when the inventory has a mistake, or when its constraints contradict each other; then it
    /// is said which ones, and what would be enough.
    Buy(BuyArguments),
    /// Say what the inventory's [design] bears, how long it lasts, what is wrong with it, and which constraints of the
    /// inventory it does not meet.
    ///
    /// The exit status is 1 when the inventory has a mistake, or when the design does not meet a constraint.
    Predict(PredictArguments),
    /// Fit curves of throughput and p99 through runs of `martlet bench run --json`, and say how well they predict a run
    /// that they have not seen.
    ///
    /// Beside each MANIFEST.json stands MANIFEST.cluster.toml, which says what was loaded: gateways, storage_nodes, and
    /// what (in words: machines, or processes of one machine).
    Fit(FitArguments),
    /// Measure clusters of limited processes on this machine, for `fit`: gateways and storage nodes of this program,
    /// each in a control group that limits its processors, and drives and networks where the plan says so, loaded by
    /// `martlet bench`.
    ///
    /// Needs root, for control groups, mounts and networks. What was measured already is not measured again. The exit
    /// status is 1 when something failed, or when it was interrupted; nothing that it started stays behind.
    Measure(MeasureArguments),
    /// Look at a live cluster of either make, and say what to change first: causes by what is gained for their cost,
    /// when capacity ends, the steps in which new devices come in. Nothing is changed.
    Look(Box<LookArguments>),
    /// Show the method on its published example (Swift Advisor, 2012), with what of it is published and what inferred.
    Published,
}

impl AdviseArguments {
    /// What `measure` is asked, which needs time and sockets; none for other commands.
    pub fn measurement(&self) -> Option<&MeasureArguments> {
        match &self.command {
            AdviseCommand::Measure(line) => Some(line),
            _ => None,
        }
    }
}

/// `martlet advise measure`.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// Numbers of gateways, storage nodes and workers, sizes, and limits, in TOML.
    pub plan: PathBuf,
    /// The folder in which manifests are written.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Limit nothing: all processes share the machine. Curves of it say little about a cluster.
    #[arg(long)]
    pub unlimited: bool,
    /// Measure the plan's storage_nodes one after the other until throughput stops growing, and say at which number
    /// of them a unit of it is cheapest.
    #[arg(long, conflicts_with = "unlimited")]
    pub sample: bool,
    /// Measure this build of Martlet instead of the one that runs.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// `martlet advise buy`.
#[derive(Debug, Args)]
pub struct BuyArguments {
    /// What is asked.
    #[arg(value_enum)]
    pub question: PurchaseQuestion,
    /// Catalogue, workload and constraints, in TOML (`martlet advise catalogue` prints one).
    pub inventory: PathBuf,
    /// How many answers, the best first.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    pub top: u8,
    /// How answers are shown.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// `martlet advise predict`.
#[derive(Debug, Args)]
pub struct PredictArguments {
    /// Catalogue, workload, constraints and design, in TOML.
    pub inventory: PathBuf,
    /// How answers are shown.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// How answers are made and shown.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// What the software costs for each request (without it: figures that come with the program).
    #[arg(long, value_name = "FILE")]
    pub rates: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Say how each figure comes about.
    #[arg(long, conflicts_with = "json")]
    pub explain: bool,
    /// Write a page with pictures, which needs no other file and runs no script.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write configuration files of the first answer's servers, and the commands that make its rings, into a folder.
    /// Addresses in them are examples.
    #[arg(long, value_name = "DIR")]
    pub write_configuration: Option<PathBuf>,
    /// Write the workload of `martlet bench` that would confirm the first answer into a file.
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
}

/// `martlet advise fit`.
#[derive(Debug, Args)]
pub struct FitArguments {
    /// Reports of runs in a closed loop.
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<PathBuf>,
    /// Predict a configuration: gateways, storage nodes, bytes of an object, workers.
    #[arg(long, value_name = "GATEWAYS,NODES,BYTES,WORKERS", value_parser = configuration)]
    pub at: Vec<Configuration>,
    /// Prices of a gateway and of a storage node: the number of nodes behind one gateway at which throughput is
    /// cheapest is said.
    #[arg(long, value_name = "GATEWAY,NODE", value_parser = prices)]
    pub prices: Option<(f64, f64)>,
    /// Write what a request costs processors into a file, for `--rates` of `buy` and `predict`: of runs of
    /// `advise measure` that read, or that write.
    #[arg(long, value_name = "FILE")]
    pub write_rates: Option<PathBuf>,
    /// Take what the runs do not say from these rates, instead of from those that come with the program.
    #[arg(long, value_name = "FILE", requires = "write_rates")]
    pub rates: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn numbers<const COUNT: usize>(text: &str) -> Result<[f64; COUNT], String> {
    let read: Vec<f64> = text.split(',').map_while(|one| one.trim().parse().ok()).collect();
    let right: Option<[f64; COUNT]> = read.try_into().ok();
    let is_right = |all: &[f64; COUNT]| all.iter().all(|one| *one > 0.0 && one.is_finite());
    right
        .filter(is_right)
        .ok_or_else(|| format!("expected {COUNT} numbers above 0 with commas between them"))
}

fn configuration(text: &str) -> Result<Configuration, String> {
    let [gateways, storage_nodes, size, workers] = numbers(text)?;
    if gateways.fract() + storage_nodes.fract() + workers.fract() > 0.0 {
        return Err("expected whole numbers of gateways, storage nodes and workers".to_owned());
    }
    Ok(Configuration {
        gateways,
        storage_nodes,
        size,
        workers,
    })
}

fn prices(text: &str) -> Result<(f64, f64), String> {
    let [gateway, node] = numbers(text)?;
    Ok((gateway, node))
}
