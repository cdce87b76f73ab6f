//! A cluster that could be bought: kinds of the catalogue and their numbers.

use crate::durability::{RebuildAssumptions, RebuildTimes, rebuild_times, usual_part_power, years_to_loss};
use crate::inventory::PurchaseInventory;
use crate::model::cluster::{BalancerGroup, ClusterModel, GatewayGroup, StorageGroup};
use crate::model::workload::Protection;
use crate::search::racks::{RackRoom, RackedServers, racks_needed};
use serde::Serialize;

/// Years that a ring is planned for.
const RING_YEARS: f64 = 10.0;
/// A ring is planned for this many times the drives of its first day at most.
const MOST_GROWTH: f64 = 100.0;

/// Which kinds a cluster is made of. Numbers are places in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// The gateways.
    pub gateway: usize,
    /// The storage nodes.
    pub storage: usize,
    /// Their drives for objects.
    pub drive: usize,
    /// How many are in each node.
    pub drives: u32,
    /// Drives for listings, and how many are in each node.
    pub listing: Option<(usize, u32)>,
    /// Metadata of objects is on those, too.
    pub index_on_flash: bool,
    /// The balancers.
    pub balancer: Option<usize>,
    /// How objects are protected.
    pub protection: usize,
}

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeCounts {
    /// Gateways.
    pub gateways: u32,
    /// Storage nodes.
    pub storage: u32,
    /// Balancers.
    pub balancers: u32,
}

/// A cluster that could be bought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterDesign {
    /// What it is made of.
    pub recipe: Recipe,
    /// How many of each.
    pub counts: NodeCounts,
    /// Bytes a second that all gateways share.
    pub uplink: Option<f64>,
}

/// A line of a bill of materials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BillLine {
    /// `gateway`, `storage node`, `drive for objects`, …
    pub role: &'static str,
    /// The kind's name.
    pub name: String,
    /// What one is, in words.
    pub what: String,
    /// How many.
    pub count: u32,
    /// Of one.
    pub price: f64,
    /// Watts of one.
    pub power: f64,
    /// Height of one.
    pub rack_units: f64,
}

impl ClusterDesign {
    /// As the model sees it.
    pub fn model(&self, inventory: &PurchaseInventory) -> ClusterModel {
        let Self { recipe, counts, uplink } = self;
        let (gateway, storage) = (&inventory.servers[recipe.gateway], &inventory.servers[recipe.storage]);
        let drive = inventory.drives[recipe.drive].bears;
        let listing = recipe
            .listing
            .map(|(kind, count)| (inventory.drives[kind].bears, count));
        ClusterModel {
            balancers: recipe.balancer.map(|kind| BalancerGroup {
                count: counts.balancers,
                throughput: inventory.balancers[kind].throughput,
            }),
            gateways: GatewayGroup {
                count: counts.gateways,
                cores: gateway.cores,
                network: gateway.network,
                uplink: *uplink,
            },
            storage: StorageGroup {
                count: counts.storage,
                cores: storage.cores,
                network: storage.network,
                memory: storage.memory,
                drives: recipe.drives,
                drive,
                listing_drives: listing.map_or(0, |(_, count)| count),
                listing_drive: listing.map_or(drive, |(bears, _)| bears),
                index_on_flash: recipe.index_on_flash,
            },
            protection: self.protection(inventory),
            listing_replicas: inventory.listing_replicas,
        }
    }

    /// How objects are protected.
    pub fn protection(&self, inventory: &PurchaseInventory) -> Protection {
        inventory.protections[self.recipe.protection]
    }

    /// Everything that is bought.
    pub fn bill(&self, inventory: &PurchaseInventory) -> Vec<BillLine> {
        let Self { recipe, counts, .. } = self;
        let server = |role, kind: usize, count| {
            let one = &inventory.servers[kind];
            BillLine {
                role,
                name: one.name.clone(),
                what: format!(
                    "{} cores, {:.0} GB of memory, {:.0} Gbit/s",
                    one.cores,
                    one.memory / 1e9,
                    one.network * 8.0 / 1e9
                ),
                count,
                price: one.price,
                power: one.power,
                rack_units: one.rack_units,
            }
        };
        let drive = |role, kind: usize, count| {
            let one = &inventory.drives[kind];
            BillLine {
                role,
                name: one.name.clone(),
                what: format!("{:.2} TB", one.size / 1e12),
                count,
                price: one.price,
                power: one.power,
                rack_units: 0.0,
            }
        };
        let mut lines = vec![];
        if let Some(kind) = recipe.balancer {
            let one = &inventory.balancers[kind];
            lines.push(BillLine {
                role: "balancer",
                name: one.name.clone(),
                what: format!("{:.0} Gbit/s", one.throughput * 8.0 / 1e9),
                count: counts.balancers,
                price: one.price,
                power: one.power,
                rack_units: one.rack_units,
            });
        }
        lines.push(server("gateway", recipe.gateway, counts.gateways));
        lines.push(server("storage node", recipe.storage, counts.storage));
        lines.push(drive("drive for objects", recipe.drive, counts.storage * recipe.drives));
        if let Some((kind, count)) = recipe.listing {
            let role = match recipe.index_on_flash {
                true => "drive for listings and metadata",
                false => "drive for listings",
            };
            lines.push(drive(role, kind, counts.storage * count));
        }
        lines
    }

    /// Price, watts and height of everything, without making a bill of it.
    pub fn totals(&self, inventory: &PurchaseInventory) -> DesignTotals {
        let Self { recipe, counts, .. } = self;
        let mut totals = DesignTotals::default();
        if let Some(kind) = recipe.balancer {
            let one = &inventory.balancers[kind];
            totals.add(counts.balancers, one.price, one.power, one.rack_units);
        }
        for (kind, count) in [(recipe.gateway, counts.gateways), (recipe.storage, counts.storage)] {
            let one = &inventory.servers[kind];
            totals.add(count, one.price, one.power, one.rack_units);
        }
        let listing = recipe.listing.unwrap_or((recipe.drive, 0));
        for (kind, count) in [(recipe.drive, recipe.drives), listing] {
            let one = &inventory.drives[kind];
            totals.add(counts.storage * count, one.price, one.power, 0.0);
        }
        totals
    }

    /// Servers of each kind, with what one of them takes of a rack.
    pub fn servers(&self, inventory: &PurchaseInventory) -> Vec<RackedServers> {
        let Self { recipe, counts, .. } = self;
        let (gateway, storage) = (&inventory.servers[recipe.gateway], &inventory.servers[recipe.storage]);
        let of_drives = |(kind, count): (usize, u32)| f64::from(count) * inventory.drives[kind].power;
        let drives = of_drives((recipe.drive, recipe.drives)) + recipe.listing.map_or(0.0, of_drives);
        let balancer = recipe.balancer.map(|kind| &inventory.balancers[kind]);
        let all = [
            (counts.storage, storage.rack_units, storage.power + drives),
            (counts.gateways, gateway.rack_units, gateway.power),
            (
                counts.balancers,
                balancer.map_or(0.0, |one| one.rack_units),
                balancer.map_or(0.0, |one| one.power),
            ),
        ];
        let servers = all
            .into_iter()
            .map(|(count, units, power)| RackedServers { count, units, power });
        servers.filter(|one| one.count > 0).collect()
    }

    /// Racks that it needs; none where one of its servers has no room in any.
    pub fn racks(&self, inventory: &PurchaseInventory) -> Option<f64> {
        let room = RackRoom {
            units: inventory.wanted.units_per_rack,
            power: inventory.wanted.power_per_rack,
        };
        racks_needed(room, &self.servers(inventory))
    }

    /// Bytes of objects that fit when drives are as full as they may be.
    pub fn capacity(&self, inventory: &PurchaseInventory) -> f64 {
        let drives = f64::from(self.counts.storage) * f64::from(self.recipe.drives);
        drives * inventory.drives[self.recipe.drive].size * inventory.wanted.fill
            / self.protection(inventory).overhead()
    }

    /// Drives when the ring is at its end.
    pub fn final_drives(&self, inventory: &PurchaseInventory) -> f64 {
        let drives = f64::from(self.counts.storage) * f64::from(self.recipe.drives);
        let growth = (1.0 + inventory.wanted.growth_a_year.max(0.0)).powf(RING_YEARS);
        (drives * growth.min(MOST_GROWTH)).ceil()
    }

    /// Hours of rebuilding.
    pub fn rebuild_times(&self, inventory: &PurchaseInventory) -> RebuildTimes {
        let assumed = RebuildAssumptions {
            stored: inventory.drives[self.recipe.drive].size * inventory.wanted.fill,
            share: inventory.wanted.rebuild_share,
            zones: inventory.wanted.zones,
        };
        rebuild_times(&self.model(inventory), assumed)
    }

    /// Years until some object is lost.
    pub fn years_to_loss(&self, inventory: &PurchaseInventory) -> f64 {
        years_to_loss(
            self.protection(inventory),
            self.counts.storage * self.recipe.drives,
            usual_part_power(self.final_drives(inventory)),
            inventory.drives[self.recipe.drive].failures_a_year,
            self.rebuild_times(inventory).drive,
        )
    }
}

/// Price, watts and height.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct DesignTotals {
    /// In the currency of the catalogue.
    pub price: f64,
    /// Watts.
    pub power: f64,
    /// Height.
    pub rack_units: f64,
}

impl DesignTotals {
    fn add(&mut self, count: u32, price: f64, power: f64, rack_units: f64) {
        let count = f64::from(count);
        self.price += count * price;
        self.power += count * power;
        self.rack_units += count * rack_units;
    }
}
