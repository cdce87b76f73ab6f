//! Rows into tables: look up what is there, merge, replace what changed. One transaction per batch.
//!
//! The tables forbid UPDATE: a changed row is deleted and inserted, which gives it a new ROWID,
//! which is how replicators see it. Triggers keep the counters and the hash.
//! Always holds: rows of one name within a batch are merged before they touch the table.

use crate::columns;
use crate::composite::Times;
use crate::merge::{self, StoredObject};
use crate::row::{ContainerRow, ObjectRow, Row, spell};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use vocabulary::PolicyIndex;

/// Merges `rows` into their tables.
pub(crate) fn rows(connection: &Connection, rows: Vec<Row>) -> rusqlite::Result<()> {
    let mut objects = Vec::new();
    let mut containers = Vec::new();
    for row in rows {
        match row {
            Row::Object(row) => objects.push(row),
            Row::Container(row) => containers.push(row),
        }
    }
    absorb_objects(connection, objects)?;
    containers
        .into_iter()
        .try_for_each(|row| absorb_container(connection, row))
}

/// A row on its way into the table.
struct Incoming {
    replaces: Vec<i64>,
    row: StoredObject,
    changed: bool,
}

fn absorb_objects(connection: &Connection, rows: Vec<ObjectRow>) -> rusqlite::Result<()> {
    let mut positions: HashMap<(String, PolicyIndex), usize> = HashMap::with_capacity(rows.len());
    let mut batch: Vec<Incoming> = Vec::with_capacity(rows.len());
    for row in rows {
        let row = StoredObject::from(row);
        let key = (row.name.clone(), row.policy);
        match positions.get(&key) {
            Some(&at) => take_newer(&mut batch[at], row),
            None => {
                positions.insert(key, batch.len());
                batch.push(meet_stored(connection, row)?);
            }
        }
    }
    batch
        .iter()
        .filter(|incoming| incoming.changed)
        .try_for_each(|incoming| replace_object(connection, incoming))
}

fn take_newer(incoming: &mut Incoming, row: StoredObject) {
    match merge::objects(&incoming.row, row) {
        Some(merged) => {
            incoming.row = merged;
            incoming.changed = true;
        }
        None => merge::respell(&mut incoming.row),
    }
}

/// The stored row (there is at most one, unless the table was written to by hand) merged with `row`.
fn meet_stored(connection: &Connection, row: StoredObject) -> rusqlite::Result<Incoming> {
    let mut statement = connection.prepare_cached(
        "SELECT ROWID, created_at, size, content_type, etag, deleted FROM object
         WHERE deleted IN (0, 1) AND name = ? AND storage_policy_index = ?",
    )?;
    let mut found = statement.query(params![row.name, row.policy.0])?;
    let mut incoming: Option<Incoming> = None;
    while let Some(stored) = found.next()? {
        let id = stored.get(0)?;
        let stored = StoredObject {
            name: row.name.clone(),
            policy: row.policy,
            times: Times::decode(stored.get_ref(1)?.as_str().unwrap_or_default()),
            size: columns::number(stored, 2)?,
            content_type: columns::text(stored, 3)?,
            etag: columns::text(stored, 4)?,
            deleted: columns::flag(stored, 5)?,
        };
        match &mut incoming {
            None => {
                incoming = Some(Incoming {
                    replaces: vec![id],
                    row: stored,
                    changed: false,
                });
            }
            Some(first) => {
                first.replaces.push(id);
                take_newer(first, stored);
                first.changed = true;
            }
        }
    }
    let Some(mut incoming) = incoming else {
        return Ok(Incoming {
            replaces: Vec::new(),
            row,
            changed: true,
        });
    };
    take_newer(&mut incoming, row);
    Ok(incoming)
}

fn replace_object(connection: &Connection, incoming: &Incoming) -> rusqlite::Result<()> {
    for id in &incoming.replaces {
        connection
            .prepare_cached("DELETE FROM object WHERE ROWID = ?")?
            .execute([id])?;
    }
    let row = &incoming.row;
    connection
        .prepare_cached(
            "INSERT INTO object (name, created_at, size, content_type, etag, deleted, storage_policy_index)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            row.name,
            row.times.encode(),
            i64::try_from(row.size).unwrap_or(i64::MAX),
            row.content_type,
            row.etag,
            row.deleted,
            row.policy.0,
        ])?;
    Ok(())
}

/// The row of a container, as it stands.
pub(crate) fn container(connection: &Connection, name: &str) -> rusqlite::Result<Option<ContainerRow>> {
    let sql = "SELECT put_timestamp, delete_timestamp, object_count, bytes_used, storage_policy_index
               FROM container WHERE deleted IN (0, 1) AND name = ?";
    connection
        .prepare_cached(sql)?
        .query_row([name], |row| {
            Ok(ContainerRow {
                name: name.to_owned(),
                put_timestamp: columns::timestamp(row, 0)?,
                delete_timestamp: columns::timestamp(row, 1)?,
                object_count: columns::number(row, 2)?,
                bytes_used: columns::number(row, 3)?,
                policy: columns::policy(row, 4)?.unwrap_or_default(),
            })
        })
        .optional()
}

fn absorb_container(connection: &Connection, row: ContainerRow) -> rusqlite::Result<()> {
    let row = match container(connection, &row.name)? {
        Some(stored) => merge::containers(&stored, row),
        None => row,
    };
    connection
        .prepare_cached("DELETE FROM container WHERE deleted IN (0, 1) AND name = ?")?
        .execute([&row.name])?;
    connection
        .prepare_cached(
            "INSERT INTO container (name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted,
                 storage_policy_index)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            row.name,
            spell(row.put_timestamp),
            spell(row.delete_timestamp),
            i64::try_from(row.object_count).unwrap_or(i64::MAX),
            i64::try_from(row.bytes_used).unwrap_or(i64::MAX),
            row.is_deleted(),
            row.policy.0,
        ])?;
    Ok(())
}
