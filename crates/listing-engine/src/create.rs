//! New databases: made complete in the device's `tmp` directory, synced, then published by name.
//!
//! Always holds: whoever finds a database finds a whole one. Of two that create the same one, one
//! succeeds and the other gets [`Error::AlreadyExists`].

use crate::row::spell;
use crate::{Error, Kind, Location, chexor, files, migrate};
use rusqlite::Connection;
use std::path::Path;
use vocabulary::{PolicyIndex, Timestamp};

/// How temporary files begin, as everywhere on our devices.
const TEMPORARY_PREFIX: &str = ".martlet-";

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
    files::make_dirs(&location.tmp_dir(), location.device())?;
    let name = format!("{TEMPORARY_PREFIX}{}-{}.db", location.kind().word(), new.unique);
    let staged = location.tmp_dir().join(name);
    // The lock tells a sweep that this file has a writer.
    let alive = files::lock(&staged)?;
    let made = fill(location, new, &staged).and_then(|()| publish(location, &staged));
    if made.is_err() {
        files::discard(&staged);
    }
    drop(alive);
    made
}

/// Removes what creations left on `device` that were cut short by a crash; how many files.
pub fn sweep(device: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(device.join("tmp")) else {
        return 0;
    };
    let ours = |name: &str| {
        let kinds = [Kind::Account, Kind::Container];
        let rest = name.strip_prefix(TEMPORARY_PREFIX).unwrap_or_default();
        kinds.iter().any(|kind| rest.starts_with(kind.word()))
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.to_owned()));
    let staged = names
        .filter(|name| ours(name))
        .map(|name| device.join("tmp").join(name));
    staged.filter(|path| files::remove_if_abandoned(path)).count()
}

fn publish(location: &Location, staged: &Path) -> Result<(), Error> {
    files::make_dirs(&location.hash_dir(), location.device())?;
    let _lock = files::lock(&location.lock_file())?;
    let target = location.db_file();
    if location.newest_file().is_some() {
        return Err(Error::AlreadyExists { path: target });
    }
    files::publish(staged, &target)
}

fn fill(location: &Location, new: &NewDatabase, staged: &Path) -> Result<(), Error> {
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
