//! One ring of several: each component brings whole replicas, on devices of its own.
//!
//! Devices are numbered on from component to component, with the holes they have there; a partition's replicas stand in
//! the order of the components. Whether the components may be joined is for the caller to say: here only their shape
//! counts.

use crate::error::RingError;
use crate::ring_data::RingData;
use crate::table::Table;

/// The largest id of two bytes that is none for "no device".
const MOST_OF_TWO_BYTES: usize = 65534;

impl RingData {
    /// Joins rings of one part power and whole numbers of replicas. What comes out has no build version.
    ///
    /// # Errors
    /// When their shapes do not fit, or there is none.
    pub fn composed(parts: &[RingData]) -> Result<RingData, RingError> {
        let first = parts.first().ok_or(RingError::Empty)?;
        let partitions = first.table.partitions();
        let mut devices = Vec::new();
        let mut ids = Vec::new();
        for part in parts {
            let whole = part.table.len().is_multiple_of(partitions as usize);
            if part.part_power != first.part_power || part.next_part_power != first.next_part_power || !whole {
                return Err(RingError::Shape);
            }
            let offset = devices.len() as u32;
            ids.extend(part.table.ids().map(|id| id + offset));
            devices.extend(part.devices.iter().map(|device| {
                let mut device = device.clone()?;
                device.id += offset;
                Some(device)
            }));
        }
        let narrow = devices.len() <= MOST_OF_TWO_BYTES + 1;
        let table = match narrow {
            true => Table::narrow(partitions, ids.into_iter().map(|id| id as u16).collect())?,
            false => Table::wide(partitions, ids)?,
        };
        RingData {
            devices,
            table,
            part_power: first.part_power,
            next_part_power: first.next_part_power,
            version: None,
            dev_id_bytes: if narrow { 2 } else { 4 },
        }
        .checked()
    }
}
