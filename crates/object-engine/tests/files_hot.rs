//! Answers from memory are the answers of the ordinary way, also while others work on the drive.
//!
//! Nothing is kept that changed within the last second or two, so these tests wait once for many objects.

#![allow(clippy::unwrap_used)] // a test says so by failing

use object_engine::conformance::{at, commit, key, read_all};
use object_engine::{
    EngineError, FilesConfig, FilesEngine, FoundObject, MetadataUpdate, ObjectEngine, ObjectMetadata, OpenOptions,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use world::World;

const STABLE_AFTER: Duration = Duration::from_millis(2_100);

struct Bench {
    place: tempfile::TempDir,
    engine: FilesEngine,
}

impl Bench {
    fn with(change: impl FnOnce(&mut FilesConfig)) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut config = FilesConfig::new("sda", place.path());
        config.mount_check = false;
        change(&mut config);
        let engine = FilesEngine::start(config, World::real());
        Self { place, engine }
    }

    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Another process on the same drive.
    fn other(&self) -> FilesEngine {
        let mut config = FilesConfig::new("sda", self.place.path());
        config.mount_check = false;
        FilesEngine::start(config, World::real())
    }

    fn put(&self, name: &str, body: &[u8]) {
        put(&self.engine, name, 1, body);
    }

    fn get(&self, name: &str) -> Result<FoundObject, EngineError> {
        self.engine.open(&key(name), OpenOptions::GET)
    }

    fn hot(&self, name: &str) -> Option<FoundObject> {
        self.engine.open_hot(&key(name), OpenOptions::GET)
    }

    fn warm(&self, name: &str) {
        self.get(name).unwrap();
        assert!(!self.can_be_hot() || self.hot(name).is_some(), "{name} is not hot");
    }

    /// Not on overlay and network file systems.
    fn can_be_hot(&self) -> bool {
        World::real().files.can_glance(self.place.path())
    }

    fn hash_directory(&self, name: &str) -> PathBuf {
        let hash = key(name).hash.hex();
        self.place.path().join("objects/7").join(&hash[29..]).join(hash)
    }

    fn data_file(&self, name: &str) -> PathBuf {
        self.hash_directory(name).join(format!("{}.data", at(1)))
    }
}

fn put(engine: &dyn ObjectEngine, name: &str, seconds: u64, body: &[u8]) {
    engine.put(&key(name), body, commit(at(seconds), body)).unwrap();
}

fn post(engine: &dyn ObjectEngine, name: &str, seconds: u64, color: &str) {
    let (timestamp, content_type_timestamp) = (at(seconds), None);
    let metadata = ObjectMetadata::new()
        .with("X-Timestamp", timestamp.internal())
        .with("X-Object-Meta-Color", color);
    let update = MetadataUpdate {
        timestamp,
        metadata,
        content_type_timestamp,
    };
    engine.write_metadata(&key(name), update).unwrap();
}

/// What the server does: from memory if possible.
fn read(bench: &Bench, name: &str) -> Result<Vec<u8>, EngineError> {
    match bench.hot(name) {
        Some(found) => read_all(found),
        None => bench.get(name).and_then(read_all),
    }
}

fn wait_until_stable() {
    std::thread::sleep(STABLE_AFTER);
}

fn content_of(found: &FoundObject) -> impl PartialEq + std::fmt::Debug + use<> {
    let FoundObject {
        metadata,
        data_metadata,
        timestamps,
        size,
        first,
        ..
    } = found;
    (
        metadata.clone(),
        data_metadata.clone(),
        *timestamps,
        *size,
        first.clone(),
    )
}

#[test]
fn hot_answers_are_the_ordinary_ones() {
    let bench = Bench::new();
    let big = vec![7; 100_000];
    for (name, body) in [
        ("/a/c/small", &b"hello"[..]),
        ("/a/c/empty", b""),
        ("/a/c/big", &big),
        ("/a/c/post", b"x"),
    ] {
        bench.put(name, body);
    }
    post(&bench.engine, "/a/c/post", 2, "blue");
    let written = std::time::Instant::now();
    bench.put("/a/c/young", b"hello");
    bench.get("/a/c/young").unwrap();
    let is_hot = bench.hot("/a/c/young").is_some();
    // A busy machine may come to ask when it is young no more.
    let was_young = written.elapsed() < Duration::from_millis(1_900);
    assert!(!(is_hot && was_young), "written a moment ago");
    wait_until_stable();
    for name in ["/a/c/small", "/a/c/empty", "/a/c/big", "/a/c/post"] {
        for options in [OpenOptions::HEAD, OpenOptions::GET] {
            assert!(
                bench
                    .engine
                    .open_hot(&key(name), options)
                    .is_none_or(|_| name == "/a/c/empty")
            );
            let found = bench.engine.open(&key(name), options).unwrap();
            let hot = bench.engine.open_hot(&key(name), options);
            if name == "/a/c/big" && options == OpenOptions::GET {
                assert!(hot.is_none(), "it has more than its first bytes");
            } else if bench.can_be_hot() {
                let hot = hot.unwrap();
                assert_eq!(content_of(&hot), content_of(&found));
                assert!(hot.reader.is_none());
            }
        }
    }
    assert!(bench.hot("/a/c/absent").is_none());
    // Looking at the metadata does not displace the body.
    bench.engine.open(&key("/a/c/small"), OpenOptions::HEAD).unwrap();
    bench.warm("/a/c/small");
}

#[test]
fn what_may_not_stay_in_the_page_cache_is_not_kept_either() {
    let bench = Bench::with(|config| config.keep_cache_size = 4);
    bench.put("/a/c/long", b"hello");
    bench.put("/a/c/short", b"hell");
    wait_until_stable();
    bench.warm("/a/c/short");
    bench.get("/a/c/long").unwrap();
    assert!(bench.hot("/a/c/long").is_none());
    // Its metadata are asked for without its body.
    let hot = bench.engine.open_hot(&key("/a/c/long"), OpenOptions::HEAD);
    assert!(!bench.can_be_hot() || hot.is_some());
}

type Change = fn(&Bench, &FilesEngine, &str);

/// What may happen to `hello`, and what is to be read then.
const CHANGES: [(&str, Change, Option<&[u8]>); 11] = [
    (
        "replaced",
        |bench, _, name| put(&bench.engine, name, 2, b"HELLO"),
        Some(b"HELLO"),
    ),
    (
        "replaced by another",
        |_, other, name| put(other, name, 2, b"HELLO"),
        Some(b"HELLO"),
    ),
    (
        "deleted",
        |bench, _, name| bench.engine.delete(&key(name), at(2)).unwrap(),
        None,
    ),
    (
        "deleted by another",
        |_, other, name| other.delete(&key(name), at(2)).unwrap(),
        None,
    ),
    (
        "quarantined",
        |bench, _, name| bench.engine.quarantine(&key(name), "test").unwrap(),
        None,
    ),
    (
        "quarantined by another",
        |_, other, name| other.quarantine(&key(name), "test").unwrap(),
        None,
    ),
    ("a bit flipped", |bench, _, name| spoil(&bench.data_file(name)), None),
    (
        "metadata spoilt",
        |bench, _, name| spoil_metadata(&bench.data_file(name)),
        None,
    ),
    (
        "cut short",
        |bench, _, name| std::fs::write(bench.data_file(name), b"hel").unwrap(),
        None,
    ),
    (
        "file removed",
        |bench, _, name| std::fs::remove_file(bench.data_file(name)).unwrap(),
        None,
    ),
    (
        "partition moved away",
        |bench, _, name| {
            let suffix = bench.hash_directory(name).parent().unwrap().to_owned();
            let aside = bench.place.path().join(suffix.file_name().unwrap());
            std::fs::rename(&suffix, aside).unwrap();
        },
        None,
    ),
];

fn spoil(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"j", 0).unwrap();
}

fn spoil_metadata(path: &Path) {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, "user.swift.metadata", b"rubbish", flags).unwrap();
}

#[test]
fn nothing_stale_is_served_right_after_any_change() {
    let bench = Bench::new();
    let other = bench.other();
    let name = |change: &str, round: usize| format!("/a/{change}/{round}");
    const ROUNDS: usize = 20;
    for (change, ..) in CHANGES {
        (0..ROUNDS).for_each(|round| bench.put(&name(change, round), b"hello"));
    }
    wait_until_stable();
    for (change, apply, expected) in CHANGES {
        for round in 0..ROUNDS {
            let name = name(change, round);
            // A neighbour's suffix may have been moved away with this one's.
            if bench.get(&name).is_err() && change == "partition moved away" {
                continue;
            }
            bench.warm(&name);
            apply(&bench, &other, &name);
            assert!(bench.hot(&name).is_none(), "{change}");
            let now = read(&bench, &name).ok();
            assert_eq!(now.as_deref(), expected, "{change}");
        }
    }
}

#[test]
fn posts_show_at_once() {
    let bench = Bench::new();
    let other = bench.other();
    let name = |round: u64| format!("/a/c/{round}");
    let color = |name: &str| {
        let key = key(name);
        let hot = bench.engine.open_hot(&key, OpenOptions::HEAD);
        let found = hot.unwrap_or_else(|| bench.engine.open(&key, OpenOptions::HEAD).unwrap());
        found.metadata.text("X-Object-Meta-Color").map(str::to_owned)
    };
    (0..40).for_each(|round| bench.put(&name(round), b"hello"));
    wait_until_stable();
    for round in 0..40 {
        let name = name(round);
        bench.warm(&name);
        for (at, engine) in [(2, &other), (3, &bench.engine)] {
            post(engine, &name, at, &format!("{at}"));
            assert_eq!(color(&name), Some(at.to_string()));
        }
    }
    wait_until_stable();
    bench.warm(&name(0));
    let meta = bench.hash_directory(&name(0)).join(format!("{}.meta", at(3)));
    spoil_metadata(&meta);
    assert!(bench.engine.open(&key(&name(0)), OpenOptions::HEAD).is_err());
}

/// A reader that never saw the answer of a finished write fails this: what is read may not be older
/// than what was acknowledged before the read began.
#[test]
fn readers_racing_a_writer_never_go_back() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let bench = Bench::new();
    let other = bench.other();
    let name = "/a/c/raced";
    bench.put(name, b"1");
    let (acknowledged, done) = (AtomicU64::new(1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let known = acknowledged.load(Ordering::Acquire);
                    let read = String::from_utf8(read(&bench, name).unwrap()).unwrap();
                    assert!(read.parse::<u64>().unwrap() >= known, "{read} after {known}");
                }
            });
        }
        for round in 2..40_u64 {
            // Now and then long enough for the object to become hot.
            if round % 13 == 0 {
                wait_until_stable();
            }
            put(&other, name, round, round.to_string().as_bytes());
            acknowledged.store(round, Ordering::Release);
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_missing_device_is_not_served_from_memory() {
    let bench = Bench::new();
    bench.put("/a/c/o", b"hello");
    wait_until_stable();
    bench.warm("/a/c/o");
    let aside = bench.place.path().with_extension("aside");
    std::fs::rename(bench.place.path(), &aside).unwrap();
    assert!(bench.hot("/a/c/o").is_none());
    assert!(matches!(
        bench.get("/a/c/o"),
        Err(EngineError::DeviceUnavailable { .. })
    ));
    std::fs::rename(&aside, bench.place.path()).unwrap();
    assert_eq!(read(&bench, "/a/c/o").unwrap(), b"hello");
}

#[test]
fn what_is_kept_is_bounded_and_can_be_turned_off() {
    let few = Bench::with(|config| config.hot_objects = 3);
    let small = Bench::with(|config| config.hot_bytes = 200_000);
    let off = Bench::with(|config| config.hot_objects = 0);
    let unmarked = Bench::with(|config| config.verified_marks = 0);
    let brief = Bench::with(|config| config.verified_for = Duration::ZERO);
    let benches = [&few, &small, &off, &unmarked, &brief];
    let names: Vec<String> = (0..20).map(|number| format!("/a/c/{number}")).collect();
    for bench in benches {
        for name in &names {
            bench.put(name, &[1; 10_000]);
        }
        bench.put("/a/c/large", &[1; 20_000]);
    }
    wait_until_stable();
    let hot = |bench: &Bench| {
        for name in &names {
            bench.get(name).unwrap();
        }
        names.iter().filter(|name| bench.hot(name).is_some()).count()
    };
    let most = if few.can_be_hot() { 20 } else { 0 };
    let counts = benches.map(hot);
    assert_eq!(counts[0], most.min(3));
    assert!((most.min(10)..20).contains(&counts[1]), "{counts:?}");
    assert_eq!(counts[2..], [0, 0, 0]);
    small.get("/a/c/large").unwrap();
    assert!(small.hot("/a/c/large").is_none(), "more than its share");
}
