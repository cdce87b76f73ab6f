//! One open SQLite file: how it is opened, how it commits, and when it is reopened.
//!
//! Always holds: a committed transaction survives power loss (`synchronous=FULL` and a journal that
//! is truncated and synced rather than unlinked; OpenStack's unlinked journals and ours are read by
//! both), and one that the drive did not keep is reported to the drive's health, before anything else is written.
//! No memory mapping: a failing drive must be an error, not a signal. The schema is current:
//! older ones are migrated on opening, as OpenStack does on first use. No statement runs in a schema that Swift does
//! not make (`known_schemas.rs`): such a file counts as damaged. A schema may do little, and no work goes on without
//! end (`deadline.rs`).
//! Where SQLite cannot open files by their paths (`image.rs`), a file is loaded whole and written back whole.

use crate::deadline::{Deadline, Patience, WorkLimits};
use crate::error::{DatabaseFailure, Error, WorkError, damage, is_failed_sync, is_failed_write, may_be_unreadable};
use crate::files::{Disk, FileIdentity};
use crate::image::Image;
use crate::known_schemas::{self, SchemaStanding};
use crate::migrate::{self, Migration};
use crate::{Kind, Location, chexor};
use durable_fs::{Health, Symptom};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::files::FileKind;

/// How long SQLite waits for another process's transaction, as OpenStack does.
const BUSY_TIMEOUT: Duration = Duration::from_secs(25);
/// Page cache per database, in KiB; the soft heap limit bounds the sum.
const CACHE_KIB: i64 = 2_048;
/// What all page caches of the process may hold together before they give pages back.
const HEAP_LIMIT: i64 = 256 << 20;
const STATEMENTS: usize = 32;
/// What a database may ask of SQLite; our statements and schemas stay far below.
const SQLITE_LIMITS: &[(Limit, i32)] = &[
    // A value, or a row: as much as a request may bring (`MAX_ARGUMENTS` of the server).
    (Limit::SQLITE_LIMIT_LENGTH, 64 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 10),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 16),
    // VACUUM INTO, which makes copies, attaches its target.
    (Limit::SQLITE_LIMIT_ATTACHED, 1),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
];
/// While SQLite checks a file no other connection can write to it: larger ones are not checked.
const LARGEST_CHECKED: u64 = 128 << 20;
/// What the system says of a link to itself.
const LOOP: i32 = Errno::LOOP.raw_os_error();

/// An open database file.
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    /// SQLite's own file beside it.
    journal: PathBuf,
    /// Whether that has a durable name, where there is to be one.
    has_journal: bool,
    disk: Disk,
    identity: FileIdentity,
    /// What is open when it is not the file itself.
    image: Option<Image>,
    deadline: Deadline,
}

/// Whose schema is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schemas {
    /// One that Swift makes.
    Known,
    /// Any that has the tables: of an image in memory that is only looked at.
    Any,
}

impl Database {
    /// Opens the file in use at `location`. Damage is reported as SQLite's own error.
    pub(crate) fn open(location: &Location, schemas: Schemas) -> Result<Self, DatabaseFailure> {
        let absent = || Error::NotFound {
            path: location.db_file(),
        };
        let directory = location.hash_dir();
        let entries = match location.disk().entries(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                check_is(location.disk(), &directory, FileKind::Directory, false)?;
                return Err(match Symptom::of(&error).is_absent() {
                    true => absent().into(),
                    false => Error::io("list", &directory, error).into(),
                });
            }
        };
        let path = location.newest_of(&entries).ok_or_else(absent)?;
        let is_link = entries.contains(&(path.file_name().unwrap_or_default().to_owned(), true));
        check_is(location.disk(), &path, FileKind::File, is_link)?;
        check_company(location, &path, &entries)?;
        let mut database = Self::open_file(location.disk(), path)?;
        database.check_schema(location.kind(), schemas)?;
        Ok(database)
    }

    /// Opens a file that no other process uses, and that is worth nothing until it is synced and named: without
    /// journal and syncs.
    pub(crate) fn open_unshared(disk: &Disk, kind: Kind, path: &Path) -> Result<Self, DatabaseFailure> {
        let mut database = Self::open_file(disk, path.to_owned())?;
        unsynced(&database.connection).map_err(|error| failure(disk, "open", path, error))?;
        database.has_journal = true;
        database.check_schema(kind, Schemas::Known)?;
        Ok(database)
    }

    /// Opens the file beside the one in use, only to read it.
    pub(crate) fn open_to_read(disk: &Disk, kind: Kind, path: &Path) -> Result<Self, DatabaseFailure> {
        let database = Self::open_file(disk, path.to_owned())?;
        match database.read("examine the schema of", |c| known_schemas::examine(kind, c))? {
            SchemaStanding::Foreign(reason) => Err(DatabaseFailure::Damaged(reason)),
            SchemaStanding::Current | SchemaStanding::Older => Ok(database),
        }
    }

    /// Refuses a schema that Swift does not make; brings an older one up to date.
    fn check_schema(&mut self, kind: Kind, schemas: Schemas) -> Result<(), DatabaseFailure> {
        if schemas == Schemas::Known && !self.disk.obeys_any_schema() {
            match self.read("examine the schema of", |c| known_schemas::examine(kind, c))? {
                SchemaStanding::Current => return Ok(()),
                SchemaStanding::Older => {}
                SchemaStanding::Foreign(reason) => return Err(DatabaseFailure::Damaged(reason)),
            }
        }
        match self.read("examine the schema of", |c| migrate::to_current(kind, c))? {
            Migration::Lacks(tables) => Err(DatabaseFailure::Damaged(format!("unexpected schema: {tables} missing"))),
            Migration::Steps(steps) if steps.is_empty() => Ok(()),
            Migration::Steps(steps) => {
                tracing::info!(path = %self.path.display(), "migrating a database of an older release");
                self.write_long("migrate", |transaction| {
                    steps.iter().try_for_each(|sql| transaction.execute_batch(sql))
                })
            }
        }
    }

    fn open_file(disk: &Disk, path: PathBuf) -> Result<Self, DatabaseFailure> {
        let identity = disk.identity(&path)?;
        let (mut connection, image) = match disk.databases() {
            None => {
                let opened = disk.open_database(&path, OpenFlags::SQLITE_OPEN_READ_WRITE);
                (opened.map_err(|error| failure(disk, "open", &path, error))?, None)
            }
            Some(databases) => {
                let (connection, image) = Image::open(databases, &path)?;
                (connection, Some(image))
            }
        };
        let prepared =
            guard(&mut connection, disk.health()).and_then(|deadline| prepare(&connection).map(|()| deadline));
        let deadline = prepared.map_err(|error| failure(disk, "open", &path, error))?;
        Ok(Self {
            connection,
            journal: beside(&path, "-journal"),
            has_journal: image.is_some(),
            path,
            disk: disk.clone(),
            identity,
            image,
            deadline,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its pages hang together, unless there are too many.
    pub(crate) fn check_pages(&self) -> Result<(), DatabaseFailure> {
        if self.disk.length(&self.path)? > LARGEST_CHECKED {
            return Ok(());
        }
        let found: String = self.read_long("check", |c| c.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))?;
        match found.as_str() {
            "ok" => Ok(()),
            _ => Err(DatabaseFailure::Malformed(found)),
        }
    }

    /// Whether the name still leads to the file that is open, and it can be written: what was opened while its drive
    /// was read-only stays so in SQLite's eyes, however well the drive is again.
    pub(crate) fn is_current(&self) -> bool {
        let writable = self.connection.is_readonly(rusqlite::MAIN_DB).is_ok_and(|only| !only);
        writable
            && self.is_named()
            && self.has_plain_journal()
            && self
                .image
                .as_ref()
                .is_none_or(|image| image.is_current(&self.disk, &self.path))
    }

    /// SQLite opens it again for each transaction, and would wait for a pipe in its place.
    fn has_plain_journal(&self) -> bool {
        self.disk
            .info(&self.journal)
            .map_or(true, |found| found.kind == FileKind::File)
    }

    fn is_named(&self) -> bool {
        self.disk.identity(&self.path).is_ok_and(|found| found == self.identity)
    }

    /// A consistent copy of everything into the empty file `path`; not durable.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), DatabaseFailure> {
        match &self.image {
            Some(image) => Ok(image.copy_to(&self.disk, path)?),
            None => {
                let text = path.to_string_lossy().into_owned();
                self.read_long("copy", |c| c.execute("VACUUM INTO ?", [text]).map(|_| ()))
            }
        }
    }

    /// Runs `work`, naming what is done in its errors.
    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseFailure> {
        self.read_within(Patience::Request, doing, work)
    }

    /// The same for work that takes its time.
    pub(crate) fn read_long<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseFailure> {
        self.read_within(Patience::Job, doing, work)
    }

    fn read_within<T>(
        &self,
        patience: Patience,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseFailure> {
        self.deadline.begin(patience);
        work(&self.connection).map_err(|error| failure(&self.disk, doing, &self.path, error))
    }

    /// Runs `work` as one durable transaction.
    pub(crate) fn write<T, E: Into<WorkError>>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, DatabaseFailure> {
        self.write_within(Patience::Request, doing, work)
    }

    /// The same for work that takes its time.
    pub(crate) fn write_long<T, E: Into<WorkError>>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, DatabaseFailure> {
        self.write_within(Patience::Job, doing, work)
    }

    fn write_within<T, E: Into<WorkError>>(
        &mut self,
        patience: Patience,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, DatabaseFailure> {
        self.deadline.begin(patience);
        self.disk.check_writable()?;
        let (path, disk, identity) = (&self.path, &self.disk, self.identity);
        let is_named = || disk.identity(path).ok() == Some(identity);
        if !self.has_journal && is_named() {
            // SQLite would make it, too, but not mind when its directory cannot be synced.
            disk.make_empty(&self.journal)?;
            self.has_journal = true;
        }
        let attempt = |connection: &mut Connection| -> Result<_, WorkError> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // A process that held the file before may have put another in its place: what is written to
            // this one now would be lost.
            if !is_named() {
                return Ok(None);
            }
            let value = work(&transaction).map_err(Into::into)?;
            transaction.commit()?;
            Ok(Some(value))
        };
        let done = attempt(&mut self.connection).map_err(|error| match error {
            WorkError::Other(error) => DatabaseFailure::Error(error),
            WorkError::Sqlite(error) => {
                if is_failed_write(&error) && !is_failed_sync(&error) {
                    disk.suspect();
                }
                failure(disk, doing, path, error)
            }
        })?;
        // What `work` has put in this one's place stays as it is.
        if let Some(image) = self.image.as_mut().filter(|_| is_named()) {
            image.commit(disk, path, &mut self.connection)?;
        }
        done.ok_or_else(|| DatabaseFailure::Error(Error::Busy { path: path.clone() }))
    }
}

/// Makes the file `staged`, which exists and is empty, a database in one transaction; not durable, for nothing else
/// knows the file yet, and it is synced before anything does.
pub(crate) fn fill(
    disk: &Disk,
    staged: &Path,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), Error> {
    let fail = |error| Error::sqlite("create", staged, error);
    let mut connection = disk.open_database(staged, OpenFlags::default()).map_err(fail)?;
    let made = unsynced(&connection).and_then(|()| {
        chexor::register(&connection)?;
        let transaction = connection.transaction()?;
        work(&transaction)?;
        transaction.commit()
    });
    made.map_err(fail)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether what is there, if anything, is of that kind, or a link to one: a link to nothing, a directory or a pipe is
/// in the way of the database that belongs there.
fn check_is(disk: &Disk, path: &Path, kind: FileKind, is_link: bool) -> Result<(), DatabaseFailure> {
    let in_the_way = match disk.info(path) {
        Ok(found) => found.kind != kind,
        Err(error) => is_link && (error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(LOOP)),
    };
    let expected = match kind {
        FileKind::Directory => "directory",
        _ => "file",
    };
    match in_the_way {
        true => Err(DatabaseFailure::Damaged(format!("{} is no {expected}", path.display()))),
        false => Ok(()),
    }
}

/// What SQLite opens beside a database, and we do: SQLite would wait for a pipe without end, and write where a link
/// leads.
fn check_company(location: &Location, path: &Path, entries: &[(OsString, bool)]) -> Result<(), DatabaseFailure> {
    let company = ["-journal", "-wal", "-shm"].map(|ending| beside(path, ending));
    let ours = [location.lock_file(), location.pending_file()];
    let company: Vec<_> = company
        .iter()
        .chain(&ours)
        .filter_map(|path| path.file_name())
        .collect();
    for (name, is_link) in entries.iter().filter(|(name, _)| company.contains(&&**name)) {
        let place = location.hash_dir().join(name);
        // What has gone meanwhile does no harm.
        let is_fine = |disk: &Disk| Ok::<_, Error>(disk.is(&place, FileKind::File)? || !disk.exists(&place)?);
        if *is_link || !is_fine(location.disk())? {
            return Err(DatabaseFailure::Damaged(format!("{} is no file", name.display())));
        }
    }
    Ok(())
}

fn unsynced(connection: &Connection) -> rusqlite::Result<()> {
    // OFF is refused in defensive mode, and could not undo what is stopped.
    connection.query_row("PRAGMA journal_mode=MEMORY", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")
}

/// Keeps a schema that came from elsewhere from doing harm, and work from going on without end.
pub(crate) fn guard(connection: &mut Connection, health: Option<Arc<Health>>) -> rusqlite::Result<Deadline> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    for (limit, most) in SQLITE_LIMITS {
        connection.set_limit(*limit, *most)?;
    }
    Deadline::watch(connection, WorkLimits::default(), health)
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

/// What SQLite's error means; a failed sync is reported.
fn failure(disk: &Disk, doing: &'static str, path: &Path, error: rusqlite::Error) -> DatabaseFailure {
    if is_failed_sync(&error) {
        // Which error the system gave SQLite does not say.
        disk.sync_failed(path, &Errno::IO.into());
    }
    if let Some(reason) = damage(&error) {
        return match may_be_unreadable(&error) {
            true => DatabaseFailure::Malformed(reason),
            false => DatabaseFailure::Damaged(reason),
        };
    }
    let is_vague = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    );
    // SQLite does not say why: no descriptors, no leave, or a drive that takes no writes.
    match is_vague.then(|| disk.writable(path)) {
        Some(Err(why)) => DatabaseFailure::Error(why),
        _ => DatabaseFailure::Error(Error::sqlite(doing, path, error)),
    }
}

#[cfg(test)]
mod tests;
