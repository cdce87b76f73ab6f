//! What a move is worth: whether a partition's replicas stand closer or farther apart after it.
//!
//! Each place has a least and a most number of replicas that a partition should have there. Nothing here moves anything.

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
}
