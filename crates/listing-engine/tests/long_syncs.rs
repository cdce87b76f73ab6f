//! A long database that arrived is written to its drive in steps, between which requests are served.

#![allow(clippy::unwrap_used, reason = "this is test code")]

#[path = "support/stepped.rs"]
mod stepped;
mod support;

use durable_fs::Health;
use durable_fs::health::HUNG;
use listing_engine::{Broker, CopyIdentity, DeviceRoot, Kind, Location, ObjectRow, Row, adopt};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use stepped::{Step, Stepped};
use support::{at, location, new_database, object};
use vocabulary::Partition;
use world::files::FileSystem;

const IDENTITY: CopyIdentity<'static> = CopyIdentity {
    name: "5e7ab1e5-0000-4000-8000-000000000001-sda",
    unique: "5e7ab1e5-0000-4000-8000-000000000002",
};
const MIB: u64 = 1 << 20;
/// Of a step.
const SECONDS: u32 = HUNG / 2 + 3;

/// A database of 36 MiB and a little more, which rsync has put on the device below `to`.
fn arrived(from: &Path, to: &Path) {
    std::fs::create_dir_all(from).unwrap();
    let broker = support::create(from, Kind::Container);
    let long = ObjectRow {
        content_type: "x".repeat(36 << 20),
        ..object("there", at(2))
    };
    broker.commit_batch(&[Row::Object(long)]).unwrap();
    broker.merge_pending().unwrap();
    std::fs::create_dir_all(to.join("tmp")).unwrap();
    std::fs::copy(broker.location().db_file(), to.join("tmp").join(IDENTITY.name)).unwrap();
}

fn on(files: &Stepped, health: &Arc<Health>, device: &Path) -> Location {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let root = DeviceRoot::new(device, false).on(&files).watched(health.clone());
    Location::new(
        root,
        Kind::Container,
        Partition(1),
        location(device, Kind::Container).hash(),
    )
}

/// The steps so far, but for syncs before the first that writes back.
type Steps = Arc<Mutex<Vec<Step>>>;

/// Each step takes long, though not as long as a hang; all together do.
fn slow_steps(health: Arc<Health>, between: impl Fn() + Send + 'static) -> (Steps, impl FnMut(Step) + Send) {
    let steps = Steps::default();
    let seen = steps.clone();
    let each = move |step| {
        seen.lock().push(step);
        if matches!(step, Step::WriteBack(_)) {
            for _ in 0..SECONDS {
                health.tick();
            }
            health.check().unwrap();
            between();
        }
    };
    (steps, each)
}

fn in_steps(steps: &Steps) {
    let steps = steps.lock();
    let first = steps.iter().position(|step| *step != Step::Sync).unwrap();
    let pieces: Vec<u64> = steps[first..]
        .iter()
        .map_while(|step| match step {
            Step::WriteBack(bytes) => Some(*bytes),
            Step::Sync => None,
        })
        .collect();
    assert_eq!(pieces[..2], [16 * MIB; 2]);
    assert!(pieces.len() == 3 && pieces[2] < 16 * MIB, "{pieces:?}");
    assert!(
        steps[first + 3..].contains(&Step::Sync),
        "what is written back is not durable yet"
    );
}

#[test]
fn a_copy_that_takes_the_place_of_nothing_is_written_back_before_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let device = dir.path().join("sdb");
    arrived(&dir.path().join("sda"), &device);
    let (files, health) = (Stepped::default(), Health::new(&device));
    let place = on(&files, &health, &device);
    let lock = place.lock_file();
    let (steps, each) = slow_steps(health.clone(), move || assert!(!lock.exists()));
    files.set(each);
    let _job = health.enter();
    adopt(&place, None, IDENTITY, |_| true).unwrap();
    in_steps(&steps);
    assert_eq!(Broker::open(place).unwrap().info().unwrap().object_count, 1);
}

#[test]
fn rows_are_taken_while_a_long_copy_is_written_back() {
    let dir = tempfile::tempdir().unwrap();
    let device = dir.path().join("sdb");
    arrived(&dir.path().join("sda"), &device);
    let (files, health) = (Stepped::default(), Health::new(&device));
    let broker = Arc::new(Broker::create(on(&files, &health, &device), &new_database(Kind::Container)).unwrap());
    let (writer, count) = (broker.clone(), Mutex::new(0));
    let (steps, each) = slow_steps(health.clone(), move || {
        *count.lock() += 1;
        let name = format!("between-{}", count.lock());
        writer.commit_batch(&[Row::Object(object(&name, at(3)))]).unwrap();
        assert_eq!(writer.info().unwrap().object_count, *count.lock());
    });
    files.set(each);
    let _job = health.enter();
    broker.replace_with(IDENTITY, |_| true).unwrap();
    in_steps(&steps);
    assert_eq!(
        broker.info().unwrap().object_count,
        4,
        "one that came, three in between"
    );
}
