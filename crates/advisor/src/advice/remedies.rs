//! What would make a design meet a constraint that it does not meet.
//!
//! Each constraint is looked at alone, with the design's own kinds: how many more of them would be enough, and for
//! years to loss how many replicas.
//! Always holds: with what is named the constraint is met, the others left aside; where nothing helps, that is said.

use crate::inventory::{PurchaseInventory, Wanted};
use crate::model::limits::{Resource, demands};
use crate::model::rates::{Bound, SoftwareRates};
use crate::model::workload::Protection;
use crate::search::constraint::{ALL, Constraint};
use crate::search::design::{ClusterDesign, NodeCounts};
use crate::search::least::{Goal, SearchContext};

/// More replicas than a ring has.
const MOST_REPLICAS: u32 = 10;

/// What is wanted of one constraint alone, and of the load that it is about.
fn alone(wanted: &Wanted, constraint: Constraint) -> Wanted {
    let mut alone = wanted.clone();
    for other in ALL {
        let is_its_load = constraint == Constraint::P99 && other == Constraint::Throughput;
        if other != constraint && other != Constraint::Years && !is_its_load {
            other.set(&mut alone, None);
        }
    }
    alone
}

/// What would be enough of the design's own parts; nothing where the constraint itself has to give way.
pub fn remedy(
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    design: &ClusterDesign,
    constraint: Constraint,
) -> Option<String> {
    if !constraint.asks() && constraint != Constraint::P99 {
        return None;
    }
    if constraint == Constraint::YearsToLoss {
        return Some(replicas(inventory, design));
    }
    let mut changed = inventory.clone();
    changed.wanted = alone(&inventory.wanted, constraint);
    let goal = Goal::of(&changed.wanted);
    let context = SearchContext {
        inventory: &changed,
        rates,
    };
    let Some(found) = context.least(design.recipe, goal) else {
        let why = "no number of these kinds that can be had is enough: choose others";
        return Some(why.to_owned());
    };
    let (now, least) = (design.counts, found.counts);
    let counts = NodeCounts {
        gateways: least.gateways.max(now.gateways),
        storage: least.storage.max(now.storage),
        balancers: least.balancers.max(now.balancers),
    };
    let mut parts: Vec<String> = [
        ("gateways", now.gateways, counts.gateways),
        ("storage_nodes", now.storage, counts.storage),
        ("balancers", now.balancers, counts.balancers),
    ]
    .into_iter()
    .filter(|(_, now, enough)| enough > now)
    .map(|(key, _, enough)| format!("{key} = {enough}"))
    .collect();
    parts.extend(uplink(&changed, rates, &ClusterDesign { counts, ..*design }, goal));
    match parts.is_empty() {
        true => None,
        false => Some(format!("{} would be enough", parts.join(" and "))),
    }
}

/// The link that gateways share, where the one that is there does not bear the load.
fn uplink(inventory: &PurchaseInventory, rates: &SoftwareRates, design: &ClusterDesign, goal: Goal) -> Option<String> {
    let requests = goal.throughput / inventory.mix.bytes_per_request();
    let all = demands(&design.model(inventory), &inventory.mix, rates, Bound::Likely);
    let link = all.iter().find(|one| one.resource == Resource::GatewayUplink)?;
    let needed = design.uplink? * requests * link.seconds / inventory.wanted.utilisation;
    (needed > design.uplink?).then(|| format!("uplink = \"{:.0}Mbit/s\"", (needed * 8.0 / 1e6).ceil()))
}

/// As many replicas as last so long.
fn replicas(inventory: &PurchaseInventory, design: &ClusterDesign) -> String {
    let wanted = inventory.wanted.years_to_loss.unwrap_or(0.0);
    let now = design.protection(inventory).pieces();
    let mut changed = inventory.clone();
    let enough = (now + 1..=MOST_REPLICAS).find(|count| {
        changed.protections[design.recipe.protection] = Protection::Replicas(*count);
        let drives = design.counts.storage * design.recipe.drives;
        *count <= drives && design.years_to_loss(&changed) >= wanted
    });
    match (enough, design.protection(inventory)) {
        (Some(count), Protection::Replicas(_)) => format!("replicas = {count} would be enough"),
        _ => "expected more pieces, fewer failures or faster rebuilding (rebuild_share)".to_owned(),
    }
}
