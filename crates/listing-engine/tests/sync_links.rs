//! Synced containers are linked in `sync_containers`, and only they.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod support;

use listing_engine::{Broker, Kind, Location, Metadata};
use std::path::Path;
use support::{at, create};

fn say(broker: &Broker, items: &[(&str, &str)], time: u64) {
    let mut metadata = Metadata::default();
    for (name, value) in items {
        metadata.set(*name, *value, at(time));
    }
    broker.update_metadata(&metadata).unwrap();
    broker.keep_sync_link().unwrap();
}

fn linked(device: &Path) -> Vec<Location> {
    let partitions = Location::synced_partitions(&device.into()).unwrap();
    let found = partitions
        .into_iter()
        .flat_map(|partition| Location::synced_in_partition(&device.into(), partition).unwrap());
    found.collect()
}

#[test]
fn a_link_follows_the_metadata_and_goes_with_the_database() {
    let device = tempfile::tempdir().unwrap();
    let broker = create(device.path(), Kind::Container);
    broker.keep_sync_link().unwrap();
    assert!(
        !device.path().join("sync_containers").exists(),
        "nothing is made for nothing"
    );
    say(&broker, &[("X-Container-Sync-To", "//us/here/a/c")], 10);
    assert!(linked(device.path()).is_empty(), "without a key nothing is synced");
    say(&broker, &[("X-Container-Sync-Key", "k")], 11);
    assert_eq!(linked(device.path()), [broker.location().clone()]);
    let (database, root) = (broker.location().db_file(), device.path());
    let link = root
        .join("sync_containers")
        .join(database.strip_prefix(root.join("containers")).unwrap());
    assert_eq!(
        std::fs::read_link(&link).unwrap(),
        database,
        "as OpenStack's servers make it"
    );
    broker.keep_sync_link().unwrap();
    say(&broker, &[("X-Container-Sync-Key", "")], 12);
    assert!(!root.join("sync_containers").exists(), "nothing is left of it");
    say(&broker, &[("X-Container-Sync-Key", "k")], 13);
    broker.delete(at(1_000)).unwrap();
    broker.keep_sync_link().unwrap();
    assert!(linked(root).is_empty());
    say(
        &broker,
        &[("X-Container-Sync-To", "//us/here/a/c"), ("X-Container-Sync-Key", "k")],
        1_001,
    );
    assert!(linked(root).is_empty(), "it is deleted still");
    broker.update_put_timestamp(at(1_002)).unwrap();
    broker.keep_sync_link().unwrap();
    assert_eq!(linked(root).len(), 1);
    let seen = broker.replication_info().unwrap().summary;
    assert!(broker.remove_if_unchanged(&seen).unwrap());
    assert!(!root.join("sync_containers").exists());
}
