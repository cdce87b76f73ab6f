//! What a replica tells of itself and takes from others: summaries, rows since a point, merging.
//!
//! Always holds: pending rows are in the tables before anything is told or compared; merging is
//! idempotent, and its rows and its sync point become durable together; created-at goes down only,
//! put and delete timestamps go up only.

use crate::composite::Times;
use crate::info::read_info;
use crate::row::{ContainerRow, ObjectRow, spell};
use crate::sync_points::{self, Direction, SyncPoint};
use crate::wire::{Numbered, PolicyClaim, Summary, stored_times};
use crate::{Broker, Error, Info, Kind, Row, absorb, metadata};
use rusqlite::{Connection, OptionalExtension, params};
use vocabulary::{PolicyIndex, Timestamp};

const OBJECTS_SINCE: &str = "SELECT ROWID, name, created_at, size, content_type, etag, deleted, storage_policy_index
    FROM object WHERE ROWID > ? ORDER BY ROWID LIMIT ?";
const CONTAINERS_SINCE: &str =
    "SELECT ROWID, name, put_timestamp, delete_timestamp, object_count, bytes_used, storage_policy_index
    FROM container WHERE ROWID > ? ORDER BY ROWID LIMIT ?";
const MISPLACED_SINCE: &str = "SELECT ROWID, name, created_at, size, content_type, etag, deleted, storage_policy_index
    FROM object WHERE ROWID > ? AND storage_policy_index <> (SELECT storage_policy_index FROM container_info)
    ORDER BY ROWID LIMIT ?";

/// The whole of what replication wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationInfo {
    /// What goes to the other side.
    pub summary: Summary,
    /// What else is known.
    pub info: Info,
}

impl Broker {
    /// What it tells others of itself.
    pub fn replication_info(&self) -> Result<ReplicationInfo, Error> {
        let kind = self.location().kind();
        self.with_settled(|database| database.read("read", |c| read_all(kind, c)))
    }

    /// Rows behind `point` in the order of their changes, `count` at most.
    pub fn rows_since(&self, point: i64, count: usize) -> Result<Vec<Numbered>, Error> {
        let kind = self.location().kind();
        self.with_settled(|database| database.read("read", |c| rows_since(kind, c, point, count)))
    }

    /// Merges rows of the replica `source`, and notes up to which of its rows everything is here.
    pub fn merge_rows_from(&self, rows: Vec<Numbered>, source: &str) -> Result<(), Error> {
        if rows
            .iter()
            .any(|numbered| numbered.row.kind() != self.location().kind())
        {
            return Err(Error::WrongKind {
                path: self.location().db_file(),
            });
        }
        let point = rows.iter().map(|numbered| numbered.id).max();
        let rows = rows.into_iter().map(|numbered| numbered.row).collect();
        self.with_settled(|database| {
            database.write("merge rows into", |transaction| {
                absorb::rows(transaction, rows)?;
                point.map_or(Ok(()), |point| {
                    let remote_id = source.to_owned();
                    sync_points::note(transaction, &SyncPoint { remote_id, point }, Direction::Incoming)
                })
            })
        })
    }

    /// Takes over another replica's timestamps where they say more. When that brings the whole into or
    /// out of being, `now` is when.
    pub fn merge_timestamps(&self, from: &Summary, now: Timestamp) -> Result<(), Error> {
        let kind = self.location().kind();
        let table = kind.stat_table();
        let sql = format!(
            "UPDATE {table} SET created_at = min(?1, created_at), put_timestamp = max(?2, put_timestamp),
             delete_timestamp = max(?3, delete_timestamp)"
        );
        let times = params_of(from);
        self.with_settled(|database| {
            database.write("write", |transaction| {
                let before = read_info(kind, transaction)?.is_deleted();
                transaction
                    .prepare_cached(&sql)?
                    .execute(params![times.0, times.1, times.2])?;
                if read_info(kind, transaction)?.is_deleted() != before {
                    let sql = format!("UPDATE {table} SET status_changed_at = max(?1, status_changed_at)");
                    transaction.prepare_cached(&sql)?.execute([now.internal()])?;
                }
                Ok(())
            })
        })
    }

    /// Objects that are not where the container's policy says, behind `point`, `count` at most.
    pub fn misplaced_since(&self, point: i64, count: usize) -> Result<Vec<(i64, ObjectRow)>, Error> {
        self.container_only()?;
        self.with_settled(|database| database.read("read", |c| objects(c, MISPLACED_SINCE, point, count)))
    }

    /// Whether it has ever listed objects of more than one policy.
    pub fn has_several_policies(&self) -> Result<bool, Error> {
        Ok(self.policy_stats()?.len() > 1)
    }

    /// Up to which row misplaced objects have been queued for the reconciler; -1 for none.
    pub fn reconciler_point(&self) -> Result<i64, Error> {
        self.container_only()?;
        self.with(|database| {
            database.read("read", |c| {
                let sql = "SELECT reconciler_sync_point FROM container_info";
                let point: Option<i64> = c.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
                Ok(point.unwrap_or(-1))
            })
        })
    }

    /// Notes up to which row misplaced objects have been queued.
    pub fn set_reconciler_point(&self, point: i64) -> Result<(), Error> {
        self.container_only()?;
        self.change(|c| {
            c.prepare_cached("UPDATE container_info SET reconciler_sync_point = ?")?
                .execute([point])
        })
    }
}

fn params_of(from: &Summary) -> (String, String, String) {
    (
        from.created_at.internal(),
        spell(from.put_timestamp),
        spell(from.delete_timestamp),
    )
}

pub(crate) fn read_all(kind: Kind, connection: &Connection) -> rusqlite::Result<ReplicationInfo> {
    let info = read_info(kind, connection)?;
    let (table, shards) = match kind {
        Kind::Account => ("container", None),
        Kind::Container => ("object", Some(max_row(connection, "shard_range")?)),
    };
    let claim = info.container.is_some().then_some(PolicyClaim {
        policy: info.policy,
        status_changed_at: info.status_changed_at,
        count: info.object_count,
    });
    let summary = Summary {
        id: info.id.clone(),
        hash: info.hash.clone(),
        max_row: max_row(connection, table)?,
        created_at: info.created_at,
        put_timestamp: info.put_timestamp,
        delete_timestamp: info.delete_timestamp,
        metadata: metadata::read(kind, connection)?,
        claim,
        point: -1,
        shard_max_row: shards,
    };
    Ok(ReplicationInfo { summary, info })
}

/// The greatest ROWID ever given, also to rows that are gone.
pub(crate) fn max_row(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?";
    let found: Option<Option<i64>> = connection
        .prepare_cached(sql)?
        .query_row([table], |row| row.get(0))
        .optional()?;
    Ok(found.flatten().unwrap_or(-1))
}

pub(crate) fn rows_since(
    kind: Kind,
    connection: &Connection,
    point: i64,
    count: usize,
) -> rusqlite::Result<Vec<Numbered>> {
    match kind {
        Kind::Container => {
            let found = objects(connection, OBJECTS_SINCE, point, count)?;
            let number = |(id, row)| Numbered {
                id,
                row: Row::Object(row),
            };
            Ok(found.into_iter().map(number).collect())
        }
        Kind::Account => containers(connection, point, count),
    }
}

fn objects(connection: &Connection, sql: &str, point: i64, count: usize) -> rusqlite::Result<Vec<(i64, ObjectRow)>> {
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![point, limit], |row| {
        let text = |i| row.get::<_, Option<String>>(i).map(Option::unwrap_or_default);
        let (timestamp, content_type_timestamp, meta_timestamp) =
            stored_times(Times::decode(row.get_ref(2)?.as_str().unwrap_or_default()));
        let object = ObjectRow {
            name: text(1)?,
            timestamp,
            size: positive(row.get(3)?),
            content_type: text(4)?,
            etag: text(5)?,
            deleted: row.get::<_, Option<bool>>(6)?.unwrap_or_default(),
            policy: PolicyIndex(row.get::<_, Option<u32>>(7)?.unwrap_or_default()),
            content_type_timestamp,
            meta_timestamp,
        };
        Ok((row.get(0)?, object))
    })?;
    rows.collect()
}

fn containers(connection: &Connection, point: i64, count: usize) -> rusqlite::Result<Vec<Numbered>> {
    let mut statement = connection.prepare_cached(CONTAINERS_SINCE)?;
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![point, limit], |row| {
        let container = ContainerRow {
            name: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            put_timestamp: absorb::timestamp(row.get_ref(2)?),
            delete_timestamp: absorb::timestamp(row.get_ref(3)?),
            object_count: positive(row.get(4)?),
            bytes_used: positive(row.get(5)?),
            policy: PolicyIndex(row.get::<_, Option<u32>>(6)?.unwrap_or_default()),
        };
        Ok(Numbered {
            id: row.get(0)?,
            row: Row::Container(container),
        })
    })?;
    rows.collect()
}

fn positive(number: Option<i64>) -> u64 {
    number.map_or(0, |n| n.max(0).unsigned_abs())
}
