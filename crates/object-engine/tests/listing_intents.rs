//! What a server that is killed leaves under way becomes pending records, of changes that came about and of no others.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use object_engine::conformance::{at, commit, key};
use object_engine::rules::{FileName, FilePart};
use object_engine::{
    FilesConfig, FilesEngine, IntendedChange, ListingUpdate, MetadataUpdate, ObjectEngine, ObjectKey, ObjectMetadata,
    PendingUpdates,
};
use std::path::{Path, PathBuf};
use vocabulary::PolicyIndex;
use world::World;

const BODY: &[u8] = b"body";

fn engine(root: &Path) -> FilesEngine {
    let mut config = FilesConfig::new("sda", root);
    config.mount_check = false;
    FilesEngine::start(config, World::real())
}

fn pending(root: &Path) -> PendingUpdates {
    PendingUpdates::new(&World::real(), root, false)
}

fn update(key: &ObjectKey, seconds: u64, op: &str) -> ListingUpdate {
    ListingUpdate {
        policy: PolicyIndex(0),
        hash: key.hash,
        timestamp: at(seconds),
        op: op.into(),
        account: "a".into(),
        container: "c".into(),
        object: key.name.clone(),
        headers: vec![("X-Size".into(), b"4".to_vec())],
        db_state: None,
        container_path: None,
    }
}

fn record(engine: &FilesEngine, key: &ObjectKey, seconds: u64, part: FilePart, op: &str) -> durable_fs::Intent {
    let file = FileName {
        timestamp: at(seconds),
        part,
    };
    let update = update(key, seconds, op);
    let updates = vec![update.borrowed()];
    let change = IntendedChange { key, file, updates };
    engine.listing_intents().unwrap().record(&[change]).unwrap()
}

fn files(root: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut open = vec![root.to_owned()];
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.retain(|path| path.strip_prefix(root).unwrap().starts_with(part));
    found
}

/// Of every kind one change that came about and one that did not, as a server leaves them that is killed.
fn leave_behind(root: &Path) -> Vec<ListingUpdate> {
    let engine = engine(root);
    let keys = ["/a/c/put", "/a/c/post", "/a/c/deleted", "/a/c/never"].map(key);
    let [put, posted, deleted, never] = &keys;
    let mut intents = vec![];
    for (key, wrote) in [(put, true), (never, false)] {
        intents.push(record(&engine, key, 5, FilePart::Data, "PUT"));
        if wrote {
            engine.put(key, BODY, commit(at(5), BODY)).unwrap();
        }
    }
    engine.put(posted, BODY, commit(at(3), BODY)).unwrap();
    intents.push(record(&engine, posted, 6, FilePart::Meta(None), "PUT"));
    intents.push(record(&engine, posted, 7, FilePart::Meta(None), "PUT"));
    let metadata = ObjectMetadata::new().with("X-Timestamp", at(6).internal());
    let content_type_timestamp = None;
    let post = MetadataUpdate {
        timestamp: at(6),
        metadata,
        content_type_timestamp,
    };
    assert_eq!(post.file().part, FilePart::Meta(None));
    engine.write_metadata(posted, post).unwrap();
    intents.push(record(&engine, deleted, 8, FilePart::Tombstone, "DELETE"));
    engine.delete(deleted, at(8)).unwrap();
    // Replaced before any process looks.
    intents.push(record(&engine, deleted, 2, FilePart::Data, "PUT"));
    // No other process takes the log over while its own lives.
    assert_eq!(pending(root).recover().unwrap(), 0);
    vec![
        update(put, 5, "PUT"),
        update(posted, 6, "PUT"),
        update(deleted, 8, "DELETE"),
    ]
}

fn check(root: &Path, expected: Vec<ListingUpdate>) {
    assert_eq!(files(root, "tmp"), Vec::<PathBuf>::new());
    let mut names: Vec<PathBuf> = expected
        .iter()
        .map(|update| {
            let (place, name) = update.place(root);
            place.join(name)
        })
        .collect();
    for (update, path) in expected.iter().zip(&names) {
        assert_eq!(std::fs::read(path).unwrap(), update.encode());
    }
    let mut found = files(root, "async_pending");
    names.sort();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn strange_files_hold_up_no_intents() {
    let place = tempfile::tempdir().unwrap();
    let expected = leave_behind(place.path());
    let strange = place.path().join("tmp/.updates-0000000000000000.pending");
    std::fs::create_dir(&strange).unwrap();
    drop(engine(place.path()));
    check(place.path(), expected);
    assert!(strange.exists());
}

#[test]
fn the_next_server_keeps_what_the_one_before_left_under_way() {
    let place = tempfile::tempdir().unwrap();
    let expected = leave_behind(place.path());
    assert_eq!(files(place.path(), "tmp").len(), 1);
    let again = engine(place.path());
    check(place.path(), expected);
    assert!(!again.listing_intents().unwrap().is_open());
}

#[test]
fn so_does_the_updater_when_there_is_no_next_server() {
    let place = tempfile::tempdir().unwrap();
    let expected = leave_behind(place.path());
    assert_eq!(pending(place.path()).recover().unwrap(), 3);
    check(place.path(), expected);
    assert_eq!(pending(place.path()).recover().unwrap(), 0);
}

#[test]
fn what_cannot_be_kept_now_stays_for_later() {
    let place = tempfile::tempdir().unwrap();
    let expected = leave_behind(place.path());
    let blocked = place.path().join("async_pending");
    std::fs::write(&blocked, b"no directory").unwrap();
    assert!(pending(place.path()).recover().is_err());
    assert_eq!(files(place.path(), "tmp").len(), 1);
    std::fs::remove_file(&blocked).unwrap();
    assert_eq!(pending(place.path()).recover().unwrap(), 3);
    check(place.path(), expected);
}

#[test]
fn a_change_without_listing_updates_is_not_recorded() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let key = key("/a/c/o");
    let file = FileName {
        timestamp: at(1),
        part: FilePart::Data,
    };
    let change = IntendedChange {
        key: &key,
        file,
        updates: vec![],
    };
    let listing_intents = engine.listing_intents().unwrap();
    assert!(listing_intents.record(&[change]).is_none() && !listing_intents.is_open());
}
