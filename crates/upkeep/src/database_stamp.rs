//! Whether a database has changed, without opening it, and what earlier passes learnt about those that have not.

use listing_engine::Location;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use vocabulary::PathHash;
use world::World;

/// Younger files may change again without their times showing it.
const TIME_GRAIN: u64 = 2;

/// How a database lies on the disk, taken before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseStamp {
    /// Changes with every change of the database or its pending rows.
    pub(crate) value: u64,
    /// Seconds since the last change.
    pub(crate) age: u64,
}

impl DatabaseStamp {
    /// As the database lies on the disk now; `None` when it cannot be seen.
    pub(crate) fn of(world: &World, location: &Location) -> Option<Self> {
        let database = world.files.info(&location.db_file()).ok()?;
        let pending = world.files.info(&location.pending_file()).ok();
        let mut hasher = DefaultHasher::new();
        let mut newest = 0;
        for info in [Some(database), pending].into_iter().flatten() {
            (info.inode, info.size, info.changed, info.modified).hash(&mut hasher);
            newest = newest.max(info.changed.0);
        }
        pending.is_some().hash(&mut hasher);
        let newest = u64::try_from(newest).unwrap_or(0);
        Some(Self {
            value: hasher.finish(),
            age: world.clock.now().seconds().saturating_sub(newest),
        })
    }

    /// The value, unless the next change might leave it as it is.
    pub(crate) fn trusted(self) -> Option<u64> {
        (self.age > TIME_GRAIN).then_some(self.value)
    }
}

/// What is known of databases, device by device.
pub(crate) struct KnownDatabases<T> {
    devices: HashMap<String, HashMap<PathHash, T>>,
    /// Becomes the entry of the device that is walked over.
    learnt: HashMap<PathHash, T>,
}

impl<T> Default for KnownDatabases<T> {
    fn default() -> Self {
        Self {
            devices: HashMap::new(),
            learnt: HashMap::new(),
        }
    }
}

impl<T: Copy> KnownDatabases<T> {
    /// What the last pass over the device learnt of a database.
    pub(crate) fn of(&self, device: &str, hash: PathHash) -> Option<T> {
        self.devices.get(device)?.get(&hash).copied()
    }

    /// Adds what this pass learns of a database of the device that is walked over.
    pub(crate) fn learn(&mut self, learnt: Option<(PathHash, T)>) {
        self.learnt.extend(learnt);
    }

    /// Keeps what this pass has learnt about the device, and nothing about databases that are gone.
    pub(crate) fn keep(&mut self, device: String) {
        self.devices.insert(device, std::mem::take(&mut self.learnt));
    }
}
