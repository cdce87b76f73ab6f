//! Moves that need not be: a device gets one replica of a partition and gives another away. It keeps that one, and the
//! other goes on to where that one would have gone: one replica fewer moves, and all devices hold what they held.

use super::Moving;
use super::trade::Cell;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

/// How many of the replicas that leave a device are looked at for one that comes to it.
const PARTNERS: usize = 64;

/// How often all replicas that move look for a shorter way.
const ROUNDS: usize = 4;

impl Moving<'_> {
    /// Takes moves back as long as no replica stands closer to others for it.
    pub(super) fn shorten(&mut self, random: &mut RebalanceRandom) {
        for _ in 0..ROUNDS {
            if !self.passes_through() || !self.shorten_all(random) {
                return;
            }
        }
    }

    /// Whether any device both got and gave replicas.
    fn passes_through(&self) -> bool {
        let (mut got, mut gave) = (vec![false; self.parts.len()], vec![false; self.parts.len()]);
        for (&now, &before) in self.cells.iter().zip(&self.origin) {
            if now != before && now != NOWHERE {
                got[now as usize] = true;
                if before != NOWHERE {
                    gave[before as usize] = true;
                }
            }
        }
        got.iter().zip(&gave).any(|(got, gave)| *got && *gave)
    }

    /// One round; whether it saved a move.
    fn shorten_all(&mut self, random: &mut RebalanceRandom) -> bool {
        let mut movers = self.movers();
        random.shuffle(&mut movers.all);
        let mut saved = false;
        for &arriving in &movers.all {
            let here = self.cell(arriving.0, arriving.1);
            let partners = &movers.leaving[here as usize];
            for _ in 0..PARTNERS.min(2 * partners.len()) {
                let leaving = partners[random.below(partners.len() as u64) as usize];
                if self.stays_instead(arriving, leaving) {
                    saved = true;
                    break;
                }
            }
        }
        saved
    }

    /// Lets one replica stay on its device and another, that came there, go where that one went; whether it was done.
    fn stays_instead(&mut self, arriving: Cell, leaving: Cell) -> bool {
        let (here, there) = (self.cell(arriving.0, arriving.1), self.cell(leaving.0, leaving.1));
        let home = self.origin[leaving.0 * self.width + leaving.1];
        let comes = here != self.origin[arriving.0 * self.width + arriving.1];
        if arriving.0 == leaving.0 || !comes || home != here || there == here {
            return false;
        }
        let costs = self
            .cost(arriving.0, arriving.1, there)
            .zip(self.cost(leaving.0, leaving.1, here));
        let apart = costs.is_some_and(|(first, second)| first + second <= 0)
            && self.excess_change(arriving, there) + self.excess_change(leaving, here) <= 0;
        if apart {
            self.put(arriving.0, arriving.1, there);
            self.note(arriving.0, arriving.1, there);
            self.put(leaving.0, leaving.1, here);
            self.note(leaving.0, leaving.1, here);
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::Moving;
    use crate::builder::random::RebalanceRandom;
    use crate::builder::tree::TierTree;
    use crate::device::Device;

    /// Devices in zones of their own, or two and two in a zone.
    fn tree(zones: u32) -> TierTree {
        let device = |id| Device {
            id,
            zone: id % zones,
            weight: 1.0,
            ..Device::default()
        };
        let devices: Vec<Device> = (0..4).map(device).collect();
        TierTree::new(devices.iter(), 4)
    }

    /// A replica goes from device 3 to 1, which gives one to 2.
    fn passing(tree: &TierTree) -> Moving<'_> {
        let targets = vec![1.0; tree.nodes()];
        let rows = [vec![3, 1, 2, 3], vec![0, 3, 1, 0]];
        let mut moving = Moving::new(tree, &rows, &[4, 4], 4, &targets, &[1; 16], |_| true);
        moving.relocate(0, 0, 1);
        moving.relocate(1, 0, 2);
        moving
    }

    #[test]
    fn what_comes_goes_on_and_what_would_leave_stays() {
        let tree = tree(4);
        let mut moving = passing(&tree);
        moving.shorten(&mut RebalanceRandom::new(1));
        assert_eq!((moving.cell(0, 0), moving.cell(1, 0)), (2, 1));
        assert_eq!((moving.moved[0], moving.moved[1]), (1, 0));
        assert!(
            !moving.shorten_all(&mut RebalanceRandom::new(1)),
            "there is nothing left to shorten"
        );
    }

    #[test]
    fn not_where_a_replica_would_stand_closer_to_others() {
        // Devices 0 and 2 share a zone, 1 and 3 another: both would meet their partition's other replica.
        let tree = tree(2);
        let mut moving = passing(&tree);
        let before = moving.cells.clone();
        moving.shorten(&mut RebalanceRandom::new(1));
        assert_eq!(moving.cells, before);
    }
}
