//! How many replicas of partitions each device gets: its target, rounded.
//!
//! Every device gets its target rounded down or up. Which of them get more decides how far the
//! worst device is from its share by weight and how many replicas stand too close, and at times one
//! has to pay for the other. OpenStack gives what is left over to the smallest; no rounding is taken
//! that leaves the worst device farther off than that. Of those that remain, the one is taken that
//! puts replicas farthest apart, then the one that keeps the worst device closest, then the one that
//! rounds regions, zones and servers too, and then the one that moves least.

use super::random::RebalanceRandom;
use super::tree::TierTree;

/// What rounding of floats may do to a count.
const EPSILON: f64 = 1e-6;

/// A replica that stands too close weighs more than any number of places off their target.
const CLOSE: i64 = 1 << 48;

/// A region, zone or server that is off its target by more than rounding weighs more than any number of moves.
const OFF: i64 = 1 << 32;

/// Least and most for each node.
pub(super) type Bounds = Vec<(u64, u64)>;

/// Each node's target rounded down and up.
pub(super) fn bounds(targets: &[f64], partitions: f64) -> Bounds {
    let round = |target: &f64| {
        let exact = target * partitions;
        let least = (exact + EPSILON).floor().max(0.0);
        (least as u64, (exact - EPSILON).ceil().max(least) as u64)
    };
    targets.iter().map(round).collect()
}

/// Whole numbers that add up to `total`, within the bounds for devices, and for what is above them as far as that goes.
pub(super) struct Apportion<'a> {
    pub(super) tree: &'a TierTree,
    /// What each node should hold, before it is rounded; empty when shares do not matter.
    pub(super) targets: &'a [f64],
    pub(super) bounds: Bounds,
    pub(super) total: u64,
    /// What each node holds now: keeping it costs nothing.
    pub(super) held: &'a [u64],
    /// What each device should hold by weight; empty when that does not matter.
    pub(super) shares: &'a [f64],
    /// What each node can hold before replicas of a partition stand too close there.
    pub(super) room: &'a [u64],
}

impl Apportion<'_> {
    pub(super) fn solve(mut self, random: &mut RebalanceRandom) -> Vec<u64> {
        self.keep_balance();
        self.dealt(&self.bounds, random)
    }

    /// The cheapest counts within bounds.
    fn dealt(&self, bounds: &Bounds, random: &mut RebalanceRandom) -> Vec<u64> {
        let steps = self.steps(bounds);
        let mut counts = vec![0; self.tree.nodes()];
        counts[0] = self.total;
        for node in 0..self.tree.first_leaf() {
            self.deal(node, &steps, &mut counts, random);
        }
        counts
    }

    /// How many replicas stand too close, at least, with these counts.
    fn close(&self, counts: &[u64]) -> u64 {
        let over = counts.iter().zip(self.room);
        over.map(|(count, room)| count.saturating_sub(*room)).sum()
    }

    /// How far a device with so many is from its share by weight.
    fn off(&self, leaf: usize, count: u64) -> f64 {
        match self.shares[leaf] {
            share if share > 0.0 => (count as f64 / share - 1.0).abs(),
            _ => 0.0,
        }
    }

    /// As OpenStack rounds: each place gets its target rounded down, and what is left goes one by one to the smallest.
    fn customary(&self) -> Vec<u64> {
        let mut counts = vec![0; self.tree.nodes()];
        counts[0] = self.total;
        for node in 0..self.tree.first_leaf() {
            let mut children: Vec<usize> = self.tree.children[node]
                .clone()
                .filter(|&it| self.bounds[it].1 > 0)
                .collect();
            let mut rest = counts[node];
            for &child in &children {
                counts[child] = self.bounds[child].0.min(rest);
                rest -= counts[child];
            }
            children.sort_by(|&left, &right| self.targets[left].total_cmp(&self.targets[right]));
            for (place, &child) in (0..).zip(&children) {
                let each = rest / children.len() as u64;
                counts[child] += each + u64::from(place < rest % children.len() as u64);
            }
        }
        counts
    }

    /// Narrows the devices' bounds: no device is farther off its share than with OpenStack's rounding, as few replicas
    /// as that allows stand too close, and then the worst device comes as close to its share as it can.
    fn keep_balance(&mut self) {
        if self.shares.is_empty() {
            return;
        }
        let leaves = self.tree.first_leaf()..self.tree.nodes();
        let customary = self.customary();
        let worst = leaves
            .clone()
            .map(|leaf| self.off(leaf, customary[leaf]))
            .fold(0.0, f64::max);
        let mut limits: Vec<f64> = leaves
            .flat_map(|leaf| [self.off(leaf, self.bounds[leaf].0), self.off(leaf, self.bounds[leaf].1)])
            .filter(|&off| off < worst)
            .chain([worst])
            .collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        let dealt = |limit: f64| {
            let bounds = self.within(limit + EPSILON * EPSILON)?;
            let close = self.close(&self.dealt(&bounds, &mut RebalanceRandom::new(0)));
            Some((close, bounds))
        };
        let Some((fewest, mut best)) = dealt(worst) else {
            return;
        };
        let (mut low, mut high) = (0, limits.len());
        while low < high {
            let middle = (low + high) / 2;
            match dealt(limits[middle]).filter(|it| it.0 <= fewest) {
                Some((_, bounds)) => {
                    best = bounds;
                    high = middle;
                }
                None => low = middle + 1,
            }
        }
        self.bounds = best;
    }

    /// The devices' bounds, narrowed to what is no farther off than a limit; none where that cannot add up.
    fn within(&self, limit: f64) -> Option<Bounds> {
        let mut bounds = self.bounds.clone();
        let (mut low, mut high) = (0, 0);
        for (leaf, bound) in bounds.iter_mut().enumerate().skip(self.tree.first_leaf()) {
            let (least, most) = *bound;
            if self.shares[leaf] > 0.0 {
                *bound = match (self.off(leaf, least) <= limit, self.off(leaf, most) <= limit) {
                    (true, false) => (least, least),
                    (false, true) => (most, most),
                    (true, true) => (least, most),
                    (false, false) => return None,
                };
            }
            low += bound.0;
            high += bound.1;
        }
        (low <= self.total && self.total <= high).then_some(bounds)
    }

    /// For each node what one more costs, step by step from the least that stands below it; the steps never get
    /// cheaper.
    fn steps(&self, bounds: &Bounds) -> Vec<Steps> {
        let mut all: Vec<Steps> = vec![Steps::default(); self.tree.nodes()];
        for node in (0..self.tree.nodes()).rev() {
            let mut steps = Steps::default();
            if node < self.tree.first_leaf() {
                for child in self.tree.children[node].clone() {
                    steps.least += all[child].least;
                    steps.costs.extend(&all[child].costs);
                }
                steps.costs.sort_unstable();
            } else {
                let (least, most) = bounds[node];
                steps.least = least;
                steps.costs = vec![0; (most - least) as usize];
            }
            for (count, cost) in (steps.least..).zip(&mut steps.costs) {
                *cost += self.cost(node, count);
            }
            all[node] = steps;
        }
        all
    }

    /// What one more costs a node of so many.
    fn cost(&self, node: usize, count: u64) -> i64 {
        let close = i64::from(count >= self.room[node]);
        if node >= self.tree.first_leaf() {
            return CLOSE * close - i64::from(count < self.held[node]);
        }
        let (least, most) = self.bounds[node];
        CLOSE * close + OFF * (i64::from(count >= most) - i64::from(count < least))
    }

    /// Gives a node's count to its children: their least, and the rest where it is cheapest.
    fn deal(&self, node: usize, steps: &[Steps], counts: &mut [u64], random: &mut RebalanceRandom) {
        let mut open: Vec<(i64, u64, usize)> = Vec::new();
        let mut rest = counts[node];
        for child in self.tree.children[node].clone() {
            counts[child] = steps[child].least;
            rest = rest.saturating_sub(steps[child].least);
            open.extend(steps[child].costs.iter().map(|&cost| (cost, random.next(), child)));
        }
        open.sort_unstable();
        open.iter().take(rest as usize).for_each(|it| counts[it.2] += 1);
    }
}

/// What a node's count may be, and what it costs.
#[derive(Debug, Clone, Default)]
struct Steps {
    least: u64,
    /// What each one more costs.
    costs: Vec<i64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Apportion, bounds};
    use crate::builder::random::RebalanceRandom;
    use crate::builder::tree::TierTree;
    use crate::device::Device;

    fn tree(weights: &[f64]) -> TierTree {
        let devices: Vec<Device> = (0u32..)
            .zip(weights)
            .map(|(id, &weight)| Device {
                id,
                zone: id % 2,
                weight,
                ..Device::default()
            })
            .collect();
        TierTree::new(devices.iter(), weights.len())
    }

    fn solved(weights: &[f64], held: &[u64], total: u64) -> Vec<u64> {
        let tree = tree(weights);
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = tree.weights.iter().map(|weight| weight / sum * total as f64).collect();
        let mut by_node = vec![0; tree.nodes()];
        for (id, &held) in held.iter().enumerate() {
            by_node[tree.places[id][3] as usize] = held;
        }
        let solved = Apportion {
            tree: &tree,
            targets: &shares,
            bounds: bounds(&shares, 1.0),
            total,
            held: &by_node,
            shares: &shares,
            room: &vec![u64::MAX; tree.nodes()],
        }
        .solve(&mut RebalanceRandom::new(1));
        assert_eq!(solved[0], total);
        (0..weights.len())
            .map(|id| solved[tree.places[id][3] as usize])
            .collect()
    }

    #[test]
    fn equal_weights_give_equal_shares_to_within_one() {
        assert_eq!(solved(&[1.0; 4], &[0; 4], 16), [4; 4]);
        let five = solved(&[1.0; 5], &[0; 5], 16);
        assert_eq!(five.iter().sum::<u64>(), 16);
        assert!(five.iter().all(|&count| count == 3 || count == 4));
    }

    #[test]
    fn who_holds_one_more_keeps_it() {
        assert_eq!(solved(&[1.0; 5], &[3, 3, 4, 3, 3], 16)[2], 4);
        assert_eq!(solved(&[1.0; 5], &[3, 3, 3, 3, 4], 16)[4], 4);
    }

    #[test]
    fn the_worst_device_comes_as_close_as_it_can() {
        // 0.7 and 0.7 of ten: one is better than none for the small ones, whatever they hold.
        let solved = solved(&[0.7, 4.3, 0.7, 4.3], &[0, 5, 0, 5], 10);
        assert_eq!(solved, [1, 4, 1, 4]);
    }

    #[test]
    fn a_zone_gives_way_where_that_keeps_the_worst_device_closer() {
        // The first zone's target is 1.8: rounded to 2, one of its three devices would get nothing.
        let solved = solved(&[0.6, 2.8, 0.6, 2.7, 0.6, 2.7], &[0; 6], 10);
        assert_eq!([solved[0], solved[2], solved[4]], [1; 3]);
    }
}
