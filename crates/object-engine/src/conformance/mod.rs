//! What every engine must do, as one suite that each engine runs against itself.
//!
//! [`run`] panics with the name of the rule that was broken. Engines add their own tests for what is
//! theirs alone (layout, corruption, full disks).

#![allow(clippy::unwrap_used)] // a test suite says so by failing

mod bodies;
mod devices;
mod metadata;

use crate::engine::{Commit, FoundObject, MetadataUpdate, ObjectEngine, OpenOptions};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use md5::{Digest, Md5};
use vocabulary::{HashPrefix, Partition, PathHash, PolicyIndex, Timestamp};

/// A recent second, so that nothing is old enough to be reclaimed.
const BASE: u64 = 9_000_000_000;
const BIG: usize = 300_000;

type Rule = (&'static str, fn(&dyn ObjectEngine));

/// Runs every rule on an engine of its own.
pub fn run(make: impl Fn() -> Box<dyn ObjectEngine>) {
    let rules: [Rule; 22] = [
        ("what was never written is absent", devices::absent),
        ("a small object comes with one call", bodies::small),
        ("what was listed is found as by looking for it", bodies::listed),
        ("an empty object is an object", bodies::empty),
        ("a big object streams and is read at any place", bodies::big),
        ("a writer that is dropped wrote nothing", bodies::dropped),
        ("the newest write wins, whatever the order", bodies::newest_wins),
        ("a deletion is remembered", bodies::deletion),
        ("many deletions are as one after the other", bodies::deletions),
        ("many writes are as one after the other", bodies::many),
        ("a POST replaces the client's metadata only", metadata::post),
        ("a content type lives on through later POSTs", metadata::content_type),
        ("any order of the same writes ends alike", metadata::commutes),
        ("offsets order writes of one moment", metadata::offsets),
        ("a reader keeps its object when it is replaced", bodies::reader_outlives),
        ("an object is never given out under another name", metadata::other_name),
        ("contradicting metadata are refused", metadata::contradictions),
        ("policies are apart and everything can be listed", devices::listing),
        ("what is quarantined is absent", devices::quarantine),
        ("what is linked is in both partitions", devices::linked),
        ("metadata are kept as they are", metadata::metadata_kept),
        (
            "replication sees what there is, and forgets it only as it was",
            devices::replication,
        ),
    ];
    for (name, rule) in rules {
        let engine = make();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rule(&*engine)));
        assert!(outcome.is_ok(), "broken rule: {name}");
    }
    bodies::racing(&*make());
}

/// The time of the n-th write.
pub fn at(n: u64) -> Timestamp {
    Timestamp::from_seconds(BASE + n)
}

/// The key of an object in partition 7.
pub fn key(name: &str) -> ObjectKey {
    // Not both empty, so it exists.
    let prefix = HashPrefix::new("", "endcap").unwrap();
    let parts: Vec<&str> = name.splitn(4, '/').collect();
    ObjectKey {
        policy: PolicyIndex::LEGACY,
        partition: Partition(7),
        hash: prefix.object(parts[1], parts[2], parts[3]),
        name: name.to_owned(),
    }
}

/// A commit with all that must be there.
pub fn commit(timestamp: Timestamp, body: &[u8]) -> Commit {
    let etag = PathHash(Md5::digest(body).into()).hex();
    let metadata = ObjectMetadata::new()
        .with("X-Timestamp", timestamp.internal())
        .with("Content-Type", "text/plain")
        .with("Content-Length", body.len().to_string())
        .with("ETag", etag);
    Commit { timestamp, metadata }
}

fn put(engine: &dyn ObjectEngine, name: &str, timestamp: Timestamp, body: &[u8]) {
    engine.put(&key(name), body, commit(timestamp, body)).unwrap();
}

fn update(timestamp: Timestamp, color: &str, content_type: Option<(&str, Timestamp)>) -> MetadataUpdate {
    let mut metadata = ObjectMetadata::new()
        .with("X-Timestamp", timestamp.internal())
        .with("X-Object-Meta-Color", color);
    if let Some((value, _)) = content_type {
        metadata.set("Content-Type", value);
    }
    MetadataUpdate {
        timestamp,
        metadata,
        content_type_timestamp: content_type.map(|(_, time)| time),
    }
}

fn open(engine: &dyn ObjectEngine, name: &str) -> Result<FoundObject, EngineError> {
    engine.open(&key(name), OpenOptions::GET)
}

/// The whole body.
pub fn read_all(mut found: FoundObject) -> Result<Vec<u8>, EngineError> {
    let mut body = found.first.to_vec();
    while let Some(reader) = &mut found.reader {
        match reader.read(10_000)? {
            chunk if chunk.is_empty() => break,
            chunk => body.extend_from_slice(&chunk),
        }
    }
    assert_eq!(body.len() as u64, found.size);
    Ok(body)
}

fn body_of(engine: &dyn ObjectEngine, name: &str) -> Vec<u8> {
    read_all(open(engine, name).unwrap()).unwrap()
}

fn deleted_at(engine: &dyn ObjectEngine, name: &str) -> Option<Timestamp> {
    let error = open(engine, name).err().unwrap();
    assert!(matches!(error, EngineError::NotFound { .. }), "{error}");
    error.deleted_at()
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ seed).collect()
}
