//! One run with databases: what a seed has in store happens, then all is well again, then everything is looked at.

use super::database_run::DatabaseRun;
use super::inspect;
use super::plan::DatabasePlan;
use super::replication::replicate_now_and_then;
use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::dice::Dice;
use crate::history::Violation;
use crate::run::{RunOutcome, outcome};
use crate::topology::Topologies;
use crate::trace::Trace;

/// Runs what belongs to `seed`, with a planted bug or without.
pub fn run(topologies: &Topologies, seed: u64, bug: Option<Bug>, in_words: bool) -> RunOutcome {
    outcome(in_words, |trace| play(topologies, seed, bug, trace))
}

fn play(topologies: &Topologies, seed: u64, bug: Option<Bug>, trace: &Trace) -> Result<(), Violation> {
    let dice = Dice::new(seed);
    let plan = DatabasePlan::new(&dice, bug);
    let topology = topologies.of(plan.nodes)?;
    let cluster = SimCluster::new(&topology, dice, trace.clone(), plan.config, replicate_now_and_then);
    let mut run = DatabaseRun::new(cluster, &plan);
    let played = run.play(plan).and_then(|()| inspect::everything(&mut run));
    run.cluster.dismantle();
    played
}
