//! Writes to many objects, each step for all of them before the next: staged → synced → announced →
//! published → the obsolete removed, as in `write.rs`.
//!
//! The drive is then told twice to keep them all (`durable_fs::Batch`), and a partition's lock is taken once.
//! Always holds: each object by itself has every step in the order of `write.rs`; one that fails does not keep
//! the others from going on.

use super::{EngineState, write, xattrs};
use crate::engine::{Commit, ObjectKey};
use crate::error::EngineError;
use crate::metadata::Metadata;
use crate::parts::{check_commit, named, tombstone};
use crate::rules::{FileName, FilePart};
use durable_fs::{Batch, Hint, Staged, Synced};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vocabulary::Timestamp;

/// A file that is to be one of an object's.
pub(super) struct WholeWrite<'a> {
    key: &'a ObjectKey,
    file: FileName,
    metadata: Metadata,
    body: &'a [u8],
}

impl<'a> WholeWrite<'a> {
    pub(super) fn tombstone(key: &'a ObjectKey, timestamp: Timestamp) -> Self {
        let part = FilePart::Tombstone;
        Self {
            key,
            file: FileName { timestamp, part },
            metadata: tombstone(key, timestamp),
            body: &[],
        }
    }

    pub(super) fn data(key: &'a ObjectKey, body: &'a [u8], commit: &Commit) -> Result<Self, EngineError> {
        check_commit(commit, body.len() as u64)?;
        let (timestamp, part) = (commit.timestamp, FilePart::Data);
        Ok(Self {
            key,
            file: FileName { timestamp, part },
            metadata: named(commit.metadata.clone(), key),
            body,
        })
    }
}

/// A write on its way.
struct NumberedWrite<'a> {
    /// Which of those asked for.
    number: usize,
    write: WholeWrite<'a>,
    directory: PathBuf,
}

type WriteOutcomes = Vec<Result<(), EngineError>>;

/// Files under way at once: each is held open.
const AT_ONCE: usize = 128;

/// What becomes of each, in their order. Blocks.
pub(super) fn write_all<'a>(
    state: &EngineState,
    writes: impl IntoIterator<Item = Result<WholeWrite<'a>, EngineError>>,
) -> Vec<Result<(), EngineError>> {
    let (mut done, mut waiting) = (WriteOutcomes::new(), vec![]);
    for write in writes {
        let number = done.len();
        done.push(write.map(|write| {
            let directory = state.layout.hash_directory(write.key);
            waiting.push(NumberedWrite {
                number,
                write,
                directory,
            });
        }));
        if waiting.len() == AT_ONCE {
            write_some(state, std::mem::take(&mut waiting), &mut done);
        }
    }
    write_some(state, waiting, &mut done);
    done
}

fn write_some(state: &EngineState, writes: Vec<NumberedWrite<'_>>, done: &mut WriteOutcomes) {
    if writes.is_empty() {
        return;
    }
    let mut batch = match begin(state) {
        Ok(batch) => batch,
        Err(error) => {
            let unavailable = || EngineError::DeviceUnavailable {
                device: state.config.name.clone(),
                why: error.to_string(),
            };
            return writes.iter().for_each(|one| done[one.number] = Err(unavailable()));
        }
    };
    let staged = through_step(
        writes.into_iter().map(|one| (stage(state, &mut batch, &one), one)),
        done,
    );
    let (writes, files): (Vec<_>, Vec<_>) = staged.into_iter().unzip();
    let synced = batch
        .sync(files)
        .into_iter()
        .map(|file| file.map_err(|error| state.blame(error)));
    let synced = through_step(synced.zip(writes), done);
    let mut announced = announce_together(state, synced.iter().map(|(one, _)| one));
    let synced = synced.into_iter().map(|(one, file)| {
        let made_known = match announced.contains_key(partition_of(&one.directory)) {
            true => Ok((file, None)),
            // What keeps them from being announced together is told of each.
            false => write::announce(state, &one.directory).map(|hint| (file, hint)),
        };
        (made_known, one)
    });
    let known = through_step(synced, done);
    publish(state, &batch, known, &mut announced, done);
}

fn begin(state: &EngineState) -> Result<Batch, EngineError> {
    state.ready()?;
    match state.device.batch() {
        Err(error) if error.is_absent() => state.present().and_then(|()| Err(state.blame(error))),
        other => other.map_err(|error| state.blame(error)),
    }
}

/// Those that have come through a step; what became of the others is noted.
fn through_step<'a, T>(
    stepped: impl Iterator<Item = (Result<T, EngineError>, NumberedWrite<'a>)>,
    done: &mut WriteOutcomes,
) -> Vec<(NumberedWrite<'a>, T)> {
    let mut through = vec![];
    for (outcome, one) in stepped {
        match outcome {
            Ok(thing) => through.push((one, thing)),
            Err(error) => done[one.number] = Err(error),
        }
    }
    through
}

fn stage(state: &EngineState, batch: &mut Batch, of: &NumberedWrite<'_>) -> Result<Staged, EngineError> {
    let blame = |error| state.blame(error);
    let mut staged = match of.write.file.part {
        // What is deleted is there; and full devices must take deletions, too.
        FilePart::Tombstone => write::stage(state, of.write.key, &of.directory)?,
        _ => {
            state.admit(of.write.body.len() as u64)?;
            let temporaries = state.layout.temporaries(of.write.key.policy);
            batch.stage_new(&of.directory, temporaries).map_err(blame)?
        }
    };
    if !of.write.body.is_empty() {
        staged.write(of.write.body).map_err(blame)?;
    }
    xattrs::write(&staged, &of.write.metadata).map_err(blame)?;
    Ok(staged)
}

/// Above a hash directory there is always a suffix, and above that a partition.
fn partition_of(hash_directory: &Path) -> &Path {
    hash_directory.ancestors().nth(2).unwrap_or(hash_directory)
}

/// The partitions in which all suffixes could be announced at once.
fn announce_together<'a>(
    state: &EngineState,
    writes: impl Iterator<Item = &'a NumberedWrite<'a>>,
) -> BTreeMap<PathBuf, Option<Hint>> {
    let mut suffixes: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for one in writes {
        let partition = partition_of(&one.directory).to_owned();
        let suffix = one.write.key.hash.suffix();
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
    state: &EngineState,
    batch: &Batch,
    known: Vec<(NumberedWrite<'_>, (Synced, Option<Hint>))>,
    announced: &mut BTreeMap<PathBuf, Option<Hint>>,
    done: &mut WriteOutcomes,
) {
    let (mut writes, mut files) = (vec![], vec![]);
    for (one, (file, hint)) in known {
        files.push((file, one.write.file.to_string()));
        writes.push((one, hint));
    }
    // What was announced for all stands for all or for none.
    let mut standing = BTreeMap::new();
    for ((one, hint), published) in writes.into_iter().zip(batch.publish(files)) {
        let published = match published {
            Ok(published) => published,
            Err(error) => {
                done[one.number] = Err(state.blame(error));
                continue;
            }
        };
        let partition = partition_of(&one.directory);
        let stands = standing.entry(partition.to_owned()).or_insert_with(|| {
            let shared = announced.remove(partition).flatten();
            shared.is_some_and(|hint| hint.stands())
        });
        if !*stands {
            write::confirm(state, &one.directory, hint);
        }
        state.hot.forget(one.write.key);
        // A tombstone may be one that nobody needs any more.
        if !published.alone || one.write.file.part == FilePart::Tombstone {
            write::remove_obsolete_in(state, one.write.key, &one.directory);
        }
    }
}
