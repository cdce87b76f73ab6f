//! The nodes a read may try, in order: primaries, nearest first, then handoffs.
//!
//! What is nearest, `routing.rs` knows.
//! Always holds: at most `request_node_count` nodes are offered; suppressed ones are passed over.

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

    /// The next one.
    pub(crate) fn next(&mut self, shared: &Shared) -> Option<Candidate> {
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
            if !shared.suppression.is_suppressed(&candidate.node) {
                self.left -= 1;
                if !candidate.is_primary {
                    self.used.another(&shared.options);
                }
                return Some(candidate);
            }
        }
    }

    fn next_handoff(&mut self) -> Option<Node> {
        let (route, left) = (&self.route, self.left);
        // Twice as many as may be asked: some may be suppressed.
        self.handoffs
            .get_or_insert_with(|| route.handoffs(2 * left).into())
            .pop_front()
    }
}
