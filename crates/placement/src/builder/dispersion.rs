//! How far apart the replicas of partitions are: the graph that OpenStack keeps in the builder
//! file, the one number made of it, and the report.
//!
//! The graph says for each region, zone, server and device how many partitions have 0, 1, 2 …
//! replicas there. The number is a percentage of all replicas: those that a partition has too many
//! of on its worst level. Where the replica count is a fraction, OpenStack looks only at the
//! partitions that have the extra replica, and so does this: the numbers are compared.

use pickle::Value;

use crate::device::Device;
use crate::error::BuilderError;

use super::plan::Plan;
use super::tree::{LEVELS, NOWHERE, TierTree};
use super::{Entry, RingBuilder};

/// A region, zone, server or device, and how its partitions are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct TierRow {
    /// As OpenStack writes it: `r1`, `r1z2`, `r1z2-10.0.0.1`, `r1z2-10.0.0.1/sda`.
    pub name: String,
    /// The most replicas of a partition that should be here.
    pub max_replicas: u32,
    /// Replicas of partitions here.
    pub placed_parts: u64,
    /// Percent of them that are too many.
    pub dispersion: f64,
    /// How many partitions have 0, 1, 2 … replicas here.
    pub replicas: Vec<u64>,
}

/// What `dispersion` prints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DispersionReport {
    /// The largest percentage of a row.
    pub max_dispersion: f64,
    /// The row that has it.
    pub worst_tier: Option<String>,
    /// All rows, by region, zone, address and id.
    pub rows: Vec<TierRow>,
}

/// A place as the graph names it: region, then zone, address and device id as far as they go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Tier {
    region: i64,
    zone: Option<i64>,
    ip: Option<String>,
    id: Option<u32>,
}

impl RingBuilder {
    /// The dispersion of the regions, zones, servers and devices whose name `wanted` accepts, as of
    /// the last rebalance.
    ///
    /// # Errors
    /// When no device has weight, or fewer than there are replicas.
    pub fn dispersion_report(&self, wanted: impl Fn(&str) -> bool) -> Result<DispersionReport, BuilderError> {
        let tree = self.tree();
        let plan = Plan::new(&tree, self.replicas)?;
        let mut report = DispersionReport::default();
        for (tier, counts) in self.graph_rows() {
            let name = self.tier_name(&tier);
            if !wanted(&name) {
                continue;
            }
            let node = self.tier_node(&tree, &tier);
            let max_replicas = node.map_or(0, |node| plan.most[node]);
            let row = TierRow::new(name, max_replicas, counts);
            if row.dispersion > report.max_dispersion {
                report.max_dispersion = row.dispersion;
                report.worst_tier = Some(row.name.clone());
            }
            report.rows.push(row);
        }
        Ok(report)
    }

    /// Computes graph and dispersion anew from the table, which raises the version.
    ///
    /// # Errors
    /// When no device has weight, or fewer than there are replicas.
    pub fn recalculate_dispersion(&mut self) -> Result<(), BuilderError> {
        let tree = self.tree();
        let plan = Plan::new(&tree, self.replicas)?;
        let (graph, dispersion) = spread(self, &tree, &plan);
        self.dispersion = dispersion;
        self.dispersion_graph = graph_value(self, &tree, graph);
        self.version += 1;
        Ok(())
    }

    /// The least overload with which replicas are as far apart as they can be.
    ///
    /// # Errors
    /// When no device has weight, or fewer than there are replicas.
    pub fn required_overload(&self) -> Result<f64, BuilderError> {
        Ok(Plan::new(&self.tree(), self.replicas)?.required_overload)
    }

    pub(super) fn tree(&self) -> TierTree {
        TierTree::new(self.devices(), self.devices.len())
    }

    /// The graph of the builder file, sorted.
    fn graph_rows(&self) -> Vec<(Tier, Vec<u64>)> {
        let entries = self.dispersion_graph.entries().unwrap_or_default().iter();
        let row = |(tier, counts): &(Value, Value)| {
            let counts = counts.items()?.iter();
            let counts: Option<Vec<u64>> = counts.map(|it| u64::try_from(it.int()?).ok()).collect();
            Some((Tier::read(tier)?, counts?))
        };
        let mut rows: Vec<(Tier, Vec<u64>)> = entries.filter_map(row).collect();
        rows.sort();
        rows
    }

    fn tier_name(&self, tier: &Tier) -> String {
        let mut name = format!("r{}", tier.region);
        if let Some(zone) = tier.zone {
            name += &format!("z{zone}");
        }
        if let Some(ip) = &tier.ip {
            name += &format!("-{ip}");
        }
        match tier.id {
            None => name,
            Some(id) => match self.device(id) {
                Some(device) => name + "/" + &device.device,
                None => name + "/IDd" + &id.to_string(),
            },
        }
    }

    /// The node of a place, if devices stand there now.
    fn tier_node(&self, tree: &TierTree, tier: &Tier) -> Option<usize> {
        let level = tier.level();
        let stands = |device: &&Device| {
            i64::from(device.region) == tier.region
                && tier.zone.is_none_or(|zone| i64::from(device.zone) == zone)
                && tier.ip.as_ref().is_none_or(|ip| device.ip == *ip)
                && tier.id.is_none_or(|id| device.id == id)
        };
        let mut devices = match tier.id {
            Some(id) => vec![self.device(id)?],
            None => Vec::new(),
        };
        devices.extend(self.devices().filter(|_| tier.id.is_none()).find(stands));
        let device = devices.into_iter().find(stands)?;
        Some(tree.places[device.id as usize][level] as usize)
    }
}

impl Tier {
    fn read(value: &Value) -> Option<Tier> {
        let members = value.items()?;
        let number = |place: usize| members.get(place).map(Value::int);
        Some(Tier {
            region: members.first()?.int()?,
            zone: number(1).unwrap_or_default(),
            ip: members.get(2).and_then(Value::text).map(str::to_owned),
            id: number(3).flatten().and_then(|id| u32::try_from(id).ok()),
        })
    }

    fn level(&self) -> usize {
        let deeper = [self.zone.is_some(), self.ip.is_some(), self.id.is_some()];
        deeper.into_iter().filter(|it| *it).count()
    }
}

impl TierRow {
    fn new(name: String, max_replicas: u32, replicas: Vec<u64>) -> TierRow {
        let placed_parts: u64 = (0u64..).zip(&replicas).map(|(count, parts)| count * parts).sum();
        let over = (0u64..).zip(&replicas);
        let over: u64 = over
            .map(|(count, parts)| count.saturating_sub(u64::from(max_replicas)) * parts)
            .sum();
        let dispersion = match placed_parts {
            0 => 0.0,
            placed => 100.0 * over as f64 / placed as f64,
        };
        TierRow {
            name,
            max_replicas,
            placed_parts,
            dispersion,
            replicas,
        }
    }
}

/// For each node how many partitions have 0, 1, 2 … replicas there, flat; and the dispersion.
pub(super) fn spread(builder: &RingBuilder, tree: &TierTree, plan: &Plan) -> (Vec<u32>, f64) {
    let rows = &builder.rows;
    let width = rows.len() + 1;
    let partitions = builder.partitions();
    let mut graph = vec![0u32; tree.nodes() * width];
    // OpenStack judges only partitions that have a replica in the last row.
    let judged = rows.last().map_or(0, Vec::len);
    let mut here = vec![0u16; tree.nodes()];
    let mut over = 0u64;
    for partition in 0..partitions {
        let places = || {
            rows.iter()
                .filter_map(|row| Some(&tree.places[*row.get(partition)? as usize]))
        };
        let mut excess = [0u32; LEVELS];
        for place in places() {
            for (excess, &node) in excess.iter_mut().zip(place).filter(|it| *it.1 != NOWHERE) {
                let node = node as usize;
                here[node] += 1;
                *excess += u32::from(u32::from(here[node]) > plan.most[node]);
            }
        }
        if partition < judged {
            over += u64::from(excess.into_iter().max().unwrap_or(0));
        }
        for &node in places().flatten().filter(|node| **node != NOWHERE) {
            let node = node as usize;
            if here[node] > 0 {
                graph[node * width + usize::from(here[node])] += 1;
                here[node] = 0;
            }
        }
    }
    let cells: usize = rows.iter().map(Vec::len).sum();
    (graph, 100.0 * over as f64 / cells.max(1) as f64)
}

/// The graph as the builder file has it: a place without partitions is not in it.
pub(super) fn graph_value(builder: &RingBuilder, tree: &TierTree, graph: Vec<u32>) -> Value {
    let width = builder.rows.len() + 1;
    let partitions = builder.partitions() as i64;
    let mut entries = Vec::new();
    let mut seen = vec![false; tree.nodes()];
    for Entry { device, .. } in builder.devices.iter().flatten() {
        for (level, &node) in tree.places[device.id as usize].iter().enumerate() {
            let counts = &graph[node as usize * width..][..width];
            let placed: i64 = counts.iter().map(|&it| i64::from(it)).sum();
            if placed == 0 || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            let counts = counts[1..].iter().map(|&it| Value::Int(i64::from(it)));
            let counts = std::iter::once(Value::Int(partitions - placed)).chain(counts);
            entries.push((tier_value(device, level), Value::List(counts.collect())));
        }
    }
    Value::Dict(entries)
}

/// A place as Swift names it: a tuple that grows by a member per level.
fn tier_value(device: &Device, level: usize) -> Value {
    let mut members = vec![Value::Int(i64::from(device.region)), Value::Int(i64::from(device.zone))];
    if level > 1 {
        members.push(Value::str(&device.ip));
        members.push(Value::Int(i64::from(device.id)));
    }
    members.truncate(level + 1);
    Value::Tuple(members)
}
