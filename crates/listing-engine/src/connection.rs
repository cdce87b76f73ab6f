//! One open SQLite file: how it is opened, how it commits, and when it is reopened.
//!
//! Always holds: a committed transaction survives power loss (`synchronous=FULL` and a journal that
//! is truncated and synced rather than unlinked; OpenStack's unlinked journals and ours are read by
//! both). No memory mapping: a failing drive must be an error, not a signal. The schema is current:
//! older ones are migrated on opening, as OpenStack does on first use.

use crate::error::{Error, damage};
use crate::files::{self, Identity};
use crate::{Kind, Location, chexor, migrate};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long SQLite waits for another process's transaction, as OpenStack does.
const BUSY_TIMEOUT: Duration = Duration::from_secs(25);
/// Page cache per database, in KiB; the soft heap limit bounds the sum.
const CACHE_KIB: i64 = 2_048;
/// What all page caches of the process may hold together before they give pages back.
const HEAP_LIMIT: i64 = 256 << 20;
const STATEMENTS: usize = 32;

/// An open database file.
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    identity: Identity,
}

impl Database {
    /// Opens the file in use at `location`. Damage is reported as SQLite's own error.
    pub(crate) fn open(location: &Location) -> Result<Self, Fault> {
        let path = location.newest_file().ok_or_else(|| Error::NotFound {
            path: location.db_file(),
        })?;
        let identity = files::identity(&path)?;
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| fault("open", &path, error))?;
        prepare(&connection).map_err(|error| fault("open", &path, error))?;
        let mut database = Self {
            connection,
            path,
            identity,
        };
        migrate::to_current(location.kind(), &mut database)?;
        Ok(database)
    }

    /// Opens a file that nobody else uses, and that is worth nothing until it is synced and named: without
    /// journal and syncs.
    pub(crate) fn open_unshared(kind: Kind, path: &Path) -> Result<Self, Fault> {
        let identity = files::identity(path)?;
        let fail = |error| fault("open", path, error);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        prepare(&connection).map_err(fail)?;
        connection
            .query_row("PRAGMA journal_mode=OFF", [], |_| Ok(()))
            .and_then(|()| connection.pragma_update(None, "synchronous", "OFF"))
            .map_err(fail)?;
        let mut database = Self {
            connection,
            path: path.to_owned(),
            identity,
        };
        migrate::to_current(kind, &mut database)?;
        Ok(database)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the name still leads to the file that is open, and it can be written: what was opened while its drive was
    /// read-only stays so in SQLite's eyes, however well the drive is again.
    pub(crate) fn is_current(&self) -> bool {
        let writable = self.connection.is_readonly(rusqlite::MAIN_DB).is_ok_and(|only| !only);
        writable && files::identity(&self.path).is_ok_and(|found| found == self.identity)
    }

    /// Runs `work`, naming what is done in its errors.
    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        work(&self.connection).map_err(|error| fault(doing, &self.path, error))
    }

    /// Runs `work` as one durable transaction.
    pub(crate) fn write<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let (path, identity) = (&self.path, self.identity);
        let attempt = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Whoever held the file before may have put another in its place: what is written to this
            // one now would be lost.
            if files::identity(path).ok() != Some(identity) {
                return Ok(None);
            }
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(Some(value))
        };
        match attempt(&mut self.connection).map_err(|error| fault(doing, path, error))? {
            Some(value) => Ok(value),
            None => Err(Fault::Error(Error::Busy { path: path.clone() })),
        }
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.query_row(&format!("PRAGMA soft_heap_limit={HEAP_LIMIT}"), [], |_| Ok(()))?;
    // Answers with the mode; reading the file's header, it is also where rubbish is first noticed.
    connection.query_row("PRAGMA journal_mode=TRUNCATE", [], |_| Ok(()))?;
    chexor::register(connection)
}

/// An error, or damage that the broker turns into a quarantine.
pub(crate) enum Fault {
    /// Nothing wrong with the file.
    Error(Error),
    /// The file is bad, for this reason.
    Damaged(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

fn fault(doing: &'static str, path: &Path, error: rusqlite::Error) -> Fault {
    match damage(&error) {
        Some(reason) => Fault::Damaged(reason),
        None => Fault::Error(Error::sqlite(doing, path, error)),
    }
}
