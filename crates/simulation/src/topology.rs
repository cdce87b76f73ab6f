//! Where everything belongs: the rings of a cluster of a given size, the same in every run.

use crate::history::Violation;
use arc_swap::ArcSwap;
use placement::{Device, Ring, RingBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{HashPrefix, Partition, PolicyIndex};

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
/// Ports of account servers where they are servers of their own.
pub(crate) const ACCOUNTS: u16 = 6202;
/// The names of the policies where there are two.
pub(crate) const POLICIES: [&str; 2] = ["zero", "one"];
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
    /// Of objects of the second policy.
    pub others: Arc<ArcSwap<Ring>>,
    /// Of accounts where they have servers of their own.
    pub accounts: Arc<ArcSwap<Ring>>,
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
            others: Arc::new(ArcSwap::new(ring(nodes, OBJECTS, |node| 1.0 + (node % 2) as f64)?)),
            accounts: Arc::new(ArcSwap::new(ring(nodes, ACCOUNTS, |_| 1.0)?)),
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
            others: Arc::new(ArcSwap::new(self.others.load_full())),
            accounts: Arc::new(ArcSwap::new(self.accounts.load_full())),
            listings: Arc::new(ArcSwap::new(self.listings.load_full())),
            changed_listings: self.changed_listings.clone(),
            hash: self.hash.clone(),
        }
    }
}

impl Topology {
    /// The rings of the policies: of both, or of the first.
    pub(crate) fn object_rings(&self, both: bool) -> BTreeMap<PolicyIndex, Arc<ArcSwap<Ring>>> {
        let mut rings = BTreeMap::from([(PolicyIndex(0), self.objects.clone())]);
        if both {
            rings.insert(PolicyIndex(1), self.others.clone());
        }
        rings
    }

    /// The ring of a policy.
    pub(crate) fn ring_of(&self, policy: usize) -> &Arc<ArcSwap<Ring>> {
        match policy {
            0 => &self.objects,
            _ => &self.others,
        }
    }

    /// Where an object belongs.
    pub(crate) fn object_partition(&self, policy: usize, account: &str, container: &str, object: &str) -> Partition {
        let hash = self.hash.object(account, container, object);
        self.ring_of(policy).load().partition_of(&hash.0)
    }

    /// Where a container belongs.
    pub(crate) fn container_partition(&self, account: &str, container: &str) -> Partition {
        let hash = self.hash.container(account, container);
        self.listings.load().partition_of(&hash.0)
    }

    /// Where an account belongs.
    pub(crate) fn account_partition(&self, account: &str) -> Partition {
        self.accounts.load().partition_of(&self.hash.account(account).0)
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

/// Which node is reached so.
pub(crate) fn node_of(address: &str) -> Option<usize> {
    let number: usize = address.strip_prefix("10.0.0.")?.parse().ok()?;
    number.checked_sub(1)
}
