//! The least cluster of a recipe that bears a goal.
//!
//! Gateways, balancers and storage nodes have resources of their own, and each resource's limit grows with the number
//! of its servers. So the least numbers are found one by one; only a wanted p99 ties them together, and is reached by
//! adding where a unit of money shortens it most.
//! Always holds: what this file calls possible meets every constraint; a larger goal never has a smaller answer.

use super::design::{ClusterDesign, NodeCounts, Recipe};
use crate::inventory::{PurchaseInventory, Wanted};
use crate::model::latency::{is_p99_within, likely_p99};
use crate::model::limits::{Resource, demands};
use crate::model::rates::{Bound, SoftwareRates};
use serde::Serialize;

/// More storage nodes than a cluster has.
pub const MOST_NODES: u32 = 10_000;
/// Requests a second of a cluster that does nothing: a wanted p99 holds for the first request, too.
const IDLE: f64 = 1e-6;
/// Steps towards a wanted p99.
const MOST_STEPS: usize = 60;

/// What must be borne.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Goal {
    /// Bytes of objects.
    pub capacity: f64,
    /// Bytes of bodies a second.
    pub throughput: f64,
}

impl Goal {
    /// What is wanted, grown by as many years as it must suffice for.
    pub fn of(wanted: &Wanted) -> Self {
        // What shrinks has to find room today.
        let grown = (1.0 + wanted.growth_a_year).powf(wanted.years).max(1.0);
        Self {
            capacity: wanted.capacity.unwrap_or(0.0) * grown,
            throughput: wanted.throughput.unwrap_or(0.0) * grown,
        }
    }
}

/// What all searches share.
#[derive(Clone, Copy)]
pub struct SearchContext<'a> {
    /// The catalogue.
    pub inventory: &'a PurchaseInventory,
    /// What the software costs.
    pub rates: &'a SoftwareRates,
}

impl SearchContext<'_> {
    /// The cheapest cluster of a recipe that bears a goal under all constraints; none where there is none.
    pub fn least(&self, recipe: Recipe, goal: Goal) -> Option<ClusterDesign> {
        let requests = goal.throughput / self.inventory.mix.bytes_per_request();
        let storage = self.storage_nodes(recipe, goal, requests)?;
        let mut design = ClusterDesign {
            recipe,
            counts: NodeCounts {
                gateways: 1,
                storage,
                balancers: u32::from(recipe.balancer.is_some()),
            },
            uplink: None,
        };
        let (gateways, balancers) = self.needed_in_front(&design, requests);
        design.counts.gateways = gateways;
        if recipe.balancer.is_some() {
            design.counts.balancers = balancers;
        }
        if !self.fits(&design) {
            return None;
        }
        design = self.fast_enough(design, requests)?;
        let wanted = self.inventory.wanted.years_to_loss;
        let is_lasting = wanted.is_none_or(|years| design.years_to_loss(self.inventory) >= years);
        is_lasting.then_some(design)
    }

    /// Storage nodes for capacity, zones, pieces and load.
    fn storage_nodes(&self, recipe: Recipe, goal: Goal, requests: f64) -> Option<u32> {
        let inventory = self.inventory;
        let protection = inventory.protections[recipe.protection];
        let drive = inventory.drives[recipe.drive].size * inventory.wanted.fill;
        let of_node = drive * f64::from(recipe.drives) / protection.overhead();
        let most = inventory.servers[recipe.storage].most.min(MOST_NODES);
        let for_capacity = (goal.capacity / of_node).ceil();
        if for_capacity > f64::from(most) {
            return None;
        }
        let for_pieces = match protection {
            // A replica lies on a node of its own; fragments may share nodes.
            crate::model::workload::Protection::Replicas(count) => count,
            crate::model::workload::Protection::Erasure { .. } => protection.pieces().div_ceil(recipe.drives.max(1)),
        };
        let least = (for_capacity as u32).max(inventory.wanted.zones).max(for_pieces).max(1);
        let bears = |count| self.storage_bears(recipe, count, requests);
        if least > most || !bears(most) {
            return None;
        }
        // The least number that bears it: more nodes bear more, and cache more.
        let (mut low, mut high) = (least, most);
        while low < high {
            let middle = low + (high - low) / 2;
            match bears(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Some(high)
    }

    fn storage_bears(&self, recipe: Recipe, storage: u32, requests: f64) -> bool {
        let design = ClusterDesign {
            recipe,
            counts: NodeCounts {
                gateways: 1,
                storage,
                balancers: 1,
            },
            uplink: None,
        };
        let all = demands(
            &design.model(self.inventory),
            &self.inventory.mix,
            self.rates,
            Bound::Likely,
        );
        let most = self.inventory.wanted.utilisation;
        let is_borne =
            |demand: &crate::model::limits::ResourceDemand| requests * demand.seconds <= most * demand.servers;
        all.iter()
            .filter(|demand| demand.resource.grows_with_storage())
            .all(is_borne)
    }

    /// Gateways and balancers that a load needs, of a design that has one of each.
    fn needed_in_front(&self, design: &ClusterDesign, requests: f64) -> (u32, u32) {
        let wanted = &self.inventory.wanted;
        let (mut gateways, mut balancers) = (wanted.gateways, 1);
        for demand in demands(
            &design.model(self.inventory),
            &self.inventory.mix,
            self.rates,
            Bound::Likely,
        ) {
            let needed = |most: f64| (requests * demand.seconds / (most * demand.servers)).ceil() as u32;
            match demand.resource {
                Resource::Balancer => balancers = balancers.max(needed(wanted.balancer_utilisation)),
                Resource::GatewayNetwork | Resource::GatewayProcessor => {
                    gateways = gateways.max(needed(wanted.utilisation));
                }
                _ => {}
            }
        }
        (gateways, balancers)
    }

    /// Whether budget, racks, power and what can be had suffice.
    pub fn fits(&self, design: &ClusterDesign) -> bool {
        let (wanted, totals) = (&self.inventory.wanted, design.totals(self.inventory));
        let within = |most: Option<f64>, value: f64| most.is_none_or(|most| value <= most);
        within(wanted.budget, totals.price)
            && self.has_racks(design)
            && design.counts.gateways <= self.inventory.servers[design.recipe.gateway].most
            && design.counts.storage <= self.inventory.servers[design.recipe.storage].most
    }

    /// Whether each server has its place in the racks that there are.
    fn has_racks(&self, design: &ClusterDesign) -> bool {
        let wanted = &self.inventory.wanted;
        match (wanted.racks, wanted.units_per_rack, wanted.power_per_rack) {
            (_, None, None) => true,
            (racks, ..) => design
                .racks(self.inventory)
                .is_some_and(|needed| racks.is_none_or(|racks| needed <= f64::from(racks))),
        }
    }

    /// The design with as much more as its p99 needs.
    fn fast_enough(&self, mut design: ClusterDesign, requests: f64) -> Option<ClusterDesign> {
        let Some(wanted) = self.inventory.wanted.p99 else {
            return Some(design);
        };
        let requests = requests.max(IDLE);
        let p99 = |design: &ClusterDesign| {
            let found = likely_p99(&design.model(self.inventory), &self.inventory.mix, self.rates, requests);
            found.unwrap_or(f64::INFINITY)
        };
        let is_fast = |design: &ClusterDesign| {
            let model = design.model(self.inventory);
            is_p99_within(&model, &self.inventory.mix, self.rates, requests, wanted)
        };
        if is_fast(&design) {
            return Some(design);
        }
        // What as many servers as can be had do not reach is not reached by steps towards it.
        let most = |kind: usize| self.inventory.servers[kind].most.min(MOST_NODES);
        let mut largest = design;
        largest.counts.storage = most(design.recipe.storage).max(design.counts.storage);
        largest.counts.gateways = most(design.recipe.gateway).max(design.counts.gateways);
        if !is_fast(&largest) {
            return None;
        }
        let servers = |design: &ClusterDesign| design.counts.gateways + design.counts.storage;
        let mut now = p99(&design);
        for _ in 0..MOST_STEPS {
            let price = design.totals(self.inventory).price;
            let more = |count: u32| count + (count / 8).max(1);
            let mut additions = [design; 2];
            additions[0].counts.storage = more(design.counts.storage);
            additions[1].counts.gateways = more(design.counts.gateways);
            let gain = |addition: &ClusterDesign| {
                let saved = now - p99(addition);
                let dearer = match price > 0.0 {
                    true => (addition.totals(self.inventory).price - price) / price,
                    // What is there already costs nothing: then the number of servers counts.
                    false => f64::from(servers(addition) - servers(&design)) / f64::from(servers(&design)),
                };
                saved / dearer.max(1e-9)
            };
            let best = additions
                .into_iter()
                .filter(|addition| self.fits(addition))
                .map(|addition| (gain(&addition), addition));
            let (gain, best) = best.max_by(|one, other| one.0.total_cmp(&other.0))?;
            // What is left is service, not waiting: more servers do not shorten it.
            if gain < now * 1e-4 {
                return None;
            }
            design = best;
            if is_fast(&design) {
                return Some(design);
            }
            now = p99(&design);
        }
        None
    }
}
