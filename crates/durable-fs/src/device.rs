//! One device: its directories, the syncs that make names durable, and what is known about its health.
//!
//! Files are written with `staged.rs` and `batch.rs`, directories locked with `lock.rs`.

use crate::error::FsError;
use crate::fresh::{Fresh, Making};
use crate::health::Health;
use crate::symptom::Symptom;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::Random;
use world::files::{Directory, FileKind, FileSystem, Purpose};

/// How our temporary files begin, so that a sweep touches no other program's.
pub(crate) const TEMPORARY_PREFIX: &str = ".martlet-";

/// One device (or any directory that is given the same care).
///
/// Paths given to it are absolute and below its root. The root itself is never made: when a device is
/// not mounted, writing must fail instead of filling the disk below the mount point: where that is known to be one, no
/// directory is made in it unless something is mounted there.
pub struct StorageDevice {
    files: Arc<dyn FileSystem>,
    random: Arc<dyn Random>,
    root: PathBuf,
    must_be_mounted: bool,
    health: Arc<Health>,
    pub(crate) fresh: Fresh,
    /// How often a file has got its name without it being known whether the name is durable.
    unsynced: AtomicU64,
    /// Of those, how many have been made durable since; held while the rest are.
    resynced: Mutex<u64>,
}

impl StorageDevice {
    /// A device whose files are below `root`.
    pub fn new(files: Arc<dyn FileSystem>, random: Arc<dyn Random>, root: impl Into<PathBuf>) -> Arc<Self> {
        Self::watched(files, random, Health::new(root), false)
    }

    /// The device of a drive whose health others judge by, too.
    pub fn watched(
        files: Arc<dyn FileSystem>,
        random: Arc<dyn Random>,
        health: Arc<Health>,
        must_be_mounted: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            must_be_mounted,
            files,
            random,
            root: health.root().to_owned(),
            health,
            fresh: Fresh::default(),
            unsynced: AtomicU64::new(0),
            resynced: Mutex::new(0),
        })
    }

    /// What is known of the drive.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Where its files are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file system it is on, for reading.
    pub fn files(&self) -> &dyn FileSystem {
        &*self.files
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// Whether it is there, mounted if it must be.
    pub fn check_present(&self, must_be_mounted: bool) -> Result<(), FsError> {
        let present = if must_be_mounted {
            self.files.is_mount_point(&self.root)
        } else {
            match self.files.info(&self.root) {
                Err(error) if is_absent(&error) => Err(FsError::Missing(self.root.clone()))?,
                other => other.map(|info| info.kind == FileKind::Directory),
            }
        };
        match (present.map_err(FsError::io("look at", &self.root))?, must_be_mounted) {
            (true, _) => Ok(()),
            (false, true) => Err(FsError::NotMounted(self.root.clone())),
            (false, false) => Err(FsError::Missing(self.root.clone())),
        }
    }

    /// Whether it may be written to.
    pub fn check_writable(&self) -> Result<(), FsError> {
        self.health.check_writable()
    }

    /// Moves a directory or a file away durably; when `to` is taken, to `to` with a random ending. Returns where
    /// it is now.
    pub fn move_aside(&self, from: &Path, to: &Path) -> Result<PathBuf, FsError> {
        self.check_writable()?;
        let parent = to.parent().unwrap_or(&self.root);
        self.make_directories(parent)?;
        let mut target = to.to_owned();
        // A file would take the place of another.
        let mut moved = match self.files.info(&target) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => self.files.rename(from, &target),
        };
        if matches!(&moved, Err(error) if is_taken(error)) {
            let mut name = to.file_name().unwrap_or_default().to_owned();
            name.push(format!(
                "-{:016x}{:016x}",
                self.random.next_u64(),
                self.random.next_u64()
            ));
            target.set_file_name(name);
            moved = self.files.rename(from, &target);
        }
        moved.map_err(FsError::io("move aside", from))?;
        self.sync_entries(parent)?;
        self.sync_directory(from.parent().unwrap_or(&self.root))?;
        Ok(target)
    }

    /// Removes a directory if it is empty.
    pub fn remove_if_empty(&self, directory: &Path) -> Result<(), FsError> {
        match self.files.remove_directory(directory) {
            Err(error) if is_absent(&error) || is_taken(&error) => Ok(()),
            other => other.map_err(FsError::io("remove", directory)),
        }
    }

    /// Removes temporary files in `temporaries` whose writers are gone; how many. Files of other programs, whose locks
    /// are unknown, go as well when they have not been written to since `foreign_files_before`, in seconds since 1970.
    pub fn sweep(&self, temporaries: &Path, foreign_files_before: Option<u64>) -> Result<usize, FsError> {
        let directory = match self.files.open_directory(temporaries) {
            Err(error) if is_absent(&error) => return Ok(0),
            other => other.map_err(FsError::io("list", temporaries))?,
        };
        let (mut ours, mut foreign_files) = (vec![], vec![]);
        directory
            .list(&mut |name| match name.to_string_lossy().starts_with(TEMPORARY_PREFIX) {
                true => ours.push(temporaries.join(name)),
                false => foreign_files.push(temporaries.join(name)),
            })
            .map_err(FsError::io("list", temporaries))?;
        ours.retain(|path| self.is_abandoned(path));
        foreign_files.retain(|path| foreign_files_before.is_some_and(|before| self.is_older(path, before)));
        let left = ours.iter().chain(&foreign_files);
        Ok(left.filter(|path| self.files.remove_file(path).is_ok()).count())
    }

    fn is_older(&self, path: &Path, before: u64) -> bool {
        let info = self.files.info(path);
        info.is_ok_and(|info| info.kind == FileKind::File && u64::try_from(info.modified.0).unwrap_or(0) < before)
    }

    fn is_abandoned(&self, path: &Path) -> bool {
        let file = self.files.open(path, Purpose::Read);
        file.is_ok_and(|file| file.lock(Duration::ZERO).is_ok())
    }

    /// To be called before the first write of a process. What an earlier one made and had no time to sync, this one
    /// takes for durable; where a sync of a directory does not reach those above it, it has to be made so.
    pub fn sync_what_is_there(&self) -> Result<(), FsError> {
        self.check_present(self.must_be_mounted)?;
        match self.files.syncs_ancestors(&self.root) {
            true => Ok(()),
            false => self.sync_everything(),
        }
    }

    /// Makes durable what other programs have written.
    pub fn sync_everything(&self) -> Result<(), FsError> {
        match self.files.sync_everything(&self.root) {
            // The root could not even be opened: no sync has failed.
            Err(error) if error.kind() != io::ErrorKind::OutOfMemory && Symptom::of(&error) == Symptom::Process => {
                Err(FsError::io("open the directory", &self.root)(error))
            }
            done => self.synced(done, &self.root),
        }
    }

    /// Makes `directory` and its missing ancestors below the root. They are durable with the first file that is
    /// published below.
    pub fn make_directories(&self, directory: &Path) -> Result<(), FsError> {
        if self.make_directory(directory, true)? != Making::Not {
            return Ok(());
        }
        self.make_directories(directory.parent().unwrap_or(&self.root))?;
        match self.make_directory(directory, true)? {
            Making::Not => Err(FsError::io("make", directory)(io::ErrorKind::NotFound.into())),
            _ => Ok(()),
        }
    }

    /// Makes one directory, if what it belongs in is there; not durably, as [`StorageDevice::make_directories`].
    pub(crate) fn make_directory(&self, directory: &Path, was_missing: bool) -> Result<Making, FsError> {
        if !self.has(directory) {
            return self.check_present(false).map(|()| Making::There);
        }
        // What was checked when the work began may have changed: a drive that went away has none of its directories.
        if self.must_be_mounted && directory.parent() == Some(&self.root) {
            self.check_present(true)?;
        }
        self.fresh
            .make(directory, || match self.files.make_directory(directory) {
                Ok(()) => Ok(Making::Made(0)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && was_missing => Ok(Making::Appeared),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Making::There),
                Err(error) if is_absent(&error) => Ok(Making::Not),
                Err(error) => Err(FsError::io("make", directory)(error)),
            })
    }

    /// Whether `path` is below the root.
    fn has(&self, path: &Path) -> bool {
        let (bytes, root) = (
            path.as_os_str().as_encoded_bytes(),
            self.root.as_os_str().as_encoded_bytes(),
        );
        match bytes.strip_prefix(root) {
            // Nearly all are; to take paths apart costs more than to make the directory's name.
            Some([b'/', first, ..]) if *first != b'/' => true,
            _ => path != self.root && path.starts_with(&self.root),
        }
    }

    /// Makes `directory` and its missing ancestors below the root, durably: for directories that other
    /// programs publish files in, whose files would else lie in what a loss of power may take.
    pub fn provide_directories(&self, directory: &Path) -> Result<(), FsError> {
        if self
            .files
            .info(directory)
            .is_ok_and(|info| info.kind == FileKind::Directory)
        {
            return Ok(());
        }
        self.make_directories(directory)?;
        let synced = self.sync_entries(directory).map(drop);
        if synced.is_err() {
            self.unmake(directory);
        }
        synced
    }

    /// Removes a directory again that was made for a file which then was not published.
    pub(crate) fn unmake(&self, directory: &Path) {
        let chain = self.fresh.chain(directory, &self.root);
        if let Some((made, generation)) = chain.first().filter(|(made, _)| made == directory)
            && self.files.remove_directory(made).is_ok()
        {
            self.fresh.synced(made, *generation);
        }
    }

    pub(crate) fn renamed_into(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        let mut renamed = self.files.rename(from, to);
        if matches!(&renamed, Err(error) if is_absent(error)) {
            self.make_directories(to.parent().unwrap_or(&self.root))?;
            renamed = self.files.rename(from, to);
        }
        renamed.map_err(FsError::io("name a file", to))
    }

    /// Gives files of the directory `from` the same names in `to` as well, which is made if it is missing. Durable when
    /// it returns, and then `to` is open. Files that are gone from `from`, or are in `to` already, are passed over.
    pub fn link_files(&self, from: &Path, to: &Path, names: &[String]) -> Result<Box<dyn Directory>, FsError> {
        self.check_writable()?;
        self.make_directories(to)?;
        for name in names {
            let target = to.join(name);
            let file = match self.files.open(&from.join(name), Purpose::Read) {
                Err(error) if is_absent(&error) => continue,
                other => other.map_err(FsError::io("open", &from.join(name)))?,
            };
            let mut linked = file.link(&target);
            // The directory was cleared away meanwhile, or the file.
            if matches!(&linked, Err(error) if is_absent(error)) {
                self.make_directories(to)?;
                linked = file.link(&target);
            }
            match linked {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_absent(&error) && self.files.info(&from.join(name)).is_err() => {}
                other => other.map_err(FsError::io("link a file to", &target))?,
            }
        }
        self.sync_entries(to)
    }

    /// To be called before others rely on what can be seen: a write that failed after its file had got its name was
    /// not acknowledged, but is there to be seen, and may not be durable. Then everything is synced.
    pub fn sync_what_failed(&self) -> Result<(), FsError> {
        // Where nothing ever failed no caller waits for another.
        if self.unsynced.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut resynced = self.resynced.lock();
        let failed = self.unsynced.load(Ordering::Acquire);
        if *resynced < failed {
            let synced = self.files.sync_everything(&self.root);
            synced.map_err(FsError::io("sync what is on", &self.root))?;
            *resynced = failed;
        }
        Ok(())
    }

    pub(crate) fn left_unsynced(&self) {
        self.unsynced.fetch_add(1, Ordering::AcqRel);
    }

    /// Syncs a directory that got an entry, and the parents of every directory made for it unless the
    /// file system has done that along with it (each saves a flush of the drive).
    pub(crate) fn sync_entries(&self, directory: &Path) -> Result<Box<dyn Directory>, FsError> {
        self.try_sync_entries(directory).inspect_err(|_| self.left_unsynced())
    }

    fn try_sync_entries(&self, directory: &Path) -> Result<Box<dyn Directory>, FsError> {
        let fresh = self.fresh.chain(directory, &self.root);
        let opened = self.sync_directory(directory)?;
        let done = !fresh.is_empty() && self.files.syncs_ancestors(directory);
        for (made, generation) in fresh {
            if !done {
                self.sync_directory(made.parent().unwrap_or(&self.root))?;
            }
            self.fresh.synced(&made, generation);
        }
        Ok(opened)
    }

    fn sync_directory(&self, path: &Path) -> Result<Box<dyn Directory>, FsError> {
        let opened = self
            .files
            .open_directory(path)
            .map_err(FsError::io("open the directory", path))?;
        self.synced(opened.sync(), path)?;
        Ok(opened)
    }

    /// Judges the outcome of an fsync: after a failure nothing on the device can be promised until a trial succeeds.
    pub(crate) fn synced(&self, outcome: io::Result<()>, path: &Path) -> Result<(), FsError> {
        match outcome {
            Ok(()) => {
                self.health.has_synced();
                Ok(())
            }
            Err(source) => Err(self.sync_failed(source, path)),
        }
    }

    /// Where nothing tries the drive out a failed sync costs its own write only: nothing would bring the drive back.
    pub(crate) fn sync_failed(&self, source: io::Error, path: &Path) -> FsError {
        if self.health.is_watched() {
            self.health.sync_failed(path, &source);
        }
        FsError::io("sync", path)(source)
    }
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
    )
}
