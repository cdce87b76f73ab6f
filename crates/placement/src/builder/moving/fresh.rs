//! Replicas without a device get one: what stood on removed devices, and what a larger replica count adds.

use super::Moving;
use crate::builder::random::RebalanceRandom;

/// How many devices are looked at for a replica that must go somewhere.
const SAMPLE: usize = 48;

impl Moving<'_> {
    /// Gives every cell without a device one.
    pub(super) fn place_fresh(&mut self, random: &mut RebalanceRandom) {
        let mut fresh = std::mem::take(&mut self.fresh);
        random.shuffle(&mut fresh);
        let mut hard = fresh.clone();
        // Those that miss a replica in a place come first: for the others any place will do.
        for limit in [-1, 0] {
            hard.retain(|&(partition, replica)| !self.place_drawn(partition, replica, limit, random));
        }
        for (partition, replica) in hard {
            let to = self.best_device(partition, replica, random);
            self.put(partition, replica, to);
        }
        self.fresh = fresh;
        self.open_slots(random);
    }

    /// Puts a cell without a device where that costs no more than `limit`.
    fn place_drawn(&mut self, partition: usize, replica: usize, limit: i32, random: &mut RebalanceRandom) -> bool {
        let target = self.target(partition, replica, limit, random);
        target.is_some_and(|to| {
            self.put(partition, replica, to);
            true
        })
    }

    /// The device for a cell that none of the drawn slots suits: one where the partition stands no
    /// worse, and of these one that lacks partitions, if there is any.
    fn best_device(&self, partition: usize, replica: usize, random: &mut RebalanceRandom) -> u32 {
        let leaves = &self.tree.leaves;
        let rank = |id: u32| {
            let cost = self.cost(partition, replica, id)?;
            let (parts, quota) = (self.parts[id as usize], self.quota[id as usize]);
            let over = (parts + 1 - quota).max(0);
            (quota > 0).then_some((cost > 0, over > 0, cost, parts - quota, id))
        };
        let some = (0..SAMPLE).map(|_| leaves[random.below(leaves.len() as u64) as usize]);
        let best = some.filter_map(rank).min().filter(|best| !best.0);
        // There are at least as many devices with weight as replicas, so one is free.
        let best = best.or_else(|| leaves.iter().copied().filter_map(rank).min());
        best.map_or(0, |best| best.4)
    }
}
