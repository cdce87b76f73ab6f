//! One device: where durable changes begin, and what is known about its health.

use crate::error::FsError;
use crate::fresh::{Fresh, Making};
use crate::health::Health;
use crate::lock::{LOCK_NAME, Locked};
use crate::staged::Staged;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::Random;
use world::files::{Directory, FileSystem, Kind, Purpose};

/// How our temporary files begin, so that a sweep touches nobody else's.
pub(crate) const TEMPORARY_PREFIX: &str = ".martlet-";

/// One device (or any directory that is given the same care).
///
/// Paths given to it are absolute and below its root. The root itself is never made: when a device is
/// not mounted, writing must fail instead of filling the disk below the mount point: where that is known to be one, no
/// directory is made in it unless something is mounted there.
pub struct Device {
    files: Arc<dyn FileSystem>,
    random: Arc<dyn Random>,
    root: PathBuf,
    must_be_mounted: bool,
    health: Arc<Health>,
    pub(crate) fresh: Fresh,
    /// How often a file has got its name, and nobody knows whether the name is durable.
    unsynced: AtomicU64,
    /// Of those, how many have been settled since; held while the rest are.
    resynced: Mutex<u64>,
}

impl Device {
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
                other => other.map(|info| info.kind == Kind::Directory),
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

    /// Begins a file that will be published in `directory`, made when missing. `temporaries` is where
    /// it waits on file systems without unnamed files, and while it replaces a file.
    pub fn stage(
        self: &Arc<Self>,
        directory: impl Into<PathBuf>,
        temporaries: impl Into<PathBuf>,
    ) -> Result<Staged, FsError> {
        self.check_writable()?;
        Staged::new(self, directory.into(), temporaries.into())
    }

    /// Writes a whole file durably, in place of any file with that name.
    pub fn write_file(
        self: &Arc<Self>,
        directory: &Path,
        name: &str,
        temporaries: &Path,
        content: &[u8],
    ) -> Result<(), FsError> {
        let staged = self.stage_whole(directory, temporaries, content)?;
        staged.sync()?.publish(name).map(drop)
    }

    /// Writes a whole file in place of any file with that name, without making it durable: after a loss of power
    /// there is the earlier one, this one or rubbish. For what can be made anew and whose reader tells rubbish.
    pub fn write_remaking(
        self: &Arc<Self>,
        directory: &Path,
        name: &str,
        temporaries: &Path,
        content: &[u8],
    ) -> Result<(), FsError> {
        self.stage_whole(directory, temporaries, content)?
            .publish_undurably(name)
    }

    fn stage_whole(self: &Arc<Self>, directory: &Path, temporaries: &Path, content: &[u8]) -> Result<Staged, FsError> {
        let mut staged = self.stage(directory, temporaries)?;
        staged.write(content)?;
        Ok(staged)
    }

    /// Takes the lock of `directory`, which must exist.
    pub fn lock(self: &Arc<Self>, directory: &Path, wait: Duration) -> Result<Locked, FsError> {
        Locked::take(self, directory, LOCK_NAME, wait)
    }

    /// Takes another lock of `directory`, kept in the file of that name.
    pub fn lock_named(self: &Arc<Self>, directory: &Path, name: &str, wait: Duration) -> Result<Locked, FsError> {
        Locked::take(self, directory, name, wait)
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

    /// Removes temporary files in `temporaries` whose writers are gone; how many. Files of strangers, whose locks are
    /// unknown, go as well when nobody has written to them since `strangers_before`, in seconds since 1970.
    pub fn sweep(&self, temporaries: &Path, strangers_before: Option<u64>) -> Result<usize, FsError> {
        let directory = match self.files.open_directory(temporaries) {
            Err(error) if is_absent(&error) => return Ok(0),
            other => other.map_err(FsError::io("list", temporaries))?,
        };
        let (mut ours, mut strangers) = (vec![], vec![]);
        directory
            .list(&mut |name| match name.to_string_lossy().starts_with(TEMPORARY_PREFIX) {
                true => ours.push(temporaries.join(name)),
                false => strangers.push(temporaries.join(name)),
            })
            .map_err(FsError::io("list", temporaries))?;
        ours.retain(|path| self.is_abandoned(path));
        strangers.retain(|path| strangers_before.is_some_and(|before| self.is_older(path, before)));
        let left = ours.iter().chain(&strangers);
        Ok(left.filter(|path| self.files.remove_file(path).is_ok()).count())
    }

    fn is_older(&self, path: &Path, before: u64) -> bool {
        let info = self.files.info(path);
        info.is_ok_and(|info| info.kind == Kind::File && u64::try_from(info.modified.0).unwrap_or(0) < before)
    }

    fn is_abandoned(&self, path: &Path) -> bool {
        let file = self.files.open(path, Purpose::Read);
        file.is_ok_and(|file| file.lock(Duration::ZERO).is_ok())
    }

    /// To be called before the first write of a process. What an earlier one made and had no time to sync, this one takes for
    /// durable; where a sync of a directory does not reach those above it, it has to be made so.
    pub fn sync_what_is_there(&self) -> Result<(), FsError> {
        self.check_present(self.must_be_mounted)?;
        match self.files.syncs_ancestors(&self.root) {
            true => Ok(()),
            false => self.sync_everything(),
        }
    }

    /// Makes durable what other programs have written.
    pub fn sync_everything(&self) -> Result<(), FsError> {
        self.synced(self.files.sync_everything(&self.root), &self.root)
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

    /// Makes one directory, if what it belongs in is there; not durably, as [`Device::make_directories`].
    pub(crate) fn make_directory(&self, directory: &Path, was_missing: bool) -> Result<Making, FsError> {
        if directory == self.root || !directory.starts_with(&self.root) {
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

    /// Makes `directory` and its missing ancestors below the root, durably: for whoever makes them for others, whose
    /// files would else be published in what a loss of power may take.
    pub fn provide_directories(&self, directory: &Path) -> Result<(), FsError> {
        if self
            .files
            .info(directory)
            .is_ok_and(|info| info.kind == Kind::Directory)
        {
            return Ok(());
        }
        self.make_directories(directory)?;
        let settled = self.sync_entries(directory).map(drop);
        if settled.is_err() {
            self.unmake(directory);
        }
        settled
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

    /// To be called before others rely on what can be seen: a write that failed after its file had got its name was
    /// acknowledged to nobody, but is there to be seen, and may not be durable. Then everything is synced.
    pub fn sync_what_failed(&self) -> Result<(), FsError> {
        // Where nothing ever failed nobody waits for anybody.
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

    /// Judges the outcome of an fsync: after a failure nothing on the device can be promised.
    pub(crate) fn synced(&self, outcome: io::Result<()>, path: &Path) -> Result<(), FsError> {
        match outcome {
            Ok(()) => {
                self.health.has_synced();
                Ok(())
            }
            Err(source) => Err(self.sync_failed(source, path)),
        }
    }

    pub(crate) fn sync_failed(&self, source: io::Error, path: &Path) -> FsError {
        self.health.sync_failed(path, &source);
        FsError::io("sync", path)(source)
    }
}

/// Writes a whole file durably in place of any file with that name, outside any device: rings,
/// builders, configuration. `directory` must exist. Who may read and write it is as before, or as for any plain file.
pub fn write_file_atomically(
    world: &world::World,
    directory: &Path,
    name: &str,
    content: &[u8],
) -> Result<(), FsError> {
    let device = Device::new(world.files.clone(), world.random.clone(), directory);
    let staged = device.stage_whole(directory, directory, content)?;
    staged.take_permissions_of(&directory.join(name))?;
    staged.sync()?.publish(name).map(drop)
}

/// The same for a secret: only its owner may read it, from before its first byte on.
pub fn write_private_file_atomically(
    world: &world::World,
    directory: &Path,
    name: &str,
    content: &[u8],
) -> Result<(), FsError> {
    let device = Device::new(world.files.clone(), world.random.clone(), directory);
    let mut staged = device.stage(directory, directory)?;
    staged.make_private()?;
    staged.write(content)?;
    staged.sync()?.publish(name).map(drop)
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
    )
}
