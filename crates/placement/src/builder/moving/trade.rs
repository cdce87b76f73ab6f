//! Partitions trade places, so that replicas stand farther apart and no more of them move.
//!
//! Two replicas that move anyway swap where they go; or a replica that stands too close goes in place of one that its
//! device gives away, which stays. What devices hold is the same after a trade, and so is how many replicas move.

use super::Moving;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

/// How many partners are looked at for one replica.
const PARTNERS: usize = 24;

/// How often all partitions look for partners.
const ROUNDS: usize = 4;

/// A replica of a partition.
pub(super) type Cell = (usize, usize);

/// The replicas that move.
pub(super) struct Movers {
    pub(super) all: Vec<Cell>,
    /// By the device they leave.
    pub(super) leaving: Vec<Vec<Cell>>,
}

impl Moving<'_> {
    /// Looks for partners for the partitions that stand badly, as long as that helps. Those that still do are the
    /// answer.
    pub(super) fn trade(&mut self, random: &mut RebalanceRandom) -> Vec<usize> {
        let mut standing_badly = self.standing_badly(random);
        for _ in 0..ROUNDS {
            if standing_badly.is_empty() || !self.trade_all(&standing_badly, random) {
                break;
            }
            standing_badly = self.standing_badly(random);
        }
        standing_badly
    }

    /// One round; whether it helped.
    fn trade_all(&mut self, standing_badly: &[usize], random: &mut RebalanceRandom) -> bool {
        let movers = self.movers();
        let cells = standing_badly
            .iter()
            .flat_map(|&partition| (0..self.width).map(move |replica| (partition, replica)));
        let cells: Vec<Cell> = cells.collect();
        let better = cells.into_iter().filter(|&cell| self.trade_one(cell, &movers, random));
        better.count() > 0
    }

    pub(super) fn movers(&self) -> Movers {
        let mut movers = Movers {
            all: Vec::new(),
            leaving: vec![Vec::new(); self.parts.len()],
        };
        for (place, (&now, &before)) in self.cells.iter().zip(&self.origin).enumerate() {
            if now == before || now == NOWHERE {
                continue;
            }
            let cell = (place / self.width, place % self.width);
            movers.all.push(cell);
            if before != NOWHERE {
                movers.leaving[before as usize].push(cell);
            }
        }
        movers
    }

    /// Looks for a partner for a replica; whether it found one.
    fn trade_one(&mut self, cell: Cell, movers: &Movers, random: &mut RebalanceRandom) -> bool {
        let (partition, replica) = cell;
        let here = self.cell(partition, replica);
        if movers.all.is_empty() || here == NOWHERE || !self.is_free(partition, replica) {
            return false;
        }
        let moves = here != self.origin[partition * self.width + replica];
        let partners = match moves {
            true => &movers.all,
            false if self.moved[partition] == 0 && !self.copied[partition] => &movers.leaving[here as usize],
            false => return false,
        };
        if partners.is_empty() {
            return false;
        }
        for _ in 0..PARTNERS.min(2 * partners.len()) {
            let partner = partners[random.below(partners.len() as u64) as usize];
            let place = partner.0 * self.width + partner.1;
            let there = self.cells[place];
            // What was traded since the movers were counted may be at home again.
            let gone = there == self.origin[place] || (!moves && self.origin[place] != here);
            if gone || partner.0 == partition || there == here {
                continue;
            }
            if self.is_better(cell, there, partner, here) {
                self.put(partition, replica, there);
                self.note(partition, replica, there);
                self.put(partner.0, partner.1, here);
                self.note(partner.0, partner.1, here);
                return true;
            }
        }
        false
    }

    /// Whether replicas stand farther apart when one cell goes to a device and another to another.
    fn is_better(&mut self, first: Cell, to: u32, second: Cell, back: u32) -> bool {
        let costs = self.cost(first.0, first.1, to).zip(self.cost(second.0, second.1, back));
        let Some(cost) = costs.map(|(first, second)| first + second).filter(|&cost| cost <= 0) else {
            return false;
        };
        let excess = self.excess_change(first, to) + self.excess_change(second, back);
        excess <= 0 && (cost < 0 || excess < 0)
    }

    pub(super) fn excess_change(&mut self, (partition, replica): Cell, to: u32) -> i32 {
        let place = partition * self.width + replica;
        let before = self.standing(partition).excess;
        let from = std::mem::replace(&mut self.cells[place], to);
        let after = self.standing(partition).excess;
        self.cells[place] = from;
        after - before
    }
}
