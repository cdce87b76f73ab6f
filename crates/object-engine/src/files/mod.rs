//! The `files` engine: OpenStack Swift's layout, byte for byte, on one device.
//!
//! `<device>/objects[-N]/<partition>/<suffix>/<hash>/<timestamp>.{data,meta,ts}`, metadata pickled in
//! extended attributes. A write is staged, synced, announced in `hashes.invalid`, published; only
//! then do files that it made obsolete go. A read checks name, length, metadata checksum and body
//! checksum; what fails is quarantined, never served.
//! Always holds: what [`ObjectEngine`] promises; an OpenStack service may work on the same device at
//! the same time.
//! Deliberately absent: erasure-coded fragments (recognised and left alone).
//! The layout is drawn in `docs/formats/object-files.md`; tests in `tests/files_*.rs`.

mod announcements;
mod audit;
mod batch;
mod config;
mod hash_directory;
mod hashes_record;
mod hashing;
mod hot;
mod late_changes;
pub(crate) mod layout;
mod link;
mod other_secrets;
mod quarantine;
mod read;
mod reader;
mod replica;
mod space;
mod strange;
mod verified;
mod write;
pub mod xattrs;

pub use audit::{AuditListing, AuditPlace, Audited, Examined, ObjectAudit};
pub use config::{FilesConfig, Notice};
pub use late_changes::{FileTimes, ListedState, Presence};

use crate::engine::{Commit, FoundObject, MetadataUpdate, ObjectEngine, ObjectWriter, OpenOptions, WriteLocksOwned};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::listing_intents::{ListingIntents, recover, save};
use crate::listing_update::ListingUpdate;
use crate::metadata::ObjectMetadata;
use crate::replica::Replica;
use batch::WholeWrite;
use bytes::Bytes;
use durable_fs::{FsError, Health, Staged, StorageDevice};
use hot::HotObjects;
use layout::Layout;
use space::SpaceGuard;
use std::io::ErrorKind::StorageFull;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use verified::VerifiedMarks;
use vocabulary::{FaultKind, Partition, PathHash, PolicyIndex, Timestamp};
use world::World;

/// The file at the device's root whose lock says which process has the device's write locks. It stays empty.
const WRITE_LOCKS: &str = ".write.lock";

/// Bytes with which a file system has room for attributes, if it takes them at all: they have 64 KiB at most.
const ROOM_FOR_ATTRIBUTES: u64 = 1 << 20;

/// The `files` engine of one device.
pub struct FilesEngine {
    state: Arc<EngineState>,
    listing_intents: ListingIntents,
}

/// What readers and writers that outlive a call share with the engine.
pub(crate) struct EngineState {
    config: FilesConfig,
    layout: Layout,
    device: Arc<StorageDevice>,
    world: World,
    space: SpaceGuard,
    verified: VerifiedMarks,
    hot: HotObjects,
}

impl FilesEngine {
    /// Takes the device into service and removes what crashed writers left on it. A device that is
    /// not there now may come later.
    pub fn start(config: FilesConfig, world: World) -> Self {
        let health = Health::new(&config.root);
        Self::watched(config, world, health)
    }

    /// [`FilesEngine::start`] on a drive whose health others judge by, too.
    pub fn watched(config: FilesConfig, world: World, health: Arc<Health>) -> Self {
        let state = EngineState::new(config, world, health);
        state.sync_what_is_there();
        state.recover();
        state.sweep(None);
        let listing_intents = ListingIntents::new(state.device.clone(), &state.layout);
        Self { state, listing_intents }
    }
}

impl EngineState {
    fn new(config: FilesConfig, world: World, health: Arc<Health>) -> Arc<Self> {
        let device = StorageDevice::watched(world.files.clone(), world.random.clone(), health, config.mount_check);
        Arc::new(EngineState {
            layout: Layout::new(&config.root),
            space: SpaceGuard::new(config.reserve),
            verified: VerifiedMarks::new(config.verified_marks, config.verified_for),
            hot: HotObjects::new(config.hot_objects, config.hot_bytes),
            device,
            world,
            config,
        })
    }

    /// The device must be mounted where that is asked for. Without it a missing device shows when the
    /// first path on it is not found, which costs nothing while all is well.
    fn ready(&self) -> Result<(), EngineError> {
        match self.config.mount_check {
            true => self.device.check_present(true).map_err(|error| self.blame(error)),
            false => Ok(()),
        }
    }

    /// [`EngineState::ready`], and what can be seen is durable: others are about to rely on it.
    fn ready_and_synced(&self) -> Result<(), EngineError> {
        self.ready()?;
        self.device.sync_what_failed().map_err(|error| self.blame(error))
    }

    /// Whether the device itself is there, asked when something on it is not.
    fn present(&self) -> Result<(), EngineError> {
        let checked = self.device.check_present(self.config.mount_check);
        checked.map_err(|error| self.blame(error))
    }

    fn blame(&self, error: FsError) -> EngineError {
        let device = self.config.name.clone();
        if let FsError::Io { source, path, .. } = &error {
            self.device.health().saw(path, source);
        }
        let is_drives = |error: &FsError| {
            // What could not be synced has just ended writing to the drive.
            let unsynced = matches!(error, FsError::Io { doing: "sync", .. }) && self.device.check_writable().is_err();
            error.is_unavailable() || unsynced
        };
        match error {
            error if error.kind() == FaultKind::NoSpace => EngineError::NoSpace {
                device,
                why: error.to_string(),
            },
            error if is_drives(&error) => EngineError::DeviceUnavailable {
                device,
                why: error.to_string(),
            },
            FsError::Io { doing, path, source } => EngineError::Io {
                doing,
                path: path.display().to_string(),
                source,
            },
            error => EngineError::DeviceUnavailable {
                device,
                why: error.to_string(),
            },
        }
    }

    /// Keeps metadata with a staged file.
    fn write_metadata(&self, staged: &Staged, metadata: &ObjectMetadata) -> Result<(), EngineError> {
        // A quota is full for everything, whatever the device has.
        let is_full = |error: &FsError| matches!(error, FsError::Io { source, .. } if source.kind() == StorageFull);
        xattrs::write(staged, metadata).map_err(|error| match is_full(&error) && self.has_room() {
            true => EngineError::MetadataTooLong {
                file_system: self.device.root().display().to_string(),
            },
            false => self.blame(error),
        })
    }

    /// Whether the device has room for more attributes than a file can have.
    fn has_room(&self) -> bool {
        let space = self.device.files().space(self.device.root());
        space.is_ok_and(|space| space.available >= ROOM_FOR_ATTRIBUTES)
    }

    fn io(&self, doing: &'static str, path: &Path, source: std::io::Error) -> EngineError {
        self.blame(FsError::io(doing, path)(source))
    }

    fn sync_what_is_there(&self) {
        match self.device.sync_what_is_there() {
            Ok(()) => {}
            Err(error) if error.is_unavailable() => {}
            Err(error) => tracing::error!(device = self.config.name, %error, "could not sync what is there"),
        }
    }

    /// Makes sure that listings learn of what crashed servers had no time to tell them.
    fn recover(&self) {
        match recover(&self.device, &self.layout) {
            Ok(0) => {}
            Ok(count) => tracing::info!(
                device = self.config.name,
                count,
                "kept listing updates that a server left under way"
            ),
            Err(error) => {
                tracing::warn!(device = self.config.name, %error, "could not take over listing updates left under way")
            }
        }
    }

    /// Removes what crashed writers left, and foreign files last written before `foreign_files_before`.
    fn sweep(&self, foreign_files_before: Option<u64>) {
        let swept = layout::temporary_directories(&self.device).and_then(|places| {
            let swept: Vec<_> = places
                .iter()
                .map(|place| self.device.sweep(place, foreign_files_before))
                .collect();
            swept.into_iter().sum::<Result<usize, FsError>>()
        });
        match swept {
            Ok(0) => {}
            Ok(count) => tracing::info!(
                device = self.config.name,
                count,
                "removed temporary files of crashed writers"
            ),
            Err(error) => {
                tracing::warn!(device = self.config.name, %error, "could not look for leftover temporary files")
            }
        }
    }
}

impl ObjectEngine for FilesEngine {
    fn replica(&self) -> &dyn Replica {
        self
    }

    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
        match options.listed {
            Some(data) => read::open_listed(&self.state, key, data, options),
            None => read::open(&self.state, key, options),
        }
    }

    fn open_all(&self, keys: &[ObjectKey], options: OpenOptions) -> Vec<Result<FoundObject, EngineError>> {
        read::open_all(&self.state, keys, options)
    }

    fn open_hot(&self, key: &ObjectKey, options: OpenOptions) -> Option<FoundObject> {
        self.state.open_hot(key, options)
    }

    fn create(&self, key: &ObjectKey, expected_size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError> {
        Ok(Box::new(write::FileWriter::begin(&self.state, key, expected_size)?))
    }

    fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>> {
        let writes = puts.into_iter();
        batch::write_all(
            &self.state,
            writes.map(|(key, body, commit)| WholeWrite::data(key, body, commit)),
        )
    }

    fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError> {
        let write = WholeWrite::metadata(key.clone(), update);
        batch::write_all(&self.state, std::iter::once(write))
            .into_iter()
            .collect()
    }

    fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>> {
        let tombstones = deletions.into_iter();
        batch::write_all(
            &self.state,
            tombstones.map(|(key, time)| Ok(WholeWrite::tombstone(key, time))),
        )
    }

    fn link(&self, key: &ObjectKey, partition: Partition) -> Result<(), EngineError> {
        link::link(&self.state, key, partition)
    }

    fn quarantine(&self, key: &ObjectKey, why: &str) -> Result<(), EngineError> {
        self.state.ready()?;
        let directory = self.state.layout.hash_directory(key);
        quarantine::quarantine(&self.state, key, &directory, why).map(drop)
    }

    fn listing_intents(&self) -> Option<&ListingIntents> {
        Some(&self.listing_intents)
    }

    fn own_write_locks(&self) -> Result<Option<WriteLocksOwned>, EngineError> {
        self.state.ready()?;
        let root = &self.state.config.root;
        match self.state.device.lock_named(root, WRITE_LOCKS, Duration::ZERO) {
            Ok(locked) => Ok(Some(WriteLocksOwned { _locked: Some(locked) })),
            Err(FsError::Io { source, .. }) if source.kind() == std::io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(self.state.present().err().unwrap_or_else(|| self.state.blame(error))),
        }
    }

    fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError> {
        self.state.ready()?;
        let saved = save(&self.state.device, &self.state.layout, update);
        saved.map_err(|error| self.state.blame(error))
    }

    fn check(&self) -> Result<(), EngineError> {
        self.state.present()
    }

    fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError> {
        let names = read::list(&self.state, &self.state.layout.objects(policy))?;
        let partitions = names.iter().filter_map(|name| Partition::from_directory(name));
        let mut found: Vec<Partition> = partitions.collect();
        found.sort_unstable();
        Ok(found)
    }

    fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError> {
        let mut names = read::list(&self.state, &self.state.layout.partition(policy, partition))?;
        names.retain(|name| layout::is_suffix(name));
        names.sort_unstable();
        Ok(names)
    }

    fn hashes(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<Vec<PathHash>, EngineError> {
        if !layout::is_suffix(suffix) {
            return Ok(vec![]);
        }
        let place = self.state.layout.partition(policy, partition).join(suffix);
        let names = read::list(&self.state, &place)?;
        let mut found: Vec<PathHash> = names.iter().filter_map(|name| PathHash::from_hex(name)).collect();
        found.sort_unstable();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforms() {
        // Kept until all engines are done.
        let places = parking_lot::Mutex::new(vec![]);
        crate::conformance::run(|| {
            let place = tempfile::tempdir().unwrap();
            let mut config = FilesConfig::new("sda", place.path());
            config.mount_check = false;
            places.lock().push(place);
            Box::new(FilesEngine::start(config, World::real()))
        });
    }
}
