//! One file that SQLite has open.
//!
//! Always holds: the end of a file is no error, and what was read before it is there; errors are those that SQLite's
//! own VFS for Linux makes of the system's.

use crate::MountedFiles;
use crate::locks::FileKey;
use rsqlite_vfs::{
    DeviceCharacteristics, LockLevel, MemChunksFile, SectorSize, SyncOptions, SystemErrorCode, VfsError, VfsErrorCode,
    VfsFile, VfsResult, ffi,
};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use world::files::{File, read_full_at};

/// EIO, ENXIO and ERANGE: a read that ends so means a damaged file to SQLite on Linux.
const BROKEN_READS: [i32; 3] = [5, 6, 34];

/// A file of a file system, or one without a name, in memory.
pub(crate) enum SqliteFile {
    Named(NamedFile),
    Unnamed(MemChunksFile),
}

/// A file of a file system.
pub(crate) struct NamedFile {
    pub(crate) mounted: Arc<MountedFiles>,
    pub(crate) file: Box<dyn File>,
    pub(crate) key: FileKey,
    pub(crate) number: u64,
    /// The directory of a new journal, until it is synced.
    pub(crate) unsynced: Option<PathBuf>,
}

/// SQLite's error for what the system said.
pub(crate) fn refused(code: VfsErrorCode, error: &io::Error) -> VfsError {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if code == VfsErrorCode::IoWrite => {
            VfsErrorCode::Full
        }
        _ => code,
    };
    let made = VfsError::new(code, error.to_string().into());
    match error.raw_os_error().and_then(SystemErrorCode::from_raw) {
        Some(system) => made.with_system_error(system),
        None => made,
    }
}

fn unreadable(error: &io::Error) -> VfsError {
    let broken = error.raw_os_error().is_some_and(|code| BROKEN_READS.contains(&code));
    let code = broken.then(|| VfsErrorCode::from_raw(ffi::SQLITE_IOERR_CORRUPTFS));
    refused(code.flatten().unwrap_or(VfsErrorCode::IoRead), error)
}

impl VfsFile for SqliteFile {
    fn device_characteristics(&self) -> DeviceCharacteristics {
        // As SQLite takes it for granted: bytes beside those that are written stay, whenever the power goes.
        DeviceCharacteristics::POWERSAFE_OVERWRITE
    }

    fn sector_size(&self) -> SectorSize {
        SectorSize::DEFAULT
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> VfsResult<usize> {
        match self {
            Self::Named(named) => read_full_at(&*named.file, buffer, offset).map_err(|error| unreadable(&error)),
            Self::Unnamed(memory) => memory.read(buffer, offset),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> VfsResult<()> {
        match self {
            Self::Named(named) => {
                let written = named.file.write_all_at(bytes, offset);
                written.map_err(|error| refused(VfsErrorCode::IoWrite, &error))
            }
            Self::Unnamed(memory) => memory.write(bytes, offset),
        }
    }

    fn truncate(&mut self, size: u64) -> VfsResult<()> {
        match self {
            Self::Named(named) => {
                let cut = named.file.set_len(size);
                cut.map_err(|error| refused(VfsErrorCode::IoTruncate, &error))
            }
            Self::Unnamed(memory) => memory.truncate(size),
        }
    }

    fn sync(&mut self, _: SyncOptions) -> VfsResult<()> {
        let Self::Named(named) = self else { return Ok(()) };
        let synced = named.file.sync();
        synced.map_err(|error| refused(VfsErrorCode::IoSync, &error))?;
        if let Some(directory) = named.unsynced.take() {
            // SQLite's own VFS does not mind when that fails.
            let opened = named.mounted.files.open_directory(&directory);
            let _ = opened.and_then(|directory| directory.sync());
        }
        Ok(())
    }

    fn size(&self) -> VfsResult<u64> {
        match self {
            Self::Named(named) => {
                let info = named.file.info();
                info.map(|info| info.size)
                    .map_err(|error| refused(VfsErrorCode::IoStat, &error))
            }
            Self::Unnamed(memory) => memory.size(),
        }
    }

    fn lock(&mut self, level: LockLevel) -> VfsResult<()> {
        let Self::Named(named) = self else { return Ok(()) };
        match named.mounted.locks.lock().lock(named.key, named.number, level) {
            true => Ok(()),
            false => Err(VfsError::new(VfsErrorCode::Busy, "another connection is at it".into())),
        }
    }

    fn unlock(&mut self, level: LockLevel) -> VfsResult<()> {
        if let Self::Named(named) = self {
            named.mounted.locks.lock().unlock(named.key, named.number, level);
        }
        Ok(())
    }

    fn check_reserved_lock(&self) -> VfsResult<bool> {
        Ok(match self {
            Self::Named(named) => named.mounted.locks.lock().is_reserved(named.key),
            Self::Unnamed(_) => false,
        })
    }
}

impl Drop for NamedFile {
    fn drop(&mut self) {
        self.mounted.locks.lock().unlock(self.key, self.number, LockLevel::None);
    }
}
