//! A database whose directory cannot be looked into is not taken for one that is not there.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;
#[path = "support/unlistable.rs"]
mod unlistable;

use listing_engine::{Broker, Brokers, CopyIdentity, DeviceRoot, Error, Kind, Location, Row, adopt};
use std::sync::Arc;
use support::{at, create, location, new_database, object};
use unlistable::Unlistable;
use vocabulary::FaultKind;
use world::files::FileSystem;

/// Each error, and whose it is.
const ERRORS: [(i32, FaultKind); 7] = [
    // ENOMEM, ENFILE, EMFILE.
    (12, FaultKind::Contention),
    (23, FaultKind::Contention),
    (24, FaultKind::Contention),
    // EIO, EACCES, EBADMSG; ENODEV.
    (5, FaultKind::Item),
    (13, FaultKind::Item),
    (74, FaultKind::Item),
    (19, FaultKind::Device),
];

fn kind<T>(outcome: Result<T, Error>) -> FaultKind {
    outcome.err().expect("it cannot be known").kind()
}

#[test]
fn what_cannot_be_listed_is_not_absent() {
    let device = tempfile::tempdir().unwrap();
    create(device.path(), Kind::Container)
        .commit_batch(&[Row::Object(object("o", at(1)))])
        .unwrap();
    let files = Unlistable::default();
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let plain = location(device.path(), Kind::Container);
    let root = DeviceRoot::new(device.path(), false).on(&shared);
    let place = Location::new(root, Kind::Container, plain.partition(), plain.hash());
    let kept = Brokers::new(1);
    kept.open(&place).unwrap();
    for (number, expected) in ERRORS {
        for all in [false, true] {
            files.fail(number, all);
            assert_eq!(kind(Broker::open(place.clone())), expected, "{number}");
            assert_eq!(kind(place.newest_file()), expected, "{number}");
            assert_eq!(
                kind(Broker::create(place.clone(), &new_database(Kind::Container))),
                expected
            );
            assert!(!place.remove_if_unmade().unwrap(), "{number}");
            if all {
                assert_eq!(kind(kept.open(&place)), expected, "{number}");
                let identity = CopyIdentity {
                    name: "copy",
                    unique: "1",
                };
                assert_eq!(kind(adopt(&place, None, identity, |_| true)), expected, "{number}");
            }
            files.heal();
            let found = kept.open(&place).unwrap().info().unwrap();
            assert_eq!(found.object_count, 1, "{number}");
        }
    }
    // ENOENT, ENOTDIR.
    for number in [2, 20] {
        files.fail(number, false);
        assert_eq!(place.newest_file().unwrap(), None);
        assert_eq!(kind(Broker::open(place.clone())), FaultKind::Absent);
    }
    assert!(!device.path().join("quarantined").exists());
}
