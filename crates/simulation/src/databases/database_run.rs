//! A run with databases: its cluster, what clients wrote, and how it goes on from event to event.

use super::client::{self, ContainerReplies};
use super::foreign;
use super::history::{ContainerHistory, ContainerVerb, ContainerWrite};
use super::plan::{DatabaseEvent, DatabasePlan};
use crate::cluster::SimCluster;
use crate::executor::TurnProgress;
use crate::history::Violation;
use crate::sim_run::CALM;
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

/// A run, as far as it has got.
pub(super) struct DatabaseRun {
    pub(super) cluster: SimCluster,
    pub(super) history: ContainerHistory,
    destroys: bool,
    shunned: Option<usize>,
    replies: ContainerReplies,
    stamps: HashSet<u64>,
}

impl DatabaseRun {
    /// Of an empty cluster.
    pub(super) fn new(cluster: SimCluster, plan: &DatabasePlan) -> Self {
        Self {
            cluster,
            history: ContainerHistory::default(),
            destroys: plan.destroys,
            shunned: plan.shunned,
            replies: Arc::default(),
            stamps: HashSet::new(),
        }
    }

    /// Lets everything happen that the plan has; then all is well again.
    pub(super) fn play(&mut self, plan: DatabasePlan) -> Result<(), Violation> {
        for number in 0..plan.nodes {
            self.cluster.begin(number)?;
        }
        for (at, event) in plan.events {
            self.until(at, || false)?;
            match event {
                DatabaseEvent::Client { node, container, verb } => self.ask(node, container, verb),
                DatabaseEvent::Foreign { from, to, container } => foreign::bring(&self.cluster, from, to, container),
                DatabaseEvent::InjectedFault(fault) => self.cluster.inject(fault)?,
            }
        }
        self.rest(PATIENCE)?;
        self.cluster.heal()?;
        self.rest(CALM)?;
        self.listen();
        Ok(())
    }

    fn until(&mut self, until: Duration, enough: impl Fn() -> bool) -> Result<(), Violation> {
        while !enough() {
            if self.cluster.turn(until)? == TurnProgress::Reached {
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
        let Some(process) = &self.cluster.nodes[node].process else {
            return Err(Violation(format!("node {node} is dead although all is well")));
        };
        let working = async move { *result.lock() = Some(work.await) };
        self.cluster.executor.spawn(process.home, Box::pin(working));
        self.until(self.cluster.executor.now() + SOON, || filled.lock().is_some())?;
        let result = done.lock().take();
        result.ok_or_else(|| Violation(format!("node {node} does not come to an end although all is well")))
    }

    fn ask(&mut self, node: usize, container: usize, verb: ContainerVerb) {
        let at = self.stamp(node);
        let number = self.history.writes.len();
        let line = format!("client: {verb:?} of container {container} by n{node} at {at} is {number}");
        self.cluster.trace.note(line);
        let write = ContainerWrite {
            container,
            verb,
            at,
            done: 0,
        };
        client::ask(&self.cluster, (node, self.shunned), number, &write, &self.replies);
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
        for (number, node, status) in std::mem::take(&mut *self.replies.lock()) {
            let line = format!("client: {number} was answered {status} by n{node}");
            self.cluster.trace.note(line);
            let counts = !(self.destroys && node == self.cluster.config.unlucky);
            self.history.writes[number].done += usize::from(counts && (200..300).contains(&status));
        }
    }
}
