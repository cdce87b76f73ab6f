//! Replication's view of the `files` engine: suffix hashes in `hashes.pkl`, and objects by their files' names.
//!
//! Each change of a suffix appends it to `hashes.invalid`; a request for hashes first moves those lines
//! into `hashes.pkl` (as "unknown"), then computes what is unknown, then writes the result if no other
//! process wrote in between. Where little was announced it is read, hashed and recorded in one go (`announced.rs`).
//! Both files are OpenStack Swift's, and its daemons may do the same meanwhile.
//! Always holds: `hashes.invalid` is emptied only after `hashes.pkl` says as much on stable storage (computed
//! hashes need not be there: what is on it then doubts them still, and rubbish is taken for nothing); a
//! hash is computed from a listing that began after its announcement was read; without changes
//! no directory is listed, no lock is taken and no object file is opened. What cannot be read costs its own suffix.
//! Deliberately absent: fragments of erasure-coded policies, who compares hashes and why.
//!
//! | question | file |
//! |---|---|
//! | what `hashes.pkl` says | `../hashes_record.rs` |
//! | what was announced, if that is little | `announced.rs` |
//! | the hash of one suffix | `suffix.rs` |
//! | one object by its files' names; removing what others hold | `objects.rs` |

mod announced;
mod objects;
mod suffix;

use super::announcements::{announce_suffix, set_aside};
use super::hashes_record::HashesRecord;
use super::layout::{HASHES, INVALIDATIONS, LOCK};
use super::strange::{self, LOCK_WAIT};
use super::{EngineState, FilesEngine};
use crate::error::EngineError;
use crate::key::PartitionKey;
use crate::metadata::ObjectMetadata;
use crate::replica::{MOST_SEEN, PartitionLock, Rehash, Replica, SeenVersions, SuffixHashes, Versions};
use crate::suffixes::Suffix;
use durable_fs::Locked;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::{FaultKind, PathHash, PolicyIndex};
use world::files::{Directory, FileKind, own_names};

/// Held while a whole partition is sent or received.
const REPLICATION_LOCK: &str = ".lock-replication";
/// 4096 suffixes take a quarter of a mebibyte.
const LONGEST_HASHES: u64 = 4 << 20;
/// A million announcements.
const LONGEST_INVALIDATIONS: u64 = 4 << 20;
/// Each retry means that another process recorded something in between.
const RETRIES: usize = 10;

/// A partition's directory, and what is recorded there.
struct Partition<'a> {
    state: &'a EngineState,
    key: PartitionKey,
    path: PathBuf,
}

/// A directory, and the names of directories in it.
type Opened = (Box<dyn Directory>, Vec<String>);

/// What is recorded, and the bytes it was read from.
#[derive(Default)]
struct Recorded {
    record: Option<HashesRecord>,
    bytes: Option<Vec<u8>>,
}

impl<'a> Partition<'a> {
    fn new(state: &'a EngineState, key: PartitionKey) -> Self {
        let path = state.layout.partition(key.policy, key.partition);
        Self { state, key, path }
    }

    fn hashes(&self, rehash: Rehash<'_>) -> Result<SuffixHashes, EngineError> {
        for attempt in 1.. {
            // Looked at before the record is read: what another process moves there in between is then found.
            let announced = self.is_announced()?;
            if announced
                && attempt == 1
                && !rehash.list
                && let Some(found) = self.hashes_of_few(rehash)?
            {
                return Ok(found);
            }
            let recorded = match announced {
                true => self.consolidated()?,
                false => self.recorded(),
            };
            let mut record = recorded.record.clone().unwrap_or_default();
            let mut changed = false;
            if rehash.list || recorded.record.is_none() {
                let Some(found) = self.suffixes()? else {
                    return Ok(SuffixHashes::default());
                };
                changed |= record.learn(found) || recorded.record.is_none();
            }
            changed |= record.doubt(rehash.suffixes.iter().map(String::as_str));
            let mut seen = rehash.seen.then(SeenVersions::new);
            changed |= !record.unknown().is_empty();
            let computed = self.hash_unknown(&mut record, seen.as_mut())?;
            // What turned out as it was needs no writing.
            let changed = changed && recorded.record.as_ref() != Some(&record);
            if !changed || self.keep(&record, &recorded, attempt == RETRIES)? {
                return Ok(SuffixHashes {
                    unreadable: record.unknown().len(),
                    hashes: record.into_hashes(),
                    computed,
                    seen: seen.unwrap_or_default(),
                });
            }
        }
        Ok(SuffixHashes::default())
    }

    /// Hashes what is unknown; how many suffixes there are of those. One in which something cannot be read stays
    /// unknown: the others are not to wait for it.
    fn hash_unknown(
        &self,
        record: &mut HashesRecord,
        mut seen: Option<&mut SeenVersions>,
    ) -> Result<usize, EngineError> {
        let (mut computed, mut objects) = (0, 0);
        for suffix in record.unknown() {
            let Some(hashed) = self.unless_unreadable(self.hash_suffix(suffix))? else {
                continue;
            };
            record.know(suffix, hashed.as_ref().map(|hashed| hashed.hash));
            let Some(hashed) = hashed else {
                continue;
            };
            computed += 1;
            objects += hashed.objects.len();
            if let Some(seen) = seen.as_mut().filter(|_| objects <= MOST_SEEN) {
                seen.insert(suffix, hashed.objects);
            }
        }
        Ok(computed)
    }

    /// `None` where one file or directory could not be read, which is said; the drive is well as far as is known.
    fn unless_unreadable<T>(&self, outcome: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
        match outcome {
            Err(error) if error.kind() == FaultKind::Item => {
                tracing::error!(device = self.state.config.name, "left out of replication: {error}");
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Announces a suffix whose recorded hash is not what its files amount to.
    fn recheck(&self, name: &str) -> Result<(), EngineError> {
        let (Some(record), Some(suffix)) = (self.recorded().record, Suffix::parse(name)) else {
            return Ok(()); // everything is hashed anew
        };
        if !record.is_unknown(suffix) && self.differs(suffix, record.hash_of(suffix))? {
            announce_suffix(self.state, &self.path, name)?;
        }
        Ok(())
    }

    /// Whether any change is announced.
    fn is_announced(&self) -> Result<bool, EngineError> {
        let invalidations = self.path.join(INVALIDATIONS);
        match self.state.device.files().info_of_name(&invalidations) {
            Ok(info) => Ok(info.size > 0 || info.kind != FileKind::File),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(self.state.io("look at", &invalidations, error)),
        }
    }

    /// What is recorded, with the announced changes, which are moved there.
    fn consolidated(&self) -> Result<Recorded, EngineError> {
        let files = self.state.device.files();
        let invalidations = self.path.join(INVALIDATIONS);
        let locked = self.lock()?;
        if strange::is_at(self.state, &invalidations) {
            let (record, bytes) = (None, Some(set_aside(self.state, self.key.policy, &self.path)?));
            return Ok(Recorded { record, bytes });
        }
        let mut recorded = self.recorded();
        let announced = match files.read_here(&invalidations, LONGEST_INVALIDATIONS) {
            Ok(announced) => announced,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                tracing::warn!(
                    "{}: too long to be read; all suffixes are hashed anew",
                    invalidations.display()
                );
                recorded.record = None;
                vec![]
            }
            Err(error) => return Err(self.state.io("read", &invalidations, error)),
        };
        let announced = String::from_utf8_lossy(&announced);
        let announced = || announced.lines().map(str::trim);
        if !announced().all(is_announcement) {
            let path = invalidations.display();
            tracing::warn!("{path}: holds lines that are no suffixes; all suffixes are hashed anew");
            recorded.record = None;
        }
        let changed = (recorded.record.as_mut()).is_some_and(|record| record.doubt(announced()));
        match (&recorded.record, changed) {
            (Some(record), true) => recorded.bytes = Some(self.write(record)?),
            // Everything will be hashed anew; a record that says so stays so.
            (None, _) if recorded.bytes.is_some() => recorded.bytes = Some(self.write(&HashesRecord::invalid())?),
            _ => {}
        }
        locked
            .clear_hints(INVALIDATIONS)
            .map_err(|error| self.state.blame(error))?;
        Ok(recorded)
    }

    fn recorded(&self) -> Recorded {
        let Some(bytes) = self.bytes() else {
            return Recorded::default();
        };
        let record = match HashesRecord::decode(&bytes) {
            Ok(record) => Some(record).filter(HashesRecord::is_valid),
            Err(why) => {
                let path = self.path.join(HASHES);
                tracing::warn!("{}: {why}; all suffixes are hashed anew", path.display());
                None
            }
        };
        let bytes = Some(bytes);
        Recorded { record, bytes }
    }

    /// What the record is read from; `None` where there is none, or none that can be read.
    fn bytes(&self) -> Option<Vec<u8>> {
        let path = self.path.join(HASHES);
        match self.state.device.files().read_here(&path, LONGEST_HASHES) {
            Ok(bytes) => Some(bytes),
            // In the partition's place may be a file; said when it is to be listed.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
            Err(error) => {
                tracing::warn!(
                    "{}: cannot be read: {error}; all suffixes are hashed anew",
                    path.display()
                );
                None
            }
        }
    }

    /// Records what was computed, unless another process recorded something meanwhile; whether there is
    /// nothing left to do. A device that takes no writes is no reason not to know.
    fn keep(&self, record: &HashesRecord, before: &Recorded, last: bool) -> Result<bool, EngineError> {
        let kept = self.lock().and_then(|_locked| {
            let same = self.bytes() == before.bytes;
            if same {
                self.write_result(record)?;
            }
            Ok(same)
        });
        match kept {
            Ok(same) => Ok(same || last),
            Err(error) => {
                tracing::warn!("suffix hashes are not kept: {error}");
                Ok(true)
            }
        }
    }

    /// Without making it durable: were it lost, what was announced would be computed once more. But doubts are written
    /// durably.
    fn write_result(&self, record: &HashesRecord) -> Result<(), EngineError> {
        match record.unknown().is_empty() {
            true => record.write_undurably(self.state, self.key.policy, &self.path),
            false => self.write(record).map(drop),
        }
    }

    /// Durably.
    fn write(&self, record: &HashesRecord) -> Result<Vec<u8>, EngineError> {
        record.write(self.state, self.key.policy, &self.path)
    }

    fn lock(&self) -> Result<Locked, EngineError> {
        let locked = strange::lock(self.state, &self.path, LOCK, LOCK_WAIT);
        locked.map_err(|error| self.state.blame(error))
    }

    /// The suffix directories; `None` when there is no such partition.
    fn suffixes(&self) -> Result<Option<Vec<Suffix>>, EngineError> {
        let names = self.names(&self.path)?;
        Ok(names.map(|names| names.iter().filter_map(|name| Suffix::parse(name)).collect()))
    }

    /// The names of directories in a directory; `None` when there is no such directory.
    fn names(&self, path: &Path) -> Result<Option<Vec<String>>, EngineError> {
        Ok(self.opened(path)?.map(|(_, names)| names))
    }

    /// [`Partition::names`], and the directory.
    fn opened(&self, path: &Path) -> Result<Option<Opened>, EngineError> {
        let directory = match self.state.device.files().open_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.state.present().map(|()| None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                tracing::warn!("{}: is no directory; left alone", path.display());
                return Ok(None);
            }
            other => other.map_err(|error| self.state.io("open", path, error))?,
        };
        let names = own_names(&*directory, path).map_err(|error| self.state.io("list", path, error))?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        Ok(Some((directory, names)))
    }
}

/// Whether a line of announcements is whole. A power cut may leave a part of the last one, to which the next is
/// appended: what such a line announced cannot be known.
fn is_announcement(line: &str) -> bool {
    line.is_empty() || Suffix::parse(line).is_some()
}

/// Compares the recorded hash of a suffix with its files, and has it computed again if they disagree: a power cut keeps
/// files that were synced, and may take their announcement, which was not.
pub(super) fn recheck(state: &EngineState, key: PartitionKey, suffix: &str) -> Result<(), EngineError> {
    Partition::new(state, key).recheck(suffix)
}

/// See [`Replica::name_of`].
pub(super) fn name_of(state: &EngineState, key: PartitionKey, hash: PathHash) -> Result<Option<String>, EngineError> {
    Partition::new(state, key).name_of(hash)
}

impl Replica for FilesEngine {
    fn sweep(&self) {
        let state = &self.state;
        let now = state.world.clock.now().seconds();
        state.sweep(Some(now.saturating_sub(state.config.reclaim_age.as_secs())));
    }

    fn prepare(&self, policy: PolicyIndex) -> Result<(), EngineError> {
        self.state.ready()?;
        let made = self
            .state
            .device
            .provide_directories(&self.state.layout.objects(policy));
        made.map_err(|error| self.state.blame(error))
    }

    fn suffix_hashes(&self, partition: PartitionKey, rehash: Rehash<'_>) -> Result<SuffixHashes, EngineError> {
        self.state.ready_and_synced()?;
        Partition::new(&self.state, partition).hashes(rehash)
    }

    fn is_changed(&self, partition: PartitionKey) -> Option<bool> {
        let invalidations = Partition::new(&self.state, partition).path.join(INVALIDATIONS);
        match self.state.device.files().info_of_name(&invalidations) {
            Ok(info) => Some(info.size > 0 || info.kind != FileKind::File),
            Err(error) => (error.kind() != io::ErrorKind::NotADirectory).then_some(false),
        }
    }

    fn make_way(&self, partition: PartitionKey) -> Result<(), EngineError> {
        self.state.ready()?;
        let path = Partition::new(&self.state, partition).path;
        let made = strange::make_way_for(&self.state, &path, FileKind::Directory);
        made.map_err(|error| self.state.blame(error))
    }

    fn invalidate(&self, partition: PartitionKey, suffixes: &[String]) -> Result<(), EngineError> {
        self.state.ready()?;
        let partition = Partition::new(&self.state, partition);
        for suffix in suffixes.iter().filter(|suffix| super::layout::is_suffix(suffix)) {
            // Of no use to a partition that is not there; a standing hint needs no watching here.
            announce_suffix(&self.state, &partition.path, suffix)?;
        }
        // The node that brought them by other means may now remove its own.
        let synced = self.state.device.sync_everything();
        synced.map_err(|error| self.state.blame(error))
    }

    fn lock_partition(&self, partition: PartitionKey, wait: Duration) -> Result<PartitionLock, EngineError> {
        self.state.ready()?;
        let partition = Partition::new(&self.state, partition);
        match strange::lock(&self.state, &partition.path, REPLICATION_LOCK, wait) {
            Ok(locked) => Ok(PartitionLock::new(Some(Box::new(locked)))),
            Err(error) if error.is_absent() => self.state.present().map(|()| PartitionLock::new(None)),
            Err(error) => Err(self.state.blame(error)),
        }
    }

    fn versions(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<Versions>, EngineError> {
        self.state.ready_and_synced()?;
        Partition::new(&self.state, partition).versions(hash)
    }

    fn versions_of(&self, partition: PartitionKey, hashes: &[PathHash]) -> Result<Vec<Option<Versions>>, EngineError> {
        self.state.ready_and_synced()?;
        Partition::new(&self.state, partition).versions_of(hashes)
    }

    fn versions_under(&self, partition: PartitionKey, suffix: &str) -> Result<Vec<(PathHash, Versions)>, EngineError> {
        self.state.ready_and_synced()?;
        Partition::new(&self.state, partition).versions_under(suffix)
    }

    fn name_of(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<String>, EngineError> {
        self.state.ready_and_synced()?;
        Partition::new(&self.state, partition).name_of(hash)
    }

    fn lone_post(&self, partition: PartitionKey, hash: PathHash) -> Result<Option<ObjectMetadata>, EngineError> {
        self.state.ready()?;
        Partition::new(&self.state, partition).lone_post(hash)
    }

    fn forget(&self, partition: PartitionKey, hash: PathHash, versions: &Versions) -> Result<bool, EngineError> {
        self.state.ready()?;
        Partition::new(&self.state, partition).forget(hash, versions)
    }

    fn forget_partition(&self, partition: PartitionKey) -> Result<bool, EngineError> {
        self.state.ready()?;
        Partition::new(&self.state, partition).forget_all()
    }
}
