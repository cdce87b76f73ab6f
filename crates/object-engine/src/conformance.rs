//! What every engine must do, as one suite that each engine runs against itself.
//!
//! `run` panics with the name of the rule that was broken. Engines add their own tests for what is
//! theirs alone (layout, corruption, full disks).

#![allow(clippy::unwrap_used)] // a test suite says so by failing

use crate::engine::{Commit, Found, MetadataUpdate, ObjectEngine, ObjectKey, OpenOptions};
use crate::error::EngineError;
use crate::metadata::Metadata;
use crate::replica::{PartitionKey, Rehash};
use crate::suffixes::Suffix;
use bytes::Bytes;
use md5::{Digest, Md5};
use vocabulary::{FaultKind, HashPrefix, Partition, PathHash, PolicyIndex, Timestamp};

/// A recent second, so that nothing is old enough to be reclaimed.
const BASE: u64 = 9_000_000_000;
const BIG: usize = 300_000;

type Rule = (&'static str, fn(&dyn ObjectEngine));

/// Runs every rule on an engine of its own.
pub fn run(make: impl Fn() -> Box<dyn ObjectEngine>) {
    let rules: [Rule; 21] = [
        ("what was never written is absent", absent),
        ("a small object comes with one call", small),
        ("what was listed is found as by looking for it", listed),
        ("an empty object is an object", empty),
        ("a big object streams and is read at any place", big),
        ("a writer that is dropped wrote nothing", dropped),
        ("the newest write wins, whatever the order", newest_wins),
        ("a deletion is remembered", deletion),
        ("many deletions are as one after the other", deletions),
        ("many writes are as one after the other", many),
        ("a POST replaces the client's metadata only", post),
        ("a content type lives on through later POSTs", content_type),
        ("any order of the same writes ends alike", commutes),
        ("offsets order writes of one moment", offsets),
        ("a reader keeps its object when it is replaced", reader_outlives),
        ("an object is never given out under another name", other_name),
        ("contradicting metadata are refused", contradictions),
        ("policies are apart and everything can be listed", listing),
        ("what is quarantined is absent", quarantine),
        ("metadata are kept as they are", metadata_kept),
        (
            "replication sees what there is, and forgets it only as it was",
            replication,
        ),
    ];
    for (name, rule) in rules {
        let engine = make();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rule(&*engine)));
        assert!(outcome.is_ok(), "broken rule: {name}");
    }
    racing(&*make());
}

fn replication(engine: &dyn ObjectEngine) {
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
    let absent = self::key("/a/c/absent").hash;
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
    let metadata = Metadata::new()
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
    let mut metadata = Metadata::new()
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

fn open(engine: &dyn ObjectEngine, name: &str) -> Result<Found, EngineError> {
    engine.open(&key(name), OpenOptions::GET)
}

/// The whole body.
pub fn read_all(mut found: Found) -> Result<Vec<u8>, EngineError> {
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

fn absent(engine: &dyn ObjectEngine) {
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
    // A POST without a body is nobody's object.
    engine
        .write_metadata(&key("/a/c/o"), update(at(1), "blue", None))
        .unwrap();
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
}

fn small(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"hello");
    let found = open(engine, "/a/c/o").unwrap();
    assert_eq!(&found.first[..], b"hello");
    assert!(found.reader.is_none());
    assert_eq!((found.size, found.metadata.text("content-length")), (5, Some("5")));
    assert_eq!(found.metadata, found.data_metadata);
    let names: Vec<&str> = found.metadata.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["X-Timestamp", "Content-Type", "Content-Length", "ETag", "name"]);
    assert_eq!(found.metadata.text("name"), Some("/a/c/o"));
    let times = found.timestamps;
    assert_eq!((times.data, times.meta, times.content_type), (at(1), None, at(1)));
    assert_eq!((times.durable, times.newest()), (at(1), at(1)));
    let head = engine.open(&key("/a/c/o"), OpenOptions::HEAD).unwrap();
    assert!(head.first.is_empty() && head.reader.is_none() && head.size == 5);
}

fn listed(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(2), b"hello");
    let body_at = |time| {
        let found = engine.open(&key("/a/c/o"), OpenOptions::GET.listed_at(time)).unwrap();
        (found.timestamps, found.metadata.clone(), read_all(found).unwrap())
    };
    let looked_for = open(engine, "/a/c/o").unwrap();
    assert_eq!(
        body_at(at(2)),
        (looked_for.timestamps, looked_for.metadata, b"hello".to_vec())
    );
    // What has gone, or never was, is looked for.
    put(engine, "/a/c/o", at(3), b"newer");
    for time in [at(2), at(3), at(4)] {
        assert_eq!(body_at(time).2, b"newer");
    }
    engine.delete(&key("/a/c/o"), at(5)).unwrap();
    let gone = engine.open(&key("/a/c/o"), OpenOptions::GET.listed_at(at(3)));
    assert_eq!(gone.err().unwrap().deleted_at(), Some(at(5)));
}

fn empty(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"");
    let found = open(engine, "/a/c/o").unwrap();
    assert!(found.first.is_empty() && found.reader.is_none() && found.size == 0);
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ seed).collect()
}

fn big(engine: &dyn ObjectEngine) {
    let body = pattern(BIG, 0);
    let mut writer = engine.create(&key("/a/c/o"), None).unwrap();
    for chunk in body.chunks(7_777) {
        writer.write(chunk).unwrap();
    }
    assert_eq!(writer.written(), BIG as u64);
    writer.commit(commit(at(1), &body)).unwrap();
    assert_eq!(body_of(engine, "/a/c/o"), body);
    let mut found = open(engine, "/a/c/o").unwrap();
    assert_eq!(found.first.len(), OpenOptions::GET.first);
    let reader = found.reader.as_mut().unwrap();
    assert_eq!(reader.read_at(200_000, 1000).unwrap(), body[200_000..201_000]);
    assert_eq!(reader.read_at(BIG as u64 - 10, 1000).unwrap(), body[BIG - 10..]);
    assert!(reader.read_at(BIG as u64 + 10, 1000).unwrap().is_empty());
    assert_eq!(read_all(found).unwrap(), body);
    let exact = &body[..OpenOptions::GET.first];
    put(engine, "/a/c/exact", at(1), exact);
    let found = open(engine, "/a/c/exact").unwrap();
    assert!(found.reader.is_none() && found.first == exact);
}

fn dropped(engine: &dyn ObjectEngine) {
    let mut writer = engine.create(&key("/a/c/o"), Some(100)).unwrap();
    writer.write(b"half").unwrap();
    drop(writer);
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
}

fn newest_wins(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(2), b"second");
    put(engine, "/a/c/o", at(1), b"first");
    assert_eq!(body_of(engine, "/a/c/o"), b"second");
    put(engine, "/a/c/o", at(3), b"third");
    assert_eq!(body_of(engine, "/a/c/o"), b"third");
    engine.delete(&key("/a/c/o"), at(2)).unwrap();
    assert_eq!(body_of(engine, "/a/c/o"), b"third");
    put(engine, "/a/c/o", at(3), b"again");
    assert!([&b"third"[..], b"again"].contains(&&body_of(engine, "/a/c/o")[..]));
}

fn deletion(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"one");
    engine.delete(&key("/a/c/o"), at(2)).unwrap();
    assert_eq!(deleted_at(engine, "/a/c/o"), Some(at(2)));
    put(engine, "/a/c/o", at(1), b"late");
    assert_eq!(deleted_at(engine, "/a/c/o"), Some(at(2)));
    put(engine, "/a/c/o", at(3), b"new");
    assert_eq!(body_of(engine, "/a/c/o"), b"new");
    engine.delete(&key("/a/c/never"), at(5)).unwrap();
    assert_eq!(deleted_at(engine, "/a/c/never"), Some(at(5)));
}

fn deletions(engine: &dyn ObjectEngine) {
    let names: Vec<String> = (0..150).map(|number| format!("/a/c/{number}")).collect();
    for name in &names[..100] {
        put(engine, name, at(2), b"one");
    }
    put(engine, &names[0], at(5), b"newer");
    // One object is named twice, some were never there.
    let mut asked: Vec<_> = names.iter().map(|name| (key(name), at(3))).collect();
    asked.push((key(&names[1]), at(4)));
    asked.push((key(&names[1]), at(4)));
    let done = engine.delete_all(asked);
    assert!(done.len() == 152 && done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(body_of(engine, &names[0]), b"newer");
    assert_eq!(deleted_at(engine, &names[1]), Some(at(4)));
    assert!(names[2..].iter().all(|name| deleted_at(engine, name) == Some(at(3))));
    assert!(engine.delete_all(vec![]).is_empty());
}

fn many(engine: &dyn ObjectEngine) {
    let names: Vec<String> = (0..150).map(|number| format!("/a/c/{number}")).collect();
    put(engine, &names[0], at(5), b"newer");
    put(engine, &names[1], at(1), b"older");
    engine.delete(&key(&names[2]), at(6)).unwrap();
    let body = Bytes::from_static(b"together");
    let mut asked: Vec<_> = names
        .iter()
        .map(|name| (key(name), body.clone(), commit(at(3), b"together")))
        .collect();
    // What does not describe its body is refused, the others are not.
    asked.push((key("/a/c/wrong"), body.clone(), commit(at(3), b"else")));
    let done = engine.put_all(asked);
    assert!(done.len() == 151 && done[..150].iter().all(Result::is_ok), "{done:?}");
    assert!(matches!(done[150], Err(EngineError::Contradiction(_))), "{done:?}");
    assert_eq!(body_of(engine, &names[0]), b"newer");
    assert_eq!(deleted_at(engine, &names[2]), Some(at(6)));
    let others = names.iter().enumerate().filter(|(at, _)| ![0, 2].contains(at));
    others.for_each(|(_, name)| assert_eq!(body_of(engine, name), b"together"));
    assert!(engine.put_all(vec![]).is_empty());
}

fn post(engine: &dyn ObjectEngine) {
    let key = key("/a/c/o");
    let mut first = commit(at(2), b"body");
    first.metadata.set("X-Object-Meta-Taste", "sour");
    first.metadata.set("X-Object-Sysmeta-Kept", "yes");
    engine.put(&key, b"body", first).unwrap();
    engine.write_metadata(&key, update(at(1), "early", None)).unwrap();
    assert_eq!(open(engine, "/a/c/o").unwrap().timestamps.meta, None);
    engine.write_metadata(&key, update(at(4), "blue", None)).unwrap();
    engine.write_metadata(&key, update(at(3), "late", None)).unwrap();
    let found = open(engine, "/a/c/o").unwrap();
    assert_eq!(found.metadata.text("X-Object-Meta-Color"), Some("blue"));
    assert_eq!(found.metadata.text("X-Object-Meta-Taste"), None);
    assert_eq!(found.metadata.text("X-Object-Sysmeta-Kept"), Some("yes"));
    assert_eq!(found.metadata.text("Content-Type"), Some("text/plain"));
    assert_eq!(found.metadata.text("X-Timestamp"), Some(at(4).internal().as_str()));
    assert_eq!(found.data_metadata.text("X-Object-Meta-Taste"), Some("sour"));
    let times = found.timestamps;
    assert_eq!((times.data, times.meta, times.newest()), (at(2), Some(at(4)), at(4)));
    assert_eq!(&found.first[..], b"body");
    put(engine, "/a/c/o", at(5), b"new");
    let found = open(engine, "/a/c/o").unwrap();
    assert_eq!(
        (found.timestamps.meta, found.metadata.get("X-Object-Meta-Color")),
        (None, None)
    );
}

fn content_type(engine: &dyn ObjectEngine) {
    let key = key("/a/c/o");
    put(engine, "/a/c/o", at(1), b"body");
    engine
        .write_metadata(&key, update(at(3), "red", Some(("image/png", at(3)))))
        .unwrap();
    engine.write_metadata(&key, update(at(5), "blue", None)).unwrap();
    engine
        .write_metadata(&key, update(at(4), "late", Some(("image/gif", at(2)))))
        .unwrap();
    let found = open(engine, "/a/c/o").unwrap();
    assert_eq!(found.metadata.text("X-Object-Meta-Color"), Some("blue"));
    assert_eq!(found.metadata.text("Content-Type"), Some("image/png"));
    assert_eq!(found.timestamps.content_type, at(3));
    assert_eq!(
        found.metadata.text("Content-Type-Timestamp"),
        Some(at(3).internal().as_str())
    );
}

fn commutes(engine: &dyn ObjectEngine) {
    let mut outcomes = vec![];
    for order in permutations(5) {
        let number: String = order.iter().map(usize::to_string).collect();
        let name = format!("/a/c/{number}");
        let key = key(&name);
        for step in order {
            match step {
                0 => put(engine, &name, at(1), b"one"),
                1 => put(engine, &name, at(3), b"three"),
                2 => engine.delete(&key, at(2)).unwrap(),
                3 => engine
                    .write_metadata(&key, update(at(4), "a", Some(("x/y", at(4)))))
                    .unwrap(),
                _ => engine.write_metadata(&key, update(at(5), "b", None)).unwrap(),
            }
        }
        let found = open(engine, &name).unwrap();
        let mut items: Vec<(String, Vec<u8>)> =
            found.metadata.iter().map(|(n, v)| (n.to_owned(), v.to_vec())).collect();
        items.retain(|(name, _)| name != "name");
        items.sort();
        outcomes.push((items, found.timestamps, found.first));
    }
    assert_eq!(outcomes[0].2, &b"three"[..]);
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(count - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter
        .iter()
        .flat_map(|order| (0..count).map(move |at| insert(order, at)))
        .collect()
}

fn offsets(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1).with_offset(1), b"rewritten");
    put(engine, "/a/c/o", at(1), b"original");
    assert_eq!(body_of(engine, "/a/c/o"), b"rewritten");
    assert_eq!(open(engine, "/a/c/o").unwrap().timestamps.data, at(1).with_offset(1));
}

fn reader_outlives(engine: &dyn ObjectEngine) {
    let (old, new) = (pattern(BIG, 1), pattern(BIG, 2));
    put(engine, "/a/c/o", at(1), &old);
    let found = open(engine, "/a/c/o").unwrap();
    put(engine, "/a/c/o", at(2), &new);
    let second = open(engine, "/a/c/o").unwrap();
    engine.delete(&key("/a/c/o"), at(3)).unwrap();
    assert!(read_all(found).unwrap() == old);
    assert!(read_all(second).unwrap() == new);
}

fn other_name(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"mine");
    let mut other = key("/a/c/o");
    other.name = "/a/c/other".into();
    let error = engine.open(&other, OpenOptions::GET).err().unwrap();
    assert_eq!(error.kind(), FaultKind::Data, "{error}");
    assert!(matches!(error, EngineError::Collision { .. }), "{error}");
}

fn contradictions(engine: &dyn ObjectEngine) {
    let key = key("/a/c/o");
    for (name, value) in [
        ("Content-Length", Some("6")),
        ("X-Timestamp", Some("1")),
        ("ETag", None),
    ] {
        let mut wrong = commit(at(1), b"hello");
        match value {
            Some(value) => wrong.metadata.set(name, value),
            None => drop(wrong.metadata.remove(name)),
        }
        let error = engine.put(&key, b"hello", wrong).unwrap_err();
        assert_eq!(error.kind(), FaultKind::Caller, "{name}");
    }
    let mut untimed = update(at(1), "c", Some(("a/b", at(1))));
    untimed.content_type_timestamp = None;
    assert_eq!(
        engine.write_metadata(&key, untimed).unwrap_err().kind(),
        FaultKind::Caller
    );
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
}

fn listing(engine: &dyn ObjectEngine) {
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

fn quarantine(engine: &dyn ObjectEngine) {
    for n in 1..3 {
        put(engine, "/a/c/o", at(n), b"x");
        engine.quarantine(&key("/a/c/o"), "the test says so").unwrap();
        assert_eq!(deleted_at(engine, "/a/c/o"), None);
    }
    put(engine, "/a/c/o", at(1), b"copy");
    assert_eq!(body_of(engine, "/a/c/o"), b"copy");
}

fn metadata_kept(engine: &dyn ObjectEngine) {
    let name = "/a/c/\u{fc}\u{4e2d} %\u{1f600}";
    let mut rich = commit(at(1), b"x");
    let raw: Vec<u8> = (1..=255).collect();
    rich.metadata.set("X-Object-Meta-Raw", raw.clone());
    rich.metadata.set("X-Object-Meta-Empty", "");
    rich.metadata.set("X-Object-Meta-Long", "v".repeat(1024));
    for n in 0..20 {
        rich.metadata.set(format!("X-Object-Meta-{n}"), n.to_string());
    }
    let wanted = rich.metadata.clone().with("name", name);
    engine.put(&key(name), b"x", rich).unwrap();
    assert_eq!(open(engine, name).unwrap().metadata, wanted);
}

/// Writers and readers at once: nobody sees a torn object, the newest write is what stays.
fn racing(engine: &dyn ObjectEngine) {
    const WRITERS: u64 = 4;
    const ROUNDS: u64 = 40;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let n = round * WRITERS + writer + 1;
                    match n % 7 {
                        3 => engine.delete(&key("/a/c/o"), at(n)).unwrap(),
                        _ => put(engine, "/a/c/o", at(n), &pattern(1 + n as usize * 977, n as u8)),
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS * 4 {
                    match open(engine, "/a/c/o") {
                        Ok(found) => {
                            let n = found.timestamps.data.seconds() - BASE;
                            let wanted = pattern(1 + n as usize * 977, n as u8);
                            assert!(read_all(found).unwrap() == wanted, "torn");
                        }
                        Err(error) => assert_eq!(error.kind(), FaultKind::Absent, "{error}"),
                    }
                }
            });
        }
    });
    let last = WRITERS * ROUNDS;
    assert_eq!(open(engine, "/a/c/o").unwrap().timestamps.data, at(last));
}
