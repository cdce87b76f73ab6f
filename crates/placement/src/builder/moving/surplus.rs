//! Devices that hold too much give to those that hold too little.

use super::Moving;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

impl Moving<'_> {
    /// Moves replicas from devices that hold too much to open slots, those first that stand better
    /// there.
    pub(super) fn move_surplus(&mut self, random: &mut RebalanceRandom, limit: i32) {
        if !self.musts.is_empty() {
            self.move_surplus_within(random, -1);
        }
        self.move_surplus_within(random, limit);
    }

    fn move_surplus_within(&mut self, random: &mut RebalanceRandom, limit: i32) {
        for partition in self.order(random) {
            if self.slots.is_empty() {
                return;
            }
            if self.fixed[partition] || self.moved[partition] > 0 {
                continue;
            }
            let replicas = (0..self.width).filter(|&replica| {
                let id = self.cell(partition, replica);
                id != NOWHERE && self.exceeds(id)
            });
            let Some(replica) = replicas.max_by_key(|&replica| self.surplus(self.cell(partition, replica))) else {
                continue;
            };
            if let Some(to) = self.target(partition, replica, limit, random) {
                self.relocate(partition, replica, to);
            }
        }
    }

    /// How much too much a device holds, in thousandths of what it should hold.
    pub(super) fn surplus(&self, id: u32) -> i64 {
        let (parts, quota) = (self.parts[id as usize], self.quota[id as usize]);
        (parts - quota) * 1000 / quota.max(1)
    }

    /// Devices that hold too little can get no more: lets the others share what was meant for them,
    /// if that brings the worst device closer to its share. `shares` is that of each device by id.
    pub(in crate::builder) fn share_rest(
        &mut self,
        shares: &[f64],
        new_quotas: Vec<i64>,
        random: &mut RebalanceRandom,
    ) -> bool {
        let worst = |parts: &[i64]| {
            let off = parts.iter().zip(shares).filter(|it| *it.1 > 0.0);
            off.map(|(&parts, share)| (parts as f64 / share - 1.0).abs())
                .fold(0.0, f64::max)
        };
        let before = worst(&self.parts);
        let exceeding = (0..self.parts.len()).filter(|&id| self.parts[id] > self.quota[id] && shares[id] > 0.0);
        let most = exceeding
            .map(|id| self.parts[id] as f64 / shares[id] - 1.0)
            .fold(0.0, f64::max);
        if most < before {
            return false;
        }
        let kept = (self.cells.clone(), self.moved.clone(), self.parts.clone());
        let quota = std::mem::replace(&mut self.quota, new_quotas);
        self.open_slots(random);
        self.move_surplus(random, 0);
        self.chain_all(random);
        self.quota = quota;
        let better = worst(&self.parts) < before * (1.0 - 1e-9);
        if !better {
            (self.cells, self.moved, self.parts) = kept;
        }
        better
    }
}
