//! What each region, zone, server and device should hold, in replicas per partition.
//!
//! Three answers for each node: by weight alone; as far apart as possible, with weight deciding
//! only within that; and the target, which lies between the two as far as the overload allows.
//! `doc/source/overview_ring.rst` of OpenStack Swift explains the words; the numbers are those its
//! builder has, checked for rings of all shapes by `tests/operator/test_ring_histories.py`.

use crate::error::BuilderError;

use super::tree::TierTree;

/// What rounding of floats may do to a replica count.
const EPSILON: f64 = 1e-9;

/// Replicas per partition for each node of a tree.
#[derive(Debug)]
pub(super) struct Plan {
    /// By weight alone, but no device more than one.
    pub(super) weighted: Vec<f64>,
    /// What each node holds when replicas are as far apart as they can be.
    pub(super) dispersed: Vec<f64>,
    /// The most replicas of one partition a node should have; more count as badly dispersed.
    pub(super) most: Vec<u32>,
    /// The overload at which the dispersed share is reached everywhere.
    pub(super) required_overload: f64,
}

impl Plan {
    /// # Errors
    /// When there are fewer devices with weight than replicas.
    pub(super) fn new(tree: &TierTree, replicas: f64) -> Result<Plan, BuilderError> {
        let devices = tree.weighted[0] as usize;
        if devices == 0 {
            return Err(BuilderError::NoDevices);
        }
        if replicas > devices as f64 {
            return Err(BuilderError::TooFewDevices { replicas, devices });
        }
        let (most, bounds) = most(tree, replicas);
        let weighted = weighted(tree, replicas);
        let dispersed = dispersed(tree, replicas, &weighted, &bounds);
        let leaves = tree.first_leaf()..tree.nodes();
        let growth = |leaf: usize| match weighted[leaf] {
            0.0 => 0.0,
            weighted => dispersed[leaf] / weighted - 1.0,
        };
        let required_overload = leaves.map(growth).fold(0.0, f64::max);
        Ok(Plan {
            weighted,
            dispersed,
            most,
            required_overload,
        })
    }

    /// The share of each node for an overload.
    pub(super) fn target(&self, overload: f64) -> Vec<f64> {
        let way = match self.required_overload {
            0.0 => 0.0,
            required => overload.min(required) / required,
        };
        let between = self.weighted.iter().zip(&self.dispersed);
        between.map(|(&from, &to)| from + (to - from) * way).collect()
    }
}

/// The most replicas of a partition per node, when each node's are split evenly among its children.
/// Without weight below it, a node should have none. Also the fraction before it was rounded up.
fn most(tree: &TierTree, replicas: f64) -> (Vec<u32>, Vec<f64>) {
    let mut most = vec![0.0; tree.nodes()];
    most[0] = replicas;
    for node in 0..tree.first_leaf() {
        let children = tree.weighted_children(node);
        let count = children.clone().count();
        for child in children {
            most[child] = (most[node] / count as f64 - EPSILON).ceil();
        }
    }
    for most in &mut most[tree.first_leaf()..] {
        *most = most.min(1.0);
    }
    (most.iter().map(|most| most.ceil() as u32).collect(), most)
}

/// Shares by weight: a device that would get more than one replica of a partition gets one, and
/// the others share the rest.
fn weighted(tree: &TierTree, replicas: f64) -> Vec<f64> {
    let leaves = tree.first_leaf()..tree.nodes();
    let mut shares = vec![0.0; tree.nodes()];
    let mut full = vec![false; tree.nodes()];
    loop {
        let filled = leaves.clone().filter(|&leaf| full[leaf]).count();
        let open: f64 = leaves
            .clone()
            .filter(|&leaf| !full[leaf])
            .map(|leaf| tree.weights[leaf])
            .sum();
        let rest = replicas - filled as f64;
        let mut over = false;
        for leaf in leaves.clone().filter(|&leaf| tree.weights[leaf] > 0.0) {
            if !full[leaf] {
                shares[leaf] = rest * (tree.weights[leaf] / open);
            }
        }
        for leaf in leaves.clone() {
            if !full[leaf] && shares[leaf] > 1.0 + EPSILON {
                full[leaf] = true;
                shares[leaf] = 1.0;
                over = true;
            }
        }
        if !over {
            break;
        }
    }
    for node in (1..tree.nodes()).rev() {
        shares[tree.parents[node] as usize] += shares[node];
    }
    shares
}

/// Shares as far apart as possible, from the ring down.
fn dispersed(tree: &TierTree, replicas: f64, weighted: &[f64], most: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; tree.nodes()];
    shares[0] = replicas;
    for node in 0..tree.first_leaf() {
        let children: Vec<usize> = tree.weighted_children(node).collect();
        let split = Split::new(tree, &children, weighted, shares[node], most[node]);
        for (child, share) in children.iter().zip(split.shares()) {
            shares[*child] = share;
        }
    }
    shares
}

/// A node's replicas, to be split among its children: evenly to within one, and within that by weight.
struct Split {
    total: f64,
    weights: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
    devices: Vec<f64>,
    shares: Vec<f64>,
}

impl Split {
    fn new(tree: &TierTree, children: &[usize], weighted: &[f64], total: f64, most: f64) -> Split {
        let count = children.len() as f64;
        let devices: Vec<f64> = children.iter().map(|&child| f64::from(tree.weighted[child])).collect();
        let bound = |bound: f64| devices.iter().map(|&devices| devices.min(bound)).collect();
        Split {
            total,
            weights: children.iter().map(|&child| weighted[child]).collect(),
            least: bound((total / count + EPSILON).floor()),
            most: bound((most / count - EPSILON).ceil()),
            shares: vec![0.0; children.len()],
            devices,
        }
    }

    /// Deals out what is left by weight, again and again, to those who may still take (or give back).
    fn shares(mut self) -> Vec<f64> {
        let mut open: Vec<usize> = (0..self.shares.len()).collect();
        let mut rest = self.total;
        // Each round but two closes a child for good.
        for _ in 0..2 * self.shares.len() + 2 {
            let weight: f64 = open.iter().map(|&child| self.weights[child]).sum();
            if weight <= 0.0 {
                break;
            }
            for &child in &open {
                let share = self.shares[child] + self.weights[child] / weight * rest;
                self.shares[child] = share.max(self.least[child]).min(self.most[child]);
            }
            rest = self.total - self.shares.iter().sum::<f64>();
            if rest.abs() < EPSILON {
                break;
            }
            open = self.open(rest);
            if open.is_empty() {
                self.most.clone_from(&self.devices);
                open = self.open(rest);
            }
        }
        self.shares
    }

    fn open(&self, rest: f64) -> Vec<usize> {
        let room = |child: &usize| match rest > 0.0 {
            true => self.shares[*child] < self.most[*child],
            false => self.shares[*child] > self.least[*child],
        };
        (0..self.shares.len()).filter(room).collect()
    }
}
