//! How full the cluster is, how fast it fills, and when that ends.
//!
//! Always holds: capacity is what can be stored until the first device is as full as it may be, not the sum of sizes;
//! growth comes from two looks or from the operator, never from a guess.

use super::ClusterSight;
use super::arguments::LookArguments;
use super::rings::{RingSight, RingSlot, RingUse};
use serde::Serialize;
use std::collections::HashMap;

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Two looks that are closer say nothing about growth: seconds.
const SHORTEST: f64 = 60.0;

/// Sizes of devices, by address and name.
pub(super) struct KnownDevices<'s> {
    all: HashMap<(&'s str, u16, &'s str), (f64, f64)>,
}

/// A ring whose devices' sizes are known.
#[derive(Debug, Clone)]
pub(super) struct RingRoom {
    /// Bytes of all devices, and those in use.
    pub size: f64,
    pub used: f64,
    /// Bytes that can be stored in all until the first device is full, as partitions lie now; and were each device
    /// given what its size asks for.
    pub usable: f64,
    pub possible: f64,
    /// The device that is full first: its name, how full it is, its size over what its weight asks for.
    pub first: String,
    pub first_full: f64,
    /// Each device with its size, in the order of the ring.
    pub sizes: Vec<(RingSlot, f64)>,
}

impl<'s> KnownDevices<'s> {
    pub fn of(sight: &'s ClusterSight) -> Self {
        let mut all = HashMap::new();
        for server in &sight.servers {
            for device in server.devices.iter().flatten().filter(|device| device.is_mounted) {
                all.insert(
                    (server.ip.as_str(), server.port, device.name.as_str()),
                    (device.size, device.used),
                );
            }
        }
        Self { all }
    }

    /// Size and bytes in use of a device.
    pub fn get(&self, slot: &RingSlot) -> Option<(f64, f64)> {
        self.all
            .get(&(slot.ip.as_str(), slot.port, slot.device.as_str()))
            .copied()
    }

    /// Where the sizes of all devices of a ring that hold something are known.
    pub fn room(&self, ring: &RingSight) -> Option<RingRoom> {
        let all_parts = ring.all_parts();
        let holders: Vec<&RingSlot> = ring.slots.iter().filter(|slot| slot.parts > 0).collect();
        let known: Option<Vec<_>> = holders.iter().map(|slot| Some((*slot, self.get(slot)?))).collect();
        let known = known.filter(|known| !known.is_empty())?;
        let (size, used) = known
            .iter()
            .fold((0.0, 0.0), |sum, (_, (size, used))| (sum.0 + size, sum.1 + used));
        // Stored in all when this one is full.
        let until = |slot: &RingSlot, size: f64| size / (slot.parts as f64 / all_parts);
        let first = known
            .iter()
            .min_by(|one, other| until(one.0, one.1.0).total_cmp(&until(other.0, other.1.0)))?;
        Some(RingRoom {
            size,
            used,
            usable: until(first.0, first.1.0),
            possible: possible(&known, ring.replicas()),
            first: format!("d{} {}:{}/{}", first.0.id, first.0.ip, first.0.port, first.0.device),
            first_full: first.1.1 / first.1.0,
            sizes: known.iter().map(|(slot, (size, _))| ((*slot).clone(), *size)).collect(),
        })
    }
}

/// What could be stored if partitions were given by size, where no device holds two replicas of a partition: a device
/// larger than all replicas but its own can use is not full ever.
fn possible(known: &[(&RingSlot, (f64, f64))], replicas: f64) -> f64 {
    let mut sizes: Vec<f64> = known.iter().map(|(_, (size, _))| *size).collect();
    sizes.sort_by(f64::total_cmp);
    let (mut rest, mut copies) = (sizes.iter().sum::<f64>(), replicas);
    while let Some(largest) = sizes.pop() {
        if copies <= 1.0 || largest <= rest / copies {
            break;
        }
        // It holds a replica of everything; the others share what is left.
        rest -= largest;
        copies -= 1.0;
    }
    rest / copies.max(1.0) * replicas
}

/// When capacity ends.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CapacityOutlook {
    /// `object`.
    pub ring: String,
    /// Bytes on devices, all replicas counted.
    pub size: f64,
    pub used: f64,
    /// Until the first device is as full as --fill says.
    pub usable: f64,
    /// The device that is full first, and how full it is.
    pub first: String,
    pub first_full: f64,
    /// Bytes a day, and where that was read.
    pub growth: Option<f64>,
    pub growth_from: String,
    /// Days until then; 0 when it is so already, nothing where there is no growth.
    pub days: Option<f64>,
}

/// Of each ring of objects whose devices' sizes are known.
pub(super) fn outlook(sight: &ClusterSight, arguments: &LookArguments) -> Vec<CapacityOutlook> {
    let devices = KnownDevices::of(sight);
    let rings = sight.rings.iter().filter(|ring| ring.ring_use == RingUse::Object);
    let rooms: Vec<_> = rings.filter_map(|ring| Some((ring, devices.room(ring)?))).collect();
    let grown = grown(sight, arguments);
    rooms
        .iter()
        .map(|(ring, room)| {
            let usable = room.usable * arguments.fill;
            // What the devices of a ring fill up with is its share of all that fills up.
            let (growth, growth_from) = grown.clone();
            let left = (usable - room.used).max(0.0);
            CapacityOutlook {
                ring: ring.name.clone(),
                size: room.size,
                used: room.used,
                usable,
                first: room.first.clone(),
                first_full: room.first_full,
                growth,
                growth_from,
                days: match growth {
                    _ if left == 0.0 => Some(0.0),
                    Some(growth) if growth > 0.0 => Some(left / growth),
                    _ => None,
                },
            }
        })
        .collect()
}

/// Bytes of a day, and where they are from.
fn grown(sight: &ClusterSight, arguments: &LookArguments) -> (Option<f64>, String) {
    if let Some(growth) = arguments.growth {
        return (Some(growth), "--growth".to_owned());
    }
    let Some(earlier) = &sight.earlier else {
        let how = "not known: keep this look's --json and name it with --before in a day, or say --growth";
        return (None, how.to_owned());
    };
    let seconds = sight.at - earlier.seen.at;
    if seconds < SHORTEST {
        return (
            None,
            format!(
                "not known: {} is {seconds:.0} s old: wait for {SHORTEST:.0} s at least",
                earlier.path
            ),
        );
    }
    let bytes = (used(sight).1 - earlier.seen.used) / seconds * DAY;
    (
        Some(bytes),
        format!("{} of {:.1} h ago", earlier.path, seconds / 3600.0),
    )
}

/// Size and use of all devices that object servers report.
pub(super) fn used(sight: &ClusterSight) -> (f64, f64) {
    let servers = sight.servers.iter().filter(|server| server.ring_use == RingUse::Object);
    let devices = servers
        .flat_map(|server| server.devices.iter().flatten())
        .filter(|device| device.is_mounted);
    devices.fold((0.0, 0.0), |sum, device| (sum.0 + device.size, sum.1 + device.used))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(id: u32) -> RingSlot {
        RingSlot {
            id,
            zone: (1, 1),
            ip: String::new(),
            port: 0,
            device: String::new(),
            weight: 1.0,
            parts: 1,
        }
    }

    #[test]
    fn a_device_holds_no_more_than_one_replica_of_everything() {
        let slots: Vec<RingSlot> = (0..4).map(slot).collect();
        let with = |sizes: [f64; 4]| -> Vec<_> {
            slots
                .iter()
                .zip(sizes)
                .map(|(slot, size)| (slot, (size, 0.0)))
                .collect()
        };
        assert_eq!(possible(&with([1.0; 4]), 3.0), 4.0);
        // The large one holds one of three replicas, of as much as the others can hold two of.
        assert_eq!(possible(&with([1.0, 1.0, 1.0, 100.0]), 3.0), 4.5);
        assert_eq!(possible(&with([1.0, 1.0, 1.0, 100.0]), 1.0), 103.0);
    }
}
