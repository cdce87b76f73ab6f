//! [`RingBuilder`]: makes a new ring, and keeps it as a `.builder` file OpenStack's tools open.
//!
//! What always holds after [`RingBuilder::rebalance`]: every device holds its share by weight to
//! within a partition or two; no partition twice on a device; replicas spread over regions, zones
//! and servers as evenly as the weights allow. The same seed gives the same ring.
//!
//! What it does not do: move partitions that are placed. That is the work of the full ring tool.

mod file;
mod quota;
mod random;
mod spread;

use crate::device::Device;
use crate::error::BuilderError;
use crate::ring_data::RingData;
use crate::table::Table;
use pickle::Value;

/// Ids are two bytes wide, and the largest means "none".
const MAX_DEVICES: usize = 65535;

/// A ring in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct RingBuilder {
    part_power: u32,
    next_part_power: Option<u32>,
    replicas: f64,
    min_part_hours: i64,
    devices: Vec<Option<Entry>>,
    devices_changed: bool,
    dev_id_bytes: u8,
    version: u64,
    overload: f64,
    /// Device ids by replica and partition; empty before the first rebalance.
    rows: Vec<Vec<u32>>,
    /// When partitions were last moved, in seconds since 1970.
    moves_epoch: i64,
    /// For each partition the hours before `moves_epoch` at which it moved; empty if all at once.
    moves: Vec<u8>,
    gather_start: i64,
    /// As Swift keeps it: for each tier, how many partitions have 0, 1, 2 … replicas in it.
    dispersion_graph: Value,
    dispersion: f64,
    removed: Value,
    id: Option<String>,
}

/// A device and what the builder counts for it.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    device: Device,
    parts: i64,
    parts_wanted: i64,
}

impl RingBuilder {
    /// An empty builder for 2^`part_power` partitions.
    ///
    /// # Errors
    /// For a part power outside 1 to 31, or fewer than one replica.
    pub fn new(part_power: u32, replicas: f64, min_part_hours: u32) -> Result<RingBuilder, BuilderError> {
        if !(1..=31).contains(&part_power) {
            return Err(BuilderError::PartPower { part_power });
        }
        if !(1.0..=1024.0).contains(&replicas) {
            return Err(BuilderError::Replicas { replicas });
        }
        Ok(RingBuilder {
            part_power,
            next_part_power: None,
            replicas,
            min_part_hours: i64::from(min_part_hours),
            devices: Vec::new(),
            devices_changed: false,
            dev_id_bytes: 2,
            version: 0,
            overload: 0.0,
            rows: Vec::new(),
            moves_epoch: 0,
            moves: Vec::new(),
            gather_start: 0,
            dispersion_graph: Value::Dict(Vec::new()),
            dispersion: 0.0,
            removed: Value::List(Vec::new()),
            id: None,
        })
    }

    /// Adds a device and returns its id; the one in `device` is not looked at.
    ///
    /// # Errors
    /// For an impossible weight, and for a device that is in the ring.
    pub fn add(&mut self, mut device: Device) -> Result<u32, BuilderError> {
        if !device.weight.is_finite() || device.weight < 0.0 {
            let Device { weight, device, .. } = device;
            return Err(BuilderError::Weight { weight, device });
        }
        let same = |known: &Device| (&known.ip, known.port, &known.device) == (&device.ip, device.port, &device.device);
        if self.devices().any(same) {
            let Device { ip, port, device, .. } = device;
            return Err(BuilderError::Duplicate { device, ip, port });
        }
        if self.devices.len() >= MAX_DEVICES {
            return Err(BuilderError::TooManyDevices);
        }
        device.id = self.devices.len() as u32;
        let id = device.id;
        self.devices.push(Some(Entry {
            device,
            parts: 0,
            parts_wanted: 0,
        }));
        self.devices_changed = true;
        self.version += 1;
        Ok(id)
    }

    /// Places all partitions. `now` is the time in seconds since 1970, from which `min_part_hours`
    /// count.
    ///
    /// # Errors
    /// When there are fewer devices with weight than replicas, or partitions are placed already.
    pub fn rebalance(&mut self, seed: u64, now: i64) -> Result<(), BuilderError> {
        if !self.rows.is_empty() {
            return Err(BuilderError::AlreadyPlaced);
        }
        let weighted = self.devices().filter(|device| device.weight > 0.0).count();
        if weighted < self.replicas.ceil() as usize {
            return Err(BuilderError::TooFewDevices {
                replicas: self.replicas,
                devices: weighted,
            });
        }
        let devices: Vec<&Device> = self.devices().collect();
        self.rows = spread::rows(&devices, self.replicas, 1 << self.part_power, seed);
        self.moves_epoch = now;
        self.moves.clear();
        self.devices_changed = false;
        self.version += 1;
        self.count_parts();
        self.dispersion_graph = file::dispersion_graph(self);
        Ok(())
    }

    /// Counts what each device holds and how far that is from its share.
    fn count_parts(&mut self) {
        let mut parts = vec![0i64; self.devices.len()];
        self.rows.iter().flatten().for_each(|&id| parts[id as usize] += 1);
        let total: f64 = self.devices().map(|device| device.weight).sum();
        let cells: usize = self.rows.iter().map(Vec::len).sum();
        for entry in self.devices.iter_mut().flatten() {
            let share = (cells as f64 * entry.device.weight / total).round() as i64;
            entry.parts = parts[entry.device.id as usize];
            entry.parts_wanted = share - entry.parts;
        }
    }

    /// The ring as placed.
    ///
    /// # Errors
    /// Before the first rebalance.
    pub fn to_ring(&self) -> Result<RingData, BuilderError> {
        if self.rows.is_empty() {
            return Err(BuilderError::NotPlaced);
        }
        let cells = self.rows.iter().flatten().copied();
        let partitions = 1 << self.part_power;
        let table = match self.dev_id_bytes {
            2 => Table::narrow(partitions, cells.map(|id| id as u16).collect())?,
            _ => Table::wide(partitions, cells.collect())?,
        };
        let devices = self.devices.iter();
        let devices = devices.map(|entry| entry.as_ref().map(|it| Box::new(it.device.clone())));
        let ring = RingData {
            devices: devices.collect(),
            table,
            part_power: self.part_power,
            next_part_power: self.next_part_power,
            version: Some(self.version),
            dev_id_bytes: self.dev_id_bytes,
        };
        Ok(ring.checked()?)
    }

    /// All devices, by id.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().flatten().map(|entry| &entry.device)
    }

    /// Partitions held by a device.
    pub fn parts_of(&self, id: u32) -> Option<u64> {
        let entry = self.devices.get(id as usize)?.as_ref()?;
        u64::try_from(entry.parts).ok()
    }

    /// The builder's version: it grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The exact replica count.
    pub fn replicas(&self) -> f64 {
        self.replicas
    }

    /// The power of two of the partition count.
    pub fn part_power(&self) -> u32 {
        self.part_power
    }
}
