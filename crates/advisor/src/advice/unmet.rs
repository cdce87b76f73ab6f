//! Which of the inventory's constraints a design does not meet, and by how much.
//!
//! Always holds: what is compared is what `buy` asks of its answers (capacity and throughput grown by the years that
//! they must suffice for, resources no busier than they may be), so that an answer of `buy` has nothing unmet.

use super::AdviceAnswer;
use super::remedies::remedy;
use crate::inventory::PurchaseInventory;
use crate::model::estimate::readable;
use crate::model::limits::Resource;
use crate::model::rates::SoftwareRates;
use crate::search::constraint::{ALL, Constraint};
use crate::search::design::ClusterDesign;
use crate::search::least::Goal;
use serde::Serialize;

/// Figures that differ by less are equal.
const ROUNDING: f64 = 1e-9;

/// A constraint that is not met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnmetConstraint {
    /// The key in the inventory.
    pub key: &'static str,
    /// What is wanted, in the units of the inventory's checked figures (bytes, seconds, money, watts).
    pub wanted: f64,
    /// What the design has; infinite where it does not bear the load.
    pub has: f64,
    /// How much less than wanted it has, or how much more than allowed, as a share of what is wanted.
    pub off: f64,
    /// The same in words.
    pub text: String,
    /// What would make the design meet it, in words; none where the constraint itself has to give way.
    pub remedy: Option<String>,
}

impl UnmetConstraint {
    fn new(key: &'static str, asks: bool, (wanted, has): (f64, f64), shown: impl Fn(f64) -> String) -> Option<Self> {
        let is_met = match asks {
            true => has >= wanted * (1.0 - ROUNDING),
            false => has <= wanted * (1.0 + ROUNDING),
        };
        let off = ((has - wanted) / wanted).abs();
        let (limit, than) = if asks { ("wanted", "less") } else { ("at most", "more") };
        let has_words = match has.is_finite() {
            true => shown(has),
            false => "the load is not borne".to_owned(),
        };
        // More than nothing, or without bound, is no share of what is wanted.
        let off_words = match off.is_finite() {
            true => format!(": {} % {than}", readable(off * 100.0)),
            false => String::new(),
        };
        (!is_met).then(|| Self {
            text: format!("{has_words}, {limit} {}{off_words}", shown(wanted)),
            key,
            wanted,
            has,
            off,
            remedy: None,
        })
    }

    fn of(constraint: Constraint, wanted: Option<f64>, has: f64) -> Option<Self> {
        let pair = (wanted?, has);
        Self::new(constraint.key(), constraint.asks(), pair, |value| {
            constraint.shown(value)
        })
    }
}

/// Everything that is not met, what is missed by the largest share first.
pub fn unmet(
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    design: &ClusterDesign,
    answer: &AdviceAnswer,
) -> Vec<UnmetConstraint> {
    let (wanted, goal) = (&inventory.wanted, Goal::of(&inventory.wanted));
    let busy = |resource| match resource {
        Resource::Balancer => wanted.balancer_utilisation,
        _ => wanted.utilisation,
    };
    let limits = answer.throughput.limits.iter();
    let borne = limits.map(|limit| limit.requests.value * busy(limit.resource));
    let borne = borne.fold(f64::INFINITY, f64::min) * inventory.mix.bytes_per_request();
    let p99 = answer
        .latency
        .as_ref()
        .map_or(f64::INFINITY, |latency| latency.p99.value);
    let (racks, servers) = (design.racks(inventory), design.servers(inventory));
    let tallest = servers.iter().map(|one| one.units).fold(0.0, f64::max);
    let hungriest = servers.iter().map(|one| one.power).fold(0.0, f64::max);
    let all = [
        UnmetConstraint::of(
            Constraint::Capacity,
            wanted.capacity.map(|_| goal.capacity),
            answer.capacity,
        ),
        UnmetConstraint::of(
            Constraint::Throughput,
            wanted.throughput.map(|_| goal.throughput),
            borne,
        ),
        UnmetConstraint::of(Constraint::P99, wanted.p99, p99),
        UnmetConstraint::of(Constraint::Budget, wanted.budget, answer.totals.price),
        UnmetConstraint::of(Constraint::UnitsPerRack, wanted.units_per_rack, tallest),
        UnmetConstraint::of(Constraint::PowerPerRack, wanted.power_per_rack, hungriest),
        // Where a server has no room in any rack, units or watts of one are what is not met.
        UnmetConstraint::of(Constraint::Racks, wanted.racks.map(f64::from), racks.unwrap_or(0.0)),
        UnmetConstraint::of(
            Constraint::YearsToLoss,
            wanted.years_to_loss,
            answer.years_to_loss.value,
        ),
        UnmetConstraint::of(
            Constraint::Zones,
            Constraint::Zones.value(wanted),
            f64::from(answer.zones),
        ),
        UnmetConstraint::of(
            Constraint::Gateways,
            Constraint::Gateways.value(wanted),
            f64::from(answer.counts.gateways),
        ),
    ];
    let mut found: Vec<UnmetConstraint> = all.into_iter().flatten().collect();
    for one in &mut found {
        let constraint = ALL.iter().find(|constraint| constraint.key() == one.key);
        one.remedy = constraint.and_then(|constraint| remedy(inventory, rates, design, *constraint));
    }
    found.sort_by(|one, other| other.off.total_cmp(&one.off));
    found
}
