//! What is said of a cluster: its bill, what it bears, how long it lasts, what is wrong with it, and how to check that.
//!
//! Always holds: every output (terminal, JSON, page) is made from an [`AdviceReport`], so that they cannot disagree.
//!
//! | question | file |
//! |---|---|
//! | a design with the model's figures | `advice/subject.rs` |
//! | known mistakes | `advice/pitfalls.rs` |
//! | gateways and storage on one machine | `advice/mixed.rs` |
//! | what flash and memory give | `advice/flash.rs` |
//! | the ring, and the run that would confirm an answer | `advice/next_steps.rs` |
//! | constraints that a design does not meet, and what would | `advice/unmet.rs`, `advice/remedies.rs` |
//! | configuration files and commands of rings | `advice/configuration.rs` |

pub mod configuration;
pub mod flash;
pub mod mixed;
pub mod next_steps;
pub mod pitfalls;
pub mod remedies;
pub mod subject;
pub mod unmet;

use crate::durability::RebuildTimes;
use crate::inventory::{PlannedDesign, PurchaseInventory};
use crate::model::estimate::Estimate;
use crate::model::latency::{LatencyPrediction, latency};
use crate::model::limits::{ThroughputPrediction, throughput};
use crate::model::rates::SoftwareRates;
use crate::model::workload::Protection;
use crate::search::PurchaseQuestion;
use crate::search::conflict::{Relaxation, ScarceServer};
use crate::search::design::{BillLine, ClusterDesign, DesignTotals, NodeCounts, Recipe};
use crate::search::least::Goal;
use next_steps::RingAdvice;
use serde::Serialize;
use subject::AdviceSubject;

/// Failure rates are known to a factor of this much, and rebuild times too: both enter years to loss as powers.
const FAILURE_RATE_ERROR: f64 = 1.0;

/// Everything that is answered.
#[derive(Debug, Serialize)]
pub struct AdviceReport {
    /// What was asked; nothing where a design was looked at.
    pub question: Option<PurchaseQuestion>,
    /// Of all prices.
    pub currency: String,
    /// Which figures of the software the answers rest on.
    pub rates: SoftwareRates,
    /// What had to be borne, growth included.
    pub goal: Option<Goal>,
    /// The best first.
    pub answers: Vec<AdviceAnswer>,
    /// Constraints that contradict each other, where there is no answer.
    pub contradictions: Vec<Relaxation>,
    /// Where none of them is enough alone: values that are enough together.
    pub together: Vec<Relaxation>,
    /// Kinds of server of which more would be an answer as well.
    pub scarce_servers: Vec<ScarceServer>,
    /// As many replicas would be an answer as well.
    pub enough_replicas: Option<u32>,
}

/// One cluster.
#[derive(Debug, Serialize)]
pub struct AdviceAnswer {
    /// Everything that is bought.
    pub bill: Vec<BillLine>,
    /// Price, watts and height.
    pub totals: DesignTotals,
    /// How many of each.
    pub counts: NodeCounts,
    /// How objects are protected.
    pub protection: Protection,
    /// Storage nodes for each gateway.
    pub storage_nodes_per_gateway: f64,
    /// Places that fail by themselves.
    pub zones: u32,
    /// Bytes of objects that fit.
    pub capacity: f64,
    /// The most that it bears.
    pub throughput: ThroughputPrediction,
    /// The load that times are about, in requests a second.
    pub load: f64,
    /// How long requests take then; nothing where it is not borne.
    pub latency: Option<LatencyPrediction>,
    /// With a node or a zone lost.
    pub degraded: Vec<DegradedAnswer>,
    /// Hours of rebuilding.
    pub rebuild: RebuildTimes,
    /// Years until some object is lost, by drives that fail one by one.
    pub years_to_loss: Estimate,
    /// Objects outlive the loss of a zone. Where they do not, a fire or a flood in one decides, and no figure here
    /// has it.
    pub survives_zone: bool,
    /// Of a design that was looked at: constraints of the inventory that it does not meet.
    pub unmet: Vec<unmet::UnmetConstraint>,
    /// The gravest first.
    pub pitfalls: Vec<pitfalls::Pitfall>,
    /// What flash and memory would give.
    pub flash: Vec<flash::FlashAdvice>,
    /// Of nodes that are gateways too.
    pub mixed: Option<mixed::MixedAdvice>,
    /// The ring of objects.
    pub ring: Option<RingAdvice>,
    /// The workload of `martlet bench` that would confirm the answer.
    pub validation: String,
}

impl AdviceAnswer {
    /// What years to loss are those of.
    pub fn of_what_loss(&self) -> &'static str {
        match self.survives_zone {
            true => "by failing drives",
            false => "by failing drives alone: the loss of a zone takes objects at once",
        }
    }
}

/// A cluster that has lost something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DegradedAnswer {
    /// `a node`, for example.
    pub lost: &'static str,
    /// Requests a second that it bears while it rebuilds.
    pub requests: Estimate,
    /// The 99th percentile in seconds at the same load; none where the load is not borne.
    pub p99: Option<Estimate>,
    /// Hours until all pieces are whole again.
    pub hours: Estimate,
}

impl PlannedDesign {
    /// As a cluster that could be bought.
    pub fn design(&self) -> ClusterDesign {
        ClusterDesign {
            recipe: Recipe {
                gateway: self.gateway,
                storage: self.storage,
                drive: self.drive,
                drives: self.drives,
                listing: self.listing_drive,
                index_on_flash: self.index_on_flash,
                balancer: self.balancer.map(|(kind, _)| kind),
                protection: self.protection,
            },
            counts: NodeCounts {
                gateways: self.gateways,
                storage: self.storage_nodes,
                balancers: self.balancer.map_or(0, |(_, count)| count),
            },
            uplink: self.uplink,
        }
    }
}

/// What is to be said of a design at a load in requests a second.
pub fn answer(
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    design: &ClusterDesign,
    requests: Option<f64>,
) -> AdviceAnswer {
    let subject = AdviceSubject::new(inventory, rates, design, requests.filter(|requests| *requests > 0.0));
    let (model, load) = (&subject.model, subject.requests);
    let years = subject.years_to_loss;
    let survived = f64::from(model.protection.losses_survived());
    let room = inventory.drives[design.recipe.drive].size * inventory.wanted.fill * f64::from(design.recipe.drives);
    let planned = inventory.design.as_ref();
    let latency = latency(model, &inventory.mix, rates, load);
    let p99 = latency.as_ref().map(|found| found.p99.value);
    let pitfalls = pitfalls::pitfalls(&subject);
    AdviceAnswer {
        bill: design.bill(inventory),
        totals: design.totals(inventory),
        counts: design.counts,
        protection: model.protection,
        storage_nodes_per_gateway: f64::from(design.counts.storage) / f64::from(design.counts.gateways),
        zones: inventory.wanted.zones.min(design.counts.storage),
        capacity: design.capacity(inventory),
        throughput: throughput(model, &inventory.mix, rates),
        load,
        latency,
        degraded: degraded(inventory, rates, design, load),
        rebuild: design.rebuild_times(inventory),
        // λ to the power of one more than the losses that are survived.
        years_to_loss: Estimate::with_error(years, (1.0 + FAILURE_RATE_ERROR).powf(survived + 1.0) - 1.0),
        survives_zone: !pitfalls.iter().any(|one| one.name == pitfalls::TOO_FEW_ZONES),
        unmet: vec![],
        pitfalls,
        flash: flash::flash(&subject, inventory, design),
        mixed: planned.and_then(|planned| mixed::mixed(&subject, planned.mixed_nodes, planned.mixed_weight, room)),
        ring: None,
        validation: next_steps::workload(&inventory.mix, load, p99),
    }
}

fn degraded(
    inventory: &PurchaseInventory,
    rates: &SoftwareRates,
    design: &ClusterDesign,
    load: f64,
) -> Vec<DegradedAnswer> {
    let hours = design.rebuild_times(inventory);
    let (nodes, zones) = (design.counts.storage, inventory.wanted.zones);
    let drives = f64::from(design.model(inventory).storage.all_drives());
    let mut cases = vec![];
    if drives > 1.0 {
        cases.push(("a drive", 0, hours.drive));
    }
    if nodes > 1 {
        cases.push(("a node", 1, hours.node));
    }
    let of_zone = nodes.div_ceil(zones.max(1));
    if let Some(hours) = hours.zone.filter(|_| of_zone < nodes) {
        cases.push(("a zone", of_zone, hours));
    }
    cases
        .into_iter()
        .map(|(lost, nodes, hours)| {
            let mut model = design.model(inventory);
            model.storage.count -= nodes;
            // Rebuilding takes its share of every drive; a lost one serves nothing, which is spread over all.
            let serving = if nodes == 0 { (drives - 1.0) / drives } else { 1.0 };
            let left = (1.0 - inventory.wanted.rebuild_share) * serving;
            model.storage.drive.transfer *= left.max(0.01);
            model.storage.drive.operations *= left.max(0.01);
            DegradedAnswer {
                lost,
                requests: throughput(&model, &inventory.mix, rates).requests,
                p99: latency(&model, &inventory.mix, rates, load).map(|found| found.p99),
                hours: Estimate::with_error(hours, FAILURE_RATE_ERROR),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
