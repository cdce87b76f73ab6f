//! A drive changes hands: OpenStack Swift reads what we wrote, we read what it wrote.
//!
//! Needs a Python with the `swift` package: `MARTLET_ORACLE_PYTHON`, else `../../.venv/bin/python`;
//! without one there is nothing to ask and the test says so.

#![allow(clippy::unwrap_used)] // a test says so by failing

mod support;

use md5::{Digest, Md5};
use object_engine::conformance::{at, commit, key, read_all};
use object_engine::{MetadataUpdate, ObjectEngine, ObjectMetadata, OpenOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use support::{engine, python};
use vocabulary::{PathHash, Timestamp};

const NAMES: [&str; 10] = [
    "small",
    "empty",
    "big",
    "posted",
    "typed",
    "deleted",
    "replaced",
    "never",
    "\u{fc} \u{4e2d}%",
    "offset",
];

fn talk(python: &str, verb: &str, devices: &Path) -> Value {
    support::run(python, "talk.py", &[verb.as_ref(), devices])
}

fn path(name: &str) -> String {
    format!("/a/c/{name}")
}

fn body(name: &str) -> Vec<u8> {
    match name {
        "empty" => vec![],
        "big" => (0..300_000_u32).map(|at| (at % 251) as u8).collect(),
        _ => name.as_bytes().to_vec(),
    }
}

fn put(engine: &dyn ObjectEngine, name: &str, timestamp: Timestamp, extra: &[(&str, &str)]) {
    let body = body(name);
    let mut commit = commit(timestamp, &body);
    for (name, value) in extra {
        commit.metadata.set(*name, *value);
    }
    engine.put(&key(&path(name)), &body, commit).unwrap();
}

fn post(engine: &dyn ObjectEngine, name: &str, timestamp: Timestamp, color: &str, typed: Option<&str>) {
    let mut metadata = ObjectMetadata::new()
        .with("X-Timestamp", timestamp.internal())
        .with("X-Object-Meta-Color", color);
    if let Some(typed) = typed {
        metadata.set("Content-Type", typed);
    }
    let content_type_timestamp = typed.map(|_| timestamp);
    let update = MetadataUpdate {
        timestamp,
        metadata,
        content_type_timestamp,
    };
    engine.write_metadata(&key(&path(name)), update).unwrap();
}

fn write(engine: &dyn ObjectEngine, name: &str) {
    match name {
        "never" => return,
        "offset" => return put(engine, name, at(1).with_offset(3), &[]),
        _ => {}
    }
    put(
        engine,
        name,
        at(1),
        &[("X-Object-Meta-Taste", "bl\u{fc}"), ("X-Object-Sysmeta-Kept", "yes")],
    );
    match name {
        "posted" => {
            post(engine, name, at(2), "red", None);
            post(engine, name, at(3), "blue", None);
        }
        "typed" => {
            post(engine, name, at(2), "red", Some("image/png"));
            post(engine, name, at(3), "blue", None);
        }
        "deleted" => engine.delete(&key(&path(name)), at(2)).unwrap(),
        "replaced" => {
            engine.delete(&key(&path(name)), at(2)).unwrap();
            put(engine, name, at(3), &[]);
        }
        _ => {}
    }
}

/// What our engine finds, in the words of `talk.py`.
fn read(engine: &dyn ObjectEngine) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let one = |name: &str| match engine.open(&key(&path(name)), OpenOptions::GET) {
        Ok(found) => {
            let items: BTreeMap<String, String> = found
                .metadata
                .iter()
                .map(|(name, value)| (name.to_owned(), hex(value)))
                .collect();
            let times = found.timestamps;
            let times = [times.data, times.newest(), times.content_type].map(Timestamp::internal);
            let md5 = PathHash(Md5::digest(read_all(found).unwrap()).into()).hex();
            json!({"metadata": items, "times": times, "md5": md5})
        }
        Err(error) => error
            .deleted_at()
            .map_or(Value::Null, |time| json!({"deleted": time.internal()})),
    };
    NAMES.iter().map(|name| ((*name).to_owned(), one(name))).collect()
}

/// All files of a device and the metadata bytes of each, but for what only one side makes.
fn snapshot(devices: &Path) -> BTreeMap<String, String> {
    fn walk(place: &Path, base: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, base, into);
                continue;
            }
            let dump = Command::new("getfattr")
                .args(["-d", "-e", "hex", "--absolute-names"])
                .arg(&path)
                .output();
            let dump = dump.map_or(String::new(), |dump| String::from_utf8_lossy(&dump.stdout).into_owned());
            let attributes: Vec<&str> = dump.lines().filter(|line| line.starts_with("user.")).collect();
            let name = path.strip_prefix(base).unwrap().to_string_lossy().into_owned();
            let content = std::fs::read(&path).unwrap();
            into.insert(
                name,
                format!("{} {}", PathHash(Md5::digest(content).into()), attributes.join(" ")),
            );
        }
    }
    let mut found = BTreeMap::new();
    walk(devices, devices, &mut found);
    found
}

#[test]
fn a_drive_changes_hands() {
    let Some(python) = python() else { return };
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let we_wrote = engine(ours.path());
    for name in NAMES {
        write(&we_wrote, name);
    }
    let they_wrote = engine(theirs.path());
    talk(&python, "write", theirs.path());
    let answer = read(&they_wrote);
    assert_eq!(
        answer["typed"]["times"],
        json!([at(1).internal(), at(3).internal(), at(2).internal()])
    );
    assert_eq!(
        read(&we_wrote),
        answer,
        "we read what we wrote as we read what OpenStack wrote"
    );
    assert_eq!(
        talk(&python, "read", theirs.path()),
        answer,
        "OpenStack reads its own alike"
    );
    assert_eq!(
        talk(&python, "read", ours.path()),
        answer,
        "OpenStack reads what we wrote alike"
    );
    assert_eq!(
        snapshot(ours.path()),
        snapshot(theirs.path()),
        "the drives are the same, byte for byte"
    );
}
