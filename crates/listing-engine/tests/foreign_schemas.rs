//! Databases with a schema that Swift does not make, lying on the drive or sent by another host: not one statement of
//! theirs runs, and the others go on.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::{Broker, CopyIdentity, Error, Kind, Location, Metadata, NewDatabase, Row, adopt};
use rusqlite::functions::FunctionFlags;
use std::fs;
use support::{at, container, location, new_database, object, replica, rows};
use vocabulary::{FaultKind, HashPrefix, Partition, Timestamp};

/// What no statement comes to the end of.
const ENDLESS: &str = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)";

/// What has been added to a database: name, kind, statements.
fn foreign() -> Vec<(&'static str, Kind, String)> {
    let endless = |table: &str, event: &str| {
        format!("CREATE TRIGGER evil AFTER {event} ON {table} BEGIN SELECT count(*) FROM {ENDLESS}; END;")
    };
    vec![
        ("endless trigger", Kind::Container, endless("container_info", "UPDATE")),
        ("endless trigger on rows", Kind::Container, endless("object", "INSERT")),
        (
            "endless trigger of an account",
            Kind::Account,
            endless("account_stat", "UPDATE"),
        ),
        (
            "view in place of a table",
            Kind::Container,
            format!(
                "ALTER TABLE container_info RENAME TO stored;
                 CREATE VIEW container_info AS SELECT * FROM stored WHERE (SELECT count(*) FROM {ENDLESS}) > 0;"
            ),
        ),
        (
            "trigger that drops rows",
            Kind::Container,
            "CREATE TRIGGER mild AFTER INSERT ON object WHEN new.name LIKE 'victim%'
             BEGIN DELETE FROM object WHERE ROWID = new.ROWID; END;"
                .into(),
        ),
        (
            "trigger of Swift's that does more",
            Kind::Container,
            "DROP TRIGGER shard_range_update;
             CREATE TRIGGER shard_range_update AFTER INSERT ON object BEGIN DELETE FROM object; END;"
                .into(),
        ),
        (
            "trigger gone",
            Kind::Container,
            "DROP TRIGGER object_insert_policy_stat;".into(),
        ),
        ("another table", Kind::Container, "CREATE TABLE more (x);".into()),
        (
            "another index",
            Kind::Account,
            "CREATE INDEX more ON container (abs(bytes_used));".into(),
        ),
        (
            "another column",
            Kind::Account,
            "ALTER TABLE account_stat ADD COLUMN more TEXT;".into(),
        ),
        (
            "no number for another row",
            Kind::Container,
            "INSERT INTO sqlite_sequence SELECT 'object', 9223372036854775807;".into(),
        ),
        ("texts in UTF-16", Kind::Container, String::new()),
    ]
}

/// Those of them that differ in nothing but the schema.
fn foreign_schemas() -> impl Iterator<Item = (&'static str, Kind, String)> {
    let others = ["texts in UTF-16", "no number for another row"];
    foreign().into_iter().filter(move |(label, ..)| !others.contains(label))
}

fn scribble(broker: &Broker, sql: &str) {
    broker.info().unwrap();
    let raw = rusqlite::Connection::open(broker.location().db_file()).unwrap();
    raw.create_scalar_function("chexor", 3, FunctionFlags::default(), |call| call.get::<String>(0))
        .unwrap();
    raw.execute_batch(sql).unwrap();
}

fn row(kind: Kind, name: &str) -> Row {
    match kind {
        Kind::Container => Row::Object(object(name, at(2))),
        Kind::Account => Row::Container(container(name, at(2), Timestamp::ZERO, 1)),
    }
}

/// Another database on the device of the first.
fn neighbour(of: &Location) -> Broker {
    let hash = HashPrefix::new("pre", "suf").unwrap().container("a", "neighbour");
    let place = Location::new(of.device(), Kind::Container, Partition(1), hash);
    let new = NewDatabase {
        container: Some("neighbour".into()),
        ..new_database(Kind::Container)
    };
    Broker::create(place, &new).unwrap()
}

#[test]
fn one_that_lies_on_the_drive_is_quarantined_alone() {
    for (label, kind, sql) in foreign_schemas() {
        let device = tempfile::tempdir().unwrap();
        let broker = replica(device.path(), kind, 1);
        let beside = neighbour(broker.location());
        scribble(&broker, &sql);
        let place = broker.location().clone();
        drop(broker);
        let error = Broker::open(place.clone()).err().expect(label);
        assert!(matches!(error, Error::Quarantined { .. }), "{label}: {error}");
        assert_eq!(error.kind(), FaultKind::Data, "{label}");
        assert!(
            error.to_string().contains(&place.db_file().display().to_string()),
            "{error}"
        );
        assert!(place.quarantine_dir().exists() && !place.db_file().exists(), "{label}");
        beside.commit_batch(&[row(Kind::Container, "o")]).unwrap();
        assert_eq!(rows(&beside).len(), 1, "{label}");
        let mut again = new_database(kind);
        again.unique = "again".into();
        Broker::create(place, &again).unwrap();
    }
}

#[test]
fn one_that_arrives_gets_no_name() {
    for (label, kind, sql) in foreign_schemas() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sender = replica(there.path(), kind, 1);
        scribble(&sender, &sql);
        let place = location(here.path(), kind);
        fs::create_dir_all(place.tmp_dir()).unwrap();
        let arrived = place.tmp_dir().join("sent");
        fs::copy(sender.location().db_file(), &arrived).unwrap();
        let identity = CopyIdentity {
            name: "sent",
            unique: "new",
        };
        let error = adopt(&place, None, identity, |_| true).expect_err(label);
        assert!(matches!(error, Error::BadCopy { .. }), "{label}: {error}");
        assert_eq!(error.kind(), FaultKind::Data, "{label}");
        assert!(
            error.to_string().contains(&place.db_file().display().to_string()),
            "{error}"
        );
        assert!(!place.db_file().exists() && !arrived.exists(), "{label}");
        assert_eq!(fs::read_dir(place.tmp_dir()).unwrap().count(), 0, "{label}");
    }
}

#[test]
fn one_that_arrives_takes_nobodys_place() {
    for (label, kind, sql) in foreign() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (sender, receiver) = (replica(there.path(), kind, 1), replica(here.path(), kind, 2));
        receiver.commit_batch(&[row(kind, "victim")]).unwrap();
        match label {
            "texts in UTF-16" => utf_16(&sender),
            _ => scribble(&sender, &sql),
        }
        fs::copy(sender.location().db_file(), receiver.location().tmp_dir().join("sent")).unwrap();
        let identity = CopyIdentity {
            name: "sent",
            unique: "new",
        };
        let error = receiver.replace_with(identity, |_| true).expect_err(label);
        assert!(matches!(error, Error::BadCopy { .. }), "{label}: {error}");
        receiver.commit_batch(&[row(kind, "victim 2")]).unwrap();
        assert_eq!(rows(&receiver).len(), 2, "{label}");
    }
}

/// The same in the other encoding, in which names have another order.
fn utf_16(broker: &Broker) {
    broker.info().unwrap();
    let file = broker.location().db_file();
    let from = rusqlite::Connection::open(&file).unwrap();
    let mut statement = from
        .prepare("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'")
        .unwrap();
    let schema: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(statement);
    drop(from);
    fs::write(&file, "").unwrap();
    let to = rusqlite::Connection::open(&file).unwrap();
    to.execute_batch(&format!("PRAGMA encoding = 'UTF-16'; {};", schema.join(";")))
        .unwrap();
    to.execute_batch("INSERT INTO container_info (account, container, id) VALUES ('a', 'c', 'x')")
        .unwrap();
}

/// What brokers leave behind is known, in use as well as when it has been away.
#[test]
fn swifts_own_goes_on() {
    for kind in [Kind::Container, Kind::Account] {
        let device = tempfile::tempdir().unwrap();
        let broker = replica(device.path(), kind, 1);
        broker.commit_batch(&[row(kind, "o")]).unwrap();
        let mut metadata = Metadata::default();
        metadata.set("X-Meta", "v", at(3));
        broker.update_metadata(&metadata).unwrap();
        scribble(&broker, "ANALYZE");
        let again = Broker::open(broker.location().clone()).unwrap();
        assert_eq!(rows(&again).len(), 1);
    }
}

/// OpenStack's migration of accounts makes the table of policies before its triggers.
#[test]
fn a_migration_that_was_cut_short_is_finished() {
    for gone in ["container_insert_ps", "container_delete_ps"] {
        let device = tempfile::tempdir().unwrap();
        let broker = replica(device.path(), Kind::Account, 1);
        scribble(&broker, &format!("DROP TRIGGER {gone}"));
        let again = Broker::open(broker.location().clone()).unwrap();
        again.commit_batch(&[row(Kind::Account, "c")]).unwrap();
        let counted = again.policy_stats().unwrap();
        assert_eq!(
            counted.iter().map(|stat| stat.container_count).sum::<u64>(),
            1,
            "{gone}"
        );
        drop(again);
        assert!(Broker::open(broker.location().clone()).is_ok(), "{gone}");
    }
}
