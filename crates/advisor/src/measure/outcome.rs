//! What a run says: whether its limits were what limited it, and what stood for what.
//!
//! Always holds: a run that something else limited is not taken for one of its cluster; a result names each limit, and
//! what had none.

use super::limits::LimitedDriveWork;
use super::load::{BusyShares, LoadedRun};
use super::plan::{CONTAINERS, MeasurePlan};
use crate::fit;
use crate::fit::device_limits::DeviceLimits;
use crate::model::estimate::readable;
use std::path::Path;
use vocabulary::Fault;

/// Of what a closed loop must use at least, the share below which something else was the limit.
const LIMITED: f64 = 0.8;
/// Of the bytes of bodies that are read, the share that comes from limited drives at least: workers that read an object
/// at the same time have it from the drive once.
const FROM_DRIVES: f64 = 0.5;

impl LoadedRun {
    /// Why the limits that were set were not what limited the run; none where they were, or where there were none.
    ///
    /// With W requests under way the busiest of K servers (gateways and storage nodes, limited drives and networks) is
    /// busy for W / (W + K - 1) of its time at least, as all others' times are at most equal (balanced job bounds: J.
    /// Zahorjan and others, 1982). A run in which it was much less was limited by something else, such as other
    /// programs on this machine.
    pub fn unlimited(&self, plan: &MeasurePlan) -> Option<String> {
        let busy = self.busy.as_ref()?;
        let count = |one: u32| f64::from(one);
        let (gateways, nodes) = (count(self.run.gateways), count(self.run.storage_nodes));
        let gateways_used = busy.processors.gateways / (gateways * plan.gateway.processors);
        let nodes_used = busy.processors.storage / (nodes * plan.storage.processors);
        let devices_used = busy.devices.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let only_if = |is_there: bool, servers: f64| if is_there { servers } else { 0.0 };
        let servers = gateways
            + nodes
            + only_if(plan.gateway.network.is_some(), gateways)
            + only_if(plan.storage.network.is_some(), nodes)
            + only_if(plan.drive.is_some(), nodes * count(plan.drives))
            + only_if(plan.balancer.is_some(), 1.0);
        let workers = count(self.run.workers);
        let least = LIMITED * workers / (workers + servers - 1.0);
        (gateways_used.max(nodes_used).max(devices_used) < least).then(|| {
            format!(
                "{}: gateways used {:.0} % and storage nodes {:.0} % of their limits{}, so that something else limited it: \
                 measure with more workers or lower limits, on a machine that does nothing else",
                self.run.name,
                gateways_used * 100.0,
                nodes_used * 100.0,
                self.devices(", ")
            )
        })
    }

    /// Why reads were none of the limited drives; none where they were, or where there are no such drives.
    pub fn from_memory(&self, plan: &MeasurePlan) -> Option<String> {
        let busy = self.busy.as_ref().filter(|_| plan.drive.is_some())?;
        let asked = self.measured.0 * plan.reads * self.run.size as f64;
        (busy.drives.read < FROM_DRIVES * asked).then(|| {
            format!(
                "{}: its drives read {} MB/s, and the load {} MB/s of bodies: objects came from memory, so that limits of \
                 drives did not hold: expected more objects for {} workers, and a program that keeps nothing where \
                 keep_cache_size = 0",
                self.run.name,
                readable(busy.drives.read / 1e6),
                readable(asked / 1e6),
                self.run.workers
            )
        })
    }

    /// How busy the busiest of each kind of limited device was.
    fn devices(&self, before: &str) -> String {
        let all = self.busy.iter().flat_map(|busy| &busy.devices);
        let shown = all.map(|(resource, share)| format!("{before}{} {:.0} %", resource.name(), share * 100.0));
        shown.collect()
    }

    /// A line about it.
    pub fn line(&self) -> String {
        let (rate, p99) = self.measured;
        let busy = self.busy.as_ref().map_or(String::new(), |busy| {
            let each = |seconds: f64| readable(seconds / rate * 1e3);
            format!(
                ", processor time of gateways {} ms and of storage {} ms each{}",
                each(busy.processors.gateways),
                each(busy.processors.storage),
                self.devices(", ")
            )
        });
        format!(
            "{}: {} requests/s, p99 {} ms{busy}",
            self.run.name,
            readable(rate),
            readable(p99 * 1e3)
        )
    }

    /// What was loaded, for `martlet advise fit`.
    pub fn cluster(&self, plan: &MeasurePlan) -> String {
        let (gateways, nodes) = (self.run.gateways, self.run.storage_nodes);
        let (of_gateway, of_storage) = (plan.gateway.processors, plan.storage.processors);
        let mut text = format!(
            "gateways = {gateways}\nstorage_nodes = {nodes}\nwhat = \"{}\"\npieces = {}\n",
            stood_for(plan, self.busy.is_some()),
            plan.replicas
        );
        if let Some(busy) = &self.busy {
            text += &format!(
                "gateway_processors = {of_gateway}\nstorage_processors = {of_storage}\ngateways_busy = {:.6}\n\
                 storage_busy = {:.6}\n{}",
                busy.processors.gateways,
                busy.processors.storage,
                drive_operations(plan, busy) + &self.device_limits(plan)
            );
        }
        text
    }

    /// The section of what is limited beside processors.
    fn device_limits(&self, plan: &MeasurePlan) -> String {
        match device_limits(plan).text() {
            text if text.is_empty() => text,
            text => format!(
                "\n# How busy the busiest was: {}\n[limits]\n{text}",
                self.devices(", ").trim_start_matches(", ")
            ),
        }
    }
}

/// What is limited beside processors.
pub fn device_limits(plan: &MeasurePlan) -> DeviceLimits {
    DeviceLimits {
        drives: plan.drive.map(|_| plan.drives),
        drive_transfer: plan.drive.map(|drive| drive.transfer),
        drive_operations: plan.drive.map(|drive| drive.operations),
        gateway_network: plan.gateway.network,
        storage_network: plan.storage.network,
        balancer: plan.balancer,
    }
}

/// Operations of limited drives, for the rates that are made of them.
fn drive_operations(plan: &MeasurePlan, busy: &BusyShares) -> String {
    let LimitedDriveWork { reads, writes, .. } = busy.drives;
    match plan.drive {
        Some(_) => format!("drive_reads = {reads:.6}\ndrive_writes = {writes:.6}\n"),
        None => String::new(),
    }
}

/// What was measured by a plan, with limits or without, in words: two plans whose runs may not stand for each other
/// differ in them.
pub fn stood_for(plan: &MeasurePlan, is_limited: bool) -> String {
    let limits = match is_limited {
        true => format!(
            "control groups limit each gateway to {} and each storage node to {} processors; {}",
            plan.gateway.processors,
            plan.storage.processors,
            devices(plan)
        ),
        false => format!(
            "nothing limits their processors; neither disks (data lie in {}) nor networks are limited",
            shown(&plan.folder)
        ),
    };
    let has_drives = is_limited && plan.drive.is_some();
    format!(
        "processes of one machine: {limits}; {} replicas on {} {} of each node; {} objects, {} % reads",
        plan.replicas,
        plan.drives,
        if has_drives { "drives" } else { "folders" },
        plan.objects * CONTAINERS,
        plan.read_percent()
    )
}

/// An error where a run that is there was made by another plan, or with limits where there are none now.
pub fn check_same(text: &str, plan: &MeasurePlan, is_limited: bool) -> Result<(), Fault> {
    let (known, wanted) = (fit::runs::cluster(text)?.what, stood_for(plan, is_limited));
    match known == wanted {
        true => Ok(()),
        false => Err(Fault::caller(format!(
            "it was measured by another plan: name another folder by --output, or remove its runs. It has {known:?}, and \
             the plan {wanted:?}"
        ))),
    }
}

/// A path as it may stand in a text of a TOML file.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace(['"', '\\'], "?").replace(char::is_control, "?")
}

/// What stands for drives, networks and a balancer.
fn devices(plan: &MeasurePlan) -> String {
    let megabytes = |bytes: f64| format!("{} MB/s", readable(bytes / 1e6));
    let folder = shown(&plan.folder);
    let drives = match plan.drive {
        Some(drive) => format!(
            "a loop device with ext4 (its file lies in {folder}), limited to {} and {} operations a second of reads and as \
             much of writes, stands for each drive",
            megabytes(drive.transfer),
            readable(drive.operations)
        ),
        None => format!("disks are not limited (data lie in {folder})"),
    };
    let network = |what: &str, limit: Option<f64>| match limit {
        Some(limit) => format!("{} for each {what}", megabytes(limit)),
        None => format!("no limit for a {what}"),
    };
    let networks = match plan.has_networks() {
        true => format!(
            "network namespaces with token buckets stand for networks ({}, {}, in each direction)",
            network("gateway", plan.gateway.network),
            network("storage node", plan.storage.network)
        ),
        false => "networks are not limited".to_owned(),
    };
    let balancer = match plan.balancer {
        Some(throughput) => format!(
            "haproxy, limited to {} of bodies in each direction, stands before the gateways",
            megabytes(throughput)
        ),
        None => "no balancer".to_owned(),
    };
    format!("{drives}; {networks}; {balancer}")
}

#[cfg(test)]
mod tests {
    use super::{check_same, stood_for};
    use crate::fit::runs::cluster;
    use crate::inventory::PurchaseInventory;
    use crate::measure::cluster::ProcessorUse;
    use crate::measure::limits::LimitedDriveWork;
    use crate::measure::load::{BusyShares, Draft, LoadedRun};
    use crate::measure::plan::MeasurePlan;
    use crate::model::limits::Resource;
    use std::path::PathBuf;
    use world::World;

    fn read(text: &str) -> MeasurePlan {
        MeasurePlan::read(text, |_| PurchaseInventory::read("")).unwrap()
    }

    #[test]
    fn a_run_that_something_else_limited_is_known() {
        let plan = "gateways = [1]\nstorage_nodes = [4]\nsizes = [4096]\nworkers = [64]\n[gateway]\nprocessors = 0.2\n\
                    [storage]\nprocessors = 0.1\n";
        let plan = read(plan);
        let run = |gateways, storage| LoadedRun {
            run: plan.runs(1, 4, 1).remove(0),
            manifest: Draft {
                world: World::real(),
                path: PathBuf::from("/nowhere"),
            },
            measured: (1000.0, 0.1),
            busy: Some(BusyShares {
                processors: ProcessorUse { gateways, storage },
                devices: vec![],
                drives: LimitedDriveWork::default(),
            }),
        };
        assert_eq!(run(0.19, 0.21).unlimited(&plan), None);
        assert_eq!(run(0.06, 0.38).unlimited(&plan), None);
        let why = run(0.0616, 0.1006).unlimited(&plan).unwrap();
        assert!(why.contains("gateways used 31 % and storage nodes 25 %"), "{why}");
    }

    #[test]
    fn a_run_of_another_plan_is_not_taken_for_one_of_this() {
        let text = "gateways = [1]\nstorage_nodes = [4]\nsizes = [98304]\nworkers = [64]\n[gateway]\nprocessors = 0.2\n\
                    [storage]\nprocessors = 0.1\ntransfer = \"20MB/s\"\noperations = 100\n";
        let plan = read(text);
        let there = |is_limited| {
            format!(
                "gateways = 1\nstorage_nodes = 4\nwhat = \"{}\"\n",
                stood_for(&plan, is_limited)
            )
        };
        assert!(check_same(&there(true), &plan, true).is_ok() && check_same(&there(false), &plan, false).is_ok());
        assert!(check_same(&there(false), &plan, true).is_err());
        for (from, to) in [
            ("20MB/s", "21MB/s"),
            ("= 100", "= 101"),
            ("= 0.1", "= 0.11"),
            ("= [64]\n", "= [64]\nreads = 0.9\n"),
            ("= [64]\n", "= [64]\nobjects = 41\n"),
            ("= [64]\n", "= [64]\ndrives = 2\n"),
            ("[storage]", "network = \"1Gbit/s\"\n[storage]"),
        ] {
            let why = check_same(&there(true), &read(&text.replacen(from, to, 1)), true)
                .unwrap_err()
                .what;
            assert!(why.contains("measured by another plan"), "{from}: {why}");
        }
    }

    #[test]
    fn a_device_at_its_limit_is_what_limits_and_each_limit_is_named() {
        let plan = read(
            "gateways = [1]\nstorage_nodes = [2]\nsizes = [98304]\nworkers = [16]\ndrives = 1\nreplicas = 2\n[gateway]\n\
             processors = 0.5\nnetwork = \"40Mbit/s\"\n[storage]\nprocessors = 0.4\ntransfer = \"20MB/s\"\noperations = \
             100\n[balancer]\nthroughput = \"30MB/s\"\n",
        );
        let run = |drives: f64| LoadedRun {
            run: plan.runs(1, 2, 1).remove(0),
            manifest: Draft {
                world: World::real(),
                path: PathBuf::from("/nowhere"),
            },
            measured: (190.0, 0.1),
            busy: Some(BusyShares {
                processors: ProcessorUse {
                    gateways: 0.02,
                    storage: 0.05,
                },
                devices: vec![(Resource::Drives, drives), (Resource::GatewayNetwork, 0.1)],
                drives: LimitedDriveWork {
                    read: drives * 10e6,
                    reads: drives * 100.0,
                    ..LimitedDriveWork::default()
                },
            }),
        };
        // 16 of 16 + 7 - 1, and four fifths of that.
        assert_eq!(run(0.59).unlimited(&plan), None);
        let why = run(0.57).unlimited(&plan).unwrap();
        assert!(
            why.contains("storage nodes 6 % of their limits, drives of objects 57 %, gateways' networks 10 %"),
            "{why}"
        );
        // 190 objects of 96 KiB are 18.7 MB: half of that comes from the drives at least.
        assert_eq!(run(0.95).from_memory(&plan), None);
        let why = run(0.9).from_memory(&plan).unwrap();
        assert!(
            why.contains("its drives read 9.00 MB/s, and the load 18.7 MB/s of bodies"),
            "{why}"
        );
        let text = run(0.9).cluster(&plan);
        assert_eq!(cluster(&text).unwrap().drive_reads, Some(90.0), "{text}");
        for part in [
            "limited to 20.0 MB/s and 100 operations a second",
            "(5.00 MB/s for each gateway, no limit for a storage node, in each direction)",
            "haproxy, limited to 30.0 MB/s of bodies",
            "on 1 drives of each node",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let limits = cluster(&text).unwrap().limits.unwrap();
        assert_eq!((limits.drive_operations, limits.balancer), (Some(100.0), Some(30e6)));
        assert_eq!((limits.gateway_network, limits.storage_network), (Some(5e6), None));
    }
}
