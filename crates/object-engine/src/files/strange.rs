//! What is no file in the place of one of ours: a symbolic link, a directory, a pipe called `.lock`, `hashes.invalid`,
//! `hashes.pkl`, or like a file of an object; and what is no directory in the place of a partition's.
//!
//! It would keep all services out of the partition, so it goes to quarantine as it is, with a line that names it; no
//! link is followed.
//! Always holds: the lock of the directory itself is held while its entry is looked at and moved, so that of two
//! processes the second finds what is in place by then, and leaves it. OpenStack's daemons move nothing away.

use super::EngineState;
use durable_fs::{FsError, Locked};
use std::path::Path;
use std::time::Duration;
use world::files::{FileKind, Purpose};

/// As long as OpenStack Swift waits for a partition's lock.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Whether something is there that is no file.
pub(super) fn is_at(state: &EngineState, path: &Path) -> bool {
    is_other(state, path, FileKind::File)
}

/// Whether something is there, and not of this kind.
fn is_other(state: &EngineState, path: &Path, kind: FileKind) -> bool {
    let found = state.device.files().info_of_name(path);
    found.is_ok_and(|found| found.kind != kind)
}

/// Moves it away, unless it has gone by now.
pub(super) fn make_way(state: &EngineState, path: &Path) -> Result<(), FsError> {
    make_way_for(state, path, FileKind::File)
}

/// Moves away what is not of the kind that belongs there.
pub(super) fn make_way_for(state: &EngineState, path: &Path, kind: FileKind) -> Result<(), FsError> {
    let parent = path.parent().unwrap_or(state.device.root());
    let directory = state.device.files().open(parent, Purpose::Read);
    let directory = directory.map_err(FsError::io("open", parent))?;
    directory.lock(LOCK_WAIT).map_err(FsError::io("lock", parent))?;
    if !is_other(state, path, kind) {
        return Ok(());
    }
    let to = state.device.move_aside(path, &state.layout.aside(path))?;
    let wanted = match kind {
        FileKind::Directory => "directory",
        _ => "file",
    };
    tracing::warn!("{}: is no {wanted}; moved to {}", path.display(), to.display());
    Ok(())
}

/// Does what a file at `path` is needed for, if need be in a second attempt, when way has been made for it.
pub(super) fn making_way<T>(
    state: &EngineState,
    path: &Path,
    attempt: impl Fn() -> Result<T, FsError>,
) -> Result<T, FsError> {
    match attempt() {
        Err(_) if is_at(state, path) => make_way(state, path).and_then(|()| attempt()),
        done => done,
    }
}

/// Takes the lock of a partition's directory that is kept in the file `name`.
pub(super) fn lock(state: &EngineState, partition: &Path, name: &str, wait: Duration) -> Result<Locked, FsError> {
    making_way(state, &partition.join(name), || {
        state.device.lock_named(partition, name, wait)
    })
}
