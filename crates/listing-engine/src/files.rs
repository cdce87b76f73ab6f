//! The file steps of databases: publish, append, lock, quarantine. Nothing else in this crate renames or syncs.
//!
//! Always holds: what a function here has returned `Ok` for survives power loss, directory entries
//! included. Names are handed in; nothing here knows what is in a file.

use crate::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long a lock is waited for, as OpenStack does.
const LOCK_TRIES: u32 = 2_000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Makes `dir` and its missing parents, each durable, also those that somebody else has just made and
/// perhaps not synced yet. `device` itself is never made: when it is not mounted, writing must fail
/// instead of filling the disk below the mount point.
pub(crate) fn make_dirs(dir: &Path, device: &Path) -> Result<(), Error> {
    if dir == device && dir.is_dir() {
        return Ok(());
    }
    let parent = dir
        .parent()
        .filter(|_| dir != device)
        .ok_or_else(|| Error::io("find the device", device, io::ErrorKind::NotFound.into()))?;
    make_dirs(parent, device)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::io("make the directory", dir, error)),
        _ => sync_dir(parent),
    }
}

/// Makes the entries of `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir)
        .and_then(|handle| handle.sync_all())
        .map_err(|error| Error::io("sync the directory", dir, error))
}

/// Syncs the finished `staged` file and gives it its name, whose directory must exist.
/// The caller holds the lock that keeps others from taking the name meanwhile.
pub(crate) fn publish(staged: &Path, target: &Path) -> Result<(), Error> {
    File::open(staged)
        .and_then(|file| file.sync_all())
        .map_err(|error| Error::io("sync", staged, error))?;
    fs::rename(staged, target).map_err(|error| Error::io("publish", target, error))?;
    target.parent().map_or(Ok(()), sync_dir)
}

/// Gives a file that nobody relies on yet another name; not durable.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| Error::io("name", to, error))
}

/// Appends `bytes`; durable on return, and undone as far as possible on failure.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |error| Error::io("append to", path, error);
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(fail)?;
    let before = file.metadata().map_err(fail)?;
    if let (0, Some(parent)) = (before.len(), path.parent()) {
        // The name first: whoever finds content in the file may rely on its name.
        sync_dir(parent)?;
    }
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_data()) {
        // A remainder would only be skipped later with a warning: losing this race is harmless.
        let _ = file.set_len(before.len());
        return Err(fail(error));
    }
    Ok(())
}

/// Empties the file, durably.
pub(crate) fn truncate(path: &Path) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(0).and_then(|()| file.sync_data()))
        .map_err(|error| Error::io("empty", path, error))
}

/// The whole file; empty when there is none.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|error| Error::io("read", path, error)),
    }
}

/// Its length; 0 when there is none.
pub(crate) fn length(path: &Path) -> Result<u64, Error> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::io("examine", path, error)),
    }
}

/// What tells a file from its replacement of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// The identity of the file at `path`.
pub(crate) fn identity(path: &Path) -> Result<Identity, Error> {
    match fs::metadata(path) {
        Ok(found) => Ok(Identity(found.dev(), found.ino())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(Error::NotFound { path: path.to_owned() })
        }
        Err(error) => Err(Error::io("examine", path, error)),
    }
}

/// Holds an advisory lock until dropped.
pub(crate) struct Lock {
    _file: File,
}

/// Takes the lock of a file, made when missing. On `.lock` it is the one that OpenStack's services take
/// before they touch the pending file.
pub(crate) fn lock(path: &Path) -> Result<Lock, Error> {
    let file = match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        Err(error) => return Err(Error::io("open the lock", path, error)),
    };
    for _ in 0..LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_still(&file, path) => return Ok(Lock { _file: file }),
            // Removed while it was waited for: it keeps nobody out any more.
            Ok(()) => return lock(path),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => sleep(LOCK_PAUSE),
            Err(error) => return Err(Error::io("lock", path, error.into())),
        }
    }
    Err(Error::Busy { path: path.to_owned() })
}

fn is_still(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Removes a database and the directory that was its own. Whatever a crash leaves is either whole or
/// no database. The caller holds its lock.
pub(crate) fn remove_database(hash_dir: &Path, pending: &Path, database: &Path) -> Result<(), Error> {
    discard(pending);
    fs::remove_file(database).map_err(|error| Error::io("remove", database, error))?;
    fs::remove_dir_all(hash_dir).map_err(|error| Error::io("remove", hash_dir, error))
}

/// Makes `link` lead to `target`, durably; one that is there already stays. Its directories may be taken away
/// meanwhile by [`unlink`] beside it, and are made again.
pub(crate) fn link(link: &Path, target: &Path, device: &Path) -> Result<(), Error> {
    let parent = link.parent().unwrap_or(device);
    for last in [false, true] {
        if fs::symlink_metadata(link).is_ok() {
            return Ok(());
        }
        make_dirs(parent, device)?;
        match symlink(target, link) {
            Ok(()) => return sync_dir(parent),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !last => {}
            Err(error) => return Err(Error::io("link", link, error)),
        }
    }
    Ok(())
}

/// Takes `link` away, and up to `levels` directories above it that are empty then. Not durable: one that comes
/// back is taken away by whoever meets it.
pub(crate) fn unlink(link: &Path, levels: usize) -> Result<(), Error> {
    match fs::remove_file(link) {
        Ok(()) => remove_empty_parents(link, levels),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(Error::io("take away the link", link, error)),
    }
    Ok(())
}

/// Removes the directory above `path` and the one above that, up to `levels`, while they are empty.
pub(crate) fn remove_empty_parents(path: &Path, levels: usize) {
    for parent in path.ancestors().skip(1).take(levels) {
        if fs::remove_dir(parent).is_err() {
            return;
        }
    }
}

/// Removes directories that are empty, down to `depth` levels below `directory`, and itself.
pub(crate) fn remove_empty_below(directory: &Path, depth: usize) {
    if depth > 0 {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.for_each(|entry| remove_empty_below(&entry.path(), depth - 1));
    }
    // Fails, as it should, when something is in it.
    let _ = fs::remove_dir(directory);
}

/// Removes a file unless somebody holds its lock.
pub(crate) fn remove_if_abandoned(path: &Path) -> bool {
    let abandoned = File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
    abandoned && fs::remove_file(path).is_ok()
}

/// Moves a damaged database's directory to `wanted`, or beside it when that is taken.
pub(crate) fn quarantine(hash_dir: &Path, wanted: &Path, device: &Path) -> Result<PathBuf, Error> {
    let parent = wanted.parent().unwrap_or(wanted);
    make_dirs(parent, device)?;
    for attempt in 0..1_000 {
        let target = match attempt {
            0 => wanted.to_owned(),
            n => PathBuf::from(format!("{}-{n}", wanted.display())),
        };
        match fs::rename(hash_dir, &target) {
            Ok(()) => {
                hash_dir.parent().map_or(Ok(()), sync_dir)?;
                sync_dir(parent)?;
                return Ok(target);
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc_codes::EEXIST | libc_codes::ENOTEMPTY)) => {}
            Err(error) => return Err(Error::io("quarantine", hash_dir, error)),
        }
    }
    Err(Error::io(
        "quarantine",
        hash_dir,
        io::Error::other("a thousand quarantined copies exist already"),
    ))
}

/// The two codes of a rename onto a directory that is not empty.
mod libc_codes {
    pub(super) const EEXIST: i32 = rustix::io::Errno::EXIST.raw_os_error();
    pub(super) const ENOTEMPTY: i32 = rustix::io::Errno::NOTEMPTY.raw_os_error();
}

/// Removes a file that may be there; failing to is not worth more than its bytes.
pub(crate) fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}
