//! The partition power grows by one: prepare, increase, finish; or cancel.
//!
//! Between prepare and finish `next_part_power` makes gateways have what is written linked in the next partition, and
//! replicators leave the policy alone. Each step answers whether it was possible, as OpenStack's does; each that was
//! raises the version.

use crate::error::BuilderError;

use super::{RingBuilder, shape};

impl RingBuilder {
    /// Announces the next partition power; false when one is announced already.
    ///
    /// # Errors
    /// When there is no larger power, or its table would be too large.
    pub fn prepare_increase_partition_power(&mut self) -> Result<bool, BuilderError> {
        if self.next_part_power.is_some() {
            return Ok(false);
        }
        let next = larger(self.part_power)?;
        shape::check(next, self.replicas)?;
        self.next_part_power = Some(next);
        self.version += 1;
        Ok(true)
    }

    /// Splits every partition in two, both on the devices of the one; false unless announced.
    ///
    /// # Errors
    /// When nothing is placed yet, there is no larger power, or its table would be too large.
    pub fn increase_partition_power(&mut self) -> Result<bool, BuilderError> {
        if self.next_part_power.is_none_or(|next| next == self.part_power) {
            return Ok(false);
        }
        if self.rows.is_empty() {
            return Err(BuilderError::NotPlaced);
        }
        let next = larger(self.part_power)?;
        shape::check(next, self.replicas)?;
        self.part_power = next;
        for row in &mut self.rows {
            *row = doubled(row);
        }
        self.moves = doubled(&self.moves);
        for entry in self.devices.iter_mut().flatten() {
            entry.parts *= 2;
        }
        self.version += 1;
        Ok(true)
    }

    /// Takes the announcement back: what was linked must be cleaned up before `finish`.
    pub fn cancel_increase_partition_power(&mut self) -> bool {
        if self.next_part_power.is_none_or(|next| next == self.part_power) {
            return false;
        }
        self.next_part_power = Some(self.part_power);
        self.version += 1;
        true
    }

    /// Ends the increase, or the cancelled one; false while the power is not yet the announced one.
    pub fn finish_increase_partition_power(&mut self) -> bool {
        if self.next_part_power.is_none_or(|next| next > self.part_power) {
            return false;
        }
        self.next_part_power = None;
        self.version += 1;
        true
    }
}

fn larger(part_power: u32) -> Result<u32, BuilderError> {
    match part_power + 1 {
        part_power @ 32.. => Err(BuilderError::PartPower { part_power }),
        next => Ok(next),
    }
}

/// Each item twice.
fn doubled<T: Copy>(items: &[T]) -> Vec<T> {
    items.iter().flat_map(|&item| [item, item]).collect()
}
