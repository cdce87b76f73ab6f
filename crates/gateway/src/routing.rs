//! In which order nodes are asked: `sorting_method`, `read_affinity`. Where a write goes first: `route.rs`.
//!
//! Always holds: an order leaves no node out and names none twice; among equals it is random, so that load spreads,
//! but a node in this process comes before one behind a connection.
//! Source: the deployment guide's chapter on global clusters; options as in OpenStack Swift 2.38.

use crate::nodes::Node;
use crate::shared::Shared;
use settings::{Routing, SortingMethod};
use world::random::shuffle;

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
