//! The nodes a read may try, in order: primaries, nearest first, then handoffs.
//!
//! What is nearest, `routing.rs` knows.
//! Always holds: at most `request_node_count` nodes are offered; suppressed ones are passed over, and silent ones come
//! last, by themselves ([`Candidates::next_silent`]).

use crate::backend::Question;
use crate::nodes::Node;
use crate::route::{HandoffCount, Route};
use crate::routing;
use crate::shared::Shared;
use std::collections::VecDeque;
use std::time::Duration;

/// A node to ask, and whether it should have the thing.
pub(crate) struct Candidate {
    pub(crate) node: Node,
    pub(crate) is_primary: bool,
}

/// The nodes not tried yet.
pub(crate) struct Candidates {
    route: Route,
    primaries: VecDeque<Node>,
    handoffs: Option<VecDeque<Node>>,
    /// Those that are silent.
    silent: VecDeque<Candidate>,
    /// How many more may be asked. A silent primary has its place already.
    left: usize,
    used: HandoffCount,
    patience: Option<Duration>,
}

impl Candidates {
    /// For a read of what `route` leads to.
    pub(crate) fn new(shared: &Shared, route: Route) -> Self {
        let routing = route.routing(&shared.options.routing);
        let primaries = routing::order(shared, routing, route.primaries.to_vec());
        let left = shared.options.request_node_count.for_replicas(route.replicas()).max(1);
        let wait = routing.concurrency_timeout.unwrap_or(shared.options.conn_timeout);
        Self {
            used: HandoffCount::new(&route, left),
            route,
            primaries: primaries.into(),
            handoffs: None,
            silent: VecDeque::new(),
            left,
            patience: routing.concurrent_gets.then_some(wait),
        }
    }

    /// How long to wait for one before the next is asked beside it; without end unless `concurrent_gets` is on.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Where the thing lives.
    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    /// The next one, which is asked `question`.
    pub(crate) fn next(&mut self, shared: &Shared, question: &Question) -> Option<Candidate> {
        loop {
            if self.left == 0 {
                return None;
            }
            let candidate = match self.primaries.pop_front() {
                Some(node) => Candidate { node, is_primary: true },
                None => Candidate {
                    node: self.next_handoff()?,
                    is_primary: false,
                },
            };
            let call = || question.call(&self.route, &candidate.node);
            if shared.is_left_alone(&candidate.node, call) {
                continue;
            }
            if shared.is_silent(&candidate.node, call) {
                self.left -= usize::from(candidate.is_primary);
                self.silent.push_back(candidate);
                continue;
            }
            return Some(self.counted(shared, candidate));
        }
    }

    /// The next of the silent ones that [`Candidates::next`] has passed over: primaries first.
    pub(crate) fn next_silent(&mut self, shared: &Shared) -> Option<Candidate> {
        let candidate = self.silent.pop_front()?;
        if candidate.is_primary {
            return Some(candidate);
        }
        (self.left > 0).then(|| self.counted(shared, candidate))
    }

    fn counted(&mut self, shared: &Shared, candidate: Candidate) -> Candidate {
        self.left -= 1;
        if !candidate.is_primary {
            self.used.another(&shared.options);
        }
        candidate
    }

    fn next_handoff(&mut self) -> Option<Node> {
        let (route, left) = (&self.route, self.left);
        // Twice as many as may be asked: some may be suppressed.
        self.handoffs
            .get_or_insert_with(|| route.handoffs(2 * left).into())
            .pop_front()
    }
}
