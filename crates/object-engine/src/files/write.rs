//! Writing: staged → metadata → synced → announced → published → the obsolete removed.
//!
//! The suffix is announced before the file gets its name, and the announcement confirmed after that
//! (`announcements.rs`).

use super::EngineState;
use super::announcements::{announce, confirm};
use super::hash_directory::remove_obsolete;
use super::space::SpaceError;
use crate::engine::{Commit, ObjectWriter};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use crate::parts::{check_commit, named};
use crate::rules::{FileName, FilePart};
use durable_fs::Staged;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A body that is only promised takes no more room than this from others.
const ALLOCATED_AHEAD: u64 = 64 << 20;
/// Below this the file system allocates well without being asked to.
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

    fn finish(self, file: FileName, metadata: &ObjectMetadata) -> Result<(), EngineError> {
        let Self {
            state,
            key,
            directory,
            staged,
            ..
        } = self;
        let blame = |error| state.blame(error);
        state.write_metadata(&staged, metadata)?;
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

    fn hold_nothing(&mut self) -> Result<(), EngineError> {
        self.staged.append_gathered().map_err(|error| self.state.blame(error))
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

impl EngineState {
    pub(super) fn admit(&self, size: u64) -> Result<(), EngineError> {
        let root = self.device.root();
        let asked = self
            .space
            .admit(size, self.world.clock.elapsed(), || self.device.files().space(root));
        match asked {
            Ok(()) => Ok(()),
            Err(SpaceError::Io(error)) => {
                if error.kind() == io::ErrorKind::NotFound {
                    self.present()?;
                }
                Err(self.io("ask for the room on", root, error))
            }
            Err(short) => Err(EngineError::NoSpace {
                device: self.config.name.clone(),
                why: short.to_string(),
            }),
        }
    }
}
