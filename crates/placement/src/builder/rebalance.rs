//! [`RingBuilder::rebalance`]: partitions go where they belong now.
//!
//! 1. What every device should hold is computed from weights, places and overload (`plan.rs`) and
//!    rounded to whole partitions (`quota.rs`).
//! 2. A ring without partitions is dealt out at once (`spread.rs`).
//! 3. Otherwise what stood on removed devices, and what a larger replica count adds, is placed;
//!    then replicas that stand too close together move apart, then devices that hold too much give
//!    to those that hold too little, at last by way of others (`moving/`).
//!
//! What always holds: at most one replica of a partition moves, and only `min_part_hours` after
//! the last move, but for what stood on removed devices; a device never holds a partition twice;
//! an error leaves the builder as it was.

use crate::error::BuilderError;
use vocabulary::Partition;

use super::moving::Moving;
use super::plan::Plan;
use super::quota::{Apportion, bounds};
use super::random::RebalanceRandom;
use super::spread::Spreader;
use super::tree::{LEVELS, NOWHERE, TierTree};
use super::{Rebalanced, RingBuilder, dispersion};

/// With no hours to wait, a partition may move again at once: so many replicas of it.
const ROUNDS_WITHOUT_HOURS: usize = 8;

/// A small ring is moved up to so often, each time by other chances, and the best is taken: there, one partition more
/// or less is seen in every number.
const ATTEMPTS: usize = 64;

/// How many replicas of partitions all attempts look at.
const CELLS_IN_ALL: usize = 1 << 16;

/// How often what some devices cannot get is shared anew by the others.
const SHARINGS: usize = 3;

impl RingBuilder {
    /// Places all partitions, moving as few as possible. `now` is the time in seconds since 1970.
    ///
    /// # Errors
    /// When there are fewer devices with weight than replicas.
    pub fn rebalance(&mut self, seed: u64, now: i64) -> Result<Rebalanced, BuilderError> {
        self.rebalance_where(seed, now, |_| true)
    }

    /// The same, where a partition moves only if `may_move` agrees: the parts of a composite ring
    /// ask each other.
    ///
    /// # Errors
    /// When there are fewer devices with weight than replicas.
    pub fn rebalance_where(
        &mut self,
        seed: u64,
        now: i64,
        may_move: impl Fn(Partition) -> bool,
    ) -> Result<Rebalanced, BuilderError> {
        let staying = self.devices().filter(|device| !self.is_removed(device.id));
        let tree = TierTree::new(staying, self.devices.len());
        let plan = Plan::new(&tree, self.replicas)?;
        let mut random = RebalanceRandom::new(seed);
        let goal = Goal {
            targets: plan.target(self.overload),
            most: plan.most.clone(),
        };
        let moved = if self.rows.is_empty() {
            self.place_all(&tree, &goal, &mut random, now)
        } else {
            self.update_moves(now);
            self.move_some(&tree, &goal, &mut random, may_move)
        };
        let removed = std::mem::take(&mut self.removed);
        for &id in &removed {
            self.devices[id as usize] = None;
        }
        self.devices_changed = false;
        self.dev_id_bytes = self.least_dev_id_bytes();
        self.version += 1;
        let (graph, dispersion) = dispersion::spread(self, &tree, &plan);
        self.dispersion = dispersion;
        self.dispersion_graph = dispersion::graph_value(self, &tree, graph);
        Ok(Rebalanced {
            moved,
            balance: self.balance()?,
            removed: removed.len(),
        })
    }

    /// How long the rows are: the last one ends early when the replica count is a fraction.
    fn row_lengths(&self) -> Vec<usize> {
        let partitions = self.partitions();
        let mut lengths = vec![partitions; self.replicas.floor() as usize];
        if self.replicas.fract() > 0.0 {
            lengths.push((self.replicas.fract() * partitions as f64) as usize);
        }
        lengths
    }

    /// Counts hours since the last move up to now.
    pub(super) fn update_moves(&mut self, now: i64) {
        let elapsed = now.saturating_sub(self.moves_epoch) / 3600;
        if elapsed <= 0 {
            return;
        }
        let elapsed = u8::try_from(elapsed).unwrap_or(u8::MAX);
        self.moves.resize(self.partitions(), 0);
        for hours in &mut self.moves {
            *hours = hours.saturating_add(elapsed);
        }
        self.moves_epoch = now;
    }

    /// What each node gets, in whole cells.
    fn quotas(&self, tree: &TierTree, goal: &Goal, held: &[u64], random: &mut RebalanceRandom) -> Vec<u64> {
        let cells: usize = self.row_lengths().iter().sum();
        let total_weight = tree.weights[0];
        let exact = self.partitions() as f64 * self.replicas;
        let shares: Vec<f64> = tree.weights.iter().map(|it| it / total_weight * exact).collect();
        Apportion {
            tree,
            targets: &goal.targets,
            bounds: bounds(&goal.targets, self.partitions() as f64),
            total: cells as u64,
            held,
            shares: &shares,
            room: &goal.room(self.partitions()),
        }
        .solve(random)
    }

    /// The first placement.
    fn place_all(&mut self, tree: &TierTree, goal: &Goal, random: &mut RebalanceRandom, now: i64) -> u64 {
        let quotas = self.quotas(tree, goal, &vec![0; tree.nodes()], random);
        let lengths = self.row_lengths();
        let partitions = self.partitions();
        // The first partitions have one replica more where the count is a fraction.
        let more = lengths.last().copied().filter(|&last| last < partitions).unwrap_or(0);
        let whole = self.replicas.floor() as usize;
        let mut rows: Vec<Vec<u32>> = lengths.iter().map(|&length| Vec::with_capacity(length)).collect();
        let groups = [(more, lengths.len()), (partitions - more, whole)];
        let mut first = first_quotas(tree, &quotas, &goal.room(more), groups, random);
        let mut rest: Vec<u64> = quotas.iter().zip(&first).map(|(all, first)| all - first).collect();
        let mut spreader = Spreader::new(tree, random);
        spreader.fill(&mut rows, &mut first, more);
        spreader.fill(&mut rows[..whole], &mut rest, partitions - more);
        self.rows = rows;
        self.moves_epoch = now;
        self.moves = vec![0; partitions];
        self.count_parts(tree, &quotas);
        quotas[0]
    }

    /// Moves what has to move; returns how many cells changed.
    fn move_some(
        &mut self,
        tree: &TierTree,
        goal: &Goal,
        random: &mut RebalanceRandom,
        may_move: impl Fn(Partition) -> bool,
    ) -> u64 {
        self.moves.resize(self.partitions(), 0);
        let before = std::mem::take(&mut self.rows);
        let lengths = self.row_lengths();
        let hours = self.min_part_hours;
        let moves = &self.moves;
        let may_move = |partition: usize| i64::from(moves[partition]) >= hours && may_move(Partition(partition as u32));
        let start = Moving::new(
            tree,
            &before,
            &lengths,
            self.partitions(),
            &goal.targets,
            &goal.most,
            may_move,
        );
        let shares = self.shares(tree);
        let attempts = (CELLS_IN_ALL / (self.partitions() * lengths.len())).clamp(1, ATTEMPTS);
        let (moving, quotas) = match attempts {
            1 => self.attempt(tree, goal, start, &shares, random),
            _ => {
                let all = (0..attempts).map(|_| self.attempt(tree, goal, start.clone(), &shares, random));
                let best = all.min_by_key(|(moving, _)| moving.rank(&start, &shares));
                best.unwrap_or_else(|| (start.clone(), vec![0; tree.nodes()]))
            }
        };
        self.rows = moving.into_rows(&lengths);
        let moved = self.note_moves(&before);
        self.count_parts(tree, &quotas);
        moved
    }

    /// Moves what has to move, as chance has it. Also says what each node should hold.
    fn attempt<'t>(
        &self,
        tree: &TierTree,
        goal: &Goal,
        mut moving: Moving<'t>,
        shares: &[f64],
        random: &mut RebalanceRandom,
    ) -> (Moving<'t>, Vec<u64>) {
        let quotas = self.quotas(tree, goal, &moving.held(), random);
        moving.set_quotas(&quotas);
        moving.run(random);
        for _ in 1..ROUNDS_WITHOUT_HOURS {
            if self.min_part_hours > 0 || !moving.begin_again() {
                break;
            }
            moving.run(random);
        }
        self.share_rest(tree, &mut moving, shares, random);
        (moving, quotas)
    }

    /// What each device should hold by weight, by id.
    fn shares(&self, tree: &TierTree) -> Vec<f64> {
        let exact = self.partitions() as f64 * self.replicas;
        let share = |place: &[u32; LEVELS]| match place[LEVELS - 1] {
            NOWHERE => 0.0,
            leaf => tree.weights[leaf as usize] / tree.weights[0] * exact,
        };
        tree.places.iter().map(share).collect()
    }

    /// What devices that lack partitions cannot get now is shared by the others.
    fn share_rest(&self, tree: &TierTree, moving: &mut Moving<'_>, shares: &[f64], random: &mut RebalanceRandom) {
        let leaf = |id: usize| tree.places[id][LEVELS - 1];
        let ids = 0..tree.places.len();
        for _ in 0..SHARINGS {
            let missing = |id: &usize| (moving.quota[*id] - moving.parts[*id]).max(0);
            let lack: i64 = ids.clone().map(|id| missing(&id)).sum();
            let open: f64 = ids.clone().filter(|id| missing(id) == 0).map(|id| shares[id]).sum();
            if lack == 0 || open <= 0.0 {
                return;
            }
            let mut targets = vec![0.0; tree.nodes()];
            for id in ids.clone().filter(|&id| leaf(id) != NOWHERE) {
                targets[leaf(id) as usize] = match missing(&id) {
                    0 => (moving.quota[id] as f64 + lack as f64 * shares[id] / open).min(self.partitions() as f64),
                    _ => moving.parts[id] as f64,
                };
            }
            for node in (1..tree.nodes()).rev() {
                targets[tree.parents[node] as usize] += targets[node];
            }
            let counts = Apportion {
                tree,
                targets: &[],
                bounds: bounds(&targets, 1.0),
                total: moving.parts.iter().sum::<i64>() as u64,
                held: &moving.held(),
                shares: &[],
                room: &vec![u64::MAX; tree.nodes()],
            }
            .solve(random);
            let quota = |id: usize| match leaf(id) {
                NOWHERE => 0,
                leaf => counts[leaf as usize] as i64,
            };
            if !moving.share_rest(shares, ids.clone().map(quota).collect(), random) {
                return;
            }
        }
    }

    /// Notes which partitions moved just now.
    fn note_moves(&mut self, before: &[Vec<u32>]) -> u64 {
        let mut moved = 0;
        for (place, row) in self.rows.iter().enumerate() {
            let old = before.get(place).map_or([].as_slice(), Vec::as_slice);
            for (partition, id) in row.iter().enumerate() {
                if old.get(partition) != Some(id) {
                    moved += 1;
                    self.moves[partition] = 0;
                }
            }
        }
        moved
    }

    /// Counts what each device holds and what it misses.
    fn count_parts(&mut self, tree: &TierTree, quotas: &[u64]) {
        let mut parts = vec![0i64; self.devices.len()];
        self.rows.iter().flatten().for_each(|&id| parts[id as usize] += 1);
        for (id, entry) in self.devices.iter_mut().enumerate() {
            let Some(entry) = entry else { continue };
            entry.parts = parts[id];
            let leaf = tree.places[id][LEVELS - 1];
            let quota = if leaf == NOWHERE {
                0
            } else {
                quotas[leaf as usize] as i64
            };
            entry.parts_wanted = Some(quota - parts[id]);
        }
    }
}

/// What is to be reached.
struct Goal {
    /// What each node should hold, in replicas per partition.
    targets: Vec<f64>,
    /// The most replicas of a partition that each node should have.
    most: Vec<u32>,
}

impl Goal {
    /// What each node can hold of so many partitions before replicas stand too close there.
    fn room(&self, partitions: usize) -> Vec<u64> {
        let room = self.most.iter();
        room.map(|&most| u64::from(most) * partitions as u64).collect()
    }
}

/// What each node gets of the first partitions, which have more replicas than the others: of both
/// groups, how many partitions there are and how many replicas each has.
fn first_quotas(
    tree: &TierTree,
    quotas: &[u64],
    room: &[u64],
    [first, rest]: [(usize, usize); 2],
    random: &mut RebalanceRandom,
) -> Vec<u64> {
    let (here, there) = (first.0 * first.1, rest.0 * rest.1);
    if here == 0 || there == 0 {
        return if there == 0 {
            quotas.to_vec()
        } else {
            vec![0; quotas.len()]
        };
    }
    let ideal = first_shares(tree, quotas, room, [first, rest]);
    let left: Vec<f64> = quotas
        .iter()
        .zip(&ideal)
        .map(|(&quota, ideal)| quota as f64 - ideal)
        .collect();
    let (here_bounds, there_bounds) = (bounds(&ideal, 1.0), bounds(&left, 1.0));
    let both = |node: usize| {
        let quota = quotas[node];
        let (least, most) = here_bounds[node];
        let least = least.max(quota.saturating_sub(there_bounds[node].1));
        let most = most.min(quota.saturating_sub(there_bounds[node].0)).max(least);
        if node < tree.first_leaf() {
            return (least, most);
        }
        // No device more than once per partition, here or there.
        let least = least.max(quota.saturating_sub(rest.0 as u64));
        let most = most.min(first.0 as u64);
        (least.min(most), most)
    };
    Apportion {
        tree,
        targets: &[],
        bounds: (0..tree.nodes()).map(both).collect(),
        total: here as u64,
        held: &vec![0; tree.nodes()],
        shares: &[],
        room,
    }
    .solve(random)
}

/// The same before rounding: in proportion, as far as no device gets a partition twice and, where that can be, no place
/// more replicas of a partition than it should, here or there.
fn first_shares(tree: &TierTree, quotas: &[u64], room: &[u64], [first, rest]: [(usize, usize); 2]) -> Vec<f64> {
    // The room of the rest is as much larger as there are more partitions in it.
    let room_there = |node: usize| room[node] as f64 * rest.0 as f64 / first.0 as f64;
    let mut bounds = vec![(0.0, 0.0); tree.nodes()];
    for node in (0..tree.nodes()).rev() {
        let quota = quotas[node] as f64;
        let (least, most) = match node >= tree.first_leaf() {
            true => ((quota - rest.0 as f64).max(0.0), quota.min(first.0 as f64)),
            false => {
                let children = || bounds[tree.children[node].clone()].iter();
                (children().map(|it| it.0).sum(), children().map(|it| it.1).sum::<f64>())
            }
        };
        // Where there is room for all of them nowhere, it is all the same how many are too many here or there.
        let (here, there) = (room[node] as f64, quota - room_there(node));
        let within = |count: f64| count.max(least).min(most);
        bounds[node] = (within(here.min(there)), within(here.max(there)));
    }
    let mut shares = vec![0.0; tree.nodes()];
    shares[0] = (first.0 * first.1) as f64;
    for node in 0..tree.first_leaf() {
        let children = tree.children[node].clone();
        let share = |child: usize, part: f64| (quotas[child] as f64 * part).max(bounds[child].0).min(bounds[child].1);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let sum: f64 = children.clone().map(|child| share(child, middle)).sum();
            if sum < shares[node] {
                low = middle;
            } else {
                high = middle;
            }
        }
        children.for_each(|child| shares[child] = share(child, high));
    }
    shares
}
