//! A sync that fails, the engine's own or SQLite's, takes the drive out of service for writes.

#![allow(clippy::unwrap_used, reason = "this is test code")]

#[allow(dead_code, reason = "not all of its faults are wanted here")]
#[path = "../../object-engine/tests/faulty/mod.rs"]
mod faulty;
mod preload;
mod support;

use durable_fs::{Drives, Health, TrialOutcome};
use faulty::Faulty;
use listing_engine::{Broker, DeviceRoot, Error, Info, Kind, ListQuery, Location, Row};
use std::path::Path;
use std::sync::Arc;
use support::{at, create, location, names, new_database, object};
use vocabulary::FaultKind;
use world::files::FileSystem;
use world::real_files::RealFiles;

const EIO: i32 = 5;
const LIBRARY: &str = r#"
    int fsync(int fd) {
        if (fails(fd, "fail", 0)) return -1;
        return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
    }
    int fdatasync(int fd) {
        if (fails(fd, "fail", 0)) return -1;
        return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
    }
"#;

fn watched(device: &Path, files: Arc<dyn FileSystem>) -> (Location, Arc<Health>) {
    let health = Drives::default().health(device);
    // Watched from here on: the first second has passed.
    health.tick();
    (watched_at(device, Kind::Container, files, health.clone()), health)
}

fn watched_at(device: &Path, kind: Kind, files: Arc<dyn FileSystem>, health: Arc<Health>) -> Location {
    let plain = location(device, kind);
    let root = DeviceRoot::new(device, false).on(&files).watched(health);
    Location::new(root, kind, plain.partition(), plain.hash())
}

fn row(name: &str) -> Vec<Row> {
    vec![Row::Object(object(name, at(1)))]
}

fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), FaultKind::Device, "{error}");
    assert!(matches!(error, Error::OutOfService(_)), "{error}");
}

fn info(broker: &Broker) -> Info {
    broker.info().unwrap()
}

fn come_back(health: &Health) {
    while health.check_writable().is_err() {
        if health.tick() {
            health.tried(TrialOutcome::Well);
        }
    }
}

#[test]
fn after_a_failed_sync_of_rows_nothing_is_written_until_the_drive_is_well() {
    let device = tempfile::tempdir().unwrap();
    create(device.path(), Kind::Container);
    let faults = Faulty::default();
    let (location, health) = watched(device.path(), Arc::new(faults.clone()));
    let broker = Broker::open(location).unwrap();
    broker.commit_batch(&row("before")).unwrap();
    assert_eq!(info(&broker).object_count, 1);

    faults.fail("sync", EIO);
    let failed = broker.commit_batch(&row("lost")).unwrap_err();
    assert!(matches!(failed, Error::Unsynced { .. }), "{failed}");
    faults.heal();
    assert!(health.check().is_ok() && health.check_writable().is_err());
    assert_refused(broker.commit_batch(&row("after")));
    assert_refused(broker.delete(at(9)));
    let account = watched_at(device.path(), Kind::Account, Arc::new(RealFiles), health.clone());
    assert_refused(Broker::create(account, &new_database(Kind::Account)).map(drop));
    assert_eq!(info(&broker).object_count, 1, "it can be read");

    come_back(&health);
    broker.commit_batch(&row("again")).unwrap();
    assert_eq!(names(&broker, &ListQuery::default()).unwrap(), ["again", "before"]);
}

/// Runs where SQLite's syncs below `device` fail while it holds a file `fail`.
fn delete_with_failing_syncs(device: &Path) {
    create(device, Kind::Container);
    let (location, health) = watched(device, Arc::new(RealFiles));
    let broker = Broker::open(location).unwrap();
    broker.commit_batch(&row("before")).unwrap();
    assert_eq!(info(&broker).object_count, 1);

    std::fs::write(device.join("fail"), "").unwrap();
    let failed = broker.delete(at(9)).unwrap_err();
    std::fs::remove_file(device.join("fail")).unwrap();
    assert!(matches!(failed, Error::Sqlite { .. }), "{failed}");
    assert!(health.check().is_ok() && health.check_writable().is_err());
    assert_refused(broker.delete(at(9)));
    assert_refused(broker.commit_batch(&row("after")));

    come_back(&health);
    broker.commit_batch(&row("again")).unwrap();
    assert_eq!(names(&broker, &ListQuery::default()).unwrap(), ["again", "before"]);
}

#[test]
fn after_a_failed_sync_of_sqlite_nothing_is_written_until_the_drive_is_well() {
    match preload::folder() {
        Some(device) => delete_with_failing_syncs(&device),
        None => preload::run_itself(
            "after_a_failed_sync_of_sqlite_nothing_is_written_until_the_drive_is_well",
            LIBRARY,
        ),
    }
}
