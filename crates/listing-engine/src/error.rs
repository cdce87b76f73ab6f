//! What can go wrong with a database, whose failure it is, and whether trying again helps.
//!
//! Always holds: every message names the file. A corrupt database has been moved to `quarantined/`
//! before its error is seen, so the next request finds a clean absence that replication can fill.

use durable_fs::Symptom;
use rusqlite::ffi;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vocabulary::{Fault, FaultKind};

/// Why a database operation did not happen. Cheap to clone: one failed batch fails many rows.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such database.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The database file.
        path: PathBuf,
    },
    /// Another creation was faster.
    #[error("{} exists already", path.display())]
    AlreadyExists {
        /// The database file.
        path: PathBuf,
    },
    /// SQLite called the database malformed, and a second look found nothing wrong with it.
    #[error("{} is unusable ({reason}), but was sound at a second look: its drive may have failed to read it", path.display())]
    Doubtful {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The database was damaged or not of its kind; it is in quarantine now.
    #[error("{} is unusable ({reason}); moved to {}", path.display(), quarantined.display())]
    Quarantined {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The directory that holds it now.
        quarantined: PathBuf,
    },
    /// A database that was sent here cannot be used; it has been thrown away.
    #[error("{} cannot be used: {reason}", path.display())]
    BadCopy {
        /// The file it arrived in.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A lock was not free in time.
    #[error("{} is locked by another process or thread", path.display())]
    Busy {
        /// The database or lock file.
        path: PathBuf,
    },
    /// A statement was stopped: it took longer than any of its kind.
    #[error("cannot {doing} {}: stopped, for it took too long; see whether the drive is slow", path.display())]
    TooLong {
        /// What was being done.
        doing: &'static str,
        /// To which database.
        path: PathBuf,
    },
    /// The metadata column is not the JSON it should be.
    #[error("{} has unreadable metadata: {detail}", path.display())]
    Metadata {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        detail: MetadataSyntaxError,
    },
    /// A container row for a container database, or an object row for an account database.
    #[error("{} was given rows or questions of the other kind", path.display())]
    WrongKind {
        /// The database file.
        path: PathBuf,
    },
    /// The device is missing or not mounted, or takes no writes until a trial has shown that it keeps what it is given.
    #[error("{_0}")]
    OutOfService(Arc<durable_fs::FsError>),
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// A sync failed: what was written may be lost.
    #[error("cannot {doing} {}: {source}", path.display())]
    Unsynced {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// SQLite refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// To which database.
        path: PathBuf,
        /// Why not.
        source: Arc<rusqlite::Error>,
    },
}

impl Error {
    /// An [`io::Error`] with its circumstances.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// A failed sync with its circumstances.
    pub(crate) fn unsynced(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Unsynced {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// A [`rusqlite::Error`] with its circumstances; lock conflicts become [`Error::Busy`], what
    /// `deadline.rs` has stopped [`Error::TooLong`].
    pub(crate) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, OperationInterrupted};
        match source.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => Self::Busy { path: path.to_owned() },
            Some(OperationInterrupted) => Self::TooLong {
                doing,
                path: path.to_owned(),
            },
            _ => Self::Sqlite {
                doing,
                path: path.to_owned(),
                source: Arc::new(source),
            },
        }
    }

    /// Whose failure it is.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::NotFound { .. } => FaultKind::Absent,
            Self::AlreadyExists { .. } => FaultKind::Conflict,
            Self::Busy { .. } | Self::TooLong { .. } => FaultKind::Contention,
            Self::Quarantined { .. } | Self::Metadata { .. } | Self::BadCopy { .. } => FaultKind::Data,
            Self::Doubtful { .. } => FaultKind::Item,
            Self::WrongKind { .. } => FaultKind::Caller,
            Self::Unsynced { .. } | Self::OutOfService(_) => FaultKind::Device,
            Self::Io { source, .. } => match Symptom::of(source).fault_kind() {
                // A part of a database: what is not there at all is `NotFound`.
                FaultKind::Absent => FaultKind::Item,
                kind => kind,
            },
            Self::Sqlite { source, .. } if is_failed_sync(source) => FaultKind::Device,
            Self::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::OutOfMemory) => FaultKind::Contention,
                Some(rusqlite::ErrorCode::DiskFull) => FaultKind::NoSpace,
                Some(rusqlite::ErrorCode::ReadOnly) => FaultKind::Device,
                // One file that cannot be opened or read says nothing about its neighbours.
                Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::SystemIoFailure) => FaultKind::Item,
                _ => FaultKind::Caller,
            },
        }
    }

    /// Whether the same call may succeed a moment later.
    pub fn may_retry(&self) -> bool {
        self.kind().may_retry()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::new(error.kind(), error.to_string())
    }
}

/// Why a text is no metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataSyntaxError {
    /// It is no JSON object.
    #[error("{0}")]
    NotJson(String),
    /// The value of this name is something else.
    #[error("{0:?} is not a pair of value and timestamp")]
    NotAPair(String),
}

/// An error, or damage that the broker turns into a quarantine.
#[derive(Debug)]
pub(crate) enum DatabaseFailure {
    /// Nothing wrong with the file.
    Error(Error),
    /// The file is bad, for this reason.
    Damaged(String),
    /// It is bad, or could not be read: SQLite calls both malformed.
    Malformed(String),
}

impl From<Error> for DatabaseFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Why work on an open database came to no end.
pub(crate) enum WorkError {
    /// SQLite's, not judged yet.
    Sqlite(rusqlite::Error),
    /// Anything else.
    Other(Error),
}

impl From<rusqlite::Error> for WorkError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for WorkError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Why SQLite's error means that the file itself is bad; `None` when the file may be fine.
pub(crate) fn damage(error: &rusqlite::Error) -> Option<String> {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt) => Some("malformed database".into()),
        Some(NotADatabase) => Some("not a database".into()),
        _ => match error {
            rusqlite::Error::SqliteFailure(_, Some(text)) | rusqlite::Error::SqlInputError { msg: text, .. }
                if text.starts_with("no such table") || text.starts_with("no such column") =>
            {
                Some(format!("unexpected schema: {text}"))
            }
            // Whatever else may be odd is read as what it ought to be (columns.rs).
            rusqlite::Error::InvalidColumnType(_, name, kind) => Some(format!("its {name} is {kind}")),
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::Utf8Error(..) => Some(error.to_string()),
            rusqlite::Error::IntegralValueOutOfRange(..) => Some("its policy is none".into()),
            rusqlite::Error::QueryReturnedNoRows => Some("its statistics row is missing".into()),
            _ => None,
        },
    }
}

/// Whether SQLite says so of a file that could not be read, too.
pub(crate) fn may_be_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Whether SQLite says that a sync failed.
pub(crate) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// Whether a failed transaction means that the drive did not keep what was written to it: any I/O error but those of
/// reading, locking and memory.
pub(crate) fn is_failed_write(error: &rusqlite::Error) -> bool {
    let io_error = error
        .sqlite_error()
        .filter(|error| error.code == rusqlite::ErrorCode::SystemIoFailure);
    io_error.is_some_and(|error| {
        !matches!(
            error.extended_code,
            ffi::SQLITE_IOERR_READ
                | ffi::SQLITE_IOERR_SHORT_READ
                | ffi::SQLITE_IOERR_NOMEM
                | ffi::SQLITE_IOERR_BLOCKED
                | ffi::SQLITE_IOERR_LOCK
                | ffi::SQLITE_IOERR_UNLOCK
                | ffi::SQLITE_IOERR_RDLOCK
                | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_or_a_write_that_failed_speaks_against_the_drive() {
        let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let sync = error(ffi::SQLITE_IOERR_FSYNC);
        assert!(is_failed_sync(&sync) && is_failed_write(&sync));
        for write in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_TRUNCATE] {
            assert!(
                !is_failed_sync(&error(write)) && is_failed_write(&error(write)),
                "{write}"
            );
        }
        for other in [
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_LOCK,
            ffi::SQLITE_FULL,
            ffi::SQLITE_CORRUPT,
        ] {
            assert!(!is_failed_write(&error(other)), "{other}");
        }
    }
}
