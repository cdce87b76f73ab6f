//! Databases written by older OpenStack releases, brought to the current schema on opening.
//!
//! | missing | since | what is done |
//! |---|---|---|
//! | `metadata` | 1.2 | column added |
//! | `x_container_sync_point1/2` | 1.4 | columns added |
//! | policies (container) | 2.0 | `container_stat` becomes `container_info` + `policy_stat` + a view |
//! | policies (account) | 2.0 | column, `policy_stat` and its triggers added |
//! | `policy_stat.container_count` (account) | 2.1 | column added and counted |
//!
//! Each is one transaction, so a crash leaves the old schema or the new one. A missing
//! `shard_range` table is left missing: OpenStack makes it when it first needs it, and so do
//! readers here treat it as empty. The current schemas are `schema/*.sql`.
//! Always holds: a file without the tables of its kind is reported as damaged, never filled in; what is migrated is a
//! schema that `known_schemas.rs` knows, unless it is only looked at.

use crate::Kind;
use crate::known_schemas::{ACCOUNT, CONTAINER, CONTAINER_POLICIES};
use rusqlite::Connection;

/// What brings a database to the current schema.
#[derive(Debug)]
pub(crate) enum Migration {
    /// Statements for one transaction; none where it is current.
    Steps(Vec<String>),
    /// These tables are missing: it is no database of its kind.
    Lacks(&'static str),
}

/// Looks at the schema of a database of `kind`.
pub(crate) fn to_current(kind: Kind, connection: &Connection) -> rusqlite::Result<Migration> {
    match kind {
        Kind::Account => account(connection),
        Kind::Container => container(connection),
    }
}

pub(crate) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

fn lacks(columns: &[String], name: &str) -> bool {
    !columns.iter().any(|column| column == name)
}

fn container(connection: &Connection) -> rusqlite::Result<Migration> {
    let objects = columns(connection, "object")?;
    let info = columns(connection, "container_info")?;
    let old = columns(connection, "container_stat")?;
    if objects.is_empty() || (info.is_empty() && old.is_empty()) {
        return Ok(Migration::Lacks("tables object and container_info"));
    }
    if !info.is_empty() {
        return Ok(Migration::Steps(vec![]));
    }
    let mut steps = Vec::new();
    let add = |column: &str| format!("ALTER TABLE container_stat ADD COLUMN {column}");
    if lacks(&old, "metadata") {
        steps.push(add("metadata TEXT DEFAULT ''"));
    }
    if lacks(&old, "x_container_sync_point1") {
        steps.push(add("x_container_sync_point1 INTEGER DEFAULT -1"));
        steps.push(add("x_container_sync_point2 INTEGER DEFAULT -1"));
    }
    if lacks(&objects, "storage_policy_index") {
        steps.push("ALTER TABLE object ADD COLUMN storage_policy_index INTEGER DEFAULT 0".to_owned());
    }
    steps.push(split_container_stat());
    Ok(Migration::Steps(steps))
}

/// The old table's row goes to the two new tables; its triggers go with it.
fn split_container_stat() -> String {
    let fresh: String = CONTAINER_POLICIES
        .iter()
        .map(|name| statement(CONTAINER, name))
        .collect();
    format!(
        "DROP TRIGGER IF EXISTS object_insert; DROP TRIGGER IF EXISTS object_delete;
         ALTER TABLE container_stat RENAME TO old_container_stat;
         {fresh}
         INSERT INTO container_info (account, container, created_at, put_timestamp, delete_timestamp,
             reported_put_timestamp, reported_delete_timestamp, reported_object_count, reported_bytes_used,
             hash, id, status, status_changed_at, metadata, x_container_sync_point1, x_container_sync_point2)
         SELECT account, container, created_at, put_timestamp, delete_timestamp,
             reported_put_timestamp, reported_delete_timestamp, reported_object_count, reported_bytes_used,
             hash, id, status, status_changed_at, metadata, x_container_sync_point1, x_container_sync_point2
         FROM old_container_stat;
         INSERT INTO policy_stat (storage_policy_index, object_count, bytes_used)
         SELECT 0, object_count, bytes_used FROM old_container_stat;
         DROP TABLE old_container_stat;"
    )
}

fn account(connection: &Connection) -> rusqlite::Result<Migration> {
    let containers = columns(connection, "container")?;
    let stat = columns(connection, "account_stat")?;
    let policy_stat = columns(connection, "policy_stat")?;
    if containers.is_empty() || stat.is_empty() {
        return Ok(Migration::Lacks("tables container and account_stat"));
    }
    let mut steps = Vec::new();
    if lacks(&stat, "metadata") {
        steps.push("ALTER TABLE account_stat ADD COLUMN metadata TEXT DEFAULT ''".to_owned());
    }
    if lacks(&containers, "storage_policy_index") {
        steps.push("ALTER TABLE container ADD COLUMN storage_policy_index INTEGER DEFAULT 0".to_owned());
    }
    if policy_stat.is_empty() || lacks(&policy_stat, "container_count") || !has_policy_triggers(connection)? {
        steps.push(count_containers_per_policy());
    }
    Ok(Migration::Steps(steps))
}

/// A migration of OpenStack's that was cut short leaves the table, and no triggers.
fn has_policy_triggers(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'
               AND name IN ('container_insert_ps', 'container_delete_ps')";
    connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? == 2))
}

/// Whatever per-policy counters there are, counting anew gives the current ones.
fn count_containers_per_policy() -> String {
    let fresh: String = ["policy_stat", "container_insert_ps", "container_delete_ps"]
        .iter()
        .map(|name| statement(ACCOUNT, name))
        .collect();
    format!(
        "DROP TABLE IF EXISTS policy_stat;
         DROP TRIGGER IF EXISTS container_insert_ps; DROP TRIGGER IF EXISTS container_delete_ps;
         {fresh}
         INSERT INTO policy_stat (storage_policy_index, container_count, object_count, bytes_used)
         SELECT storage_policy_index, sum(1 - deleted), sum(object_count), sum(bytes_used)
         FROM container GROUP BY storage_policy_index;"
    )
}

/// The table of shard ranges, made when it is first needed, with the columns of the current schema.
pub(crate) fn shard_range_table(connection: &Connection) -> rusqlite::Result<()> {
    let found = columns(connection, "shard_range")?;
    if found.is_empty() {
        connection.execute_batch(&statement(CONTAINER, "shard_range"))?;
        return connection.execute_batch(&statement(CONTAINER, "shard_range_update"));
    }
    for (column, kind) in [("reported", "INTEGER DEFAULT 0"), ("tombstones", "INTEGER DEFAULT -1")] {
        if lacks(&found, column) {
            connection.execute_batch(&format!("ALTER TABLE shard_range ADD COLUMN {column} {kind}"))?;
        }
    }
    Ok(())
}

/// The statement of `schema` that creates `name`, `;` included. Statements are separated by empty lines.
fn statement(schema: &str, name: &str) -> String {
    let creates = |s: &&str| {
        let mut words = s.split_ascii_whitespace();
        words.next() == Some("CREATE") && words.nth(1) == Some(name)
    };
    schema.split("\n\n").find(creates).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_a_migration_needs_is_found() {
        for name in [
            "policy_stat",
            "container_info",
            "container_stat",
            "container_stat_update",
        ] {
            let sql = statement(CONTAINER, name);
            assert!(sql.contains(name) && sql.trim_end().ends_with(';'), "{name}: {sql}");
        }
        assert!(statement(ACCOUNT, "container_delete_ps").trim_end().ends_with("END;"));
    }
}
