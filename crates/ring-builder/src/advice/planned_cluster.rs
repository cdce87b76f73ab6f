//! The cluster that `plan` proposes a ring for.

use super::inventory::{Inventory, InventoryServer};

/// What a drive holds when not given: weights are relative.
pub(super) const USUAL_SIZE: f64 = 1e12;

/// What is known of the cluster.
pub(super) struct PlannedCluster {
    pub(super) inventory: Inventory,
    pub(super) drives: u32,
    pub(super) final_drives: u32,
    pub(super) zones: u32,
    pub(super) regions: u32,
    pub(super) servers: Option<u32>,
    pub(super) drive_size: Option<f64>,
    pub(super) replicas: f64,
    pub(super) hours: u32,
}

impl PlannedCluster {
    /// What each drive of a server holds, in bytes.
    pub(super) fn size_of_a_drive(&self, server: &InventoryServer) -> f64 {
        server.drive_size.or(self.drive_size).unwrap_or(USUAL_SIZE)
    }
}
