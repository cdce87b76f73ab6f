//! Every seed of the corpus, every finding that became one, and a few changes of each, through its target.

#![allow(clippy::unwrap_used, reason = "this is test code")]

use fuzz::{TARGETS, target};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Changes of each seed: enough to notice a target that is broken, too few to be felt.
const CHANGES: u64 = 40;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let listed = fs::read_dir(corpus().join(name)).unwrap_or_else(|error| panic!("corpus/{name}: {error}"));
    let mut found: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn changed(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(4) {
            0 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            1 => bytes.truncate(at),
            2 => bytes.insert(at, numbers.below(256) as u8),
            _ => {
                let copied: Vec<u8> = bytes.iter().skip(at).take(numbers.below(9)).copied().collect();
                bytes.splice(at..at, copied);
            }
        }
    }
    bytes
}

#[test]
fn targets_hold_for_the_corpus() {
    let changes = std::env::var("MARTLET_FUZZ_CHANGES").map_or(CHANGES, |text| text.parse().unwrap());
    let mut broken = vec![];
    for target in TARGETS {
        let holds = |bytes: &[u8]| catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_ok();
        for (path, seed) in seeds(target.name) {
            let mut numbers = Numbers(seed.len() as u64 + 1);
            let changed = (0..changes).map(|_| changed(&seed, &mut numbers));
            let bytes = [seed.clone(), vec![]]
                .into_iter()
                .chain(changed)
                .find(|bytes| !holds(bytes));
            let words = |bytes| format!("{}, made of {}: b\"{}\"", target.name, path.display(), text(bytes));
            broken.extend(bytes.map(words));
        }
    }
    assert!(broken.is_empty(), "do not hold:\n{}", broken.join("\n"));
}

/// Bytes as Rust would write them.
fn text(bytes: Vec<u8>) -> String {
    bytes.escape_ascii().to_string()
}

#[test]
fn each_target_has_seeds_and_each_folder_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, names);
    for name in names {
        assert!(!seeds(&name).is_empty() && target(&name).is_some());
    }
    assert!(target("none").is_none());
}
