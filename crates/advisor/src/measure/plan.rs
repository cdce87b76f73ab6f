//! What is measured: a plan in TOML.
//!
//! Always holds: every number lies in its range, and an error names the key and what is allowed.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use vocabulary::Fault;

/// The least share of a processor that a control group can have: 4 ms in a period of at most a second.
const LEAST_PROCESSORS: f64 = 0.005;
/// Half a second at each end is left out where processor time is looked at, so that a second has nothing of it.
const LEAST_SECONDS: u32 = 2;
/// Containers of the load.
pub const CONTAINERS: u32 = 4;

/// What a kind of node may use.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeLimits {
    /// Processors: 0.1 is a tenth of one.
    pub processors: f64,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurePlan {
    /// Numbers of gateways.
    pub gateways: Vec<u32>,
    /// Numbers of storage nodes; each is measured with each number of gateways.
    pub storage_nodes: Vec<u32>,
    /// Bytes of objects; each is measured with each cluster.
    pub sizes: Vec<u64>,
    /// Numbers of requests under way at a time; each is measured with each size.
    pub workers: Vec<u32>,
    /// Of all requests, the share that reads, from 0 to 1; the rest writes.
    #[serde(default = "all")]
    pub reads: f64,
    /// How often each configuration is measured, with a cluster of its own each time.
    #[serde(default = "twice")]
    pub repeats: u32,
    /// How long each run counts requests.
    #[serde(default = "ten")]
    pub seconds: u32,
    /// How long it loads before it counts.
    #[serde(default = "two")]
    pub warm_up: u32,
    /// Objects in each of four containers.
    #[serde(default = "forty")]
    pub objects: u32,
    /// Copies of everything.
    #[serde(default = "three")]
    pub replicas: u32,
    /// Drives (folders) of each storage node.
    #[serde(default = "three")]
    pub drives: u32,
    /// Below it data lies while it is measured. A file system in memory leaves disks out of the figures.
    #[serde(default = "shared_memory")]
    pub folder: PathBuf,
    /// Of the ports of 127.0.0.1 that servers take, the first.
    #[serde(default = "first_port")]
    pub first_port: u16,
    /// Of one gateway.
    pub gateway: NodeLimits,
    /// Of one storage node: its account, container and object server together.
    pub storage: NodeLimits,
}

fn all() -> f64 {
    1.0
}

fn twice() -> u32 {
    2
}

fn ten() -> u32 {
    10
}

fn two() -> u32 {
    2
}

fn three() -> u32 {
    3
}

fn forty() -> u32 {
    40
}

fn shared_memory() -> PathBuf {
    Path::new("/dev/shm").to_owned()
}

fn first_port() -> u16 {
    26_200
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Of its manifest: `g1-s2-4096B-w32-r1`.
    pub name: String,
    /// Gateways.
    pub gateways: u32,
    /// Storage nodes.
    pub storage_nodes: u32,
    /// Bytes of an object.
    pub size: u64,
    /// Requests under way at a time.
    pub workers: u32,
}

impl MeasurePlan {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let plan: Self = toml::from_str(text).map_err(|error| Fault::caller(error.to_string().trim_end()))?;
        let numbers = |name: &str, all: &[u32], most: u32| match all.iter().find(|one| !(1..=most).contains(*one)) {
            Some(one) => Err(Fault::caller(format!("{name}: {one}: expected 1 to {most}"))),
            None if all.is_empty() => Err(Fault::caller(format!("{name}: expected one number or more"))),
            None => Ok(()),
        };
        numbers("gateways", &plan.gateways, 64)?;
        numbers("storage_nodes", &plan.storage_nodes, 64)?;
        numbers("workers", &plan.workers, 4096)?;
        numbers("repeats", &[plan.repeats], 100)?;
        numbers("seconds", &[plan.seconds], 3600)?;
        if plan.seconds < LEAST_SECONDS {
            let why = format!("seconds: {}: expected {LEAST_SECONDS} to 3600", plan.seconds);
            return Err(Fault::caller(why));
        }
        numbers("objects", &[plan.objects], 100_000)?;
        numbers("drives", &[plan.drives], 64)?;
        numbers("replicas", &[plan.replicas], plan.drives * least(&plan.storage_nodes))?;
        if plan.sizes.is_empty() || plan.sizes.iter().any(|size| !(1..=1 << 30).contains(size)) {
            return Err(Fault::caller("sizes: expected one or more of 1 to 1073741824 bytes"));
        }
        if !(0.0..=1.0).contains(&plan.reads) {
            return Err(Fault::caller(format!("reads = {}: expected 0 to 1", plan.reads)));
        }
        for (section, limits) in [("gateway", plan.gateway), ("storage", plan.storage)] {
            if !(LEAST_PROCESSORS..=1024.0).contains(&limits.processors) {
                let why = format!(
                    "{section}: processors = {}: expected {LEAST_PROCESSORS} to 1024",
                    limits.processors
                );
                return Err(Fault::caller(why));
            }
        }
        let ports = plan.gateways.iter().max().unwrap_or(&1) + 3 * plan.storage_nodes.iter().max().unwrap_or(&1);
        match u32::from(plan.first_port) >= 1024 && u32::from(plan.first_port) + ports <= 65_536 {
            true => Ok(plan),
            false => Err(Fault::caller(format!(
                "first_port = {}: expected 1024 to {}, so that there is room for {ports} ports",
                plan.first_port,
                65_536 - ports
            ))),
        }
    }

    /// Gateways, storage nodes and which repeat it is. Repeats are far apart in time, so that they show what the
    /// machine does meanwhile.
    pub fn clusters(&self) -> Vec<(u32, u32, u32)> {
        let repeats = (1..=self.repeats).flat_map(|repeat| self.gateways.iter().map(move |count| (*count, repeat)));
        let with_nodes = |(gateways, repeat)| self.storage_nodes.iter().map(move |nodes| (gateways, *nodes, repeat));
        repeats.flat_map(with_nodes).collect()
    }

    /// The runs of a cluster.
    pub fn runs(&self, gateways: u32, storage_nodes: u32, repeat: u32) -> Vec<PlannedRun> {
        let pairs = self
            .sizes
            .iter()
            .flat_map(|size| self.workers.iter().map(move |count| (*size, *count)));
        let run = |(size, workers)| PlannedRun {
            name: format!("g{gateways}-s{storage_nodes}-{size}B-w{workers}-r{repeat}"),
            gateways,
            storage_nodes,
            size,
            workers,
        };
        pairs.map(run).collect()
    }
}

fn least(all: &[u32]) -> u32 {
    all.iter().copied().min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::MeasurePlan;

    const PLAN: &str = "gateways = [1, 2]\nstorage_nodes = [1, 2, 4]\nsizes = [4096, 1048576]\nworkers = [32]\n\
                        [gateway]\nprocessors = 0.1\n[storage]\nprocessors = 0.05\n";

    #[test]
    fn each_configuration_is_there_as_often_as_asked() {
        let plan = MeasurePlan::read(PLAN).unwrap();
        let clusters = plan.clusters();
        assert_eq!((clusters.len(), clusters[0], clusters[11]), (12, (1, 1, 1), (2, 4, 2)));
        let runs = plan.runs(2, 4, 2);
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[1].name, "g2-s4-1048576B-w32-r2");
    }

    #[test]
    fn a_mistake_is_named() {
        for (from, to, why) in [
            (
                "gateways = [1, 2]",
                "gateways = []",
                "gateways: expected one number or more",
            ),
            ("[1, 2, 4]", "[0]", "storage_nodes: 0: expected 1 to 64"),
            ("[4096, 1048576]", "[0]", "sizes: expected"),
            (
                "workers = [32]",
                "workers = [32]\nreads = 2.0",
                "reads = 2: expected 0 to 1",
            ),
            (
                "workers = [32]",
                "workers = [32]\nseconds = 1",
                "seconds: 1: expected 2 to 3600",
            ),
            (
                "workers = [32]",
                "workers = [32]\ndrives = 2",
                "replicas: 3: expected 1 to 2",
            ),
            (
                "workers = [32]",
                "workers = [32]\nfirst_port = 65530",
                "room for 14 ports",
            ),
            ("processors = 0.1", "processors = 0.001", "gateway: processors = 0.001"),
            ("workers = [32]", "wrokers = [32]", "wrokers"),
        ] {
            let text = PLAN.replace(from, to);
            let found = MeasurePlan::read(&text).unwrap_err().what;
            assert!(found.contains(why), "{found}");
        }
    }
}
