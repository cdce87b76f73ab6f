//! One run of a whole cluster: what a seed has in store happens, then all is well again, then everything must agree.

use super::agreement;
use super::daemons::work_now_and_then;
use super::plan::WholePlan;
use super::whole_run::WholeRun;
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
    let plan = WholePlan::new(&dice, bug);
    let topology = topologies.of(plan.nodes)?;
    let cluster = SimCluster::new(&topology, dice, trace.clone(), plan.config, work_now_and_then);
    let mut run = WholeRun::new(cluster);
    let played = run.play(plan).and_then(|()| agreement::everything(&mut run));
    run.cluster.dismantle();
    played
}
