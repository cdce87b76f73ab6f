//! Writing: staged → metadata → synced → announced → published → the obsolete removed.
//!
//! The suffix is announced in `hashes.invalid` before the file gets its name: a crash between the
//! two costs a needless recalculation, the other order would hide the change from replication. Who
//! hashes the suffix may have taken the announcement and listed the directory before the name was
//! there; so it is made again unless it still stands then.

use super::{EngineState, read, replica, strange, xattrs};
use crate::engine::{Commit, ObjectKey, ObjectWriter};
use crate::error::EngineError;
use crate::metadata::Metadata;
use crate::parts::{check_commit, named};
use crate::rules::{Choice, FileName, FilePart, choose, reclaimable};
use durable_fs::{FsError, Hint, Staged};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::files::Directory;

pub(super) const INVALIDATIONS: &str = "hashes.invalid";
/// The lock of a partition.
pub(super) const LOCK: &str = ".lock";
/// As long as OpenStack Swift waits for a partition's lock.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(10);
/// A body that is only promised takes no more room than this from others.
const ALLOCATED_AHEAD: u64 = 64 << 20;
/// Below this the file system allocates well without being told.
const WORTH_ALLOCATING: u64 = 64 * 1024;

/// From this length on, copying through the page cache costs more than a reader saves by it.
const TOO_LONG_FOR_THE_CACHE: u64 = 512 * 1024;

/// An [`ObjectWriter`] over a staged file.
pub(super) struct FileWriter {
    state: Arc<EngineState>,
    key: ObjectKey,
    directory: PathBuf,
    staged: Staged,
    /// Bytes that are on stable storage already.
    synced: u64,
}

impl FileWriter {
    pub(super) fn begin(state: &Arc<EngineState>, key: &ObjectKey, expected: Option<u64>) -> Result<Self, EngineError> {
        state.ready()?;
        state.admit(expected.unwrap_or(0))?;
        let directory = state.layout.hash_directory(key);
        let mut staged = stage(state, key, &directory)?;
        prepare_for(state, &mut staged, expected.unwrap_or(0))?;
        Ok(Self {
            staged,
            state: state.clone(),
            key: key.clone(),
            directory,
            synced: 0,
        })
    }

    fn finish(self, file: FileName, metadata: &Metadata) -> Result<(), EngineError> {
        let Self {
            state,
            key,
            directory,
            staged,
            ..
        } = self;
        let blame = |error| state.blame(error);
        xattrs::write(&staged, metadata).map_err(blame)?;
        let too_long_to_cache = staged.length() > state.config.keep_cache_size;
        let synced = staged.sync().map_err(blame)?;
        if too_long_to_cache {
            synced.forget_cached();
        }
        let announced = announce(&state, &directory)?;
        let opened = synced.publish(&file.to_string()).map_err(blame)?;
        confirm(&state, &directory, announced);
        state.hot.forget(&key);
        remove_obsolete(&state, &key, &directory, &*opened);
        Ok(())
    }
}

impl ObjectWriter for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.staged.write(bytes).map_err(|error| self.state.blame(error))?;
        if self.staged.length() - self.synced >= self.state.config.sync_every {
            let pushed = self.staged.sync_part(self.synced);
            pushed.map_err(|error| self.state.blame(error))?;
            self.synced = self.staged.length();
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.staged.length()
    }

    fn commit(self: Box<Self>, commit: Commit) -> Result<(), EngineError> {
        check_commit(&commit, self.staged.length())?;
        let (timestamp, part) = (commit.timestamp, FilePart::Data);
        let metadata = named(commit.metadata, &self.key);
        self.finish(FileName { timestamp, part }, &metadata)
    }
}

/// Tells the file system of a body of this length, where that helps it.
pub(super) fn prepare_for(state: &EngineState, staged: &mut Staged, size: u64) -> Result<(), EngineError> {
    if size >= TOO_LONG_FOR_THE_CACHE {
        staged.bypass_cache();
    }
    if state.config.fallocate && size >= WORTH_ALLOCATING {
        let allocated = staged.allocate(size.min(ALLOCATED_AHEAD));
        allocated.map_err(|error| state.blame(error))?;
    }
    Ok(())
}

/// Begins a file in an object's hash directory.
pub(super) fn stage(state: &EngineState, key: &ObjectKey, hash_directory: &Path) -> Result<Staged, EngineError> {
    let temporaries = state.layout.temporaries(key.policy);
    let staged = state.device.stage(hash_directory, temporaries);
    staged.map_err(|error| state.blame(error))
}

/// Moves a hash directory to quarantine; where it is now, or `None` when it was already gone.
pub(super) fn quarantine(
    state: &EngineState,
    key: &ObjectKey,
    directory: &Path,
    why: &str,
) -> Result<Option<PathBuf>, EngineError> {
    let announced = announce(state, directory)?;
    match state.device.move_aside(directory, &state.layout.quarantined(key)) {
        Ok(place) => {
            confirm(state, directory, announced);
            state.hot.forget(key);
            state.config.quarantined.tell();
            tracing::warn!(
                device = state.config.name,
                object = key.name,
                from = %directory.display(),
                to = %place.display(),
                why,
                "quarantined an object"
            );
            Ok(Some(place))
        }
        Err(error) if error.is_absent() => state.present().map(|()| None),
        Err(error) => Err(state.blame(error)),
    }
}

/// Writes down in the partition that a suffix must be hashed again.
pub(super) fn announce(state: &EngineState, hash_directory: &Path) -> Result<Option<Hint>, EngineError> {
    // A hash directory always has a suffix and a partition above it (`Layout`).
    match hash_directory
        .parent()
        .and_then(|suffix| Some((suffix.file_name()?, suffix.parent()?)))
    {
        Some((suffix, partition)) => announce_suffix(state, partition, &suffix.to_string_lossy()),
        None => Ok(None),
    }
}

/// [`announce`] of a suffix; `None` when there is no such partition.
pub(super) fn announce_suffix(
    state: &EngineState,
    partition: &Path,
    suffix: &str,
) -> Result<Option<Hint>, EngineError> {
    announce_lines(state, partition, &format!("{suffix}\n"))
}

/// [`announce`] of suffixes with a line each.
pub(super) fn announce_lines(state: &EngineState, partition: &Path, lines: &str) -> Result<Option<Hint>, EngineError> {
    // The partition was moved away meanwhile and starts anew, with nothing to invalidate.
    let unless_absent = |error: FsError| match error.is_absent() {
        true => Ok(None),
        false => Err(state.blame(error)),
    };
    let locked = match strange::lock(state, partition, LOCK, LOCK_WAIT) {
        Ok(locked) => locked,
        Err(error) => return unless_absent(error),
    };
    let append = || locked.append_hint(INVALIDATIONS, lines.as_bytes());
    let mut appended = append();
    if appended.is_err() && strange::is_at(state, &partition.join(INVALIDATIONS)) {
        replica::set_announcements_aside(state, partition)?;
        appended = append();
    }
    appended.map(Some).or_else(unless_absent)
}

/// Announces again what may have been taken note of before it had happened. It has happened now and is
/// durable: that replication may learn of it late is no reason to deny it.
pub(super) fn confirm(state: &EngineState, hash_directory: &Path, announced: Option<Hint>) {
    if announced.is_some_and(|hint| hint.stands()) {
        return;
    }
    if let Err(error) = announce(state, hash_directory) {
        let path = hash_directory.display();
        tracing::warn!(device = state.config.name, %error, "{path}: its change could not be announced");
    }
}

/// [`remove_obsolete`] in a directory that is not open.
pub(super) fn remove_obsolete_in(state: &EngineState, key: &ObjectKey, path: &Path) {
    match state.device.files().open_directory(path) {
        Ok(directory) => remove_obsolete(state, key, path, &*directory),
        // Moved or cleared away meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(
            device = state.config.name,
            object = key.name,
            %error,
            "could not look for obsolete files"
        ),
    }
}

/// Removes what the newest files made meaningless. The write is durable already: what cannot be
/// removed now is found obsolete again by every reader and goes with the next write.
pub(super) fn remove_obsolete(state: &EngineState, key: &ObjectKey, path: &Path, directory: &dyn Directory) {
    let removed = read::object_files(directory).and_then(|(mut names, mut files)| {
        clean(state, path, directory, &mut names, &mut files)?;
        Ok(names.is_empty())
    });
    let emptied = match removed {
        Ok(true) => state.device.remove_if_empty(path).map_err(|error| error.to_string()),
        Ok(false) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = emptied {
        tracing::warn!(
            device = state.config.name,
            object = key.name,
            error,
            "could not remove obsolete files"
        );
    }
}

/// Removes obsolete files and reclaimable tombstones, on the disk and from the two lists, which are of
/// one length; what the others amount to.
pub(super) fn clean(
    state: &EngineState,
    path: &Path,
    directory: &dyn Directory,
    names: &mut Vec<String>,
    files: &mut Vec<FileName>,
) -> io::Result<Choice> {
    let choice = choose(files);
    let now = state.world.clock.now();
    let horizon = Timestamp::from_seconds(now.seconds().saturating_sub(state.config.reclaim_age.as_secs()));
    let reclaimed = reclaimable(files, &choice, horizon);
    let mut gone: Vec<usize> = choice.obsolete.iter().chain(&reclaimed).copied().collect();
    if gone.is_empty() {
        return Ok(choice);
    }
    gone.sort_unstable();
    for &at in gone.iter().rev() {
        match directory.remove(&names[at]) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A directory, called like a file.
            Err(_) if strange::is_at(state, &path.join(&names[at])) => {
                strange::make_way(state, &path.join(&names[at])).map_err(io::Error::other)?;
            }
            other => other?,
        }
        names.remove(at);
        files.remove(at);
    }
    Ok(choose(files))
}

impl EngineState {
    pub(super) fn admit(&self, size: u64) -> Result<(), EngineError> {
        let root = self.device.root();
        let asked = self
            .space
            .admit(size, self.world.clock.elapsed(), || self.device.files().space(root));
        match asked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(EngineError::NoSpace {
                device: self.config.name.clone(),
                why,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.present()?;
                Err(self.io("ask for the room on", root, error))
            }
            Err(error) => Err(self.io("ask for the room on", root, error)),
        }
    }
}
