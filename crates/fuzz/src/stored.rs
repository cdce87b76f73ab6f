//! What stands in files on devices: pickles, metadata, records of pending updates.

use crate::input::text;
use listing_engine::{Kind, pending};
use object_engine::PendingUpdate;
use object_engine::files::xattrs;
use pickle::{Flat, PickleLimits, Value, dumps, dumps_protocol0, loads, loads_bytes, loads_flat};
use vocabulary::{PathHash, PolicyIndex, Timestamp};

/// Pickles: what is read is written and read alike, in both protocols, and all readers agree.
pub(crate) fn pickle(bytes: &[u8]) {
    let limits = PickleLimits {
        arrays: true,
        max_items: 1 << 16,
        ..PickleLimits::default()
    };
    let value = loads(bytes, &limits);
    // Sets are read, and written for Python, but the form they are written in is none that Swift lets pass.
    if let Some(value) = value.as_ref().ok().filter(|value| !has_set(value)) {
        let written = dumps(value);
        let again = loads(
            &written,
            &PickleLimits {
                max_items: 1 << 20,
                ..limits
            },
        );
        // Bytes and not values: a number that is none equals nothing.
        assert_eq!(again.as_ref().map(dumps).as_ref(), Ok(&written), "{value:?}");
        let plain = dumps_protocol0(value);
        let again = loads(
            &plain,
            &PickleLimits {
                max_items: 1 << 20,
                ..limits
            },
        );
        assert_eq!(again.as_ref().map(dumps_protocol0).as_ref(), Ok(&plain), "{value:?}");
    }
    if let Some(entries) = loads_flat(bytes) {
        let entries = entries.into_iter().map(|(key, value)| {
            let value = match value {
                Flat::Text(text) => Value::str(text),
                Flat::None => Value::None,
                Flat::Bool(flag) => Value::Bool(flag),
                Flat::Number(number) => Value::Float(number),
            };
            (Value::str(key), value)
        });
        agree(entries.collect(), &value);
    }
    if let Some(entries) = loads_bytes(bytes) {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Value::bytes(key), Value::bytes(value)));
        agree(entries.collect(), &value);
    }
}

fn has_set(value: &Value) -> bool {
    match value {
        Value::Set(_) => true,
        Value::List(items) | Value::Tuple(items) => items.iter().any(has_set),
        Value::Dict(entries) | Value::Headers(entries) => {
            entries.iter().any(|(key, item)| has_set(key) || has_set(item))
        }
        _ => false,
    }
}

/// The entries that a quick reader found are those of the thorough one; of a key that comes twice the last counts.
fn agree(quick: Vec<(Value, Value)>, thorough: &Result<Value, pickle::PickleError>) {
    let Ok(Value::Dict(thorough)) = thorough else {
        panic!("only the quick reader reads it: {thorough:?}");
    };
    let mut last: Vec<(Value, Value)> = Vec::new();
    for (key, value) in quick {
        match last.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => last.push((key, value)),
        }
    }
    assert_eq!(dumps(&Value::Dict(last)), dumps(&Value::Dict(thorough.clone())));
}

/// Metadata in extended attributes: what is read is written and read alike.
pub(crate) fn metadata(bytes: &[u8]) {
    let Ok(metadata) = xattrs::decode(bytes) else { return };
    // No header has an empty name: as the first, it would hide the mark by which what Python 3 writes is known.
    if metadata.iter().any(|(name, _)| name.is_empty()) {
        return;
    }
    let again = xattrs::decode(&xattrs::encode(&metadata));
    assert_eq!(again.as_ref(), Ok(&metadata));
}

/// Records of listing rows that no server has taken yet.
pub(crate) fn async_pending(bytes: &[u8]) {
    let (policy, hash) = (PolicyIndex(0), PathHash([7; 16]));
    let time = Timestamp::from_seconds(1_700_000_000);
    let Ok(update) = PendingUpdate::decode(policy, hash, time, bytes) else {
        return;
    };
    let again = PendingUpdate::decode(policy, hash, time, &update.encode());
    assert_eq!(again.as_ref(), Ok(&update));
}

/// Rows that wait beside a database: what is read is written and read alike, and rubbish never hides a row behind it.
pub(crate) fn pending_file(bytes: &[u8]) {
    for kind in [Kind::Container, Kind::Account] {
        let decoded = pending::decode(kind, bytes);
        let again = pending::decode(kind, &pending::encode(&decoded.rows));
        assert_eq!(again.rows, decoded.rows);
        assert!(again.rubbish.is_empty(), "{:?}", again.rubbish);
        let behind = [bytes, b":", &pending::encode(decoded.rows.first())].concat();
        let expected = decoded.rows.len() + decoded.rows.len().min(1);
        assert_eq!(pending::decode(kind, &behind).rows.len(), expected, "{}", text(bytes));
    }
}
