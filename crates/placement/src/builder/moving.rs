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

/// How many devices of a place are looked at for a replica that is missing there.
const SCAN: usize = 128;

/// How many devices are looked at for a replica that must go somewhere.
const SAMPLE: usize = 48;

/// How many partitions are visited in a row.
const NEIGHBOURS: usize = 16;

/// A partition's replicas on the move.
pub(super) struct Moving<'t> {
    pub(super) tree: &'t Tree,
    pub(super) width: usize,
    pub(super) partitions: usize,
    /// Device ids, partition by partition.
    pub(super) cells: Vec<u32>,
    /// The same before anything moved.
    pub(super) origin: Vec<u32>,
    /// Partitions none of whose replicas may move: it is too early, or a replica is copied anew.
    pub(super) fixed: Vec<bool>,
    /// Partitions for which it is too early.
    early: Vec<bool>,
    /// Partitions that get a new replica: another moves only off a device that holds too much.
    copied: Vec<bool>,
    /// Which replica of a partition moved, plus one.
    pub(super) moved: Vec<u16>,
    /// Cells that had no device: where they go is open to the end.
    fresh: Vec<(usize, usize)>,
    /// For each node the least and most replicas a partition should have there.
    least: Vec<u16>,
    most: Vec<u16>,
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
            fixed: Vec::new(),
            early: (0..partitions).map(|partition| !may_move(partition)).collect(),
            moved: vec![0; partitions],
            fresh: Vec::new(),
            least: bound(f64::floor, 1e-6).collect(),
            most: bound(f64::ceil, -1e-6).collect(),
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
    pub(super) fn run(&mut self, random: &mut Random) {
        self.open_slots(random);
        self.place_fresh(random);
        self.move_apart(random);
        self.move_surplus(random, 0);
        self.chain_all(random);
        self.exchange_apart(random);
        // Weights come before distance: what is left over goes where it can.
        self.open_slots(random);
        self.move_surplus(random, i32::MAX);
    }

    /// Devices that hold too little can get no more: lets the others share what was meant for them,
    /// if that brings the worst device closer to its share. `shares` is that of each device by id.
    pub(super) fn share_rest(&mut self, shares: &[f64], new_quotas: Vec<i64>, random: &mut Random) -> bool {
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
    pub(super) fn order(&self, random: &mut Random) -> impl Iterator<Item = usize> + use<> {
        let block = NEIGHBOURS.min(self.partitions);
        let mask = self.partitions / block - 1;
        let (start, step) = (random.next() as usize, random.next() as usize | 1);
        let blocks = (0..=mask).map(move |turn| start.wrapping_add(turn.wrapping_mul(step)) & mask);
        blocks.flat_map(move |number| number * block..(number + 1) * block)
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

    /// Whether a replica is in a place where its partition has more of them than it should.
    fn crowded(&self, partition: usize, replica: usize) -> bool {
        let cells = &self.cells[partition * self.width..][..self.width];
        let id = cells[replica];
        if id == NOWHERE {
            return false;
        }
        let own = &self.tree.places[id as usize];
        (0..LEVELS - 1).any(|level| {
            let most = usize::from(self.most[own[level] as usize]);
            most < self.width && {
                let here = cells.iter().filter(|id| **id != NOWHERE);
                let here = here.filter(|id| self.tree.places[**id as usize][level] == own[level]);
                here.count() > most
            }
        })
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

    /// A device that lacks partitions, drawn for a replica, and what it costs to put it there.
    fn draw(&mut self, partition: usize, replica: usize, random: &mut Random) -> Option<(u32, i32)> {
        let mut best: Option<(u32, i32)> = None;
        for _ in 0..DRAWS {
            if self.slots.is_empty() {
                break;
            }
            let slot = random.below(self.slots.len() as u64) as usize;
            let id = self.slots[slot];
            if !self.lacks(id) {
                self.slots.swap_remove(slot);
                continue;
            }
            let Some(cost) = self.cost(partition, replica, id) else {
                continue;
            };
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((id, cost));
            }
            if cost < 0 {
                break;
            }
        }
        best
    }

    /// A device that lacks partitions, in a place where the partition should have a replica and has
    /// none.
    fn missing(&self, partition: usize, replica: usize, random: &mut Random) -> Option<u32> {
        let cells = &self.cells[partition * self.width..][..self.width];
        for &node in &self.musts {
            let level = self
                .tree
                .levels
                .iter()
                .rposition(|level| level.start <= node)
                .unwrap_or(0);
            let there = cells.iter().filter(|id| **id != NOWHERE);
            let there = there.filter(|id| self.tree.places[**id as usize][level - 1] == node as u32);
            if there.count() >= usize::from(self.least[node]) {
                continue;
            }
            let devices = self.tree.devices_below(node);
            // In leaps, so that a place that will not do is left behind at once.
            let start = random.below(devices.len() as u64) as usize;
            let leaps = (0..devices.len().min(SCAN)).map(|turn| start + turn * ((devices.len() * 5 / 8) | 1));
            let turned = leaps.map(|place| devices[place % devices.len()]);
            let fits = |id: &u32| self.lacks(*id) && self.cost(partition, replica, *id).is_some_and(|cost| cost < 0);
            if let Some(id) = { turned }.find(fits) {
                return Some(id);
            }
        }
        None
    }

    /// Where a replica can go at a cost of no more than `limit`.
    fn target(&mut self, partition: usize, replica: usize, limit: i32, random: &mut Random) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        if limit < 0 {
            return self.missing(partition, replica, random);
        }
        let drawn = self.draw(partition, replica, random);
        drawn.filter(|drawn| drawn.1 <= limit).map(|drawn| drawn.0)
    }

    /// Gives every cell without a device one.
    fn place_fresh(&mut self, random: &mut Random) {
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
    fn place_drawn(&mut self, partition: usize, replica: usize, limit: i32, random: &mut Random) -> bool {
        let target = self.target(partition, replica, limit, random);
        target.is_some_and(|to| {
            self.put(partition, replica, to);
            true
        })
    }

    /// The device for a cell that none of the drawn slots suits: one where the partition stands no
    /// worse, and of these one that lacks partitions, if there is any.
    fn best_device(&self, partition: usize, replica: usize, random: &mut Random) -> u32 {
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

    /// Moves replicas that crowd a place, from devices that hold too much first.
    fn move_apart(&mut self, random: &mut Random) {
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

    /// How much too much a device holds, in thousandths of what it should hold.
    fn surplus(&self, id: u32) -> i64 {
        let (parts, quota) = (self.parts[id as usize], self.quota[id as usize]);
        (parts - quota) * 1000 / quota.max(1)
    }

    /// Moves replicas from devices that hold too much to open slots, those first that stand better
    /// there.
    fn move_surplus(&mut self, random: &mut Random, limit: i32) {
        if !self.musts.is_empty() {
            self.move_surplus_within(random, -1);
        }
        self.move_surplus_within(random, limit);
    }

    fn move_surplus_within(&mut self, random: &mut Random, limit: i32) {
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

    /// Moves replicas that still crowd a place though all devices hold what they should, and lets
    /// others move back in exchange; undone where that does not come out even.
    fn exchange_apart(&mut self, random: &mut Random) {
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
            if better && self.quota[to as usize] > 0 {
                self.put(partition, replica, to);
                self.note(partition, replica, to);
                return true;
            }
        }
        false
    }

    /// Whether a replica may go anywhere: it had no device, or its move is its partition's.
    pub(super) fn is_free(&self, partition: usize, replica: usize) -> bool {
        let fresh = self.origin[partition * self.width + replica] == NOWHERE;
        let moved = usize::from(self.moved[partition]);
        self.cell(partition, replica) != NOWHERE
            && (fresh || (!self.fixed[partition] && (moved == 0 || moved == replica + 1)))
    }

    /// Notes where a free replica is now.
    pub(super) fn note(&mut self, partition: usize, replica: usize, to: u32) {
        let origin = self.origin[partition * self.width + replica];
        if origin != NOWHERE {
            self.moved[partition] = if to == origin { 0 } else { replica as u16 + 1 };
        }
    }
}
