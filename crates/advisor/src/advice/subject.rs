//! A design with what the model says of it: what all advice is drawn from.

use crate::inventory::PurchaseInventory;
use crate::model::cluster::ClusterModel;
use crate::model::limits::{Resource, ResourceLimit, throughput};
use crate::model::rates::SoftwareRates;
use crate::model::workload::RequestMix;
use crate::search::design::ClusterDesign;

/// A design, and figures of it.
pub struct AdviceSubject<'a> {
    /// As the model sees it.
    pub model: ClusterModel,
    /// What is asked of it.
    pub mix: &'a RequestMix,
    /// What the software costs.
    pub rates: &'a SoftwareRates,
    /// The least first.
    pub limits: Vec<ResourceLimit>,
    /// The load that advice is about, in requests a second.
    pub requests: f64,
    /// Places that fail by themselves.
    pub zones: u32,
    /// Of the ring, where it was said.
    pub part_power: Option<u32>,
    /// Of drives for objects.
    pub drive_is_flash: bool,
    /// Of drives for listings, where there are any.
    pub listing_is_flash: Option<bool>,
    /// On average.
    pub years_to_loss: f64,
}

impl<'a> AdviceSubject<'a> {
    /// Of a design at a load; without one, at what it bears within the wanted utilisation.
    pub fn new(
        inventory: &'a PurchaseInventory,
        rates: &'a SoftwareRates,
        design: &ClusterDesign,
        requests: Option<f64>,
    ) -> Self {
        let model = design.model(inventory);
        let found = throughput(&model, &inventory.mix, rates);
        let drive = |kind: usize| inventory.drives[kind].is_flash;
        Self {
            mix: &inventory.mix,
            rates,
            requests: requests.unwrap_or(found.requests.value * inventory.wanted.utilisation),
            limits: found.limits,
            zones: inventory.wanted.zones,
            part_power: inventory.design.as_ref().and_then(|planned| planned.part_power),
            drive_is_flash: drive(design.recipe.drive),
            listing_is_flash: design.recipe.listing.map(|(kind, _)| drive(kind)),
            years_to_loss: design.years_to_loss(inventory),
            model,
        }
    }

    /// The most that a resource bears.
    pub fn limit(&self, resource: Resource) -> Option<f64> {
        let found = self.limits.iter().find(|limit| limit.resource == resource);
        found.map(|limit| limit.requests.value)
    }

    /// The resource that ends first.
    pub fn bottleneck(&self) -> Resource {
        self.limits
            .first()
            .map_or(Resource::GatewayProcessor, |limit| limit.resource)
    }

    /// The least limit of some resources.
    pub fn least(&self, is_one: impl Fn(Resource) -> bool) -> Option<(Resource, f64)> {
        let found = self.limits.iter().find(|limit| is_one(limit.resource));
        found.map(|limit| (limit.resource, limit.requests.value))
    }

    /// By which factor throughput grows when a resource no longer limits it.
    pub fn gain_without(&self, resource: Resource) -> f64 {
        let (all, others) = (self.least(|_| true), self.least(|one| one != resource));
        match (all, others) {
            (Some((_, all)), Some((_, others))) => others / all,
            _ => 1.0,
        }
    }

    /// By which factor throughput grows with another cluster.
    pub fn gain_with(&self, change: impl FnOnce(&mut ClusterModel)) -> f64 {
        let mut model = self.model.clone();
        change(&mut model);
        let before = self.limits.first().map_or(f64::INFINITY, |limit| limit.requests.value);
        throughput(&model, self.mix, self.rates).requests.value / before
    }
}
