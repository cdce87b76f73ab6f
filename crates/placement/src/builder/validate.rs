//! [`RingBuilder::validate`]: whether a table keeps the rules of rings.

use crate::error::{BuilderError, InvalidTable};
use vocabulary::Partition;

use super::RingBuilder;

impl RingBuilder {
    /// Checks the table: every cell has a device, no device a partition twice, and the devices'
    /// counts are those of the table. The error names the first breach.
    ///
    /// # Errors
    /// When nothing is placed yet, or a rule is broken.
    pub fn validate(&self) -> Result<(), BuilderError> {
        if self.rows.is_empty() {
            return Err(BuilderError::NotPlaced);
        }
        self.validate_lengths()?;
        let cells: u64 = self.rows.iter().map(|row| row.len() as u64).sum();
        let counted: i64 = self.devices.iter().flatten().map(|entry| entry.parts).sum();
        if u64::try_from(counted).ok() != Some(cells) {
            let counted = u64::try_from(counted).unwrap_or(0);
            return Err(InvalidTable::Counts { counted, cells }.into());
        }
        for partition in (0..self.partition_count()).map(Partition) {
            self.validate_partition(partition)?;
        }
        Ok(())
    }

    fn validate_lengths(&self) -> Result<(), InvalidTable> {
        let last = self.rows.len() - 1;
        // Replicas that were asked for since and are not placed yet: only the last of those may be short.
        let asked = self.replicas().ceil() as usize;
        for (replica, row) in self.rows.iter().enumerate() {
            let wanted = self.partitions();
            let may_be_short = replica == last && replica + 1 >= asked;
            if row.len() > wanted || (!may_be_short && row.len() < wanted) {
                let found = row.len();
                return Err(InvalidTable::Length { replica, found, wanted });
            }
        }
        Ok(())
    }

    fn validate_partition(&self, partition: Partition) -> Result<(), InvalidTable> {
        let cell = |row: &Vec<u32>| row.get(partition.index()).copied();
        for (replica, row) in self.rows.iter().enumerate() {
            let Some(device) = cell(row) else { continue };
            if self.device(device).is_none() {
                return Err(InvalidTable::Unassigned { partition, replica });
            }
            if self.rows[..replica].iter().any(|before| cell(before) == Some(device)) {
                let devices = self.rows.iter().filter_map(cell).collect();
                return Err(InvalidTable::Doubled {
                    partition,
                    device,
                    devices,
                });
            }
        }
        Ok(())
    }
}
