//! How many replicas of partitions each device gets: its target, rounded.
//!
//! Every region, zone, server and device gets its target rounded down or up, and what stands below
//! a node adds up to what the node has. Among all such roundings those are taken that keep the
//! worst device closest to its share by weight, among these those that put replicas farthest apart,
//! and among these the one that moves least.

use super::random::Random;
use super::tree::Tree;

/// What rounding of floats may do to a count.
const EPSILON: f64 = 1e-6;

/// A replica that stands too close weighs more than any number of moves.
const CLOSE: i64 = 1 << 32;

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

/// Whole numbers within the bounds that add up to `total`.
pub(super) struct Apportion<'a> {
    pub(super) tree: &'a Tree,
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
    pub(super) fn solve(mut self, random: &mut Random) -> Vec<u64> {
        self.keep_balance();
        let feasible = self.tighten(&self.bounds);
        let costs = self.costs(&feasible);
        let mut counts = vec![0; self.tree.nodes()];
        counts[0] = self.total;
        for node in 0..self.tree.first_leaf() {
            self.deal(node, &feasible, &costs, &mut counts, random);
        }
        counts
    }

    /// Narrows the devices' bounds as far as the worst device comes closer to its share.
    fn keep_balance(&mut self) {
        if self.shares.is_empty() {
            return;
        }
        let leaves = self.tree.first_leaf()..self.tree.nodes();
        let off = |leaf: usize, count: u64| (count as f64 / self.shares[leaf] - 1.0).abs();
        let weighted = || leaves.clone().filter(|&leaf| self.shares[leaf] > 0.0);
        let mut limits: Vec<f64> = weighted()
            .flat_map(|leaf| [off(leaf, self.bounds[leaf].0), off(leaf, self.bounds[leaf].1)])
            .collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        let within = |limit: f64| {
            let mut bounds = self.bounds.clone();
            for leaf in weighted() {
                let (least, most) = bounds[leaf];
                let (low, high) = (off(leaf, least) <= limit, off(leaf, most) <= limit);
                bounds[leaf] = match (low, high) {
                    (true, false) => (least, least),
                    (false, true) => (most, most),
                    (true, true) => (least, most),
                    (false, false) => return None,
                };
            }
            let tight = self.tighten_strictly(&bounds)?;
            (tight[0].0 <= self.total && self.total <= tight[0].1).then_some(bounds)
        };
        let mut low = 0;
        let mut high = limits.len();
        let mut best = None;
        while low < high {
            let middle = (low + high) / 2;
            match within(limits[middle] + EPSILON * EPSILON) {
                Some(bounds) => {
                    best = Some(bounds);
                    high = middle;
                }
                None => low = middle + 1,
            }
        }
        if let Some(bounds) = best {
            self.bounds = bounds;
        }
    }

    /// What each node can hold, given its own bounds and those below it; none when they contradict.
    fn tighten_strictly(&self, bounds: &Bounds) -> Option<Bounds> {
        let mut sums = vec![(0u64, 0u64); bounds.len()];
        let mut tight = bounds.clone();
        for node in (0..bounds.len()).rev() {
            if node < self.tree.first_leaf() {
                let (least, most) = (sums[node].0.max(bounds[node].0), sums[node].1.min(bounds[node].1));
                if least > most {
                    return None;
                }
                tight[node] = (least, most);
            }
            let above = &mut sums[self.tree.parents[node] as usize];
            if node > 0 {
                *above = (above.0 + tight[node].0, above.1 + tight[node].1);
            }
        }
        Some(tight)
    }

    /// The same, but what is below a node wins where the bounds contradict.
    fn tighten(&self, bounds: &Bounds) -> Bounds {
        let mut sums = vec![(0u64, 0u64); bounds.len()];
        let mut tight = bounds.clone();
        for node in (0..bounds.len()).rev() {
            if node < self.tree.first_leaf() {
                let (low, high) = sums[node];
                let (least, most) = bounds[node];
                tight[node] = (least.clamp(low, high), most.clamp(low, high));
            }
            if node > 0 {
                let above = &mut sums[self.tree.parents[node] as usize];
                *above = (above.0 + tight[node].0, above.1 + tight[node].1);
            }
        }
        tight
    }

    /// What it costs if a node gets its least, and what one more costs: replicas that stand too
    /// close, and then what must leave.
    fn costs(&self, bounds: &Bounds) -> Vec<(i64, i64)> {
        let mut costs = vec![(0i64, 0i64); bounds.len()];
        for node in (0..bounds.len()).rev() {
            let (least, most) = bounds[node];
            let close = |count: u64| CLOSE * count.saturating_sub(self.room[node]) as i64;
            if node >= self.tree.first_leaf() {
                let cost = |count: u64| close(count) + self.held[node].saturating_sub(count) as i64;
                costs[node] = (cost(least), cost(most) - cost(least));
                continue;
            }
            let children = self.tree.children[node].clone();
            let low: u64 = children.clone().map(|child| bounds[child].0).sum();
            let base: i64 = children.clone().map(|child| costs[child].0).sum();
            let open = children.filter(|&child| bounds[child].1 > bounds[child].0);
            let mut savings: Vec<i64> = open.map(|child| costs[child].1).collect();
            savings.sort_unstable();
            let dealt = |count: u64| savings.iter().take((count - low) as usize).sum::<i64>();
            let cost = |count: u64| close(count) + base + dealt(count);
            costs[node] = (cost(least), cost(most) - cost(least));
        }
        costs
    }

    /// Gives a node's count to its children: their least, and one more to those that save most.
    fn deal(&self, node: usize, bounds: &Bounds, costs: &[(i64, i64)], counts: &mut [u64], random: &mut Random) {
        let children = self.tree.children[node].clone();
        let low: u64 = children.clone().map(|child| bounds[child].0).sum();
        let mut rest = counts[node].saturating_sub(low);
        let mut open: Vec<(i64, u64, usize)> = Vec::new();
        for child in children {
            counts[child] = bounds[child].0;
            if bounds[child].1 > bounds[child].0 {
                open.push((costs[child].1, random.next(), child));
            }
        }
        open.sort_unstable();
        // One each, round after round: a child is open for more than one only where bounds are wide.
        while rest > 0 {
            let before = rest;
            for &(_, _, child) in &open {
                if rest > 0 && counts[child] < bounds[child].1 {
                    counts[child] += 1;
                    rest -= 1;
                }
            }
            if rest == before {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Apportion, bounds};
    use crate::builder::random::Random;
    use crate::builder::tree::Tree;
    use crate::device::Device;

    fn tree(weights: &[f64]) -> Tree {
        let devices: Vec<Device> = (0u32..)
            .zip(weights)
            .map(|(id, &weight)| Device {
                id,
                zone: id % 2,
                weight,
                ..Device::default()
            })
            .collect();
        Tree::new(devices.iter(), weights.len())
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
            bounds: bounds(&shares, 1.0),
            total,
            held: &by_node,
            shares: &shares,
            room: &vec![u64::MAX; tree.nodes()],
        }
        .solve(&mut Random::new(1));
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
}
