//! Partitions trade places, so that replicas stand farther apart and no more of them move.
//!
//! Two replicas that move anyway swap where they go; or a replica that stands too close goes in place of one that its
//! device gives away, which stays. What devices hold is the same after a trade, and so is how many replicas move.

use super::Moving;
use crate::builder::random::Random;
use crate::builder::tree::{LEVELS, NOWHERE};

/// How many partners are looked at for one replica.
const PARTNERS: usize = 24;

/// How often all partitions look for partners.
const ROUNDS: usize = 4;

/// A replica of a partition.
pub(super) type Cell = (usize, usize);

/// The replicas that move.
struct Movers {
    all: Vec<Cell>,
    /// By the device they leave.
    leaving: Vec<Vec<Cell>>,
}

impl Moving<'_> {
    /// Trades as long as that helps.
    pub(super) fn trade(&mut self, random: &mut Random) {
        for _ in 0..ROUNDS {
            let movers = self.movers();
            if movers.all.is_empty() {
                return;
            }
            let mut better = false;
            for partition in self.order(random) {
                if self.excess(partition) == 0 && !self.is_crowded(partition) {
                    continue;
                }
                for replica in 0..self.width {
                    better |= self.trade_one((partition, replica), &movers, random);
                }
            }
            if !better {
                return;
            }
        }
    }

    fn movers(&self) -> Movers {
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
    fn trade_one(&mut self, cell: Cell, movers: &Movers, random: &mut Random) -> bool {
        let (partition, replica) = cell;
        let here = self.cell(partition, replica);
        if here == NOWHERE || !self.is_free(partition, replica) {
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
        let before = self.excess(partition);
        let from = std::mem::replace(&mut self.cells[place], to);
        let after = self.excess(partition);
        self.cells[place] = from;
        after - before
    }

    /// How many replicas of a partition count as badly dispersed: those it has too many of on its worst level.
    pub(super) fn excess(&self, partition: usize) -> i32 {
        let cells = &self.cells[partition * self.width..][..self.width];
        let on_level = |level: usize| {
            let node = |id: &u32| self.tree.places[*id as usize][level];
            let placed = || cells.iter().filter(|id| **id != NOWHERE).map(node);
            let crowd = |(place, own): (usize, u32)| {
                let upto = placed().take(place + 1).filter(|it| *it == own).count();
                i32::from(upto > usize::from(self.allowed[own as usize]))
            };
            placed().enumerate().map(crowd).sum()
        };
        (0..LEVELS).map(on_level).max().unwrap_or(0)
    }

    fn is_crowded(&self, partition: usize) -> bool {
        (0..self.width).any(|replica| self.crowded(partition, replica))
    }
}
