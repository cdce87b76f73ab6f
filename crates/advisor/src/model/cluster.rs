//! The hardware that a prediction is about.

use super::workload::Protection;
use serde::Serialize;

/// A cluster of equal gateways and equal storage nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterModel {
    /// In front of the gateways; nothing where clients reach them directly.
    pub balancers: Option<BalancerGroup>,
    /// The gateways.
    pub gateways: GatewayGroup,
    /// The storage nodes.
    pub storage: StorageGroup,
    /// How objects are protected.
    pub protection: Protection,
    /// Copies of each listing.
    pub listing_replicas: u32,
}

/// Balancers. All bytes of all requests go through them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BalancerGroup {
    /// How many.
    pub count: u32,
    /// Bytes a second of bodies that one passes on, in both directions together.
    pub throughput: f64,
}

/// Gateways.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GatewayGroup {
    /// How many.
    pub count: u32,
    /// Processors of one.
    pub cores: f64,
    /// Bytes a second of its network, in each direction.
    pub network: f64,
    /// Bytes a second, in each direction, that all gateways share towards the storage nodes, where they do.
    pub uplink: Option<f64>,
}

/// Storage nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StorageGroup {
    /// How many.
    pub count: u32,
    /// Processors of one.
    pub cores: f64,
    /// Bytes a second of its network, in each direction.
    pub network: f64,
    /// Bytes of memory of one.
    pub memory: f64,
    /// Drives for objects in one.
    pub drives: u32,
    /// What each of them bears.
    pub drive: DrivePower,
    /// Drives for listings in one; none where listings lie on the drives of objects.
    pub listing_drives: u32,
    /// What each of those bears.
    pub listing_drive: DrivePower,
    /// Whether metadata of objects (directories, inodes, an index) lie on a fast device.
    pub index_on_flash: bool,
}

/// What a drive bears.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DrivePower {
    /// Bytes a second of long transfers.
    pub transfer: f64,
    /// Small operations a second.
    pub operations: f64,
}

impl StorageGroup {
    /// Drives for objects in all nodes.
    pub fn all_drives(&self) -> u32 {
        self.count * self.drives
    }
}
