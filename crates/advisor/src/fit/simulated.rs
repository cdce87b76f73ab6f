//! Clusters whose law is not that of the curves: closed loops through queues, played request by request.
//!
//! W workers ask one gateway each, in turn, which asks one storage node of N, by chance. Each node serves one request
//! after the other, and a request's time there is what it and its bytes cost, the one after the other, more or less by
//! half. Knees, imbalance and tails follow from that; nothing of the curves' form is put in.

use super::points::Configuration;
use super::runs::{MeasuredCluster, MeasuredRun};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests of a run that are counted, and those before them.
const COUNTED: usize = 4000;
const WARM_UP: usize = 500;
/// Nanoseconds in a second: an order of times without ties of floating point.
const NANO: f64 = 1e9;

/// What nodes take of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedCosts {
    /// Seconds of a gateway for a request and for each byte.
    pub gateway: (f64, f64),
    /// The same of a storage node.
    pub storage: (f64, f64),
    /// Deviation of a measurement, relative.
    pub noise: f64,
}

impl SimulatedCosts {
    /// Some cluster: each kind of node takes 0.1 to 0.5 ms for a request, and as much again for 8 to 128 KB.
    pub fn drawn(random: &mut fastrand::Rng, noise: f64) -> Self {
        let mut kind = || {
            let request = 1e-4 * 5f64.powf(random.f64());
            (request, request / (8e3 * 16f64.powf(random.f64())))
        };
        Self {
            gateway: kind(),
            storage: kind(),
            noise,
        }
    }

    /// Requests a second and p99 in seconds, without noise.
    fn played(&self, at: Configuration, random: &mut fastrand::Rng) -> (f64, f64) {
        let cost = |(request, byte): (f64, f64)| request + byte * at.size;
        let (gateways, nodes) = (at.gateways as usize, at.storage_nodes as usize);
        let mut free = vec![0.0; gateways + nodes];
        let mut begun = vec![0.0; at.workers as usize];
        let mut arrivals: BinaryHeap<Reverse<(u64, usize, bool)>> = (0..begun.len())
            .map(|worker| Reverse((worker as u64, worker, true)))
            .collect();
        let (mut times, mut since, mut now) = (vec![], 0.0, 0.0);
        while let Some(Reverse((at, worker, is_new))) = arrivals.pop() {
            now = at as f64 / NANO;
            let (node, mean) = match is_new {
                true => (worker % gateways, cost(self.gateway)),
                false => (gateways + random.usize(..nodes), cost(self.storage)),
            };
            if is_new {
                if begun[worker] > 0.0 {
                    times.push(now - begun[worker]);
                }
                if times.len() == WARM_UP {
                    since = now;
                }
                if times.len() == WARM_UP + COUNTED {
                    break;
                }
                begun[worker] = now.max(1.0 / NANO);
            }
            free[node] = f64::max(free[node], now) + mean * (0.5 + random.f64());
            arrivals.push(Reverse(((free[node] * NANO) as u64, worker, !is_new)));
        }
        let mut counted = times.split_off(WARM_UP);
        counted.sort_by(f64::total_cmp);
        (COUNTED as f64 / (now - since), counted[COUNTED * 99 / 100])
    }

    /// A run of a configuration.
    pub fn run(&self, at: Configuration, random: &mut fastrand::Rng) -> MeasuredRun {
        let (rate, p99) = self.played(at, random);
        let mut factor = || {
            // Twelve uniform numbers have a variance of one.
            let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            (self.noise * normal).exp()
        };
        let (gateways, nodes) = (at.gateways as u32, at.storage_nodes as u32);
        MeasuredRun {
            name: format!("{gateways}:{nodes}, {}", at.size),
            cluster: MeasuredCluster::plain(gateways, nodes, "a simulation"),
            size: at.size,
            write_share: 0.0,
            workers: at.workers,
            rate: rate * factor(),
            p99: p99 * factor(),
        }
    }
}

/// The grid of `make advise-measure`, with other sizes.
pub(super) fn grid(sizes: &[f64]) -> Vec<Configuration> {
    let mut all = vec![];
    for gateways in [1.0, 2.0] {
        for storage_nodes in [1.0, 2.0, 4.0] {
            all.extend(sizes.iter().map(|size| Configuration {
                gateways,
                storage_nodes,
                size: *size,
                workers: 64.0,
            }));
        }
    }
    all
}
