//! [`RingBuilder`]: makes rings and changes them, and keeps them as a `.builder` file that
//! OpenStack's tools open.
//!
//! | question | file |
//! |---|---|
//! | devices come, go and change | `devices.rs` |
//! | the ring's own settings change | `settings.rs` |
//! | how large it may be | `shape.rs` |
//! | whether a table is sound | `validate.rs` |
//! | where devices stand, and what each place should hold | `tree.rs`, `plan.rs` |
//! | what a rebalance moves, and how | `rebalance.rs`, `quota.rs`, `spread.rs`, `moving/` |
//! | how far apart replicas are | `dispersion.rs` |
//! | what a report prints: balance, holders, times | `reading.rs` |
//! | the partition power grows | `power.rs` |
//! | the `.builder` file | `file.rs` |
//! | a builder made of a ring | `from_ring.rs` |
//!
//! What always holds: an entry stands at the place of its id; every row but the last is as long as
//! there are partitions; every cell names an entry (also one that is marked for removal). The same
//! seed, time and history give the same ring.
//!
//! What it does not do: files, clocks, chance (the caller brings bytes, the time and a seed), and
//! parsing what an operator types.

mod devices;
mod dispersion;
mod file;
mod from_ring;
mod moving;
mod plan;
mod power;
mod quota;
mod random;
mod reading;
mod rebalance;
mod settings;
mod shape;
mod spread;
mod tree;
mod validate;

use crate::device::Device;
use crate::error::BuilderError;
use crate::ring_data::RingData;
use crate::table::Table;
use pickle::Value;

pub use devices::Change;
pub use dispersion::{DispersionReport, TierRow};

/// A ring in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct RingBuilder {
    part_power: u32,
    next_part_power: Option<u32>,
    replicas: f64,
    min_part_hours: i64,
    devices: Vec<Option<Entry>>,
    devices_changed: bool,
    /// 2 or 4.
    dev_id_bytes: u8,
    version: u64,
    overload: f64,
    /// Device ids by replica and partition; empty before the first rebalance.
    rows: Vec<Vec<u32>>,
    /// From when `moves` count, in seconds since 1970.
    moves_epoch: i64,
    /// For each partition how many hours before `moves_epoch` it moved, at most 255; empty if all at once.
    moves: Vec<u8>,
    gather_start: i64,
    /// As Swift keeps it: for each tier, how many partitions have 0, 1, 2 … replicas in it.
    dispersion_graph: Value,
    dispersion: f64,
    /// Ids of devices that go with the next rebalance, in the order they were removed.
    removed: Vec<u32>,
    id: Option<String>,
}

/// A device and what the builder counts for it.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    device: Device,
    parts: i64,
    /// How many more it should have; unknown before a rebalance has seen it.
    parts_wanted: Option<i64>,
}

/// What a rebalance did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rebalanced {
    /// Replicas of partitions that have another device than before.
    pub moved: u64,
    /// How far the worst device is from its share, in percent.
    pub balance: f64,
    /// Devices that are gone.
    pub removed: usize,
}

impl RingBuilder {
    /// An empty builder for 2^`part_power` partitions.
    ///
    /// # Errors
    /// For a part power above 31, fewer than one replica, and a table that is too large for servers or for memory.
    pub fn new(part_power: u32, replicas: f64, min_part_hours: u32) -> Result<RingBuilder, BuilderError> {
        shape::check(part_power, replicas)?;
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
            removed: Vec::new(),
            id: None,
        })
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

    /// How many partitions there are.
    fn partitions(&self) -> usize {
        1 << self.part_power
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.devices.get(usize::try_from(id).ok()?)?.as_ref()
    }
}
