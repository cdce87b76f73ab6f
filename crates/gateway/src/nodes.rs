//! The devices of the rings as nodes to call.
//!
//! Always holds: the nodes of a ring are made once, and shared by all requests that use it.

use parking_lot::Mutex;
use peer::message::RequestContext;
use placement::{Device, Ring};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// Rings whose nodes are kept: those of all policies, and what a reload leaves for a moment.
const RINGS_KEPT: usize = 64;

/// A device and the service in front of it. Copies share their texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The service's address as the ring has it.
    pub ip: Arc<str>,
    /// Its port.
    pub port: u16,
    /// Where it is for others of the cluster, as the ring has it: `replication_ip` and `replication_port`.
    pub inside: (Arc<str>, u16),
    /// The device's directory name.
    pub device: Arc<str>,
    /// Its region.
    pub region: u32,
    /// Its zone in the region.
    pub zone: u32,
}

impl Node {
    /// A device of a ring.
    pub fn of(device: &Device) -> Self {
        Self {
            ip: device.ip.as_str().into(),
            port: device.port,
            inside: (device.replication_ip.as_str().into(), device.replication_port),
            device: device.device.as_str().into(),
            region: device.region,
            zone: device.zone,
        }
    }

    /// Where a message goes: upkeep asks for the network on which replicas are made.
    pub fn address(&self, context: &RequestContext) -> (&Arc<str>, u16) {
        match context.uses_replication_network {
            true => (&self.inside.0, self.inside.1),
            false => (&self.ip, self.port),
        }
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.ip, self.port, self.device)
    }
}

/// The nodes of one ring, by the number of their device.
pub(crate) struct RingNodes(Vec<Option<Node>>);

impl RingNodes {
    fn of(ring: &Ring) -> Self {
        let mut nodes = Vec::new();
        for device in ring.devices() {
            let place = device.id as usize;
            nodes.resize(nodes.len().max(place + 1), None);
            nodes[place] = Some(Node::of(device));
        }
        Self(nodes)
    }

    /// The node of a device of this ring.
    pub(crate) fn node(&self, device: &Device) -> Node {
        let known = self.0.get(device.id as usize).and_then(Option::as_ref);
        known.cloned().unwrap_or_else(|| Node::of(device))
    }
}

/// The nodes of the rings in use.
#[derive(Clone, Default)]
pub struct NodeTables(Arc<Mutex<Vec<NodeTable>>>);

/// A ring and its nodes.
type NodeTable = (Arc<Ring>, Arc<RingNodes>);

impl NodeTables {
    /// The nodes of `ring`, made when it is seen for the first time.
    pub(crate) fn of(&self, ring: &Arc<Ring>) -> Arc<RingNodes> {
        let mut tables = self.0.lock();
        if let Some((_, nodes)) = tables.iter().find(|(known, _)| Arc::ptr_eq(known, ring)) {
            return nodes.clone();
        }
        let nodes = Arc::new(RingNodes::of(ring));
        // Tables of rings that nothing else uses belong to files that have been replaced.
        tables.retain(|(known, _)| Arc::strong_count(known) > 1);
        tables.truncate(RINGS_KEPT - 1);
        tables.push((ring.clone(), nodes.clone()));
        nodes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A node of a region.
    pub(crate) fn node(region: u32, device: &str) -> Node {
        Node {
            ip: format!("10.0.{region}.1").into(),
            port: 6200,
            inside: (format!("10.0.{region}.1").into(), 6200),
            device: device.into(),
            region,
            zone: 1,
        }
    }
}
