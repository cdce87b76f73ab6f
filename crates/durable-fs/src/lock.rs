//! Directory locks as OpenStack Swift takes them: `flock` on `<directory>/.lock`.
//!
//! What must happen under the lock is a method of [`Locked`]. It ends when the value is dropped.

use crate::device::StorageDevice;
use crate::error::FsError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{File, Purpose, read_bytes_at};

const LOCK_NAME: &str = ".lock";

/// A directory whose lock is held.
pub struct Locked {
    device: Arc<StorageDevice>,
    directory: PathBuf,
    _lock: Box<dyn File>,
}

impl StorageDevice {
    /// Takes the lock of `directory`, which must exist.
    pub fn lock(self: &Arc<Self>, directory: &Path, wait: Duration) -> Result<Locked, FsError> {
        Locked::take(self, directory, LOCK_NAME, wait)
    }

    /// Takes another lock of `directory`, kept in the file of that name.
    pub fn lock_named(self: &Arc<Self>, directory: &Path, name: &str, wait: Duration) -> Result<Locked, FsError> {
        Locked::take(self, directory, name, wait)
    }
}

impl Locked {
    fn take(device: &Arc<StorageDevice>, directory: &Path, name: &str, wait: Duration) -> Result<Self, FsError> {
        let path = directory.join(name);
        let lock = device
            .files()
            .open(&path, Purpose::Lock)
            .map_err(FsError::io("open the lock", &path))?;
        lock.lock(wait).map_err(FsError::io("lock", &path))?;
        Ok(Self {
            device: device.clone(),
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    /// The directory that is locked.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends to a file in the directory, without making it durable: for hints that may be lost in a
    /// power failure as OpenStack Swift may lose them.
    pub fn append_hint(&self, name: &str, bytes: &[u8]) -> Result<Hint, FsError> {
        let path = self.directory.join(name);
        let file = self
            .device
            .files()
            .open(&path, Purpose::Append)
            .map_err(FsError::io("open", &path))?;
        file.write_all_at(bytes, 0).map_err(FsError::io("append to", &path))?;
        let end = file.info().map_err(FsError::io("look at", &path))?.size;
        Ok(Hint {
            at: end.saturating_sub(bytes.len() as u64),
            bytes: bytes.to_vec(),
            file,
        })
    }

    /// Has a new file hold the hints of a file of the directory, without making it durable: who reads hints later
    /// finds them there, yet none that was appended before stands any more ([`Hint::stands`]). Called before what
    /// `hints` ask for is begun, so that who appended one of them sees that it may be done without what he did since.
    pub fn renew_hints(&self, name: &str, temporaries: &Path, hints: &[u8]) -> Result<(), FsError> {
        let path = self.directory.join(name);
        let before = self.device.files().open(&path, Purpose::Change);
        let before = before.map_err(FsError::io("open", &path))?;
        self.device.write_remaking(&self.directory, name, temporaries, hints)?;
        before.set_len(0).map_err(FsError::io("empty", &path))
    }

    /// Forgets all hints in a file of the directory: what they asked for has been made durable.
    pub fn clear_hints(&self, name: &str) -> Result<(), FsError> {
        let path = self.directory.join(name);
        let opened = self.device.files().open(&path, Purpose::Change);
        let emptied = opened.and_then(|file| file.set_len(0));
        emptied.map_err(FsError::io("empty", &path))
    }
}

/// Bytes that were appended to a file of hints.
pub struct Hint {
    file: Box<dyn File>,
    at: u64,
    bytes: Vec<u8>,
}

impl Hint {
    /// Whether the file still says the same there, so that who reads it later finds the hint. When in
    /// doubt it does not.
    pub fn stands(&self) -> bool {
        let found = read_bytes_at(&*self.file, self.bytes.len(), self.at);
        found.is_ok_and(|found| found == self.bytes)
    }
}
