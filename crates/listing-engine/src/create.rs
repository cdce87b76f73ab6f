//! New databases: made complete in the device's `tmp` directory, synced, then published by name.
//!
//! Always holds: a database that is found is a whole one. Of two that create the same one, one
//! succeeds and the other gets [`Error::AlreadyExists`].

use crate::row::spell;
use crate::{DeviceRoot, Error, Kind, Location, connection, known_schemas};
use durable_fs::intent_log;
use rusqlite::Connection;
use std::ffi::OsStr;
use std::path::Path;
use vocabulary::{PolicyIndex, Timestamp};
use world::files::FileKind;

/// How temporary files begin, as everywhere on our devices.
const TEMPORARY_PREFIX: &str = ".martlet-";

/// What a new database begins with.
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
    if location.newest_file()?.is_some() {
        return Err(Error::AlreadyExists {
            path: location.db_file(),
        });
    }
    location.disk().make_dirs(&location.tmp_dir(), location.root())?;
    let name = format!("{TEMPORARY_PREFIX}{}-{}.db", location.kind().word(), new.unique);
    let staged = location.tmp_dir().join(name);
    // The lock tells a sweep that this file has a writer.
    let alive = location.disk().lock(&staged)?;
    let made = fill(location, new, &staged).and_then(|()| publish(location, &staged));
    if made.is_err() {
        location.disk().discard(&staged);
    }
    drop(alive);
    made
}

/// Removes what creations left on `device` that were cut short by a crash; how many files.
pub fn sweep(device: &DeviceRoot) -> usize {
    let ours = |name: &OsStr, _: &Path| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_PREFIX));
        let kinds = [Kind::Account, Kind::Container];
        rest.is_some_and(|rest| kinds.iter().any(|kind| rest.starts_with(kind.word())))
    };
    remove_abandoned(device, ours)
}

/// Removes what has lain among the temporary files of `device` since before `before`, of any program, but for the
/// object servers' logs of rows that are under way; how many.
pub fn sweep_forgotten(device: &DeviceRoot, before: Timestamp) -> usize {
    remove_abandoned(device, |name, path| {
        !intent_log::is_log(name) && is_older(device, path, before)
    })
}

/// Removes copies of whole databases on `device` that came before `before` and that no request has put to use: their
/// sender gave up or died in between, and will send another. How many.
pub fn sweep_copies(device: &DeviceRoot, before: Timestamp) -> usize {
    let unclaimed =
        |name: &OsStr, path: &Path| name.to_str().is_some_and(is_replica_id) && is_older(device, path, before);
    remove_abandoned(device, unclaimed)
}

fn remove_abandoned(device: &DeviceRoot, which: impl Fn(&OsStr, &Path) -> bool) -> usize {
    let tmp = device.path().join("tmp");
    if device.disk().is_link(&tmp) {
        tracing::warn!("{}: is a symbolic link; not swept", tmp.display());
        return 0;
    }
    let entries = device.disk().entries(&tmp).unwrap_or_default();
    let own = entries.into_iter().filter(|(_, is_link)| !is_link);
    let named = own.map(|(name, _)| (tmp.join(&name), name));
    let chosen = named.filter(|(path, name)| which(name, path));
    chosen
        .filter(|(path, _)| device.disk().remove_if_abandoned(path))
        .count()
}

/// Whether a file was last written to before `before`.
fn is_older(device: &DeviceRoot, path: &Path, before: Timestamp) -> bool {
    let info = device.disk().info(path).ok().filter(|info| info.kind == FileKind::File);
    info.is_some_and(|info| u64::try_from(info.modified.0).unwrap_or(0) < before.seconds())
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
    let _lock = location.locked_home()?;
    let target = location.db_file();
    if location.newest_file()?.is_some() {
        return Err(Error::AlreadyExists { path: target });
    }
    location.disk().publish(staged, &target)
}

fn fill(location: &Location, new: &NewDatabase, staged: &Path) -> Result<(), Error> {
    connection::fill(location.disk(), staged, |transaction| match location.kind() {
        Kind::Account => account(transaction, new, &location.device_name()),
        Kind::Container => container(transaction, new, &location.device_name()),
    })
}

fn account(connection: &Connection, new: &NewDatabase, device: &str) -> rusqlite::Result<()> {
    connection.execute_batch(known_schemas::ACCOUNT)?;
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
    connection.execute_batch(known_schemas::CONTAINER)?;
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
    fn what_lies_elsewhere_is_not_swept() {
        let (device, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(elsewhere.path().join("file"), "kept").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), device.path().join("tmp")).unwrap();
        let swept = sweep_forgotten(&device.path().into(), Timestamp::from_seconds(9_000_000_000));
        assert_eq!((swept, elsewhere.path().join("file").exists()), (0, true));
    }

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
        assert_eq!(
            sweep_copies(&device.path().into(), Timestamp::from_seconds(1_000_000_000)),
            0
        );
        assert_eq!(
            sweep_copies(&device.path().into(), Timestamp::from_seconds(9_000_000_000)),
            1
        );
        assert!(!copy.exists() && others.iter().all(|name| tmp.join(name).exists()));
        std::fs::create_dir(tmp.join("directory")).unwrap();
        assert_eq!(
            sweep_forgotten(&device.path().into(), Timestamp::from_seconds(1_000_000_000)),
            0
        );
        assert_eq!(
            sweep_forgotten(&device.path().into(), Timestamp::from_seconds(9_000_000_000)),
            3
        );
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 1);
    }

    #[test]
    fn rows_under_way_stay() {
        let device = tempfile::tempdir().unwrap();
        let log = device.path().join("tmp/.updates-0123456789abcdef.pending");
        std::fs::create_dir(device.path().join("tmp")).unwrap();
        std::fs::write(&log, "x").unwrap();
        let swept = sweep_forgotten(&device.path().into(), Timestamp::from_seconds(9_000_000_000));
        assert_eq!((swept, log.exists()), (0, true));
    }
}
