//! A run: its cluster, what clients wrote, and how it goes on from event to event.

use crate::client::{self, ClientReply};
use crate::cluster::SimCluster;
use crate::executor::TurnProgress;
use crate::history::{ClientWrite, Violation, WriteHistory, WriteOutcome, WriteVerb};
use crate::plan::{PATHS, PlannedEvent, PlannedRequest, RunPlan};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::Clock;

/// Longer than all time-outs in a row.
const PATIENCE: Duration = Duration::from_secs(900);
/// Longer than any message is under way, and than its receiver then works on it.
pub(crate) const CALM: Duration = Duration::from_secs(120);
/// Longer than anything takes when all is well.
pub(crate) const SOON: Duration = Duration::from_secs(600);

/// A run, as far as it has got.
pub(crate) struct SimRun {
    pub(crate) cluster: SimCluster,
    pub(crate) history: WriteHistory,
    pub(crate) plan: RunPlan,
    replies: Arc<Mutex<Vec<ClientReply>>>,
    waiting: usize,
    stamps: HashSet<u64>,
}

impl SimRun {
    /// Of an empty cluster.
    pub(crate) fn new(cluster: SimCluster, plan: RunPlan) -> Self {
        Self {
            cluster,
            history: WriteHistory {
                paths: PATHS.map(|(a, c, o)| (a.to_owned(), c.to_owned(), o.to_owned())).into(),
                writes: vec![],
            },
            plan,
            replies: Arc::default(),
            waiting: 0,
            stamps: HashSet::new(),
        }
    }

    /// Lets everything happen that the plan has; then all is well again.
    pub(crate) fn play(&mut self) -> Result<(), Violation> {
        self.cluster.net.hurry(self.plan.must_serve);
        for number in 0..self.plan.nodes {
            self.cluster.begin(number)?;
        }
        for (at, event) in std::mem::take(&mut self.plan.events) {
            self.advance(at, |_| false)?;
            match event {
                PlannedEvent::Client { node, path, ask } => self.ask(node, path, ask),
                PlannedEvent::InjectedFault(fault) => self.cluster.inject(fault)?,
            }
        }
        let end = self.cluster.executor.now() + PATIENCE;
        self.advance(end, |run| run.waiting == 0)?;
        if self.waiting > 0 {
            return Err(Violation(format!("{} requests were never answered", self.waiting)));
        }
        self.heal()?;
        if self.plan.own_times {
            for (number, write) in self.history.writes.iter_mut().enumerate() {
                write.times = self.cluster.sent.of(number);
            }
        }
        Ok(())
    }

    /// On to `until`, or until `enough`.
    pub(crate) fn advance(&mut self, until: Duration, enough: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        while !enough(self) {
            if self.cluster.turn(until)? == TurnProgress::Reached {
                // A process that ended outside of any step has answered by its end.
                return self.listen();
            }
            self.listen()?;
        }
        Ok(())
    }

    fn ask(&mut self, node: usize, path: usize, ask: PlannedRequest) {
        let brought = (!self.plan.own_times).then(|| self.stamp(node));
        let number = self.history.writes.len();
        let verb = match ask {
            PlannedRequest::Put { size, .. } => Some(WriteVerb::Put(self.history.body(path, number, size))),
            PlannedRequest::Post => Some(WriteVerb::Post),
            PlannedRequest::Delete => Some(WriteVerb::Delete),
            PlannedRequest::Get { .. } => None,
        };
        self.cluster
            .trace
            .note(format!("client: {ask:?} {path} by n{node} at {brought:?} is {number}"));
        let cut_short = matches!(ask, PlannedRequest::Put { cut_short: true, .. });
        let write = verb.map(|verb| ClientWrite {
            path,
            verb,
            times: brought.into_iter().collect(),
            fate: if cut_short {
                WriteOutcome::CutShort
            } else {
                WriteOutcome::Unknown
            },
            span: (self.cluster.executor.now(), None),
            gateway: (node, Timestamp::ZERO),
        });
        self.history.writes.extend(write.clone());
        if client::ask(
            &self.cluster,
            node,
            &self.history.paths[path],
            (path, number),
            ask,
            write,
            &self.replies,
        ) {
            self.waiting += 1;
        }
    }

    /// A timestamp of a node's clock that no other write has.
    fn stamp(&mut self, node: usize) -> Timestamp {
        let mut at = self.cluster.nodes[node].clock.now();
        while !self.stamps.insert(at.ticks()) {
            at = at.next_tick();
        }
        at
    }

    /// Takes note of the replies that clients have got meanwhile.
    fn listen(&mut self) -> Result<(), Violation> {
        let replies = std::mem::take(&mut *self.replies.lock());
        for ClientReply {
            path,
            number,
            ask,
            status,
            body,
        } in replies
        {
            self.waiting -= 1;
            let is_write = !matches!(ask, PlannedRequest::Get { .. });
            if let Some(write) = self.history.writes.get_mut(number).filter(|_| is_write) {
                write.span.1 = (status > 0).then(|| self.cluster.executor.now());
                write.gateway.1 = self.cluster.nodes[write.gateway.0].clock.now();
            }
            self.cluster
                .trace
                .note(format!("client: {number} was answered {status}"));
            // What meets a deletion or what is not there everywhere yet may find no majority.
            let must_succeed = matches!(
                ask,
                PlannedRequest::Get { .. } | PlannedRequest::Put { cut_short: false, .. }
            );
            if self.plan.must_serve && must_succeed && !(200..500).contains(&status) {
                let what = format!("{ask:?} {number} was answered {status} although nothing is wrong");
                return Err(Violation(what));
            }
            match (ask, status) {
                (PlannedRequest::Get { .. }, 200) => {
                    if let Some(body) = body {
                        self.history.recognise(path, &body)?;
                    }
                }
                (PlannedRequest::Put { cut_short: false, .. }, 201 | 202)
                | (PlannedRequest::Post, 202)
                | (PlannedRequest::Delete, 204) => {
                    self.history.writes[number].fate = WriteOutcome::Acknowledged;
                }
                (PlannedRequest::Put { cut_short: true, .. }, 201) => {
                    return Err(Violation(format!("upload {number} was cut short and acknowledged")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All is well again.
    fn heal(&mut self) -> Result<(), Violation> {
        self.cluster.heal()?;
        // What is still under way arrives.
        let calm = self.cluster.executor.now() + CALM;
        self.advance(calm, |_| false)
    }

    /// Runs `work` on a node to its end.
    pub(crate) fn on_node<T: Send + 'static>(
        &mut self,
        node: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Violation> {
        let done = Arc::new(Mutex::new(None));
        let result = done.clone();
        let Some(process) = &self.cluster.nodes[node].process else {
            return Err(Violation(format!("node {node} is dead although all is well")));
        };
        self.cluster
            .executor
            .spawn(process.home, Box::pin(async move { *result.lock() = Some(work.await) }));
        let end = self.cluster.executor.now() + SOON;
        self.advance(end, |_| done.lock().is_some())?;
        let result = done.lock().take();
        result.ok_or_else(|| Violation(format!("node {node} does not come to an end although all is well")))
    }
}
