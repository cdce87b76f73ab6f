//! Announcing that a suffix changes: a line in `hashes.invalid`, after which replication hashes it again.
//!
//! The line comes before the file gets its name: a crash between the two costs a needless recalculation, the other
//! order would hide the change from replication. Another process that hashes the suffix may have taken the announcement
//! and listed the directory before the name was there; so it is made again unless it still stands then ([`confirm`]).

use super::EngineState;
use super::hashes_record::HashesRecord;
use super::layout::{INVALIDATIONS, LOCK};
use super::strange::{self, LOCK_WAIT};
use crate::error::EngineError;
use durable_fs::{FsError, Hint};
use std::path::Path;
use vocabulary::PolicyIndex;

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
        if let Some(key) = state.layout.partition_at(partition) {
            set_aside(state, key.policy, partition)?;
        }
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

/// Moves something away that is no file and yet in the place of announcements, which have been lost there: everything
/// is hashed anew, as the record then says; the record's bytes. The partition's lock is held.
pub(super) fn set_aside(state: &EngineState, policy: PolicyIndex, partition: &Path) -> Result<Vec<u8>, EngineError> {
    let written = HashesRecord::invalid().write(state, policy, partition)?;
    let made = strange::make_way(state, &partition.join(INVALIDATIONS));
    made.map(|()| written).map_err(|error| state.blame(error))
}
