//! One broker's life: create, fill, describe, delete, recreate; shared syncs; damage.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::{
    Arriving, Broker, Brokers, CopyIdentity, DeviceRoot, Error, Kind, ListQuery, Location, Metadata, ObjectRow, Row,
};
use std::fs;
use std::sync::Arc;
use support::{at, container, create, fill, location, names, new_database, object, t};
use vocabulary::{FaultKind, PolicyIndex, Timestamp};

#[test]
fn a_container_lives_and_dies_and_lives_again() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    let info = broker.info().unwrap();
    assert_eq!((info.account.as_str(), info.container.as_deref()), ("a", Some("c")));
    assert_eq!((info.put_timestamp, info.status_changed_at), (at(0), at(0)));
    assert!(info.id.starts_with("5e7ab1e5-"));
    fill(&broker, &["x".to_owned(), "y".to_owned()]);
    let info = broker.info().unwrap();
    assert_eq!((info.object_count, info.bytes_used), (2, 6));
    assert!(!broker.is_empty().unwrap());

    let mut metadata = Metadata::default();
    metadata.set("X-Container-Meta-A", "v", at(1));
    broker.update_metadata(&metadata).unwrap();
    assert_eq!(broker.metadata().unwrap(), metadata);

    let gone = ["x", "y"].map(|name| Row::Object(ObjectRow::deleted(name, at(2), PolicyIndex(0))));
    broker.commit_batch(&gone).unwrap();
    assert!(broker.is_empty().unwrap());
    assert_eq!(broker.info().unwrap().hash.len(), 32);
    broker.delete(at(3)).unwrap();
    assert!(broker.is_deleted().unwrap());
    assert_eq!(broker.metadata().unwrap().get("X-Container-Meta-A").unwrap().value, "");
    let info = broker.info().unwrap();
    assert_eq!((info.status.as_str(), info.delete_timestamp), ("DELETED", at(3)));
    broker.update_put_timestamp(at(2)).unwrap();
    assert!(broker.is_deleted().unwrap(), "an older PUT does not bring it back");
    broker.update_put_timestamp(at(4)).unwrap();
    broker.update_status_changed_at(at(4)).unwrap();
    assert!(!broker.is_deleted().unwrap());
    broker.set_policy(PolicyIndex(2), at(5)).unwrap();
    let info = broker.info().unwrap();
    assert_eq!((info.policy, info.status_changed_at), (PolicyIndex(2), at(5)));
}

#[test]
fn what_a_killed_creator_left_goes() {
    let device = tempfile::tempdir().unwrap();
    let place = location(device.path(), Kind::Container);
    let (home, tree) = (place.hash_dir(), device.path().join("containers"));
    assert!(!place.remove_if_unmade().unwrap());
    for lock in [false, true] {
        fs::create_dir_all(&home).unwrap();
        if lock {
            fs::write(place.lock_file(), "").unwrap();
        }
        assert!(place.remove_if_unmade().unwrap());
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 0, "the partition has gone, too");
    }
    fs::create_dir_all(&home).unwrap();
    fs::write(place.pending_file(), "rows").unwrap();
    assert!(!place.remove_if_unmade().unwrap() && place.pending_file().exists());
    fs::remove_file(place.pending_file()).unwrap();
    let broker = Broker::create(place.clone(), &new_database(Kind::Container)).unwrap();
    assert!(!place.remove_if_unmade().unwrap() && broker.info().is_ok());
}

#[test]
fn nothing_is_made_below_a_bare_mount_point() {
    let device = tempfile::tempdir().unwrap();
    let known = location(device.path(), Kind::Container);
    let root = DeviceRoot::new(device.path(), true);
    let place = Location::new(root, Kind::Container, known.partition(), known.hash());
    let refused = Broker::create(place.clone(), &new_database(Kind::Container))
        .err()
        .unwrap();
    assert_eq!(refused.kind(), FaultKind::Device, "{refused}");
    let identity = CopyIdentity {
        name: "copy",
        unique: "1",
    };
    assert!(Arriving::begin(&place, identity).is_err());
    assert_eq!(fs::read_dir(device.path()).unwrap().count(), 0);
}

#[test]
fn an_account_counts_its_containers_per_policy() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Account);
    let mut gold = container("gold", at(1), Timestamp::ZERO, 5);
    gold.policy = PolicyIndex(1);
    let rows = [
        container("c", at(1), Timestamp::ZERO, 3),
        gold,
        container("gone", at(1), at(2), 0),
    ];
    broker.commit_batch(&rows.map(Row::Container)).unwrap();
    let info = broker.info().unwrap();
    assert_eq!((info.container_count, info.object_count, info.bytes_used), (2, 8, 80));
    let stats = broker.policy_stats().unwrap();
    let of = |i: usize| (stats[i].policy.0, stats[i].container_count, stats[i].object_count);
    assert_eq!((of(0), of(1)), ((0, 1, 3), (1, 1, 5)));
    broker.delete(at(9)).unwrap();
    assert!(broker.is_deleted().unwrap(), "a deleted account stays deleted");
    assert!(matches!(
        broker.commit_batch(&[Row::Object(object("o", at(1)))]),
        Err(Error::WrongKind { .. })
    ));
}

#[test]
fn an_account_knows_what_it_says_of_a_container() {
    let place = tempfile::tempdir().unwrap();
    let broker = create(place.path(), Kind::Account);
    let row = container("c", at(1), Timestamp::ZERO, 3);
    assert!(!broker.says(&row).unwrap());
    broker.commit_batch(&[Row::Container(row.clone())]).unwrap();
    assert!(!broker.says(&row).unwrap(), "not merged yet");
    broker.merge_pending().unwrap();
    assert!(broker.says(&row).unwrap());
    assert!(!broker.says(&container("c", at(1), Timestamp::ZERO, 4)).unwrap());
    assert!(!broker.says(&container("d", at(1), Timestamp::ZERO, 3)).unwrap());
}

#[test]
fn creating_twice_is_refused_and_leaves_no_temporary_file() {
    let device = tempfile::tempdir().unwrap();
    create(device.path(), Kind::Container);
    let again = Broker::create(location(device.path(), Kind::Container), &new_database(Kind::Container));
    assert!(matches!(again.err(), Some(Error::AlreadyExists { .. })));
    assert_eq!(fs::read_dir(device.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_creation_cut_short_is_swept_away_and_a_running_one_is_not() {
    let device = tempfile::tempdir().unwrap();
    let tmp = device.path().join("tmp");
    assert_eq!(listing_engine::sweep(&device.path().into()), 0);
    fs::create_dir(&tmp).unwrap();
    for name in [
        ".martlet-account-1.db",
        ".martlet-container-2.db",
        ".martlet-object",
        "theirs",
    ] {
        fs::write(tmp.join(name), b"half").unwrap();
    }
    let alive = fs::File::open(tmp.join(".martlet-container-2.db")).unwrap();
    rustix::fs::flock(&alive, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(listing_engine::sweep(&device.path().into()), 1);
    drop(alive);
    assert_eq!(listing_engine::sweep(&device.path().into()), 1);
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 2);
}

#[test]
fn what_is_absent_is_reported_so() {
    let device = tempfile::tempdir().unwrap();
    let place = location(device.path(), Kind::Container);
    assert!(matches!(
        Broker::open(place.clone()).err(),
        Some(Error::NotFound { .. })
    ));
    let broker = create(device.path(), Kind::Container);
    fill(&broker, &["x".to_owned()]);
    broker.info().unwrap();
    fs::remove_dir_all(place.hash_dir()).unwrap();
    assert!(matches!(broker.info(), Err(Error::NotFound { .. })));
    let lost = broker.commit_batch(&[Row::Object(object("y", at(1)))]);
    assert!(matches!(lost, Err(Error::NotFound { .. })), "{lost:?}");
    assert!(broker.is_deleted().unwrap());
}

#[test]
fn many_threads_share_syncs_and_lose_nothing() {
    let device = tempfile::tempdir().unwrap();
    let brokers = Brokers::new(4);
    let place = location(device.path(), Kind::Container);
    brokers.create(&place, &new_database(Kind::Container)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let broker = brokers.open(&place).unwrap();
            scope.spawn(move || {
                for i in 0..100 {
                    let name = format!("{thread}-{i:03}");
                    broker.commit_batch(&[Row::Object(object(&name, at(1)))]).unwrap();
                    if i % 25 == 0 {
                        let query = ListQuery {
                            prefix: name.clone(),
                            ..ListQuery::default()
                        };
                        assert_eq!(names(&broker, &query).unwrap(), [name], "an acknowledged row is seen");
                    }
                }
            });
        }
    });
    // A second handle has only the disk to know from.
    let fresh = Broker::open(place).unwrap();
    assert_eq!(fresh.info().unwrap().object_count, 800);
}

#[test]
fn a_full_pending_file_is_merged() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    let pending = broker.location().pending_file();
    for i in 0..1_500 {
        let (stored, hear) = std::sync::mpsc::channel();
        let row = Row::Object(object(&format!("{i}"), at(1)));
        if broker.enqueue(vec![row], move |result| stored.send(result).unwrap()) {
            broker.flush();
        }
        hear.recv().unwrap().unwrap();
        assert!(fs::metadata(&pending).unwrap().len() <= 131_072);
    }
    assert_eq!(broker.info().unwrap().object_count, 1_500);
    assert_eq!(fs::metadata(&pending).unwrap().len(), 0);
}

#[test]
fn a_torn_pending_record_costs_only_itself() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    fill(&broker, &["one".to_owned(), "two".to_owned()]);
    let pending = broker.location().pending_file();
    let bytes = fs::read(&pending).unwrap();
    fs::write(&pending, &bytes[..bytes.len() - 10]).unwrap();
    fill(&broker, &["three".to_owned()]);
    assert_eq!(names(&broker, &ListQuery::default()).unwrap(), ["one", "three"]);
}

#[test]
fn damaged_databases_are_quarantined_by_name() {
    let other_schema = {
        let device = tempfile::tempdir().unwrap();
        let broker = create(device.path(), Kind::Account);
        fs::read(broker.location().db_file()).unwrap()
    };
    let good = {
        let device = tempfile::tempdir().unwrap();
        let broker = create(device.path(), Kind::Container);
        let many: Vec<String> = (0..2_000).map(|i| format!("{i:0100}")).collect();
        fill(&broker, &many);
        broker.info().unwrap();
        fs::read(broker.location().db_file()).unwrap()
    };
    let mut flipped = good.clone();
    for page in good.len() / 8192..good.len() / 4096 {
        flipped[page * 4096..page * 4096 + 64].fill(0xff);
    }
    let cases = [
        ("empty", Vec::new()),
        ("rubbish", b"rubbish".repeat(1_000)),
        ("truncated", good[..good.len() / 2].to_vec()),
        ("header only", good[..100].to_vec()),
        ("flipped", flipped),
        ("other schema", other_schema),
    ];
    for (label, bytes) in cases {
        let device = tempfile::tempdir().unwrap();
        let broker = create(device.path(), Kind::Container);
        let place = broker.location().clone();
        fs::write(place.db_file(), bytes).unwrap();
        let outcome = broker
            .info()
            .and_then(|_| names(&broker, &ListQuery::default()).map(|_| ()));
        let error = outcome.expect_err(label);
        assert!(matches!(error, Error::Quarantined { .. }), "{label}: {error}");
        assert_eq!(error.kind(), FaultKind::Data);
        assert!(
            error.to_string().contains(&place.db_file().display().to_string()),
            "{error}"
        );
        assert!(
            place
                .quarantine_dir()
                .join(place.db_file().file_name().unwrap())
                .exists(),
            "{label}"
        );
        assert!(!place.hash_dir().exists(), "{label}");
        // The place is free again, and a second casualty finds room beside the first.
        let again = create(device.path(), Kind::Container);
        fs::write(place.db_file(), b"rubbish".repeat(1_000)).unwrap();
        assert!(matches!(again.info(), Err(Error::Quarantined { .. })));
    }
}

#[test]
fn unreadable_metadata_is_an_error_that_names_the_file() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    let raw = rusqlite::Connection::open(broker.location().db_file()).unwrap();
    raw.execute("UPDATE container_info SET metadata = 'not json'", [])
        .unwrap();
    let error = broker.metadata().unwrap_err();
    assert!(matches!(error, Error::Metadata { .. }), "{error}");
    assert!(broker.info().is_ok(), "the rest still works");
}

#[test]
fn a_replaced_file_is_noticed() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    fill(&broker, &["x".to_owned()]);
    assert_eq!(broker.info().unwrap().object_count, 1);
    let spare = tempfile::tempdir().unwrap();
    let other = create(spare.path(), Kind::Container);
    fill(&other, &["1".to_owned(), "2".to_owned()]);
    other.info().unwrap();
    let staged = broker.location().hash_dir().join("incoming");
    fs::copy(other.location().db_file(), &staged).unwrap();
    fs::rename(staged, broker.location().db_file()).unwrap();
    assert_eq!(broker.info().unwrap().object_count, 2);
}

#[test]
fn a_lock_held_by_another_is_waited_for() {
    let device = tempfile::tempdir().unwrap();
    let broker = Arc::new(create(device.path(), Kind::Container));
    let lock = fs::File::create(broker.location().lock_file()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let writer = std::thread::spawn({
        let broker = broker.clone();
        move || broker.commit_batch(&[Row::Object(object("x", t("1700000001")))])
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!writer.is_finished());
    drop(lock);
    writer.join().unwrap().unwrap();
    assert_eq!(broker.info().unwrap().object_count, 1);
}

/// SQLite would wait for a pipe without end, and write where a link leads.
#[test]
fn what_is_no_file_in_place_of_a_database_or_beside_it_is_quarantined() {
    let pipe = |path: &std::path::Path| {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap()
                .success()
        )
    };
    let link = |path: &std::path::Path| std::os::unix::fs::symlink("/nowhere/else", path).unwrap();
    let directory = |path: &std::path::Path| fs::create_dir(path).unwrap();
    let around = |path: &std::path::Path| std::os::unix::fs::symlink(path, path).unwrap();
    let strange: [&dyn Fn(&std::path::Path); 4] = [&pipe, &link, &directory, &around];
    for ending in ["", "-journal", "-wal", "-shm", ".pending", ".lock"] {
        for make in strange {
            let place = tempfile::tempdir().unwrap();
            let location = location(place.path(), Kind::Container);
            drop(create(place.path(), Kind::Container));
            let path = match ending {
                ".lock" => location.hash_dir().join(ending),
                _ => std::path::PathBuf::from(format!("{}{ending}", location.db_file().display())),
            };
            let _ = fs::remove_file(&path);
            make(&path);
            assert!(
                matches!(Broker::open(location), Err(Error::Quarantined { .. })),
                "{ending}"
            );
            create(place.path(), Kind::Container);
        }
    }
    // In place of the directory that it has for itself.
    let place = tempfile::tempdir().unwrap();
    let location = location(place.path(), Kind::Container);
    fs::create_dir_all(location.hash_dir().parent().unwrap()).unwrap();
    fs::write(location.hash_dir(), "x").unwrap();
    assert!(matches!(Broker::open(location), Err(Error::Quarantined { .. })));
    create(place.path(), Kind::Container);
    // Also while it is open.
    let place = tempfile::tempdir().unwrap();
    let broker = create(place.path(), Kind::Container);
    broker.delete(at(2)).unwrap();
    let journal = std::path::PathBuf::from(format!("{}-journal", broker.location().db_file().display()));
    fs::remove_file(&journal).unwrap();
    pipe(&journal);
    assert!(matches!(broker.delete(at(3)), Err(Error::Quarantined { .. })));
}
