//! What POSTs change and what they leave; what is refused.

use super::{at, body_of, commit, deleted_at, key, open, put, update};
use crate::engine::{ObjectEngine, OpenOptions};
use crate::error::EngineError;
use vocabulary::FaultKind;

pub(super) fn post(engine: &dyn ObjectEngine) {
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

pub(super) fn content_type(engine: &dyn ObjectEngine) {
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

pub(super) fn commutes(engine: &dyn ObjectEngine) {
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

pub(super) fn offsets(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1).with_offset(1), b"rewritten");
    put(engine, "/a/c/o", at(1), b"original");
    assert_eq!(body_of(engine, "/a/c/o"), b"rewritten");
    assert_eq!(open(engine, "/a/c/o").unwrap().timestamps.data, at(1).with_offset(1));
}

pub(super) fn other_name(engine: &dyn ObjectEngine) {
    put(engine, "/a/c/o", at(1), b"mine");
    let mut other = key("/a/c/o");
    other.name = "/a/c/other".into();
    let error = engine.open(&other, OpenOptions::GET).err().unwrap();
    assert_eq!(error.kind(), FaultKind::Data, "{error}");
    assert!(matches!(error, EngineError::Collision { .. }), "{error}");
}

pub(super) fn contradictions(engine: &dyn ObjectEngine) {
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

pub(super) fn metadata_kept(engine: &dyn ObjectEngine) {
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
