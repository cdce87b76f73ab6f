//! Replicas that crowd a place move apart: to devices that hold too little, or in exchange for others that come back.

use super::Moving;
use crate::builder::random::Random;
use crate::builder::tree::NOWHERE;

/// How many devices are looked at for a replica that leaves a crowd.
const DRAWS: usize = 12;

impl Moving<'_> {
    /// Moves replicas that crowd a place, from devices that hold too much first.
    pub(super) fn move_apart(&mut self, random: &mut Random) {
        let crowd = |partition: &usize| {
            let stays = self.fixed[*partition] || self.copied[*partition] || self.moved[*partition] > 0;
            !stays && (0..self.width).any(|replica| self.crowded(*partition, replica))
        };
        let partitions: Vec<usize> = self.order(random).filter(crowd).collect();
        for only_surplus in [true, false] {
            for &partition in &partitions {
                if self.slots.is_empty() {
                    return;
                }
                if self.moved[partition] == 0 {
                    self.move_one_apart(partition, only_surplus, random);
                }
            }
        }
    }

    fn move_one_apart(&mut self, partition: usize, only_surplus: bool, random: &mut Random) {
        let wanted = |replica: &usize| {
            let id = self.cell(partition, *replica);
            id != NOWHERE && (!only_surplus || self.exceeds(id)) && self.crowded(partition, *replica)
        };
        let mut crowded: Vec<usize> = (0..self.width).filter(wanted).collect();
        crowded.sort_by_key(|&replica| -self.surplus(self.cell(partition, replica)));
        for replica in crowded {
            let drawn = self.draw(partition, replica, random);
            if let Some((to, _)) = drawn.filter(|drawn| drawn.1 < 0) {
                let from = self.cell(partition, replica);
                self.relocate(partition, replica, to);
                if self.lacks(from) {
                    self.slots.push(from);
                }
                return;
            }
        }
    }

    /// Moves replicas that still crowd a place though all devices hold what they should, and lets
    /// others move back in exchange; undone where that does not come out even.
    pub(super) fn exchange_apart(&mut self, random: &mut Random) {
        let imbalance = |moving: &Moving<'_>| -> i64 {
            let off = moving.parts.iter().zip(&moving.quota);
            off.map(|(parts, quota)| (parts - quota).abs()).sum()
        };
        let before = imbalance(self);
        let kept = (self.cells.clone(), self.moved.clone(), self.parts.clone());
        let mut exchanged = Vec::new();
        for partition in self.order(random) {
            let replica = (0..self.width).find(|&replica| self.exchange_one(partition, replica, random));
            exchanged.extend(replica.map(|replica| (partition, replica)));
        }
        if exchanged.is_empty() {
            return;
        }
        self.open_slots(random);
        self.move_surplus(random, 0);
        self.chain_all(random);
        for (partition, replica) in exchanged {
            let cell = partition * self.width + replica;
            let back = kept.0[cell];
            if self.cells[cell] != back && self.exceeds(self.cells[cell]) && self.lacks(back) {
                self.put(partition, replica, back);
                self.moved[partition] = kept.1[partition];
            }
        }
        if imbalance(self) > before {
            (self.cells, self.moved, self.parts) = kept;
        }
    }

    /// Moves a replica that crowds a place to some device where it does not.
    fn exchange_one(&mut self, partition: usize, replica: usize, random: &mut Random) -> bool {
        let fresh = self.origin[partition * self.width + replica] == NOWHERE;
        let stays = self.copied[partition] && !fresh;
        if stays || !self.is_free(partition, replica) || !self.crowded(partition, replica) {
            return false;
        }
        for _ in 0..DRAWS {
            let leaf = random.below(self.tree.leaves.len() as u64) as usize;
            let to = self.tree.leaves[leaf];
            let better = self.cost(partition, replica, to).is_some_and(|cost| cost < 0);
            if better && self.quota[to as usize] > 0 && self.excess_change((partition, replica), to) <= 0 {
                self.put(partition, replica, to);
                self.note(partition, replica, to);
                return true;
            }
        }
        false
    }
}
