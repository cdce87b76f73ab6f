//! Databases that hold what no broker writes: the rest of them goes on.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::{Broker, Direction, Error, Kind, Metadata, Row};
use rusqlite::functions::FunctionFlags;
use support::{at, container, object, push, replica, rows};
use vocabulary::Timestamp;

/// Writes rows by hand, as no broker does: name, and what the other columns are in SQL.
fn scribble(broker: &Broker, sql: &str) {
    broker.merge_pending().unwrap();
    let raw = rusqlite::Connection::open(broker.location().db_file()).unwrap();
    raw.create_scalar_function("chexor", 3, FunctionFlags::default(), |call| call.get::<String>(0))
        .unwrap();
    raw.execute_batch(sql).unwrap();
}

#[test]
fn one_odd_row_keeps_no_other_from_travelling() {
    let time = "0000000005.00000";
    let columns = "name, created_at, size, content_type, etag, deleted, storage_policy_index";
    // The row, and whether a row of its name arrives.
    let odd = [
        (format!("'odd', '{time}', 'many', 't', 'e', 0, 0"), true),
        (format!("'odd', '{time}', 5.5, 't', 'e', 0, 0"), true),
        (format!("'odd', '{time}', NULL, NULL, NULL, NULL, NULL"), true),
        (format!("'odd', '{time}', 5, x'ff', CAST(x'fe' AS TEXT), 2, 0"), true),
        ("'odd', 'yesterday', -5, 5, 6.5, 0, 0".into(), true),
        (format!("'odd', '{time}', 5, 't', 'e', 0, -1"), false),
        (format!("x'6f64ff', '{time}', 5, 't', 'e', 0, 0"), false),
        (format!("NULL, '{time}', 5, 't', 'e', 0, 0"), false),
    ];
    for (values, travels) in odd {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (
            replica(here.path(), Kind::Container, 1),
            replica(there.path(), Kind::Container, 2),
        );
        from.commit_batch(&[Row::Object(object("before", at(1)))]).unwrap();
        scribble(&from, &format!("INSERT INTO object ({columns}) VALUES ({values})"));
        from.commit_batch(&[Row::Object(object("behind", at(1)))]).unwrap();
        push(&from, &to);
        let mut arrived: Vec<_> = to.rows_since(-1, usize::MAX).unwrap();
        arrived.retain(|numbered| !matches!(&numbered.row, Row::Object(row) if row.name == "odd"));
        assert_eq!(arrived.len(), 2, "{values}");
        assert_eq!(rows(&to).len(), 2 + usize::from(travels), "{values}");
        // What is newer comes in its place, as with others.
        push(&to, &from);
        from.commit_batch(&[Row::Object(object("odd", at(9)))]).unwrap();
        push(&from, &to);
        assert!(rows(&to).iter().any(|row| row.contains("\"odd\"")), "{values}");
        assert!(from.info().is_ok() && from.policy_stats().is_ok(), "{values}");
    }
}

#[test]
fn one_odd_container_keeps_no_other_from_travelling() {
    let columns = "name, put_timestamp, delete_timestamp, object_count, bytes_used, deleted, storage_policy_index";
    let odd = [
        ("'odd', '0000000005.00000', '0', 'many', 5.5, 0, 0", true),
        ("'odd', x'ff', NULL, NULL, -1, NULL, NULL", true),
        ("'odd', '0000000005.00000', '0', 1, 1, 0, -1", false),
        ("x'ff', '0000000005.00000', '0', 1, 1, 0, 0", false),
    ];
    for (values, travels) in odd {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (
            replica(here.path(), Kind::Account, 1),
            replica(there.path(), Kind::Account, 2),
        );
        scribble(&from, &format!("INSERT INTO container ({columns}) VALUES ({values})"));
        from.commit_batch(&[Row::Container(container("good", at(1), Timestamp::ZERO, 1))])
            .unwrap();
        push(&from, &to);
        assert!(rows(&to).iter().any(|row| row.contains("\"good\"")), "{values}");
        assert_eq!(rows(&to).len(), 1 + usize::from(travels), "{values}");
        from.commit_batch(&[Row::Container(container("odd", at(9), Timestamp::ZERO, 1))])
            .unwrap();
        push(&from, &to);
        assert!(rows(&to).iter().any(|row| row.contains("\"odd\"")), "{values}");
    }
}

#[test]
fn metadata_that_cannot_be_read_keep_no_row_here_and_come_from_another_replica() {
    for (kind, rubbish) in [
        (Kind::Container, "'{\"X-Container-Meta-A\": [\"v\", '"),
        (Kind::Container, "'[1]'"),
        (Kind::Container, "x'ff'"),
        (Kind::Account, "CAST(x'7bff7d' AS TEXT)"),
    ] {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (replica(here.path(), kind, 1), replica(there.path(), kind, 2));
        let row = match kind {
            Kind::Container => Row::Object(object("o", at(1))),
            Kind::Account => Row::Container(container("c", at(1), Timestamp::ZERO, 1)),
        };
        from.commit_batch(&[row]).unwrap();
        let mut metadata = Metadata::default();
        metadata.set("X-Container-Meta-A", "v", at(3));
        to.update_metadata(&metadata).unwrap();
        let table = match kind {
            Kind::Container => "container_info",
            Kind::Account => "account_stat",
        };
        scribble(&from, &format!("UPDATE {table} SET metadata = {rubbish}"));
        assert!(from.metadata().is_err(), "{rubbish}");
        from.reclaim(at(5), at(5)).unwrap();
        assert_eq!(from.replication_info().unwrap().summary.metadata, "", "{rubbish}");
        push(&from, &to);
        assert_eq!(rows(&to).len(), 1, "{rubbish}");
        assert_eq!(from.metadata().unwrap(), metadata, "{rubbish}");
        assert_eq!(to.metadata().unwrap(), metadata, "{rubbish}");
    }
}

#[test]
fn a_database_that_does_not_say_whose_it_is_goes_to_quarantine_and_others_go_on() {
    let odd = [
        (Kind::Container, "account = NULL", false),
        (Kind::Container, "container = x'ff'", false),
        (Kind::Container, "container = CAST(x'ff' AS TEXT)", false),
        (Kind::Container, "id = NULL", false),
        (Kind::Container, "storage_policy_index = -1", false),
        (Kind::Account, "account = NULL", false),
        (Kind::Container, "storage_policy_index = NULL", true),
        (
            Kind::Container,
            "hash = NULL, status = NULL, put_timestamp = NULL",
            true,
        ),
        (
            Kind::Container,
            "x_container_sync_point1 = 'far', reconciler_sync_point = 1.5",
            true,
        ),
        (Kind::Account, "status_changed_at = 'yesterday', id = 5", true),
    ];
    for (kind, set, goes_on) in odd {
        let device = tempfile::tempdir().unwrap();
        let broker = replica(device.path(), kind, 1);
        let table = match kind {
            Kind::Container => "container_info",
            Kind::Account => "account_stat",
        };
        scribble(&broker, &format!("UPDATE {table} SET {set}"));
        let answer = broker.replication_info();
        match goes_on {
            true => assert!(answer.is_ok() && broker.audit(at(999)).is_ok(), "{set}: {answer:?}"),
            false => {
                assert!(matches!(answer, Err(Error::Quarantined { .. })), "{set}: {answer:?}");
                assert!(!broker.exists().unwrap(), "{set}");
            }
        }
        let point = broker.sync_point("nobody", Direction::Incoming);
        assert_eq!(point.is_ok(), goes_on, "{set}");
    }
}

#[test]
fn odd_sync_points_are_none() {
    let device = tempfile::tempdir().unwrap();
    let broker = replica(device.path(), Kind::Container, 1);
    let odd = "INSERT INTO incoming_sync (remote_id, sync_point) VALUES ('far', 'x'), (NULL, NULL), (x'ff', 1.5)";
    scribble(&broker, odd);
    assert_eq!(broker.sync_point("far", Direction::Incoming).unwrap(), -1);
    let points = broker.sync_points(Direction::Incoming).unwrap();
    assert!(
        points.len() == 3 && points.iter().all(|known| known.point == -1),
        "{points:?}"
    );
}
