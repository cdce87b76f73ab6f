//! Where everything belongs: the rings of a cluster of a given size, the same in every run.

use crate::history::Violation;
use arc_swap::ArcSwap;
use placement::{Device, Ring, RingBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::HashPrefix;

/// A topology for each size of cluster; made once for many runs.
pub struct Topologies(BTreeMap<usize, Arc<Topology>>);

impl Topologies {
    /// For all sizes that plans draw.
    pub fn new() -> Result<Self, Violation> {
        let made = (4..=6).map(|nodes| Ok((nodes, Arc::new(Topology::new(nodes)?))));
        made.collect::<Result<_, Violation>>().map(Self)
    }

    /// For so many nodes.
    pub(crate) fn of(&self, nodes: usize) -> Result<Arc<Topology>, Violation> {
        let topology = self.0.get(&nodes).cloned();
        topology.ok_or_else(|| Violation(format!("no topology of {nodes} nodes")))
    }
}

/// Ports of object servers, and of account and container servers.
pub(crate) const OBJECTS: u16 = 6200;
pub(crate) const LISTINGS: u16 = 6201;
/// Every node's only drive.
pub const DRIVE: &str = "d";
const REPLICAS: f64 = 3.0;

/// Where everything belongs, for a number of nodes; the same in every run.
pub struct Topology {
    /// How many nodes.
    pub nodes: usize,
    /// Of objects.
    pub objects: Arc<ArcSwap<Ring>>,
    /// Of objects, after an operator has changed the weights.
    pub changed: Arc<Ring>,
    /// Of accounts and containers.
    pub listings: Arc<ArcSwap<Ring>>,
    /// Of accounts and containers, after an operator has changed the weights.
    pub changed_listings: Arc<Ring>,
    /// The cluster's secrets.
    pub hash: HashPrefix,
}

impl Topology {
    /// For so many nodes; an error when no ring can be made for them.
    pub fn new(nodes: usize) -> Result<Self, Violation> {
        let hash = HashPrefix::new("before", "after").ok_or_else(|| Violation("no secrets".into()))?;
        Ok(Self {
            nodes,
            objects: Arc::new(ArcSwap::new(ring(nodes, OBJECTS, |_| 1.0)?)),
            changed: ring(nodes, OBJECTS, |node| 1.0 + (node % 3) as f64)?,
            listings: Arc::new(ArcSwap::new(ring(nodes, LISTINGS, |_| 1.0)?)),
            changed_listings: ring(nodes, LISTINGS, |node| 1.0 + (node % 3) as f64)?,
            hash,
        })
    }

    /// The same, with a ring of its own that may be changed.
    pub(crate) fn unshared(&self) -> Self {
        Self {
            nodes: self.nodes,
            objects: Arc::new(ArcSwap::new(self.objects.load_full())),
            changed: self.changed.clone(),
            listings: Arc::new(ArcSwap::new(self.listings.load_full())),
            changed_listings: self.changed_listings.clone(),
            hash: self.hash.clone(),
        }
    }
}

fn ring(nodes: usize, port: u16, weight: impl Fn(usize) -> f64) -> Result<Arc<Ring>, Violation> {
    let mut builder = RingBuilder::new(3, REPLICAS, 1).map_err(unbuildable)?;
    for node in 0..nodes {
        let device = Device {
            region: 1,
            zone: node as u32,
            weight: weight(node),
            ip: address(node),
            port,
            replication_ip: address(node),
            replication_port: port,
            device: DRIVE.into(),
            ..Device::default()
        };
        builder.add(device).map_err(unbuildable)?;
    }
    builder.rebalance(1, 0).map_err(unbuildable)?;
    let ring = builder.to_ring().map_err(unbuildable)?;
    Ok(Arc::new(Ring::new(ring)))
}

fn unbuildable(error: impl std::fmt::Display) -> Violation {
    Violation(format!("no ring can be made: {error}"))
}

/// How other nodes reach a node.
pub(crate) fn address(node: usize) -> String {
    format!("10.0.0.{}", node + 1)
}
