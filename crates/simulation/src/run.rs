//! One run: what a seed has in store happens, then all is well again, then everything is looked at.
//!
//! Always holds: the same seed gives the same run, to the last step.

use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::dice::Dice;
use crate::history::Violation;
use crate::inspect;
use crate::plan::RunPlan;
use crate::replication::replicate_now_and_then;
use crate::sim_run::SimRun;
use crate::topology::Topologies;
use crate::trace::Trace;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// Equal for equal runs.
    pub fingerprint: u64,
    /// What happened, if words were wanted.
    pub lines: Vec<String>,
}

/// Runs what belongs to `seed`, with a planted bug or without.
pub fn run(topologies: &Topologies, seed: u64, bug: Option<Bug>, in_words: bool) -> RunOutcome {
    outcome(in_words, |trace| play(topologies, seed, bug, trace))
}

/// What comes of `play`, a panic included.
pub(crate) fn outcome(in_words: bool, play: impl FnOnce(&Trace) -> Result<(), Violation>) -> RunOutcome {
    let trace = Trace::new(in_words);
    let ran = catch_unwind(AssertUnwindSafe(|| play(&trace)));
    let violation = match ran {
        Ok(violation) => violation.err(),
        Err(panic) => Some(Violation(format!("a panic: {}", words(&*panic)))),
    };
    RunOutcome {
        violation,
        fingerprint: trace.fingerprint(),
        lines: trace.take_lines(),
    }
}

fn words(panic: &dyn std::any::Any) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

fn play(topologies: &Topologies, seed: u64, bug: Option<Bug>, trace: &Trace) -> Result<(), Violation> {
    let dice = Dice::new(seed);
    let plan = RunPlan::new(&dice, bug);
    let topology = topologies.of(plan.nodes)?;
    let cluster = SimCluster::new(&topology, dice, trace.clone(), plan.config, replicate_now_and_then);
    let mut run = SimRun::new(cluster, plan);
    let played = run.play().and_then(|()| inspect::everything(&mut run));
    run.cluster.dismantle();
    played
}
