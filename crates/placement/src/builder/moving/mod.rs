//! [`Moving`]: the table of a ring while its partitions move.
//!
//! Partition by partition in one flat array, so that what a move asks for (who else holds the
//! partition, and where) is in one place. A replica moves from a device that holds too much to one
//! that holds too little when that makes no place hold more of the partition than it should, or
//! fewer.
//!
//! | question | file |
//! |---|---|
//! | in which order things move | [`Moving::run`] |
//! | what a move is worth | `cost.rs` |
//! | where a replica can go | `slots.rs` |
//! | replicas without a device | `fresh.rs` |
//! | replicas that stand too close | `apart.rs` |
//! | the same moves, with less crowding | `trade.rs` |
//! | moves that need not be | `shorten.rs` |
//! | devices that hold too much | `surplus.rs`, and by way of others `chains.rs` |

mod apart;
mod chains;
mod cost;
mod fresh;
mod shorten;
mod slots;
mod surplus;
mod trade;

use super::random::RebalanceRandom;
use super::tree::{LEVELS, NOWHERE, TierTree};

/// How many partitions are visited in a row.
const NEIGHBOURS: usize = 16;

/// A partition's replicas on the move.
#[derive(Clone)]
pub(super) struct Moving<'t> {
    tree: &'t TierTree,
    width: usize,
    partitions: usize,
    /// Device ids, partition by partition.
    cells: Vec<u32>,
    /// The same before anything moved.
    origin: Vec<u32>,
    /// Partitions none of whose replicas may move: it is too early, or a replica is copied anew.
    fixed: Vec<bool>,
    /// Partitions for which it is too early.
    early: Vec<bool>,
    /// Partitions that get a new replica: another moves only off a device that holds too much.
    copied: Vec<bool>,
    /// Which replica of a partition moved, plus one.
    moved: Vec<u16>,
    /// Cells that had no device: where they go is open to the end.
    fresh: Vec<(usize, usize)>,
    /// For each node the least and most replicas a partition should have there.
    least: Vec<u16>,
    most: Vec<u16>,
    /// For each node the most replicas of a partition that do not count as badly dispersed.
    allowed: Vec<u16>,
    /// The levels with a place that cannot have all replicas of a partition.
    tight: Vec<usize>,
    /// The places that every partition should have a replica in.
    musts: Vec<usize>,
    /// What each device holds and should hold, by id.
    pub(super) parts: Vec<i64>,
    pub(super) quota: Vec<i64>,
    /// A device as often as it holds too little, in no order.
    slots: Vec<u32>,
}

impl<'t> Moving<'t> {
    /// Takes a table over. What stands on devices that are not in the tree has no place any more.
    pub(super) fn new(
        tree: &'t TierTree,
        rows: &[Vec<u32>],
        lengths: &[usize],
        partitions: usize,
        targets: &[f64],
        allowed: &[u32],
        may_move: impl Fn(usize) -> bool,
    ) -> Moving<'t> {
        let width = lengths.len();
        let bound = |round: fn(f64) -> f64, shift: f64| targets.iter().map(move |it| round(it + shift) as u16);
        let mut moving = Moving {
            tree,
            width,
            partitions,
            cells: vec![NOWHERE; partitions * width],
            origin: Vec::new(),
            fixed: Vec::new(),
            early: (0..partitions).map(|partition| !may_move(partition)).collect(),
            moved: vec![0; partitions],
            fresh: Vec::new(),
            least: bound(f64::floor, 1e-6).collect(),
            most: bound(f64::ceil, -1e-6).collect(),
            allowed: allowed.iter().map(|&most| most as u16).collect(),
            tight: Vec::new(),
            copied: vec![false; partitions],
            musts: Vec::new(),
            parts: vec![0; tree.places.len()],
            quota: vec![0; tree.places.len()],
            slots: Vec::new(),
        };
        moving.fixed = moving.early.clone();
        let alone = |node: usize| targets[tree.parents[node] as usize] - targets[node] < 1e-6;
        let must = |node: &usize| moving.least[*node] > 0 && !alone(*node);
        moving.musts = (1..tree.first_leaf()).filter(must).collect();
        moving.musts.reverse();
        let is_tight = |level: &usize| {
            let allowed = &moving.allowed[tree.levels[level + 1].clone()];
            allowed.iter().any(|&allowed| usize::from(allowed) < width)
        };
        moving.tight = (0..LEVELS).filter(is_tight).collect();
        for (replica, &length) in lengths.iter().enumerate() {
            let row = rows.get(replica).map_or([].as_slice(), Vec::as_slice);
            for partition in 0..length {
                moving.take_over(partition, replica, row.get(partition).copied());
            }
        }
        moving.origin = moving.cells.clone();
        moving
    }

    fn take_over(&mut self, partition: usize, replica: usize, id: Option<u32>) {
        match id {
            Some(id) if self.tree.places[id as usize][0] != NOWHERE => {
                self.cells[partition * self.width + replica] = id;
                self.parts[id as usize] += 1;
            }
            lost => {
                self.fresh.push((partition, replica));
                self.copied[partition] = true;
                // What was lost is copied anew; the others must stay to copy from.
                self.fixed[partition] |= lost.is_some();
            }
        }
    }

    /// What each node of the tree holds.
    pub(super) fn held(&self) -> Vec<u64> {
        let mut held = vec![0u64; self.tree.nodes()];
        for (id, place) in self.tree.places.iter().enumerate() {
            if place[0] != NOWHERE {
                let above = place.iter().map(|&node| node as usize).chain([0]);
                above.for_each(|node| held[node] += self.parts[id] as u64);
            }
        }
        held
    }

    pub(super) fn set_quotas(&mut self, quotas: &[u64]) {
        for (place, quota) in self.tree.places.iter().zip(&mut self.quota) {
            let leaf = place[LEVELS - 1];
            *quota = if leaf == NOWHERE {
                0
            } else {
                quotas[leaf as usize] as i64
            };
        }
    }

    /// Moves what should move and may.
    pub(super) fn run(&mut self, random: &mut RebalanceRandom) {
        self.open_slots(random);
        self.place_fresh(random);
        self.move_apart(random);
        self.move_surplus(random, 0);
        self.chain_all(random);
        let standing_badly = self.trade(random);
        let exchanged = self.exchange_apart(&standing_badly, random);
        // Weights come before distance: what is left over goes where it can.
        self.open_slots(random);
        let left_over = !self.slots.is_empty();
        self.move_surplus(random, i32::MAX);
        if exchanged || left_over {
            self.trade(random);
        }
        self.shorten(random);
    }

    /// The partitions whose replicas could stand better, in no order.
    fn standing_badly(&self, random: &mut RebalanceRandom) -> Vec<usize> {
        let badly = |partition: &usize| {
            let standing = self.standing(*partition);
            standing.excess > 0 || standing.crowded
        };
        let mut partitions: Vec<usize> = (0..self.partitions).filter(badly).collect();
        random.shuffle(&mut partitions);
        partitions
    }

    /// How good this is, the least being the best: what stands where nothing should, how far the worst device is from
    /// its share, how many replicas are badly dispersed, how many moved since `start`.
    pub(super) fn rank(&self, start: &Moving<'_>, shares: &[f64]) -> (i64, u64, i64, usize) {
        let held = || self.parts.iter().zip(shares);
        let misplaced = held().filter(|it| *it.1 <= 0.0).map(|it| *it.0).sum();
        let off = held().filter(|it| *it.1 > 0.0);
        let worst = off.map(|(&parts, share)| (parts as f64 / share - 1.0).abs());
        let excess = (0..self.partitions).map(|partition| i64::from(self.standing(partition).excess));
        let moved = self
            .cells
            .iter()
            .zip(&start.cells)
            .filter(|(now, before)| now != before);
        // The bits of floats that are not negative are in the order of the floats.
        (
            misplaced,
            worst.fold(0.0, f64::max).to_bits(),
            excess.sum(),
            moved.count(),
        )
    }

    /// Lets every partition move once more; false when nothing moved since the last time.
    pub(super) fn begin_again(&mut self) -> bool {
        let any = self.moved.iter().any(|&moved| moved > 0) || !self.fresh.is_empty();
        self.moved.fill(0);
        self.fresh.clear();
        self.copied.fill(false);
        self.fixed.clone_from(&self.early);
        self.origin.clone_from(&self.cells);
        any
    }

    pub(super) fn into_rows(self, lengths: &[usize]) -> Vec<Vec<u32>> {
        let row = |(replica, &length): (usize, &usize)| {
            (0..length)
                .map(|partition| self.cells[partition * self.width + replica])
                .collect()
        };
        lengths.iter().enumerate().map(row).collect()
    }

    /// Partitions in an order that looks random and visits each once; a few neighbours follow each
    /// other, as they share cache lines.
    fn order(&self, random: &mut RebalanceRandom) -> impl Iterator<Item = usize> + use<> {
        let block = NEIGHBOURS.min(self.partitions);
        let mask = self.partitions / block - 1;
        let (start, step) = (random.next() as usize, random.next() as usize | 1);
        let blocks = (0..=mask).map(move |turn| start.wrapping_add(turn.wrapping_mul(step)) & mask);
        blocks.flat_map(move |number| number * block..(number + 1) * block)
    }

    fn cell(&self, partition: usize, replica: usize) -> u32 {
        self.cells[partition * self.width + replica]
    }

    fn lacks(&self, id: u32) -> bool {
        self.parts[id as usize] < self.quota[id as usize]
    }

    fn exceeds(&self, id: u32) -> bool {
        self.parts[id as usize] > self.quota[id as usize]
    }

    /// Puts a replica on another device.
    fn put(&mut self, partition: usize, replica: usize, to: u32) {
        let cell = &mut self.cells[partition * self.width + replica];
        let from = std::mem::replace(cell, to);
        if from != NOWHERE {
            self.parts[from as usize] -= 1;
        }
        self.parts[to as usize] += 1;
    }

    /// Moves a replica of a partition that has not moved yet.
    fn relocate(&mut self, partition: usize, replica: usize, to: u32) {
        self.put(partition, replica, to);
        self.moved[partition] = replica as u16 + 1;
    }

    /// Whether a replica may go anywhere: it had no device, or its move is its partition's.
    fn is_free(&self, partition: usize, replica: usize) -> bool {
        let fresh = self.origin[partition * self.width + replica] == NOWHERE;
        let moved = usize::from(self.moved[partition]);
        self.cell(partition, replica) != NOWHERE
            && (fresh || (!self.fixed[partition] && (moved == 0 || moved == replica + 1)))
    }

    /// Notes where a free replica is now.
    fn note(&mut self, partition: usize, replica: usize, to: u32) {
        let origin = self.origin[partition * self.width + replica];
        if origin != NOWHERE {
            self.moved[partition] = if to == origin { 0 } else { replica as u16 + 1 };
        }
    }
}
