//! Which of the inventory's constraints a design does not meet, and by how much.
//!
//! Always holds: what is compared is what `buy` asks of its answers (capacity and throughput grown by the years that
//! they must suffice for, resources no busier than they may be), so that an answer of `buy` has nothing unmet.

use super::AdviceAnswer;
use crate::inventory::PurchaseInventory;
use crate::model::estimate::readable;
use crate::model::limits::Resource;
use crate::search::conflict::Constraint;
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
pub fn unmet(inventory: &PurchaseInventory, answer: &AdviceAnswer) -> Vec<UnmetConstraint> {
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
    let zones = Some(f64::from(wanted.zones)).filter(|zones| *zones > 1.0);
    let gateways = (f64::from(wanted.gateways), f64::from(answer.counts.gateways));
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
        UnmetConstraint::of(Constraint::RackUnits, wanted.rack_units, answer.totals.rack_units),
        UnmetConstraint::of(Constraint::Power, wanted.power, answer.totals.power),
        UnmetConstraint::of(
            Constraint::YearsToLoss,
            wanted.years_to_loss,
            answer.years_to_loss.value,
        ),
        UnmetConstraint::of(Constraint::Zones, zones, f64::from(answer.zones)),
        UnmetConstraint::new("gateways", true, gateways, |value| format!("{value:.0}")),
    ];
    let mut found: Vec<UnmetConstraint> = all.into_iter().flatten().collect();
    found.sort_by(|one, other| other.off.total_cmp(&one.off));
    found
}
