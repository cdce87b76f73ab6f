//! Auditing: every object of a device looked at as it lies, whatever its directory holds.
//!
//! The auditor walks partitions, suffixes and [`AuditPlace`]s, and examines each: names and metadata always,
//! the bytes against their checksum when asked. What a reader would not trust goes to quarantine exactly
//! as on a read, which the suffix's invalidation announces, so that replication brings a good copy.
//! Always holds: nothing is remembered as verified and nothing is served; a file that vanished meanwhile
//! is no damage; what is foreign is handed back by name and left where it is.
//! Deliberately absent: erasure-coded fragments (left alone), pace, whom to tell.
//! Verdicts compared with those of OpenStack Swift 2.38.3's auditor: `tests/interop/test_auditors.py`.

use super::announcements::announce;
use super::hash_directory::{ObjectFiles, horizon, is_damaged};
use super::quarantine::{distrust, quarantine};
use super::read::{self, PartFile, ReadFailure};
use super::reader::{FileReader, ObjectBody};
use super::{EngineState, FilesConfig, layout, replica};
use crate::engine::ObjectReader;
use crate::error::EngineError;
use crate::key::{ObjectKey, PartitionKey};
use crate::metadata::ObjectMetadata;
use crate::parts::{ETAG, NAME};
use crate::rules::{Choice, choose};
use bytes::Bytes;
use durable_fs::Health;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, HashPrefix, Partition, PathHash, PolicyIndex, Timestamp};
use world::World;
use world::files::{Directory, FileKind};

const X_DELETE_AT: &str = "X-Delete-At";
/// Each retry means that another writer finished in between.
const RETRIES: usize = 50;
/// How trees of objects are called, or begin.
const OBJECTS: &str = "objects";
/// What rsync puts behind the name of a file that it has not finished.
const RSYNC_ENDING: usize = 6;
/// Files of its own that OpenStack Swift keeps between partitions.
const NOTES: [&str; 3] = ["auditor_status_", "relink.", "."];

/// The objects of one device, for auditing.
pub struct ObjectAudit {
    pub(super) state: Arc<EngineState>,
    secrets: HashPrefix,
    rsync_patience: Duration,
}

/// Where an object's files are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditPlace {
    /// The storage policy whose directory it is in.
    pub policy: PolicyIndex,
    /// The partition it is in.
    pub partition: Partition,
    /// The hash that its directory is named after.
    pub hash: PathHash,
    /// The directory.
    pub directory: PathBuf,
}

/// What was found in a directory.
#[derive(Debug)]
pub struct AuditListing<T> {
    /// What belongs there, in ascending order.
    pub found: Vec<T>,
    /// What does not; it stays.
    pub foreign: Vec<PathBuf>,
}

/// What an examination found, unless it is an error.
pub enum Examined {
    /// No object, or none that a client can see any more: a tombstone, an expired object, stray metadata.
    Absent,
    /// An object whose names, metadata and length agree.
    Object(Box<Audited>),
}

/// An object under examination.
pub struct Audited {
    /// What a GET shows.
    pub metadata: ObjectMetadata,
    /// `/account/container/object`.
    pub name: String,
    /// The last write of any part.
    pub newest: Timestamp,
    /// The body's length.
    pub size: u64,
    /// Names in its directory that mean nothing; they stay.
    pub foreign: Vec<PathBuf>,
    reader: Option<FileReader>,
}

impl Audited {
    /// Reads on, at most `max` bytes; how many, 0 at the end of what is to be checked.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when they do not match their checksum; the object is then in quarantine.
    pub fn read(&mut self, max: usize) -> Result<usize, EngineError> {
        match &mut self.reader {
            Some(reader) => reader.read(max).map(|bytes| bytes.len()),
            None => Ok(0),
        }
    }
}

impl ObjectAudit {
    /// Of the device that `config` describes. Unfinished files of rsync go when they are older than
    /// `rsync_patience`. Its read errors do not count against the drive: a bad region must not keep the replicators
    /// from the rest.
    pub fn new(config: FilesConfig, secrets: HashPrefix, rsync_patience: Duration, world: World) -> Self {
        let health = Health::new(&config.root);
        let config = FilesConfig {
            etag_validate_percent: 100.0,
            verified_marks: 0,
            hot_objects: 0,
            // What was read for its checksum alone is not worth a place in the cache.
            keep_cache_size: 0,
            ..config
        };
        Self {
            state: EngineState::new(config, world, health),
            secrets,
            rsync_patience,
        }
    }

    /// The directory of a policy's partitions.
    pub fn directory(&self, policy: PolicyIndex) -> PathBuf {
        self.state.layout.objects(policy)
    }

    /// The partitions of a policy.
    pub fn partitions(&self, policy: PolicyIndex) -> Result<AuditListing<Partition>, EngineError> {
        self.list(&self.directory(policy), Partition::from_directory, |name| {
            NOTES.iter().any(|note| name.starts_with(note))
        })
    }

    /// Trees of objects on the device that are of none of these policies.
    pub fn of_no_policy(&self, known: &[PolicyIndex]) -> Result<Vec<PathBuf>, EngineError> {
        let trees: Vec<String> = known.iter().map(|policy| policy.directory(OBJECTS)).collect();
        let is_tree =
            |name: &str| name == OBJECTS || name.strip_prefix(OBJECTS).is_some_and(|rest| rest.starts_with('-'));
        let is_foreign = |name: &str| is_tree(name) && !trees.iter().any(|tree| tree == name);
        let listed = self.list(
            &self.state.config.root,
            |name| is_foreign(name).then(|| name.to_owned()),
            |_| true,
        )?;
        let paths = listed.found.iter().map(|name| self.state.config.root.join(name));
        Ok(paths.collect())
    }

    /// The suffixes of a partition.
    pub fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<AuditListing<String>, EngineError> {
        let suffix = |name: &str| layout::is_suffix(name).then(|| name.to_owned());
        let ours = |name: &str| name.starts_with('.') || name.starts_with("hashes.");
        self.list(&self.state.layout.partition(policy, partition), suffix, ours)
    }

    /// Has replication hash a suffix again whose recorded hash is not that of its files.
    pub fn recheck(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<(), EngineError> {
        self.state.ready()?;
        replica::recheck(&self.state, PartitionKey { policy, partition }, suffix)
    }

    /// Where objects are under a suffix.
    pub fn places(
        &self,
        policy: PolicyIndex,
        partition: Partition,
        suffix: &str,
    ) -> Result<AuditListing<AuditPlace>, EngineError> {
        let parent = self.state.layout.partition(policy, partition).join(suffix);
        let place = |name: &str| {
            PathHash::from_hex(name).map(|hash| AuditPlace {
                policy,
                partition,
                hash,
                directory: parent.join(name),
            })
        };
        let mut listing = self.list(&parent, place, |_| false)?;
        let strays = listing.found.iter().filter(|place| place.hash.suffix() != suffix);
        listing.foreign.extend(strays.map(|place| place.directory.clone()));
        Ok(listing)
    }

    /// A directory that is not there holds nothing; what should be one and is not is foreign itself.
    fn list<T>(
        &self,
        path: &Path,
        understand: impl Fn(&str) -> Option<T>,
        passed_over: impl Fn(&str) -> bool,
    ) -> Result<AuditListing<T>, EngineError> {
        let mut listing = AuditListing {
            found: vec![],
            foreign: vec![],
        };
        let mut names = match read::list_all(&self.state, path) {
            Err(EngineError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
                listing.foreign.push(path.to_owned());
                return Ok(listing);
            }
            other => other?,
        };
        names.sort_unstable();
        for name in names {
            match name.to_str().map(|text| (understand(text), text)) {
                Some((Some(found), _)) => listing.found.push(found),
                Some((None, text)) if passed_over(text) => {}
                _ => listing.foreign.push(path.join(name)),
            }
        }
        Ok(listing)
    }

    /// Looks at what lies in a place; the body can then be read if `whole`.
    ///
    /// # Errors
    /// [`EngineError::Quarantined`] when it could not be trusted and has been moved away.
    pub fn examine(&self, place: &AuditPlace, whole: bool) -> Result<Examined, EngineError> {
        self.state.ready()?;
        let mut key = ObjectKey {
            policy: place.policy,
            partition: place.partition,
            hash: place.hash,
            name: String::new(),
        };
        let mut before = None;
        for _ in 0..RETRIES {
            let Some(directory) = read::open_directory(&self.state, &key, &place.directory)? else {
                return Ok(Examined::Absent);
            };
            let why = match self.look(place, &mut key, &*directory, whole) {
                Ok(examined) => return Ok(examined),
                Err((ReadFailure::Engine(error), _)) => return Err(error),
                Err((ReadFailure::Bad(why), _)) => why,
                // The same name is listed twice, and not to be opened in between.
                Err((ReadFailure::Changed, names)) if before.as_ref() == Some(&names) => {
                    "a file in it is listed but cannot be opened".into()
                }
                Err((ReadFailure::Changed, names)) => {
                    before = Some(names);
                    continue;
                }
            };
            return Err(distrust(&self.state, &key, &place.directory, why));
        }
        let source = io::Error::other("its files keep changing");
        Err(self.state.io("find a stable state of", &place.directory, source))
    }

    /// Takes an object out of sight.
    pub fn quarantine(&self, place: &AuditPlace, name: &str, why: &str) -> Result<(), EngineError> {
        let key = ObjectKey {
            policy: place.policy,
            partition: place.partition,
            hash: place.hash,
            name: name.into(),
        };
        self.state.ready()?;
        quarantine(&self.state, &key, &place.directory, why).map(drop)
    }

    /// Removes an object with all its files and leaves no tombstone: for what no listing has known for
    /// longer than tombstones last. What is newer than `newest`, written since it was looked at, stays.
    pub fn remove(&self, place: &AuditPlace, newest: Timestamp) -> Result<(), EngineError> {
        self.state.ready()?;
        announce(&self.state, &place.directory)?;
        let failed = |error| self.state.io("remove the files in", &place.directory, error);
        let directory = match self.state.device.files().open_directory(&place.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        let mut names = vec![];
        directory
            .list(&mut |name| names.extend(name.to_str().map(str::to_owned)))
            .map_err(failed)?;
        let is_newer = |name: &str| {
            let written = name
                .rsplit_once('.')
                .and_then(|(time, _)| time.parse::<Timestamp>().ok());
            written.is_some_and(|written| written > newest)
        };
        for name in names.iter().filter(|name| !is_newer(name)) {
            match directory.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        let emptied = self.state.device.remove_if_empty(&place.directory);
        emptied.map_err(|error| self.state.blame(error))
    }

    fn look(
        &self,
        place: &AuditPlace,
        key: &mut ObjectKey,
        directory: &dyn Directory,
        whole: bool,
    ) -> Result<Examined, (ReadFailure, Vec<String>)> {
        let path = &place.directory;
        let listed = ObjectFiles::list(directory).map_err(|error| match is_damaged(&error) {
            true => (ReadFailure::Bad(format!("it cannot be listed: {error}")), vec![]),
            false => (self.state.io("list", path, error).into(), vec![]),
        })?;
        let choice = choose(&listed.files);
        self.sweep(path, directory, &listed.others);
        let looked = match choice.data {
            Some(data_at) => self.look_at_object(key, path, directory, &listed, (data_at, &choice), whole),
            None => self.look_at_remains(path, directory, &listed, &choice, whole),
        };
        looked.map_err(|failure| (failure, listed.names))
    }

    /// A tombstone that may go is left to replication, to which the suffix is announced.
    fn look_at_remains(
        &self,
        path: &Path,
        directory: &dyn Directory,
        listed: &ObjectFiles,
        choice: &Choice,
        whole: bool,
    ) -> Result<Examined, ReadFailure> {
        if let Some(at) = choice.tombstone {
            PartFile::read(&self.state, path, directory, &listed.names[at])?;
            if whole && listed.files[at].timestamp < horizon(&self.state) {
                announce(&self.state, path)?;
            }
        }
        Ok(Examined::Absent)
    }

    fn look_at_object(
        &self,
        key: &mut ObjectKey,
        path: &Path,
        directory: &dyn Directory,
        listed: &ObjectFiles,
        (data_at, choice): (usize, &Choice),
        whole: bool,
    ) -> Result<Examined, ReadFailure> {
        let ObjectFiles { names, files, others } = listed;
        let data = PartFile::read(&self.state, path, directory, &names[data_at])?;
        key.name = self.check_name(&data.metadata, key.hash)?;
        let (meta, typed) = read::read_posts(&self.state, path, directory, names, choice)?;
        let (metadata, timestamps) = read::describe_parts(files, data_at, &data, (choice, &meta, &typed));
        if self.is_expired(&metadata)? {
            return Ok(Examined::Absent);
        }
        let looked_at = data.file.info();
        let info = looked_at.map_err(|error| self.state.io("look at", path, error))?;
        if info.kind != FileKind::File {
            return Err(ReadFailure::Bad(format!("{} is no file", names[data_at])));
        }
        read::check_length(&data.metadata, &info)?;
        if info.size > 0 && data.metadata.get(ETAG).is_none() {
            return Err(ReadFailure::Bad("its metadata give no ETag".into()));
        }
        let foreign = others
            .iter()
            .filter(|name| !is_rsyncs(name))
            .map(|name| path.join(name))
            .collect();
        let body = ObjectBody::new(&self.state, key, (path, &names[data_at]), &info, &data.metadata);
        let reader = (whole && info.size > 0).then(|| FileReader::begin(body, data.file, Bytes::new()));
        Ok(Examined::Object(Box::new(Audited {
            metadata,
            name: key.name.clone(),
            newest: timestamps.newest(),
            size: info.size,
            foreign,
            reader,
        })))
    }

    /// The object's name, if the directory is the one that such an object has.
    fn check_name(&self, metadata: &ObjectMetadata, hash: PathHash) -> Result<String, ReadFailure> {
        let bad = |why: &str| ReadFailure::Bad(why.into());
        let name = metadata.get(NAME).ok_or_else(|| bad("its metadata give no name"))?;
        let name = std::str::from_utf8(name).map_err(|_| bad("the name in its metadata is not UTF-8"))?;
        match self.path_of(name, hash) {
            Some(_) => Ok(name.to_owned()),
            None => Err(ReadFailure::Bad(format!(
                "the hash of the name in its metadata, {name:?}, is not its directory's"
            ))),
        }
    }

    /// The path of an object of this name, if the hash is that of its path.
    pub(super) fn path_of(&self, name: &str, hash: PathHash) -> Option<EntityPath> {
        let path = name.strip_prefix('/').and_then(|path| EntityPath::split(path).ok())?;
        let (container, object) = (path.container.as_deref()?, path.object.as_deref()?);
        (self.secrets.object(&path.account, container, object) == hash).then_some(path)
    }

    fn is_expired(&self, metadata: &ObjectMetadata) -> Result<bool, ReadFailure> {
        let Some(value) = metadata.get(X_DELETE_AT) else {
            return Ok(false);
        };
        let text = String::from_utf8_lossy(value);
        match text.trim().parse::<i64>() {
            Ok(at) => Ok(u64::try_from(at).unwrap_or(0) <= self.state.world.clock.now().seconds()),
            Err(_) => Err(ReadFailure::Bad(format!("its X-Delete-At is {text:?}"))),
        }
    }

    /// Removes what rsync left unfinished long ago.
    fn sweep(&self, path: &Path, directory: &dyn Directory, others: &[String]) {
        let horizon = self.state.world.clock.now().as_f64() - self.rsync_patience.as_secs_f64();
        for name in others.iter().filter(|name| is_rsyncs(name)) {
            let file = path.join(name);
            let old = |(seconds, _): (i64, i64)| (seconds as f64) < horizon;
            let info = self.state.device.files().info(&file);
            if info.is_ok_and(|info| info.kind == FileKind::File && old(info.modified)) {
                match directory.remove(name) {
                    Ok(()) => tracing::info!("removed {}, which rsync left unfinished", file.display()),
                    Err(error) => tracing::warn!("cannot remove {}: {error}", file.display()),
                }
            }
        }
    }
}

/// `.<name>.AbC123`, as rsync calls a file while it is incomplete.
fn is_rsyncs(name: &str) -> bool {
    let ending = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| {
        ending.len() == RSYNC_ENDING && ending.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}
