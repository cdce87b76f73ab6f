//! Whom to ask, in which order, and whom to leave alone for a while.
//!
//! A [`Route`] is a partition's primaries, then its handoffs, found only when they are needed.
//! [`Suppression`] remembers nodes that fail: too many errors, or one "507 my device is gone", and a
//! node is skipped until it has been left alone for a while.
//! Always holds: every device of the ring comes at most once; the map of failing nodes is as large
//! as the cluster at most.

use crate::options::GatewayOptions;
use crate::rings::node_of;
use crate::routing::local_first;
use http::HeaderMap;
use parking_lot::Mutex;
use placement::Ring;
use request_pipeline::is_true;
use settings::{PolicyRouting, Routing};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{PathHash, PolicyIndex};
use world::World;

/// Says that a request belongs on the network between storage servers. Only those inside the cluster can say it.
const REPLICATION_NETWORK: &str = "x-backend-use-replication-network";

/// A device and the service in front of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The service's address as the ring has it.
    pub ip: String,
    /// Its port.
    pub port: u16,
    /// Where it is for others of the cluster, as the ring has it: `replication_ip` and `replication_port`.
    pub inside: (String, u16),
    /// The device's directory name.
    pub device: String,
    /// Its region.
    pub region: u32,
    /// Its zone in the region.
    pub zone: u32,
}

impl Node {
    /// Where a call with these headers goes: upkeep asks for the network on which replicas are made.
    pub fn address(&self, headers: &HeaderMap) -> (&str, u16) {
        let said = headers.get(REPLICATION_NETWORK).and_then(|value| value.to_str().ok());
        match said.is_some_and(is_true) {
            true => (&self.inside.0, self.inside.1),
            false => (&self.ip, self.port),
        }
    }

    /// The same as `ip:port`.
    pub fn host(&self, headers: &HeaderMap) -> String {
        let (ip, port) = self.address(headers);
        format!("{ip}:{port}")
    }
}

/// Where one thing lives.
#[derive(Clone)]
pub struct Route {
    ring: Arc<Ring>,
    /// The partition.
    pub partition: u32,
    /// The nodes that should have it, in the ring's order; of a write with an affinity, those it goes to first, and of a
    /// deletion with one, those that may have it besides.
    pub primaries: Vec<Node>,
    /// Who comes after them, where that is not the ring's order.
    spares: Option<Vec<Node>>,
    /// The policy of an object.
    policy: Option<PolicyIndex>,
    /// account, container or object.
    kind: &'static str,
}

impl Route {
    /// The nodes for a path's hash.
    pub fn new(ring: Arc<Ring>, hash: &PathHash, kind: &'static str) -> Self {
        let partition = ring.partition_of(&hash.0);
        let primaries = ring.primaries(partition).into_iter().map(node_of).collect();
        Self {
            ring,
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
        let handoffs = self.ring.handoffs(self.partition).map(node_of);
        let replicas = self.replicas();
        let mut nodes = local_first(self.primaries, handoffs, is_local, count);
        let spares = nodes.split_off(replicas.min(nodes.len()));
        Self {
            primaries: nodes,
            spares: Some(spares),
            ..self
        }
    }

    /// The same for a deletion that goes to local handoffs as well, which may have what was written locally first:
    /// `count` of them, given the number of replicas that are local.
    pub(crate) fn with_local_handoffs(self, is_local: impl Fn(&Node) -> bool, count: impl Fn(usize) -> usize) -> Self {
        let mut nodes = self.primaries;
        let wanted = count(nodes.iter().filter(|node| is_local(node)).count());
        let handoffs = self.ring.handoffs(self.partition).map(node_of);
        let (mut local, mut spares) = (vec![], vec![]);
        for handoff in handoffs {
            match local.len() < wanted && is_local(&handoff) {
                true => local.push(handoff),
                false => spares.push(handoff),
            }
        }
        nodes.append(&mut local);
        Self {
            primaries: nodes,
            spares: Some(spares),
            ..self
        }
    }

    /// How many copies there should be.
    pub fn replicas(&self) -> usize {
        self.primaries.len()
    }

    /// The first `count` handoffs, best first.
    pub fn handoffs(&self, count: usize) -> Vec<Node> {
        match &self.spares {
            Some(spares) => spares.iter().take(count).cloned().collect(),
            None => self.ring.handoffs(self.partition).take(count).map(node_of).collect(),
        }
    }
}

/// Handoffs that one request has asked, told to whoever takes metrics when they are more than it would ask with all
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

struct Trouble {
    errors: u32,
    last: Duration,
}

/// Which nodes have failed lately.
pub struct Suppression {
    world: World,
    limit: u32,
    interval: Duration,
    troubles: Mutex<HashMap<Node, Trouble>>,
    statsd: Statsd,
}

impl Suppression {
    /// More than `limit` errors keep a node out for `interval` after the last one.
    pub fn new(world: World, limit: u32, interval: Duration, statsd: Statsd) -> Self {
        Self {
            world,
            limit,
            interval,
            troubles: Mutex::default(),
            statsd,
        }
    }

    /// Whether to leave `node` alone.
    pub fn is_suppressed(&self, node: &Node) -> bool {
        let mut troubles = self.troubles.lock();
        let Some(trouble) = troubles.get(node) else {
            return false;
        };
        if self.world.clock.elapsed().saturating_sub(trouble.last) > self.interval {
            troubles.remove(node);
            return false;
        }
        let is_limited = trouble.errors > self.limit;
        self.statsd.increment_if(is_limited, "error_limiter.is_limited");
        is_limited
    }

    /// It failed once.
    pub fn error(&self, node: &Node, what: &str) {
        let errors = self.add(node, 1);
        self.statsd
            .increment_if(errors > self.limit, "error_limiter.incremented_limit");
        tracing::warn!(node = %node.ip, port = node.port, device = %node.device, errors, "{what}");
    }

    /// Its device is gone: leave it alone at once.
    pub fn out_of_service(&self, node: &Node) {
        self.add(node, self.limit.saturating_add(1));
        self.statsd.increment("error_limiter.forced_limit");
        let Node { ip, port, device, .. } = node;
        tracing::warn!("{ip}:{port}/{device} answered 507: its device is full, unmounted or gone; skipped for now");
    }

    fn add(&self, node: &Node, errors: u32) -> u32 {
        let mut troubles = self.troubles.lock();
        let trouble = troubles.entry(node.clone()).or_insert(Trouble {
            errors: 0,
            last: Duration::ZERO,
        });
        trouble.errors = trouble.errors.saturating_add(errors);
        trouble.last = self.world.clock.elapsed();
        trouble.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gone_device_is_left_alone_and_then_tried_again() {
        let suppression = |interval| Suppression::new(World::real(), 2, interval, Statsd::default());
        let node = Node {
            ip: "10.0.0.1".into(),
            port: 6200,
            inside: ("10.0.1.1".into(), 6201),
            device: "sda".into(),
            region: 1,
            zone: 1,
        };
        let said = |value: &'static str| [(REPLICATION_NETWORK, value)];
        let address = |headers: &[(&'static str, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            node.address(&headers.collect()).1
        };
        assert_eq!(
            (address(&[]), address(&said("no")), address(&said("True"))),
            (6200, 6200, 6201)
        );
        let patient = suppression(Duration::from_secs(60));
        for expected in [false, false, false, true] {
            assert_eq!(patient.is_suppressed(&node), expected);
            patient.error(&node, "planted");
        }
        let forgiving = suppression(Duration::ZERO);
        forgiving.out_of_service(&node);
        std::thread::sleep(Duration::from_millis(1));
        assert!(!forgiving.is_suppressed(&node));
    }
}
