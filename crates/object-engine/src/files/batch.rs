//! Writes of whole files, often of one, each step for all of them before the next: staged → synced → announced →
//! published → the obsolete removed, as in `write.rs`.
//!
//! The drive is then flushed twice for all of them (`durable_fs::Batch`), and a partition's lock is taken once. A batch
//! of one takes the same steps as a streamed object and costs as much.
//! Always holds: each object by itself has every step in the order of `write.rs`; one that fails does not keep
//! the others from going on.

use super::announcements::{announce, announce_lines, confirm};
use super::hash_directory::{remove_obsolete, remove_obsolete_in};
use super::{EngineState, write};
use crate::engine::{Commit, MetadataUpdate};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use crate::parts::{check_commit, named, tombstone, update_metadata};
use crate::rules::{FileName, FilePart};
use bytes::Bytes;
use durable_fs::{Batch, Hint, Staged, Synced};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vocabulary::Timestamp;

/// A file that is to be one of an object's.
pub(super) struct WholeWrite {
    key: ObjectKey,
    file: FileName,
    metadata: ObjectMetadata,
    body: Bytes,
}

impl WholeWrite {
    pub(super) fn tombstone(key: ObjectKey, timestamp: Timestamp) -> Self {
        let part = FilePart::Tombstone;
        Self {
            file: FileName { timestamp, part },
            metadata: tombstone(&key, timestamp),
            body: Bytes::new(),
            key,
        }
    }

    pub(super) fn metadata(key: ObjectKey, update: MetadataUpdate) -> Result<Self, EngineError> {
        let (file, metadata) = update_metadata(&key, update)?;
        let body = Bytes::new();
        Ok(Self {
            key,
            file,
            metadata,
            body,
        })
    }

    pub(super) fn data(key: ObjectKey, body: Bytes, commit: Commit) -> Result<Self, EngineError> {
        check_commit(&commit, body.len() as u64)?;
        let (timestamp, part) = (commit.timestamp, FilePart::Data);
        Ok(Self {
            file: FileName { timestamp, part },
            metadata: named(commit.metadata, &key),
            key,
            body,
        })
    }
}

/// A write on its way.
struct NumberedWrite {
    /// Which of those asked for.
    number: usize,
    write: WholeWrite,
    directory: PathBuf,
}

type WriteOutcomes = Vec<Result<(), EngineError>>;

/// Files under way at once: each is held open.
const AT_ONCE: usize = 128;

/// What becomes of each, in their order. Blocks.
pub(super) fn write_all(
    state: &EngineState,
    writes: impl Iterator<Item = Result<WholeWrite, EngineError>>,
) -> Vec<Result<(), EngineError>> {
    let (mut done, mut waiting) = (WriteOutcomes::new(), vec![]);
    for write in writes {
        let number = done.len();
        done.push(write.map(|write| {
            let directory = state.layout.hash_directory(&write.key);
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

fn write_some(state: &EngineState, writes: Vec<NumberedWrite>, done: &mut WriteOutcomes) {
    let Some(first) = writes.first().map(|one| one.number) else {
        return;
    };
    let mut batch = match begin(state, writes.len()) {
        Ok(batch) => batch,
        Err(error) => {
            let unavailable = || EngineError::DeviceUnavailable {
                device: state.config.name.clone(),
                why: error.to_string(),
            };
            writes[1..].iter().for_each(|one| done[one.number] = Err(unavailable()));
            done[first] = Err(error);
            return;
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
    let announced = announce_together(state, &synced);
    let synced = synced.into_iter().map(|(one, file)| {
        if one.write.body.len() as u64 > state.config.keep_cache_size {
            file.forget_cached();
        }
        let made_known = match announced.contains_key(partition_of(&one.directory)) {
            true => Ok((file, None)),
            // One by itself; or what keeps them from being announced together is reported for each.
            false => announce(state, &one.directory).map(|hint| (file, hint)),
        };
        (made_known, one)
    });
    let known = through_step(synced, done);
    publish(state, &batch, known, announced, done);
}

fn begin(state: &EngineState, files: usize) -> Result<Batch, EngineError> {
    state.ready()?;
    match state.device.batch(files) {
        Err(error) if error.is_absent() => state.present().and_then(|()| Err(state.blame(error))),
        other => other.map_err(|error| state.blame(error)),
    }
}

/// Those that have come through a step; what became of the others is noted.
fn through_step<T>(
    stepped: impl Iterator<Item = (Result<T, EngineError>, NumberedWrite)>,
    done: &mut WriteOutcomes,
) -> Vec<(NumberedWrite, T)> {
    let mut through = vec![];
    for (outcome, one) in stepped {
        match outcome {
            Ok(thing) => through.push((one, thing)),
            Err(error) => done[one.number] = Err(error),
        }
    }
    through
}

fn stage(state: &EngineState, batch: &mut Batch, of: &NumberedWrite) -> Result<Staged, EngineError> {
    let blame = |error| state.blame(error);
    let mut staged = match of.write.file.part {
        // What is deleted is there; and a full device takes deletions, too: they make room again.
        FilePart::Tombstone => write::stage(state, &of.write.key, &of.directory)?,
        FilePart::Meta(_) => {
            state.admit(0)?;
            write::stage(state, &of.write.key, &of.directory)?
        }
        _ => {
            let size = of.write.body.len() as u64;
            state.admit(size)?;
            let temporaries = state.layout.temporaries(of.write.key.policy);
            let mut staged = batch.stage_new(&of.directory, temporaries).map_err(blame)?;
            write::prepare_for(state, &mut staged, size)?;
            staged
        }
    };
    if !of.write.body.is_empty() {
        staged.write(&of.write.body).map_err(blame)?;
    }
    state.write_metadata(&staged, &of.write.metadata)?;
    Ok(staged)
}

/// Above a hash directory there is always a suffix, and above that a partition.
fn partition_of(hash_directory: &Path) -> &Path {
    hash_directory.ancestors().nth(2).unwrap_or(hash_directory)
}

/// The partitions in which all suffixes could be announced at once; one write is announced by itself.
fn announce_together(state: &EngineState, writes: &[(NumberedWrite, Synced)]) -> BTreeMap<PathBuf, Option<Hint>> {
    let mut suffixes: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    if writes.len() < 2 {
        return BTreeMap::new();
    }
    for (one, _) in writes {
        let partition = partition_of(&one.directory).to_owned();
        let suffix = one.write.key.hash.suffix();
        suffixes.entry(partition).or_default().insert(format!("{suffix}\n"));
    }
    let announced = suffixes.into_iter().filter_map(|(partition, lines)| {
        let lines: String = lines.into_iter().collect();
        let hint = announce_lines(state, &partition, &lines).ok()?;
        Some((partition, hint))
    });
    announced.collect()
}

fn publish(
    state: &EngineState,
    batch: &Batch,
    known: Vec<(NumberedWrite, (Synced, Option<Hint>))>,
    announced: BTreeMap<PathBuf, Option<Hint>>,
    done: &mut WriteOutcomes,
) {
    let (mut writes, mut files) = (vec![], vec![]);
    for (one, (file, hint)) in known {
        files.push((file, one.write.file.to_string()));
        writes.push((one, hint));
    }
    let published = batch.publish(files);
    // What was announced for all stands for all or for none.
    let stands = |(partition, hint): (_, Option<Hint>)| (partition, hint.is_some_and(|hint| hint.stands()));
    let standing: BTreeMap<PathBuf, bool> = announced.into_iter().map(stands).collect();
    for ((one, hint), published) in writes.into_iter().zip(published) {
        let published = match published {
            Ok(published) => published,
            Err(error) => {
                done[one.number] = Err(state.blame(error));
                continue;
            }
        };
        if standing.get(partition_of(&one.directory)) != Some(&true) {
            confirm(state, &one.directory, hint);
        }
        let key = &one.write.key;
        state.hot.forget(key);
        // A tombstone may be reclaimable at once.
        if !published.alone || one.write.file.part == FilePart::Tombstone {
            match published.opened {
                Some(opened) => remove_obsolete(state, key, &one.directory, &*opened),
                None => remove_obsolete_in(state, key, &one.directory),
            }
        }
    }
}
