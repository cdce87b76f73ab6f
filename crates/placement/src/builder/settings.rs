//! What the ring as a whole is asked for: replicas, overload, hours, the width of ids.
//!
//! None of these raises the version, as with OpenStack: the next rebalance does.

use crate::error::BuilderError;

use super::{RingBuilder, shape};

impl RingBuilder {
    /// Asks for another number of replicas, which may be a fraction.
    ///
    /// # Errors
    /// For fewer than one replica, and for a table that gets too large.
    pub fn set_replicas(&mut self, replicas: f64) -> Result<(), BuilderError> {
        shape::check(self.part_power, replicas)?;
        let cells = |replicas: f64| (replicas * self.partitions() as f64) as u64;
        if cells(self.replicas) != cells(replicas) {
            self.devices_changed = true;
        }
        self.replicas = replicas;
        Ok(())
    }

    /// How much more than its share a device may take, as a fraction, where that puts replicas farther apart.
    ///
    /// # Errors
    /// For a negative fraction or no number.
    pub fn set_overload(&mut self, overload: f64) -> Result<(), BuilderError> {
        if !overload.is_finite() || overload < 0.0 {
            return Err(BuilderError::Overload { overload });
        }
        self.overload = overload;
        Ok(())
    }

    /// How long a partition stays before another of its replicas may move.
    pub fn set_min_part_hours(&mut self, hours: u32) {
        self.min_part_hours = i64::from(hours);
    }

    /// The width of device ids in the ring: 2 or 4 bytes.
    ///
    /// # Errors
    /// For any other width, and for one too small for the ids there are.
    pub fn set_dev_id_bytes(&mut self, bytes: u8) -> Result<(), BuilderError> {
        if !self.ids_fit(bytes) {
            return Err(BuilderError::DeviceIdBytes { bytes });
        }
        self.dev_id_bytes = bytes;
        Ok(())
    }

    /// Gives the builder its id, which it keeps for good; one that it has stays.
    pub fn set_id(&mut self, id: &str) {
        self.id.get_or_insert_with(|| id.to_owned());
    }

    /// Lets all partitions move in the next rebalance, whenever they moved last.
    pub fn pretend_min_part_hours_passed(&mut self) {
        self.moves = vec![u8::MAX; self.partitions()];
        self.moves_epoch = 0;
    }
}
