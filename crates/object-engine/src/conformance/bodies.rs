//! What was written is read, whole or not at all; the newest write stays.

use super::{BASE, BIG, at, body_of, commit, deleted_at, key, open, pattern, put, read_all};
use crate::engine::{ObjectEngine, OpenOptions};
use crate::error::EngineError;
use bytes::Bytes;
use vocabulary::FaultKind;

pub(super) fn small(engine: &dyn ObjectEngine) {
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

pub(super) fn listed(engine: &dyn ObjectEngine) {
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

pub(super) fn empty(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"");
    let found = open(engine, "/a/c/o").unwrap();
    assert!(found.first.is_empty() && found.reader.is_none() && found.size == 0);
}

pub(super) fn big(engine: &dyn ObjectEngine) {
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

pub(super) fn dropped(engine: &dyn ObjectEngine) {
    let mut writer = engine.create(&key("/a/c/o"), Some(100)).unwrap();
    writer.write(b"half").unwrap();
    drop(writer);
    assert_eq!(deleted_at(engine, "/a/c/o"), None);
}

pub(super) fn newest_wins(engine: &dyn ObjectEngine) {
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

pub(super) fn deletion(engine: &dyn ObjectEngine) {
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

pub(super) fn deletions(engine: &dyn ObjectEngine) {
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

pub(super) fn many(engine: &dyn ObjectEngine) {
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

pub(super) fn reader_outlives(engine: &dyn ObjectEngine) {
    let (old, new) = (pattern(BIG, 1), pattern(BIG, 2));
    put(engine, "/a/c/o", at(1), &old);
    let found = open(engine, "/a/c/o").unwrap();
    put(engine, "/a/c/o", at(2), &new);
    let second = open(engine, "/a/c/o").unwrap();
    engine.delete(&key("/a/c/o"), at(3)).unwrap();
    assert!(read_all(found).unwrap() == old);
    assert!(read_all(second).unwrap() == new);
}

/// Writers and readers at once: no reader sees a torn object, the newest write is what stays.
pub(super) fn racing(engine: &dyn ObjectEngine) {
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
