//! Tombstones of many objects, each step for all of them before the next: staged → synced → announced →
//! published → the obsolete removed, as in `write.rs`.
//!
//! A file system with a log then writes it twice for all of them, and a partition's lock is taken once.
//! Always holds: each object by itself has every step in the order of `write.rs`; one that fails does not keep
//! the others from going on.

use super::{State, write, xattrs};
use crate::engine::ObjectKey;
use crate::error::EngineError;
use crate::parts::tombstone;
use crate::rules::{FileName, Part};
use durable_fs::{Hint, Staged, Synced};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vocabulary::Timestamp;

/// A tombstone on its way.
struct Tombstone<'a> {
    /// Which of the deletions.
    number: usize,
    key: &'a ObjectKey,
    timestamp: Timestamp,
    directory: PathBuf,
}

type Done = Vec<Result<(), EngineError>>;

/// Tombstones under way at once: each holds a file and a directory open.
const AT_ONCE: usize = 128;

/// Works on a full device too, as a single deletion does. Blocks.
pub(super) fn delete_all(state: &State, deletions: &[(ObjectKey, Timestamp)]) -> Done {
    deletions
        .chunks(AT_ONCE)
        .flat_map(|some| delete_some(state, some))
        .collect()
}

fn delete_some(state: &State, deletions: &[(ObjectKey, Timestamp)]) -> Done {
    let mut done: Done = deletions.iter().map(|_| Ok(())).collect();
    let under_way = deletions
        .iter()
        .enumerate()
        .map(|(number, (key, timestamp))| Tombstone {
            number,
            key,
            timestamp: *timestamp,
            directory: state.layout.hash_directory(key),
        });
    let staged = going_on(
        under_way.map(|tombstone| (stage(state, &tombstone), tombstone)),
        &mut done,
    );
    let synced = staged.into_iter().map(|(tombstone, staged)| {
        let synced = staged.sync().map_err(|error| state.blame(error));
        (synced, tombstone)
    });
    let synced = going_on(synced, &mut done);
    let mut announced = announce_together(state, synced.iter().map(|(tombstone, _)| tombstone));
    let synced = synced.into_iter().map(|(tombstone, file)| {
        let made_known = match announced.contains_key(partition_of(&tombstone.directory)) {
            true => Ok((file, None)),
            // What keeps them from being announced together is told of each.
            false => write::announce(state, &tombstone.directory).map(|hint| (file, hint)),
        };
        (made_known, tombstone)
    });
    let known = going_on(synced, &mut done);
    publish(state, known, &mut announced, &mut done);
    done
}

/// Those that have come through a step; what became of the others is noted.
fn going_on<'a, T>(
    stepped: impl Iterator<Item = (Result<T, EngineError>, Tombstone<'a>)>,
    done: &mut Done,
) -> Vec<(Tombstone<'a>, T)> {
    let mut through = vec![];
    for (outcome, tombstone) in stepped {
        match outcome {
            Ok(thing) => through.push((tombstone, thing)),
            Err(error) => done[tombstone.number] = Err(error),
        }
    }
    through
}

fn stage(state: &State, of: &Tombstone<'_>) -> Result<Staged, EngineError> {
    state.ready()?;
    let staged = write::stage(state, of.key, &of.directory)?;
    xattrs::write(&staged, &tombstone(of.key, of.timestamp)).map_err(|error| state.blame(error))?;
    Ok(staged)
}

/// Above a hash directory there is always a suffix, and above that a partition.
fn partition_of(hash_directory: &Path) -> &Path {
    hash_directory.ancestors().nth(2).unwrap_or(hash_directory)
}

/// The partitions in which all suffixes could be announced at once.
fn announce_together<'a>(
    state: &State,
    tombstones: impl Iterator<Item = &'a Tombstone<'a>>,
) -> BTreeMap<PathBuf, Option<Hint>> {
    let mut suffixes: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for tombstone in tombstones {
        let partition = partition_of(&tombstone.directory).to_owned();
        let suffix = tombstone.key.hash.suffix();
        suffixes.entry(partition).or_default().insert(format!("{suffix}\n"));
    }
    let announced = suffixes.into_iter().filter_map(|(partition, lines)| {
        let lines: String = lines.into_iter().collect();
        let hint = write::announce_lines(state, &partition, &lines).ok()?;
        Some((partition, hint))
    });
    announced.collect()
}

fn publish(
    state: &State,
    known: Vec<(Tombstone<'_>, (Synced, Option<Hint>))>,
    announced: &mut BTreeMap<PathBuf, Option<Hint>>,
    done: &mut Done,
) {
    let (mut tombstones, mut files) = (vec![], vec![]);
    for (tombstone, (file, hint)) in known {
        let (timestamp, part) = (tombstone.timestamp, Part::Tombstone);
        files.push((file, FileName { timestamp, part }.to_string()));
        tombstones.push((tombstone, hint));
    }
    // What was announced for all stands for all or for none.
    let mut standing = BTreeMap::new();
    for ((tombstone, hint), published) in tombstones.into_iter().zip(Synced::publish_all(files)) {
        let opened = match published {
            Ok(opened) => opened,
            Err(error) => {
                done[tombstone.number] = Err(state.blame(error));
                continue;
            }
        };
        let partition = partition_of(&tombstone.directory);
        let stands = standing.entry(partition.to_owned()).or_insert_with(|| {
            let shared = announced.remove(partition).flatten();
            shared.is_some_and(|hint| hint.stands())
        });
        if !*stands {
            write::confirm(state, &tombstone.directory, hint);
        }
        state.hot.forget(tombstone.key);
        write::remove_obsolete(state, tombstone.key, &tombstone.directory, &*opened);
    }
}
