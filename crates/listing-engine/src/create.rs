//! New databases: made complete in the device's `tmp` directory, synced, then published by name.
//!
//! Always holds: whoever finds a database finds a whole one. Of two that create the same one, one
//! succeeds and the other gets [`Error::AlreadyExists`].

use crate::row::spell;
use crate::{Error, Kind, Location, chexor, files, migrate};
use rusqlite::Connection;
use std::path::Path;
use vocabulary::{PolicyIndex, Timestamp};

/// What a new database is told about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDatabase {
    /// The account.
    pub account: String,
    /// The container, for container databases.
    pub container: Option<String>,
    /// The request that creates it.
    pub put_timestamp: Timestamp,
    /// Now.
    pub created_at: Timestamp,
    /// Where a new container's objects go; accounts ignore it.
    pub policy: PolicyIndex,
    /// A random identity; the device's name is added.
    pub unique: String,
}

/// Makes the database at `location`. Its caller says which temporary name is free.
pub(crate) fn create(location: &Location, new: &NewDatabase) -> Result<(), Error> {
    if location.newest_file().is_some() {
        return Err(Error::AlreadyExists {
            path: location.db_file(),
        });
    }
    files::make_dirs(&location.tmp_dir())?;
    let staged = location
        .tmp_dir()
        .join(format!("{}-{}.db", location.kind().word(), new.unique));
    let made = fill(location, new, &staged).and_then(|()| publish(location, &staged));
    if made.is_err() {
        files::discard(&staged);
    }
    made
}

fn publish(location: &Location, staged: &Path) -> Result<(), Error> {
    files::make_dirs(&location.hash_dir())?;
    let _lock = files::lock(&location.lock_file())?;
    let target = location.db_file();
    if location.newest_file().is_some() {
        return Err(Error::AlreadyExists { path: target });
    }
    files::publish(staged, &target)
}

fn fill(location: &Location, new: &NewDatabase, staged: &Path) -> Result<(), Error> {
    files::discard(staged);
    let work = || {
        let mut connection = Connection::open(staged)?;
        // Nothing else knows the file yet, and it is synced before anything does.
        connection.query_row("PRAGMA journal_mode=OFF", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        chexor::register(&connection)?;
        let transaction = connection.transaction()?;
        match location.kind() {
            Kind::Account => account(&transaction, new, &location.device_name())?,
            Kind::Container => container(&transaction, new, &location.device_name())?,
        }
        transaction.commit()
    };
    work().map_err(|error| Error::sqlite("create", staged, error))
}

fn account(connection: &Connection, new: &NewDatabase, device: &str) -> rusqlite::Result<()> {
    connection.execute_batch(migrate::ACCOUNT)?;
    connection.execute(
        "INSERT INTO account_stat (account, created_at, put_timestamp, container_count, id, status_changed_at)
         VALUES (?1, ?2, ?3, 0, ?4, ?3)",
        (
            &new.account,
            new.created_at.internal(),
            spell(new.put_timestamp),
            format!("{}-{device}", new.unique),
        ),
    )?;
    Ok(())
}

fn container(connection: &Connection, new: &NewDatabase, device: &str) -> rusqlite::Result<()> {
    connection.execute_batch(migrate::CONTAINER)?;
    connection.execute(
        "INSERT INTO container_info
             (account, container, created_at, put_timestamp, id, status_changed_at, storage_policy_index)
         VALUES (?1, ?2, ?3, ?4, ?5, ?4, ?6)",
        (
            &new.account,
            &new.container,
            new.created_at.internal(),
            spell(new.put_timestamp),
            format!("{}-{device}", new.unique),
            new.policy.0,
        ),
    )?;
    connection.execute(
        "INSERT INTO policy_stat (storage_policy_index) VALUES (?)",
        [new.policy.0],
    )?;
    Ok(())
}
