//! The devices of this server, and the threads that work on each.
//!
//! Always holds: a device that is not mounted although it must be is left out, and so is one whose directory does not
//! answer, each with one line when that begins; a hung device blocks its own threads only.

use crate::faults::{ToFault, run_on};
use durable_fs::{Drives, Health};
use listing_engine::DeviceRoot;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vocabulary::{Fault, FaultKind};
use world::files::FileKind;
use world::{Workers, World};

/// Jobs that may wait for a device's thread.
const QUEUE: usize = 64;

/// How long a look at the directories of all devices may take, and then one at that of each.
const LOOK_WITHIN: Duration = Duration::from_secs(15);

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
    /// Whose directories were looked at in vain, and whether that look has ended since.
    unanswered: HashMap<String, Arc<AtomicBool>>,
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
            unanswered: HashMap::new(),
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
        (self.missing.len() + self.unanswered.len()) as u64
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

    /// Directories, and whether each may be worked on. Where the look at all of them does not end in time, each is
    /// looked at by itself; those that do not answer then are left out until they do.
    async fn list(&mut self) -> Result<Vec<(String, bool)>, Fault> {
        self.unanswered.retain(|_, ended| !ended.load(Ordering::Relaxed));
        let all = self.in_time(|look| look.names().map(|names| look.at(names))).await?;
        if let Some(found) = all {
            return Ok(found);
        }
        let Some(names) = self.in_time(Look::names).await? else {
            return Err(Fault::new(FaultKind::Device, "the directory does not answer"));
        };
        let mut found = vec![];
        for name in names {
            let ended = Arc::new(AtomicBool::new(false));
            let (looked, at) = (ended.clone(), name.clone());
            let look = move |look: &Look| {
                let found = look.at(vec![at]);
                looked.store(true, Ordering::Relaxed);
                Ok(found)
            };
            match self.in_time(look).await? {
                Some(of_name) => found.extend(of_name),
                None => {
                    tracing::warn!("{} does not answer; left out", self.path(&name).display());
                    self.unanswered.insert(name, ended);
                }
            }
        }
        Ok(found)
    }

    /// What a look on a thread finds; `None` when it takes too long, and keeps its thread.
    async fn in_time<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Look) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, Fault> {
        let thread = match self.listing.take() {
            Some(thread) => thread,
            None => self
                .world
                .workers("devices", 1, QUEUE)
                .map_err(|error| error.to_fault())?,
        };
        let look = Look {
            world: self.world.clone(),
            root: self.root.clone(),
            must_be_mounted: self.must_be_mounted,
            passed_over: self.unanswered.keys().cloned().collect(),
        };
        let working = run_on(&thread, move || work(&look));
        match self.world.timeout(LOOK_WITHIN, working).await {
            Ok(done) => {
                self.listing = Some(thread);
                done.map(Some)
            }
            Err(_) => Ok(None),
        }
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

/// One look at directories of devices.
struct Look {
    world: World,
    root: PathBuf,
    must_be_mounted: bool,
    passed_over: HashSet<String>,
}

impl Look {
    /// What there is, but for what is passed over.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = vec![];
        let directory = self.world.files.open_directory(&self.root)?;
        directory.list(&mut |name| names.extend(name.to_str().map(str::to_owned)))?;
        names.retain(|name| !self.passed_over.contains(name));
        Ok(names)
    }

    /// The directories among these, and whether each may be worked on.
    fn at(&self, mut names: Vec<String>) -> Vec<(String, bool)> {
        let files = &self.world.files;
        let is_directory = |name: &String| {
            let info = files.info(&self.root.join(name));
            info.is_ok_and(|info| info.kind == FileKind::Directory)
        };
        names.retain(is_directory);
        let judged = names.into_iter().map(|name| {
            let ready = !self.must_be_mounted || files.is_mount_point(&self.root.join(&name)).unwrap_or(false);
            (name, ready)
        });
        judged.collect()
    }
}

#[cfg(test)]
mod tests;
