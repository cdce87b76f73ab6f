//! The file steps of databases: publish, append, lock, quarantine. Nothing else in this crate renames or syncs.
//!
//! Always holds: what a function here has returned `Ok` for survives power loss, directory entries
//! included; where a device must be mounted, nothing is made below its bare mount point. Names are handed in; nothing here knows what is in a file.

use crate::Error;
use rustix::fs::{AtFlags, FlockOperation, Mode, flock, fstat, mkdirat, statat};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long a lock is waited for, as OpenStack does.
const LOCK_TRIES: u32 = 2_000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Where a device is, and whether that is a mount point.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceRoot {
    path: PathBuf,
    must_be_mounted: bool,
}

impl DeviceRoot {
    /// The device at `path`; if it `must_be_mounted` (`mount_check`), no directory is made there while it is not.
    pub fn new(path: impl Into<PathBuf>, must_be_mounted: bool) -> Self {
        Self {
            path: path.into(),
            must_be_mounted,
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl<P: Into<PathBuf>> From<P> for DeviceRoot {
    /// A directory that need not be a mount point.
    fn from(path: P) -> Self {
        Self::new(path, false)
    }
}

/// Makes `dir` and its missing parents, each durable, also those that somebody else has just made and
/// perhaps not synced yet. The device itself is never made: when it is not mounted, writing must fail
/// instead of filling the disk below the mount point.
pub(crate) fn make_dirs(dir: &Path, device: &DeviceRoot) -> Result<(), Error> {
    let absent = || Error::io("find the device", &device.path, io::ErrorKind::NotFound.into());
    if dir == device.path {
        return if dir.is_dir() { Ok(()) } else { Err(absent()) };
    }
    let parent = dir.parent().ok_or_else(absent)?;
    if parent == device.path {
        return make_first(dir, device);
    }
    make_dirs(parent, device)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::io("make the directory", dir, error)),
        _ => sync_dir(parent),
    }
}

/// Makes a directory in the root of the device. What is looked at is what it is made in, for a device may go away at any time.
fn make_first(dir: &Path, device: &DeviceRoot) -> Result<(), Error> {
    let root = File::open(&device.path).map_err(|error| Error::io("find the device", &device.path, error))?;
    if device.must_be_mounted && !is_mounted(&root).map_err(|error| Error::io("look at", &device.path, error))? {
        let unmounted = io::Error::new(io::ErrorKind::NotFound, "it is not mounted");
        return Err(Error::io("use the device", &device.path, unmounted));
    }
    let name = dir.file_name().unwrap_or_default();
    match mkdirat(&root, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
        Err(error) if error != Errno::EXIST => Err(Error::io("make the directory", dir, error.into())),
        _ => root
            .sync_all()
            .map_err(|error| Error::io("sync the directory", &device.path, error)),
    }
}

/// Whether a directory is the root of what is mounted there.
fn is_mounted(directory: &File) -> io::Result<bool> {
    let here = fstat(directory)?;
    let above = statat(directory, "..", AtFlags::empty())?;
    Ok(here.st_dev != above.st_dev || here.st_ino == above.st_ino)
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
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(LOCK_PAUSE),
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
pub(crate) fn link(link: &Path, target: &Path, device: &DeviceRoot) -> Result<(), Error> {
    let parent = link.parent().unwrap_or(&device.path);
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

/// Removes directories that are empty, down to `depth` levels below `directory`, and itself; nothing through a link, which
/// leads elsewhere.
pub(crate) fn remove_empty_below(directory: &Path, depth: usize) {
    if fs::symlink_metadata(directory).is_ok_and(|info| info.is_symlink()) {
        return;
    }
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
pub(crate) fn quarantine(hash_dir: &Path, wanted: &Path, device: &DeviceRoot) -> Result<PathBuf, Error> {
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
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                ) => {}
            Err(error) => return Err(Error::io("quarantine", hash_dir, error)),
        }
    }
    Err(Error::io(
        "quarantine",
        hash_dir,
        io::Error::other("a thousand quarantined copies exist already"),
    ))
}

/// Removes a file that may be there; failing to is not worth more than its bytes.
pub(crate) fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_told_from_directories() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_mounted(&File::open(dir.path()).unwrap()).unwrap());
        for mounted in ["/proc", "/"] {
            assert!(is_mounted(&File::open(mounted).unwrap()).unwrap(), "{mounted}");
        }
    }
}
