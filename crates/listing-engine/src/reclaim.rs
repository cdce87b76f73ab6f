//! Forgetting: tombstones, removal markers and sync points of which every replica has long known.
//!
//! Always holds: a row or marker younger than the age given stays, for another replica may still have
//! to learn of it; a database in which there is nothing to forget is not written to.

use crate::shard_ranges;
use crate::{Broker, Error, Kind, metadata};
use rusqlite::{Connection, OptionalExtension};
use vocabulary::Timestamp;

/// Rows per transaction: writers wait no longer than these take.
const BATCH: usize = 10_000;

impl Broker {
    /// Forgets tombstones and removal markers from before `before`, and sync points of replicas that
    /// have not been heard of since `silent_since`.
    pub fn reclaim(&self, before: Timestamp, silent_since: Timestamp) -> Result<(), Error> {
        let kind = self.location().kind();
        while self.reclaim_rows(kind, before)? == BATCH {}
        self.reclaim_sync_points(silent_since)?;
        self.reclaim_metadata(kind, before)?;
        match kind {
            Kind::Container => self.reclaim_shard_ranges(before),
            Kind::Account => Ok(()),
        }
    }

    fn reclaim_rows(&self, kind: Kind, before: Timestamp) -> Result<usize, Error> {
        let (table, column) = match kind {
            Kind::Container => ("object", "created_at"),
            Kind::Account => ("container", "delete_timestamp"),
        };
        let old = format!("SELECT ROWID FROM {table} WHERE deleted = 1 AND {column} < ?1 LIMIT {BATCH}");
        let some = self.with_merged(|database| database.read_long("read", |c| any(c, &old, &before.internal())))?;
        if !some {
            return Ok(0);
        }
        let sql = format!("DELETE FROM {table} WHERE ROWID IN ({old})");
        self.with(|database| {
            database.write_long("forget tombstones of", |t| {
                t.prepare_cached(&sql)?.execute([before.internal()])
            })
        })
    }

    fn reclaim_sync_points(&self, silent_since: Timestamp) -> Result<(), Error> {
        let limit = silent_since.internal();
        for table in ["incoming_sync", "outgoing_sync"] {
            let old = format!("SELECT ROWID FROM {table} WHERE updated_at < ?1");
            if self.with(|database| database.read("read", |c| any(c, &old, &limit)))? {
                let sql = format!("DELETE FROM {table} WHERE updated_at < ?1");
                self.change(|c| c.prepare_cached(&sql)?.execute([&limit]))?;
            }
        }
        Ok(())
    }

    fn reclaim_metadata(&self, kind: Kind, before: Timestamp) -> Result<(), Error> {
        // What cannot be read stays as it is; a request for it says so.
        let stored = self.with(|database| database.read("read the metadata of", |c| metadata::readable(kind, c)))?;
        if !stored.is_some_and(|stored| stored.has_markers_before(before)) {
            return Ok(());
        }
        self.change(|c| {
            if let Some(stored) = metadata::readable(kind, c)? {
                metadata::write(kind, c, &stored.without_markers_before(before))?;
            }
            Ok(1)
        })
    }

    fn reclaim_shard_ranges(&self, before: Timestamp) -> Result<(), Error> {
        let old = "SELECT ROWID FROM shard_range WHERE deleted = 1 AND timestamp < ?1";
        let limit = before.internal();
        let some =
            self.with(|database| database.read("read", |c| Ok(shard_ranges::has_table(c)? && any(c, old, &limit)?)))?;
        match some {
            false => Ok(()),
            true => self.change(|c| {
                c.prepare_cached("DELETE FROM shard_range WHERE deleted = 1 AND timestamp < ?1")?
                    .execute([&limit])
            }),
        }
    }
}

fn any(connection: &Connection, sql: &str, limit: &str) -> rusqlite::Result<bool> {
    let found: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([limit], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}
