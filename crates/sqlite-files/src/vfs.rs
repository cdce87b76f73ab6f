//! What SQLite asks of names, time and randomness.
//!
//! Always holds: a file that is opened to be written, and cannot be, is opened to be read, as SQLite's own VFS does;
//! no call sleeps: what holds a lock is on the same thread, or done in no time.

use crate::file::{NamedFile, SqliteFile, refused};
use crate::{MountedFiles, VfsSlot};
use rsqlite_vfs::{
    AccessMode, FileKind, MemChunksFile, OpenAccess, OpenOptions, OpenRequest, OpenedFile, OsCallback, SQLiteIoMethods,
    SQLiteVfs, VfsError, VfsErrorCode, VfsResult, VfsStore,
};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use world::files::{self, File, FileSystem, Purpose};

/// The functions of files.
pub(crate) struct MountMethods;

impl SQLiteIoMethods for MountMethods {
    type Store = MountStore;
}

/// The functions of the VFS.
pub(crate) struct MountVfs;

impl SQLiteVfs<MountMethods> for MountVfs {
    type Os = VfsSlot;

    fn os(slot: &&'static VfsSlot) -> &'static VfsSlot {
        slot
    }
}

/// What the functions do.
pub(crate) struct MountStore;

impl VfsSlot {
    fn now_mounted(&self) -> VfsResult<Arc<MountedFiles>> {
        let mounted = self.mounted.lock().clone();
        mounted.ok_or_else(|| VfsError::new(VfsErrorCode::CantOpen, "the file system is gone".into()))
    }
}

impl VfsStore for MountStore {
    type File = SqliteFile;
    type AppData = &'static VfsSlot;

    fn open_file(slot: &&'static VfsSlot, request: OpenRequest<'_>) -> VfsResult<OpenedFile<SqliteFile>> {
        let options = request.options;
        let Some(name) = request.filename else {
            return Ok(OpenedFile {
                file: SqliteFile::Unnamed(MemChunksFile::default()),
                access: options.access(),
            });
        };
        let (mounted, path) = (slot.now_mounted()?, Path::new(name.path()));
        let opened = open(&*mounted.files, path, options);
        let opened = opened.and_then(|(file, access)| Ok((file.info()?, file, access)));
        let (info, file, access) = opened.map_err(|error| refused(VfsErrorCode::CantOpen, &error))?;
        let is_journal = matches!(
            options.kind(),
            Some(FileKind::MainJournal | FileKind::SuperJournal | FileKind::Wal)
        );
        let directory = path.parent().filter(|_| is_journal && options.create());
        let named = NamedFile {
            file,
            key: (info.device, info.inode),
            number: mounted.handles.fetch_add(1, Ordering::Relaxed),
            unsynced: directory.map(Path::to_owned),
            mounted,
        };
        Ok(OpenedFile {
            file: SqliteFile::Named(named),
            access,
        })
    }

    fn close_file(
        slot: &&'static VfsSlot,
        name: Option<&str>,
        file: SqliteFile,
        options: OpenOptions,
    ) -> VfsResult<()> {
        drop(file);
        match name.filter(|_| options.delete_on_close()) {
            Some(name) => Self::delete_file(slot, name, false),
            None => Ok(()),
        }
    }

    fn access(slot: &&'static VfsSlot, name: &str, mode: AccessMode) -> VfsResult<bool> {
        // A file that cannot be looked at is none, and neither is an empty one.
        let info = slot.now_mounted()?.files.info(Path::new(name));
        Ok(info.is_ok_and(|info| mode != AccessMode::Exists || info.kind != files::FileKind::File || info.size > 0))
    }

    fn full_pathname(_: &&'static VfsSlot, name: &str) -> VfsResult<String> {
        Ok(name.to_owned())
    }

    fn delete_file(slot: &&'static VfsSlot, name: &str, sync_directory: bool) -> VfsResult<()> {
        let (mounted, path) = (slot.now_mounted()?, Path::new(name));
        mounted.files.remove_file(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refused(VfsErrorCode::IoDeleteNoEntry, &error),
            _ => refused(VfsErrorCode::IoDelete, &error),
        })?;
        let Some(directory) = path.parent().filter(|_| sync_directory) else {
            return Ok(());
        };
        match mounted.files.open_directory(directory) {
            Ok(directory) => {
                let synced = directory.sync();
                synced.map_err(|error| refused(VfsErrorCode::IoDirectorySync, &error))
            }
            // As SQLite's own VFS has it.
            Err(_) => Ok(()),
        }
    }
}

fn open(files: &dyn FileSystem, path: &Path, options: OpenOptions) -> io::Result<(Box<dyn File>, OpenAccess)> {
    let to_read = || files.open(path, Purpose::Read).map(|file| (file, OpenAccess::ReadOnly));
    if options.access() == OpenAccess::ReadOnly {
        return to_read();
    }
    let existing = match options.exclusive() {
        true => Err(ErrorKind::NotFound.into()),
        false => files.open(path, Purpose::Change),
    };
    let opened = match existing {
        Err(error) if error.kind() == ErrorKind::NotFound && options.create() => files.open(path, Purpose::Create),
        other => other,
    };
    match opened {
        Ok(file) => Ok((file, OpenAccess::ReadWrite)),
        Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::NotFound) => Err(error),
        Err(error) => to_read().map_err(|_| error),
    }
}

impl OsCallback for VfsSlot {
    fn sleep(&self, _: Duration) {}

    fn random(&self, _: &mut [u8]) -> usize {
        // SQLite asks its default VFS only.
        0
    }

    fn epoch_timestamp_in_ms(&self) -> VfsResult<i64> {
        let now = self.now_mounted()?.clock.now();
        // Ticks are of ten microseconds.
        Ok(i64::try_from(now.ticks() / 100).unwrap_or(i64::MAX))
    }
}
