//! New databases: made complete in the device's `tmp` directory, synced, then published by name.
//!
//! Always holds: whoever finds a database finds a whole one. Of two that create the same one, one
//! succeeds and the other gets [`Error::AlreadyExists`].

use crate::row::spell;
use crate::{Error, Kind, Location, chexor, files, migrate};
use rusqlite::Connection;
use std::fs::DirEntry;
use std::path::Path;
use std::time::UNIX_EPOCH;
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
    files::make_dirs(&location.tmp_dir(), location.root())?;
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
    let ours = |entry: &DirEntry| {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_PREFIX));
        let kinds = [Kind::Account, Kind::Container];
        rest.is_some_and(|rest| kinds.iter().any(|kind| rest.starts_with(kind.word())))
    };
    remove_abandoned(device, ours)
}

/// Removes what has lain among the temporary files of `device` since before `before`, whosever it is; how many.
pub fn sweep_forgotten(device: &Path, before: Timestamp) -> usize {
    let forgotten = |entry: &DirEntry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && is_older(entry, before)
    };
    remove_abandoned(device, forgotten)
}

/// Removes copies of whole databases on `device` that came before `before` and that nobody has said what to do with: their
/// sender gave up or died in between, and will send another. How many.
pub fn sweep_copies(device: &Path, before: Timestamp) -> usize {
    let unclaimed = |entry: &DirEntry| {
        let name = entry.file_name();
        name.to_str().is_some_and(is_replica_id) && is_older(entry, before)
    };
    remove_abandoned(device, unclaimed)
}

fn remove_abandoned(device: &Path, which: impl Fn(&DirEntry) -> bool) -> usize {
    let entries = std::fs::read_dir(device.join("tmp")).into_iter().flatten().flatten();
    let chosen = entries.filter(which);
    chosen.filter(|entry| files::remove_if_abandoned(&entry.path())).count()
}

fn is_older(entry: &DirEntry, before: Timestamp) -> bool {
    let changed = entry.metadata().and_then(|about| about.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.is_some_and(|since| since.as_secs() < before.seconds())
}

/// `9e001ef1-89d2-42a2-9539-f3fe21373ad9-sdb1`: a UUID, and the device where the replica was made.
fn is_replica_id(name: &str) -> bool {
    let Some((uuid, device)) = name.split_at_checked(36) else {
        return false;
    };
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    uuid.bytes().enumerate().all(fits) && (device.is_empty() || device.starts_with('-'))
}

fn publish(location: &Location, staged: &Path) -> Result<(), Error> {
    files::make_dirs(&location.hash_dir(), location.root())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_nobody_claimed_go_after_a_while() {
        let device = tempfile::tempdir().unwrap();
        let tmp = device.path().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        let copy = tmp.join("9e001ef1-89d2-42a2-9539-f3fe21373ad9-d2b");
        let others = [
            "9e001ef1-89d2-42a2-9539",
            "some upload",
            ".9e001ef1-89d2-42a2-9539-f3fe21373ad9-d2b.Xa3",
        ];
        std::fs::write(&copy, "x").unwrap();
        for name in others {
            std::fs::write(tmp.join(name), "x").unwrap();
        }
        assert_eq!(sweep_copies(device.path(), Timestamp::from_seconds(1_000_000_000)), 0);
        assert_eq!(sweep_copies(device.path(), Timestamp::from_seconds(9_000_000_000)), 1);
        assert!(!copy.exists() && others.iter().all(|name| tmp.join(name).exists()));
        std::fs::create_dir(tmp.join("directory")).unwrap();
        assert_eq!(
            sweep_forgotten(device.path(), Timestamp::from_seconds(1_000_000_000)),
            0
        );
        assert_eq!(
            sweep_forgotten(device.path(), Timestamp::from_seconds(9_000_000_000)),
            3
        );
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 1);
    }
}
