//! Where one thing lives: a [`Route`] is a partition's primaries, then its handoffs, found only when they are needed.
//!
//! Always holds: every device of the ring comes at most once.

use crate::nodes::{Node, RingNodes};
use crate::options::GatewayOptions;
use peer::message::{RequestContext, UpdateNode, UpdateTargets};
use placement::Ring;
use settings::{PolicyRouting, Routing};
use std::sync::Arc;
use vocabulary::{Partition, PathHash, PolicyIndex};

/// Where one thing lives.
#[derive(Clone)]
pub struct Route {
    ring: Arc<Ring>,
    nodes: Arc<RingNodes>,
    /// The partition.
    pub partition: Partition,
    /// The nodes that should have it, in the ring's order; of a write with an affinity, those it goes to first, and of
    /// a deletion with one, those that may have it besides.
    pub primaries: Arc<[Node]>,
    /// The nodes that come after them, where that is not the ring's order.
    spares: Option<Arc<[Node]>>,
    /// The policy of an object.
    policy: Option<PolicyIndex>,
    /// account, container or object.
    kind: &'static str,
}

impl Route {
    /// The nodes for a path's hash.
    pub(crate) fn new(ring: Arc<Ring>, nodes: Arc<RingNodes>, hash: &PathHash, kind: &'static str) -> Self {
        let partition = ring.partition_of(&hash.0);
        let primaries = ring
            .primaries(partition)
            .into_iter()
            .map(|device| nodes.node(device))
            .collect();
        Self {
            ring,
            nodes,
            partition,
            primaries,
            spares: None,
            policy: None,
            kind,
        }
    }

    /// The same of an object under this policy.
    pub(crate) fn of_policy(self, policy: PolicyIndex) -> Self {
        let policy = Some(policy);
        Self { policy, ..self }
    }

    /// Whether it leads to an object rather than to a database.
    pub(crate) fn is_of_object(&self) -> bool {
        self.policy.is_some()
    }

    /// What is configured for things like the one that is there.
    pub(crate) fn routing<'a>(&self, configured: &'a PolicyRouting) -> &'a Routing {
        self.policy.map_or(&configured.common, |policy| configured.of(policy))
    }

    /// The same for a write that goes to local nodes first, `count` of them at most.
    pub(crate) fn local_first(self, is_local: impl Fn(&Node) -> bool, count: usize) -> Self {
        let replicas = self.replicas();
        let mut nodes = local_first(&self.primaries, self.ring_handoffs(), is_local, count);
        let spares = nodes.split_off(replicas.min(nodes.len()));
        Self {
            primaries: nodes.into(),
            spares: Some(spares.into()),
            ..self
        }
    }

    /// The same for a deletion that goes to local handoffs as well, which may have what was written locally first:
    /// `count` of them, given the number of replicas that are local.
    pub(crate) fn with_local_handoffs(self, is_local: impl Fn(&Node) -> bool, count: impl Fn(usize) -> usize) -> Self {
        let wanted = count(self.primaries.iter().filter(|node| is_local(node)).count());
        let (mut nodes, mut spares) = (self.primaries.to_vec(), vec![]);
        let most = nodes.len() + wanted;
        for handoff in self.ring_handoffs() {
            match nodes.len() < most && is_local(&handoff) {
                true => nodes.push(handoff),
                false => spares.push(handoff),
            }
        }
        Self {
            primaries: nodes.into(),
            spares: Some(spares.into()),
            ..self
        }
    }

    fn ring_handoffs(&self) -> impl Iterator<Item = Node> {
        let devices = self.ring.handoffs(self.partition);
        devices.map(|device| self.nodes.node(device))
    }

    /// The servers that replica number `replica` of `replicas` of a child is to send its row to.
    pub(crate) fn update_targets(&self, replica: usize, replicas: usize, network: &RequestContext) -> UpdateTargets {
        let mine = self.primaries.iter().skip(replica).step_by(replicas.max(1));
        let node = |node: &Node| {
            let (ip, port) = node.address(network);
            let (ip, device) = (ip.clone(), node.device.clone());
            UpdateNode { ip, port, device }
        };
        UpdateTargets::of(self.partition, mine.map(node).collect())
    }

    /// The partition power that its ring is to have next, while that is being increased.
    pub(crate) fn next_part_power(&self) -> Option<u32> {
        self.ring.data().next_part_power()
    }

    /// How many copies there should be.
    pub fn replicas(&self) -> usize {
        self.primaries.len()
    }

    /// The first `count` handoffs, best first.
    pub fn handoffs(&self, count: usize) -> Vec<Node> {
        match &self.spares {
            Some(spares) => spares.iter().take(count).cloned().collect(),
            None => self.ring_handoffs().take(count).collect(),
        }
    }
}

/// Primaries and handoffs with local ones first: local primaries, then local handoffs until there are `count` local
/// nodes, then everybody else.
fn local_first(
    primaries: &[Node],
    handoffs: impl Iterator<Item = Node>,
    is_local: impl Fn(&Node) -> bool,
    count: usize,
) -> Vec<Node> {
    let (mut first, mut rest): (Vec<_>, Vec<_>) = primaries.iter().cloned().partition(&is_local);
    for handoff in handoffs {
        match first.len() < count && is_local(&handoff) {
            true => first.push(handoff),
            false => rest.push(handoff),
        }
    }
    first.append(&mut rest);
    first
}

/// Handoffs that one request has asked, counted in the metrics when they are more than it would ask with all
/// primaries in service.
pub(crate) struct HandoffCount {
    kind: &'static str,
    replicas: usize,
    expected: usize,
    used: usize,
}

impl HandoffCount {
    /// None yet, of a request that asks `wanted` nodes at most.
    pub(crate) fn new(route: &Route, wanted: usize) -> Self {
        Self {
            kind: route.kind,
            replicas: route.replicas(),
            expected: wanted.saturating_sub(route.replicas()),
            used: 0,
        }
    }

    /// One more.
    pub(crate) fn another(&mut self, options: &GatewayOptions) {
        self.used += 1;
        let beyond = self.used.saturating_sub(self.expected);
        if !options.log_handoffs || beyond == 0 {
            return;
        }
        let (kind, statsd) = (self.kind, &options.statsd);
        statsd.count(format_args!("{kind}.handoff_count"), 1);
        if beyond == self.replicas {
            statsd.count(format_args!("{kind}.handoff_all_count"), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::tests::node;

    #[test]
    fn a_write_stays_at_home_first() {
        let primaries = vec![node(2, "p0"), node(1, "p1"), node(2, "p2")];
        let handoffs = [(2, "h0"), (1, "h1"), (1, "h2"), (1, "h3")].map(|(region, name)| node(region, name));
        let order = |count| -> Vec<String> {
            let nodes = local_first(&primaries, handoffs.clone().into_iter(), |n| n.region == 1, count);
            nodes.into_iter().map(|node| node.device.to_string()).collect()
        };
        assert_eq!(order(3), ["p1", "h1", "h2", "p0", "p2", "h0", "h3"]);
        assert_eq!(order(0), ["p1", "p0", "p2", "h0", "h1", "h2", "h3"]);
    }
}
