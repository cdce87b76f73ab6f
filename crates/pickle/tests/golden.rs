//! Compares with what CPython and OpenStack Swift wrote (`golden/make.py`), byte for byte.

#![allow(clippy::unwrap_used)]

use pickle::{PickleLimits, Value, dumps, dumps_protocol0, loads};

fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn swift_file(name: &str) -> Vec<u8> {
    let found = lines(include_str!("golden/swift.jsonl"))
        .into_iter()
        .find(|line| line["name"].as_str().unwrap().contains(name));
    hex(found.unwrap()["raw"].as_str().unwrap())
}

/// `-0.0 == 0.0`, but their pickles differ: compare what is shown.
fn same(left: &Value, right: &Value) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

#[test]
fn every_protocol_reads_to_the_same_data_and_ours_writes_the_same_bytes() {
    let limits = PickleLimits {
        arrays: true,
        ..PickleLimits::default()
    };
    for line in lines(include_str!("golden/plain.jsonl")) {
        let name = line["name"].as_str().unwrap();
        let golden = |protocol: &str| line.get(protocol).map(|text| hex(text.as_str().unwrap()));
        let second = golden("p2").unwrap();
        // As for Swift's own unpickler, a set is data only where it is an opcode: from protocol 4.
        let sets = name.contains("set");
        let readable = if sets { golden("p4").unwrap() } else { second.clone() };
        let value = loads(&readable, &limits).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            dumps(&value).escape_ascii().to_string(),
            second.escape_ascii().to_string(),
            "{name}"
        );
        for protocol in ["p0", "p1", "p3", "p4", "p5"] {
            let Some(other) = golden(protocol) else { continue };
            if sets && !matches!(protocol, "p4" | "p5") {
                assert!(loads(&other, &limits).is_err());
                continue;
            }
            let read = loads(&other, &limits).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(same(&read, &value), "{name} {protocol}: {read:?} is not {value:?}");
            if protocol == "p0" {
                let ours = dumps_protocol0(&value);
                assert_eq!(
                    ours.escape_ascii().to_string(),
                    other.escape_ascii().to_string(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn what_openstack_servers_left_on_disk_is_written_back_alike() {
    for line in lines(include_str!("golden/swift.jsonl")) {
        let raw = hex(line["raw"].as_str().unwrap());
        let value = loads(&raw, &PickleLimits::default()).unwrap();
        let ours = if raw.starts_with(b"\x80\x02") {
            dumps(&value)
        } else {
            dumps_protocol0(&value)
        };
        assert_eq!(
            ours.escape_ascii().to_string(),
            raw.escape_ascii().to_string(),
            "{}",
            line["name"]
        );
    }
}

#[test]
fn object_metadata_is_a_dict_of_bytes() {
    let pair = |key: &str, value: &str| (Value::bytes(key), Value::bytes(value));
    let metadata = Value::Dict(vec![
        pair("X-Timestamp", "1700000002.00000"),
        pair("X-Object-Meta-Color", "red"),
        pair("name", "/AUTH_test/c/o é€"),
    ]);
    assert_eq!(dumps(&metadata), swift_file(".meta"));
}

#[test]
fn async_pending_is_protocol_0_with_headers() {
    let value = loads(&swift_file("1700000001.00000"), &PickleLimits::default()).unwrap();
    assert_eq!(value.get("op"), Some(&Value::str("DELETE")));
    assert!(matches!(value.get("headers"), Some(Value::Headers(_))));
    let headers = value.get("headers").unwrap();
    assert_eq!(
        headers.get("X-Timestamp").and_then(Value::text),
        Some("1700000001.00000")
    );
    assert!(value.get("db_state").unwrap().is_none());
}

#[test]
fn a_pending_row_is_a_tuple() {
    let row = Value::Tuple(vec![
        "o".into(),
        "1700000006.00000".into(),
        Value::Int(0),
        "application/deleted".into(),
        "noetag".into(),
        Value::Int(1),
        Value::Int(0),
        Value::None,
        Value::None,
    ]);
    assert_eq!(dumps(&row), swift_file("containers pending 2"));
}

#[test]
fn suffix_hashes_are_found_by_name() {
    let hashes = loads(&swift_file("hashes.pkl"), &PickleLimits::default()).unwrap();
    assert_eq!(hashes.get("valid"), Some(&Value::Bool(true)));
    assert_eq!(hashes.get("f1e").and_then(Value::text).map(str::len), Some(32));
    assert!(hashes.get("updated").and_then(Value::float).is_some());
}
