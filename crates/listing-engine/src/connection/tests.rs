//! What an open database does not put up with.

use super::*;
use crate::{Broker, NewDatabase};
use vocabulary::{FaultKind, HashPrefix, Partition, PolicyIndex, Timestamp};

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn made(device: &Path) -> Location {
    let hash = HashPrefix::new("pre", "suf").unwrap().container("a", "c");
    let location = Location::new(device, Kind::Container, Partition(1), hash);
    let new = NewDatabase {
        account: "a".into(),
        container: Some("c".into()),
        put_timestamp: Timestamp::from_seconds(1),
        created_at: Timestamp::from_seconds(1),
        policy: PolicyIndex(0),
        unique: "id".into(),
    };
    drop(Broker::create(location.clone(), &new).unwrap());
    location
}

fn opened(location: &Location) -> Database {
    Database::open(location, Schemas::Known).ok().unwrap()
}

#[test]
fn what_takes_too_long_is_undone_and_costs_neither_database_nor_drive() {
    let device = tempfile::tempdir().unwrap();
    let mut database = opened(&made(device.path()));
    let limits = WorkLimits {
        request: Duration::ZERO,
        ..WorkLimits::default()
    };
    database.deadline = Deadline::watch(&mut database.connection, limits, None).unwrap();
    let stopped = database.write("write", |transaction| {
        transaction.execute("UPDATE container_info SET account = 'other'", [])?;
        transaction.query_row(ENDLESS, [], |_| Ok(()))
    });
    let Err(DatabaseFailure::Error(error)) = stopped else {
        panic!("it is an error, and no damage");
    };
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    assert_eq!(
        error.kind(),
        FaultKind::Contention,
        "503, and nothing is said against the drive"
    );
    assert!(
        error.to_string().contains(&database.path().display().to_string()),
        "{error}"
    );
    let account = database.read("read", |c| {
        c.query_row("SELECT account FROM container_info", [], |row| row.get::<_, String>(0))
    });
    assert!(account.is_ok_and(|account| account == "a"));
    let job = database.write_long("write", |t| t.execute("UPDATE container_info SET status = 'x'", []));
    assert!(job.is_ok_and(|count| count == 1));
}

#[test]
fn a_schema_may_neither_be_written_to_nor_call_what_is_not_innocuous() {
    let device = tempfile::tempdir().unwrap();
    let database = opened(&made(device.path()));
    for refused in [
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '' WHERE name = 'object_update'",
        "CREATE TEMP VIEW v AS SELECT load_extension('x'); SELECT * FROM v",
    ] {
        let done = database.read("break", |c| c.execute_batch(refused));
        assert!(done.is_err(), "{refused}");
    }
    let long = "SELECT length(zeroblob(100000000))";
    assert!(database.read("ask", |c| c.query_row(long, [], |_| Ok(()))).is_err());
}
