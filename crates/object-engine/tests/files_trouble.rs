//! The `files` engine when something is wrong: spoilt files, missing and full devices, crashes.

#![allow(clippy::unwrap_used)] // a test says so by failing

#[allow(dead_code, reason = "not all of its faults are wanted here")]
mod faulty;

use faulty::Faulty;
use object_engine::conformance::{at, commit, key, read_all};
use object_engine::{
    EngineError, FilesConfig, FilesEngine, MetadataUpdate, ObjectEngine, ObjectKey, ObjectMetadata, OpenOptions,
    PartitionKey, Rehash, Reserve, Suffix,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{FaultKind, Partition, PolicyIndex};
use world::World;
use world::real_files::RealFiles;

const NAME: &str = "/a/c/o";
const BIG: usize = 300_000;
const HASH: &str = "06fbf0b514e5199dfc4e00f42eb5ea83";

struct Bench {
    root: PathBuf,
    faults: Faulty,
    _place: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("sda");
        std::fs::create_dir(&root).unwrap();
        Self {
            root,
            faults: Faulty::default(),
            _place: place,
        }
    }

    fn config(&self) -> FilesConfig {
        let mut config = FilesConfig::new("sda", &self.root);
        config.mount_check = false;
        config
    }

    fn start(&self, config: FilesConfig) -> FilesEngine {
        let files = Arc::new(self.faults.clone());
        FilesEngine::start(config, World { files, ..World::real() })
    }

    fn engine(&self) -> FilesEngine {
        self.start(self.config())
    }

    fn hash_directory(&self) -> PathBuf {
        self.root.join("objects/7/a83").join(HASH)
    }

    fn data_file(&self) -> PathBuf {
        self.hash_directory().join(format!("{}.data", at(1)))
    }

    fn quarantined(&self) -> PathBuf {
        self.root.join("quarantined/objects").join(HASH)
    }

    fn invalidations(&self) -> String {
        std::fs::read_to_string(self.root.join("objects/7/hashes.invalid")).unwrap()
    }
}

fn put(engine: &dyn ObjectEngine, seconds: u64, body: &[u8]) -> Result<(), EngineError> {
    engine.put(&key(NAME), body, commit(at(seconds), body))
}

fn get(engine: &dyn ObjectEngine) -> Result<Vec<u8>, EngineError> {
    engine.open(&key(NAME), OpenOptions::GET).and_then(read_all)
}

#[test]
fn what_is_longer_than_may_stay_leaves_the_page_cache_once_read() {
    let bench = Bench::new();
    for (body, keep_cache_size, leaves) in [
        (&b"hello"[..], 0, true),
        (b"hello", 4, true),
        (b"hello", 5, false),
        (b"", 0, false),
        (&[7; BIG][..], 0, true),
        (&[7; BIG][..], 5 << 20, false),
    ] {
        let config = FilesConfig {
            keep_cache_size,
            ..bench.config()
        };
        let engine = bench.start(config);
        put(&engine, 1, body).unwrap();
        bench.faults.forgotten();
        for _ in 0..2 {
            assert_eq!(get(&engine).unwrap(), body);
            let expected = if leaves { body.len() as u64 } else { 0 };
            assert_eq!(
                bench.faults.forgotten(),
                expected,
                "{} bytes, {keep_cache_size}",
                body.len()
            );
        }
        engine.delete(&key(NAME), at(2)).unwrap();
        std::fs::remove_dir_all(bench.hash_directory()).unwrap();
    }
}

fn spoil(path: &Path, place: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).unwrap();
    file.write_all_at(&[byte[0] ^ 0x40], place).unwrap();
}

fn attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

#[test]
fn a_spoilt_object_is_quarantined_and_absent() {
    type Spoil = fn(&Path);
    let damages: [(&str, Spoil); 8] = [
        ("body", |path| spoil(path, 3)),
        ("cut short", |path| std::fs::write(path, b"hel").unwrap()),
        ("grown", |path| std::fs::write(path, b"hello!").unwrap()),
        ("metadata", |path| attribute(path, "user.swift.metadata", b"rubbish")),
        ("checksum", |path| {
            attribute(path, "user.swift.metadata_checksum", &[b'0'; 32])
        }),
        ("long checksum", |path| {
            attribute(path, "user.swift.metadata_checksum", &[b'0'; 90])
        }),
        ("none", |path| {
            rustix::fs::removexattr(path, "user.swift.metadata").unwrap()
        }),
        ("executable pickle", |path| {
            attribute(path, "user.swift.metadata", b"cos\nsystem\n(S'true'\ntR.");
            rustix::fs::removexattr(path, "user.swift.metadata_checksum").unwrap();
        }),
    ];
    for (damage, spoil) in damages {
        let bench = Bench::new();
        let engine = bench.engine();
        put(&engine, 1, b"hello").unwrap();
        spoil(&bench.data_file());
        let error = get(&engine).unwrap_err();
        assert!(matches!(error, EngineError::Quarantined { .. }), "{damage}: {error}");
        assert_eq!(error.kind(), FaultKind::Absent);
        assert!(
            bench.quarantined().exists() && !bench.hash_directory().exists(),
            "{damage}"
        );
        assert_eq!(bench.invalidations(), "a83\na83\n", "{damage}");
        assert!(matches!(get(&engine), Err(EngineError::NotFound { .. })), "{damage}");
        put(&engine, 1, b"hello").unwrap();
        assert_eq!(get(&engine).unwrap(), b"hello", "{damage}: a good copy comes back");
    }
}

#[test]
fn a_spoilt_object_is_quarantined_though_it_was_just_listed() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    spoil(&bench.data_file(), 3);
    let opened = engine.open(&key(NAME), OpenOptions::GET.listed_at(at(1)));
    assert!(matches!(opened, Err(EngineError::Quarantined { .. })));
    assert!(bench.quarantined().exists() && !bench.hash_directory().exists());
}

#[test]
fn a_spoilt_post_takes_the_object_along() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    std::fs::write(bench.hash_directory().join(format!("{}.meta", at(2))), b"").unwrap();
    assert!(matches!(get(&engine), Err(EngineError::Quarantined { .. })));
}

#[test]
fn a_spoilt_long_body_never_arrives_whole() {
    for place in [10, 100_000, BIG as u64 - 1] {
        let bench = Bench::new();
        let engine = bench.engine();
        put(&engine, 1, &vec![5; BIG]).unwrap();
        spoil(&bench.data_file(), place);
        let mut found = engine.open(&key(NAME), OpenOptions::GET).unwrap();
        let mut arrived = found.first.len();
        let reader = found.reader.as_mut().unwrap();
        let error = loop {
            match reader.read(40_000) {
                Ok(chunk) => arrived += chunk.len(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, EngineError::Corrupt { .. }), "{error}");
        assert!(arrived < BIG);
        assert!(bench.quarantined().exists());
    }
}

#[test]
fn a_spoilt_body_that_was_replaced_meanwhile_takes_nothing_along() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, &vec![5; BIG]).unwrap();
    spoil(&bench.data_file(), 100_000);
    let found = engine.open(&key(NAME), OpenOptions::GET).unwrap();
    put(&engine, 2, b"new").unwrap();
    assert!(matches!(read_all(found), Err(EngineError::Corrupt { .. })));
    assert_eq!(get(&engine).unwrap(), b"new");
    assert!(!bench.quarantined().exists());
}

#[test]
fn what_was_verified_is_verified_again_after_a_change() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    // Young files are never marked: wait until a mark can be made.
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(get(&engine).unwrap(), b"hello");
    assert_eq!(get(&engine).unwrap(), b"hello");
    spoil(&bench.data_file(), 0);
    assert!(matches!(get(&engine), Err(EngineError::Quarantined { .. })));
}

#[test]
fn nothing_is_verified_when_the_operator_says_so() {
    let bench = Bench::new();
    let mut config = bench.config();
    config.etag_validate_percent = 0.0;
    let engine = bench.start(config);
    put(&engine, 1, b"hello").unwrap();
    spoil(&bench.data_file(), 0);
    assert_eq!(get(&engine).unwrap(), b"(ello");
}

#[test]
fn a_file_in_place_of_the_directory_is_quarantined() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.hash_directory().parent().unwrap()).unwrap();
    std::fs::write(bench.hash_directory(), b"x").unwrap();
    let engine = bench.engine();
    assert!(matches!(get(&engine), Err(EngineError::Quarantined { .. })));
    assert!(bench.quarantined().exists());
}

#[test]
fn a_missing_device_is_unavailable_until_it_is_back() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    let away = bench.root.with_file_name("away");
    std::fs::rename(&bench.root, &away).unwrap();
    let all: [(&str, Result<(), EngineError>); 7] = [
        ("get", get(&engine).map(drop)),
        ("put", put(&engine, 2, b"x")),
        ("delete", engine.delete(&key(NAME), at(2))),
        ("create", engine.create(&key(NAME), None).map(drop)),
        ("check", engine.check()),
        ("list", engine.partitions(PolicyIndex::LEGACY).map(drop)),
        ("quarantine", engine.quarantine(&key(NAME), "test")),
    ];
    for (what, outcome) in all {
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, EngineError::DeviceUnavailable { .. }),
            "{what}: {error}"
        );
    }
    assert!(!bench.root.exists(), "nothing is made below a missing mount point");
    std::fs::rename(&away, &bench.root).unwrap();
    assert_eq!(get(&engine).unwrap(), b"hello");
    put(&engine, 2, b"new").unwrap();
}

#[test]
fn an_unmounted_device_is_unavailable() {
    let bench = Bench::new();
    let engine = bench.start(FilesConfig::new("sda", &bench.root));
    for error in [get(&engine).unwrap_err(), put(&engine, 1, b"x").unwrap_err()] {
        assert!(matches!(error, EngineError::DeviceUnavailable { .. }), "{error}");
        assert!(error.to_string().contains("not mounted"), "{error}");
    }
}

#[test]
fn the_reserve_is_for_upkeep_and_deletions() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    let mut config = bench.config();
    config.reserve = Reserve::Percent(100.0);
    let full = bench.start(config);
    let error = put(&full, 2, b"x").unwrap_err();
    assert!(matches!(error, EngineError::NoSpace { .. }), "{error}");
    assert_eq!(get(&full).unwrap(), b"hello");
    full.delete(&key(NAME), at(3)).unwrap();
}

#[test]
fn metadata_that_do_not_fit_are_refused_whole() {
    let bench = Bench::new();
    let engine = bench.engine();
    let mut long = commit(at(1), b"x");
    for number in 0..90 {
        long.metadata.set(format!("X-Object-Meta-{number}"), "v".repeat(2000));
    }
    let wanted = long.metadata.clone().with("name", NAME);
    match engine.put(&key(NAME), b"x", long) {
        // XFS and tmpfs take it, in several attributes.
        Ok(()) => assert_eq!(engine.open(&key(NAME), OpenOptions::GET).unwrap().metadata, wanted),
        Err(error) => {
            assert!(matches!(error, EngineError::MetadataTooLong { .. }), "{error}");
            assert!(!bench.hash_directory().exists());
        }
    }
}

/// Other devices of the same file system have no more room for them.
#[test]
fn attributes_without_room_on_a_device_that_has_some_are_the_callers_fault() {
    let bench = Bench::new();
    let mut config = bench.config();
    config.reserve = Reserve::Bytes(0);
    let engine = bench.start(config);
    put(&engine, 1, b"hello").unwrap();
    bench.faults.fail("attribute", rustix::io::Errno::NOSPC.raw_os_error());
    let update = MetadataUpdate {
        timestamp: at(2),
        metadata: ObjectMetadata::new().with("X-Timestamp", at(2).internal()),
        content_type_timestamp: None,
    };
    let posted = engine.write_metadata(&key(NAME), update);
    for error in [put(&engine, 3, b"x").unwrap_err(), posted.unwrap_err()] {
        assert!(matches!(error, EngineError::MetadataTooLong { .. }), "{error}");
        assert_eq!(error.kind(), FaultKind::Caller);
    }
    assert_eq!(get(&engine).unwrap(), b"hello");
    bench.faults.fill();
    let error = put(&engine, 4, b"x").unwrap_err();
    assert!(matches!(error, EngineError::NoSpace { .. }), "{error}");
}

#[test]
fn a_full_or_read_only_disk_is_the_devices_fault_and_a_failing_file_its_own() {
    for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::ROFS, rustix::io::Errno::IO] {
        for step in ["write", "attribute", "make", "link", "append"] {
            let bench = Bench::new();
            let mut config = bench.config();
            config.reserve = Reserve::Bytes(0);
            let engine = bench.start(config);
            bench.faults.fail(step, errno.raw_os_error());
            if step == "attribute" {
                bench.faults.fill();
            }
            let error = put(&engine, 1, b"hello").unwrap_err();
            assert_eq!(
                error.kind().is_device(),
                errno != rustix::io::Errno::IO,
                "{step}: {error}"
            );
            let expected = match errno {
                rustix::io::Errno::NOSPC => matches!(error, EngineError::NoSpace { .. }),
                rustix::io::Errno::ROFS => matches!(error, EngineError::DeviceUnavailable { .. }),
                _ => matches!(error, EngineError::Io { .. }) && error.kind() == FaultKind::Item,
            };
            assert!(expected, "{step}: {error:?}");
            bench.faults.heal();
            assert!(matches!(get(&engine), Err(EngineError::NotFound { .. })), "{step}");
            put(&engine, 1, b"hello").unwrap();
        }
    }
}

#[test]
fn after_a_failed_fsync_the_device_only_reads() {
    let bench = Bench::new();
    let health = durable_fs::Health::new(&bench.root);
    let files = Arc::new(bench.faults.clone());
    let engine = FilesEngine::watched(bench.config(), World { files, ..World::real() }, health.clone());
    health.tick();
    put(&engine, 1, b"old").unwrap();
    bench.faults.fail("sync", rustix::io::Errno::IO.raw_os_error());
    assert_eq!(put(&engine, 2, b"new").unwrap_err().kind(), FaultKind::Device);
    bench.faults.heal();
    for error in [
        put(&engine, 3, b"x").unwrap_err(),
        engine.delete(&key(NAME), at(3)).unwrap_err(),
    ] {
        assert!(matches!(error, EngineError::DeviceUnavailable { .. }), "{error}");
    }
    assert_eq!(get(&engine).unwrap(), b"old");
    put(&bench.engine(), 3, b"restarted").unwrap();
}

/// A daemon by itself would refuse the drive until it is started again.
#[test]
fn a_failed_fsync_costs_one_write_where_nothing_tries_the_drive_out() {
    let bench = Bench::new();
    let engine = bench.engine();
    bench.faults.fail("sync", rustix::io::Errno::IO.raw_os_error());
    put(&engine, 1, b"lost").unwrap_err();
    bench.faults.heal();
    put(&engine, 2, b"kept").unwrap();
    assert_eq!(get(&engine).unwrap(), b"kept");
}

/// A replicator removes what rsync has brought away when this succeeds.
#[test]
fn what_another_program_brought_is_synced_before_it_is_taken_note_of() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"old").unwrap();
    let partition = PartitionKey {
        policy: PolicyIndex(0),
        partition: Partition(7),
    };
    let invalidate = || engine.replica().invalidate(partition, &["a83".to_owned()]);
    invalidate().unwrap();
    bench
        .faults
        .fail("sync everything", rustix::io::Errno::IO.raw_os_error());
    let refused = invalidate().unwrap_err().to_string();
    assert!(refused.contains("could not sync"), "{refused}");
}

/// Stops the disk after each number of changes in turn: what is there afterwards is the old object or
/// the new one, the new one if it was acknowledged, and no temporary file outlives a restart.
#[test]
fn a_crash_at_any_step_leaves_old_or_new() {
    for named_only in [false, true] {
        let mut steps = 0;
        loop {
            let bench = Bench::new();
            put(&bench.start(bench.config()), 1, b"old").unwrap();
            bench.faults.named_only(named_only);
            bench.faults.crash_after(steps);
            let outcome = put(&bench.engine(), 2, b"new");
            let world = World {
                files: Arc::new(RealFiles),
                ..World::real()
            };
            let after = FilesEngine::start(bench.config(), world);
            let body = get(&after).unwrap();
            assert!(body == b"old" || body == b"new", "after {steps} steps");
            assert!(outcome.is_err() || body == b"new", "after {steps} steps");
            let left = std::fs::read_dir(bench.root.join("tmp")).map_or(0, Iterator::count);
            assert_eq!(left, 0, "after {steps} steps");
            if outcome.is_ok() && !bench.faults.crashed() {
                break;
            }
            steps += 1;
        }
        assert!(steps > 5, "the crash never came");
    }
}

/// The same for objects deleted or written together, in batches that are synced file by file and at once: what was
/// acknowledged is there, the others are as they were or there, and every suffix that changed is announced.
#[test]
fn a_crash_amid_many_writes_keeps_what_was_acknowledged() {
    for (count, deletes) in [(3, true), (12, true), (3, false), (12, false)] {
        let keys: Vec<_> = (0..count).map(|number| key(&format!("/a/c/{number}"))).collect();
        let mut steps = 0;
        while !crash_amid_many(&keys, deletes, steps) {
            steps += 1;
        }
        assert!(steps > 15, "the crash never came");
    }
}

/// Whether all was done before the crash.
fn crash_amid_many(keys: &[ObjectKey], deletes: bool, steps: usize) -> bool {
    let bench = Bench::new();
    let before = bench.engine();
    // Half of them are new to the device when they are written.
    for key in keys.iter().skip(if deletes { 0 } else { keys.len() / 2 }) {
        before.put(key, b"old", commit(at(1), b"old")).unwrap();
    }
    std::fs::write(bench.root.join("objects/7/hashes.invalid"), "").unwrap();
    bench.faults.crash_after(steps);
    let outcomes = match deletes {
        true => {
            let asked: Vec<_> = keys.iter().map(|key| (key.clone(), at(2))).collect();
            bench.engine().delete_all(asked)
        }
        false => {
            let body = bytes::Bytes::from_static(b"new");
            let put = |key: &ObjectKey| (key.clone(), body.clone(), commit(at(2), b"new"));
            bench.engine().put_all(keys.iter().map(put).collect())
        }
    };
    let world = World {
        files: Arc::new(RealFiles),
        ..World::real()
    };
    let after = FilesEngine::start(bench.config(), world);
    for (key, outcome) in keys.iter().zip(&outcomes) {
        let done = match after.open(key, OpenOptions::GET) {
            Ok(found) => found.first != b"old"[..],
            Err(EngineError::NotFound { deleted_at }) => deletes && deleted_at == Some(at(2)),
            Err(error) => panic!("after {steps} steps: {error}"),
        };
        assert!(done || outcome.is_err(), "after {steps} steps");
        assert!(
            !done || bench.invalidations().contains(&key.hash.suffix()),
            "after {steps} steps"
        );
    }
    let all_done = outcomes.iter().all(Result::is_ok) && !bench.faults.crashed();
    for key in keys.iter().filter(|_| all_done) {
        let place = format!("objects/7/{}/{}", key.hash.suffix(), key.hash.hex());
        assert_eq!(
            std::fs::read_dir(bench.root.join(place)).unwrap().count(),
            1,
            "the old file is left"
        );
    }
    all_done
}

/// What is wrong with one object is no reason to keep the others.
#[test]
fn one_deletion_that_fails_is_alone_in_that() {
    let bench = Bench::new();
    let engine = bench.engine();
    let (good, bad) = (key("/a/c/good"), key("/a/c/bad"));
    let taken = bench
        .root
        .join("objects/7")
        .join(bad.hash.suffix())
        .join(bad.hash.hex());
    std::fs::create_dir_all(taken.parent().unwrap()).unwrap();
    std::fs::write(&taken, "a file where a directory belongs").unwrap();
    let done = engine.delete_all(vec![(bad, at(2)), (good.clone(), at(2))]);
    assert!(done[0].is_err() && done[1].is_ok(), "{done:?}");
    let found = engine.open(&good, OpenOptions::GET).map(drop).unwrap_err();
    assert!(matches!(found, EngineError::NotFound { deleted_at } if deleted_at == Some(at(2))));
}

#[test]
fn old_tombstones_are_reclaimed_with_their_directory() {
    let bench = Bench::new();
    let engine = bench.engine();
    engine
        .delete(&key(NAME), vocabulary::Timestamp::from_seconds(1_000_000_000))
        .unwrap();
    assert!(!bench.hash_directory().exists());
    assert!(bench.hash_directory().parent().unwrap().exists());
}

#[test]
fn fragments_and_strangers_are_left_alone() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    let others = [format!("{}#1#d.data", at(9)), ".1.data.Xy095a".into(), "junk".into()];
    for other in &others {
        std::fs::write(bench.hash_directory().join(other), b"").unwrap();
    }
    put(&engine, 2, b"new").unwrap();
    assert_eq!(get(&engine).unwrap(), b"new");
    assert!(others.iter().all(|other| bench.hash_directory().join(other).exists()));
    assert!(!bench.data_file().exists());
}

/// What cannot be read costs its own suffix, and is never taken for held here.
#[test]
fn one_unreadable_directory_leaves_the_other_suffixes_to_replication() {
    let bench = Bench::new();
    let engine = bench.engine();
    let others: Vec<ObjectKey> = (0..5).map(|number| key(&format!("/a/c/{number}"))).collect();
    for key in others.iter().chain([&key(NAME)]) {
        engine.put(key, b"hello", commit(at(1), b"hello")).unwrap();
    }
    let partition = PartitionKey {
        policy: PolicyIndex(0),
        partition: Partition(7),
    };
    let hashes = |list| {
        let rehash = Rehash {
            list,
            ..Rehash::default()
        };
        engine.replica().suffix_hashes(partition, rehash).unwrap()
    };
    let before = hashes(true);
    assert_eq!((before.hashes.len(), before.unreadable), (6, 0));
    let ours = Suffix::of(key(NAME).hash);
    for unreadable in [
        bench.hash_directory(),
        bench.hash_directory().parent().unwrap().to_owned(),
    ] {
        // One suffix changes besides, so that both are hashed.
        put(&engine, 2, b"hello").unwrap();
        engine.put(&others[0], b"again", commit(at(2), b"again")).unwrap();
        bench.faults.unreadable(unreadable);
        let mut expected = hashes(false);
        for list in [false, true] {
            let found = hashes(list);
            assert_eq!(found.unreadable, 1);
            assert_eq!(found.hashes.len(), 5);
            assert!(!found.hashes.contains_key(&ours) && found.hashes == expected.hashes);
        }
        let all = [key(NAME).hash, others[0].hash];
        let held = engine.replica().versions_of(partition, &all).unwrap();
        assert!(held[1].is_some());
        let under = engine.replica().versions_under(partition, &ours.to_string()).unwrap();
        assert_eq!(under, []);
        assert!(!engine.replica().forget_partition(partition).unwrap());
        // A restart believes no old hash.
        assert_eq!(
            bench
                .engine()
                .replica()
                .suffix_hashes(partition, Rehash::default())
                .unwrap()
                .unreadable,
            1
        );
        bench.faults.heal();
        let healed = hashes(false);
        expected.hashes.insert(ours, healed.hashes[&ours]);
        assert_eq!((healed.unreadable, healed.hashes), (0, expected.hashes));
        assert_eq!(get(&engine).unwrap(), b"hello");
    }
    assert_eq!(
        engine
            .replica()
            .versions_of(partition, &[key(NAME).hash])
            .unwrap()
            .len(),
        1
    );
}

/// As ext4 says that its own structures are damaged.
#[test]
fn a_directory_whose_checksum_is_wrong_is_quarantined() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"hello").unwrap();
    bench
        .faults
        .unreadable_for(bench.hash_directory(), rustix::io::Errno::BADMSG.raw_os_error());
    assert!(matches!(get(&engine), Err(EngineError::Quarantined { .. })));
    bench.faults.heal();
    assert!(bench.quarantined().exists() && !bench.hash_directory().exists());
}

#[test]
fn what_is_linked_is_the_same_file_durable_and_announced() {
    let bench = Bench::new();
    let engine = bench.engine();
    put(&engine, 1, b"content").unwrap();
    let next = Partition(15);
    // What is not durable is not there, whatever can be seen.
    for step in ["make", "link", "sync", "append"] {
        bench.faults.fail(step, 5);
        assert!(engine.link(&key(NAME), next).is_err(), "{step}");
        bench.faults.heal();
        let engine = bench.engine();
        engine.link(&key(NAME), next).unwrap();
        let linked = bench
            .root
            .join("objects/15/a83")
            .join(HASH)
            .join(format!("{}.data", at(1)));
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
        assert_eq!(inode(&linked), inode(&bench.data_file()), "{step}");
        let announced = std::fs::read_to_string(bench.root.join("objects/15/hashes.invalid")).unwrap();
        assert!(announced.contains("a83\n"), "{step}: {announced}");
        std::fs::remove_dir_all(bench.root.join("objects/15")).unwrap();
    }
}
