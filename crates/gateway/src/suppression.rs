//! Nodes that have failed lately: too many errors, or one "507 my device is gone", and a node is skipped until it has
//! been left alone for a while.
//!
//! What a node that was silent (`silence.rs`) failed to do is forgiven when it answers again; a second time within the
//! same while it is not, for there are nodes that answer some requests and never others.
//! Always holds: the map of failing nodes is as large as the cluster at most.

use crate::nodes::Node;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use telemetry::Statsd;
use world::World;

/// The failures of one node.
struct NodeErrors {
    errors: u32,
    /// The last of them, or when they were forgiven.
    last: Duration,
    /// When those before these were.
    forgiven: Option<Duration>,
}

/// Which nodes have failed lately.
pub struct Suppression {
    world: World,
    limit: u32,
    interval: Duration,
    failing: Mutex<HashMap<Node, NodeErrors>>,
    statsd: Statsd,
}

impl Suppression {
    /// More than `limit` errors keep a node out for `interval` after the last one.
    pub fn new(world: World, limit: u32, interval: Duration, statsd: Statsd) -> Self {
        Self {
            world,
            limit,
            interval,
            failing: Mutex::default(),
            statsd,
        }
    }

    /// Whether to leave `node` alone.
    pub fn is_suppressed(&self, node: &Node) -> bool {
        let mut failing = self.failing.lock();
        if failing.is_empty() {
            return false;
        }
        let Some(node_errors) = failing.get(node) else {
            return false;
        };
        if self.world.clock.elapsed().saturating_sub(node_errors.last) > self.interval {
            failing.remove(node);
            return false;
        }
        let is_limited = node_errors.errors > self.limit;
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

    /// What it failed to do says nothing of it any more, unless that was said lately.
    pub fn forgive(&self, node: &Node) {
        let now = self.world.clock.elapsed();
        let mut failing = self.failing.lock();
        if let Some(node_errors) = failing.get_mut(node)
            && node_errors
                .forgiven
                .is_none_or(|at| now.saturating_sub(at) > self.interval)
        {
            *node_errors = NodeErrors {
                errors: 0,
                last: now,
                forgiven: Some(now),
            };
        }
    }

    /// Its device is gone: leave it alone at once.
    pub fn out_of_service(&self, node: &Node) {
        self.add(node, self.limit.saturating_add(1));
        self.statsd.increment("error_limiter.forced_limit");
        let Node { ip, port, device, .. } = node;
        tracing::warn!("{ip}:{port}/{device} answered 507: its device is full, unmounted or gone; skipped for now");
    }

    fn add(&self, node: &Node, errors: u32) -> u32 {
        let mut failing = self.failing.lock();
        let node_errors = failing.entry(node.clone()).or_insert(NodeErrors {
            errors: 0,
            last: Duration::ZERO,
            forgiven: None,
        });
        node_errors.errors = node_errors.errors.saturating_add(errors);
        node_errors.last = self.world.clock.elapsed();
        node_errors.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peer::message::RequestContext;

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
        let address = |uses_replication_network| {
            let context = RequestContext {
                uses_replication_network,
                ..RequestContext::default()
            };
            node.address(&context).1
        };
        assert_eq!((address(false), address(true)), (6200, 6201));
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
