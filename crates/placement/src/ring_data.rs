//! [`RingData`]: what a ring file holds, whatever its format (`ring_file.rs` reads and writes it).
//!
//! What always holds once it exists: devices stand at the place of their id; every cell of the
//! table names a device; the table has at least one full row; the next part power is one that an increase has.

use crate::device::Device;
use crate::error::RingError;
use crate::table::Table;
use vocabulary::Partition;

/// The content of a ring file.
#[derive(Debug, Clone, PartialEq)]
pub struct RingData {
    /// By id, with holes where devices were removed.
    pub(crate) devices: Vec<Option<Box<Device>>>,
    pub(crate) table: Table,
    /// 0 to 31.
    pub(crate) part_power: u32,
    pub(crate) next_part_power: Option<u32>,
    pub(crate) version: Option<u64>,
    /// 2, 4 or 8: the width of ids in format 2.
    pub(crate) dev_id_bytes: u8,
}

impl RingData {
    /// Puts a ring together and proves that it is whole.
    pub(crate) fn checked(self) -> Result<RingData, RingError> {
        for (place, device) in self.devices.iter().enumerate() {
            match device {
                Some(device) if device.id as usize != place => {
                    return Err(RingError::DeviceId { place, id: device.id });
                }
                _ => {}
            }
        }
        let used = self
            .table
            .used(self.devices.len())
            .map_err(|place| self.unknown(place))?;
        let mut holes = used
            .iter()
            .zip(&self.devices)
            .map(|(used, device)| *used && device.is_none());
        if !holes.any(|hole| hole) {
            return Ok(self);
        }
        let first = self.table.ids().position(|id| self.device(id).is_none());
        Err(self.unknown(first.unwrap_or_default()))
    }

    /// What is wrong with a cell that names a device which is not there.
    fn unknown(&self, place: usize) -> RingError {
        let partitions = self.table.partitions() as usize;
        RingError::UnknownDevice {
            partition: Partition((place % partitions) as u32),
            replica: place / partitions,
            device: self.table.ids().nth(place).map_or(0, u64::from),
        }
    }

    /// The device of an id.
    pub fn device(&self, id: u32) -> Option<&Device> {
        self.devices.get(id as usize)?.as_deref()
    }

    /// All devices, by id, without the holes.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().flatten().map(AsRef::as_ref)
    }

    /// The exact replica count, which may be a fraction.
    pub fn replicas(&self) -> f64 {
        self.table.len() as f64 / f64::from(self.table.partitions())
    }

    /// The builder's version that wrote this ring.
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// The width of device ids in bytes.
    pub fn dev_id_bytes(&self) -> u8 {
        self.dev_id_bytes
    }

    /// Whether another ring says the same, in whatever format.
    pub fn same_as(&self, other: &RingData) -> bool {
        let known = |device: Option<&Device>| {
            device.map(|device| Device {
                extra: Default::default(),
                ..device.clone()
            })
        };
        let most = self.devices.len().max(other.devices.len()) as u32;
        self.part_power == other.part_power
            && self.next_part_power == other.next_part_power
            && self.version == other.version
            && (0..most).all(|id| known(self.device(id)) == known(other.device(id)))
            && self.table.partitions() == other.table.partitions()
            && self.table.ids().eq(other.table.ids())
    }

    /// The power the ring is moving to, while a partition power increase is on its way.
    pub fn next_part_power(&self) -> Option<u32> {
        self.next_part_power
    }
}

/// The part power of a part_shift, if a ring can have it.
pub(crate) fn part_power(part_shift: u64) -> Result<u32, RingError> {
    match part_shift {
        1..=32 => Ok(32 - part_shift as u32),
        _ => Err(RingError::PartShift { part_shift }),
    }
}

/// The next part power of a file, if an increase can have it: one more than the power from its preparation until it is
/// done or cancelled, the same from then until it is finished. Any other would have every write linked in a partition
/// that no step of an increase leads to, which object servers refuse. The error is what the file says.
pub(crate) fn next_part_power(part_power: u32, next: Option<i64>) -> Result<Option<u32>, i64> {
    let Some(next) = next else { return Ok(None) };
    match u32::try_from(next) {
        Ok(possible) if possible == part_power || possible == part_power + 1 => Ok(Some(possible)),
        _ => Err(next),
    }
}

/// The same of a ring file.
pub(crate) fn next_power_of_ring(part_power: u32, next: Option<i64>) -> Result<Option<u32>, RingError> {
    next_part_power(part_power, next).map_err(|next| RingError::NextPartPower { part_power, next })
}
