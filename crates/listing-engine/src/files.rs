//! The file steps of databases: publish, append, lock, quarantine. Nothing else in this crate renames or syncs.
//!
//! Always holds: what a method here has returned `Ok` for survives power loss, directory entries
//! included, unless it says that it does not; a failed sync, SQLite's own included, is reported to the drive's
//! [`Health`], and while that refuses writes nothing here writes; where a device must be mounted, nothing is made
//! below its bare mount point. Names are handed in; nothing here knows what is in a file. All goes through
//! [`FileSystem`], so that a simulated one sees every step.

mod removal;

use crate::Error;
use durable_fs::{FsError, Health, Symptom};
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{Databases, File, FileInfo, FileKind, FileSystem, Purpose};
use world::real_files::RealFiles;

/// How long a lock is waited for, as OpenStack does.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// A database that arrives is written to the drive in steps of so many bytes: a slow drive is not to take all of it in
/// one.
pub(crate) const SYNC_STEP: u64 = 16 << 20;
/// The most bytes of a file that is read whole; pending files are kept far below it.
const LARGEST: u64 = 1 << 30;

/// The file system that databases live on, and the health of the drive. All compare as equal, so that locations compare
/// by their paths.
#[derive(Clone)]
pub(crate) struct Disk {
    files: Arc<dyn FileSystem>,
    health: Option<Arc<Health>>,
}

impl Disk {
    /// The one of this machine.
    pub(crate) fn real() -> Self {
        Self {
            files: Arc::new(RealFiles),
            health: None,
        }
    }

    /// Refuses while the drive takes no writes.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        let checked = self.health.as_ref().map_or(Ok(()), |health| health.check_writable());
        checked.map_err(|refusal| Error::OutOfService(Arc::new(refusal)))
    }

    /// Reports that a sync failed: what was written to the drive since the last one may be lost. Where nothing
    /// tries the drive out (a daemon on its own), it costs its own write only: nothing would bring the drive back.
    pub(crate) fn sync_failed(&self, path: &Path, error: &io::Error) {
        if let Some(health) = self.health.as_ref().filter(|health| health.is_watched()) {
            health.sync_failed(path, error);
        }
    }

    /// The health of the drive, where it is judged.
    pub(crate) fn health(&self) -> Option<Arc<Health>> {
        self.health.clone()
    }

    /// Reports a failed write that was not a sync: the drive is tried out soon. A quota that is used up looks the
    /// same to SQLite, so that this alone stops no other write.
    pub(crate) fn suspect(&self) {
        self.health.iter().for_each(|health| health.suspect());
    }

    fn synced(&self, outcome: io::Result<()>, doing: &'static str, path: &Path) -> Result<(), Error> {
        match outcome {
            Ok(()) => {
                self.health.iter().for_each(|health| health.has_synced());
                Ok(())
            }
            Err(error) => {
                self.sync_failed(path, &error);
                Err(Error::unsynced(doing, path, error))
            }
        }
    }

    /// Where databases are kept that SQLite cannot open by their paths.
    pub(crate) fn databases(&self) -> Option<&dyn Databases> {
        self.files.databases()
    }

    /// Why a file cannot be opened for writing, if it cannot.
    pub(crate) fn writable(&self, path: &Path) -> Result<(), Error> {
        let opened = self.files.open(path, Purpose::Change);
        opened.map(drop).map_err(|error| Error::io("open", path, error))
    }

    /// Has SQLite open a file by its path.
    pub(crate) fn open_database(&self, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        match self.files.sqlite_vfs() {
            None => Connection::open_with_flags(path, flags),
            Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        }
    }

    /// Whether schemas are obeyed that Swift does not make.
    pub(crate) fn obeys_any_schema(&self) -> bool {
        self.files.obeys_any_schema()
    }

    pub(crate) fn info(&self, path: &Path) -> io::Result<FileInfo> {
        self.files.info(path)
    }

    /// Whether anything is there.
    pub(crate) fn exists(&self, path: &Path) -> Result<bool, Error> {
        Ok(self.kind_at(path)?.is_some())
    }

    /// Whether it is a directory, or a file.
    pub(crate) fn is(&self, path: &Path, kind: FileKind) -> Result<bool, Error> {
        Ok(self.kind_at(path)? == Some(kind))
    }

    /// What is there, if anything.
    fn kind_at(&self, path: &Path) -> Result<Option<FileKind>, Error> {
        match self.info(path) {
            Ok(info) => Ok(Some(info.kind)),
            Err(error) if Symptom::of(&error).is_absent() => Ok(None),
            Err(error) => Err(Error::io("look at", path, error)),
        }
    }

    /// The names in a directory, in no order.
    pub(crate) fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let entries = self.entries(directory)?;
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    }

    /// The names in a directory, and which of them are symbolic links.
    pub(crate) fn entries(&self, directory: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let mut entries = vec![];
        let opened = self.files.open_directory(directory)?;
        opened.list_links(&mut |name, is_link| entries.push((name.to_owned(), is_link)))?;
        Ok(entries)
    }

    /// Makes `dir` and its missing parents, each durable, also those that another process has just made
    /// and perhaps not synced yet. The device itself is never made: when it is not mounted, writing must fail
    /// instead of filling the disk below the mount point.
    pub(crate) fn make_dirs(&self, dir: &Path, device: &DeviceRoot) -> Result<(), Error> {
        self.check_writable()?;
        let absent = || missing(&device.path);
        if dir == device.path {
            return if self.is(dir, FileKind::Directory)? {
                Ok(())
            } else {
                Err(absent())
            };
        }
        let parent = dir.parent().ok_or_else(absent)?;
        if parent == device.path {
            return self.make_first(dir, device);
        }
        self.make_dirs(parent, device)?;
        match self.files.make_directory(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::io("make the directory", dir, error))
            }
            _ => self.sync_dir(parent),
        }
    }

    /// Makes a directory in the root of the device. What is looked at is what it is made in, for a device may go away
    /// at any time.
    fn make_first(&self, dir: &Path, device: &DeviceRoot) -> Result<(), Error> {
        let fail = |doing| move |error| Error::io(doing, &device.path, error);
        let root = match self.files.open_directory(&device.path) {
            Err(error) if Symptom::of(&error).is_absent() => return Err(missing(&device.path)),
            other => other.map_err(fail("find the device"))?,
        };
        if device.must_be_mounted && !root.is_mount_point().map_err(fail("look at"))? {
            return Err(Error::OutOfService(Arc::new(FsError::NotMounted(device.path.clone()))));
        }
        match root.make_directory(dir.file_name().unwrap_or_default()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::io("make the directory", dir, error))
            }
            _ => self.synced(root.sync(), "sync the directory", &device.path),
        }
    }

    /// Makes the entries of `dir` durable.
    pub(crate) fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        let doing = "sync the directory";
        let opened = self.files.open_directory(dir);
        let opened = opened.map_err(|error| Error::io(doing, dir, error))?;
        self.synced(opened.sync(), doing, dir)
    }

    /// Makes an empty file durably, unless there is one.
    pub(crate) fn make_empty(&self, path: &Path) -> Result<(), Error> {
        self.check_writable()?;
        if self.exists(path)? {
            return Ok(());
        }
        self.writer(path)?;
        path.parent().map_or(Ok(()), |parent| self.sync_dir(parent))
    }

    /// Syncs the finished `staged` file and gives it its name, whose directory must exist.
    /// The caller holds the lock that keeps others from taking the name meanwhile.
    pub(crate) fn publish(&self, staged: &Path, target: &Path) -> Result<(), Error> {
        self.check_writable()?;
        let opened = self.files.open(staged, Purpose::Read);
        let opened = opened.map_err(|error| Error::io("sync", staged, error))?;
        let size = opened.info().map_or(0, |info| info.size);
        let syncing = self.health.as_ref().map(|health| health.announce(size));
        self.synced(opened.sync(), "sync", staged)?;
        drop(syncing);
        let renamed = self.files.rename(staged, target);
        renamed.map_err(|error| Error::io("publish", target, error))?;
        target.parent().map_or(Ok(()), |parent| self.sync_dir(parent))
    }

    /// Gives a file that nothing relies on yet another name; not durable.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.files
            .rename(from, to)
            .map_err(|error| Error::io("name", to, error))
    }

    /// A file that is written piece by piece; not durable.
    pub(crate) fn writer(&self, path: &Path) -> Result<Box<dyn File>, Error> {
        self.check_writable()?;
        let opened = self.files.open(path, Purpose::Append);
        opened.map_err(|error| Error::io("create", path, error))
    }

    /// Has the system begin to write a long file to the drive, step by step, so that its sync has little left to do:
    /// between the steps others get their turn at the drive, and its health sees that something is done. Makes nothing
    /// durable by itself.
    pub(crate) fn write_back(&self, path: &Path) -> Result<(), Error> {
        let fail = |error| Error::io("write back", path, error);
        let file = self.files.open(path, Purpose::Read).map_err(fail)?;
        let size = file.info().map_err(fail)?.size;
        if size <= SYNC_STEP {
            return Ok(());
        }
        for from in (0..size).step_by(SYNC_STEP as usize) {
            self.check_writable()?;
            // Linux writes what is not on the drive yet before it may forget it, and lets syncs of others go first.
            file.forget_cached(from, SYNC_STEP.min(size - from)).map_err(fail)?;
            self.health.iter().for_each(|health| health.progressed());
        }
        Ok(())
    }

    /// Syncs what was written so far of a file that is not in use yet, so that the last sync is not all of it.
    pub(crate) fn sync_part(&self, file: &dyn File, path: &Path) -> Result<(), Error> {
        self.synced(file.sync(), "sync", path)
    }

    /// Appends `bytes`; durable on return, and undone as far as possible on failure.
    pub(crate) fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.check_writable()?;
        let doing = "append to";
        let fail = |error| Error::io(doing, path, error);
        let file = self.files.open(path, Purpose::Append).map_err(fail)?;
        let info = file.info().map_err(fail)?;
        if info.kind != FileKind::File {
            // A pipe takes what is written, and cannot be synced.
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
        }
        let before = info.size;
        if let (0, Some(parent)) = (before, path.parent()) {
            // The name first: a process that finds content in the file may rely on its name.
            self.sync_dir(parent)?;
        }
        let written = file.write_all_at(bytes, before).map_err(fail);
        let kept = written.and_then(|()| self.synced(file.sync(), doing, path));
        if kept.is_err() {
            // A remainder would only be skipped later with a warning: losing this race is harmless.
            let _ = file.set_len(before);
        }
        kept
    }

    /// Empties the file, durably.
    pub(crate) fn truncate(&self, path: &Path) -> Result<(), Error> {
        self.check_writable()?;
        let doing = "empty";
        let opened = self.files.open(path, Purpose::Change);
        let emptied = opened.and_then(|file| file.set_len(0).map(|()| file));
        let emptied = emptied.map_err(|error| Error::io(doing, path, error))?;
        self.synced(emptied.sync(), doing, path)
    }

    /// The whole file; empty when there is none.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        match self.files.read(path, LARGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|error| Error::io("read", path, error)),
        }
    }

    /// Its length; 0 when there is none.
    pub(crate) fn length(&self, path: &Path) -> Result<u64, Error> {
        match self.info(path) {
            Ok(found) => Ok(found.size),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::io("examine", path, error)),
        }
    }

    /// The identity of the file at `path`.
    pub(crate) fn identity(&self, path: &Path) -> Result<FileIdentity, Error> {
        match self.info(path) {
            Ok(found) => Ok(FileIdentity::of(&found)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(Error::NotFound { path: path.to_owned() })
            }
            Err(error) => Err(Error::io("examine", path, error)),
        }
    }

    /// Takes the lock of a file, made when missing. On `.lock` it is the one that OpenStack's services take
    /// before they touch the pending file.
    pub(crate) fn lock(&self, path: &Path) -> Result<Lock, Error> {
        let file = match self.files.open(path, Purpose::Append) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NotFound { path: path.to_owned() });
            }
            Err(error) => return Err(Error::io("open the lock", path, error)),
        };
        match file.lock(LOCK_WAIT) {
            Ok(()) if self.is_still(&*file, path) => Ok(Lock { _file: file }),
            // Removed while it was waited for: it keeps no other out any more.
            Ok(()) => self.lock(path),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Error::Busy { path: path.to_owned() }),
            Err(error) => Err(Error::io("lock", path, error)),
        }
    }

    fn is_still(&self, file: &dyn File, path: &Path) -> bool {
        match (file.info(), self.info(path)) {
            (Ok(open), Ok(named)) => FileIdentity::of(&open) == FileIdentity::of(&named),
            _ => false,
        }
    }

    /// Makes `link` lead to `target`, durably; one that is there already stays. Its directories may be taken away
    /// meanwhile by [`Disk::unlink`] beside it, and are made again.
    pub(crate) fn link(&self, link: &Path, target: &Path, device: &DeviceRoot) -> Result<(), Error> {
        self.check_writable()?;
        let parent = link.parent().unwrap_or(&device.path);
        for last in [false, false, true] {
            match self.files.symbolic_link(target, link) {
                Ok(()) => {
                    self.make_dirs(parent, device)?;
                    return self.sync_dir(parent);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound && !last => self.make_dirs(parent, device)?,
                Err(error) => return Err(Error::io("link", link, error)),
            }
        }
        Ok(())
    }
}

fn missing(device: &Path) -> Error {
    Error::OutOfService(Arc::new(FsError::Missing(device.to_owned())))
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl PartialEq for Disk {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Disk {}

impl Hash for Disk {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Where a device is, and whether that is a mount point.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceRoot {
    disk: Disk,
    path: PathBuf,
    must_be_mounted: bool,
}

impl DeviceRoot {
    /// The device at `path` of this machine; if it `must_be_mounted` (`mount_check`), no directory is made there while
    /// it is not.
    pub fn new(path: impl Into<PathBuf>, must_be_mounted: bool) -> Self {
        Self {
            disk: Disk::real(),
            path: path.into(),
            must_be_mounted,
        }
    }

    /// The same on another file system.
    #[must_use]
    pub fn on(mut self, files: &Arc<dyn FileSystem>) -> Self {
        self.disk.files = files.clone();
        self
    }

    /// The same on a drive whose health others judge by, too: a failed sync is reported there, and nothing is written
    /// while it refuses writes.
    #[must_use]
    pub fn watched(mut self, health: Arc<Health>) -> Self {
        self.disk.health = Some(health);
        self
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }
}

impl<P: Into<PathBuf>> From<P> for DeviceRoot {
    /// A directory of this machine that need not be a mount point.
    fn from(path: P) -> Self {
        Self::new(path, false)
    }
}

/// What tells a file from its replacement of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    fn of(info: &FileInfo) -> Self {
        Self(info.device, info.inode)
    }
}

/// Holds an advisory lock until dropped.
pub(crate) struct Lock {
    _file: Box<dyn File>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_pipe_in_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let disk = Disk::real();
        let refused = disk.append(&pipe, b"row").unwrap_err().to_string();
        assert!(
            refused.contains("it is no file") && disk.truncate(&pipe).is_err(),
            "{refused}"
        );
        assert_eq!(disk.read(&pipe).unwrap(), b"");
        drop(disk.lock(&pipe));
        assert!(disk.remove_if_abandoned(&pipe) && !pipe.exists());
    }
}
