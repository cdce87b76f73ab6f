//! Removing a database that is everywhere else, or that nobody needs to remember any more.
//!
//! Always holds: what has changed since its remover looked at it stays.

use crate::connection::{Database, Fault};
use crate::replication::read_all;
use crate::wire::Summary;
use crate::{Broker, DeviceRoot, Error, Kind, Location};

impl Broker {
    /// Removes the database, if it is still as `seen`; tells whether it was removed. Directories that are
    /// empty then go, too.
    pub fn remove_if_unchanged(&self, seen: &Summary) -> Result<bool, Error> {
        let location = self.location();
        let removed = self.alone(|database| {
            if database.path() != location.db_file() {
                return Ok(Ok(false));
            }
            let kind = location.kind();
            database.write("remove", |transaction| {
                let now = read_all(kind, transaction)?.summary;
                Ok(match now == *seen {
                    true => location
                        .disk()
                        .remove_database(&location.hash_dir(), &location.pending_file(), &location.db_file())
                        .map(|()| true),
                    false => Ok(false),
                })
            })
        })??;
        if removed {
            location.drop_sync_link()?;
            location.disk().remove_empty_parents(&location.hash_dir(), 2);
        }
        Ok(removed)
    }

    /// Runs `work` on the database while nobody else can write to it or to its pending file, which is empty.
    pub(crate) fn alone<T>(&self, work: impl FnOnce(&mut Database) -> Result<T, Fault>) -> Result<T, Error> {
        let _order = self.lock_pending();
        let _lock = self.location().disk().lock(&self.location().lock_file())?;
        if !self.exists() {
            return Err(Error::NotFound {
                path: self.location().db_file(),
            });
        }
        self.absorb_pending()?;
        self.with(work)
    }
}

impl Location {
    /// Removes what is empty in a partition, and the partition itself if nothing is left.
    pub fn tidy_partition(device: &DeviceRoot, kind: Kind, partition: u32) {
        let directory = device.path().join(kind.directory()).join(partition.to_string());
        device.disk().remove_empty_below(&directory, 2);
    }
}
