//! What is left over: a device holds too much, another too little, and no partition can go from
//! one to the other. Then it goes by way of a third: the first gives it a partition, it gives the
//! other another one. Such chains are searched from the devices that lack partitions outwards, all
//! at once, level by level.

use super::Moving;
use crate::builder::random::RebalanceRandom;
use crate::builder::tree::NOWHERE;

/// The longest chain.
const LONGEST: usize = 4;

/// How often chains are searched before what is left stays as it is.
const SEARCHES: usize = 64;

/// How many devices of a level are tried for one replica.
const TRIES: usize = 8;

/// A replica of a partition that may go to a device.
#[derive(Clone, Copy)]
struct Hop {
    partition: usize,
    replica: usize,
    to: u32,
}

impl Moving<'_> {
    /// Searches chains until there are none.
    pub(super) fn chain_all(&mut self, random: &mut RebalanceRandom) {
        for _ in 0..SEARCHES {
            let ids = 0..self.parts.len() as u32;
            let lacking: Vec<u32> = ids.clone().filter(|&id| self.lacks(id)).collect();
            let exceeding = ids.filter(|&id| self.exceeds(id)).count();
            if lacking.is_empty() || exceeding == 0 || !self.chain_some(lacking, exceeding, random) {
                return;
            }
        }
    }

    /// One search; whether it moved anything.
    fn chain_some(&mut self, lacking: Vec<u32>, exceeding: usize, random: &mut RebalanceRandom) -> bool {
        let mut hops: Vec<Option<Hop>> = vec![None; self.parts.len()];
        let mut reached = vec![false; self.parts.len()];
        lacking.iter().for_each(|&id| reached[id as usize] = true);
        let mut level = lacking;
        for _ in 0..LONGEST {
            let (next, sources) = self.search_level(&level, &mut reached, &mut hops, exceeding, random);
            let moved = sources.into_iter().filter(|&source| self.follow(source, &hops)).count();
            if moved > 0 {
                return true;
            }
            if next.is_empty() {
                return false;
            }
            level = next;
        }
        false
    }

    /// The devices that can give to one of `level`, and those of them that hold too much.
    fn search_level(
        &self,
        level: &[u32],
        reached: &mut [bool],
        hops: &mut [Option<Hop>],
        exceeding: usize,
        random: &mut RebalanceRandom,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut next, mut sources) = (Vec::new(), Vec::new());
        for partition in self.order(random) {
            if sources.len() >= exceeding {
                break;
            }
            for replica in 0..self.width {
                let from = self.cell(partition, replica);
                if from == NOWHERE || reached[from as usize] {
                    continue;
                }
                let Some(to) = self.find(partition, replica, level, random) else {
                    continue;
                };
                reached[from as usize] = true;
                hops[from as usize] = Some(Hop { partition, replica, to });
                next.push(from);
                if self.exceeds(from) {
                    sources.push(from);
                }
            }
        }
        (next, sources)
    }

    /// A device of a level that a replica can go to.
    fn find(&self, partition: usize, replica: usize, level: &[u32], random: &mut RebalanceRandom) -> Option<u32> {
        let fits = |id: &u32| self.fits(partition, replica, *id);
        if let Some(back) = self.only_way(partition, replica) {
            return back.filter(|id| level.contains(id)).filter(fits);
        }
        if level.len() <= TRIES {
            return level.iter().copied().find(fits);
        }
        let draws = (0..TRIES).map(|_| level[random.below(level.len() as u64) as usize]);
        draws.into_iter().find(fits)
    }

    /// Where a replica must go if it goes at all, as the partition's move may only be changed: no
    /// answer where it is free, none inside where it must stay.
    fn only_way(&self, partition: usize, replica: usize) -> Option<Option<u32>> {
        if self.is_free(partition, replica) {
            return None;
        }
        if self.fixed[partition] {
            return Some(None);
        }
        // Another replica moved: this one may go instead, to where that one came from.
        let moved = usize::from(self.moved[partition]);
        Some(Some(self.origin[partition * self.width + moved - 1]))
    }

    fn fits(&self, partition: usize, replica: usize, to: u32) -> bool {
        self.cost(partition, replica, to).is_some_and(|cost| cost <= 0)
    }

    /// Moves along the chain from a device that holds too much; false if it is broken by now.
    fn follow(&mut self, source: u32, hops: &[Option<Hop>]) -> bool {
        let mut chain: Vec<Hop> = Vec::new();
        let mut at = source;
        while let Some(hop) = hops[at as usize] {
            let same = |known: &Hop| known.partition == hop.partition;
            let stale = self.cell(hop.partition, hop.replica) != at || chain.iter().any(same);
            let way = self.only_way(hop.partition, hop.replica);
            let closed = way.is_some_and(|way| way != Some(hop.to));
            if stale || closed || !self.fits(hop.partition, hop.replica, hop.to) {
                return false;
            }
            chain.push(hop);
            at = hop.to;
        }
        if !self.lacks(at) || !self.exceeds(source) {
            return false;
        }
        chain.into_iter().for_each(|hop| self.hop(hop));
        true
    }

    fn hop(&mut self, hop: Hop) {
        let Hop { partition, replica, to } = hop;
        let start = partition * self.width;
        if self.is_free(partition, replica) {
            self.put(partition, replica, to);
            self.note(partition, replica, to);
            return;
        }
        // This replica goes to where the moved one is, and that one back.
        let moved = usize::from(self.moved[partition]);
        let there = self.cell(partition, moved - 1);
        self.parts[self.cells[start + replica] as usize] -= 1;
        self.parts[to as usize] += 1;
        self.cells[start + replica] = there;
        self.cells[start + moved - 1] = to;
        self.moved[partition] = replica as u16 + 1;
    }
}
