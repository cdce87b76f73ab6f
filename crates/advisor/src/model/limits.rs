//! The most that each resource bears: bottleneck analysis.
//!
//! A request demands `D` seconds of a resource in all, which has `m` equal servers (processors, drives, network ports):
//! it bears `m / D` requests a second, and the cluster bears what its least resource bears (P. J. Denning, J. P. Buzen,
//! "The operational analysis of queueing network models", 1978). docs/advise.md has each demand.
//! Always holds: demands add up over kinds of request and sizes; a resource that no request uses limits nothing.

use super::cluster::ClusterModel;
use super::estimate::Estimate;
use super::rates::{Bound, Extrapolation, SoftwareRates};
use super::workload::RequestMix;
use serde::Serialize;

/// Bytes that a network carries for each byte of a body: frames of 1500 bytes, their gaps, addresses and heads, and
/// those of requests. It lies between nothing more (large frames) and twice as much more.
pub const FRAMES: f64 = 1.05;

/// The share of a storage node's memory that caches metadata.
const CACHE_SHARE: f64 = 0.7;

/// What requests wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Balancers.
    Balancer,
    /// Networks of gateways.
    GatewayNetwork,
    /// The one link that all gateways share.
    GatewayUplink,
    /// Processors of gateways.
    GatewayProcessor,
    /// Networks of storage nodes.
    StorageNetwork,
    /// Processors of storage nodes.
    StorageProcessor,
    /// Drives of objects.
    Drives,
    /// Drives of listings.
    ListingDrives,
}

impl Resource {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balancer => "balancers",
            Self::GatewayNetwork => "gateways' networks",
            Self::GatewayUplink => "the gateways' common uplink",
            Self::GatewayProcessor => "gateways' processors",
            Self::StorageNetwork => "storage nodes' networks",
            Self::StorageProcessor => "storage nodes' processors",
            Self::Drives => "drives of objects",
            Self::ListingDrives => "drives of listings",
        }
    }

    /// Whether more storage nodes raise its limit.
    pub fn grows_with_storage(self) -> bool {
        matches!(
            self,
            Self::StorageNetwork | Self::StorageProcessor | Self::Drives | Self::ListingDrives
        )
    }
}

/// What one request demands of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ResourceDemand {
    /// Which.
    pub resource: Resource,
    /// Seconds of one server of it for each request, on average.
    pub seconds: f64,
    /// Of those, the part that depends on bytes.
    pub transfer_seconds: f64,
    /// How many servers there are.
    pub servers: f64,
}

/// The most that a resource bears.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ResourceLimit {
    /// Which.
    pub resource: Resource,
    /// Requests a second.
    pub requests: Estimate,
    /// Of the resource's time, the share that goes into bytes rather than into operations.
    pub transfer_share: f64,
}

/// What a cluster bears.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThroughputPrediction {
    /// Requests a second.
    pub requests: Estimate,
    /// Bytes of bodies a second.
    pub bytes: Estimate,
    /// The resource that ends first.
    pub bottleneck: Resource,
    /// Every resource, the least first.
    pub limits: Vec<ResourceLimit>,
    /// What lies outside of what was measured.
    pub extrapolations: Vec<Extrapolation>,
}

/// Operations of a drive for a piece that is read and for one that is written.
pub fn drive_operations(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates, bound: Bound) -> (f64, f64) {
    let plain = (bound.of(&rates.read_operations), bound.of(&rates.write_operations));
    let indexed = (
        bound.of(&rates.read_operations_indexed),
        bound.of(&rates.write_operations_indexed),
    );
    if cluster.storage.index_on_flash {
        return indexed;
    }
    let cached = cached_share(cluster, mix, rates, bound);
    // Writes reach the drive whatever is cached.
    (plain.0 * (1.0 - cached) + indexed.0 * cached, plain.1)
}

/// The share of pieces whose metadata is in memory, from 0 to 1.
pub fn cached_share(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates, bound: Bound) -> f64 {
    let pieces = mix.objects * f64::from(cluster.protection.pieces());
    let per_node = pieces / f64::from(cluster.storage.count.max(1));
    let room = cluster.storage.memory * CACHE_SHARE / bound.of(&rates.metadata_bytes);
    match per_node > 0.0 {
        true => (room / per_node).min(1.0),
        false => 1.0,
    }
}

/// What a request demands of every resource, on average.
pub fn demands(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates, bound: Bound) -> Vec<ResourceDemand> {
    let mut all = processor_demands(cluster, mix, rates, bound);
    all.extend(network_demands(cluster, mix, bound));
    all.extend(drive_demands(cluster, mix, rates, bound));
    all
}

fn processor_demands(
    cluster: &ClusterModel,
    mix: &RequestMix,
    rates: &SoftwareRates,
    bound: Bound,
) -> Vec<ResourceDemand> {
    let rate = |rate| bound.of(rate);
    let (reads, writes, size) = (mix.reads, mix.writes, mix.mean_size());
    // A deletion writes a tombstone: a piece without bytes.
    let changes = mix.writes + mix.deletes;
    let pieces = f64::from(cluster.protection.pieces());
    let pieces_read = f64::from(cluster.protection.pieces_read());
    let gateway_fixed = reads * rate(&rates.gateway_read_cpu) + changes * rate(&rates.gateway_write_cpu);
    let gateway_bytes =
        size * (reads * rate(&rates.gateway_read_cpu_per_byte) + writes * rate(&rates.gateway_write_cpu_per_byte));
    let node_fixed =
        reads * pieces_read * rate(&rates.storage_read_cpu) + changes * pieces * rate(&rates.storage_write_cpu);
    let node_bytes = size
        * cluster.protection.piece_share()
        * (reads * pieces_read * rate(&rates.storage_read_cpu_per_byte)
            + writes * pieces * rate(&rates.storage_write_cpu_per_byte));
    let processors = |count: u32, cores: f64| f64::from(count) * cores;
    vec![
        ResourceDemand {
            resource: Resource::GatewayProcessor,
            seconds: gateway_fixed + gateway_bytes,
            transfer_seconds: gateway_bytes,
            servers: processors(cluster.gateways.count, cluster.gateways.cores),
        },
        ResourceDemand {
            resource: Resource::StorageProcessor,
            seconds: node_fixed + node_bytes,
            transfer_seconds: node_bytes,
            servers: processors(cluster.storage.count, cluster.storage.cores),
        },
    ]
}

fn frames(bound: Bound) -> f64 {
    match bound {
        Bound::Likely => FRAMES,
        Bound::Cheap => 1.0,
        Bound::Dear => FRAMES * FRAMES,
    }
}

fn network_demands(cluster: &ClusterModel, mix: &RequestMix, bound: Bound) -> Vec<ResourceDemand> {
    let (reads, writes, size) = (mix.reads, mix.writes, mix.mean_size());
    let piece = size * cluster.protection.piece_share() * frames(bound);
    let (read, written) = (
        reads * f64::from(cluster.protection.pieces_read()) * piece,
        writes * f64::from(cluster.protection.pieces()) * piece,
    );
    // A network carries both directions at once: the fuller one limits.
    let bodies = size * frames(bound);
    let of_gateway = (writes * bodies + read).max(written + reads * bodies);
    let one = |resource, bytes: f64, speed: f64, servers: f64| ResourceDemand {
        resource,
        seconds: bytes / speed,
        transfer_seconds: bytes / speed,
        servers,
    };
    let (gateways, storage) = (&cluster.gateways, &cluster.storage);
    let mut all = vec![
        one(
            Resource::GatewayNetwork,
            of_gateway,
            gateways.network,
            f64::from(gateways.count),
        ),
        one(
            Resource::StorageNetwork,
            written.max(read),
            storage.network,
            f64::from(storage.count),
        ),
    ];
    if let Some(balancers) = cluster.balancers {
        let bytes = mix.bytes_per_request();
        all.push(one(
            Resource::Balancer,
            bytes,
            balancers.throughput,
            f64::from(balancers.count),
        ));
    }
    if let Some(uplink) = gateways.uplink {
        all.push(one(Resource::GatewayUplink, of_gateway, uplink, 1.0));
    }
    all
}

fn drive_demands(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates, bound: Bound) -> Vec<ResourceDemand> {
    let (storage, changes) = (&cluster.storage, mix.writes + mix.deletes);
    let pieces = f64::from(cluster.protection.pieces());
    let pieces_read = f64::from(cluster.protection.pieces_read());
    let (read_operations, write_operations) = drive_operations(cluster, mix, rates, bound);
    let mut operations = mix.reads * pieces_read * read_operations + changes * pieces * write_operations;
    let piece = mix.mean_size() * cluster.protection.piece_share();
    let moved = piece * (mix.reads * pieces_read + mix.writes * pieces);
    let rows = changes * f64::from(cluster.listing_replicas) * bound.of(&rates.listing_operations);
    let mut all = vec![];
    match storage.listing_drives {
        0 => operations += rows,
        drives => all.push(ResourceDemand {
            resource: Resource::ListingDrives,
            seconds: rows / storage.listing_drive.operations,
            transfer_seconds: 0.0,
            servers: f64::from(storage.count) * f64::from(drives),
        }),
    }
    let transfer = moved / storage.drive.transfer;
    all.push(ResourceDemand {
        resource: Resource::Drives,
        seconds: operations / storage.drive.operations + transfer,
        transfer_seconds: transfer,
        servers: f64::from(storage.all_drives()),
    });
    all
}

/// What a cluster bears, and what of it ends first.
pub fn throughput(cluster: &ClusterModel, mix: &RequestMix, rates: &SoftwareRates) -> ThroughputPrediction {
    let [likely, cheap, dear] =
        [Bound::Likely, Bound::Cheap, Bound::Dear].map(|bound| demands(cluster, mix, rates, bound));
    let most = |demand: &ResourceDemand| match demand.seconds > 0.0 {
        true => demand.servers / demand.seconds,
        false => f64::INFINITY,
    };
    let mut limits: Vec<ResourceLimit> = likely
        .iter()
        .zip(cheap.iter().zip(&dear))
        .map(|(likely, (cheap, dear))| ResourceLimit {
            resource: likely.resource,
            requests: Estimate {
                value: most(likely),
                low: most(dear),
                high: most(cheap),
            },
            transfer_share: match likely.seconds > 0.0 {
                true => likely.transfer_seconds / likely.seconds,
                false => 0.0,
            },
        })
        .filter(|limit| limit.requests.value.is_finite())
        .collect();
    limits.sort_by(|one, other| one.requests.value.total_cmp(&other.requests.value));
    let requests = Estimate::least(limits.iter().map(|limit| limit.requests));
    let each = mix.bytes_per_request();
    ThroughputPrediction {
        requests,
        bytes: requests.map(|requests| requests * each),
        bottleneck: limits
            .first()
            .map_or(Resource::GatewayProcessor, |limit| limit.resource),
        limits,
        extrapolations: rates.extrapolations(cluster, mix),
    }
}
