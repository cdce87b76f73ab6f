//! The devices of this node, as the listing server opens them: each to the place of its databases.
//!
//! The pool, its workers and its lanes are `storage_shell`'s.
//! Always holds: before every job the device is there (and mounted, if it must be): 507 otherwise. The look happens on
//! the device's own workers, for a dying drive may hang on it. Where it is not, its databases are closed: a file system
//! that is unmounted lazily is in use for as long as any is open.

use crate::options::ListingServerOptions;
use durable_fs::{Health, Reserve, Symptom};
use listing_engine::{Brokers, DeviceRoot};
use peer::FairPlaces;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage_shell::{DeviceEngine, DeviceOpener, DevicePool, PooledDevice, Refusal};
use vocabulary::{EntityPath, Fault, FaultKind};
use world::World;
use world::files::{FileKind, FileSystem};

/// Long listings that wait for a device; beyond, those of the account or container that has most are refused.
const MOST_WAITING: usize = 1024;

/// A device of the pool.
pub(crate) type ListingDevice = PooledDevice<DatabaseDisk>;
/// The devices of this node.
pub(crate) type ListingDevices = DevicePool<DatabaseDisks>;

/// Where the databases of one device are.
pub(crate) struct DatabaseDisk {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    must_be_mounted: bool,
    reserve: Reserve,
    root: DeviceRoot,
    brokers: Arc<Brokers>,
    long_listings: FairPlaces<Arc<EntityPath>>,
}

impl DatabaseDisk {
    /// The places for long listings, for which accounts and containers take turns: half of the device's threads, so
    /// that short requests find another one.
    pub(crate) fn long_listings(&self) -> &FairPlaces<Arc<EntityPath>> {
        &self.long_listings
    }

    /// The device, as databases are found on it.
    pub(crate) fn root(&self) -> &DeviceRoot {
        &self.root
    }
}

fn check_there(files: &dyn FileSystem, path: &Path, must_be_mounted: bool) -> Result<(), Fault> {
    let is_there = match must_be_mounted {
        true => files.is_mount_point(path),
        false => files.info(path).map(|info| info.kind == FileKind::Directory),
    };
    let place = path.display();
    match is_there {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::device(format!("{place} is not there"))),
        Err(error) if Symptom::of(&error).is_passing() => Err(Fault::new(
            FaultKind::Contention,
            format!("cannot look at {place}: {error}"),
        )),
        Err(error) => Err(Fault::device(format!("{place} is not there: {error}"))),
    }
}

impl DeviceEngine for DatabaseDisk {
    fn check(&self) -> Result<(), Fault> {
        check_there(&*self.files, &self.path, self.must_be_mounted).inspect_err(|fault| {
            if fault.kind.is_device() {
                self.brokers.forget_device(&self.path);
            }
        })
    }
}

/// Refuses when the device has no room to spare. Blocks.
pub(crate) fn check_room(device: &ListingDevice) -> Result<(), Refusal> {
    let disk = device.engine();
    let is_short = match disk.reserve.is_off() {
        true => false,
        false => match disk.files.space(&disk.path) {
            Ok(space) => disk.reserve.is_short(space.available, space.total),
            Err(_) => true,
        },
    };
    match is_short {
        true => Err(Refusal::Device(device.name().to_owned())),
        false => Ok(()),
    }
}

/// Opens devices for the pool.
pub(crate) struct DatabaseDisks {
    world: World,
    options: Arc<ListingServerOptions>,
    brokers: Arc<Brokers>,
}

impl DatabaseDisks {
    pub(crate) fn new(world: World, options: Arc<ListingServerOptions>, brokers: Arc<Brokers>) -> Self {
        Self {
            world,
            options,
            brokers,
        }
    }
}

impl DeviceOpener for DatabaseDisks {
    type Engine = DatabaseDisk;

    /// The first look at a device: whether it is there, and what a crash has left on it.
    fn open(&self, name: &str) -> Result<DatabaseDisk, Fault> {
        let path = self.options.devices.join(name);
        let must_be_mounted = self.options.mount_check;
        let files = self.world.files.clone();
        // Before anything is remembered of it: requests may name any device.
        check_there(&*files, &path, must_be_mounted)?;
        let disk = DatabaseDisk {
            root: DeviceRoot::new(&path, must_be_mounted)
                .on(&files)
                .watched(self.health(name)),
            long_listings: FairPlaces::new((self.options.threads_per_disk / 2).max(1), MOST_WAITING),
            files,
            path,
            must_be_mounted,
            reserve: self.options.fallocate_reserve,
            brokers: self.brokers.clone(),
        };
        let swept = listing_engine::sweep(&disk.root);
        tracing::info!("device {name} serves; {swept} unfinished databases removed");
        Ok(disk)
    }

    fn health(&self, name: &str) -> Arc<Health> {
        self.options.drives.health(&self.options.devices.join(name))
    }
}
