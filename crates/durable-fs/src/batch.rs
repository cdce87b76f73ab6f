//! Many files that take each step together: [`Staged`] → [`Synced`] → published, as one by itself does.
//!
//! What costs is not a file's bytes but the flush of the drive, and a file system syncs everything at once (syncfs)
//! with hardly more work than one file: a batch is synced twice, not each of its files twice.
//! Always holds: no file gets its name before its content is safe, and none is called published before its name is; a
//! failure to write that no sync has reported since the batch began fails all of it.
//! A system that does not report such failures (Linux before 5.8), and a batch too small to be worth it, sync file by
//! file.

use crate::device::StorageDevice;
use crate::error::FsError;
use crate::fresh::Making;
use crate::staged::{Staged, Synced};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world::files::Directory;

/// From so many on, a sync of everything costs less than one for each.
const WORTH_IT: usize = 8;

/// Files that take each step together.
pub struct Batch {
    device: Arc<StorageDevice>,
    /// Open where a sync of everything is worth it.
    root: Option<Box<dyn Directory>>,
    /// A file by itself is tried in its directory before that is made.
    alone: bool,
    /// What directories belong in was missing, too, the last time one was made.
    sparse: bool,
}

/// Where a file was published.
pub struct Published {
    /// Its directory was made for it, and no other writer has come since: there is nothing else in it, or the writer of
    /// that looks.
    pub alone: bool,
    /// Its directory, where that was opened to be synced.
    pub opened: Option<Box<dyn Directory>>,
}

impl StorageDevice {
    /// Begins a batch of at most so many files; before the first of them is staged, so that it sees every failure.
    pub fn batch(self: &Arc<Self>, files: usize) -> Result<Batch, FsError> {
        self.check_writable()?;
        let root = (files >= WORTH_IT).then(|| self.files().open_directory(self.root()));
        Ok(Batch {
            device: self.clone(),
            root: root
                .transpose()
                .map_err(FsError::io("open the directory", self.root()))?,
            alone: files == 1,
            sparse: false,
        })
    }
}

impl Batch {
    /// [`StorageDevice::stage`] for a directory that is most likely not there yet: in a batch of several it is made
    /// before a file is tried in it.
    pub fn stage_new(&mut self, directory: &Path, temporaries: impl Into<PathBuf>) -> Result<Staged, FsError> {
        if self.alone {
            return self.device.stage(directory, temporaries);
        }
        self.device.check_writable()?;
        let above = directory.parent().unwrap_or(self.device.root());
        if self.sparse {
            self.sparse = self.device.make_directory(above, false)? != Making::There;
        }
        let mut made = self.device.make_directory(directory, false)?;
        if made == Making::Not {
            self.sparse = true;
            self.device.make_directories(above)?;
            made = self.device.make_directory(directory, true)?;
        }
        let mut staged = Staged::new(&self.device, directory.to_owned(), temporaries.into())?;
        if let Making::Made(generation) = made {
            staged.made = Some(generation);
        }
        Ok(staged)
    }

    /// Brings content and attributes of all to stable storage; each file's outcome, in their order.
    pub fn sync(&self, files: Vec<Staged>) -> Vec<Result<Synced, FsError>> {
        let whole: Vec<_> = files
            .into_iter()
            .map(|mut file| file.append_gathered().map(|()| file))
            .collect();
        match self.everything(whole.iter().filter(|file| file.is_ok()).count()) {
            Some(Ok(())) => whole.into_iter().map(|file| file.map(Synced)).collect(),
            Some(Err(why)) => self.all_failed(whole, &why),
            None => whole.into_iter().map(|file| file?.sync()).collect(),
        }
    }

    /// Gives all their names, in place of files that have them, and returns once the names are on stable storage; each
    /// file's outcome, in their order.
    pub fn publish(&self, files: Vec<(Synced, String)>) -> Vec<Result<Published, FsError>> {
        let named: Vec<Result<Staged, FsError>> = files
            .into_iter()
            .map(|(Synced(mut file), name)| file.name_it(&name).map(|()| file))
            .collect();
        let made = named.iter().map(|file| {
            let file = file.as_ref().ok()?;
            Some((file.directory.as_path(), file.made?))
        });
        let alone = self.device.fresh.are_as_made(made);
        // Directories that are made from here on may not be reached by the sync.
        let generation = self.device.fresh.generation();
        let everything = self.everything(named.iter().filter(|file| file.is_ok()).count());
        if let Some(Err(why)) = &everything {
            self.device.left_unsynced();
            return self.all_failed(named, why);
        }
        if everything.is_some() {
            self.device.fresh.all_synced(generation);
        }
        let finish = |(file, alone): (Result<Staged, FsError>, bool)| {
            let file = file?;
            let opened = match everything {
                Some(_) => None,
                None => Some(self.device.sync_entries(&file.directory)?),
            };
            Ok(Published { alone, opened })
        };
        named.into_iter().zip(alone).map(finish).collect()
    }

    /// Syncs the whole file system, if that is the way for so many files.
    fn everything(&self, files: usize) -> Option<io::Result<()>> {
        let root = self.root.as_ref().filter(|_| files >= WORTH_IT)?;
        match root.sync_everything() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            Err(error) => Some(Err(error)),
            Ok(()) => {
                self.device.health().has_synced();
                Some(Ok(()))
            }
        }
    }

    /// What one sync was to do for all has failed for all.
    fn all_failed<T>(&self, files: Vec<Result<Staged, FsError>>, why: &io::Error) -> Vec<Result<T, FsError>> {
        let failed = |file: Result<Staged, FsError>| {
            let file = file?;
            let again = why.raw_os_error().map(io::Error::from_raw_os_error);
            let again = again.unwrap_or_else(|| why.kind().into());
            Err(self.device.sync_failed(again, &file.directory))
        };
        files.into_iter().map(failed).collect()
    }
}
