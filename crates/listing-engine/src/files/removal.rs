//! What takes names away: removals, and the quarantine.
//!
//! Always holds: nothing is removed through a symbolic link. Durable is only what says so: what a crash brings back is
//! removed when it is met again.

use super::{DeviceRoot, Disk};
use crate::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::files::Purpose;

impl Disk {
    /// Removes a database and the directory that was its own. Whatever a crash leaves is either whole or
    /// no database. The caller holds its lock.
    pub(crate) fn remove_database(&self, hash_dir: &Path, pending: &Path, database: &Path) -> Result<(), Error> {
        self.check_writable()?;
        self.discard(pending);
        let removed = self.files.remove_file(database);
        removed.map_err(|error| Error::io("remove", database, error))?;
        let removed = self.remove_tree(hash_dir);
        removed.map_err(|error| Error::io("remove", hash_dir, error))
    }

    fn remove_tree(&self, directory: &Path) -> io::Result<()> {
        for name in self.names(directory)? {
            let path = directory.join(name);
            match self.files.remove_file(&path) {
                // What the system says of a directory.
                Err(error) if is_one_of(&error, &[codes::ISDIR, codes::PERM]) => self.remove_tree(&path)?,
                other => other?,
            }
        }
        self.files.remove_directory(directory)
    }

    /// Removes the lock, which the caller holds, and the directory if nothing else is in it; whether the directory has
    /// gone. Not durable: one that stays or comes back is taken away when it is met again.
    pub(crate) fn remove_unmade(&self, hash_dir: &Path, lock: &Path) -> bool {
        self.files.remove_file(lock).is_ok() && self.files.remove_directory(hash_dir).is_ok()
    }

    /// Takes `link` away, and up to `levels` directories above it that are empty then. Not durable: one that comes
    /// back is taken away when it is met again.
    pub(crate) fn unlink(&self, link: &Path, levels: usize) -> Result<(), Error> {
        match self.files.remove_file(link) {
            Ok(()) => self.remove_empty_parents(link, levels),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Error::io("take away the link", link, error)),
        }
        Ok(())
    }

    /// Removes the directory above `path` and the one above that, up to `levels`, while they are empty.
    pub(crate) fn remove_empty_parents(&self, path: &Path, levels: usize) {
        for parent in path.ancestors().skip(1).take(levels) {
            if self.files.remove_directory(parent).is_err() {
                return;
            }
        }
    }

    /// Removes directories that are empty, down to `depth` levels below `directory`, and itself; nothing through a
    /// link, which leads elsewhere.
    pub(crate) fn remove_empty_below(&self, directory: &Path, depth: usize) {
        if self.is_link(directory) {
            return;
        }
        self.remove_empty(directory, depth);
    }

    /// Whether a name is that of a symbolic link.
    pub(crate) fn is_link(&self, path: &Path) -> bool {
        let beside = path.parent().map(|parent| self.entries(parent).unwrap_or_default());
        let is_it = |(name, is_link): &(OsString, bool)| *is_link && path.file_name() == Some(name);
        beside.is_some_and(|entries| entries.iter().any(is_it))
    }

    fn remove_empty(&self, directory: &Path, depth: usize) {
        if depth > 0 {
            let entries = self.entries(directory).unwrap_or_default();
            let own = entries.into_iter().filter(|(_, is_link)| !is_link);
            own.for_each(|(name, _)| self.remove_empty(&directory.join(name), depth - 1));
        }
        // Fails, as it should, when something is in it, or it is none.
        let _ = self.files.remove_directory(directory);
    }

    /// Removes a file unless its lock is held.
    pub(crate) fn remove_if_abandoned(&self, path: &Path) -> bool {
        let opened = self.files.open(path, Purpose::Read);
        let abandoned = opened.is_ok_and(|file| file.lock(Duration::ZERO).is_ok());
        abandoned && self.files.remove_file(path).is_ok()
    }

    /// Moves a damaged database's directory to `wanted`, or beside it when that is taken.
    pub(crate) fn quarantine(&self, hash_dir: &Path, wanted: &Path, device: &DeviceRoot) -> Result<PathBuf, Error> {
        let parent = wanted.parent().unwrap_or(wanted);
        self.make_dirs(parent, device)?;
        for attempt in 0..1_000 {
            let target = match attempt {
                0 => wanted.to_owned(),
                n => PathBuf::from(format!("{}-{n}", wanted.display())),
            };
            match self.files.rename(hash_dir, &target) {
                Ok(()) => {
                    hash_dir.parent().map_or(Ok(()), |parent| self.sync_dir(parent))?;
                    self.sync_dir(parent)?;
                    return Ok(target);
                }
                Err(error) if is_one_of(&error, &[codes::EXIST, codes::NOTEMPTY]) => {}
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
    pub(crate) fn discard(&self, path: &Path) {
        let _ = self.files.remove_file(path);
    }
}

fn is_one_of(error: &io::Error, known: &[i32]) -> bool {
    error.raw_os_error().is_some_and(|code| known.contains(&code))
}

/// What the system answers when a directory is in the way.
mod codes {
    use rustix::io::Errno;

    pub(super) const EXIST: i32 = Errno::EXIST.raw_os_error();
    pub(super) const NOTEMPTY: i32 = Errno::NOTEMPTY.raw_os_error();
    pub(super) const ISDIR: i32 = Errno::ISDIR.raw_os_error();
    pub(super) const PERM: i32 = Errno::PERM.raw_os_error();
}
