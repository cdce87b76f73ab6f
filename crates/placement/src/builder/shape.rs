//! How large a builder may be: whether its ring can be read and whether there is memory for it, before any is used.
//!
//! Always holds: a builder that exists has a ring that servers can read (`MAX_INFLATED`), whether a command says its
//! size or a file. What the machine has free is for the caller to compare with [`RingBuilder::memory_needed`]; here
//! only the limits of the process count, as the allocator knows them.

use crate::error::BuilderError;
use crate::gzip::MAX_INFLATED;

use super::RingBuilder;

const MOST_POWER: u32 = 31;

/// More replicas than anybody has; a row costs memory.
const MOST_REPLICAS: f64 = 1024.0;

/// Bytes that a replica of a partition takes while the builder's file is read, which takes most of all: a place on the
/// stack and in a list of the pickle, and the number itself (measured: 21.6).
const BYTES_PER_CELL: f64 = 24.0;

/// Bytes of a replica of a partition in a ring, at the least.
const BYTES_IN_RING: f64 = 2.0;

const GIB: f64 = (1u64 << 30) as f64;

impl RingBuilder {
    /// Bytes of memory that work on a builder of this shape takes: one byte's number of hours and `replicas` ids for
    /// each partition.
    pub fn memory_needed(part_power: u32, replicas: f64) -> u64 {
        (partitions(part_power) * (1.0 + replicas) * BYTES_PER_CELL) as u64
    }
}

/// Proves that a builder of this shape can be worked on.
pub(super) fn check(part_power: u32, replicas: f64) -> Result<(), BuilderError> {
    if part_power > MOST_POWER {
        return Err(BuilderError::PartPower { part_power });
    }
    if !(1.0..=MOST_REPLICAS).contains(&replicas) {
        return Err(BuilderError::Replicas { replicas });
    }
    let needed = RingBuilder::memory_needed(part_power, replicas);
    let gib = in_gib(needed);
    if !is_readable(part_power, replicas) {
        let most = (0..part_power).rev().find(|&power| is_readable(power, replicas));
        let most = most.unwrap_or_default();
        return Err(BuilderError::TooLarge {
            part_power,
            replicas,
            gib,
            most,
        });
    }
    match is_granted(needed) {
        true => Ok(()),
        false => Err(BuilderError::Memory {
            part_power,
            replicas,
            gib,
        }),
    }
}

fn partitions(part_power: u32) -> f64 {
    f64::from(part_power).exp2()
}

/// Whether servers would read the ring.
fn is_readable(part_power: u32, replicas: f64) -> bool {
    partitions(part_power) * replicas * BYTES_IN_RING < MAX_INFLATED as f64
}

/// Whether the process would get so much memory, none of which is touched.
fn is_granted(bytes: u64) -> bool {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

fn in_gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_process_gets_is_not_granted() {
        assert!(is_granted(1 << 20));
        assert!(!is_granted(1 << 62));
        assert!(!is_granted(u64::MAX));
    }

    #[test]
    fn the_largest_rings_are_those_that_servers_read() {
        for (power, replicas, readable) in [(26, 3.0, true), (26, 4.0, false), (27, 1.0, true), (27, 3.0, false)] {
            assert_eq!(is_readable(power, replicas), readable, "{power} {replicas}");
        }
        assert_eq!(RingBuilder::memory_needed(26, 3.0), 24 << 28);
    }
}
