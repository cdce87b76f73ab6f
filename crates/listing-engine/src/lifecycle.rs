//! Coming into being, being deleted, coming back: changes of the whole that are no rows.
//!
//! Always holds: put and delete timestamps only grow; a deletion clears metadata with markers that
//! carry its timestamp, so that replicas agree.

use crate::error::WorkError;
use crate::metadata::{self, removed_by_delete};
use crate::row::spell;
use crate::{Broker, Error, Kind};
use rusqlite::{Connection, params};
use vocabulary::{PolicyIndex, Timestamp};

impl Broker {
    /// Notes a creation; an older one changes nothing.
    pub fn update_put_timestamp(&self, timestamp: Timestamp) -> Result<(), Error> {
        let table = self.location().kind().stat_table();
        let sql = format!("UPDATE {table} SET put_timestamp = ?1 WHERE put_timestamp < ?1");
        self.change(move |c| c.prepare_cached(&sql)?.execute([timestamp.internal()]))
    }

    /// Notes when it last came into or out of being; an older note changes nothing.
    pub fn update_status_changed_at(&self, timestamp: Timestamp) -> Result<(), Error> {
        let table = self.location().kind().stat_table();
        let sql = format!("UPDATE {table} SET status_changed_at = ?1 WHERE status_changed_at < ?1");
        self.change(move |c| c.prepare_cached(&sql)?.execute([timestamp.internal()]))
    }

    /// Deletes the whole; an older deletion than the last changes nothing but older metadata.
    pub fn delete(&self, timestamp: Timestamp) -> Result<(), Error> {
        let location = self.location();
        let kind = location.kind();
        self.with(|database| {
            database.write("delete", |transaction| -> Result<_, WorkError> {
                let stored = metadata::parse(location, &metadata::read(kind, transaction)?)?;
                let left = removed_by_delete(kind, &stored, timestamp);
                if left != stored {
                    metadata::write(kind, transaction, &left)?;
                }
                Ok(mark_deleted(kind, transaction, timestamp)?)
            })
        })
    }

    /// Moves a container to another policy. Its objects stay where they are until the reconciler
    /// has moved them.
    pub fn set_policy(&self, policy: PolicyIndex, timestamp: Timestamp) -> Result<(), Error> {
        self.container_only()?;
        self.change(|c| set_policy(c, policy, timestamp))
    }

    /// Notes how far container-sync has got.
    pub fn set_sync_points(&self, point1: i64, point2: i64) -> Result<(), Error> {
        self.container_only()?;
        self.change(|c| {
            c.prepare_cached("UPDATE container_info SET x_container_sync_point1 = ?, x_container_sync_point2 = ?")?
                .execute([point1, point2])
        })
    }

    /// Notes what has been reported to the account.
    pub fn reported(&self, put: Timestamp, delete: Timestamp, objects: u64, bytes: u64) -> Result<(), Error> {
        self.container_only()?;
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.change(|c| {
            let sql = "UPDATE container_info SET reported_put_timestamp = ?, reported_delete_timestamp = ?,
                       reported_object_count = ?, reported_bytes_used = ?";
            c.prepare_cached(sql)?
                .execute(params![spell(put), spell(delete), number(objects), number(bytes)])
        })
    }

    pub(crate) fn change(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<usize>) -> Result<(), Error> {
        self.with(|database| database.write("write", |transaction| work(transaction).map(|_| ())))
    }

    pub(crate) fn container_only(&self) -> Result<(), Error> {
        match self.location().kind() {
            Kind::Container => Ok(()),
            Kind::Account => Err(Error::WrongKind {
                path: self.location().db_file(),
            }),
        }
    }
}

pub(crate) fn set_policy(
    connection: &Connection,
    policy: PolicyIndex,
    timestamp: Timestamp,
) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO policy_stat (storage_policy_index) VALUES (?)")?
        .execute([policy.0])?;
    let set = "UPDATE container_info SET storage_policy_index = ?1, status_changed_at = max(?2, status_changed_at)
               WHERE storage_policy_index <> ?1";
    connection
        .prepare_cached(set)?
        .execute(params![policy.0, timestamp.internal()])
}

fn mark_deleted(kind: Kind, connection: &Connection, timestamp: Timestamp) -> rusqlite::Result<()> {
    let sql = format!(
        "UPDATE {} SET delete_timestamp = ?1, status = 'DELETED', status_changed_at = ?1
         WHERE delete_timestamp < ?1",
        kind.stat_table()
    );
    connection.prepare_cached(&sql)?.execute([timestamp.internal()])?;
    Ok(())
}
