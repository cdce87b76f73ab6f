//! One run with databases: what a seed has in store happens, then all is well again, then everything is looked at.

use super::client::{self, Told};
use super::history::{History, Verb, Write};
use super::inspect;
use super::plan::{Event, Plan};
use crate::bugs::Bug;
use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::executor::Progress;
use crate::history::Violation;
use crate::run::{Atlases, CALM, Outcome, outcome};
use crate::trace::Trace;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::Clock;

/// Longer than a client waits.
const PATIENCE: Duration = Duration::from_secs(12);
/// Longer than anything takes when all is well.
const SOON: Duration = Duration::from_secs(900);

/// Runs what belongs to `seed`, with a planted bug or without.
pub fn run(atlases: &Atlases, seed: u64, bug: Option<Bug>, in_words: bool) -> Outcome {
    outcome(in_words, |trace| play(atlases, seed, bug, trace))
}

fn play(atlases: &Atlases, seed: u64, bug: Option<Bug>, trace: &Trace) -> Result<(), Violation> {
    let dice = Dice::new(seed);
    let plan = Plan::new(&dice, bug);
    let atlas = atlases.0.get(&plan.nodes).ok_or_else(|| Violation("no atlas".into()))?;
    let mut show = Show {
        cluster: Cluster::new(atlas, dice, trace.clone(), plan.manner),
        history: History::default(),
        destroys: plan.destroys,
        shunned: plan.shunned,
        told: Arc::default(),
        stamps: HashSet::new(),
    };
    let played = show.play(plan);
    show.cluster.dismantle();
    played
}

/// A run under way.
pub(super) struct Show {
    pub(super) cluster: Cluster,
    pub(super) history: History,
    destroys: bool,
    shunned: Option<usize>,
    told: Told,
    stamps: HashSet<u64>,
}

impl Show {
    fn play(&mut self, plan: Plan) -> Result<(), Violation> {
        for number in 0..plan.nodes {
            self.cluster.begin(number)?;
        }
        for (at, event) in plan.events {
            self.until(at, || false)?;
            match event {
                Event::Client { node, container, verb } => self.ask(node, container, verb),
                Event::Misfortune(misfortune) => self.cluster.befall(misfortune)?,
            }
        }
        self.rest(PATIENCE)?;
        self.cluster.heal()?;
        self.rest(CALM)?;
        self.listen();
        inspect::everything(self)
    }

    fn until(&mut self, until: Duration, enough: impl Fn() -> bool) -> Result<(), Violation> {
        while !enough() {
            if self.cluster.turn(until)? == Progress::Reached {
                break;
            }
        }
        Ok(())
    }

    /// Lets time pass.
    pub(super) fn rest(&mut self, time: Duration) -> Result<(), Violation> {
        self.until(self.cluster.executor.now() + time, || false)
    }

    /// Runs `work` on a node to its end.
    pub(super) fn on_node<T: Send + 'static>(
        &mut self,
        node: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Violation> {
        let done = Arc::new(Mutex::new(None));
        let (result, filled) = (done.clone(), done.clone());
        let Some(life) = &self.cluster.nodes[node].life else {
            return Err(Violation(format!("node {node} is dead although all is well")));
        };
        let working = async move { *result.lock() = Some(work.await) };
        self.cluster.executor.spawn(life.home, Box::pin(working));
        self.until(self.cluster.executor.now() + SOON, || filled.lock().is_some())?;
        let result = done.lock().take();
        result.ok_or_else(|| Violation(format!("node {node} does not come to an end although all is well")))
    }

    fn ask(&mut self, node: usize, container: usize, verb: Verb) {
        let at = self.stamp(node);
        let number = self.history.writes.len();
        let said = format!("client: {verb:?} of container {container} by n{node} at {at} is {number}");
        self.cluster.trace.note(said);
        let write = Write {
            container,
            verb,
            at,
            done: 0,
        };
        client::ask(&self.cluster, (node, self.shunned), number, &write, &self.told);
        self.history.writes.push(write);
    }

    /// A timestamp of a node's clock that no other write has.
    fn stamp(&mut self, node: usize) -> Timestamp {
        let mut at = self.cluster.nodes[node].clock.now();
        while !self.stamps.insert(at.ticks()) {
            at = at.next_tick();
        }
        at
    }

    /// What replicas have said. What the unlucky one said counts only where nothing of it was destroyed.
    fn listen(&mut self) {
        for (number, node, status) in std::mem::take(&mut *self.told.lock()) {
            let said = format!("client: {number} was told {status} by n{node}");
            self.cluster.trace.note(said);
            let counts = !(self.destroys && node == self.cluster.manner.unlucky);
            self.history.writes[number].done += usize::from(counts && (200..300).contains(&status));
        }
    }
}
