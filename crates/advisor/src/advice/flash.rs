//! What flash and memory give, for each storage node, and when they pay.
//!
//! A change pays when the storage nodes that would give as much throughput cost more than it does.
//! Always holds: it saves nodes only where their throughput is what ends first; where something else does, that is
//! said.

use super::subject::AdviceSubject;
use crate::inventory::PurchaseInventory;
use crate::model::cluster::ClusterModel;
use crate::model::estimate::Estimate;
use crate::model::limits::{Resource, ResourceLimit, throughput};
use crate::search::design::ClusterDesign;
use serde::Serialize;

/// What a change of all storage nodes gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlashAdvice {
    /// What is changed.
    pub change: String,
    /// By which factor the storage nodes bear more.
    pub gain: Estimate,
    /// Storage nodes that would give as much.
    pub nodes_saved: u32,
    /// The price of those, for each node that is changed: what the change may cost there to pay.
    pub worth_per_node: f64,
    /// What it costs in each node, where the catalogue says it.
    pub price_per_node: Option<f64>,
    /// What ends before the storage nodes do, so that there is no more throughput before that is changed; none where
    /// they end first.
    pub ends_before: Option<Resource>,
    /// The node has no free bay for it: it takes the place of drives for objects.
    pub takes_bays: bool,
}

impl FlashAdvice {
    /// Whether it pays; nothing where that depends on its price, which is not known.
    pub fn pays(&self) -> Option<bool> {
        match self.price_per_node {
            // What saves no node is worth nothing, whatever it costs.
            None if self.nodes_saved == 0 => Some(false),
            price => price.map(|price| price < self.worth_per_node),
        }
    }
}

/// Each change that gives anything.
pub fn flash(subject: &AdviceSubject<'_>, inventory: &PurchaseInventory, design: &ClusterDesign) -> Vec<FlashAdvice> {
    let drives = inventory.drives.iter().filter(|drive| drive.is_flash);
    let Some(cheapest) = drives.min_by(|one, other| one.price.total_cmp(&other.price)) else {
        return vec![];
    };
    let (storage, bears) = (&subject.model.storage, cheapest.bears);
    let node = inventory.servers[design.recipe.storage].price
        + f64::from(design.recipe.drives) * inventory.drives[design.recipe.drive].price;
    let ends_before = Some(subject.bottleneck()).filter(|one| !one.grows_with_storage());
    let used = design.recipe.drives + storage.listing_drives;
    let free = inventory.servers[design.recipe.storage].bays.saturating_sub(used);
    let mut all = vec![];
    let mut add = |change: String, (price, bays): (Option<f64>, u32), make: &dyn Fn(&mut ClusterModel)| {
        let gain = storage_gain(subject, make);
        if gain.value > 1.01 {
            let saved = (f64::from(storage.count) * (gain.value - 1.0)).floor();
            all.push(FlashAdvice {
                change,
                gain,
                nodes_saved: saved as u32,
                worth_per_node: saved * node / f64::from(storage.count),
                price_per_node: price,
                ends_before,
                takes_bays: bays > free,
            });
        }
    };
    if storage.listing_drives == 0 && !subject.drive_is_flash {
        let change = format!("one {} for listings", cheapest.name);
        add(change, (Some(cheapest.price), 1), &|model| {
            model.storage.listing_drives = 1;
            model.storage.listing_drive = bears;
        });
    }
    if !storage.index_on_flash && !subject.drive_is_flash {
        let change = format!("two {} for metadata of objects and listings", cheapest.name);
        let price = 2.0 * cheapest.price;
        add(change, (Some(price), 2), &|model| {
            model.storage.index_on_flash = true;
            model.storage.listing_drives = 2;
            model.storage.listing_drive = bears;
        });
        let change = format!(
            "{:.0} GB of memory rather than {:.0}",
            storage.memory / 5e8,
            storage.memory / 1e9
        );
        add(change, (None, 0), &|model| model.storage.memory *= 2.0);
    }
    all
}

/// By which factor the least resource of storage nodes grows. What the software costs is the same before and after, so
/// that each end of a band is compared with the same end.
fn storage_gain(subject: &AdviceSubject<'_>, make: &dyn Fn(&mut ClusterModel)) -> Estimate {
    let mut changed = subject.model.clone();
    make(&mut changed);
    let after = throughput(&changed, subject.mix, subject.rates);
    let least = |limits: &[ResourceLimit]| {
        let of_storage = limits.iter().filter(|limit| limit.resource.grows_with_storage());
        Estimate::least(of_storage.map(|limit| limit.requests))
    };
    let (before, after) = (least(&subject.limits), least(&after.limits));
    let ends = [
        after.low / before.low,
        after.high / before.high,
        after.value / before.value,
    ];
    match ends.iter().all(|one| one.is_finite()) {
        true => Estimate {
            value: ends[2],
            low: ends.iter().copied().fold(f64::INFINITY, f64::min),
            high: ends.iter().copied().fold(0.0, f64::max),
        },
        false => Estimate::exact(1.0),
    }
}
