//! Directory locks as OpenStack Swift takes them: `flock` on `<directory>/.lock`.
//!
//! What must happen under the lock is a method of [`Locked`]. It ends when the value is dropped.

use crate::device::Device;
use crate::error::FsError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::{File, Purpose};

const LOCK_NAME: &str = ".lock";

/// A directory whose lock is held.
pub struct Locked {
    device: Arc<Device>,
    directory: PathBuf,
    _lock: Box<dyn File>,
}

impl Locked {
    pub(crate) fn take(device: &Arc<Device>, directory: &Path, wait: Duration) -> Result<Self, FsError> {
        let path = directory.join(LOCK_NAME);
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
    pub fn append_hint(&self, name: &str, bytes: &[u8]) -> Result<(), FsError> {
        let path = self.directory.join(name);
        let file = self
            .device
            .files()
            .open(&path, Purpose::Append)
            .map_err(FsError::io("open", &path))?;
        file.write_all_at(bytes, 0).map_err(FsError::io("append to", &path))
    }
}
