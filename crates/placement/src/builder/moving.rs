//! [`Moving`]: the table of a ring while its partitions move.
//!
//! Partition by partition in one flat array, so that what a move asks for (who else holds the
//! partition, and where) is in one place. A replica moves from a device that holds too much to one
//! that holds too little when that makes no place hold more of the partition than it should, or
//! fewer. Candidates are drawn at random from the open slots, so that what one device gives is
//! spread over many; what is left over at the end is found by `chains.rs`.

use super::random::Random;
use super::tree::{LEVELS, NOWHERE, Tree};

/// How many open slots are looked at for one replica.
const DRAWS: usize = 12;

/// A partition's replicas on the move.
pub(super) struct Moving<'t> {
    pub(super) tree: &'t Tree,
    pub(super) width: usize,
    pub(super) partitions: usize,
    /// Device ids, partition by partition.
    pub(super) cells: Vec<u32>,
    /// The same before anything moved.
    pub(super) origin: Vec<u32>,
    /// Partitions none of whose replicas may move.
    pub(super) fixed: Vec<bool>,
    /// Which replica of a partition moved, plus one.
    pub(super) moved: Vec<u16>,
    /// Cells that had no device: where they go is open to the end.
    fresh: Vec<(usize, usize)>,
    /// For each node the least and most replicas a partition should have there.
    least: Vec<u16>,
    most: Vec<u16>,
    /// What each device holds and should hold, by id.
    pub(super) parts: Vec<i64>,
    pub(super) quota: Vec<i64>,
    /// A device as often as it holds too little, in no order.
    slots: Vec<u32>,
}

impl<'t> Moving<'t> {
    /// Takes a table over. What stands on devices that are not in the tree has no place any more.
    pub(super) fn new(
        tree: &'t Tree,
        rows: &[Vec<u32>],
        lengths: &[usize],
        partitions: usize,
        targets: &[f64],
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
            fixed: (0..partitions).map(|partition| !may_move(partition)).collect(),
            moved: vec![0; partitions],
            fresh: Vec::new(),
            least: bound(f64::floor, 1e-6).collect(),
            most: bound(f64::ceil, -1e-6).collect(),
            parts: vec![0; tree.places.len()],
            quota: vec![0; tree.places.len()],
            slots: Vec::new(),
        };
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
    pub(super) fn run(&mut self, random: &mut Random) {
        self.open_slots(random);
        self.place_fresh(random);
        self.move_apart(random);
        self.move_surplus(random);
        self.chain_all(random);
        self.exchange_apart(random);
    }

    /// Lets every partition move once more; false when nothing moved since the last time.
    pub(super) fn begin_again(&mut self) -> bool {
        let any = self.moved.iter().any(|&moved| moved > 0) || !self.fresh.is_empty();
        self.moved.fill(0);
        self.fresh.clear();
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

    /// Partitions in an order that looks random and visits each once.
    pub(super) fn order(&self, random: &mut Random) -> impl Iterator<Item = usize> + use<> {
        let mask = self.partitions - 1;
        let (start, step) = (random.next() as usize, random.next() as usize | 1);
        (0..self.partitions).map(move |turn| start.wrapping_add(turn.wrapping_mul(step)) & mask)
    }

    pub(super) fn cell(&self, partition: usize, replica: usize) -> u32 {
        self.cells[partition * self.width + replica]
    }

    pub(super) fn lacks(&self, id: u32) -> bool {
        self.parts[id as usize] < self.quota[id as usize]
    }

    pub(super) fn exceeds(&self, id: u32) -> bool {
        self.parts[id as usize] > self.quota[id as usize]
    }

    /// By how much a partition stands worse if a replica of it goes to `to`: below zero is better.
    /// None where `to` holds it already.
    pub(super) fn cost(&self, partition: usize, replica: usize, to: u32) -> Option<i32> {
        let cells = &self.cells[partition * self.width..][..self.width];
        let enters = &self.tree.places[to as usize];
        let from = cells[replica];
        let leaves = match from {
            NOWHERE => &[NOWHERE; LEVELS],
            id => &self.tree.places[id as usize],
        };
        let mut cost = 0;
        for level in (0..LEVELS).rev() {
            let (enter, leave) = (enters[level], leaves[level]);
            if enter == leave {
                break;
            }
            let (mut there, mut here) = (0u16, 0u16);
            for (other, &id) in cells.iter().enumerate() {
                if other != replica && id != NOWHERE {
                    let node = self.tree.places[id as usize][level];
                    there += u16::from(node == enter);
                    here += u16::from(node == leave);
                }
            }
            if level == LEVELS - 1 && there > 0 {
                return None;
            }
            cost += i32::from(there >= self.most[enter as usize]) - i32::from(there < self.least[enter as usize]);
            if leave != NOWHERE {
                cost += i32::from(here < self.least[leave as usize]) - i32::from(here >= self.most[leave as usize]);
            }
        }
        Some(cost)
    }

    /// Whether a partition has more replicas in a place than it should; says which of its replicas
    /// are in such a place.
    fn crowded(&self, partition: usize, replica: usize) -> bool {
        let cells = &self.cells[partition * self.width..][..self.width];
        let id = cells[replica];
        id != NOWHERE && {
            let own = &self.tree.places[id as usize];
            (0..LEVELS - 1).any(|level| {
                let here = cells.iter().filter(|id| **id != NOWHERE);
                let here = here.filter(|id| self.tree.places[**id as usize][level] == own[level]);
                here.count() > usize::from(self.most[own[level] as usize])
            })
        }
    }

    /// Puts a replica on another device.
    pub(super) fn put(&mut self, partition: usize, replica: usize, to: u32) {
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

    pub(super) fn open_slots(&mut self, random: &mut Random) {
        self.slots.clear();
        for (id, (&parts, &quota)) in self.parts.iter().zip(&self.quota).enumerate() {
            let missing = usize::try_from(quota - parts).unwrap_or(0);
            self.slots.extend(std::iter::repeat_n(id as u32, missing));
        }
        random.shuffle(&mut self.slots);
    }

    /// The best of some open slots for a replica: its place in the list, and the cost.
    fn draw(&self, partition: usize, replica: usize, draws: usize, random: &mut Random) -> Option<(usize, i32)> {
        let mut best: Option<(usize, i32)> = None;
        for _ in 0..draws {
            let slot = random.below(self.slots.len() as u64) as usize;
            let Some(cost) = self.cost(partition, replica, self.slots[slot]) else {
                continue;
            };
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((slot, cost));
            }
            if cost < 0 {
                break;
            }
        }
        best
    }

    /// Gives every cell without a device one.
    fn place_fresh(&mut self, random: &mut Random) {
        let mut fresh = std::mem::take(&mut self.fresh);
        random.shuffle(&mut fresh);
        let mut hard = Vec::new();
        for &(partition, replica) in &fresh {
            let drawn = match self.slots.is_empty() {
                true => None,
                false => self.draw(partition, replica, 2 * DRAWS, random),
            };
            match drawn.filter(|drawn| drawn.1 <= 0) {
                Some((slot, _)) => {
                    let to = self.slots.swap_remove(slot);
                    self.put(partition, replica, to);
                }
                None => hard.push((partition, replica)),
            }
        }
        for (partition, replica) in hard {
            let to = self.best_device(partition, replica);
            self.put(partition, replica, to);
        }
        self.fresh = fresh;
        self.open_slots(random);
    }

    /// The device for a cell that none of the drawn slots suits: of those that lack partitions, or
    /// else of all, the one where the partition stands best.
    fn best_device(&self, partition: usize, replica: usize) -> u32 {
        let leaves = self.tree.leaves.iter().copied();
        let rank = |id: u32| {
            let cost = self.cost(partition, replica, id)?;
            let (parts, quota) = (self.parts[id as usize], self.quota[id as usize]);
            let over = (parts + 1 - quota).max(0);
            (quota > 0).then_some((over > 0, cost, parts - quota, id))
        };
        // There are at least as many devices with weight as replicas, so one is free.
        leaves.filter_map(rank).min().map_or(0, |best| best.3)
    }

    /// Moves replicas that crowd a place, from devices that hold too much first.
    fn move_apart(&mut self, random: &mut Random) {
        for only_surplus in [true, false] {
            for partition in self.order(random) {
                if self.slots.is_empty() {
                    return;
                }
                if self.fixed[partition] || self.moved[partition] > 0 {
                    continue;
                }
                self.move_one_apart(partition, only_surplus, random);
            }
        }
    }

    fn move_one_apart(&mut self, partition: usize, only_surplus: bool, random: &mut Random) {
        let mut crowded: Vec<usize> = Vec::new();
        for replica in 0..self.width {
            let id = self.cell(partition, replica);
            if id != NOWHERE && (!only_surplus || self.exceeds(id)) && self.crowded(partition, replica) {
                crowded.push(replica);
            }
        }
        crowded.sort_by_key(|&replica| -self.surplus(self.cell(partition, replica)));
        for replica in crowded {
            let drawn = self.draw(partition, replica, DRAWS, random);
            if let Some((slot, _)) = drawn.filter(|drawn| drawn.1 < 0) {
                let from = self.cell(partition, replica);
                let to = self.slots.swap_remove(slot);
                self.relocate(partition, replica, to);
                if self.lacks(from) {
                    self.slots.push(from);
                }
                return;
            }
        }
    }

    /// How much too much a device holds, in thousandths of what it should hold.
    fn surplus(&self, id: u32) -> i64 {
        let (parts, quota) = (self.parts[id as usize], self.quota[id as usize]);
        (parts - quota) * 1000 / quota.max(1)
    }

    /// Moves replicas from devices that hold too much to open slots.
    fn move_surplus(&mut self, random: &mut Random) {
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
            let drawn = self.draw(partition, replica, DRAWS, random);
            if let Some((slot, _)) = drawn.filter(|drawn| drawn.1 <= 0) {
                let to = self.slots.swap_remove(slot);
                self.relocate(partition, replica, to);
            }
        }
    }

    /// Moves replicas that still crowd a place though all devices hold what they should, and lets
    /// others move back in exchange; undone where that does not come out even.
    fn exchange_apart(&mut self, random: &mut Random) {
        let imbalance = |moving: &Moving<'_>| -> i64 {
            let off = moving.parts.iter().zip(&moving.quota);
            off.map(|(parts, quota)| (parts - quota).abs()).sum()
        };
        let before = imbalance(self);
        let kept = (self.cells.clone(), self.moved.clone(), self.parts.clone());
        let mut any = false;
        for partition in self.order(random) {
            if self.fixed[partition] || self.moved[partition] > 0 {
                continue;
            }
            any |= self.exchange_one(partition, random);
        }
        if !any {
            return;
        }
        self.open_slots(random);
        self.move_surplus(random);
        self.chain_all(random);
        if imbalance(self) > before {
            (self.cells, self.moved, self.parts) = kept;
        }
    }

    fn exchange_one(&mut self, partition: usize, random: &mut Random) -> bool {
        for replica in 0..self.width {
            if !self.crowded(partition, replica) {
                continue;
            }
            for _ in 0..DRAWS {
                let leaf = random.below(self.tree.leaves.len() as u64) as usize;
                let to = self.tree.leaves[leaf];
                let better = self.cost(partition, replica, to).is_some_and(|cost| cost < 0);
                if better && self.quota[to as usize] > 0 {
                    self.relocate(partition, replica, to);
                    return true;
                }
            }
        }
        false
    }
}
