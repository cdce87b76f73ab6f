//! Which devices a partition gets.
//!
//! The devices are laid on a line, region by region, zone by zone, server by server, each as long
//! as its share of the partitions at hand; a partition takes every device that has a point of an
//! even comb of `replicas` teeth. A stretch of the line that is x teeth long holds x rounded down
//! or up of them, wherever the comb lies: so each region, zone, server and device gets the replicas
//! its weight asks for, no more than one off, and a device never two of one partition.
//!
//! The line is shuffled anew within each tier for every few partitions, so that the copies of what
//! a lost disk held are spread over the whole cluster. Shares are taken from what a device still
//! has to get, so that they come out exactly.

use std::cmp::Ordering;

use crate::device::Device;

use super::quota::quotas;
use super::random::Random;

/// The line is shuffled at most so often.
const ROUNDS: u64 = 4096;

/// The rows of a table: device ids by replica and partition.
pub(super) fn rows(devices: &[&Device], replicas: f64, partitions: u32, seed: u64) -> Vec<Vec<u32>> {
    let mut ordered = devices.to_vec();
    ordered.sort_by(|left, right| near(left, right));
    let mut spreader = Spreader::new(ordered, seed);
    let whole = replicas.floor() as usize;
    // A fraction gives the first partitions one replica more, in a last row that ends early.
    let more = (replicas.fract() * f64::from(partitions)) as u32;
    let mut table: Vec<Vec<u32>> = vec![Vec::with_capacity(partitions as usize); whole];
    if more > 0 {
        table.push(Vec::with_capacity(more as usize));
        spreader.fill(&mut table, more);
    }
    spreader.fill(&mut table[..whole], partitions - more);
    table
}

/// Orders devices so that those in one place stand together.
fn near(left: &Device, right: &Device) -> Ordering {
    let place = |device: &Device| (device.region, device.zone);
    place(left)
        .cmp(&place(right))
        .then_with(|| left.ip.cmp(&right.ip))
        .then(left.id.cmp(&right.id))
}

struct Spreader<'d> {
    devices: Vec<&'d Device>,
    random: Random,
}

impl<'d> Spreader<'d> {
    fn new(devices: Vec<&'d Device>, seed: u64) -> Spreader<'d> {
        Spreader {
            devices,
            random: Random::new(seed),
        }
    }

    /// Appends `partitions` partitions to all rows.
    fn fill(&mut self, rows: &mut [Vec<u32>], partitions: u32) {
        let weights: Vec<f64> = self.devices.iter().map(|device| device.weight).collect();
        let mut left = u64::from(partitions);
        let mut remaining = quotas(&weights, rows.len(), left);
        let round = left.div_ceil(ROUNDS).max(1);
        while left > 0 {
            let count = round.min(left);
            let line = self.line(&mut remaining, left, count);
            self.comb(rows, &line, count as usize);
            left -= count;
        }
    }

    /// The line for the next `count` of `left` partitions: each device as often as it gets one of
    /// them. Takes them from what remains.
    fn line(&mut self, remaining: &mut [u64], left: u64, count: u64) -> Vec<u32> {
        let order = self.shuffled();
        let mut upto = u128::from(self.random.below(left));
        let mut given = 0;
        let mut line = Vec::new();
        for place in order {
            upto += u128::from(remaining[place]) * u128::from(count);
            let until = (upto / u128::from(left)) as u64;
            let taken = until - given;
            given = until;
            remaining[place] -= taken;
            line.extend(std::iter::repeat_n(self.devices[place].id, taken as usize));
        }
        line
    }

    /// The devices in a random order that keeps regions, zones and servers together.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut keys: Vec<([u64; 4], usize)> = Vec::with_capacity(self.devices.len());
        let mut key = [0; 4];
        let mut before: Option<&Device> = None;
        for (place, &device) in self.devices.iter().enumerate() {
            let fresh = before.map_or(0, |before| {
                let same = [
                    before.region == device.region,
                    before.zone == device.zone,
                    before.ip == device.ip,
                ];
                same.iter().position(|same| !same).unwrap_or(3)
            });
            key[fresh..].iter_mut().for_each(|part| *part = self.random.next());
            keys.push((key, place));
            before = Some(device);
        }
        keys.sort_unstable();
        keys.into_iter().map(|(_, place)| place).collect()
    }

    /// Deals the line to `count` partitions, each taking every `count`-th point of it.
    fn comb(&mut self, rows: &mut [Vec<u32>], line: &[u32], count: usize) {
        let mut starts: Vec<usize> = (0..count).collect();
        self.random.shuffle(&mut starts);
        for start in starts {
            let mut taken: Vec<u32> = line.iter().skip(start).step_by(count).copied().collect();
            self.random.shuffle(&mut taken);
            rows.iter_mut().zip(taken).for_each(|(row, id)| row.push(id));
        }
    }
}
