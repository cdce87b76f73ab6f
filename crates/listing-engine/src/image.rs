//! Databases that are no files to SQLite: loaded into memory whole, written back whole by each commit (`look/`).
//!
//! Always holds: what a commit could not write back is not believed any more: the database counts as replaced, and is
//! loaded again.
//! Deliberately absent: locks between processes; such a file system belongs to one.

use crate::Error;
use crate::files::Disk;
use rusqlite::{Connection, MAIN_DB};
use std::io::ErrorKind::{NotFound, QuotaExceeded, StorageFull};
use std::path::Path;
use world::files::Databases;

/// What is known of the file that a connection is a copy of.
pub(crate) struct Image {
    /// What it was when last loaded or written; `None` when that is not known.
    content: Option<Vec<u8>>,
}

impl Image {
    /// Loads the file.
    pub(crate) fn open(databases: &dyn Databases, path: &Path) -> Result<(Connection, Self), Error> {
        let loaded = databases.load(path);
        let content = loaded.map_err(|error| Error::io("load", path, error))?;
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            // An empty file is a database without tables.
            if !content.is_empty() {
                connection.deserialize_read_exact(MAIN_DB, &*content, content.len(), false)?;
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| Error::sqlite("open", path, error))?;
        Ok((connection, Self { content: Some(content) }))
    }

    /// Whether no other connection has changed the file.
    pub(crate) fn is_current(&self, disk: &Disk, path: &Path) -> bool {
        let loaded = disk.databases().and_then(|databases| databases.load(path).ok());
        loaded.is_some() && loaded == self.content
    }

    /// Writes back the database after a transaction, also after one that changed nothing.
    pub(crate) fn commit(&mut self, disk: &Disk, path: &Path, connection: &mut Connection) -> Result<(), Error> {
        let Some(databases) = disk.databases() else {
            return Ok(());
        };
        let now = connection.serialize(MAIN_DB);
        let now = now.map_err(|error| Error::sqlite("commit", path, error))?.to_vec();
        self.content = None;
        let committed = databases.commit(path, &now);
        committed.map_err(|error| {
            // A full disk refuses the write and has lost nothing, as with SQLite's own files.
            if matches!(error.kind(), StorageFull | QuotaExceeded | NotFound) {
                return Error::io("commit", path, error);
            }
            disk.sync_failed(path, &error);
            Error::unsynced("commit", path, error)
        })?;
        self.content = Some(now);
        Ok(())
    }

    /// Writes what is in the database to another file; not durable.
    pub(crate) fn copy_to(&self, disk: &Disk, path: &Path) -> Result<(), Error> {
        let (Some(databases), Some(content)) = (disk.databases(), &self.content) else {
            return Err(Error::Busy { path: path.to_owned() });
        };
        let copied = databases.commit(path, content);
        copied.map_err(|error| Error::io("copy", path, error))
    }
}
