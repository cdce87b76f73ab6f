//! A run of a whole cluster: what clients wrote, and how it goes on from event to event.

use super::client::{self, WholeReplies};
use super::history::{ObjectWrite, WholeHistory};
use super::plan::{CONTAINERS, WholeEvent, WholePlan, WholeRequest};
use crate::cluster::SimCluster;
use crate::executor::TurnProgress;
use crate::history::Violation;
use crate::sim_run::CALM;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Longer than a client waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than anything takes when all is well.
const SOON: Duration = Duration::from_secs(1_800);

/// A run, as far as it has got.
pub(super) struct WholeRun {
    pub(super) cluster: SimCluster,
    pub(super) history: WholeHistory,
    replies: WholeReplies,
}

impl WholeRun {
    /// Of an empty cluster.
    pub(super) fn new(cluster: SimCluster) -> Self {
        Self {
            cluster,
            history: WholeHistory::default(),
            replies: WholeReplies::default(),
        }
    }

    /// Lets everything happen that the plan has; then all is well again.
    pub(super) fn play(&mut self, plan: WholePlan) -> Result<(), Violation> {
        for number in 0..plan.nodes {
            self.cluster.begin(number)?;
        }
        for (at, event) in plan.events {
            self.until(at, || false)?;
            match event {
                WholeEvent::Client { node, container, ask } => self.ask(node, container, ask),
                WholeEvent::InjectedFault(fault) => self.cluster.inject(fault)?,
            }
        }
        self.rest(PATIENCE)?;
        self.cluster.heal()?;
        self.rest(CALM)?;
        for (number, write) in self.history.writes.iter_mut().enumerate() {
            write.times = self.cluster.sent.of(number);
        }
        self.listen();
        // Nothing has gone wrong while they were made.
        let made = |container| {
            let makes = |write: &&ObjectWrite| matches!(write.ask, WholeRequest::MakeContainer { .. });
            let of_it = self.history.writes.iter().filter(|write| write.container == container);
            of_it.filter(makes).any(|write| write.acknowledged)
        };
        match (0..CONTAINERS).all(made) {
            true => Ok(()),
            false => Err(Violation("a container could not be made although all was well".into())),
        }
    }

    fn ask(&mut self, node: usize, container: usize, ask: WholeRequest) {
        let number = self.history.writes.len();
        let line = format!("client: {ask:?} of container {container} by n{node} is {number}");
        self.cluster.trace.note(line);
        client::ask(&self.cluster, node, number, (container, ask), &self.replies);
        self.history.writes.push(ObjectWrite {
            container,
            ask,
            times: vec![],
            acknowledged: false,
        });
    }

    fn listen(&mut self) {
        for (number, status) in std::mem::take(&mut *self.replies.lock()) {
            let line = format!("client: {number} was answered {status}");
            self.cluster.trace.note(line);
            self.history.writes[number].acknowledged = (200..300).contains(&status);
        }
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
}
