//! What a replica tells of itself and takes from others: summaries, rows since a point, merging.
//!
//! Always holds: pending rows are in the tables before anything is sent or compared; merging is
//! idempotent, and its rows and its sync point become durable together; created-at goes down only,
//! put and delete timestamps go up only; rows that are read at a time take no more than [`BATCH_BYTES`], but for one.

use crate::composite::Times;
use crate::info::read_info;
use crate::row::{ContainerRow, ObjectRow, spell};
use crate::sync_points::{self, Direction, SyncPoint};
use crate::wire::{Numbered, PolicyClaim, Summary, stored_times};
use crate::{Broker, Error, Info, Kind, Metadata, Row, absorb, better_policy, columns, lifecycle, metadata};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use vocabulary::Timestamp;

/// Bytes of the rows that are read at a time. A database that another replica made may have names that no client could
/// send, which are kept: a length that is too much for one cluster is configured in another. A thousand rows with the
/// longest names of the default constraints have 2 MB. With each byte escaped, so many bytes fit into `merge_items`
/// (`MAX_ARGUMENTS` of the server).
const BATCH_BYTES: usize = 8 << 20;

const OBJECTS_SINCE: &str = "SELECT ROWID, name, created_at, size, content_type, etag, deleted, storage_policy_index
    FROM object WHERE ROWID > ? ORDER BY ROWID";
const CONTAINERS_SINCE: &str =
    "SELECT ROWID, name, put_timestamp, delete_timestamp, object_count, bytes_used, storage_policy_index
    FROM container WHERE ROWID > ? ORDER BY ROWID";
const MISPLACED_SINCE: &str = "SELECT ROWID, name, created_at, size, content_type, etag, deleted, storage_policy_index
    FROM object WHERE ROWID > ? AND storage_policy_index <> (SELECT storage_policy_index FROM container_info)
    ORDER BY ROWID";

/// The whole of what replication wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationInfo {
    /// What goes to the other side.
    pub summary: Summary,
    /// What else is known.
    pub info: Info,
    /// What is stored as metadata cannot be read: others are sent none, and theirs take its place.
    pub metadata_is_damaged: bool,
}

impl Broker {
    /// What it tells others of itself.
    pub fn replication_info(&self) -> Result<ReplicationInfo, Error> {
        let kind = self.location().kind();
        self.with_merged(|database| database.read("read", |c| read_all(kind, c)))
    }

    /// Rows behind `point` in the order of their changes, `count` at most and fewer where they are long; none where
    /// there are none.
    pub fn rows_since(&self, point: i64, count: usize) -> Result<Vec<Numbered>, Error> {
        let kind = self.location().kind();
        self.with_merged(|database| database.read("read", |c| rows_since(kind, c, point, count)))
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
        self.with_merged(|database| {
            database.write_long("merge rows into", |transaction| {
                absorb::rows(transaction, rows)?;
                point.map_or(Ok(()), |point| {
                    let remote_id = source.to_owned();
                    sync_points::note(transaction, &SyncPoint { remote_id, point }, Direction::Incoming)
                })
            })
        })
    }

    /// Takes over what another replica says where it is newer: timestamps, metadata, and a container's
    /// policy. Metadata that no gateway could read are left out. When that brings the whole into or out of being, `now`
    /// is when. Tells how it was before and is after; nothing comes between the two.
    pub fn learn(&self, theirs: &Summary, now: Timestamp) -> Result<(ReplicationInfo, ReplicationInfo), Error> {
        let kind = self.location().kind();
        let metadata = Metadata::from_json(&theirs.metadata).unwrap_or_else(|error| {
            tracing::warn!("{} has metadata that cannot be read: {error}", theirs.id);
            Metadata::default()
        });
        let known = self.replication_info()?;
        let mine = Metadata::from_json(&known.summary.metadata).unwrap_or_default();
        let path = self.location().db_file();
        let merged = mine.merged_with(&metadata);
        let (metadata, is_changed) = match merged.excess() {
            Some(excess) => {
                tracing::warn!("{}: no metadata are taken from {}: {excess}", path.display(), theirs.id);
                (Metadata::default(), false)
            }
            None => (metadata, merged != mine),
        };
        if known.metadata_is_damaged {
            tracing::warn!(
                "{}: its metadata cannot be read: those of {} take their place",
                path.display(),
                theirs.id
            );
        } else if !is_changed && !is_news(&known.summary, theirs) {
            return Ok((known.clone(), known));
        }
        self.with_merged(|database| {
            database.write("write", |transaction| -> rusqlite::Result<_> {
                let before = read_all(kind, transaction)?;
                take_over(kind, transaction, &before, theirs, &metadata, now)?;
                Ok((before, read_all(kind, transaction)?))
            })
        })
    }

    /// Objects that are not where the container's policy says, behind `point`, `count` at most and fewer where they are
    /// long; none where there are none.
    pub fn misplaced_since(&self, point: i64, count: usize) -> Result<Vec<(i64, ObjectRow)>, Error> {
        self.container_only()?;
        self.with_merged(|database| database.read("read", |c| objects(c, MISPLACED_SINCE, point, count)))
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
                let point = c.prepare_cached(sql)?.query_row([], |row| columns::signed(row, 0))?;
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

/// Whether `theirs` says anything beside metadata that is not known here.
fn is_news(mine: &Summary, theirs: &Summary) -> bool {
    theirs.created_at < mine.created_at
        || theirs.put_timestamp > mine.put_timestamp
        || theirs.delete_timestamp > mine.delete_timestamp
        || better_policy(mine, theirs).is_some()
}

fn take_over(
    kind: Kind,
    connection: &Connection,
    before: &ReplicationInfo,
    theirs: &Summary,
    metadata: &Metadata,
    now: Timestamp,
) -> rusqlite::Result<()> {
    if let Some(policy) = better_policy(&before.summary, theirs) {
        lifecycle::set_policy(connection, policy, now)?;
    }
    let table = kind.stat_table();
    let times = format!(
        "UPDATE {table} SET created_at = min(?1, created_at), put_timestamp = max(?2, put_timestamp),
         delete_timestamp = max(?3, delete_timestamp)"
    );
    connection.prepare_cached(&times)?.execute(params![
        theirs.created_at.internal(),
        spell(theirs.put_timestamp),
        spell(theirs.delete_timestamp)
    ])?;
    if read_info(kind, connection)?.is_deleted() != before.info.is_deleted() {
        let sql = format!("UPDATE {table} SET status_changed_at = max(?1, status_changed_at)");
        connection.prepare_cached(&sql)?.execute([now.internal()])?;
    }
    let stored = metadata::readable(kind, connection)?.unwrap_or_default();
    let merged = stored.merged_with(metadata);
    if before.metadata_is_damaged || merged != stored {
        metadata::write(kind, connection, &merged)?;
    }
    Ok(())
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
    let text = metadata::read(kind, connection)?;
    let metadata_is_damaged = Metadata::from_json(&text).is_err();
    let summary = Summary {
        id: info.id.clone(),
        hash: info.hash.clone(),
        max_row: max_row(connection, table)?,
        created_at: info.created_at,
        put_timestamp: info.put_timestamp,
        delete_timestamp: info.delete_timestamp,
        metadata: if metadata_is_damaged { String::new() } else { text },
        claim,
        point: -1,
        shard_max_row: shards,
    };
    Ok(ReplicationInfo {
        summary,
        info,
        metadata_is_damaged,
    })
}

/// The greatest ROWID ever given, also to rows that are gone.
pub(crate) fn max_row(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?";
    let found: Option<Option<i64>> = connection
        .prepare_cached(sql)?
        .query_row([table], |row| columns::signed(row, 0))
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
    readable_rows(connection, sql, point, count, |row| {
        let (Some(name), Some(policy)) = (columns::name(row, 1)?, columns::policy(row, 7)?) else {
            return Ok(None);
        };
        let (timestamp, content_type_timestamp, meta_timestamp) =
            stored_times(Times::decode(row.get_ref(2)?.as_str().unwrap_or_default()));
        Ok(Some(ObjectRow {
            name,
            timestamp,
            size: columns::number(row, 3)?,
            content_type: columns::text(row, 4)?,
            etag: columns::text(row, 5)?,
            deleted: columns::flag(row, 6)?,
            policy,
            content_type_timestamp,
            meta_timestamp,
        }))
    })
}

fn containers(connection: &Connection, point: i64, count: usize) -> rusqlite::Result<Vec<Numbered>> {
    let found = readable_rows(connection, CONTAINERS_SINCE, point, count, |row| {
        let (Some(name), Some(policy)) = (columns::name(row, 1)?, columns::policy(row, 6)?) else {
            return Ok(None);
        };
        Ok(Some(ContainerRow {
            name,
            put_timestamp: columns::timestamp(row, 2)?,
            delete_timestamp: columns::timestamp(row, 3)?,
            object_count: columns::number(row, 4)?,
            bytes_used: columns::number(row, 5)?,
            policy,
        }))
    })?;
    let number = |(id, row)| Numbered {
        id,
        row: Row::Container(row),
    };
    Ok(found.into_iter().map(number).collect())
}

/// `count` rows behind `point` with their numbers, or as many as [`BATCH_BYTES`] allow, but one at the least. What
/// `read` says is none is skipped, which a line says, and others come in its place: none mean that there are no more.
fn readable_rows<T>(
    connection: &Connection,
    sql: &str,
    point: i64,
    count: usize,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<Option<T>>,
) -> rusqlite::Result<Vec<(i64, T)>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([point])?;
    let (mut found, mut bytes, mut skipped) = (vec![], 0, None::<(i64, u64)>);
    while found.len() < count
        && let Some(row) = rows.next()?
    {
        bytes += length(row, columns)?;
        if bytes > BATCH_BYTES && !found.is_empty() {
            break;
        }
        let id: i64 = row.get(0)?;
        match read(row)? {
            Some(row) => found.push((id, row)),
            None => skipped = Some(skipped.map_or((id, 1), |(first, rows)| (first, rows + 1))),
        }
    }
    if let Some((first, rows)) = skipped {
        let path = connection.path().unwrap_or_default();
        tracing::warn!("{path}: ROWID {first}, the first of {rows} without a name or a policy, is sent to no replica");
    }
    Ok(found)
}

/// Bytes of the texts of a row.
fn length(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<usize> {
    (0..columns).try_fold(0, |sum, column| {
        Ok(sum
            + match row.get_ref(column)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
                _ => 0,
            })
    })
}
