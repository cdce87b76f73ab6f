//! A file on its way: [`Staged`] → [`Synced`] → published.
//!
//! Unnamed (`O_TMPFILE`) where the file system can, so that a crash leaves nothing; else a locked
//! temporary file, as also while it replaces another: a writer that is killed then leaves it, and
//! [`StorageDevice::sweep`] removes it at the next start of a server or in the next pass of a replicator. Dropped
//! early, it never existed.

use crate::aligned::AlignedBuffer;
use crate::device::{StorageDevice, TEMPORARY_PREFIX, is_absent};
use crate::error::FsError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{Directory, File};

/// What goes past the page cache at a time.
const PIECE: usize = 256 * 1024;

const EPERM: i32 = 1;

/// A file being written, invisible under its final name.
pub struct Staged {
    device: Arc<StorageDevice>,
    pub(crate) directory: PathBuf,
    temporaries: PathBuf,
    file: Box<dyn File>,
    name: Option<TemporaryName>,
    /// Bytes in the file.
    length: u64,
    /// Bytes after those, on their way past the page cache.
    gathered: Option<AlignedBuffer>,
    /// Since when its directory is there, if it was made for it.
    pub(crate) made: Option<u64>,
    published: bool,
}

/// A file whose content and attributes are on stable storage, but whose name is not.
pub struct Synced(pub(crate) Staged);

/// The name of a file that is not unnamed; removed when dropped.
struct TemporaryName {
    device: Arc<StorageDevice>,
    path: PathBuf,
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        // Renamed away: nothing to remove. Anything else is for the next sweep.
        let _ = self.device.files().remove_file(&self.path);
    }
}

impl StorageDevice {
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

    pub(crate) fn temporary_path(&self, temporaries: &Path) -> PathBuf {
        temporaries.join(format!("{TEMPORARY_PREFIX}{:016x}", self.random().next_u64()))
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
    let device = StorageDevice::new(world.files.clone(), world.random.clone(), directory);
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
    let device = StorageDevice::new(world.files.clone(), world.random.clone(), directory);
    let mut staged = device.stage(directory, directory)?;
    staged.make_private()?;
    staged.write(content)?;
    staged.sync()?.publish(name).map(drop)
}

impl Staged {
    pub(crate) fn new(device: &Arc<StorageDevice>, directory: PathBuf, temporaries: PathBuf) -> Result<Self, FsError> {
        let (file, name) = match open_unnamed(device, &directory) {
            Ok(file) => (file, None),
            Err(FsError::Io { source, .. }) if unnamed_unsupported(&source) => {
                let (file, name) = open_named(device, &temporaries)?;
                (file, Some(name))
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            device: device.clone(),
            directory,
            temporaries,
            file,
            name,
            length: 0,
            gathered: None,
            made: None,
            published: false,
        })
    }

    /// From now on content goes past the page cache where the file system can do that, in pieces of
    /// [`PIECE`] bytes. It halves what a long body costs the processor; its first reader pays with a
    /// read from the disk. Only before the first [`Staged::write`].
    pub fn bypass_cache(&mut self) {
        if self.length == 0 {
            self.gathered = Some(AlignedBuffer::new(PIECE));
        }
    }

    /// Appends.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), FsError> {
        let Some(mut gathered) = self.gathered.take() else {
            return self.append(bytes);
        };
        while !bytes.is_empty() {
            bytes = &bytes[gathered.fill(bytes)..];
            if !gathered.is_full() {
                break;
            }
            let direct = self.file.write_direct_at(gathered.bytes(), self.length);
            if !direct.map_err(FsError::io("write a file for", &self.directory))? {
                self.append(gathered.bytes())?;
                return self.append(bytes);
            }
            self.length += gathered.bytes().len() as u64;
            gathered.clear();
        }
        self.gathered = Some(gathered);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.file
            .write_all_at(bytes, self.length)
            .map_err(FsError::io("write a file for", &self.directory))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes what is still gathered, the usual way: it is no multiple of anything. From now on all content is written
    /// so, and nothing of it is held in memory between two writes.
    pub fn append_gathered(&mut self) -> Result<(), FsError> {
        match self.gathered.take() {
            Some(gathered) => self.append(gathered.bytes()),
            None => Ok(()),
        }
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
            + self
                .gathered
                .as_ref()
                .map_or(0, |gathered| gathered.bytes().len() as u64)
    }

    /// Reserves room.
    pub fn allocate(&self, length: u64) -> Result<(), FsError> {
        match self.file.allocate(length) {
            // Not every file system can; the room is then found while writing.
            Err(error) if unnamed_unsupported(&error) => Ok(()),
            other => other.map_err(FsError::io("reserve room for a file in", &self.directory)),
        }
    }

    /// Gives it the permissions of the file at `path`, or of any plain file.
    pub(crate) fn take_permissions_of(&self, path: &Path) -> Result<(), FsError> {
        let taken = self.file.take_permissions_of(path);
        taken.map_err(FsError::io("set the permissions of a file in", &self.directory))
    }

    /// Only its owner may read or write it from now on.
    pub(crate) fn make_private(&self) -> Result<(), FsError> {
        let made = self.file.make_private();
        made.map_err(FsError::io("set the permissions of a file in", &self.directory))
    }

    /// Sets an extended attribute.
    pub fn set_attribute(&self, name: &str, value: &[u8]) -> Result<(), FsError> {
        self.file
            .set_attribute(name, value)
            .map_err(FsError::io("set an attribute of a file in", &self.directory))
    }

    /// Pushes what is written so far to the disk and out of the cache, so that the final sync of a
    /// long file finds little left to do.
    pub fn sync_part(&self, from: u64) -> Result<(), FsError> {
        self.device.synced(self.file.sync(), &self.directory)?;
        // Only advice: a kernel that does not take it costs cache, nothing else.
        let _ = self.file.forget_cached(from, self.length.saturating_sub(from));
        Ok(())
    }

    /// Gives the file its name without a promise; for [`StorageDevice::write_remaking`] alone.
    pub(crate) fn publish_undurably(mut self, name: &str) -> Result<(), FsError> {
        self.append_gathered()?;
        self.name_it(name)
    }

    pub(crate) fn name_it(&mut self, name: &str) -> Result<(), FsError> {
        let target = self.directory.join(name);
        match &self.name {
            Some(temporary) => self.device.renamed_into(&temporary.path, &target)?,
            None => self.link(&target)?,
        }
        self.published = true;
        Ok(())
    }

    /// Brings content and attributes to stable storage.
    pub fn sync(mut self) -> Result<Synced, FsError> {
        self.append_gathered()?;
        self.device.synced(self.file.sync(), &self.directory)?;
        Ok(Synced(self))
    }
}

impl Synced {
    /// Drops the content from the page cache.
    pub fn forget_cached(&self) {
        // Only advice: a kernel that does not take it costs cache, nothing else.
        let _ = self.0.file.forget_cached(0, self.0.length);
    }

    /// Gives the file its name, in place of any file that has it, and returns once the name is on
    /// stable storage. The directory comes back open, for looking at what else is in it.
    pub fn publish(self, name: &str) -> Result<Box<dyn Directory>, FsError> {
        let mut staged = self.0;
        staged.name_it(name)?;
        staged.device.sync_entries(&staged.directory)
    }
}

impl Drop for Staged {
    /// A file that never was leaves no directory behind either.
    fn drop(&mut self) {
        if !self.published {
            self.device.unmake(&self.directory);
        }
    }
}

impl Staged {
    fn link(&self, target: &Path) -> Result<(), FsError> {
        let mut linked = self.file.link(target);
        for _ in 0..MAX_DIRECTORY_RETRIES {
            match &linked {
                // The directory was cleared away meanwhile (tombstone reclaimed, quarantine).
                Err(error) if is_absent(error) => self.device.make_directories(&self.directory)?,
                _ => break,
            }
            linked = self.file.link(target);
        }
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.link_over(target),
            other => other.map_err(FsError::io("name a file", target)),
        }
    }

    /// A link cannot replace: link under a temporary name, rename that.
    fn link_over(&self, target: &Path) -> Result<(), FsError> {
        let path = self.device.temporary_path(&self.temporaries);
        self.file
            .lock(Duration::ZERO)
            .map_err(FsError::io("lock a temporary file for", target))?;
        let mut linked = self.file.link(&path);
        if matches!(&linked, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            self.device.make_directories(&self.temporaries)?;
            linked = self.file.link(&path);
        }
        linked.map_err(FsError::io("name a file", &path))?;
        let temporary = TemporaryName {
            device: self.device.clone(),
            path,
        };
        self.device.renamed_into(&temporary.path, target)
    }
}

/// Directories made for a write may be taken away again by another write that was given up; so often
/// in a row only when something is wrong.
const MAX_DIRECTORY_RETRIES: usize = 16;

fn open_unnamed(device: &Arc<StorageDevice>, directory: &Path) -> Result<Box<dyn File>, FsError> {
    let open = || device.files().open_unnamed(directory);
    let mut opened = open();
    for _ in 0..MAX_DIRECTORY_RETRIES {
        match &opened {
            Err(error) if is_taken_away(error) => device.make_directories(directory)?,
            _ => break,
        }
        opened = open();
    }
    opened.map_err(FsError::io("write a file in", directory))
}

/// Whether a file without a name could not be begun as its directory is not there. Where the directory goes
/// between the look-up of its path and the making of the file, ext4 says EPERM (`__ext4_new_inode` in
/// `fs/ext4/ialloc.c` of Linux).
fn is_taken_away(error: &io::Error) -> bool {
    is_absent(error) || error.raw_os_error() == Some(EPERM)
}

fn open_named(device: &Arc<StorageDevice>, temporaries: &Path) -> Result<(Box<dyn File>, TemporaryName), FsError> {
    device.make_directories(temporaries)?;
    for _ in 0..MAX_DIRECTORY_RETRIES {
        let path = device.temporary_path(temporaries);
        let file = device
            .files()
            .open(&path, world::files::Purpose::Create)
            .map_err(FsError::io("make", &path))?;
        let device = device.clone();
        let name = TemporaryName { device, path };
        // The sweep of another process leaves files alone whose writer lives; it may have come before the lock.
        if file.lock(Duration::ZERO).is_ok() && name.is_still(&*file) {
            return Ok((file, name));
        }
    }
    let swept = io::Error::other("it is swept away each time");
    Err(FsError::io("keep a temporary file in", temporaries)(swept))
}

impl TemporaryName {
    fn is_still(&self, file: &dyn File) -> bool {
        match (file.info(), self.device.files().info(&self.path)) {
            (Ok(open), Ok(named)) => (open.device, open.inode) == (named.device, named.inode),
            _ => false,
        }
    }
}

fn unnamed_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
