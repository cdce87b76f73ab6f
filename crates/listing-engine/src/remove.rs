//! Removing a database that is everywhere else, or that need not be remembered any more, and what is left of one that
//! was never made.
//!
//! Always holds: what has changed since its remover looked at it stays.

use crate::connection::Database;
use crate::error::{DatabaseFailure, WorkError};
use crate::files::Lock;
use crate::replication::read_all;
use crate::wire::Summary;
use crate::{Broker, DeviceRoot, Error, Kind, Location};
use std::ffi::OsString;
use std::io;
use vocabulary::Partition;

/// So often in a row is a directory taken away only when something is wrong.
const MAX_DIRECTORY_RETRIES: usize = 16;

impl Broker {
    /// Removes the database, if it is still as `seen`; tells whether it was removed. Directories that are
    /// empty then go, too.
    pub fn remove_if_unchanged(&self, seen: &Summary) -> Result<bool, Error> {
        let location = self.location();
        let removed = self.alone(|database| {
            if database.path() != location.db_file() {
                return Ok(false);
            }
            let kind = location.kind();
            database.write("remove", |transaction| -> Result<_, WorkError> {
                if read_all(kind, transaction)?.summary != *seen {
                    return Ok(false);
                }
                let (home, pending) = (location.hash_dir(), location.pending_file());
                location.disk().remove_database(&home, &pending, &location.db_file())?;
                Ok(true)
            })
        })?;
        if removed {
            location.drop_sync_link()?;
            location.disk().remove_empty_parents(&location.hash_dir(), 2);
        }
        Ok(removed)
    }

    /// Runs `work` on the database while no other can write to it or to its pending file, which is empty.
    pub(crate) fn alone<T>(&self, work: impl FnOnce(&mut Database) -> Result<T, DatabaseFailure>) -> Result<T, Error> {
        let _order = self.lock_pending();
        let _lock = self.location().disk().lock(&self.location().lock_file())?;
        if !self.exists()? {
            return Err(Error::NotFound {
                path: self.location().db_file(),
            });
        }
        self.absorb_pending()?;
        self.with(work)
    }
}

impl Location {
    /// Removes the database's directory if all that is in it is the lock that a creator took: one that was killed.
    /// Whether it was removed; one that is at work meanwhile makes it again ([`Location::locked_home`]).
    pub fn remove_if_unmade(&self) -> Result<bool, Error> {
        let (disk, home) = (self.disk(), self.hash_dir());
        let is_lock = |name: &OsString| self.lock_file().file_name() == Some(name);
        let nothing_but_lock = || disk.names(&home).is_ok_and(|names| names.iter().all(is_lock));
        if !nothing_but_lock() {
            return Ok(false);
        }
        let lock = match disk.lock(&self.lock_file()) {
            Err(Error::NotFound { .. }) => return Ok(false), // gone meanwhile
            other => other?,
        };
        let removed = nothing_but_lock() && disk.remove_unmade(&home, &self.lock_file());
        drop(lock);
        if removed {
            disk.remove_empty_parents(&home, 2);
        }
        Ok(removed)
    }

    /// Makes the database's directory, durably, and takes the lock in it.
    pub(crate) fn locked_home(&self) -> Result<Lock, Error> {
        let made = || {
            self.disk().make_dirs(&self.hash_dir(), self.root())?;
            self.disk().lock(&self.lock_file())
        };
        // Taken away again, it or one above it, between two steps.
        let has_gone = |error: &Error| match error {
            Error::NotFound { .. } => true,
            Error::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        };
        let mut locked = made();
        for _ in 0..MAX_DIRECTORY_RETRIES {
            if !locked.as_ref().is_err_and(has_gone) {
                break;
            }
            locked = made();
        }
        locked
    }

    /// Removes what is empty in a partition, and the partition itself if nothing is left.
    pub fn tidy_partition(device: &DeviceRoot, kind: Kind, partition: Partition) {
        let directory = device.path().join(kind.directory()).join(partition.to_string());
        device.disk().remove_empty_below(&directory, 2);
    }
}
