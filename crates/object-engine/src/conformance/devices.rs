//! A device as a whole: what is listed, quarantined and replicated.

use super::{at, body_of, commit, deleted_at, key, put, read_all, update};
use crate::engine::{ObjectEngine, OpenOptions};
use crate::error::EngineError;
use crate::key::{ObjectKey, PartitionKey};
use crate::replica::Rehash;
use crate::suffixes::Suffix;
use vocabulary::{Partition, PolicyIndex};

pub(super) fn absent(engine: &dyn ObjectEngine) {
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
    assert!(engine.partitions(PolicyIndex::LEGACY).unwrap().is_empty());
    assert!(engine.suffixes(PolicyIndex::LEGACY, Partition(7)).unwrap().is_empty());
    assert!(
        engine
            .hashes(PolicyIndex::LEGACY, Partition(7), "abc")
            .unwrap()
            .is_empty()
    );
    engine.check().unwrap();
    // A POST without a body makes no object.
    engine
        .write_metadata(&key("/a/c/o"), update(at(1), "blue", None))
        .unwrap();
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
}

pub(super) fn listing(engine: &dyn ObjectEngine) {
    let mut hashes = vec![];
    for (partition, name) in [(7, "/a/c/o"), (9, "/a/c/p"), (10, "/a/c/q")] {
        let mut key = key(name);
        key.partition = Partition(partition);
        engine.put(&key, b"x", commit(at(1), b"x")).unwrap();
        hashes.push(key.hash);
    }
    let mut other = key("/a/c/o");
    other.policy = PolicyIndex(3);
    assert!(engine.open(&other, OpenOptions::GET).is_err());
    engine.delete(&other, at(2)).unwrap();
    assert_eq!(body_of(engine, "/a/c/o"), b"x");
    assert_eq!(
        engine.partitions(PolicyIndex::LEGACY).unwrap(),
        [7, 9, 10].map(Partition)
    );
    assert_eq!(engine.partitions(PolicyIndex(3)).unwrap(), [Partition(7)]);
    assert_eq!(
        engine.suffixes(PolicyIndex::LEGACY, Partition(9)).unwrap(),
        [hashes[1].suffix()]
    );
    assert_eq!(
        engine
            .hashes(PolicyIndex::LEGACY, Partition(9), &hashes[1].suffix())
            .unwrap(),
        [hashes[1]]
    );
}

pub(super) fn quarantine(engine: &dyn ObjectEngine) {
    for n in 1..3 {
        put(engine, "/a/c/o", at(n), b"x");
        engine.quarantine(&key("/a/c/o"), "the test says so").unwrap();
        assert_eq!(deleted_at(engine, "/a/c/o"), None);
    }
    put(engine, "/a/c/o", at(1), b"copy");
    assert_eq!(body_of(engine, "/a/c/o"), b"copy");
}

pub(super) fn linked(engine: &dyn ObjectEngine) {
    let (here, next) = (key("/a/c/o"), Partition(15));
    let there = ObjectKey {
        partition: next,
        ..here.clone()
    };
    engine.link(&here, next).unwrap();
    assert!(matches!(
        engine.open(&there, OpenOptions::GET),
        Err(EngineError::NotFound { deleted_at: None })
    ));
    put(engine, "/a/c/o", at(1), b"first");
    engine.link(&here, next).unwrap();
    engine.write_metadata(&here, update(at(2), "blue", None)).unwrap();
    engine.link(&here, next).unwrap();
    engine.link(&here, next).unwrap();
    let found = engine.open(&there, OpenOptions::GET).unwrap();
    assert_eq!(found.metadata.text("X-Object-Meta-Color"), Some("blue"));
    assert_eq!(read_all(found).unwrap(), b"first");
    put(engine, "/a/c/o", at(3), b"second");
    let old = engine.open(&there, OpenOptions::GET).unwrap();
    assert_eq!(read_all(old).unwrap(), b"first");
    engine.link(&here, next).unwrap();
    let found = engine.open(&there, OpenOptions::GET).unwrap();
    assert_eq!(found.timestamps.meta, None);
    assert_eq!(read_all(found).unwrap(), b"second");
    engine.delete(&here, at(4)).unwrap();
    engine.link(&here, next).unwrap();
    let Err(EngineError::NotFound { deleted_at }) = engine.open(&there, OpenOptions::GET) else {
        panic!("it is still in the other partition");
    };
    assert_eq!(deleted_at, Some(at(4)));
}

pub(super) fn replication(engine: &dyn ObjectEngine) {
    let (key, other) = (key("/a/c/o"), key("/a/c/other"));
    let partition = PartitionKey {
        policy: key.policy,
        partition: key.partition,
    };
    let replica = engine.replica();
    replica.prepare(key.policy).unwrap();
    assert!(
        replica
            .suffix_hashes(partition, Rehash::default())
            .unwrap()
            .hashes
            .is_empty()
    );
    assert_eq!(replica.versions(partition, key.hash).unwrap(), None);
    put(engine, "/a/c/o", at(1), b"one");
    put(engine, "/a/c/other", at(1), b"one");
    let first = replica.suffix_hashes(partition, Rehash::default()).unwrap().hashes;
    let seen = replica.versions(partition, key.hash).unwrap().unwrap();
    assert_eq!((seen.data, seen.deleted, seen.meta), (at(1), false, None));
    assert_eq!(
        replica.versions_under(partition, &key.hash.suffix()).unwrap(),
        [(key.hash, seen)]
    );
    let absent = super::key("/a/c/absent").hash;
    assert_eq!(
        replica.versions_of(partition, &[absent, key.hash, absent]).unwrap(),
        [None, Some(seen), None]
    );
    let nowhere = PartitionKey {
        partition: Partition(8),
        ..partition
    };
    assert_eq!(replica.versions_of(nowhere, &[key.hash]).unwrap(), [None]);
    assert_eq!(replica.name_of(partition, key.hash).unwrap().as_deref(), Some("/a/c/o"));
    engine.delete(&key, at(2)).unwrap();
    let second = replica.suffix_hashes(partition, Rehash::default()).unwrap().hashes;
    assert!(first != second && first[&Suffix::of(other.hash)] == second[&Suffix::of(other.hash)]);
    assert!(!replica.forget(partition, key.hash, &seen).unwrap());
    let grave = replica.versions(partition, key.hash).unwrap().unwrap();
    assert!(grave.deleted && grave.data == at(2));
    assert!(replica.forget(partition, key.hash, &grave).unwrap());
    assert!(!replica.forget_partition(partition).unwrap());
    let last = replica.versions(partition, other.hash).unwrap().unwrap();
    assert!(replica.forget(partition, other.hash, &last).unwrap());
    assert!(replica.forget_partition(partition).unwrap());
}
