//! [`TierTree`]: where the devices stand, numbered: the ring, its regions, zones, servers, devices.
//!
//! Everything that walks partitions works on these numbers in flat arrays; names are looked at
//! once, when the tree is made. Nodes of one level stand together, the children of a node too, in
//! the order of region, zone, address and id.

use std::ops::Range;

use crate::device::Device;

/// The levels below the root: region, zone, server, device.
pub(super) const LEVELS: usize = 4;

/// Stands for an id without a device.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Regions, zones, servers and devices as numbers. Node 0 is the ring.
#[derive(Debug)]
pub(super) struct TierTree {
    pub(super) parents: Vec<u32>,
    /// The children of each node, which stand together.
    pub(super) children: Vec<Range<usize>>,
    /// The nodes of the root's level and of each below it.
    pub(super) levels: Vec<Range<usize>>,
    /// The nodes a device stands in, from its region to itself, by device id.
    pub(super) places: Vec<[u32; LEVELS]>,
    /// The ids of the nodes of the last level.
    pub(super) leaves: Vec<u32>,
    /// The weight of all devices below a node.
    pub(super) weights: Vec<f64>,
    /// How many devices with weight are below a node.
    pub(super) weighted: Vec<u32>,
}

/// The name of a node as a device below it shows it: its first `level` members.
type Key<'d> = (u32, u32, &'d str, u32);

impl TierTree {
    /// The tree of devices, whose ids are below `ids`.
    pub(super) fn new<'d>(devices: impl Iterator<Item = &'d Device>, ids: usize) -> TierTree {
        let mut devices: Vec<&Device> = devices.collect();
        devices.sort_by(|left, right| key(left).cmp(&key(right)));
        let mut places = vec![[NOWHERE; LEVELS]; ids];
        let mut tree = TierTree {
            parents: vec![0],
            children: Vec::new(),
            levels: std::iter::once(0..1).collect(),
            places: Vec::new(),
            leaves: devices.iter().map(|device| device.id).collect(),
            weights: Vec::new(),
            weighted: Vec::new(),
        };
        for level in 0..LEVELS {
            tree.add_level(level, &devices, &mut places);
        }
        tree.places = places;
        tree.find_children();
        tree.sum_weights(&devices);
        tree
    }

    fn add_level(&mut self, level: usize, devices: &[&Device], places: &mut [[u32; LEVELS]]) {
        let start = self.parents.len();
        let mut before: Option<&Device> = None;
        for &device in devices {
            if before.is_none_or(|before| !same(before, device, level)) {
                let parent = match level {
                    0 => 0,
                    level => places[device.id as usize][level - 1],
                };
                self.parents.push(parent);
            }
            places[device.id as usize][level] = self.parents.len() as u32 - 1;
            before = Some(device);
        }
        self.levels.push(start..self.parents.len());
    }

    fn find_children(&mut self) {
        let nodes = self.parents.len();
        self.children = vec![0..0; nodes];
        for node in (1..nodes).rev() {
            let range = &mut self.children[self.parents[node] as usize];
            let end = if range.end == 0 { node + 1 } else { range.end };
            *range = node..end;
        }
    }

    fn sum_weights(&mut self, devices: &[&Device]) {
        self.weights = vec![0.0; self.parents.len()];
        self.weighted = vec![0; self.parents.len()];
        for device in devices {
            let above = self.places[device.id as usize];
            for node in above.into_iter().map(|node| node as usize).chain([0]) {
                self.weights[node] += device.weight;
                self.weighted[node] += u32::from(device.weight > 0.0);
            }
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.parents.len()
    }

    /// The first node of the devices' level.
    pub(super) fn first_leaf(&self) -> usize {
        self.levels[LEVELS].start
    }

    /// The ids of all devices below a node.
    pub(super) fn devices_below(&self, node: usize) -> &[u32] {
        let (mut first, mut last) = (node, node);
        while first < self.first_leaf() {
            let (children, more) = (&self.children[first], &self.children[last]);
            if children.is_empty() || more.is_empty() {
                return &[];
            }
            (first, last) = (children.start, more.end - 1);
        }
        &self.leaves[first - self.first_leaf()..=last - self.first_leaf()]
    }

    /// The children that have weight.
    pub(super) fn weighted_children(&self, node: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        self.children[node].clone().filter(|&child| self.weighted[child] > 0)
    }
}

fn key(device: &Device) -> Key<'_> {
    (device.region, device.zone, &device.ip, device.id)
}

/// Whether two devices stand in the same node of a level.
fn same(left: &Device, right: &Device, level: usize) -> bool {
    left.region == right.region
        && (level < 1 || left.zone == right.zone)
        && (level < 2 || left.ip == right.ip)
        && (level < 3 || left.id == right.id)
}
