//! Replicas that crowd a place move apart: to devices that hold too little, or in exchange for others that come back.

use super::Moving;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

/// How many devices are looked at for a replica that leaves a crowd.
const DRAWS: usize = 12;

impl Moving<'_> {
    /// Moves replicas that crowd a place, from devices that hold too much first.
    pub(super) fn move_apart(&mut self, random: &mut RebalanceRandom) {
        let crowd = |partition: &usize| {
            let stays = self.fixed[*partition] || self.copied[*partition] || self.moved[*partition] > 0;
            !stays && self.standing(*partition).crowded
        };
        if self.slots.is_empty() {
            return;
        }
        let mut partitions: Vec<usize> = (0..self.partitions).filter(crowd).collect();
        random.shuffle(&mut partitions);
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

    fn move_one_apart(&mut self, partition: usize, only_surplus: bool, random: &mut RebalanceRandom) {
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
    /// others move back in exchange; undone where that does not come out even. Whether it was done.
    pub(super) fn exchange_apart(&mut self, standing_badly: &[usize], random: &mut RebalanceRandom) -> bool {
        let imbalance = |moving: &Moving<'_>| -> i64 {
            let off = moving.parts.iter().zip(&moving.quota);
            off.map(|(parts, quota)| (parts - quota).abs()).sum()
        };
        if standing_badly.is_empty() {
            return false;
        }
        let before = imbalance(self);
        let kept = (self.cells.clone(), self.moved.clone(), self.parts.clone());
        let mut exchanged = Vec::new();
        self.open_slots(random);
        for &partition in standing_badly {
            let replica = self.exchange_one(partition, random);
            exchanged.extend(replica.map(|replica| (partition, replica)));
        }
        if exchanged.is_empty() {
            return false;
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
        let even = imbalance(self) <= before;
        if !even {
            (self.cells, self.moved, self.parts) = kept;
        }
        even
    }

    /// Moves a replica that crowds a place to some device where it does not: best from one that got too much by another
    /// exchange to one that lost by one.
    fn exchange_one(&mut self, partition: usize, random: &mut RebalanceRandom) -> Option<usize> {
        let mut replicas: Vec<usize> = (0..self.width).filter(|&it| self.may_exchange(partition, it)).collect();
        replicas.sort_by_key(|&replica| !self.exceeds(self.cell(partition, replica)));
        for to_lacking in [true, false] {
            for &replica in &replicas {
                let to = match to_lacking {
                    true => self
                        .draw(partition, replica, random)
                        .filter(|it| it.1 < 0)
                        .map(|it| it.0),
                    false => self.better_device(partition, replica, random),
                };
                let Some(to) = to.filter(|&to| self.excess_change((partition, replica), to) <= 0) else {
                    continue;
                };
                let from = self.cell(partition, replica);
                self.put(partition, replica, to);
                self.note(partition, replica, to);
                if self.lacks(from) {
                    self.slots.push(from);
                }
                return Some(replica);
            }
        }
        None
    }

    fn may_exchange(&self, partition: usize, replica: usize) -> bool {
        let fresh = self.origin[partition * self.width + replica] == NOWHERE;
        let stays = self.copied[partition] && !fresh;
        !stays && self.is_free(partition, replica) && self.crowded(partition, replica)
    }

    /// A device where a replica stands better, whatever it holds.
    fn better_device(&self, partition: usize, replica: usize, random: &mut RebalanceRandom) -> Option<u32> {
        let leaves = &self.tree.leaves;
        let drawn = (0..DRAWS).map(|_| leaves[random.below(leaves.len() as u64) as usize]);
        let better = |id: &u32| self.cost(partition, replica, *id).is_some_and(|cost| cost < 0);
        { drawn }.find(|id| self.quota[*id as usize] > 0 && better(id))
    }
}
