//! What is measured: a plan in TOML.
//!
//! Always holds: every number lies in its range, and an error names the key and what is allowed.

mod file;

use crate::inventory::PurchaseInventory;
use crate::model::cluster::DrivePower;
use file::{Kinds, PlanFile, ResolvedNodes};
use ring_builder::size;
use std::path::{Path, PathBuf};
use vocabulary::Fault;

/// The least share of a processor that a control group can have: 4 ms in a period of at most a second.
const LEAST_PROCESSORS: f64 = 0.005;
/// Half a second at each end is left out where processor time is looked at, so that a second has nothing of it.
const LEAST_SECONDS: u32 = 2;
/// Of a run, and of what it loads before.
const MOST_SECONDS: u32 = 3600;
/// Containers of the load.
pub const CONTAINERS: u32 = 4;
/// Of a drive's room, the share that objects of a load may take on average: some drives get more than others.
const FILL: f64 = 0.5;
/// Bytes that a piece takes beside its own.
pub const PIECE_ROOM: f64 = 8192.0;
/// Bytes of a limited drive: a file system with a journal, and a file that a control group's bounds do not matter to.
const ROOM: (f64, f64) = (64e6, 1e13);

/// What a node may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeLimits {
    /// Processors: 0.1 is a tenth of one.
    pub processors: f64,
    /// Bytes a second of its network in each direction; none where it is not limited.
    pub network: Option<f64>,
}

/// What is paid for.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPrices {
    /// Of a gateway.
    pub gateway: f64,
    /// Of a storage node with its drives.
    pub storage: f64,
    /// Of the balancer, where there is one.
    pub balancer: f64,
    /// What they are in.
    pub currency: String,
}

/// A plan.
#[derive(Debug, Clone, PartialEq)]
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
    pub reads: f64,
    /// How often each configuration is measured, with a cluster of its own each time.
    pub repeats: u32,
    /// How long each run counts requests.
    pub seconds: u32,
    /// How long it loads before it counts.
    pub warm_up: u32,
    /// Objects in each of four containers.
    pub objects: u32,
    /// Copies of everything.
    pub replicas: u32,
    /// Drives of each storage node: folders, or block devices where they are limited.
    pub drives: u32,
    /// Bytes of a drive that is a block device.
    pub drive_room: f64,
    /// Below it data lies while it is measured. A file system in memory leaves disks out of the figures.
    pub folder: PathBuf,
    /// Of the ports that servers take, the first.
    pub first_port: u16,
    /// Of one gateway.
    pub gateway: NodeLimits,
    /// Of one storage node: its account, container and object server together.
    pub storage: NodeLimits,
    /// What one drive bears; none where drives are not limited.
    pub drive: Option<DrivePower>,
    /// Bytes of bodies a second that the balancer passes on; none without one.
    pub balancer: Option<f64>,
    /// Prices, where the plan or its inventory says them.
    pub prices: Option<MeasuredPrices>,
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
    /// Reads a file's text; `inventory` reads the one that it names.
    pub fn read(text: &str, inventory: impl FnOnce(&Path) -> Result<PurchaseInventory, Fault>) -> Result<Self, Fault> {
        let file: PlanFile = toml::from_str(text).map_err(|error| Fault::caller(file::explained(text, &error)))?;
        let inventory = file.inventory.as_deref().map(inventory).transpose()?;
        let nodes = ResolvedNodes::of(&file, &Kinds(inventory.as_ref()))?;
        let room = size::bytes(&file.drive_room)
            .ok()
            .filter(|room| (ROOM.0..=ROOM.1).contains(room));
        let Some(drive_room) = room else {
            let why = format!("drive_room = {:?}: expected 64MB to 10TB", file.drive_room);
            return Err(Fault::caller(why));
        };
        let plan = Self {
            gateways: file.gateways,
            storage_nodes: file.storage_nodes,
            sizes: file.sizes,
            workers: file.workers,
            reads: file.reads,
            repeats: file.repeats,
            seconds: file.seconds,
            warm_up: file.warm_up,
            objects: file.objects,
            replicas: file.replicas,
            drives: file.drives,
            drive_room,
            folder: file.folder,
            first_port: file.first_port,
            gateway: nodes.gateway,
            storage: nodes.storage,
            drive: nodes.drive,
            balancer: nodes.balancer,
            prices: nodes.prices,
        };
        plan.check_numbers()?;
        plan.check_room()?;
        plan.check_ports()?;
        Ok(plan)
    }

    fn check_numbers(&self) -> Result<(), Fault> {
        let numbers = |name: &str, all: &[u32], most: u32| match all.iter().find(|one| !(1..=most).contains(*one)) {
            Some(one) => Err(Fault::caller(format!("{name}: {one}: expected 1 to {most}"))),
            None if all.is_empty() => Err(Fault::caller(format!("{name}: expected one number or more"))),
            None => once(name, all),
        };
        numbers("gateways", &self.gateways, 64)?;
        numbers("storage_nodes", &self.storage_nodes, 64)?;
        numbers("workers", &self.workers, 4096)?;
        numbers("repeats", &[self.repeats], 100)?;
        if !(LEAST_SECONDS..=MOST_SECONDS).contains(&self.seconds) {
            let why = format!("seconds: {}: expected {LEAST_SECONDS} to {MOST_SECONDS}", self.seconds);
            return Err(Fault::caller(why));
        }
        if self.warm_up > MOST_SECONDS {
            let why = format!("warm_up: {}: expected 0 to {MOST_SECONDS}", self.warm_up);
            return Err(Fault::caller(why));
        }
        numbers("objects", &[self.objects], 100_000)?;
        numbers("drives", &[self.drives], 64)?;
        let places = self.drives * least(&self.storage_nodes);
        if !(1..=places).contains(&self.replicas) {
            return Err(Fault::caller(format!(
                "replicas = {}: the smallest cluster of the plan has {places} drives: expected 1 to {places}, or more drives or \
                 storage_nodes",
                self.replicas
            )));
        }
        if self.sizes.is_empty() || self.sizes.iter().any(|size| !(1..=1 << 30).contains(size)) {
            return Err(Fault::caller("sizes: expected one or more of 1 to 1073741824 bytes"));
        }
        once("sizes", &self.sizes)?;
        // `bench` takes percents.
        if !(0.0..=1.0).contains(&self.reads) || (self.reads * 100.0 - self.read_percent()).abs() > 1e-9 {
            let why = format!("reads = {}: expected 0 to 1, in hundredths", self.reads);
            return Err(Fault::caller(why));
        }
        for (section, limits) in [("gateway", self.gateway), ("storage", self.storage)] {
            if !(LEAST_PROCESSORS..=1024.0).contains(&limits.processors) {
                let why = format!(
                    "{section}: processors = {}: expected {LEAST_PROCESSORS} to 1024",
                    limits.processors
                );
                return Err(Fault::caller(why));
            }
        }
        Ok(())
    }

    /// Objects of all sizes fit on the limited drives of the smallest cluster.
    fn check_room(&self) -> Result<(), Fault> {
        if self.drive.is_none() {
            return Ok(());
        }
        let drives = f64::from(self.drives * least(&self.storage_nodes));
        let bytes: f64 = self.sizes.iter().map(|size| *size as f64 + PIECE_ROOM).sum();
        let each = f64::from(self.objects * CONTAINERS) * f64::from(self.replicas) * bytes / drives;
        match each <= self.drive_room * FILL {
            true => Ok(()),
            false => Err(Fault::caller(format!(
                "drive_room = {:.0} MB: objects of all sizes take {:.0} MB of a drive: expected twice as much room, or fewer \
                 objects",
                self.drive_room / 1e6,
                each / 1e6
            ))),
        }
    }

    fn check_ports(&self) -> Result<(), Fault> {
        // One more for the balancer.
        let ports = self.gateways.iter().max().unwrap_or(&1) + 3 * self.storage_nodes.iter().max().unwrap_or(&1) + 1;
        match u32::from(self.first_port) >= 1024 && u32::from(self.first_port) + ports <= 65_536 {
            true => Ok(()),
            false => Err(Fault::caller(format!(
                "first_port = {}: expected 1024 to {}, so that there is room for {ports} ports",
                self.first_port,
                65_536 - ports
            ))),
        }
    }

    /// Of 100 requests, how many read.
    pub fn read_percent(&self) -> f64 {
        (self.reads * 100.0).round()
    }

    /// Whether nodes need networks of their own.
    pub fn has_networks(&self) -> bool {
        self.gateway.network.is_some() || self.storage.network.is_some() || self.balancer.is_some()
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

/// Runs of a number that stands there twice would be taken for each other.
fn once<T: Copy + PartialEq + std::fmt::Display>(name: &str, all: &[T]) -> Result<(), Fault> {
    let twice = (1..all.len()).find(|at| all[..*at].contains(&all[*at]));
    twice.map_or(Ok(()), |at| {
        let why = "stands there twice: expected each once; `repeats` says how often each is measured";
        Err(Fault::caller(format!("{name}: {} {why}", all[at])))
    })
}

fn least(all: &[u32]) -> u32 {
    all.iter().copied().min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::{MeasurePlan, NodeLimits};
    use crate::inventory::{PurchaseInventory, STARTER};
    use vocabulary::Fault;

    const PLAN: &str = "gateways = [1, 2]\nstorage_nodes = [1, 2, 4]\nsizes = [4096, 1048576]\nworkers = [32]\n\
                        [gateway]\nprocessors = 0.1\n[storage]\nprocessors = 0.05\n";

    fn read(text: &str) -> Result<MeasurePlan, Fault> {
        MeasurePlan::read(text, |_| PurchaseInventory::read(STARTER))
    }

    #[test]
    fn each_configuration_is_there_as_often_as_asked() {
        let plan = read(PLAN).unwrap();
        let clusters = plan.clusters();
        assert_eq!((clusters.len(), clusters[0], clusters[11]), (12, (1, 1, 1), (2, 4, 2)));
        let runs = plan.runs(2, 4, 2);
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[1].name, "g2-s4-1048576B-w32-r2");
    }

    #[test]
    fn kinds_of_an_inventory_are_limits_and_prices() {
        let text = PLAN
            .replace("[4096, 1048576]", "[1048576]")
            .replace(
                "[gateway]\nprocessors = 0.1",
                "[gateway]\nkind = \"gateway-16\"\nprocessors = 0.1",
            )
            .replace(
                "processors = 0.05",
                "kind = \"storage-12\"\ndrive = \"disk-16t\"\noperations = 90",
            );
        let several = format!("inventory = \"x.toml\"\n{text}");
        assert!(
            read(&several)
                .unwrap_err()
                .what
                .contains("has several balancers: name one")
        );
        let plan = read(&format!("{several}\n[balancer]\nkind = \"balancer-10g\"\n")).unwrap();
        let network = Some(25e9 / 8.0);
        assert_eq!((plan.gateway.processors, plan.gateway.network), (0.1, network));
        assert_eq!(
            plan.storage,
            NodeLimits {
                processors: 16.0,
                network
            }
        );
        let drive = plan.drive.unwrap();
        // What the plan says itself goes before what the kind has.
        assert_eq!((drive.transfer, drive.operations), (200e6, 90.0));
        assert_eq!(plan.balancer, Some(10e9 / 8.0));
        for (to, why) in [
            (
                "workers = [32]\ndrives = 15",
                "drives = 15: \"storage-12\" has 14 bays: expected 14",
            ),
            (
                "workers = [32]\nreplicas = 7",
                "replicas = 7: the smallest cluster of the plan has 3 drives",
            ),
        ] {
            let text = several.replace("workers = [32]", to);
            let found = read(&format!("{text}\n[balancer]\nkind = \"balancer-10g\"\n"));
            assert!(found.as_ref().unwrap_err().what.contains(why), "{found:?}");
        }
        let scarce = |_: &std::path::Path| {
            let most = "name = \"storage-12\"\nmost = 3";
            PurchaseInventory::read(&STARTER.replace("name = \"storage-12\"", most))
        };
        let found = MeasurePlan::read(&format!("{several}\n[balancer]\nkind = \"balancer-10g\"\n"), scarce);
        let why = "storage_nodes: 4: the inventory has most = 3 of \"storage-12\": expected 3";
        assert!(found.as_ref().unwrap_err().what.contains(why), "{found:?}");
        let prices = plan.prices.unwrap();
        assert_eq!(
            (prices.gateway, prices.storage, prices.balancer),
            (5000.0, 6000.0 + 3.0 * 300.0, 4000.0)
        );
        assert_eq!(read(PLAN).unwrap().drive, None);
        assert!(!read(PLAN).unwrap().has_networks());
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
                "workers = [32]\nreads = 0.999",
                "reads = 0.999: expected 0 to 1, in hundredths",
            ),
            (
                "workers = [32]",
                "workers = [32]\nseconds = 1",
                "seconds: 1: expected 2 to 3600",
            ),
            (
                "workers = [32]",
                "workers = [32]\nwarm_up = 4294967295",
                "warm_up: 4294967295: expected 0 to 3600",
            ),
            (
                "workers = [32]",
                "workers = [32]\ndrives = 2",
                "replicas = 3: the smallest cluster of the plan has 2 drives: expected 1 to 2",
            ),
            (
                "gateways = [1, 2]",
                "gateways = [2, 2]",
                "gateways: 2 stands there twice",
            ),
            ("[4096, 1048576]", "[4096, 4096]", "sizes: 4096 stands there twice"),
            (
                "workers = [32]",
                "workers = [32]\nfirst_port = 65530",
                "room for 15 ports",
            ),
            ("processors = 0.1", "processors = 0.001", "gateway: processors = 0.001"),
            ("workers = [32]", "wrokers = [32]", "wrokers"),
            (
                "workers = [32]",
                "[[server]]\nname = \"x\"",
                "this is an inventory, and a plan was expected, which names it by inventory = \"FILE\"",
            ),
            (
                "processors = 0.05",
                "kind = \"disk\"",
                "storage: kind = \"disk\": the plan names no inventory",
            ),
            (
                "processors = 0.05",
                "network = \"1Gbit/s\"",
                "storage: expected processors",
            ),
            (
                "processors = 0.05",
                "processors = 1\nnetwork = \"25Gb/s\"",
                "storage: network = \"25Gb/s\": write",
            ),
            (
                "processors = 0.05",
                "processors = 1\ntransfer = \"5MB/s\"",
                "both transfer and operations",
            ),
            (
                "processors = 0.05",
                "processors = 1\noperations = 0.0",
                "storage: operations = 0: expected 1",
            ),
            (
                "processors = 0.05",
                "processors = 1\n[balancer]",
                "balancer: expected throughput, or",
            ),
            (
                "processors = 0.05",
                "processors = 1\n[prices]\ngateway = -1\nstorage = 2",
                "prices: expected prices of 0",
            ),
            (
                "workers = [32]",
                "workers = [32]\ndrive_room = \"1kB\"",
                "drive_room = \"1kB\"",
            ),
            (
                "[4096, 1048576]",
                "[10000000]\ndrives = 3\n",
                "objects of all sizes take 1601 MB",
            ),
        ] {
            let mut text = PLAN.replace(from, to);
            if to.starts_with("[10000000]") {
                text += "transfer = \"5MB/s\"\noperations = 9\n";
            }
            let found = read(&text).unwrap_err().what;
            assert!(found.contains(why), "{found}");
        }
    }
}
