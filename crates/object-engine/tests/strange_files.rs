//! What is no file in the place of one of ours keeps no service from the partition or the object: it goes to
//! quarantine, and nothing is read or written through a link.

#![allow(clippy::unwrap_used)] // a test says so by failing

use object_engine::conformance::{at, commit, key, read_all};
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine, OpenOptions, PartitionKey, Rehash, Replica};
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocabulary::{Partition, PolicyIndex};
use world::World;

const NAME: &str = "/a/c/o";
const OURS: PartitionKey = PartitionKey {
    policy: PolicyIndex::LEGACY,
    partition: Partition(7),
};

struct Bench {
    place: tempfile::TempDir,
    engine: FilesEngine,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("sda");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(place.path().join("elsewhere"), b"abc\n").unwrap();
        let mut config = FilesConfig::new("sda", root);
        config.mount_check = false;
        let engine = FilesEngine::start(config, World::real());
        Self { place, engine }
    }

    fn partition(&self) -> PathBuf {
        self.place.path().join("sda/objects/7")
    }

    fn hash_directory(&self) -> PathBuf {
        let hash = key(NAME).hash.hex();
        self.partition().join(&hash[29..]).join(hash)
    }

    fn put(&self, seconds: u64) {
        let body = seconds.to_string().into_bytes();
        self.engine.put(&key(NAME), &body, commit(at(seconds), &body)).unwrap();
    }

    fn get(&self) -> Result<Vec<u8>, EngineError> {
        self.engine.open(&key(NAME), OpenOptions::GET).and_then(read_all)
    }

    fn hashes(&self) -> BTreeMap<String, String> {
        let found = self.engine.suffix_hashes(OURS, Rehash::default()).unwrap();
        let hashes = found.hashes.iter();
        hashes
            .map(|(suffix, hash)| (suffix.to_string(), hash.to_string()))
            .collect()
    }

    fn quarantined(&self) -> Vec<String> {
        let found = std::fs::read_dir(self.place.path().join("sda/quarantined/objects"));
        let names = found.into_iter().flatten().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    fn elsewhere_is_untouched(&self) -> bool {
        let nothing_made = !self.place.path().join("nothing").exists();
        nothing_made && std::fs::read(self.place.path().join("elsewhere")).unwrap() == b"abc\n"
    }
}

type Make = fn(&Path, &Path);

const STRANGE: [(&str, Make); 5] = [
    ("link", |path, place| link(path, &place.join("elsewhere"))),
    ("link to nothing", |path, place| link(path, &place.join("nothing"))),
    ("directory", |path, _| {
        std::fs::create_dir_all(path.join("full")).unwrap()
    }),
    ("pipe", |path, _| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }),
    ("socket", |path, place| {
        // The name of a socket is short.
        drop(UnixListener::bind(place.join("socket")).unwrap());
        std::fs::rename(place.join("socket"), path).unwrap();
    }),
];

fn link(path: &Path, to: &Path) {
    std::os::unix::fs::symlink(to, path).unwrap();
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

#[test]
fn nothing_in_place_of_a_partitions_files_keeps_anybody_from_it() {
    let plain = Bench::new();
    plain.put(1);
    plain.put(2);
    let expected = plain.hashes();
    for name in [".lock", ".lock-replication", "hashes.invalid", "hashes.pkl"] {
        for (what, make) in STRANGE {
            for written_first in [true, false] {
                let bench = Bench::new();
                bench.put(1);
                bench.hashes();
                let path = bench.partition().join(name);
                let _ = std::fs::remove_file(&path);
                make(&path, bench.place.path());
                if written_first {
                    bench.put(2);
                }
                let first = bench.hashes();
                if !written_first {
                    bench.put(2);
                }
                let locked = bench.engine.lock_partition(OURS, Duration::ZERO).unwrap();
                let second = bench.hashes();
                let case = format!("{what} called {name}, written first: {written_first}");
                assert!(second == expected && (first == expected) == written_first, "{case}");
                drop(locked);
                bench.put(3);
                bench.hashes();
                let replaced = bench.partition().join(name);
                assert!(is_file(&replaced) && bench.elsewhere_is_untouched(), "{case}");
                // What a renamed record takes the place of is gone.
                let gone = name == "hashes.pkl" && what != "directory";
                let kept = if gone { vec![] } else { vec![format!("7-{name}")] };
                assert_eq!(bench.quarantined(), kept, "{case}");
            }
        }
    }
}

/// One that is called like an older file of the object is in the way of nothing but itself.
#[test]
fn a_directory_called_like_an_obsolete_file_is_moved_aside() {
    let bench = Bench::new();
    bench.put(5);
    let expected = bench.hashes();
    let older = bench.hash_directory().join(format!("{}.ts", at(1)));
    std::fs::create_dir(&older).unwrap();
    bench.engine.invalidate(OURS, &[key(NAME).hash.suffix()]).unwrap();
    assert_eq!(bench.hashes(), expected);
    assert_eq!((bench.get().unwrap(), older.exists()), (b"5".to_vec(), false));
    std::fs::create_dir(&older).unwrap();
    bench.put(6);
    assert_eq!((bench.get().unwrap(), older.exists()), (b"6".to_vec(), false));
    assert_eq!(bench.quarantined().len(), 2);
}

/// Not even when the link leads to the object's own bytes, and not by who knows the name without a list.
#[test]
fn an_object_is_not_read_through_a_link() {
    for (ending, listed) in [("data", false), ("data", true), ("meta", false)] {
        for (what, make) in STRANGE {
            let bench = Bench::new();
            bench.put(5);
            let data = bench.hash_directory().join(format!("{}.data", at(5)));
            let newer = data.with_file_name(format!("{}.{ending}", at(6)));
            let mut time = at(6);
            match (what, ending) {
                ("link", "data") => {
                    let moved = bench.place.path().join("moved");
                    std::fs::rename(&data, &moved).unwrap();
                    link(&data, &moved);
                    time = at(5);
                }
                ("link", _) => link(&newer, &data),
                _ => make(&newer, bench.place.path()),
            }
            let found = match listed {
                true => bench
                    .engine
                    .open(&key(NAME), OpenOptions::GET.listed_at(time))
                    .map(drop),
                false => bench.get().map(drop),
            };
            let error = found.unwrap_err();
            let case = format!("{what}.{ending}, listed: {listed}");
            assert!(matches!(error, EngineError::Quarantined { .. }), "{case}: {error}");
            assert_eq!(bench.quarantined(), [key(NAME).hash.hex()], "{case}");
        }
    }
}

#[test]
fn a_body_whose_time_is_spelled_otherwise_is_found_when_it_was_listed() {
    let bench = Bench::new();
    bench.put(5);
    let data = bench.hash_directory().join(format!("{}.data", at(5)));
    let seconds = at(5).seconds();
    for name in [format!("00{seconds}.data"), format!("{seconds}_0.data")] {
        let odd = data.with_file_name(&name);
        std::fs::rename(&data, &odd).unwrap();
        let listed = bench.engine.versions_of(OURS, &[key(NAME).hash]).unwrap();
        assert_eq!(listed[0].map(|versions| versions.data), Some(at(5)), "{name}");
        let found = bench.engine.open(&key(NAME), OpenOptions::GET.listed_at(at(5)));
        assert_eq!(read_all(found.unwrap()).unwrap(), b"5", "{name}");
        std::fs::rename(&odd, &data).unwrap();
    }
}
