//! [`Ring`]: who holds a partition.
//!
//! Every request asks here. Nothing is computed twice: where each device stands (region, zone,
//! server) is numbered once when the ring is made.

use std::collections::HashMap;
use vocabulary::Partition;

use crate::device::Device;
use crate::error::RingError;
use crate::ring_data::RingData;

/// Kinds of places, from far to near: region, zone, server, device.
pub(crate) const TIERS: usize = 4;

/// A ring that answers questions.
#[derive(Debug, Clone)]
pub struct Ring {
    pub(crate) data: RingData,
    /// For each device id the numbers of its region, zone, server and itself.
    pub(crate) places: Vec<[u32; TIERS]>,
    /// How many regions, zones, servers and devices have partitions.
    pub(crate) counts: [u32; TIERS],
}

impl Ring {
    /// Reads a `*.ring.gz` file of format 1 or 2.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do about it.
    pub fn from_bytes(file: &[u8]) -> Result<Ring, RingError> {
        RingData::from_bytes(file).map(Ring::new)
    }

    /// A ring of data already read or built.
    pub fn new(data: RingData) -> Ring {
        // That every cell names a device is proven for every RingData there is.
        let assigned = data.table.used(data.devices.len()).unwrap_or_default();
        let mut tiers = Tiers::default();
        let places = (0u32..).zip(&assigned).map(|(id, &assigned)| match data.device(id) {
            Some(device) if assigned => tiers.place(device),
            _ => [u32::MAX; TIERS],
        });
        let places = places.collect();
        let counts = tiers.counts();
        Ring { data, places, counts }
    }

    /// What the file held.
    pub fn data(&self) -> &RingData {
        &self.data
    }

    /// Replicas, where a fraction counts as one more.
    pub fn replica_count(&self) -> usize {
        self.data.table.rows()
    }

    /// The exact replica count.
    pub fn replicas(&self) -> f64 {
        self.data.replicas()
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> u32 {
        self.data.table.partitions()
    }

    /// The power of two of the partition count.
    pub fn part_power(&self) -> u32 {
        self.data.part_power
    }

    /// The partition of a hashed name.
    pub fn partition_of(&self, hash: &[u8; 16]) -> Partition {
        let [a, b, c, d, ..] = *hash;
        partition_of_word(u32::from_be_bytes([a, b, c, d]), self.data.part_power)
    }

    /// The devices that hold a partition. The place in the list is what Swift calls the node's
    /// index. A device that holds several replicas is listed once; a partition the ring does not
    /// have is held by no device.
    pub fn primaries(&self, partition: Partition) -> Vec<&Device> {
        let mut primaries: Vec<&Device> = Vec::with_capacity(self.replica_count());
        for row in 0..self.replica_count() {
            let id = self.data.table.get(row, partition);
            let device = id.and_then(|id| self.data.device(id));
            primaries.extend(device.filter(|it| primaries.iter().all(|known| known.id != it.id)));
        }
        primaries
    }

    /// The device of an id.
    pub fn device(&self, id: u32) -> Option<&Device> {
        self.data.device(id)
    }

    /// All devices, by id, also those without partitions.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.data.devices()
    }
}

/// The leading bits of a word.
pub(crate) fn partition_of_word(word: u32, part_power: u32) -> Partition {
    Partition(word.checked_shr(32 - part_power).unwrap_or(0))
}

/// Numbers regions, zones, servers and devices as they are met.
#[derive(Default)]
struct Tiers<'d> {
    regions: HashMap<u32, u32>,
    zones: HashMap<(u32, u32), u32>,
    servers: HashMap<(u32, u32, &'d str), u32>,
    devices: u32,
}

impl<'d> Tiers<'d> {
    fn place(&mut self, device: &'d Device) -> [u32; TIERS] {
        let Device { region, zone, ip, .. } = device;
        let next = self.regions.len() as u32;
        let region_number = *self.regions.entry(*region).or_insert(next);
        let next = self.zones.len() as u32;
        let zone_number = *self.zones.entry((*region, *zone)).or_insert(next);
        let next = self.servers.len() as u32;
        let server_number = *self.servers.entry((*region, *zone, ip)).or_insert(next);
        self.devices += 1;
        [region_number, zone_number, server_number, self.devices - 1]
    }

    fn counts(&self) -> [u32; TIERS] {
        let count = |len: usize| len as u32;
        [
            count(self.regions.len()),
            count(self.zones.len()),
            count(self.servers.len()),
            self.devices,
        ]
    }
}
