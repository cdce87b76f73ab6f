//! What a move is worth: whether a partition's replicas stand closer or farther apart after it.
//!
//! Each place has a least and a most number of replicas that a partition should have there. Nothing here moves
//! anything.

use super::Moving;
use crate::builder::tree::{LEVELS, NOWHERE};

impl Moving<'_> {
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
    pub(super) fn crowded(&self, partition: usize, replica: usize) -> bool {
        let cells = &self.cells[partition * self.width..][..self.width];
        let id = cells[replica];
        if id == NOWHERE {
            return false;
        }
        let own = &self.tree.places[id as usize];
        (0..LEVELS - 1).any(|level| {
            let most = usize::from(self.allowed[own[level] as usize].max(self.most[own[level] as usize]));
            most < self.width && {
                let here = cells.iter().filter(|id| **id != NOWHERE);
                let here = here.filter(|id| self.tree.places[**id as usize][level] == own[level]);
                here.count() > most
            }
        })
    }

    /// How a partition's replicas stand: looked at for every partition, several times.
    pub(super) fn standing(&self, partition: usize) -> Standing {
        let cells = &self.cells[partition * self.width..][..self.width];
        let mut standing = Standing::default();
        for &level in &self.tight {
            let mut excess = 0;
            for (place, &id) in cells.iter().enumerate() {
                if id == NOWHERE {
                    continue;
                }
                let own = self.tree.places[id as usize][level];
                let mut upto = 1;
                for &other in &cells[..place] {
                    upto += u16::from(other != NOWHERE && self.tree.places[other as usize][level] == own);
                }
                let allowed = self.allowed[own as usize];
                if upto > allowed {
                    excess += 1;
                    standing.crowded |= level < LEVELS - 1 && upto > self.most[own as usize];
                }
            }
            standing.excess = standing.excess.max(excess);
        }
        standing
    }
}

/// How the replicas of a partition stand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    /// How many count as badly dispersed: those that are too many on the worst level.
    pub(super) excess: i32,
    /// Whether one of them crowds a place.
    pub(super) crowded: bool,
}
