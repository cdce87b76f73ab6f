//! Records found, read, kept and removed on a real directory; decoding those of OpenStack Swift.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

#[allow(dead_code, reason = "not all of its faults are wanted here")]
mod faulty;

use faulty::Faulty;
use object_engine::{PendingUpdate, PendingUpdates};
use pickle::Value;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use vocabulary::{PathHash, PolicyIndex, Timestamp};
use world::World;

#[derive(serde::Deserialize)]
struct Golden {
    path: String,
    hash: String,
    timestamp: String,
    bytes: String,
    headers: Vec<(String, String)>,
}

fn golden() -> Vec<Golden> {
    serde_json::from_str(include_str!("golden/async.json")).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn what_openstack_wrote_is_read_and_written_back_alike() {
    for case in golden() {
        let (hash, timestamp) = (PathHash::from_hex(&case.hash).unwrap(), case.timestamp.parse().unwrap());
        let mut read = PendingUpdate::decode(PolicyIndex(0), hash, timestamp, &bytes(&case.bytes)).unwrap();
        assert_eq!(read.encode(), bytes(&case.bytes));
        let headers: Vec<_> = case.headers.into_iter().map(|(n, v)| (n, v.into_bytes())).collect();
        assert_eq!(read.update.headers, headers);
        assert_eq!(read.successes, [0u32; 0]);
        read.successes = vec![1, 0];
        let again = PendingUpdate::decode(PolicyIndex(0), hash, timestamp, &read.encode()).unwrap();
        assert_eq!(again, read);
    }
}

/// As OpenStack Swift 2.38.3's updater was seen to treat the same files.
#[test]
fn the_newest_is_handed_out_and_rubbish_goes_to_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let device = dir.path().join("sda");
    let case = golden().remove(0);
    let good = dir.path().join(&case.path);
    write(&good, &bytes(&case.bytes));
    let outdated = good.with_file_name(format!("{}-1600000000.00000", case.hash));
    write(&outdated, &bytes(&case.bytes));
    let pending = device.join("async_pending");
    let rubbish = "06fbf0b514e5199dfc4e00f42eb5eabc-1700000000.12345";
    write(&pending.join("abc").join(rubbish), b"rubbish");
    write(&pending.join("abc/nodash"), b"x");
    write(&pending.join("stray"), b"x");
    std::fs::create_dir_all(device.join("async_pending-x/abc")).unwrap();
    std::fs::create_dir_all(pending.join("fff")).unwrap();
    // What cannot be removed holds up no other record.
    let directory = good.with_file_name(format!("{}-1500000000.00000", case.hash));
    std::fs::create_dir(&directory).unwrap();

    let updates = PendingUpdates::new(&World::real(), &device, false);
    let now = World::real().clock.now();
    let (mut loaded, mut outdated_count) = (vec![], 0);
    for suffix in updates.suffixes().unwrap() {
        let (records, outdated) = updates.records(&suffix, now).unwrap();
        outdated_count += outdated;
        for record in records {
            loaded.extend(updates.load(&record).unwrap().map(|update| (record, update)));
        }
    }
    assert_eq!((loaded.len(), outdated_count), (1, 1));
    assert!(good.exists() && !outdated.exists() && directory.exists());
    assert!(device.join("quarantined/objects").join(rubbish).exists());
    assert!(pending.join("abc/nodash").exists() && pending.join("stray").exists());
    assert!(pending.join("fff").exists(), "somebody may be about to use it");

    let (record, mut update) = loaded.remove(0);
    update.successes = vec![2];
    updates.keep(&record, &update).unwrap();
    assert_eq!(updates.load(&record).unwrap(), Some(update));
    updates.remove(&record).unwrap();
    assert_eq!(updates.load(&record).unwrap(), None);

    let later = Timestamp::from_seconds(now.seconds() + 100);
    for suffix in updates.suffixes().unwrap() {
        updates.records(&suffix, later).unwrap();
    }
    assert!(!pending.join("fff").exists());
}

/// The row would else be lost with the one that cannot be read.
#[test]
fn an_older_one_counts_where_the_newest_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let case = golden().remove(0);
    let good = dir.path().join(&case.path);
    write(&good, &bytes(&case.bytes));
    let at = |seconds: &str| good.with_file_name(format!("{}-{seconds}.00000", case.hash));
    write(&at("1600000000"), &bytes(&case.bytes));
    for spoilt in ["1999999998", "1999999999"] {
        write(&at(spoilt), b"rubbish");
    }
    let updates = PendingUpdates::new(&World::real(), dir.path().join("sda"), false);
    let suffix = updates.suffixes().unwrap().remove(0);
    let (records, outdated) = updates.records(&suffix, Timestamp::ZERO).unwrap();
    assert_eq!((records.len(), outdated), (1, 1));
    assert!(updates.load(&records[0]).unwrap().is_some());
    let left: Vec<_> = std::fs::read_dir(good.parent().unwrap()).unwrap().collect();
    assert!(left.len() == 1 && good.exists());
    assert_eq!(
        std::fs::read_dir(dir.path().join("sda/quarantined/objects"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn a_directory_that_cannot_be_read_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let case = golden().remove(0);
    for policy in ["async_pending", "async_pending-1", "async_pending-2"] {
        write(
            &dir.path().join(case.path.replace("async_pending", policy)),
            &bytes(&case.bytes),
        );
    }
    let faults = Faulty::default();
    faults.unreadable(dir.path().join("sda/async_pending-1"));
    let world = World {
        files: Arc::new(faults),
        ..World::real()
    };
    let updates = PendingUpdates::new(&world, dir.path().join("sda"), false);
    let mut found: Vec<u32> = updates
        .suffixes()
        .unwrap()
        .iter()
        .map(|suffix| suffix.policy.0)
        .collect();
    found.sort_unstable();
    assert_eq!(found, [0, 2]);
}

/// A row without its object's name would be sent as the container's own change, and a deletion as its end.
#[test]
fn a_record_that_names_no_object_is_sent_to_nobody() {
    for key in ["obj", "container", "account"] {
        let whole = Value::Dict(
            [
                ("op", "DELETE"),
                ("account", "AUTH_a"),
                ("container", "c"),
                ("obj", "o"),
            ]
            .into_iter()
            .map(|(field, text)| (Value::str(field), Value::str(if field == key { "" } else { text })))
            .chain([(Value::str("headers"), Value::Dict(vec![]))])
            .collect(),
        );
        let decode = |bytes: &[u8]| PendingUpdate::decode(PolicyIndex(0), PathHash([0; 16]), Timestamp::ZERO, bytes);
        let refused = decode(&pickle::dumps_protocol0(&whole)).unwrap_err();
        assert!(refused.to_string().contains(key), "{refused}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = PendingUpdate::decode(PolicyIndex(0), PathHash([0; 16]), Timestamp::ZERO, &bytes);
    }
}
