//! The table of a ring: which device holds which replica of which partition.
//!
//! Rows of replicas, one cell per partition; the last row may be shorter when the replica count
//! is a fraction. Cells are two bytes wide where the ids allow it, so that a large ring stays in
//! the processor's cache.

use crate::error::RingError;
use vocabulary::Partition;

/// Device ids by replica and partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    partitions: u32,
    cells: Cells,
}

#[derive(Debug, Clone, PartialEq)]
enum Cells {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Table {
    /// A table of ids in a row, the rows one behind the other.
    pub(crate) fn narrow(partitions: u32, cells: Vec<u16>) -> Result<Table, RingError> {
        Table {
            partitions,
            cells: Cells::Narrow(cells),
        }
        .checked()
    }

    /// The same for ids beyond two bytes.
    pub(crate) fn wide(partitions: u32, cells: Vec<u32>) -> Result<Table, RingError> {
        Table {
            partitions,
            cells: Cells::Wide(cells),
        }
        .checked()
    }

    fn checked(self) -> Result<Table, RingError> {
        match self.len() {
            0 => Err(RingError::Empty),
            cells if cells < self.partitions as usize => Err(RingError::Truncated {
                what: "the first replica's row is not full",
            }),
            _ => Ok(self),
        }
    }

    /// How many cells there are.
    pub(crate) fn len(&self) -> usize {
        match &self.cells {
            Cells::Narrow(cells) => cells.len(),
            Cells::Wide(cells) => cells.len(),
        }
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Replicas, counting a row that is not full as one.
    pub(crate) fn rows(&self) -> usize {
        self.len().div_ceil(self.partitions as usize)
    }

    /// The device of a replica of a partition; none where the last row has ended.
    pub(crate) fn get(&self, row: usize, partition: Partition) -> Option<u32> {
        if partition.0 >= self.partitions {
            return None;
        }
        let place = row.checked_mul(self.partitions as usize)? + partition.index();
        match &self.cells {
            Cells::Narrow(cells) => cells.get(place).map(|&id| u32::from(id)),
            Cells::Wide(cells) => cells.get(place).copied(),
        }
    }

    /// All cells, row by row.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let (narrow, wide) = match &self.cells {
            Cells::Narrow(cells) => (cells.as_slice(), [].as_slice()),
            Cells::Wide(cells) => ([].as_slice(), cells.as_slice()),
        };
        narrow.iter().map(|&id| u32::from(id)).chain(wide.iter().copied())
    }

    /// Which of so many devices hold partitions, by id; the first cell that names none of them is the error.
    pub(crate) fn used(&self, devices: usize) -> Result<Vec<bool>, usize> {
        fn mark<T: Copy>(cells: &[T], devices: usize, id: impl Fn(T) -> usize) -> Result<Vec<bool>, usize> {
            let mut used = vec![false; devices];
            for (place, &cell) in cells.iter().enumerate() {
                *used.get_mut(id(cell)).ok_or(place)? = true;
            }
            Ok(used)
        }
        match &self.cells {
            Cells::Narrow(cells) => mark(cells, devices, usize::from),
            Cells::Wide(cells) => mark(cells, devices, |id| id as usize),
        }
    }
}
