//! What the rings of a directory say: replicas, places, and how evenly partitions lie.
//!
//! Always holds: a ring that is damaged ends the look with its name; one that is not there is named among what was not
//! seen.

use md5::{Digest, Md5};
use placement::{Ring, RingData};
use settings::SwiftConf;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use vocabulary::policy::PolicyKind;
use vocabulary::{Fault, Partition};
use world::World;

/// No ring is larger: 2^32 partitions do not fit a format 1 file.
const LARGEST_RING: u64 = 8 << 30;
/// A larger `swift.conf` is none.
const LARGEST_CONF: u64 = 16 << 20;

/// What a ring is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RingUse {
    Account,
    Container,
    Object,
}

impl RingUse {
    pub fn word(self) -> &'static str {
        match self {
            RingUse::Account => "account",
            RingUse::Container => "container",
            RingUse::Object => "object",
        }
    }
}

/// A device of a ring, and what it holds of it.
#[derive(Debug, Clone)]
pub(super) struct RingSlot {
    pub id: u32,
    pub zone: (u32, u32),
    pub ip: String,
    pub port: u16,
    pub device: String,
    pub weight: f64,
    /// Replicas of partitions.
    pub parts: u64,
}

/// One ring.
pub(super) struct RingSight {
    /// `object-1`.
    pub name: String,
    pub path: PathBuf,
    pub ring_use: RingUse,
    pub is_erasure: bool,
    pub ring: Ring,
    pub slots: Vec<RingSlot>,
    /// Places that hold partitions.
    pub zones: usize,
    pub servers: usize,
    /// Shares of all partitions: with more replicas in one zone than there need be; all on one server.
    pub crowded: f64,
    pub on_one_server: f64,
}

impl RingSight {
    fn new(name: String, path: PathBuf, ring_use: RingUse, is_erasure: bool, ring: Ring) -> Self {
        let mut slots: BTreeMap<u32, RingSlot> = ring.devices().map(|device| (device.id, slot(device))).collect();
        let used: Vec<u32> = held(&ring, &mut slots);
        let place_of = |id: &u32| slots.get(id);
        let zones: BTreeSet<_> = used.iter().filter_map(place_of).map(|slot| slot.zone).collect();
        let servers: BTreeSet<_> = used.iter().filter_map(place_of).map(|slot| &slot.ip).collect();
        let (zones, servers) = (zones.len(), servers.len());
        let allowed = ring.replica_count().div_ceil(zones.max(1));
        let (mut crowded, mut on_one_server) = (0_u64, 0_u64);
        for partition in 0..ring.partition_count() {
            let primaries = ring.primaries(Partition(partition));
            let in_zone = |zone: (u32, u32)| primaries.iter().filter(|it| (it.region, it.zone) == zone).count();
            crowded += u64::from(primaries.iter().any(|it| in_zone((it.region, it.zone)) > allowed));
            let first = primaries.first().map(|it| &it.ip);
            on_one_server += u64::from(primaries.iter().all(|it| Some(&it.ip) == first));
        }
        let of_all = |count: u64| count as f64 / f64::from(ring.partition_count().max(1));
        Self {
            crowded: of_all(crowded),
            on_one_server: of_all(on_one_server),
            zones,
            servers,
            slots: slots.into_values().collect(),
            name,
            path,
            ring_use,
            is_erasure,
            ring,
        }
    }

    /// What the operator changes.
    pub fn builder(&self) -> String {
        self.path
            .with_file_name(format!("{}.builder", self.name))
            .display()
            .to_string()
    }

    /// The command that changes it, without the change.
    pub fn command(&self) -> String {
        format!("martlet ring-builder {}", self.builder())
    }

    pub fn replicas(&self) -> f64 {
        self.ring.replicas()
    }

    /// Devices that are meant to hold something.
    pub fn active(&self) -> impl Iterator<Item = &RingSlot> {
        self.slots.iter().filter(|slot| slot.weight > 0.0)
    }

    /// The replicas of partitions that there are.
    pub fn all_parts(&self) -> f64 {
        self.slots.iter().map(|slot| slot.parts).sum::<u64>() as f64
    }
}

fn slot(device: &placement::Device) -> RingSlot {
    RingSlot {
        id: device.id,
        zone: (device.region, device.zone),
        ip: device.ip.clone(),
        port: device.port,
        device: device.device.clone(),
        weight: device.weight,
        parts: 0,
    }
}

/// Counts what devices hold; those that hold something.
fn held(ring: &Ring, slots: &mut BTreeMap<u32, RingSlot>) -> Vec<u32> {
    let ids = slots.keys().next_back().map_or(0, |id| *id as usize + 1);
    let mut parts = vec![0_u64; ids];
    for partition in 0..ring.partition_count() {
        for device in ring.primaries(Partition(partition)) {
            if let Some(count) = parts.get_mut(device.id as usize) {
                *count += 1;
            }
        }
    }
    for (id, slot) in slots.iter_mut() {
        slot.parts = parts.get(*id as usize).copied().unwrap_or(0);
    }
    let used = slots.values().filter(|slot| slot.parts > 0);
    used.map(|slot| slot.id).collect()
}

/// All rings of a directory that its policies ask for.
pub(super) fn read(
    world: &World,
    folder: &Path,
    conf: &SwiftConf,
    unseen: &mut Vec<String>,
) -> Result<Vec<RingSight>, Fault> {
    let objects = conf.policies.iter().map(|policy| {
        let is_erasure = policy.kind == PolicyKind::ErasureCoding;
        (policy.index.ring_name(), RingUse::Object, is_erasure)
    });
    let listings = [RingUse::Account, RingUse::Container].map(|it| (it.word().to_owned(), it, false));
    let mut all = vec![];
    for (name, ring_use, is_erasure) in listings.into_iter().chain(objects) {
        let path = folder.join(format!("{name}.ring.gz"));
        let bytes = match world.files.read(&path, LARGEST_RING) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                unseen.push(format!("{}: there is no such ring", path.display()));
                continue;
            }
            Err(error) => return Err(super::arguments::unfit(&path, error)),
        };
        let data = RingData::from_bytes(&bytes).map_err(|error| super::arguments::unfit(&path, error))?;
        all.push(RingSight::new(name, path, ring_use, is_erasure, Ring::new(data)));
    }
    match all.is_empty() {
        true => Err(super::arguments::unfit(
            folder,
            "there is no ring: name the directory with --swift-dir",
        )),
        false => Ok(all),
    }
}

/// MD5 of the rings and of `swift.conf`, by the names of the files.
pub(super) fn sums(world: &World, folder: &Path, rings: &[RingSight]) -> Vec<(String, String)> {
    let conf = folder.join("swift.conf");
    let files = rings
        .iter()
        .map(|ring| (&ring.path, LARGEST_RING))
        .chain([(&conf, LARGEST_CONF)]);
    files
        .filter_map(|(path, limit)| {
            let bytes = world.files.read(path, limit).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some((name, vocabulary::hex::encode(Md5::digest(&bytes))))
        })
        .collect()
}
