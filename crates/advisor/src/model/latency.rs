//! How long requests take at a rate: mean and 99th percentile.
//!
//! Each resource is a queue (`queue.rs`). A read passes gateway, one storage node (with erasure coding: waits for the
//! last of as many as suffice) and comes back. A write waits for the quorum of pieces. Listing rows are not waited for.
//! The times of the steps are taken for independent; each class of requests (kind and size) has a gamma distribution of
//! its mean and variance, and the percentile is that of all classes together.
//! Always holds: a rate that some resource does not bear has no answer.

use super::cluster::ClusterModel;
use super::estimate::Estimate;
use super::limits::{Resource, demands, drive_operations};
use super::queue::{ServiceMoments, TimeMoments, order_statistic, wait_for_server, wait_for_servers};
use super::rates::{Bound, SoftwareRates};
use super::workload::RequestMix;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Gamma};

/// How much one operation of a drive varies, by seek and rotation: its variance over its squared mean. Assumed.
const SEEK_VARIATION: f64 = 0.5;
/// The share of requests whose time is asked for.
const TAIL: f64 = 0.99;
/// To which share of itself a percentile is found.
const PRECISION: f64 = 1e-10;

/// How long requests take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyPrediction {
    /// At so many requests a second.
    pub requests: f64,
    /// Seconds.
    pub mean: Estimate,
    /// The seconds that 99 of 100 do not exceed.
    pub p99: Estimate,
    /// How busy each resource is, from 0 to 1.
    pub busy: Vec<(Resource, f64)>,
}

/// Requests of one kind and size.
#[derive(Clone, Copy)]
struct RequestClass {
    is_write: bool,
    size: f64,
    /// Of all requests.
    share: f64,
}

fn classes(mix: &RequestMix) -> Vec<RequestClass> {
    let mut all = vec![];
    for one in &mix.sizes {
        for (is_write, share) in [(false, mix.reads), (true, mix.writes)] {
            all.push(RequestClass {
                is_write,
                size: one.size,
                share: share * one.share,
            });
        }
    }
    all.push(RequestClass {
        is_write: true,
        size: 0.0,
        share: mix.deletes,
    });
    all.retain(|class| class.share > 0.0);
    all
}

/// What one class costs at each place.
struct ClassCosts {
    gateway_cpu: f64,
    node_cpu: f64,
    network: f64,
    drive: ServiceMoments,
    /// Pieces that are asked for.
    pieces: u32,
    /// Those that are waited for.
    waited: u32,
}

/// How long requests take at a rate; nothing where a resource does not bear it at the likeliest cost. The end of a band
/// that is not borne is infinite.
pub fn latency(
    cluster: &ClusterModel,
    mix: &RequestMix,
    rates: &SoftwareRates,
    requests: f64,
) -> Option<LatencyPrediction> {
    let at = |bound| times(cluster, mix, rates, requests, bound);
    let likely = at(Bound::Likely)?;
    let unbearable = (f64::INFINITY, f64::INFINITY);
    let (dear, cheap) = (
        at(Bound::Dear).unwrap_or(unbearable),
        at(Bound::Cheap).unwrap_or(likely),
    );
    let busy = demands(cluster, mix, rates, Bound::Likely)
        .iter()
        .map(|demand| (demand.resource, requests * demand.seconds / demand.servers))
        .collect();
    let estimate = |value, low, high| Estimate { value, low, high };
    Some(LatencyPrediction {
        requests,
        mean: estimate(likely.0, cheap.0, dear.0),
        p99: estimate(likely.1, cheap.1, dear.1),
        busy,
    })
}

/// The p99 that is likeliest, without its band: what a search asks for thousands of times.
pub fn likely_p99(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates, requests: f64) -> Option<f64> {
    let mixed = class_times(cluster, mix, rates, requests, Bound::Likely)?;
    Some(percentile(&mixed, TAIL))
}

/// Whether the likeliest p99 is at most so many seconds: cheaper than to find it.
pub fn is_p99_within(
    cluster: &ClusterModel,
    mix: &RequestMix,
    rates: &SoftwareRates,
    requests: f64,
    seconds: f64,
) -> bool {
    let mixed = class_times(cluster, mix, rates, requests, Bound::Likely);
    mixed.is_some_and(|mixed| share_within(&laws(&mixed), seconds) >= TAIL)
}

/// Mean and 99th percentile.
fn times(
    cluster: &ClusterModel,
    mix: &RequestMix,
    rates: &SoftwareRates,
    requests: f64,
    bound: Bound,
) -> Option<(f64, f64)> {
    let mixed = class_times(cluster, mix, rates, requests, bound)?;
    let mean = mixed.iter().map(|(share, time)| share * time.mean).sum();
    Some((mean, percentile(&mixed, TAIL)))
}

/// Of each class of requests its share and its time.
fn class_times(
    cluster: &ClusterModel,
    mix: &RequestMix,
    rates: &SoftwareRates,
    requests: f64,
    bound: Bound,
) -> Option<Vec<(f64, TimeMoments)>> {
    let is_borne = |demand: &super::limits::ResourceDemand| requests * demand.seconds < demand.servers;
    if !demands(cluster, mix, rates, bound).iter().all(is_borne) {
        return None;
    }
    let classes = classes(mix);
    let operations = drive_operations(cluster, mix, rates, bound);
    let costs: Vec<ClassCosts> = classes
        .iter()
        .map(|class| costs(cluster, rates, bound, *class, operations))
        .collect();
    let waits = Waits::of(cluster, mix, rates, requests, bound, (&classes, &costs))?;
    let mut mixed = vec![];
    for (class, cost) in classes.iter().zip(&costs) {
        let fixed = |mean| TimeMoments { mean, variance: 0.0 };
        let at = |cores: f64, seconds: f64| fixed(seconds / processors(cores).1);
        let own = at(cluster.gateways.cores, cost.gateway_cpu);
        let gateway = waits.balancer + waits.gateway_cpu + waits.gateway_network + own;
        let drive = waits.drive + cost.drive.moments();
        let leg = waits.node_cpu
            + waits.node_network
            + drive
            + at(cluster.storage.cores, cost.node_cpu)
            + fixed(cost.network);
        mixed.push((class.share, gateway + order_statistic(leg, cost.waited, cost.pieces)));
    }
    Some(mixed)
}

fn costs(
    cluster: &ClusterModel,
    rates: &SoftwareRates,
    bound: Bound,
    class: RequestClass,
    (read_operations, write_operations): (f64, f64),
) -> ClassCosts {
    let rate = |rate| bound.of(rate);
    let protection = cluster.protection;
    let piece = class.size * protection.piece_share();
    let (operations, pieces, waited) = match class.is_write {
        true => (write_operations, protection.pieces(), protection.write_quorum()),
        false => (read_operations, protection.pieces_read(), protection.pieces_read()),
    };
    let (gateway, gateway_byte, node, node_byte) = match class.is_write {
        true => (
            &rates.gateway_write_cpu,
            &rates.gateway_write_cpu_per_byte,
            &rates.storage_write_cpu,
            &rates.storage_write_cpu_per_byte,
        ),
        false => (
            &rates.gateway_read_cpu,
            &rates.gateway_read_cpu_per_byte,
            &rates.storage_read_cpu,
            &rates.storage_read_cpu_per_byte,
        ),
    };
    let seek = operations / cluster.storage.drive.operations;
    let transfer = piece / cluster.storage.drive.transfer;
    let drive = seek + transfer;
    let variation = match drive > 0.0 {
        // Operations vary each for itself, the transfer does not.
        true => SEEK_VARIATION * seek * seek / operations.max(1.0) / (drive * drive),
        false => 0.0,
    };
    ClassCosts {
        gateway_cpu: rate(gateway) + class.size * rate(gateway_byte),
        node_cpu: rate(node) + piece * rate(node_byte),
        network: piece / cluster.storage.network.min(cluster.gateways.network),
        drive: ServiceMoments::gamma(drive, variation),
        pieces,
        waited,
    }
}

/// Whole processors, and how fast each is: a share of one is a slow one.
fn processors(cores: f64) -> (u32, f64) {
    let whole = cores.ceil().max(1.0);
    (whole as u32, cores / whole)
}

fn wait_for_processors(cores: f64, arrivals: f64, service: f64) -> Option<TimeMoments> {
    let (count, speed) = processors(cores);
    wait_for_servers(count, arrivals, service / speed)
}

/// How long each place makes a request wait.
struct Waits {
    balancer: TimeMoments,
    gateway_cpu: TimeMoments,
    gateway_network: TimeMoments,
    node_cpu: TimeMoments,
    node_network: TimeMoments,
    drive: TimeMoments,
}

impl Waits {
    fn of(
        cluster: &ClusterModel,
        mix: &RequestMix,
        rates: &SoftwareRates,
        requests: f64,
        bound: Bound,
        (classes, costs): (&[RequestClass], &[ClassCosts]),
    ) -> Option<Self> {
        let (nodes, gateways) = (f64::from(cluster.storage.count), f64::from(cluster.gateways.count));
        let legs: f64 = classes
            .iter()
            .zip(costs)
            .map(|(class, cost)| class.share * f64::from(cost.pieces))
            .sum();
        let gateway_cpu: f64 = classes
            .iter()
            .zip(costs)
            .map(|(class, cost)| class.share * cost.gateway_cpu)
            .sum();
        let node_cpu: f64 = classes
            .iter()
            .zip(costs)
            .map(|(class, cost)| class.share * f64::from(cost.pieces) * cost.node_cpu)
            .sum();
        // Rows of listings on the drives of objects are visits of their own.
        let rows = match cluster.storage.listing_drives {
            0 => (mix.writes + mix.deletes) * f64::from(cluster.listing_replicas),
            _ => 0.0,
        };
        let row = ServiceMoments::gamma(
            bound.of(&rates.listing_operations) / cluster.storage.drive.operations,
            SEEK_VARIATION,
        );
        let visits = legs + rows;
        let of_classes = classes
            .iter()
            .zip(costs)
            .map(|(class, cost)| (class.share * f64::from(cost.pieces) / visits, cost.drive));
        let drive = ServiceMoments::mixture(of_classes.chain([(rows / visits, row)]));
        let drives = f64::from(cluster.storage.all_drives());
        let demanded = demands(cluster, mix, rates, bound);
        let network = |resource| {
            let found = demanded.iter().find(|demand| demand.resource == resource);
            found.map_or(Some(TimeMoments::default()), |demand| {
                wait_for_server(requests / demand.servers, ServiceMoments::gamma(demand.seconds, 1.0))
            })
        };
        Some(Self {
            balancer: network(Resource::Balancer)?,
            gateway_cpu: wait_for_processors(cluster.gateways.cores, requests / gateways, gateway_cpu)?,
            gateway_network: network(Resource::GatewayNetwork)? + network(Resource::GatewayUplink)?,
            node_cpu: wait_for_processors(cluster.storage.cores, requests * legs / nodes, node_cpu / legs)?,
            node_network: network(Resource::StorageNetwork)?,
            drive: wait_for_server(requests * visits / drives, drive)?,
        })
    }
}

/// A class: its share of all, its mean, and its distribution; none of what hardly varies, which is a fixed time.
type ClassLaw = (f64, f64, Option<Gamma>);

fn laws(mixed: &[(f64, TimeMoments)]) -> Vec<ClassLaw> {
    let all: f64 = mixed.iter().map(|(share, _)| share).sum();
    let law = |(share, time): &(f64, TimeMoments)| {
        let shape = time.mean * time.mean / time.variance.max(f64::MIN_POSITIVE);
        let law = (shape < 1e4)
            .then(|| Gamma::new(shape, shape / time.mean).ok())
            .flatten();
        (share / all, time.mean, law)
    };
    mixed.iter().map(law).collect()
}

/// The share of all requests that is done in a time.
fn share_within(laws: &[ClassLaw], time: f64) -> f64 {
    let one = |(share, mean, law): &ClassLaw| match law {
        Some(law) => share * law.cdf(time),
        None => share * f64::from(u8::from(time >= *mean)),
    };
    laws.iter().map(one).sum()
}

/// The time that so many of all requests do not exceed.
fn percentile(mixed: &[(f64, TimeMoments)], share: f64) -> f64 {
    let laws = laws(mixed);
    let (mut low, mut high) = (0.0, mixed.iter().map(|(_, time)| time.mean).fold(1e-9, f64::max));
    while share_within(&laws, high) < share && high < 1e9 {
        high *= 2.0;
    }
    while high - low > high * PRECISION {
        let middle = (low + high) / 2.0;
        match share_within(&laws, middle) < share {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}
