//! The pending file's records: `:` and the base64 of a pickled tuple, one after the other.
//!
//! ```text
//! :gAIoWAIAAABvMXEA…Lg==:gAIoWAIAAABvMnEA…Lg==
//!  └ one row            └ the next
//! container: (name, created_at, size, content_type, etag, deleted[, policy[, ctype_ts[, meta_ts]]])
//! account:   (name, put_ts, delete_ts, object_count, bytes_used, deleted[, policy])
//! ```
//! Shorter tuples are those of older releases. A crash may leave half a record at the end, or zeros where one was to be
//! appended, and a record begins with what ends the one before: zeros end it, too. What is no record is skipped with a
//! warning and the others are kept.
//! Never fails, never runs what a pickle asks to run. Golden records: `tests` below.

use crate::row::{ContainerRow, ObjectRow, Row, spell};
use crate::{Kind, composite::Times};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pickle::Value;
use vocabulary::{PolicyIndex, Timestamp};

/// The records of `rows`, as OpenStack writes them.
pub fn encode<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<u8> {
    let mut text = String::new();
    for row in rows {
        text.push(':');
        STANDARD.encode_string(pickle::dumps(&Value::Tuple(tuple(row))), &mut text);
    }
    text.into_bytes()
}

fn tuple(row: &Row) -> Vec<Value> {
    let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let time = |t: &Option<Timestamp>| t.map_or(Value::None, |t| Value::Str(t.internal()));
    match row {
        Row::Object(o) => vec![
            Value::str(&o.name),
            Value::Str(o.timestamp.internal()),
            number(o.size),
            Value::str(&o.content_type),
            Value::str(&o.etag),
            Value::Int(i64::from(o.deleted)),
            number(u64::from(o.policy.0)),
            time(&o.content_type_timestamp),
            time(&o.meta_timestamp),
        ],
        Row::Container(c) => vec![
            Value::str(&c.name),
            Value::Str(spell(c.put_timestamp)),
            Value::Str(spell(c.delete_timestamp)),
            number(c.object_count),
            number(c.bytes_used),
            Value::Int(i64::from(c.is_deleted())),
            number(u64::from(c.policy.0)),
        ],
    }
}

/// What a pending file holds.
#[derive(Debug, Default)]
pub struct DecodedRecords {
    /// The rows, oldest first.
    pub rows: Vec<Row>,
    /// One reason per record that had to be skipped.
    pub rubbish: Vec<PendingRecordError>,
}

/// Why a record of a pending file is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PendingRecordError {
    /// Not base64.
    #[error("not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// No pickle, or one that asks for more than data.
    #[error("{0}")]
    Pickle(#[from] pickle::PickleError),
    /// Pickled data that are no tuple.
    #[error("not a tuple")]
    NotATuple,
    /// A tuple that is no row.
    #[error("not a row of a {0} database")]
    NotARow(&'static str),
}

/// Reads a pending file of a database of `kind`.
pub fn decode(kind: Kind, bytes: &[u8]) -> DecodedRecords {
    let mut decoded = DecodedRecords::default();
    for record in bytes.split(|b| matches!(b, b':' | 0)).filter(|r| !r.is_empty()) {
        match decode_record(kind, record) {
            Ok(row) => decoded.rows.push(row),
            Err(reason) => decoded.rubbish.push(reason),
        }
    }
    decoded
}

fn decode_record(kind: Kind, record: &[u8]) -> Result<Row, PendingRecordError> {
    let pickled = STANDARD.decode(record)?;
    let value = pickle::loads(&pickled, &pickle::PickleLimits::default())?;
    let fields = value.items().ok_or(PendingRecordError::NotATuple)?;
    match kind {
        Kind::Container => object_row(fields).map(Row::Object),
        Kind::Account => container_row(fields).map(Row::Container),
    }
    .ok_or(PendingRecordError::NotARow(kind.word()))
}

fn object_row(fields: &[Value]) -> Option<ObjectRow> {
    let created = timestamps(fields.get(1)?)?;
    let explicit = |i: usize, from_series: Timestamp, before: Timestamp| match fields.get(i) {
        Some(value) if !value.is_none() => Some(Some(value.text()?.parse().ok()?)),
        _ => Some((from_series != before).then_some(from_series)),
    };
    Some(ObjectRow {
        name: text(fields.first()?)?,
        timestamp: created.data,
        size: number(fields.get(2)?)?,
        content_type: text(fields.get(3)?)?,
        etag: text(fields.get(4)?)?,
        deleted: number(fields.get(5)?)? != 0,
        policy: policy(fields.get(6))?,
        content_type_timestamp: explicit(7, created.content_type, created.data)?,
        meta_timestamp: explicit(8, created.meta, created.content_type)?,
    })
}

fn container_row(fields: &[Value]) -> Option<ContainerRow> {
    Some(ContainerRow {
        name: text(fields.first()?)?,
        put_timestamp: timestamps(fields.get(1)?)?.data,
        delete_timestamp: timestamps(fields.get(2)?)?.data,
        object_count: number(fields.get(3)?)?,
        bytes_used: number(fields.get(4)?)?,
        policy: policy(fields.get(6))?,
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::None => Some(String::new()),
        other => other.text().map(str::to_owned),
    }
}

/// A count, nothing where it is less (OpenStack's containers can come to that); or a text that spells one (older
/// services sent header values as they came).
fn number(value: &Value) -> Option<u64> {
    integer(value).map(|number| u64::try_from(number.max(0)).unwrap_or(u64::MAX))
}

fn policy(value: Option<&Value>) -> Option<PolicyIndex> {
    let index = value.map_or(Some(0), integer)?;
    u32::try_from(index).ok().map(PolicyIndex)
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::None => Some(0),
        Value::Int(_) | Value::Bool(_) => value.int().map(i128::from),
        other => other.text()?.trim().parse().ok(),
    }
}

fn timestamps(value: &Value) -> Option<Times> {
    let spelled = match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:.5}"),
        other => other.text()?.to_owned(),
    };
    vocabulary::timestamp::decode_series(&spelled).ok()?;
    Some(Times::decode(&spelled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records that OpenStack Swift's brokers appended, and the calls that made them.
    const OBJECTS: &[u8] = b":gAIoWAIAAABvMXEAWBAAAAAxNzAwMDAwMDAxLjAwMDAwcQFLA1gKAAAAdGV4dC9wbGFpbnECWAUAAABldGFnMXEDSwBLAE5OdHEELg==:gAIoWAMAAADDtjJxAFgQAAAAMTcwMDAwMDAwMS4wMDAwMHEBSwNYCgAAAHRleHQvcGxhaW5xAlgFAAAAZXRhZzFxA0sASwFYEAAAADE3MDAwMDAwMDAuNTAwMDBxBFgQAAAAMTcwMDAwMDAwMi4wMDAwMHEFdHEGLg==:gAIoWAIAAABvM3EAWBAAAAAxNzAwMDAwMDAzLjAwMDAwcQFLAFgTAAAAYXBwbGljYXRpb24vZGVsZXRlZHECWAYAAABub2V0YWdxA0sBSwFOTnRxBC4=";
    const CONTAINERS: &[u8] = b":gAIoWAIAAABjMXEAWBAAAAAxNzAwMDAwMDAxLjAwMDAwcQFYAQAAADBxAksDSwRLAEsBdHEDLg==";

    fn t(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn object(name: &str, timestamp: &str) -> ObjectRow {
        ObjectRow {
            name: name.into(),
            timestamp: t(timestamp),
            size: 3,
            content_type: "text/plain".into(),
            etag: "etag1".into(),
            deleted: false,
            policy: PolicyIndex(0),
            content_type_timestamp: None,
            meta_timestamp: None,
        }
    }

    #[test]
    fn bytes_are_openstacks() {
        let posted = ObjectRow {
            policy: PolicyIndex(1),
            content_type_timestamp: Some(t("1700000000.5")),
            meta_timestamp: Some(t("1700000002")),
            ..object("ö2", "1700000001")
        };
        let objects = [
            Row::Object(object("o1", "1700000001")),
            Row::Object(posted),
            Row::Object(ObjectRow::deleted("o3", t("1700000003"), PolicyIndex(1))),
        ];
        assert_eq!(encode(&objects), OBJECTS);
        assert_eq!(decode(Kind::Container, OBJECTS).rows, objects);
        let containers = [Row::Container(ContainerRow {
            name: "c1".into(),
            put_timestamp: t("1700000001"),
            delete_timestamp: Timestamp::ZERO,
            object_count: 3,
            bytes_used: 4,
            policy: PolicyIndex(1),
        })];
        assert_eq!(encode(&containers), CONTAINERS);
        assert_eq!(decode(Kind::Account, CONTAINERS).rows, containers);
    }

    #[test]
    fn rubbish_is_skipped_and_the_rest_kept() {
        let code = STANDARD.encode(b"\x80\x02cposix\nsystem\nq\x00.");
        let list = STANDARD.encode(pickle::dumps(&Value::Int(3)));
        let short = STANDARD.encode(pickle::dumps(&Value::Tuple(vec![Value::str("name only")])));
        let half = &OBJECTS[..60];
        let mut file = format!(":!!!!:{code}:{list}:{short}::").into_bytes();
        file.extend_from_slice(half);
        file.extend_from_slice(OBJECTS);
        let decoded = decode(Kind::Container, &file);
        assert_eq!(decoded.rows.len(), 3);
        assert_eq!(decoded.rubbish.len(), 5, "{:?}", decoded.rubbish);
        assert!(
            decoded.rubbish[1].to_string().contains("posix.system"),
            "{:?}",
            decoded.rubbish
        );
    }

    #[test]
    fn zeros_that_a_crash_left_spoil_no_record_before_them() {
        let mut file = OBJECTS.to_vec();
        file.extend_from_slice(&[0; 100]);
        file.extend_from_slice(&OBJECTS[100..]);
        let decoded = decode(Kind::Container, &file);
        assert_eq!(
            (decoded.rows.len(), decoded.rubbish.len()),
            (5, 1),
            "{:?}",
            decoded.rubbish
        );
    }

    #[test]
    fn older_and_composite_records_are_read() {
        let record = |fields: &[Value]| {
            let pickled = pickle::dumps(&Value::Tuple(fields.to_vec()));
            let decoded = decode(Kind::Container, format!(":{}", STANDARD.encode(pickled)).as_bytes());
            match decoded.rows.into_iter().next() {
                Some(Row::Object(row)) => row,
                other => panic!("{other:?} {:?}", decoded.rubbish),
            }
        };
        let base = [
            Value::bytes(b"o"),
            Value::str("1700000002.00000+1+2"),
            Value::str("12"),
            Value::None,
            Value::str("e"),
            Value::Int(0),
        ];
        let row = record(&base);
        assert_eq!((row.size, row.policy), (12, PolicyIndex(0)));
        for (spelled, size) in [(Value::Int(-1), 0), (Value::str("-7"), 0), (Value::Int(5), 5)] {
            let mut fields = base.to_vec();
            fields[2] = spelled;
            assert_eq!(record(&fields).size, size);
        }
        assert_eq!(row.meta_timestamp, Some(t("1700000002.00003")));
    }

    proptest! {
        #[test]
        fn any_file_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[:a-zA-Z0-9+/=]*") {
            decode(Kind::Container, &bytes);
            decode(Kind::Account, text.as_bytes());
        }

        #[test]
        fn written_is_read_back(name in "\\PC{1,20}", ticks in 0u64..200_000_000_000_000, size in 0u64..1 << 50) {
            let row = Row::Object(ObjectRow {
                size,
                timestamp: Timestamp::from_ticks(ticks).unwrap(),
                ..object(&name, "1")
            });
            prop_assert_eq!(decode(Kind::Container, &encode([&row])).rows, vec![row]);
        }
    }
}
