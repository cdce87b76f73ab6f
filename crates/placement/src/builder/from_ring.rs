//! A builder made of a ring, for when the builder is lost.
//!
//! What only builders know is lost: overload, hours, when partitions moved, which devices were leaving.

use crate::error::BuilderError;
use crate::ring_data::RingData;

use super::{Entry, RingBuilder};

impl RingBuilder {
    /// A builder that would write this ring.
    ///
    /// # Errors
    /// When no builder can hold it.
    pub fn from_ring(ring: &RingData, min_part_hours: u32) -> Result<RingBuilder, BuilderError> {
        let mut builder = RingBuilder::new(ring.part_power, ring.replicas(), min_part_hours)?;
        builder.next_part_power = ring.next_part_power;
        builder.version = ring.version.unwrap_or(0);
        let entries = ring.devices.iter().map(|device| {
            device.as_ref().map(|device| Entry {
                device: (**device).clone(),
                parts: 0,
                parts_wanted: None,
            })
        });
        builder.devices = entries.collect();
        if !builder.ids_fit(builder.dev_id_bytes) {
            builder.dev_id_bytes = 4;
        }
        let ids: Vec<u32> = ring.table.ids().collect();
        builder.rows = ids.chunks(1 << ring.part_power).map(<[u32]>::to_vec).collect();
        for &id in &ids {
            if let Some(entry) = builder.devices.get_mut(id as usize).and_then(Option::as_mut) {
                entry.parts += 1;
            }
        }
        Ok(builder)
    }
}
