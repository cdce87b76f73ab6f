//! [`Handoffs`]: who stands in for the primaries of a partition, in OpenStack Swift's order.
//!
//! The table is walked from a place that depends on the partition, four times over: first for
//! devices in regions that do not have the partition yet, then in zones, then on servers, then for
//! any device left. Past 65536 partitions the walk takes larger steps. After the end it goes on
//! near the beginning, in step; partition 0 is met only by a walk that begins there. That is
//! Swift's order, learnt by asking it (`tests/golden`), and must stay: a reader looks for
//! stand-ins where a writer put them.

use md5::{Digest, Md5};
use vocabulary::Partition;

use crate::device::Device;
use crate::ring::{Ring, TIERS, partition_of_word};

/// At most so many partitions are visited in one walk.
const WALK: u32 = 65536;

/// The stand-ins of a partition, best first.
#[derive(Debug, Clone)]
pub struct Handoffs<'r> {
    ring: &'r Ring,
    seen: [SeenTiers; TIERS],
    /// The tier in which something new is looked for.
    tier: usize,
    walk: Walk,
    row: usize,
}

impl Ring {
    /// The devices that stand in for the primaries of a partition, best first, in OpenStack Swift's order.
    /// Computed as far as it is read.
    pub fn handoffs(&self, partition: Partition) -> Handoffs<'_> {
        Handoffs::new(self, partition)
    }
}

impl<'r> Handoffs<'r> {
    fn new(ring: &'r Ring, partition: Partition) -> Handoffs<'r> {
        let exists = partition.0 < ring.partition_count();
        let mut handoffs = Handoffs {
            ring,
            seen: ring.counts.map(SeenTiers::new),
            tier: if exists { 0 } else { TIERS },
            walk: Walk::new(partition, ring.part_power()),
            row: 0,
        };
        for row in 0..ring.replica_count() {
            if let Some(id) = ring.data.table.get(row, partition) {
                handoffs.note(id);
            }
        }
        handoffs
    }

    fn note(&mut self, id: u32) {
        let place = self.ring.places[id as usize];
        for (seen, number) in self.seen.iter_mut().zip(place) {
            seen.insert(number);
        }
    }

    /// The next cell of the walk; none at its end.
    fn cell(&mut self) -> Option<Option<u32>> {
        if self.row == self.ring.replica_count() {
            self.row = 0;
            self.walk.step();
        }
        let partition = self.walk.at()?;
        self.row += 1;
        Some(self.ring.data.table.get(self.row - 1, partition))
    }
}

impl<'r> Iterator for Handoffs<'r> {
    type Item = &'r Device;

    fn next(&mut self) -> Option<&'r Device> {
        while self.tier < TIERS {
            let cell = if self.seen[self.tier].complete() {
                None
            } else {
                self.cell()
            };
            let Some(cell) = cell else {
                self.tier += 1;
                self.walk.restart();
                self.row = 0;
                continue;
            };
            let Some(id) = cell else { continue };
            if !self.seen[self.tier].contains(self.ring.places[id as usize][self.tier]) {
                self.note(id);
                return self.ring.device(id);
            }
        }
        None
    }
}

/// The partitions in the order they are visited.
#[derive(Debug, Clone)]
struct Walk {
    start: u32,
    step: u32,
    partitions: u32,
    /// 64 bits, so that a step past the end is no overflow.
    at: u64,
    wrapped: bool,
}

impl Walk {
    fn new(partition: Partition, part_power: u32) -> Walk {
        let partitions = 1u32 << part_power;
        let digest = Md5::digest(partition.to_string());
        let word = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        let start = partition_of_word(word, part_power).0;
        let step = (partitions / WALK).max(1);
        Walk {
            start,
            step,
            partitions,
            at: u64::from(start),
            wrapped: false,
        }
    }

    fn restart(&mut self) {
        self.at = u64::from(self.start);
        self.wrapped = false;
    }

    fn at(&self) -> Option<Partition> {
        let end = if self.wrapped { self.start } else { self.partitions };
        (self.at < u64::from(end)).then_some(Partition(self.at as u32))
    }

    fn step(&mut self) {
        self.at += u64::from(self.step);
        if !self.wrapped && self.at >= u64::from(self.partitions) {
            self.wrapped = true;
            self.at = u64::from(self.step - (self.partitions - self.start) % self.step);
        }
    }
}

/// A set of small numbers that knows when it has them all.
#[derive(Debug, Clone)]
struct SeenTiers {
    bits: Vec<u64>,
    missing: u32,
}

impl SeenTiers {
    fn new(count: u32) -> SeenTiers {
        SeenTiers {
            bits: vec![0; count.div_ceil(64) as usize],
            missing: count,
        }
    }

    fn complete(&self) -> bool {
        self.missing == 0
    }

    fn contains(&self, number: u32) -> bool {
        self.bits[number as usize / 64] >> (number % 64) & 1 == 1
    }

    fn insert(&mut self, number: u32) {
        if !self.contains(number) {
            self.bits[number as usize / 64] |= 1 << (number % 64);
            self.missing -= 1;
        }
    }
}
