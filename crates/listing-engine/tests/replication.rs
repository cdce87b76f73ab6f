//! Replicas of one database that tell each other what they know, in any order, end up equal.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::wire::Numbered;
use listing_engine::{
    Arriving, Broker, ContainerRow, CopyIdentity, Direction, Error, Info, Kind, Metadata, ObjectRow, Row, ShardRange,
    SyncPoint, adopt, better_policy,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{at, container, create, location, object, push, replica, rows};
use vocabulary::{PolicyIndex, Timestamp};

const IDENTITY: CopyIdentity<'static> = CopyIdentity {
    name: "remote-id",
    unique: "5e7ab1e5-0000-4000-8000-00000000000f",
};

#[derive(Debug, Clone)]
enum Change {
    Row(u8, u64, bool),
    Item(u8, u64),
    Create(u64),
    Delete(u64),
}

fn changes() -> impl Strategy<Value = Vec<(usize, Change)>> {
    let change = prop_oneof![
        4 => (0u8..5, any::<bool>()).prop_map(|(name, deleted)| Change::Row(name, 0, deleted)),
        1 => (0u8..3).prop_map(|name| Change::Item(name, 0)),
        1 => Just(Change::Create(0)),
        1 => Just(Change::Delete(0)),
    ];
    proptest::collection::vec((0usize..3, change), 1..14).prop_map(|mut changes| {
        // Each change has a moment of its own.
        for (moment, (_, change)) in (2..).zip(&mut changes) {
            match change {
                Change::Row(_, at, _) | Change::Item(_, at) | Change::Create(at) | Change::Delete(at) => *at = moment,
            }
        }
        changes
    })
}

fn apply(broker: &Broker, change: &Change) {
    match *change {
        Change::Row(name, moment, deleted) => {
            let name = format!("name{name}");
            let row = match (broker.location().kind(), deleted) {
                (Kind::Container, true) => Row::Object(ObjectRow::deleted(name, at(moment), PolicyIndex(0))),
                (Kind::Container, false) => Row::Object(object(&name, at(moment))),
                (Kind::Account, true) => Row::Container(ContainerRow {
                    object_count: 0,
                    bytes_used: 0,
                    ..container(&name, Timestamp::ZERO, at(moment), 0)
                }),
                (Kind::Account, false) => Row::Container(container(&name, at(moment), Timestamp::ZERO, 0)),
            };
            broker.commit_batch(&[row]).unwrap();
        }
        Change::Item(name, moment) => {
            let mut update = Metadata::default();
            update.set(
                format!("Item-{name}"),
                if moment % 3 == 0 {
                    String::new()
                } else {
                    moment.to_string()
                },
                at(moment),
            );
            broker.update_metadata(&update).unwrap();
        }
        Change::Create(moment) => broker.update_put_timestamp(at(moment)).unwrap(),
        Change::Delete(moment) => {
            let answer = broker.replication_info().unwrap().summary;
            let deleted = listing_engine::wire::Summary {
                delete_timestamp: at(moment),
                ..answer
            };
            broker.learn(&deleted, at(moment)).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn in_any_order_replicas_become_equal(
        changes in changes(),
        talks in proptest::collection::vec((0usize..3, 0usize..3), 0..6),
        account in any::<bool>(),
    ) {
        let kind = if account { Kind::Account } else { Kind::Container };
        let dir = tempfile::tempdir().unwrap();
        let replicas: Vec<Broker> = (0..3).map(|n| replica(&dir.path().join(format!("sd{n}")), kind, n)).collect();
        for (step, (which, change)) in changes.iter().enumerate() {
            apply(&replicas[*which], change);
            if let Some((from, to)) = talks.get(step).filter(|(from, to)| from != to) {
                push(&replicas[*from], &replicas[*to]);
            }
        }
        for _ in 0..2 {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
                push(&replicas[from], &replicas[to]);
            }
        }
        let first = (rows(&replicas[0]), replicas[0].replication_info().unwrap());
        for other in &replicas[1..] {
            let info = other.replication_info().unwrap();
            prop_assert_eq!(&first.0, &rows(other));
            prop_assert_eq!(&first.1.summary.hash, &info.summary.hash);
            prop_assert_eq!(first.1.summary.put_timestamp, info.summary.put_timestamp);
            prop_assert_eq!(first.1.summary.delete_timestamp, info.summary.delete_timestamp);
            let items = |broker: &Broker| {
                let metadata = broker.metadata().unwrap();
    let mut items: Vec<String> = metadata.iter().map(|item| format!("{item:?}")).collect();
                items.sort();
                items
            };
            prop_assert_eq!(items(&replicas[0]), items(other));
        }
    }
}

#[test]
fn sync_points_only_grow_and_a_source_is_remembered_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    let point = |n| SyncPoint {
        remote_id: "r".into(),
        point: n,
    };
    broker
        .merge_sync_points(&[point(5), point(3)], Direction::Outgoing)
        .unwrap();
    assert_eq!(broker.sync_points(Direction::Outgoing).unwrap(), [point(5)]);
    assert_eq!(broker.sync_point("r", Direction::Incoming).unwrap(), -1);
    let row = |id, name: &str| Numbered {
        id,
        row: Row::Object(object(name, at(2))),
    };
    broker.merge_rows_from(vec![row(9, "a"), row(7, "b")], "r").unwrap();
    assert_eq!(broker.sync_point("r", Direction::Incoming).unwrap(), 9);
    let wrong = Numbered {
        id: 1,
        row: Row::Container(container("c", at(1), Timestamp::ZERO, 0)),
    };
    assert!(matches!(
        broker.merge_rows_from(vec![wrong], "r"),
        Err(Error::WrongKind { .. })
    ));
}

#[test]
fn sizes_beyond_what_can_be_added_keep_nobody_from_a_database() {
    for kind in [Kind::Container, Kind::Account] {
        let dir = tempfile::tempdir().unwrap();
        let broker = create(dir.path(), kind);
        let huge = |name: &str| match kind {
            Kind::Container => Row::Object(ObjectRow {
                size: u64::MAX,
                ..object(name, at(2))
            }),
            Kind::Account => Row::Container(ContainerRow {
                bytes_used: u64::MAX,
                ..container(name, at(2), Timestamp::ZERO, 1)
            }),
        };
        broker.commit_batch(&[huge("a"), huge("b")]).unwrap();
        assert_eq!(broker.info().unwrap().bytes_used, i64::MAX.unsigned_abs());
        assert_eq!(broker.policy_stats().unwrap()[0].bytes_used, i64::MAX.unsigned_abs());
        assert_eq!(broker.replication_info().unwrap().info.object_count, 2);
    }
}

#[test]
fn pending_rows_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    broker.commit_batch(&[Row::Object(object("o", at(2)))]).unwrap();
    assert_eq!(broker.replication_info().unwrap().summary.max_row, 1);
}

#[test]
fn only_what_is_old_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    let gone = |name: &str, seconds| Row::Object(ObjectRow::deleted(name, at(seconds), PolicyIndex(0)));
    let rows = [gone("old", 5), gone("new", 50), Row::Object(object("live", at(5)))];
    broker.commit_batch(&rows).unwrap();
    let mut metadata = Metadata::default();
    metadata.set("old", "", at(5));
    metadata.set("new", "", at(50));
    metadata.set("live", "v", at(5));
    broker.update_metadata(&metadata).unwrap();
    let point = SyncPoint {
        remote_id: "r".into(),
        point: 1,
    };
    broker.merge_sync_points(&[point], Direction::Incoming).unwrap();
    broker.reclaim(at(20), at(0)).unwrap();
    let left = broker.rows_since(-1, 10).unwrap();
    assert_eq!(left.len(), 2, "{left:?}");
    let names: Vec<String> = broker
        .metadata()
        .unwrap()
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(names, ["new", "live"]);
    assert_eq!(broker.sync_points(Direction::Incoming).unwrap().len(), 1);
    broker.reclaim(at(20), Timestamp::from_seconds(4_000_000_000)).unwrap();
    assert_eq!(broker.sync_points(Direction::Incoming).unwrap(), []);
}

/// Two devices, and a way to carry a copy from one to the other.
struct Two {
    _dir: tempfile::TempDir,
    here: Broker,
    there: listing_engine::Location,
}

fn two() -> Two {
    let dir = tempfile::tempdir().unwrap();
    let here = replica(&dir.path().join("sda"), Kind::Container, 1);
    std::fs::create_dir_all(dir.path().join("sdb")).unwrap();
    let there = location(&dir.path().join("sdb"), Kind::Container);
    Two { here, there, _dir: dir }
}

fn carry(from: &Broker, to: &listing_engine::Location) {
    carry_as(from, to, IDENTITY.unique);
}

fn carry_as(from: &Broker, to: &listing_engine::Location, unique: &str) {
    let snapshot = from.snapshot("1").unwrap();
    let mut arriving = Arriving::begin(to, CopyIdentity { unique, ..IDENTITY }).unwrap();
    arriving.write(&std::fs::read(snapshot.path()).unwrap()).unwrap();
    arriving.finish().unwrap();
}

#[test]
fn a_copy_takes_the_place_of_nothing() {
    let two = two();
    two.here.commit_batch(&[Row::Object(object("o", at(2)))]).unwrap();
    two.here.reported(at(0), Timestamp::ZERO, 1, 3).unwrap();
    carry(&two.here, &two.there);
    adopt(&two.there, None, IDENTITY, |info| info.account == "a").unwrap();
    let there = Broker::open(two.there.clone()).unwrap();
    let info = there.replication_info().unwrap();
    assert_eq!(rows(&there), rows(&two.here));
    assert_eq!(info.summary.id, format!("{}-sdb", IDENTITY.unique));
    assert_eq!(info.info.reported_object_count, 0);
    assert_eq!(there.sync_point(IDENTITY.name, Direction::Incoming).unwrap(), 1);
    let left: Vec<_> = std::fs::read_dir(two.there.tmp_dir()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    carry(&two.here, &two.there);
    let again = adopt(&two.there, None, IDENTITY, |_| true);
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(
        std::fs::read_dir(two.there.tmp_dir()).unwrap().count(),
        0,
        "what came too late"
    );
}

#[test]
fn a_copy_that_is_bad_never_gets_the_name() {
    let two = two();
    carry(&two.here, &two.there);
    let elsewhere = adopt(&two.there, None, IDENTITY, |info| info.account == "b");
    assert!(matches!(elsewhere, Err(Error::BadCopy { .. })), "{elsewhere:?}");
    for bytes in [&b"rubbish"[..], &[7; 9_000], b""] {
        let mut arriving = Arriving::begin(&two.there, IDENTITY).unwrap();
        arriving.write(bytes).unwrap();
        arriving.finish().unwrap();
        let refused = adopt(&two.there, None, IDENTITY, |_| true);
        assert!(matches!(refused, Err(Error::BadCopy { .. })), "{refused:?}");
    }
    let snapshot = std::fs::read(two.here.snapshot("1").unwrap().path()).unwrap();
    let mut arriving = Arriving::begin(&two.there, IDENTITY).unwrap();
    arriving.write(&snapshot[..snapshot.len() / 2]).unwrap();
    arriving.finish().unwrap();
    assert!(adopt(&two.there, None, IDENTITY, |_| true).is_err());
    Arriving::begin(&two.there, IDENTITY).unwrap().write(b"half").unwrap();
    assert!(!two.there.hash_dir().exists());
    assert_eq!(std::fs::read_dir(two.there.tmp_dir()).unwrap().count(), 0);
}

/// Its sender lost its patience and sends another, or one that is of something else.
#[test]
fn a_copy_that_arrives_while_one_of_its_name_is_taken_in_is_another() {
    let two = two();
    let there = replica(two.there.device(), Kind::Container, 2);
    there.commit_batch(&[Row::Object(object("there", at(3)))]).unwrap();
    two.here.commit_batch(&[Row::Object(object("here", at(3)))]).unwrap();
    carry(&two.here, &two.there);
    let again = |_: &Info| {
        carry_as(&two.here, &two.there, "another");
        true
    };
    there.replace_with(IDENTITY, again).unwrap();
    let info = there.replication_info().unwrap();
    assert_eq!(
        (info.info.object_count, info.summary.id),
        (2, format!("{}-sdb", IDENTITY.unique))
    );
    let left: Vec<_> = std::fs::read_dir(two.there.tmp_dir()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Rows are taken along in steps, by their numbers, and those of the first to take the place are numbered anew.
#[test]
fn of_two_copies_that_replace_a_database_at_once_the_later_is_refused() {
    let two = two();
    let there = replica(two.there.device(), Kind::Container, 2);
    there.commit_batch(&[Row::Object(object("there", at(3)))]).unwrap();
    two.here.commit_batch(&[Row::Object(object("here", at(3)))]).unwrap();
    carry(&two.here, &two.there);
    let another = CopyIdentity {
        unique: "5e7ab1e5-0000-4000-8000-0000000000ff",
        ..IDENTITY
    };
    let overtaken = |_: &Info| {
        carry_as(&two.here, &two.there, another.unique);
        there.replace_with(another, |_| true).unwrap();
        true
    };
    let refused = there.replace_with(IDENTITY, overtaken);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    let info = there.replication_info().unwrap();
    assert_eq!(
        (info.info.object_count, info.summary.id),
        (2, format!("{}-sdb", another.unique))
    );
}

/// A pass of a replicator reads rows and notes points in steps: a database that took the place of the one that it found
/// numbers its rows anew.
#[test]
fn points_of_a_database_are_not_noted_in_the_one_that_took_its_place() {
    let two = two();
    let there = replica(two.there.device(), Kind::Container, 2);
    let before = there.replication_info().unwrap().summary.id;
    let sent = |point| SyncPoint {
        remote_id: "a third".into(),
        point,
    };
    there.check_is_still(&before).unwrap();
    there.note_sent(&before, &sent(1)).unwrap();
    assert_eq!(there.sync_point("a third", Direction::Outgoing).unwrap(), 1);
    carry(&two.here, &two.there);
    there.replace_with(IDENTITY, |_| true).unwrap();
    let refused = there.check_is_still(&before);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    there.note_sent(&before, &sent(2)).unwrap();
    assert_eq!(there.sync_point("a third", Direction::Outgoing).unwrap(), -1);
}

/// More than the head of an answer may hold would make the container, and soon its devices, unreachable.
#[test]
fn metadata_that_no_gateway_could_read_are_not_taken() {
    let many = (0..3000).map(|n| (format!("X-Container-Sysmeta-Q{n}"), "v".to_owned()));
    let long = [("X-Container-Meta-Long".to_owned(), "v".repeat(200_000))];
    for items in [many.collect::<Vec<_>>(), long.into()] {
        let dir = tempfile::tempdir().unwrap();
        let [here, there] = [1, 2].map(|number| replica(&dir.path().join(number.to_string()), Kind::Container, number));
        let mut kept = Metadata::default();
        kept.set("X-Container-Meta-Kept", "v", at(1));
        there.update_metadata(&kept).unwrap();
        let mut theirs = there.replication_info().unwrap().summary;
        let item = |(name, value): &(String, String)| (name.clone(), json!([value, at(2).internal().to_string()]));
        theirs.metadata = Value::Object(items.iter().map(item).collect()).to_string();
        there.learn(&theirs, at(3)).unwrap();
        assert_eq!(there.metadata().unwrap(), kept);
        let mut many = Metadata::default();
        for (name, value) in items {
            many.set(name, value, at(2));
        }
        here.update_metadata(&many).unwrap();
        carry(&here, there.location());
        let refused = there.replace_with(IDENTITY, |_| true);
        assert!(matches!(refused, Err(Error::BadCopy { .. })), "{refused:?}");
        assert_eq!(there.metadata().unwrap(), kept);
    }
}

#[test]
fn very_many_items_of_metadata_keep_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    let mut theirs = broker.replication_info().unwrap().summary;
    let began = Instant::now();
    for prefix in ["a", "b"] {
        let item = |n| (format!("{prefix}{n}"), json!(["", at(1).internal().to_string()]));
        theirs.metadata = Value::Object((0..100_000).map(item).collect()).to_string();
        broker.learn(&theirs, at(3)).unwrap();
    }
    assert_eq!(broker.metadata().unwrap().iter().count(), 200_000);
    // It was many minutes.
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_name_is_no_path() {
    let two = two();
    for name in ["", ".", "..", "../x", "a/b", ".martlet-x", "a\0b"] {
        let identity = CopyIdentity { name, ..IDENTITY };
        let refused = adopt(&two.there, None, identity, |_| true);
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{name:?}");
        assert!(Arriving::begin(&two.there, identity).is_err(), "{name:?}");
        assert!(two.here.replace_with(identity, |_| true).is_err(), "{name:?}");
    }
    for file in ["x.db", "../x.db", ".lock"] {
        carry(&two.here, &two.there);
        assert!(adopt(&two.there, Some(file), IDENTITY, |_| true).is_err(), "{file}");
    }
}

#[test]
fn a_copy_takes_along_what_was_here() {
    let two = two();
    let names: Vec<String> = (0..2_500).map(|n| format!("o{n:04}")).collect();
    support::fill(&two.here, &names);
    let there = replica(two.there.device(), Kind::Container, 2);
    let only_there = [
        Row::Object(object("only there", at(3))),
        Row::Object(ObjectRow::deleted("o0007", at(9), PolicyIndex(0))),
    ];
    there.commit_batch(&only_there).unwrap();
    there.update_put_timestamp(at(70)).unwrap();
    let mut metadata = Metadata::default();
    metadata.set("Only-There", "v", at(3));
    there.update_metadata(&metadata).unwrap();
    let range = json!({"name": ".shards_a/c-1", "timestamp": "1", "lower": "a", "upper": "m"});
    there
        .merge_shard_ranges(&[ShardRange::from_json(&range).unwrap()])
        .unwrap();
    carry(&two.here, &two.there);
    there.replace_with(IDENTITY, |_| true).unwrap();
    let info = there.replication_info().unwrap();
    assert_eq!((info.info.object_count, info.info.put_timestamp), (2_500, at(70)));
    assert_eq!(info.summary.id, format!("{}-sdb", IDENTITY.unique));
    assert!(there.metadata().unwrap().get("Only-There").is_some());
    // Rows of its own have got greater numbers, which are still to come from there.
    assert_eq!(there.sync_point(IDENTITY.name, Direction::Incoming).unwrap(), 2_500);
    assert_eq!(there.shard_ranges().unwrap().len(), 1);
    there.commit_batch(&[Row::Object(object("after", at(80)))]).unwrap();
    assert_eq!(there.info().unwrap().object_count, 2_501);
    assert_eq!(std::fs::read_dir(two.there.tmp_dir()).unwrap().count(), 0);
}

#[test]
fn rows_that_come_during_an_exchange_survive_it() {
    let two = two();
    let names: Vec<String> = (0..3_000).map(|n| format!("o{n:04}")).collect();
    support::fill(&two.here, &names);
    let there = replica(two.there.device(), Kind::Container, 2);
    // Another handle, as another process has it.
    let stranger = Broker::open(two.there.clone()).unwrap();
    carry(&two.here, &two.there);
    let acknowledged = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut done = vec![];
            for n in 0..150 {
                let name = format!("during{n}");
                match stranger.commit_batch(&[Row::Object(object(&name, at(5)))]) {
                    Ok(()) => done.push(name),
                    Err(error) => assert!(error.may_retry(), "{error}"),
                }
                if n % 20 == 0 {
                    // Also through the tables.
                    let merged = stranger.merge_pending();
                    assert!(merged.as_ref().is_ok_and(|()| true) || merged.unwrap_err().may_retry());
                }
            }
            done
        });
        there.replace_with(IDENTITY, |_| true).unwrap();
        writing.join().unwrap()
    });
    let listed = rows(&there).join("\n");
    for name in &acknowledged {
        assert!(
            listed.contains(&format!("\"{name}\"")),
            "{name} was acknowledged and is lost"
        );
    }
    assert_eq!(there.info().unwrap().object_count as usize, 3_000 + acknowledged.len());
}

#[test]
fn what_has_changed_since_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    let seen = broker.replication_info().unwrap().summary;
    broker.commit_batch(&[Row::Object(object("late", at(2)))]).unwrap();
    assert!(!broker.remove_if_unchanged(&seen).unwrap());
    let seen = broker.replication_info().unwrap().summary;
    assert!(broker.remove_if_unchanged(&seen).unwrap());
    assert!(!dir.path().join("containers/1").exists());
    assert!(matches!(broker.info(), Err(Error::NotFound { .. })));
    let late = broker.commit_batch(&[Row::Object(object("later", at(3)))]);
    assert!(matches!(late, Err(Error::NotFound { .. })));
}

#[test]
fn objects_of_another_policy_are_found_once() {
    let dir = tempfile::tempdir().unwrap();
    let broker = create(dir.path(), Kind::Container);
    let row = |name: &str, policy| {
        Row::Object(ObjectRow {
            policy: PolicyIndex(policy),
            ..object(name, at(2))
        })
    };
    broker.commit_batch(&[row("right", 0), row("wrong", 1)]).unwrap();
    assert!(broker.has_several_policies().unwrap());
    let found = broker.misplaced_since(-1, 10).unwrap();
    assert_eq!((found.len(), found[0].1.name.as_str()), (1, "wrong"));
    assert_eq!(broker.reconciler_point().unwrap(), -1);
    broker.set_reconciler_point(found[0].0).unwrap();
    assert_eq!(
        broker.misplaced_since(broker.reconciler_point().unwrap(), 10).unwrap(),
        []
    );
    let mine = broker.replication_info().unwrap().summary;
    assert_eq!(better_policy(&mine, &mine), None);
}
