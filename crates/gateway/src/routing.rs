//! In which order nodes are asked, and where a write goes first: `sorting_method`, `read_affinity`, `write_affinity`.
//!
//! Always holds: an order leaves nobody out and asks nobody twice; among equals it is random, so that load spreads,
//! but a node in this process comes before one behind a wire.
//! Source: the deployment guide's chapter on global clusters; options as in OpenStack Swift 2.38.

use crate::gateway::Shared;
use crate::nodes::Node;
use parking_lot::Mutex;
use settings::{Routing, SortingMethod};
use std::collections::HashMap;
use std::time::Duration;
use world::World;
use world::random::shuffle;

/// How long servers took to answer lately.
pub struct Timings {
    world: World,
    /// `timing_expiry`.
    expiry: Duration,
    known: Mutex<HashMap<(String, u16), Timing>>,
}

struct Timing {
    took: Duration,
    at: Duration,
}

impl Timings {
    /// None known yet.
    pub fn new(world: World, expiry: Duration) -> Self {
        let known = Mutex::default();
        Self { world, expiry, known }
    }

    /// The node's server took that long.
    pub(crate) fn note(&self, node: &Node, took: Duration) {
        let at = self.world.clock.elapsed();
        self.known
            .lock()
            .insert((node.ip.clone(), node.port), Timing { took, at });
    }

    /// `None` for a server not asked lately: it is asked first, so that it is known again.
    fn of(&self, node: &Node) -> Option<Duration> {
        let known = self.known.lock();
        let timing = known.get(&(node.ip.clone(), node.port))?;
        let age = self.world.clock.elapsed().saturating_sub(timing.at);
        // Differences below a millisecond are luck.
        (age < self.expiry).then(|| Duration::from_millis(timing.took.as_millis() as u64))
    }
}

/// The order in which these primaries are asked for a read.
pub(crate) fn order(shared: &Shared, routing: &Routing, mut nodes: Vec<Node>) -> Vec<Node> {
    shuffle(&*shared.world.random, &mut nodes);
    let is_remote = |node: &Node| !shared.peers.is_local(&node.ip, node.port);
    match routing.sorting_method {
        SortingMethod::Shuffle => nodes.sort_by_key(is_remote),
        SortingMethod::Timing => nodes.sort_by_cached_key(|node| (shared.timings.of(node), is_remote(node))),
        SortingMethod::Affinity => {
            nodes.sort_by_key(|node| (routing.read_affinity.priority(node.region, node.zone), is_remote(node)));
        }
    }
    nodes
}

/// Primaries and handoffs with local ones first: local primaries, then local handoffs until there are `count` local
/// nodes, then everybody else.
pub(crate) fn local_first(
    primaries: Vec<Node>,
    handoffs: impl Iterator<Item = Node>,
    is_local: impl Fn(&Node) -> bool,
    count: usize,
) -> Vec<Node> {
    let (mut first, mut rest): (Vec<_>, Vec<_>) = primaries.into_iter().partition(&is_local);
    for handoff in handoffs {
        match first.len() < count && is_local(&handoff) {
            true => first.push(handoff),
            false => rest.push(handoff),
        }
    }
    first.append(&mut rest);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(region: u32, device: &str) -> Node {
        Node {
            ip: format!("10.0.{region}.1"),
            port: 6200,
            inside: (format!("10.0.{region}.1"), 6200),
            device: device.into(),
            region,
            zone: 1,
        }
    }

    #[test]
    fn a_write_stays_at_home_first() {
        let primaries = vec![node(2, "p0"), node(1, "p1"), node(2, "p2")];
        let handoffs = [(2, "h0"), (1, "h1"), (1, "h2"), (1, "h3")].map(|(region, name)| node(region, name));
        let order = |count| -> Vec<String> {
            let nodes = local_first(
                primaries.clone(),
                handoffs.clone().into_iter(),
                |n| n.region == 1,
                count,
            );
            nodes.into_iter().map(|node| node.device).collect()
        };
        assert_eq!(order(3), ["p1", "h1", "h2", "p0", "p2", "h0", "h3"]);
        assert_eq!(order(0), ["p1", "p0", "p2", "h0", "h1", "h2", "h3"]);
    }

    #[test]
    fn a_timing_is_good_for_a_while() {
        let timings = |expiry| Timings::new(World::real(), expiry);
        let (lasting, fleeting) = (timings(Duration::from_secs(60)), timings(Duration::ZERO));
        let took = Duration::from_micros(7_600);
        for known in [&lasting, &fleeting] {
            known.note(&node(1, "sda"), took);
        }
        assert_eq!(lasting.of(&node(1, "sdb")), Some(Duration::from_millis(7)));
        assert_eq!(lasting.of(&node(2, "sda")), None);
        assert_eq!(fleeting.of(&node(1, "sda")), None);
    }
}
