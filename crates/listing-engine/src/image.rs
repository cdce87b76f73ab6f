//! Databases on file systems that SQLite knows nothing of: loaded into memory whole, written back whole by each commit.
//!
//! Always holds: what a commit could not write back is not believed any more: the database counts as replaced, and is
//! loaded again; SQLite's own clock, which no simulation has, stands still.
//! Deliberately absent: locks between processes; such a file system belongs to one.

use crate::Error;
use crate::files::Disk;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, MAIN_DB};
use std::io::ErrorKind::{NotFound, QuotaExceeded, StorageFull};
use std::path::Path;
use world::files::Databases;

/// Seconds since 1970; later than a simulation gets, so that nothing counts as old.
const STOPPED_AT: &str = "2000000000";

/// What is known of the file that a connection is a copy of.
pub(crate) struct Image {
    /// What it was when last loaded or written; `None` when that is not known.
    content: Option<Vec<u8>>,
    synced: bool,
}

impl Image {
    /// Loads the file; commits are durable where they are `synced`.
    pub(crate) fn open(databases: &dyn Databases, path: &Path, synced: bool) -> Result<(Connection, Self), Error> {
        let loaded = databases.load(path);
        let content = loaded.map_err(|error| Error::io("load", path, error))?;
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            stop_clock(&connection)?;
            // An empty file is a database without tables.
            if !content.is_empty() {
                connection.deserialize_read_exact(MAIN_DB, &*content, content.len(), false)?;
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| Error::sqlite("open", path, error))?;
        let content = Some(content);
        Ok((connection, Self { content, synced }))
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
        let committed = databases.commit(path, &now, self.synced);
        committed.map_err(|error| {
            // A full disk refuses the write and has lost nothing, as with SQLite's own files.
            if !matches!(error.kind(), StorageFull | QuotaExceeded | NotFound) {
                disk.sync_failed(path, &error);
            }
            Error::io("commit", path, error)
        })?;
        self.content = Some(now);
        Ok(())
    }

    /// Writes what is in the database to another file; not durable.
    pub(crate) fn copy_to(&self, disk: &Disk, path: &Path) -> Result<(), Error> {
        let (Some(databases), Some(content)) = (disk.databases(), &self.content) else {
            return Err(Error::Busy { path: path.to_owned() });
        };
        let copied = databases.commit(path, content, false);
        copied.map_err(|error| Error::io("copy", path, error))
    }

    /// Writes a new database to its file; not durable.
    pub(crate) fn store(databases: &dyn Databases, path: &Path, connection: &mut Connection) -> Result<(), Error> {
        let content = connection.serialize(MAIN_DB);
        let content = content.map_err(|error| Error::sqlite("create", path, error))?;
        let stored = databases.commit(path, &content, false);
        stored.map_err(|error| Error::io("create", path, error))
    }
}

/// The schema's triggers ask SQLite for the time, to the second: whether two contents are the same would depend on how
/// fast a simulation runs.
fn stop_clock(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("strftime", 2, flags, |_| Ok(STOPPED_AT))
}
