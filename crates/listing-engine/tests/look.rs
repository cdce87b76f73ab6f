//! Looking at a database changes nothing of it, and says what its servers would say.

#![allow(clippy::unwrap_used, reason = "this is test code")]

use listing_engine::{Broker, Direction, Error, Kind, ObjectRow, Row, Waiting};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use support::at;
use world::World;

mod support;

fn look(kind: Kind, path: &Path, waiting: Waiting) -> Result<Broker, Error> {
    Broker::look(World::real().files, kind, path, waiting)
}

/// Everything below a folder, byte for byte.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.append(&mut contents(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn object(name: &str, seconds: u64, size: u64) -> Row {
    Row::Object(ObjectRow {
        size,
        ..support::object(name, at(seconds))
    })
}

fn container(device: &Path) -> Broker {
    support::create(device, Kind::Container)
}

#[test]
fn rows_that_wait_are_counted_and_stay_where_they_are() {
    let device = tempfile::tempdir().unwrap();
    let broker = container(device.path());
    broker
        .commit_batch(&[object("kept", 1, 10), object("replaced", 1, 100)])
        .unwrap();
    broker.merge_pending().unwrap();
    broker
        .commit_batch(&[object("replaced", 2, 7), object("replaced", 3, 1), object("new", 2, 5)])
        .unwrap();
    let before = contents(device.path());
    let looked = look(Kind::Container, &broker.location().db_file(), Waiting::Counts).unwrap();
    let info = looked.info().unwrap();
    assert_eq!((info.object_count, info.bytes_used), (3, 16));
    let tables = look(Kind::Container, &broker.location().db_file(), Waiting::DoesNotCount).unwrap();
    assert_eq!(tables.info().unwrap().bytes_used, 110);
    assert!(tables.sync_notes(Direction::Incoming).unwrap().is_empty());
    assert_eq!(looked.spelled().unwrap()["account"], info.account);
    assert_eq!(contents(device.path()), before);
    // The servers come to the same.
    let merged = broker.info().unwrap();
    assert_eq!(
        (merged.object_count, merged.bytes_used, &merged.hash),
        (3, 16, &info.hash)
    );
}

#[test]
fn what_is_no_database_of_the_kind_is_reported_and_left() {
    let device = tempfile::tempdir().unwrap();
    let broker = container(device.path());
    let file = broker.location().db_file();
    let wrong = look(Kind::Account, &file, Waiting::Counts).map(drop).unwrap_err();
    assert!(matches!(wrong, Error::WrongKind { .. }), "{wrong}");
    for (name, content) in [
        ("empty.db", &b""[..]),
        ("junk.db", b"junk"),
        ("half.db", &fs::read(&file).unwrap()[..5000]),
    ] {
        let path = device.path().join(name);
        fs::write(&path, content).unwrap();
        let before = contents(device.path());
        let error = look(Kind::Container, &path, Waiting::Counts).map(drop).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(contents(device.path()), before);
    }
}

#[test]
fn a_schema_that_says_more_than_one_thing_is_not_obeyed() {
    let device = tempfile::tempdir().unwrap();
    let broker = container(device.path());
    let (file, trap) = (broker.location().db_file(), device.path().join("trap"));
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("PRAGMA writable_schema=ON").unwrap();
    let more = format!("; ATTACH '{}' AS trap; CREATE TABLE trap.t (x);", trap.display());
    connection
        .execute(
            "UPDATE sqlite_master SET sql = sql || ? WHERE name = 'incoming_sync'",
            [more],
        )
        .unwrap();
    drop(connection);
    let _ = look(Kind::Container, &file, Waiting::Counts).map(|looked| looked.info());
    assert!(!trap.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_spoilt_file_is_read_or_refused(spots in proptest::collection::vec((0_usize..60_000, any::<u8>()), 1..60)) {
        let device = tempfile::tempdir().unwrap();
        let broker = container(device.path());
        let mut bytes = fs::read(broker.location().db_file()).unwrap();
        for (at, byte) in spots {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let path = device.path().join("spoilt.db");
        fs::write(&path, &bytes).unwrap();
        if let Ok(looked) = look(Kind::Container, &path, Waiting::Counts) {
            let _ = (looked.info(), looked.metadata(), looked.shard_ranges(), looked.spelled());
        }
        prop_assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
