//! The devices of this server, and the threads that work on each.
//!
//! Always holds: a device that is not mounted although it must be is left out, with one line when that
//! begins; a hung device blocks its own threads only.

use crate::faults::{ToFault, run_on};
use durable_fs::{Drives, Health};
use listing_engine::DeviceRoot;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocabulary::Fault;
use world::files::FileKind;
use world::{Workers, World};

/// Jobs that may wait for a device's thread.
const QUEUE: usize = 64;

/// The directory of devices. One per job: upkeep of one kind does not wait for that of another.
pub struct Disks {
    world: World,
    root: PathBuf,
    must_be_mounted: bool,
    /// Empty for all.
    only: HashSet<String>,
    drives: Arc<Drives>,
    listing: Option<Workers>,
    workers: HashMap<String, Arc<Workers>>,
    missing: HashSet<String>,
}

impl Disks {
    /// All devices below `root` (`devices`), only mounted ones if `must_be_mounted` (`mount_check`).
    pub fn new(world: World, root: impl Into<PathBuf>, must_be_mounted: bool) -> Self {
        Self {
            world,
            root: root.into(),
            must_be_mounted,
            only: HashSet::new(),
            drives: Arc::default(),
            listing: None,
            workers: HashMap::new(),
            missing: HashSet::new(),
        }
    }

    /// Of these only `names`; all when it is empty.
    #[must_use]
    pub fn only(self, names: &[String]) -> Self {
        Self {
            only: names.iter().filter(|name| !name.is_empty()).cloned().collect(),
            ..self
        }
    }

    /// Whether some devices are left out on purpose.
    pub(crate) fn is_selection(&self) -> bool {
        !self.only.is_empty()
    }

    /// Drives judged out of service are left out, too.
    #[must_use]
    pub fn watched(self, drives: Arc<Drives>) -> Self {
        Self { drives, ..self }
    }

    /// The outside that the devices are part of.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Whether a device that is no mount point is left out.
    pub(crate) fn must_be_mounted(&self) -> bool {
        self.must_be_mounted
    }

    /// The directory of a device.
    pub(crate) fn path(&self, device: &str) -> PathBuf {
        self.root.join(device)
    }

    /// The health of a device, shared with all that works on it in this process.
    pub(crate) fn health(&self, device: &str) -> Arc<Health> {
        self.drives.health(&self.path(device))
    }

    /// A device, as databases are found on it.
    pub(crate) fn root(&self, device: &str) -> DeviceRoot {
        DeviceRoot::new(self.path(device), self.must_be_mounted)
            .on(&self.world.files)
            .watched(self.health(device))
    }

    /// How many devices were left out for not being mounted when names were last asked for.
    pub(crate) fn left_out(&self) -> u64 {
        self.missing.len() as u64
    }

    /// The names of the devices that can be worked on now; in no particular order.
    pub(crate) async fn names(&mut self) -> Vec<String> {
        let found = match self.list().await {
            Ok(found) => found,
            Err(fault) => {
                tracing::error!("cannot list the devices in {}: {fault}", self.root.display());
                return vec![];
            }
        };
        let mut names = vec![];
        for (name, ready) in found {
            if !self.only.is_empty() && !self.only.contains(&name) {
                continue;
            }
            if self.drives.is_out(&self.path(&name)) {
                continue;
            }
            match ready {
                true => {
                    self.missing.remove(&name);
                    names.push(name);
                }
                false if self.missing.insert(name.clone()) => {
                    tracing::warn!("{} is not mounted; left out", self.path(&name).display());
                }
                false => {}
            }
        }
        names
    }

    /// Directories, and whether each may be worked on.
    async fn list(&mut self) -> Result<Vec<(String, bool)>, Fault> {
        let thread = match self.listing.take() {
            Some(thread) => thread,
            None => self
                .world
                .workers("devices", 1, QUEUE)
                .map_err(|error| error.to_fault())?,
        };
        let (world, root, must) = (self.world.clone(), self.root.clone(), self.must_be_mounted);
        run_on(self.listing.insert(thread), move || look(&world, &root, must)).await
    }

    /// The thread of a device.
    pub(crate) fn thread(&mut self, device: &str) -> io::Result<Arc<Workers>> {
        self.threads(device, 1)
    }

    /// The threads of a device, so many when it has none yet.
    pub(crate) fn threads(&mut self, device: &str, count: usize) -> io::Result<Arc<Workers>> {
        if let Some(thread) = self.workers.get(device) {
            return Ok(thread.clone());
        }
        let thread = Arc::new(self.world.workers(device, count, QUEUE.max(count))?);
        self.workers.insert(device.to_owned(), thread.clone());
        Ok(thread)
    }
}

/// Directories, and whether each may be worked on.
fn look(world: &World, root: &Path, must_be_mounted: bool) -> io::Result<Vec<(String, bool)>> {
    let mut names = vec![];
    let directory = world.files.open_directory(root)?;
    directory.list(&mut |name| names.extend(name.to_str().map(str::to_owned)))?;
    let is_directory = |name: &String| {
        let info = world.files.info(&root.join(name));
        info.is_ok_and(|info| info.kind == FileKind::Directory)
    };
    names.retain(is_directory);
    let judged = names.into_iter().map(|name| {
        let ready = !must_be_mounted || world.files.is_mount_point(&root.join(&name)).unwrap_or(false);
        (name, ready)
    });
    Ok(judged.collect())
}
