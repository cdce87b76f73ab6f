//! Suffix hashes are OpenStack's: the same tree gives the same hashes, leaves the same files, and what
//! one has recorded the other believes.
//!
//! The comparison needs a Python with the `swift` package: `MARTLET_ORACLE_PYTHON`, else
//! `../../.venv/bin/python`; without one it is skipped and says so.

#![allow(clippy::unwrap_used)] // a test says so by failing

mod support;

use object_engine::conformance::{at, commit, key};
use object_engine::{
    AuditPlace, FilesConfig, FilesEngine, MetadataUpdate, ObjectAudit, ObjectEngine, ObjectMetadata, PartitionKey,
    Rehash, Replica, SuffixHashes,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{engine, python};
use vocabulary::{HashPrefix, Partition, PolicyIndex, Timestamp};
use world::World;

type Hashes = BTreeMap<String, String>;

const PARTITIONS: u32 = 120;

fn ask(python: &str, devices: &Path) -> BTreeMap<String, (usize, Hashes)> {
    support::run(python, "hashes.py", &[devices])
}

fn of(partition: u32) -> PartitionKey {
    PartitionKey {
        policy: PolicyIndex::LEGACY,
        partition: Partition(partition),
    }
}

fn hashes(engine: &FilesEngine, partition: u32) -> (usize, Hashes) {
    let found = engine.suffix_hashes(of(partition), Rehash::default()).unwrap();
    (found.computed, spelled(&found))
}

fn rehash(suffixes: &[String], list: bool) -> Rehash<'_> {
    let seen = true;
    Rehash { suffixes, list, seen }
}

fn spelled(found: &SuffixHashes) -> Hashes {
    let hashes = found.hashes.iter();
    hashes
        .map(|(suffix, hash)| (suffix.to_string(), hash.to_string()))
        .collect()
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

fn file_name(dice: &mut Dice, now: u64) -> String {
    let seconds = match dice.below(5) {
        0 => now - 700_000 - dice.below(4),
        _ => now - 4 + dice.below(8),
    };
    let offset = if dice.below(6) == 0 { "_000000000000000f" } else { "" };
    let time = format!("{seconds:010}.00000{offset}");
    match dice.below(12) {
        0..=3 => format!("{time}.data"),
        4 | 5 => format!("{time}.ts"),
        6 | 7 => format!("{time}.meta"),
        8 => format!("{time}+0.meta"),
        9 => format!("{time}-{:x}.meta", 100_000 * dice.below(4)),
        10 => format!("{time}.durable"),
        _ => ["junk", "1.data.tmp", ".hidden", "x.data"][dice.below(4) as usize].to_owned(),
    }
}

/// Partitions full of what can be found on a drive that went through much.
fn tree(devices: &Path, now: u64) {
    let mut dice = Dice(42);
    for partition in 0..PARTITIONS {
        let place = devices.join(format!("sda/objects/{partition}"));
        std::fs::create_dir_all(&place).unwrap();
        for suffix in 0..dice.below(3) {
            for hash in 0..=dice.below(3) {
                let suffix = format!("{:03x}", 0xabc + suffix);
                let directory = place.join(&suffix).join(format!("{hash:029x}{suffix}"));
                std::fs::create_dir_all(&directory).unwrap();
                for _ in 0..dice.below(6) {
                    std::fs::write(directory.join(file_name(&mut dice, now)), "").unwrap();
                }
            }
        }
        match dice.below(4) {
            0 => std::fs::create_dir(place.join("eee")).unwrap(),
            1 => std::fs::write(place.join("fff"), "a file").unwrap(),
            2 => std::fs::create_dir(place.join("abcd")).unwrap(),
            _ => {}
        }
    }
}

fn everything(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            everything(&path, found);
        }
        found.push(path);
    }
}

/// What is under a device, its records and locks aside.
fn left(devices: &Path) -> Vec<String> {
    let mut found = vec![];
    everything(&devices.join("sda/objects"), &mut found);
    let names = found
        .iter()
        .map(|path| path.strip_prefix(devices).unwrap().display().to_string());
    let mut names: Vec<String> = names
        .filter(|name| !name.contains("hashes.") && !name.contains(".lock"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_same_tree_gives_openstacks_hashes() {
    let Some(python) = python() else { return };
    let place = tempfile::tempdir().unwrap();
    let (theirs, ours) = (place.path().join("theirs"), place.path().join("ours"));
    let now = World::real().clock.now().seconds();
    tree(&theirs, now);
    tree(&ours, now);
    let expected = ask(&python, &theirs);
    let engine = engine(&ours);
    for partition in 0..PARTITIONS {
        let (_, found) = hashes(&engine, partition);
        assert_eq!(found, expected[&partition.to_string()].1, "partition {partition}");
    }
    let (left_by_us, left_by_them) = (left(&ours), left(&theirs));
    let differs = |a: &[String], b: &[String]| a.iter().find(|name| !b.contains(name)).cloned();
    assert_eq!(differs(&left_by_us, &left_by_them), None, "left by us only");
    assert_eq!(differs(&left_by_them, &left_by_us), None, "left by OpenStack only");
    // Each believes what the other has recorded.
    let believed = ask(&python, &ours);
    let theirs = self::engine(&theirs);
    for partition in 0..PARTITIONS {
        let expected = &expected[&partition.to_string()].1;
        assert_eq!(believed[&partition.to_string()], (0, expected.clone()));
        assert_eq!(hashes(&theirs, partition), (0, expected.clone()));
    }
}

fn put(engine: &FilesEngine, name: &str, timestamp: Timestamp) {
    engine.put(&key(name), b"hello", commit(timestamp, b"hello")).unwrap();
}

#[test]
fn only_what_changed_is_hashed_again() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    assert_eq!(hashes(&engine, 7), (0, Hashes::new()));
    assert!(!place.path().join("sda/objects").exists());
    for number in 0..5 {
        put(&engine, &format!("/a/c/{number}"), at(1));
    }
    let (computed, first) = hashes(&engine, 7);
    assert_eq!((computed, first.len()), (5, 5));
    assert_eq!(hashes(&engine, 7), (0, first.clone()));
    engine.delete(&key("/a/c/3"), at(2)).unwrap();
    let (computed, second) = hashes(&engine, 7);
    assert_eq!((computed, second.len()), (1, 5));
    assert_ne!(first, second);
    // What was not announced is found only by looking.
    let strange = place.path().join("sda/objects/7/000/00000000000000000000000000000000");
    std::fs::create_dir_all(&strange).unwrap();
    std::fs::write(strange.join(format!("{}.data", at(3))), "").unwrap();
    assert_eq!(hashes(&engine, 7), (0, second));
    let suffixes = &[];
    let listed = engine.suffix_hashes(of(7), rehash(suffixes, true)).unwrap();
    assert_eq!((listed.computed, listed.hashes.len()), (1, 6));
    std::fs::remove_dir_all(&strange).unwrap();
    let suffixes = &["000".to_owned(), "../".to_owned()];
    let asked = engine.suffix_hashes(of(7), rehash(suffixes, false)).unwrap();
    assert_eq!((asked.computed, asked.hashes.len()), (0, 5));
    engine.invalidate(of(7), &[key("/a/c/0").hash.suffix()]).unwrap();
    assert_eq!(hashes(&engine, 7).0, 1);
    let invalidations = std::fs::read(place.path().join("sda/objects/7/hashes.invalid")).unwrap();
    assert!(invalidations.is_empty());
}

/// A power cut keeps what was synced, which an announcement is not.
#[test]
fn a_change_whose_announcement_was_lost_is_found_by_the_auditor() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    put(&engine, "/a/c/changed", at(1));
    put(&engine, "/a/c/deleted", at(1));
    put(&engine, "/a/c/untouched", at(1));
    let before = hashes(&engine, 7).1;
    engine.delete(&key("/a/c/deleted"), at(2)).unwrap();
    put(&engine, "/a/c/changed", at(2));
    put(&engine, "/a/c/added", at(2));
    let announcements = place.path().join("sda/objects/7/hashes.invalid");
    std::fs::write(&announcements, "").unwrap();
    assert_eq!(hashes(&engine, 7), (0, before.clone()));
    let audit = audit(place.path());
    let suffix = |name: &str| key(name).hash.suffix();
    audit
        .recheck(PolicyIndex::LEGACY, Partition(7), &suffix("/a/c/untouched"))
        .unwrap();
    assert_eq!(hashes(&engine, 7), (0, before.clone()));
    for name in ["/a/c/changed", "/a/c/deleted", "/a/c/added"] {
        audit.recheck(PolicyIndex::LEGACY, Partition(7), &suffix(name)).unwrap();
    }
    let (computed, after) = hashes(&engine, 7);
    assert_eq!((computed, after.len()), (3, before.len() + 1));
    assert_ne!(after[&suffix("/a/c/changed")], before[&suffix("/a/c/changed")]);
    for suffix in after.keys() {
        audit.recheck(PolicyIndex::LEGACY, Partition(7), suffix).unwrap();
    }
    assert_eq!(hashes(&engine, 7), (0, after));
}

/// A power cut may leave a part of an announcement, or zeros where it was; the next one is appended to that.
#[test]
fn an_announcement_after_half_of_another_is_not_lost() {
    for torn in ["8", "83", "\0\0", "832\n8\0\0\0\n", "832832\n"] {
        let place = tempfile::tempdir().unwrap();
        let engine = engine(place.path());
        put(&engine, "/a/c/changed", at(1));
        put(&engine, "/a/c/untouched", at(1));
        let before = hashes(&engine, 7).1;
        std::fs::write(place.path().join("sda/objects/7/hashes.invalid"), torn).unwrap();
        put(&engine, "/a/c/changed", at(2));
        let (_, after) = hashes(&engine, 7);
        let suffix = |name: &str| key(name).hash.suffix();
        assert_ne!(
            after[&suffix("/a/c/changed")],
            before[&suffix("/a/c/changed")],
            "{torn:?}"
        );
        assert_eq!(after[&suffix("/a/c/untouched")], before[&suffix("/a/c/untouched")]);
        assert_eq!(hashes(&engine, 7), (0, after));
    }
}

/// A tombstone past its time is hashed again, which removes it.
#[test]
fn what_may_go_is_announced_by_the_auditor() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let now = World::real().clock.now().seconds();
    put(&engine, "/a/c/o", Timestamp::from_seconds(now - 9));
    engine.delete(&key("/a/c/o"), Timestamp::from_seconds(now - 8)).unwrap();
    hashes(&engine, 7);
    let suffix = key("/a/c/o").hash.suffix();
    audit(place.path())
        .recheck(PolicyIndex::LEGACY, Partition(7), &suffix)
        .unwrap();
    assert_eq!(hashes(&engine, 7).0, 0);
    let mut config = FilesConfig::new("sda", place.path().join("sda"));
    (config.mount_check, config.reclaim_age) = (false, Duration::from_secs(5));
    let impatient = ObjectAudit::new(config, secrets(), Duration::ZERO, World::real());
    impatient.recheck(PolicyIndex::LEGACY, Partition(7), &suffix).unwrap();
    assert_eq!(hashes(&engine, 7).0, 1);
}

/// The watcher of dark data has asked container servers meanwhile.
#[test]
fn what_was_written_since_the_look_is_not_removed() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let hash = key("/a/c/o").hash;
    put(&engine, "/a/c/o", at(2));
    let object = AuditPlace {
        policy: PolicyIndex::LEGACY,
        partition: Partition(7),
        hash,
        directory: place
            .path()
            .join(format!("sda/objects/7/{}/{}", hash.suffix(), hash.hex())),
    };
    for (newest, stays) in [(at(1), true), (at(2), false)] {
        audit(place.path()).remove(&object, newest).unwrap();
        assert_eq!(object.directory.exists(), stays, "{newest}");
    }
}

fn secrets() -> HashPrefix {
    HashPrefix::new("a", "b").unwrap()
}

fn audit(devices: &Path) -> ObjectAudit {
    let mut config = FilesConfig::new("sda", devices.join("sda"));
    config.mount_check = false;
    ObjectAudit::new(config, secrets(), Duration::ZERO, World::real())
}

#[test]
fn a_record_that_cannot_be_used_means_hashing_everything_anew() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    put(&engine, "/a/c/o", at(1));
    let (_, expected) = hashes(&engine, 7);
    let record = place.path().join("sda/objects/7/hashes.pkl");
    let whole = std::fs::read(&record).unwrap();
    let bad: [&[u8]; 5] = [
        b"",
        b"rubbish",
        &whole[..whole.len() / 2],
        b"cos\nsystem\n(S'true'\ntR.",
        b"(lp0\n.",
    ];
    for bad in bad {
        std::fs::write(&record, bad).unwrap();
        assert_eq!(hashes(&engine, 7), (1, expected.clone()), "{bad:?}");
        assert_eq!(hashes(&engine, 7), (0, expected.clone()), "{bad:?}");
        // Also when there are announcements at the same time.
        std::fs::write(&record, bad).unwrap();
        engine.invalidate(of(7), &["abc".to_owned()]).unwrap();
        assert_eq!(hashes(&engine, 7), (1, expected.clone()), "{bad:?}");
    }
    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(&record).unwrap();
    assert_eq!(hashes(&engine, 7).1, expected);
}

/// What is announced in a pipe is lost, and nothing can be announced in a directory.
#[test]
fn what_is_no_file_in_place_of_announcements_is_moved_aside() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    put(&engine, "/a/c/o", at(1));
    let before = hashes(&engine, 7).1;
    let announcements = place.path().join("sda/objects/7/hashes.invalid");
    std::fs::remove_file(&announcements).unwrap();
    assert!(Command::new("mkfifo").arg(&announcements).status().unwrap().success());
    put(&engine, "/a/c/o", at(2));
    let (computed, found) = hashes(&engine, 7);
    assert!(computed == 1 && found != before);
    std::fs::remove_file(&announcements).unwrap_or_default();
    std::fs::create_dir(&announcements).unwrap();
    assert_eq!(hashes(&engine, 7), (1, found));
    put(&engine, "/a/c/o", at(3));
    assert_eq!(
        std::fs::read_dir(place.path().join("sda/quarantined/objects"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn what_others_hold_is_forgotten_only_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let (old, new) = (key("/a/c/old"), key("/a/c/new"));
    put(&engine, "/a/c/old", at(1));
    put(&engine, "/a/c/new", at(1));
    hashes(&engine, 7);
    let seen = engine.versions(of(7), new.hash).unwrap().unwrap();
    assert_eq!(
        engine.versions_under(of(7), &new.hash.suffix()).unwrap(),
        [(new.hash, seen)]
    );
    assert_eq!(engine.name_of(of(7), new.hash).unwrap().unwrap(), "/a/c/new");
    engine.delete(&new, at(2)).unwrap();
    assert!(!engine.forget(of(7), new.hash, &seen).unwrap());
    assert!(engine.forget(of(7), old.hash, &seen).unwrap());
    assert!(engine.versions(of(7), old.hash).unwrap().is_none());
    assert!(!engine.forget_partition(of(7)).unwrap());
    let grave = engine.versions(of(7), new.hash).unwrap().unwrap();
    assert!(grave.deleted && grave.data == at(2));
    assert_eq!(engine.name_of(of(7), new.hash).unwrap().unwrap(), "/a/c/new");
    assert!(engine.forget(of(7), new.hash, &grave).unwrap());
    assert!(engine.forget_partition(of(7)).unwrap());
    assert!(!place.path().join("sda/objects/7").exists());
}

/// A writer announces, another process takes the announcement and lists, the writer publishes: announced again.
#[test]
fn no_change_is_hidden_from_who_hashes_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    put(&engine, "/a/c/o", at(1));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 2..200 {
                engine.delete(&key("/a/c/o"), at(number)).unwrap();
            }
        });
        while !writing.is_finished() {
            hashes(&engine, 7);
        }
    });
    let (_, found) = hashes(&engine, 7);
    let suffixes = &[key("/a/c/o").hash.suffix()];
    let fresh = engine.suffix_hashes(of(7), rehash(suffixes, true)).unwrap();
    assert_eq!(found, spelled(&fresh));
}

/// Several take the announcements of several writers; a late one does not hide what others had not seen.
#[test]
fn no_change_is_hidden_by_two_who_hash_at_once() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let names: Vec<String> = (0..6).map(|number| format!("/a/c/{number}")).collect();
    names.iter().for_each(|name| put(&engine, name, at(1)));
    hashes(&engine, 7);
    let writing = AtomicUsize::new(2);
    let write = |names: &[String]| {
        for number in 2..100 {
            for name in names {
                engine.delete(&key(name), at(number)).unwrap();
            }
        }
        writing.fetch_sub(1, Ordering::Relaxed);
    };
    let hash = || {
        let other = self::engine(place.path());
        while writing.load(Ordering::Relaxed) > 0 {
            hashes(&other, 7);
        }
    };
    std::thread::scope(|scope| {
        let (some, others) = names.split_at(3);
        scope.spawn(|| write(some));
        scope.spawn(|| write(others));
        scope.spawn(hash);
        scope.spawn(hash);
    });
    let (_, found) = hashes(&engine, 7);
    let suffixes: Vec<String> = names.iter().map(|name| key(name).hash.suffix()).collect();
    let fresh = engine.suffix_hashes(of(7), rehash(&suffixes, true)).unwrap();
    assert_eq!(found, spelled(&fresh));
}

/// The call that hashes returns what is there, be it a little that was announced or everything.
#[test]
fn what_is_hashed_is_returned_if_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let names = ["/a/c/0", "/a/c/1", "/a/c/2"];
    names.iter().for_each(|name| put(&engine, name, at(1)));
    let ask = |seen| {
        let suffixes = &[];
        let list = false;
        engine.suffix_hashes(of(7), Rehash { suffixes, list, seen }).unwrap()
    };
    let objects_of = |found: &SuffixHashes| {
        let seen = found.seen.iter();
        seen.map(|(suffix, objects)| (suffix.to_string(), objects.clone()))
            .collect::<Vec<_>>()
    };
    let is_there = |found: &SuffixHashes| {
        let seen = objects_of(found).into_iter();
        seen.for_each(|(suffix, objects)| assert_eq!(engine.versions_under(of(7), &suffix).unwrap(), objects));
    };
    let all = ask(true);
    assert_eq!((all.computed, all.seen.len()), (3, 3));
    is_there(&all);
    engine.delete(&key("/a/c/1"), at(2)).unwrap();
    let one = ask(true);
    assert_eq!((one.computed, one.seen.len()), (1, 1));
    is_there(&one);
    put(&engine, "/a/c/1", at(3));
    assert_eq!((ask(false).seen.len(), ask(true).seen.len()), (0, 0));
    assert!(
        std::fs::read(place.path().join("sda/objects/7/hashes.invalid"))
            .unwrap()
            .is_empty()
    );
}

/// POSTs whose body is not here: offered as such, read as one, forgotten only as they were.
#[test]
fn posts_without_a_body_are_seen_and_forgotten() {
    let place = tempfile::tempdir().unwrap();
    let engine = engine(place.path());
    let key = key("/a/c/o");
    let post = |second: u64, content_type: Option<&str>| {
        let mut metadata = ObjectMetadata::new().with("X-Timestamp", at(second).internal());
        metadata.set("X-Object-Meta-A", second.to_string().as_bytes());
        if let Some(content_type) = content_type {
            metadata.set("Content-Type", content_type.as_bytes());
        }
        let content_type_timestamp = content_type.map(|_| at(second));
        let update = MetadataUpdate {
            timestamp: at(second),
            metadata,
            content_type_timestamp,
        };
        engine.write_metadata(&key, update).unwrap();
    };
    post(5, Some("t/x"));
    post(7, None);
    let of = PartitionKey {
        policy: key.policy,
        partition: key.partition,
    };
    let replica = engine.replica();
    let found = replica.versions_under(of, &key.hash.suffix()).unwrap();
    let [(hash, versions)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(*hash == key.hash && versions.is_lone());
    assert_eq!((versions.meta, versions.content_type), (Some(at(7)), Some(at(5))));
    assert_eq!(replica.versions(of, key.hash).unwrap(), None);
    let posted = replica.lone_post(of, key.hash).unwrap().unwrap();
    let text = |name: &str| posted.text(name).map(str::to_owned);
    assert_eq!(text("name").as_deref(), Some("/a/c/o"));
    assert_eq!(text("X-Timestamp"), Some(at(7).internal()));
    assert_eq!(
        (text("X-Object-Meta-A").as_deref(), text("Content-Type").as_deref()),
        (Some("7"), Some("t/x"))
    );
    assert_eq!(text("Content-Type-Timestamp"), Some(at(5).internal()));
    post(8, None);
    assert!(!replica.forget(of, key.hash, versions).unwrap());
    let (_, now) = replica.versions_under(of, &key.hash.suffix()).unwrap().remove(0);
    assert!(replica.forget(of, key.hash, &now).unwrap());
    assert!(replica.forget_partition(of).unwrap());
}
