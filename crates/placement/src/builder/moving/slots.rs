//! Where a replica can go: the open slots of devices that hold too little.
//!
//! Slots are drawn at random, so that what one device gives is spread over many. A place that every partition must be
//! in, and one is not, is searched on purpose.

use super::Moving;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

/// How many open slots are looked at for one replica.
const DRAWS: usize = 12;

/// How many devices of a place are looked at for a replica that is missing there.
const SCAN: usize = 128;

impl Moving<'_> {
    pub(super) fn open_slots(&mut self, random: &mut RebalanceRandom) {
        self.slots.clear();
        for (id, (&parts, &quota)) in self.parts.iter().zip(&self.quota).enumerate() {
            let missing = usize::try_from(quota - parts).unwrap_or(0);
            self.slots.extend(std::iter::repeat_n(id as u32, missing));
        }
        random.shuffle(&mut self.slots);
    }

    /// A device that lacks partitions, drawn for a replica, and what it costs to put it there.
    pub(super) fn draw(
        &mut self,
        partition: usize,
        replica: usize,
        random: &mut RebalanceRandom,
    ) -> Option<(u32, i32)> {
        let mut best: Option<(u32, i32)> = None;
        for _ in 0..DRAWS {
            if self.slots.is_empty() {
                break;
            }
            let slot = random.below(self.slots.len() as u64) as usize;
            let id = self.slots[slot];
            if !self.lacks(id) {
                self.slots.swap_remove(slot);
                continue;
            }
            let Some(cost) = self.cost(partition, replica, id) else {
                continue;
            };
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((id, cost));
            }
            if cost < 0 {
                break;
            }
        }
        best
    }

    /// A device that lacks partitions, in a place where the partition should have a replica and has
    /// none.
    fn missing(&self, partition: usize, replica: usize, random: &mut RebalanceRandom) -> Option<u32> {
        let cells = &self.cells[partition * self.width..][..self.width];
        for &node in &self.musts {
            let level = self
                .tree
                .levels
                .iter()
                .rposition(|level| level.start <= node)
                .unwrap_or(0);
            let there = cells.iter().filter(|id| **id != NOWHERE);
            let there = there.filter(|id| self.tree.places[**id as usize][level - 1] == node as u32);
            if there.count() >= usize::from(self.least[node]) {
                continue;
            }
            let devices = self.tree.devices_below(node);
            // In leaps, so that a place that will not do is left behind at once.
            let start = random.below(devices.len() as u64) as usize;
            let leaps = (0..devices.len().min(SCAN)).map(|turn| start + turn * ((devices.len() * 5 / 8) | 1));
            let turned = leaps.map(|place| devices[place % devices.len()]);
            let fits = |id: &u32| self.lacks(*id) && self.cost(partition, replica, *id).is_some_and(|cost| cost < 0);
            if let Some(id) = { turned }.find(fits) {
                return Some(id);
            }
        }
        None
    }

    /// Where a replica can go at a cost of no more than `limit`.
    pub(super) fn target(
        &mut self,
        partition: usize,
        replica: usize,
        limit: i32,
        random: &mut RebalanceRandom,
    ) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        if limit < 0 {
            return self.missing(partition, replica, random);
        }
        let drawn = self.draw(partition, replica, random);
        drawn.filter(|drawn| drawn.1 <= limit).map(|drawn| drawn.0)
    }
}
