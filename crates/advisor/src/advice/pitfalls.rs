//! Pitfalls: rules that find a known mistake in a design, each with its evidence and its remedy.
//!
//! Source of the rules: "Building a Swift Storage Cloud? Avoid Wimpy Proxy Servers and Five other Pitfalls" (Zmanda,
//! 2012), and what the model and the ring's rules say besides.
//! Always holds: a pitfall is ranked by how much the cluster would gain without it; what endangers data comes first.

use super::subject::AdviceSubject;
use crate::model::estimate::readable;
use crate::model::limits::Resource;
use crate::model::workload::Protection;
use serde::Serialize;

/// How busy a balancer may be.
const HALF: f64 = 0.5;
/// Of what drives bear: beyond it a load leaves them no room.
const FULL: f64 = 0.7;
/// Other resources that bear so many times what drives do are bought for nothing.
const UNBALANCED: f64 = 4.0;
/// Replicas of partitions that a drive should hold.
const PARTS_PER_DRIVE: f64 = 100.0;
/// A fragment that is smaller costs as many operations as a larger one: bytes.
const SMALL_FRAGMENT: f64 = 131_072.0;
/// The gain of what endangers data: more than any of throughput.
const DATA: f64 = 1e6;

/// The loss of a zone takes more pieces than an object survives.
pub const TOO_FEW_ZONES: &str = "too-few-zones";

/// A known mistake in a design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pitfall {
    /// `weak-gateways`, for example.
    pub name: &'static str,
    /// The figures that show it.
    pub evidence: String,
    /// What helps.
    pub remedy: String,
    /// By which factor the cluster would gain throughput without it; very large where it endangers data.
    pub gain: f64,
}

type PitfallRule = fn(&AdviceSubject<'_>) -> Option<Pitfall>;

const RULES: [PitfallRule; 11] = [
    two_replicas,
    too_few_zones,
    too_few_partitions,
    weak_gateways,
    full_balancer,
    one_uplink,
    slow_listings,
    bound_by_drives,
    bound_by_network,
    hot_container,
    coded_small_objects,
];

/// Everything that is found, the gravest first.
pub fn pitfalls(subject: &AdviceSubject<'_>) -> Vec<Pitfall> {
    let mut found: Vec<Pitfall> = RULES.iter().filter_map(|rule| rule(subject)).collect();
    found.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    found
}

fn two_replicas(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let Protection::Replicas(count @ ..=2) = subject.model.protection else {
        return None;
    };
    Some(Pitfall {
        name: "two-replicas-only",
        evidence: format!(
            "{count} replicas: one lost drive leaves {}, and an object is lost in {} years on average",
            match count {
                2 => "a single copy",
                _ => "none",
            },
            readable(subject.years_to_loss)
        ),
        remedy: "three replicas, or an erasure code with two parity fragments or more".to_owned(),
        gain: DATA * 2.0,
    })
}

fn too_few_zones(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let zones = subject.zones.min(subject.model.storage.count);
    let protection = subject.model.protection;
    // A zone that is lost may take as many pieces as the object survives.
    let needed = protection.pieces().div_ceil(protection.losses_survived().max(1));
    (zones < needed.max(2)).then(|| Pitfall {
        name: TOO_FEW_ZONES,
        evidence: format!(
            "{zones} zone(s) for {protection}: the loss of one takes more pieces than an object survives"
        ),
        remedy: format!(
            "{} zones or more: racks, rooms or power feeds that fail by themselves",
            needed.max(2) + 1
        ),
        gain: DATA,
    })
}

fn too_few_partitions(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let power = subject.part_power?;
    let drives = f64::from(subject.model.storage.all_drives());
    let pieces = f64::from(subject.model.protection.pieces());
    let each = 2f64.powi(power as i32) * pieces / drives;
    (each < PARTS_PER_DRIVE).then(|| Pitfall {
        name: "too-few-partitions",
        evidence: format!(
            "part power {power}: a drive holds {each:.0} replicas of partitions, so that drives fill unevenly"
        ),
        remedy: format!(
            "part power {}; it grows with prepare_increase_partition_power, and never shrinks",
            (drives * PARTS_PER_DRIVE).log2().ceil()
        ),
        // With few partitions the fullest drive is fuller by about three deviations.
        gain: 1.0 + 3.0 / each.max(0.1).sqrt(),
    })
}

fn weak_gateways(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let gateways = subject.limit(Resource::GatewayProcessor)?;
    let (rest, storage) = subject.least(Resource::grows_with_storage)?;
    (gateways < storage).then(|| {
        let count = subject.model.gateways.count;
        let wanted = |limit: f64| (f64::from(count) * storage / limit).ceil();
        let remedy = match subject.limit(Resource::GatewayNetwork) {
            Some(ports) if ports < gateways => format!(
                "{} gateways of this kind: their networks end before their processors, at {ports:.0} requests/s, so \
                 that more cores in each do not help",
                wanted(ports)
            ),
            _ => format!("{} gateways of this kind, or fewer with more cores", wanted(gateways)),
        };
        Pitfall {
            name: "weak-gateways",
            evidence: format!(
                "processors of {count} gateway(s) end at {gateways:.0} requests/s, {} at {storage:.0}",
                rest.name()
            ),
            remedy,
            gain: subject.gain_without(Resource::GatewayProcessor),
        }
    })
}

fn full_balancer(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let balancers = subject.model.balancers?;
    let busy = subject.requests / subject.limit(Resource::Balancer)?;
    (busy > HALF).then(|| Pitfall {
        name: "balancer-without-half-free",
        evidence: format!(
            "{} balancer(s) of {:.0} MB/s are {:.0} % busy: no other is left for the load of one that fails",
            balancers.count,
            balancers.throughput / 1e6,
            busy * 100.0
        ),
        remedy: format!(
            "{} balancers of this kind, or DNS over several",
            (f64::from(balancers.count) * busy / HALF).ceil()
        ),
        gain: subject.gain_without(Resource::Balancer).max(busy / HALF),
    })
}

fn one_uplink(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let uplink = subject.limit(Resource::GatewayUplink)?;
    let ports = subject.limit(Resource::GatewayNetwork)?;
    let gain = subject.gain_without(Resource::GatewayUplink);
    (uplink < ports && gain > 1.0).then(|| Pitfall {
        name: "gateways-on-one-uplink",
        evidence: format!("the common uplink ends at {uplink:.0} requests/s, the gateways' own ports at {ports:.0}"),
        remedy: "spread the gateways over switches, or widen the uplink to the sum of their ports".to_owned(),
        gain,
    })
}

fn slow_listings(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let storage = &subject.model.storage;
    let is_slow = match subject.listing_is_flash {
        Some(is_flash) => !is_flash,
        None => !subject.drive_is_flash,
    };
    let changes = subject.mix.writes + subject.mix.deletes;
    if !is_slow || changes <= 0.0 {
        return None;
    }
    let rows = changes * f64::from(subject.model.listing_replicas) * subject.rates.listing_operations.value;
    let (drives, power) = match storage.listing_drives {
        0 => (storage.all_drives(), storage.drive.operations),
        count => (count * storage.count, storage.listing_drive.operations),
    };
    let busy = subject.requests * rows / (f64::from(drives) * power);
    let gain = match storage.listing_drives {
        0 => subject.gain_with(|model| {
            model.storage.listing_drives = 1;
            model.storage.listing_drive.operations = 1e5;
        }),
        _ => subject.gain_without(Resource::ListingDrives),
    };
    (busy > 0.05 || gain > 1.05).then(|| Pitfall {
        name: "listings-on-slow-drives",
        evidence: format!(
            "rows of listings take {:.0} % of the operations of {drives} rotating drives",
            busy * 100.0
        ),
        remedy: "one flash drive in each node for accounts and containers, with rings of its own".to_owned(),
        gain,
    })
}

fn bound_by_drives(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let drives = subject.limits.iter().find(|limit| limit.resource == Resource::Drives)?;
    let gain = subject.gain_without(Resource::Drives);
    let is_full = subject.requests > FULL * drives.requests.value;
    (subject.bottleneck() == Resource::Drives && (gain > UNBALANCED || is_full)).then(|| Pitfall {
        name: "storage-bound-by-drives",
        evidence: format!(
            "drives end at {:.0} requests/s, the next resource at {:.0}; {:.0} % of their time goes into operations",
            drives.requests.value,
            drives.requests.value * gain,
            (1.0 - drives.transfer_share) * 100.0
        ),
        remedy: match drives.transfer_share < 0.5 {
            true => "metadata on flash or more memory, and more drives of less size".to_owned(),
            false => "more drives in each node".to_owned(),
        },
        // What the remedy gives, rather than drives without any limit.
        gain: subject.gain_with(|model| model.storage.drives *= 2),
    })
}

fn bound_by_network(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let (network, drives) = (
        subject.limit(Resource::StorageNetwork)?,
        subject.limit(Resource::Drives)?,
    );
    (network < drives).then(|| Pitfall {
        name: "storage-bound-by-network",
        evidence: format!("networks of storage nodes end at {network:.0} requests/s, their drives at {drives:.0}"),
        remedy: "faster ports, or fewer drives in more nodes".to_owned(),
        gain: subject.gain_without(Resource::StorageNetwork),
    })
}

fn hot_container(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let storage = &subject.model.storage;
    let power = match storage.listing_drives {
        0 => storage.drive.operations,
        _ => storage.listing_drive.operations,
    };
    let most = power / subject.rates.listing_operations.value;
    let rows = subject.requests * (subject.mix.writes + subject.mix.deletes) / subject.mix.containers;
    (rows > most / 2.0).then(|| Pitfall {
        name: "one-hot-container",
        evidence: format!("{rows:.0} rows/s for each container; the drive of its listing bears {most:.0}"),
        remedy: "spread objects over more containers, or shard the container".to_owned(),
        gain: (rows / most).max(1.0),
    })
}

fn coded_small_objects(subject: &AdviceSubject<'_>) -> Option<Pitfall> {
    let protection @ Protection::Erasure { .. } = subject.model.protection else {
        return None;
    };
    let sizes = subject.mix.sizes.iter();
    let small = sizes.filter(|one| one.size * protection.piece_share() < SMALL_FRAGMENT);
    let share: f64 = small.map(|one| one.share).sum();
    (share > 0.5).then(|| Pitfall {
        name: "erasure-code-for-small-objects",
        evidence: format!(
            "{:.0} % of objects have fragments of less than 128 KiB, and a read visits {} drives",
            share * 100.0,
            protection.pieces_read()
        ),
        remedy: "replicas for small objects: a storage policy of their own".to_owned(),
        gain: subject.gain_with(|model| model.protection = Protection::Replicas(3)),
    })
}
