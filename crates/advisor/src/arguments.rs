//! The command line of `martlet advise`: its commands and their options.

use crate::search::PurchaseQuestion;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `martlet advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(subcommand)]
    pub(crate) command: AdviseCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AdviseCommand {
    /// Print a starter catalogue: an inventory to change. Its prices are placeholders.
    Catalogue,
    /// Say what to buy: the least cost for a capacity and a throughput, the most capacity for a throughput and a
    /// budget, or the most throughput for a capacity and a budget.
    ///
    /// The exit status is 1 when the inventory has a mistake, or when its constraints contradict each other; then it
    /// is said which ones, and what would be enough.
    Buy(BuyArguments),
    /// Say what the inventory's [design] bears, how long it lasts, and what is wrong with it.
    Predict(PredictArguments),
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
    /// Write the workload of `martlet bench` that would confirm the first answer into a file.
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
}
