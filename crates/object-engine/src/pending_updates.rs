//! Working through a device's `async_pending` records: find, read, keep what is left, remove.
//!
//! An updater lists the suffix directories, then the records of one, reads each, sends it and comes
//! back with what happened. All calls block.
//! Always holds: a record is replaced by rename or removed, never changed in place; of several records
//! of one object only the newest that can be read is handed out, and older ones are removed; a record that cannot be
//! read goes to `quarantined/objects` as OpenStack Swift's updater puts it, with one line that names it;
//! foreign names are left where they are.
//! Deliberately absent: sending, retries, rings. Tests: `tests/pending_updates.rs`.

use crate::files::layout::Layout;
use crate::files::xattrs::utf8_to_latin1;
use crate::listing_intents::recover;
use crate::{ListingUpdate, Notice};
use durable_fs::{FsError, Health, StorageDevice};
use pickle::{PickleError, PickleLimits, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{PathHash, PolicyIndex, Timestamp};
use world::World;
use world::files::{FileKind, own_names};

/// How the directories of records begin.
const DIRECTORY: &str = "async_pending";
/// No record is longer: names and headers have far lower limits.
const LONGEST: u64 = 1 << 20;
/// How long an empty directory is left alone: a writer may be about to name a file in it.
const QUIET: Duration = Duration::from_secs(60);

/// A record's content: the row, and who has it already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpdate {
    /// The row.
    pub update: ListingUpdate,
    /// Ids of the ring's devices that have taken it.
    pub successes: Vec<u32>,
}

/// A directory of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSuffix {
    /// The objects' policy.
    pub policy: PolicyIndex,
    path: PathBuf,
}

/// A record by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRecord {
    /// The object's policy.
    pub policy: PolicyIndex,
    /// The hash of the object's path.
    pub hash: PathHash,
    /// When the object was written or deleted.
    pub timestamp: Timestamp,
    directory: PathBuf,
    name: String,
}

impl PendingRecord {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PendingError {
    /// It is no pickle.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// Something that a row needs is not in it.
    #[error("it has no {0:?}")]
    Missing(&'static str),
    /// Something in it is of another type.
    #[error("its {0:?} is no text")]
    NoText(&'static str),
    /// Rows are put or deleted.
    #[error("its operation is {0:?}")]
    Operation(String),
    /// The name of a header is of another type.
    #[error("a header's name is no text")]
    HeaderName,
    /// The value of a header is of another type.
    #[error("its header {0:?} is no text")]
    Header(String),
}

impl PendingUpdate {
    /// Reads what [`Self::encode`], [`ListingUpdate::encode`] or OpenStack Swift wrote.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn decode(
        policy: PolicyIndex,
        hash: PathHash,
        timestamp: Timestamp,
        bytes: &[u8],
    ) -> Result<Self, PendingError> {
        let record = pickle::loads(bytes, &PickleLimits::default())?;
        let maybe = |key: &'static str| match record.get(key) {
            None | Some(Value::None) => Ok(None),
            Some(value) => value
                .text()
                .map(str::to_owned)
                .map(Some)
                .ok_or(PendingError::NoText(key)),
        };
        // Without a name, the row's path would be that of the container itself.
        let text = |key: &'static str| {
            let found = maybe(key)?.filter(|text| !text.is_empty());
            found.ok_or(PendingError::Missing(key))
        };
        let headers = record
            .get("headers")
            .and_then(Value::entries)
            .ok_or(PendingError::Missing("headers"))?;
        let successes = record.get("successes").and_then(Value::items).unwrap_or_default();
        let update = ListingUpdate {
            policy,
            hash,
            timestamp,
            op: text("op").and_then(known_operation)?,
            account: text("account")?,
            container: text("container")?,
            object: text("obj")?,
            headers: headers.iter().map(header).collect::<Result<_, _>>()?,
            db_state: maybe("db_state")?,
            container_path: maybe("container_path")?,
        };
        let id = |value: &Value| value.int().and_then(|id| u32::try_from(id).ok());
        Ok(Self {
            update,
            successes: successes.iter().filter_map(id).collect(),
        })
    }

    /// The record as OpenStack Swift's updater writes it back.
    pub fn encode(&self) -> Vec<u8> {
        let mut entries = self.update.entries();
        if !self.successes.is_empty() {
            let ids = self.successes.iter().map(|id| Value::Int(i64::from(*id)));
            entries.push((Value::str("successes"), Value::List(ids.collect())));
        }
        pickle::dumps_protocol0(&Value::Dict(entries))
    }
}

fn known_operation(op: String) -> Result<String, PendingError> {
    match op.as_str() {
        "PUT" | "DELETE" => Ok(op),
        _ => Err(PendingError::Operation(op)),
    }
}

fn header((name, value): &(Value, Value)) -> Result<(String, Vec<u8>), PendingError> {
    let name = name.text().ok_or(PendingError::HeaderName)?;
    let value = match value {
        Value::Str(text) => utf8_to_latin1(text.as_bytes()),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Int(number) => number.to_string().into_bytes(),
        _ => return Err(PendingError::Header(name.to_owned())),
    };
    Ok((name.to_owned(), value))
}

/// The records of one device.
pub struct PendingUpdates {
    device: Arc<StorageDevice>,
    quarantined: Notice,
    foreign: Notice,
}

impl PendingUpdates {
    /// Of the device whose files are below `root`.
    pub fn new(world: &World, root: impl Into<PathBuf>, must_be_mounted: bool) -> Self {
        Self::watched(world, Health::new(root), must_be_mounted)
    }

    /// [`PendingUpdates::new`] on a drive whose health others judge by, too.
    pub fn watched(world: &World, health: Arc<Health>, must_be_mounted: bool) -> Self {
        let (files, random) = (world.files.clone(), world.random.clone());
        Self {
            device: StorageDevice::watched(files, random, health, must_be_mounted),
            quarantined: Notice::default(),
            foreign: Notice::default(),
        }
    }

    /// With what is called for each record that goes to quarantine, and for each name that is none of a record.
    #[must_use]
    pub fn noticed_by(self, quarantined: Notice, foreign: Notice) -> Self {
        Self {
            quarantined,
            foreign,
            ..self
        }
    }

    /// Makes records of what servers that are gone have left under way; how many.
    pub fn recover(&self) -> Result<usize, FsError> {
        recover(&self.device, &Layout::new(self.device.root()))
    }

    /// The directories that may hold records, of all policies; one policy's that cannot be read hides no other's.
    pub fn suffixes(&self) -> Result<Vec<PendingSuffix>, FsError> {
        let root = self.device.root();
        let mut found = vec![];
        for name in self.names(root)? {
            let Some(policy) = policy_of(&name) else { continue };
            let directory = root.join(&name);
            if !self.is(&directory, FileKind::Directory) {
                continue;
            }
            let names = match self.names(&directory) {
                Ok(names) => names,
                Err(error) => {
                    self.foreign.send();
                    tracing::error!("its listing updates wait: {error}");
                    continue;
                }
            };
            let suffixes = names.into_iter().filter(|name| is_suffix(name));
            let suffix = |name| PendingSuffix {
                policy,
                path: directory.join(name),
            };
            found.extend(suffixes.map(suffix));
        }
        Ok(found)
    }

    /// The newest record of each object, oldest first; how many outdated ones were removed. A directory
    /// that has been empty for a while is removed.
    pub fn records(&self, suffix: &PendingSuffix, now: Timestamp) -> Result<(Vec<PendingRecord>, u64), FsError> {
        if !self.is(&suffix.path, FileKind::Directory) {
            return Ok((vec![], 0));
        }
        let names = self.names(&suffix.path)?;
        if names.is_empty() {
            self.remove_quiet(&suffix.path, now)?;
        }
        let mut of_object = BTreeMap::<PathHash, Vec<PendingRecord>>::new();
        for name in names {
            match named(suffix, &name) {
                Some(record) => of_object.entry(record.hash).or_default().push(record),
                None => {
                    self.foreign.send();
                    tracing::warn!(
                        "{}: not a pending listing update; left alone",
                        suffix.path.join(name).display()
                    );
                }
            }
        }
        let mut outdated = 0;
        let newest = of_object
            .into_values()
            .filter_map(|found| self.newest(found, &mut outdated));
        let mut records: Vec<_> = newest.collect();
        records.sort_by_key(|record| record.timestamp);
        Ok((records, outdated))
    }

    /// The newest of an object's records; the others, which are of no use beside one that can be read, are removed.
    fn newest(&self, mut found: Vec<PendingRecord>, outdated: &mut u64) -> Option<PendingRecord> {
        found.sort_by_key(|record| record.timestamp);
        let mut newest = found.pop()?;
        while !found.is_empty() {
            match self.load(&newest) {
                Ok(Some(_)) => break,
                Ok(None) => newest = found.pop()?,
                // Nothing is known of it: all of them stay.
                Err(error) => {
                    tracing::error!("older listing updates stay: {error}");
                    return Some(newest);
                }
            }
        }
        for older in found {
            match self.remove(&older) {
                Ok(()) => *outdated += 1,
                // It holds up no other.
                Err(error) => tracing::error!("an outdated listing update stays: {error}"),
            }
        }
        Some(newest)
    }

    /// Reads a record; `None` when it has gone meanwhile, or could not be read and is in quarantine now.
    pub fn load(&self, record: &PendingRecord) -> Result<Option<PendingUpdate>, FsError> {
        let path = record.path();
        let bytes = match self.device.files().read(&path, LONGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_rubbish(&error) => return self.quarantine(record, &error.to_string()).map(|()| None),
            other => other.map_err(FsError::io("read", &path))?,
        };
        match PendingUpdate::decode(record.policy, record.hash, record.timestamp, &bytes) {
            Ok(update) => Ok(Some(update)),
            Err(error) => self.quarantine(record, &error.to_string()).map(|()| None),
        }
    }

    /// Writes a record back with what is left to do.
    pub fn keep(&self, record: &PendingRecord, update: &PendingUpdate) -> Result<(), FsError> {
        let temporaries = self.device.root().join(record.policy.directory("tmp"));
        self.device
            .write_file(&record.directory, &record.name, &temporaries, &update.encode())
    }

    /// Removes a record; one that has gone already is fine. A removal that a crash undoes only has the
    /// row sent again.
    pub fn remove(&self, record: &PendingRecord) -> Result<(), FsError> {
        let path = record.path();
        match self.device.files().remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(FsError::io("remove", &path)),
        }
    }

    fn quarantine(&self, record: &PendingRecord, why: &str) -> Result<(), FsError> {
        let directory = self
            .device
            .root()
            .join("quarantined")
            .join(record.policy.directory("objects"));
        let to = self.device.move_aside(&record.path(), &directory.join(&record.name))?;
        self.quarantined.send();
        tracing::error!(
            "{}: cannot be read as a pending listing update ({why}); moved to {}",
            record.path().display(),
            to.display()
        );
        Ok(())
    }

    fn remove_quiet(&self, directory: &Path, now: Timestamp) -> Result<(), FsError> {
        let Ok(info) = self.device.files().info(directory) else {
            return Ok(());
        };
        let since = u64::try_from(info.modified.0).unwrap_or(0);
        match now.seconds() > since.saturating_add(QUIET.as_secs()) {
            true => self.device.remove_if_empty(directory),
            false => Ok(()),
        }
    }

    fn is(&self, path: &Path, kind: FileKind) -> bool {
        self.device.files().info(path).is_ok_and(|info| info.kind == kind)
    }

    fn names(&self, path: &Path) -> Result<Vec<String>, FsError> {
        let opened = self.device.files().open_directory(path);
        let names = opened.and_then(|directory| own_names(&*directory, path));
        let names = names.map_err(FsError::io("list", path))?;
        Ok(names
            .into_iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }
}

/// `async_pending` or `async_pending-N`.
fn policy_of(name: &str) -> Option<PolicyIndex> {
    let rest = name.strip_prefix(DIRECTORY)?;
    let policy = match rest.strip_prefix('-') {
        None => PolicyIndex(0),
        Some(number) => PolicyIndex(number.parse().ok()?),
    };
    (policy.directory(DIRECTORY) == name).then_some(policy)
}

fn is_suffix(name: &str) -> bool {
    name.len() == 3 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn named(suffix: &PendingSuffix, name: &str) -> Option<PendingRecord> {
    let (hash, timestamp) = name.split_once('-')?;
    Some(PendingRecord {
        policy: suffix.policy,
        hash: PathHash::from_hex(hash)?,
        timestamp: timestamp.parse().ok()?,
        directory: suffix.path.clone(),
        name: name.to_owned(),
    })
}

fn is_rubbish(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::IsADirectory)
}
