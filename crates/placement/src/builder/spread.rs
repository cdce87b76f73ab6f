//! The first placement: which devices each partition gets.
//!
//! The devices are laid on a line, region by region, zone by zone, server by server, each as long
//! as its share of the partitions at hand; a partition takes every device that has a point of an
//! even comb of as many teeth as it has replicas. A stretch of the line that is x teeth long holds
//! x rounded down or up of them, wherever the comb lies: so each region, zone, server and device
//! gets the replicas its share asks for, no more than one off, and a device never two of one
//! partition.
//!
//! The line is shuffled anew within each tier for every few partitions, so that the copies of what
//! a lost disk held are spread over the whole cluster. Shares are taken from what a device still
//! has to get, so that they come out exactly.

use super::random::RebalanceRandom;
use super::tree::{LEVELS, TierTree};

/// The line is shuffled at most so often.
const ROUNDS: usize = 4096;

/// Deals partitions to devices.
pub(super) struct Spreader<'t> {
    tree: &'t TierTree,
    random: &'t mut RebalanceRandom,
    /// The nodes of each level below a node, reordered from round to round.
    order: Vec<usize>,
}

impl<'t> Spreader<'t> {
    pub(super) fn new(tree: &'t TierTree, random: &'t mut RebalanceRandom) -> Spreader<'t> {
        let order = (0..tree.nodes()).collect();
        Spreader { tree, random, order }
    }

    /// Appends `partitions` partitions to all rows. `remaining` says how many cells each node's
    /// device still gets; they must add up, and none be larger than `partitions`.
    pub(super) fn fill(&mut self, rows: &mut [Vec<u32>], remaining: &mut [u64], partitions: usize) {
        let devices = self.tree.leaves.len().max(1);
        // About as many rounds as let every device stand on the line once.
        let rounds = (partitions * rows.len() / devices).clamp(1, ROUNDS);
        let each = partitions.div_ceil(rounds).max(1);
        let mut line = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        let mut left = partitions;
        while left > 0 {
            let count = each.min(left);
            self.draw(remaining, left as u64, count as u64, &mut line);
            starts.clear();
            starts.extend(0..count);
            self.random.shuffle(&mut starts);
            self.comb(rows, &line, &starts);
            left -= count;
        }
    }

    /// The line for the next `count` of `left` partitions: each device as often as it gets one of
    /// them. Takes them from what remains.
    fn draw(&mut self, remaining: &mut [u64], left: u64, count: u64, line: &mut Vec<u32>) {
        line.clear();
        let mut upto = u128::from(self.random.below(left));
        let mut given = 0;
        self.shuffle();
        let first = self.tree.first_leaf();
        let mut stack = vec![0usize];
        while let Some(node) = stack.pop() {
            if node < first {
                let children = &self.order[self.tree.children[node].clone()];
                stack.extend(children.iter().copied());
                continue;
            }
            upto += u128::from(remaining[node]) * u128::from(count);
            let until = (upto / u128::from(left)) as u64;
            let taken = until - given;
            given = until;
            remaining[node] -= taken;
            let id = self.tree.leaves[node - first];
            line.extend(std::iter::repeat_n(id, taken as usize));
        }
    }

    /// Shuffles the children of every node.
    fn shuffle(&mut self) {
        for node in 0..self.tree.levels[LEVELS].start {
            let children = self.tree.children[node].clone();
            self.random.shuffle(&mut self.order[children]);
        }
    }

    /// Deals the line to partitions, each taking every `starts.len()`-th point of it.
    fn comb(&mut self, rows: &mut [Vec<u32>], line: &[u32], starts: &[usize]) {
        let replicas = rows.len();
        let mut taken = Vec::with_capacity(replicas);
        for &start in starts {
            taken.clear();
            taken.extend(line.iter().skip(start).step_by(starts.len()).copied());
            self.random.shuffle(&mut taken);
            rows.iter_mut().zip(&taken).for_each(|(row, &id)| row.push(id));
        }
    }
}
