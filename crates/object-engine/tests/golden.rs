//! The bytes OpenStack Swift keeps, and ours. Made by `golden/make.py`.

#![allow(clippy::unwrap_used)] // a test says so by failing

use object_engine::files::xattrs::{decode, encode};
use object_engine::{ListingUpdate, ObjectMetadata};
use std::path::Path;
use vocabulary::{PathHash, PolicyIndex};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

#[derive(serde::Deserialize)]
struct Kept {
    items: Vec<(String, String)>,
    pickle: String,
    #[serde(default)]
    read_only: bool,
}

#[test]
fn metadata_are_kept_as_openstack_keeps_them() {
    let cases: Vec<Kept> = serde_json::from_str(include_str!("golden/xattrs.json")).unwrap();
    for case in cases {
        let metadata: ObjectMetadata = case
            .items
            .iter()
            .map(|(name, value)| (name.as_str(), bytes(value)))
            .collect();
        let pickled = bytes(&case.pickle);
        assert_eq!(decode(&pickled).unwrap(), metadata);
        if !case.read_only {
            assert_eq!(
                String::from_utf8_lossy(&encode(&metadata)),
                String::from_utf8_lossy(&pickled)
            );
            assert_eq!(encode(&metadata), pickled);
        }
    }
}

#[derive(serde::Deserialize)]
struct Record {
    policy: u32,
    timestamp: String,
    path: String,
    hash: String,
    update: Update,
    headers: Vec<(String, String)>,
    bytes: String,
}

#[derive(serde::Deserialize)]
struct Update {
    op: String,
    account: String,
    container: String,
    obj: String,
    db_state: Option<String>,
    container_path: Option<String>,
}

#[test]
fn listing_updates_are_kept_as_openstack_keeps_them() {
    let cases: Vec<Record> = serde_json::from_str(include_str!("golden/async.json")).unwrap();
    for case in cases {
        let update = ListingUpdate {
            policy: PolicyIndex(case.policy),
            hash: PathHash::from_hex(&case.hash).unwrap(),
            timestamp: case.timestamp.parse().unwrap(),
            op: case.update.op,
            account: case.update.account,
            container: case.update.container,
            object: case.update.obj,
            headers: case
                .headers
                .into_iter()
                .map(|(name, value)| (name, value.into_bytes()))
                .collect(),
            db_state: case.update.db_state,
            container_path: case.update.container_path,
        };
        let (directory, name) = update.place(Path::new("sda"));
        assert_eq!(directory.join(name), Path::new(&case.path));
        assert_eq!(
            update.encode().escape_ascii().to_string(),
            bytes(&case.bytes).escape_ascii().to_string()
        );
    }
}
