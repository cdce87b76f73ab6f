//! [`RingData`]: what a ring file holds, whatever its format.
//!
//! What always holds once it exists: devices stand at the place of their id; every cell of the
//! table names a device; the table has at least one full row.

use crate::device::Device;
use crate::error::RingError;
use crate::table::Table;
use crate::{format_v1, format_v2, gzip};
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
    /// Reads a `*.ring.gz` file of format 1 or 2.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do about it.
    pub fn from_bytes(file: &[u8]) -> Result<RingData, RingError> {
        let content = gzip::inflate(file)?;
        let rest = content.strip_prefix(b"R1NG").ok_or(RingError::NotARing)?;
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(RingError::Truncated {
            what: "there is no format version",
        })?;
        match u16::from_be_bytes(*version) {
            1 => format_v1::read(rest),
            2 => format_v2::read(&content),
            version => Err(RingError::Version { version }),
        }
    }

    /// The format of a `*.ring.gz` file, whether or not this version reads it.
    ///
    /// # Errors
    /// When it is no ring.
    pub fn format_of(file: &[u8]) -> Result<u16, RingError> {
        let content = gzip::inflate(file)?;
        let rest = content.strip_prefix(b"R1NG").ok_or(RingError::NotARing)?;
        let version = rest.first_chunk::<2>().ok_or(RingError::Truncated {
            what: "there is no format version",
        })?;
        Ok(u16::from_be_bytes(*version))
    }

    /// The ring as a `*.ring.gz` file of format 1, which every OpenStack Swift reads.
    ///
    /// # Errors
    /// When a device id needs more than two bytes.
    pub fn to_bytes_v1(&self) -> Result<Vec<u8>, RingError> {
        Ok(gzip::deflate(&self.content_v1()?))
    }

    /// What format 1 holds before compression: byte for byte what OpenStack Swift writes.
    ///
    /// # Errors
    /// When a device id needs more than two bytes.
    pub fn content_v1(&self) -> Result<Vec<u8>, RingError> {
        format_v1::write(self)
    }

    /// The ring as a `*.ring.gz` file of format 2, which Swift reads from 2.36 on.
    pub fn to_bytes_v2(&self) -> Vec<u8> {
        format_v2::write(self)
    }

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
