//! Rows and summaries as JSON, as they travel between replicas of a database.
//!
//! ```text
//! ["sync", max_row, hash, id, created_at, put_timestamp, delete_timestamp, metadata
//!          [, status_changed_at, count, storage_policy_index]]             (containers)
//! ["merge_items", [{"ROWID": 3, "name": "o", …}, …], id, receiver's id]
//! ["merge_syncs", [{"remote_id": "…", "sync_point": 3}, …], receiver's id]
//! ```
//! The receiver's id, as its answer to `sync` had it, is Martlet's own: OpenStack's servers pass over it.
//! Both sides of the conversation are here, so that they cannot disagree. Observed in the requests and
//! answers of OpenStack Swift 2.38. Never fails but by `None`: what a peer sends is not trusted.

use crate::composite::Times;
use crate::row::{ContainerRow, ObjectRow, Row, spell};
use crate::sync_points::SyncPoint;
use crate::{Info, Kind};
use serde_json::{Map, Value, json};
use vocabulary::timestamp::decode_series;
use vocabulary::{PolicyIndex, Timestamp};

/// A row and its number in the database that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// SQLite's ROWID, which grows with every change.
    pub id: i64,
    /// The row.
    pub row: Row,
}

impl Numbered {
    /// As `merge_items` carries it.
    pub fn to_json(&self) -> Value {
        match &self.row {
            Row::Object(o) => {
                let mut item = Map::from_iter([("ROWID".to_owned(), Value::from(self.id))]);
                item.extend(object_fields(o));
                item.into()
            }
            Row::Container(c) => json!({
                "ROWID": self.id,
                "name": c.name,
                "put_timestamp": spell(c.put_timestamp),
                "delete_timestamp": spell(c.delete_timestamp),
                "object_count": c.object_count,
                "bytes_used": c.bytes_used,
                "deleted": i32::from(c.is_deleted()),
                "storage_policy_index": c.policy.0,
            }),
        }
    }

    /// Reads what `merge_items` carries to a database of `kind`.
    pub fn from_json(kind: Kind, item: &Value) -> Option<Self> {
        let row = match kind {
            Kind::Container => Row::Object(object_row(item)?),
            Kind::Account => Row::Container(container_row(item)?),
        };
        let id = item.get("ROWID")?.as_i64()?;
        Some(Self { id, row })
    }
}

/// A value's JSON in ASCII only: OpenStack's replicators decode answers as that.
pub fn ascii(value: &Value) -> String {
    let text = value.to_string();
    match text.is_ascii() {
        true => text,
        false => pythonic::json_ascii(&text),
    }
}

/// An object row as UPDATE carries it.
pub fn object_json(row: &ObjectRow) -> Value {
    Value::Object(object_fields(row).into_iter().collect())
}

fn object_fields(row: &ObjectRow) -> [(String, Value); 7] {
    let fields = [
        ("name", json!(row.name)),
        ("created_at", json!(row.times().encode())),
        ("size", json!(row.size)),
        ("content_type", json!(row.content_type)),
        ("etag", json!(row.etag)),
        ("deleted", json!(i32::from(row.deleted))),
        ("storage_policy_index", json!(row.policy.0)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value))
}

/// An object row in the JSON of UPDATE and `merge_items`.
pub fn object_row(item: &Value) -> Option<ObjectRow> {
    let [data, content_type, meta] = decode_series(item.get("created_at")?.as_str()?).ok()?;
    let explicit = |key: &str| {
        let text = item.get(key).and_then(Value::as_str);
        text.map(str::parse::<Timestamp>).transpose().ok()
    };
    Some(ObjectRow {
        name: text(item, "name")?,
        timestamp: data,
        size: number(item, "size"),
        content_type: text(item, "content_type").unwrap_or_default(),
        etag: text(item, "etag").unwrap_or_default(),
        deleted: number(item, "deleted") != 0,
        policy: policy(item)?,
        content_type_timestamp: explicit("ctype_timestamp")?.or((content_type != data).then_some(content_type)),
        meta_timestamp: explicit("meta_timestamp")?.or((meta != content_type).then_some(meta)),
    })
}

fn container_row(item: &Value) -> Option<ContainerRow> {
    Some(ContainerRow {
        name: text(item, "name")?,
        put_timestamp: time(item.get("put_timestamp")?)?,
        delete_timestamp: time(item.get("delete_timestamp")?)?,
        object_count: number(item, "object_count"),
        bytes_used: number(item, "bytes_used"),
        policy: policy(item)?,
    })
}

fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key)?.as_str().map(str::to_owned)
}

/// A number as `columns::number` reads it: OpenStack's peers say what stands in theirs, and counters below zero do.
fn number(item: &Value, key: &str) -> u64 {
    match item.get(key) {
        Some(Value::Bool(flag)) => u64::from(*flag),
        Some(Value::Number(number)) => number
            .as_u64()
            .unwrap_or_else(|| number.as_f64().map_or(0, |number| number as u64)),
        _ => 0,
    }
}

fn policy(item: &Value) -> Option<PolicyIndex> {
    match item.get("storage_policy_index") {
        None | Some(Value::Null) => Some(PolicyIndex::default()),
        Some(index) => u32::try_from(index.as_u64()?).ok().map(PolicyIndex),
    }
}

/// A timestamp; databases of older releases hold numbers where new ones hold texts.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        Value::Null => Some(Timestamp::ZERO),
        _ => None,
    }
}

/// What one replica tells another of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its identity.
    pub id: String,
    /// XOR over all rows.
    pub hash: String,
    /// Its greatest ROWID ever; -1 before the first row.
    pub max_row: i64,
    /// When the replica was made.
    pub created_at: Timestamp,
    /// The last creation.
    pub put_timestamp: Timestamp,
    /// The last deletion.
    pub delete_timestamp: Timestamp,
    /// All metadata, as stored.
    pub metadata: String,
    /// What containers say besides.
    pub claim: Option<PolicyClaim>,
    /// Up to which of the asker's rows it has seen; -1 for none. Only in answers.
    pub point: i64,
    /// The greatest ROWID of its shard ranges; `None` from those that know none. Only in answers.
    pub shard_max_row: Option<i64>,
}

/// Why a container is under its policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyClaim {
    /// The policy.
    pub policy: PolicyIndex,
    /// When it last came into or out of being.
    pub status_changed_at: Timestamp,
    /// Objects in it.
    pub count: u64,
}

impl Summary {
    /// The arguments of `sync`.
    pub fn to_sync(&self) -> Vec<Value> {
        let mut args = vec![
            json!("sync"),
            json!(self.max_row),
            json!(self.hash),
            json!(self.id),
            json!(self.created_at.internal()),
            json!(spell(self.put_timestamp)),
            json!(spell(self.delete_timestamp)),
            json!(self.metadata),
        ];
        if let Some(claim) = &self.claim {
            args.push(json!(spell(claim.status_changed_at)));
            args.push(json!(claim.count));
            args.push(json!(claim.policy.0));
        }
        args
    }

    /// Reads the arguments of `sync`, the word itself left out.
    pub fn from_sync(args: &[Value]) -> Option<Self> {
        let [max_row, hash, id, created, put, delete, metadata, more @ ..] = args else {
            return None;
        };
        let claim = match more {
            [changed, count, policy, ..] => Some(PolicyClaim {
                policy: PolicyIndex(u32::try_from(policy.as_u64()?).ok()?),
                status_changed_at: time(changed)?,
                count: count.as_u64()?,
            }),
            _ => None,
        };
        Some(Self {
            id: id.as_str()?.to_owned(),
            hash: hash.as_str()?.to_owned(),
            max_row: max_row.as_i64()?,
            created_at: time(created)?,
            put_timestamp: time(put)?,
            delete_timestamp: time(delete)?,
            metadata: metadata.as_str().unwrap_or_default().to_owned(),
            claim,
            point: -1,
            shard_max_row: None,
        })
    }

    /// The answer to `sync`.
    pub fn to_answer(&self, info: &Info, state: &str) -> Value {
        let mut answer = Map::new();
        let mut set = |key: &str, value: Value| drop(answer.insert(key.to_owned(), value));
        set("account", json!(info.account));
        if let Some(container) = &info.container {
            set("container", json!(container));
        }
        set("created_at", json!(self.created_at.internal()));
        set("put_timestamp", json!(spell(self.put_timestamp)));
        set("delete_timestamp", json!(spell(self.delete_timestamp)));
        set("status_changed_at", json!(spell(info.status_changed_at)));
        if info.container.is_none() {
            set("object_count", json!(info.object_count));
        }
        set("bytes_used", json!(info.bytes_used));
        set("hash", json!(self.hash));
        set("id", json!(self.id));
        if info.container.is_some() {
            set("status", json!(info.status));
            set("reported_put_timestamp", json!(spell(info.reported_put_timestamp)));
            set(
                "reported_delete_timestamp",
                json!(spell(info.reported_delete_timestamp)),
            );
            set("reported_object_count", json!(info.reported_object_count));
            set("reported_bytes_used", json!(info.reported_bytes_used));
            set("x_container_sync_point1", json!(info.sync_point1));
            set("x_container_sync_point2", json!(info.sync_point2));
            set("storage_policy_index", json!(info.policy.0));
            set("db_state", json!(state));
        }
        let count = match info.container {
            Some(_) => info.object_count,
            None => info.container_count,
        };
        set("count", json!(count));
        set("metadata", json!(self.metadata));
        set("max_row", json!(self.max_row));
        if let Some(row) = self.shard_max_row {
            set("shard_max_row", json!(row));
        }
        set("point", json!(self.point));
        Value::Object(answer)
    }

    /// Reads the answer to `sync`.
    pub fn from_answer(answer: &Value) -> Option<Self> {
        let moment = |key: &str| answer.get(key).map_or(Some(Timestamp::ZERO), time);
        let claim = match answer.get("storage_policy_index").and_then(Value::as_u64) {
            Some(policy) => Some(PolicyClaim {
                policy: PolicyIndex(u32::try_from(policy).ok()?),
                status_changed_at: moment("status_changed_at")?,
                count: number(answer, "count"),
            }),
            None => None,
        };
        Some(Self {
            id: text(answer, "id")?,
            hash: text(answer, "hash")?,
            max_row: answer.get("max_row")?.as_i64()?,
            created_at: moment("created_at")?,
            put_timestamp: moment("put_timestamp")?,
            delete_timestamp: moment("delete_timestamp")?,
            metadata: text(answer, "metadata").unwrap_or_default(),
            claim,
            point: answer.get("point")?.as_i64()?,
            shard_max_row: answer.get("shard_max_row").and_then(Value::as_i64),
        })
    }
}

impl SyncPoint {
    /// As `merge_syncs` carries it.
    pub fn to_json(&self) -> Value {
        json!({"remote_id": self.remote_id, "sync_point": self.point})
    }

    /// Reads what `merge_syncs` carries.
    pub fn from_json(item: &Value) -> Option<Self> {
        Some(Self {
            remote_id: text(item, "remote_id")?,
            point: item.get("sync_point")?.as_i64()?,
        })
    }
}

/// A row as it stands in the table.
pub(crate) fn stored_times(times: Times) -> (Timestamp, Option<Timestamp>, Option<Timestamp>) {
    let Times {
        data,
        content_type,
        meta,
    } = times;
    (
        data,
        (content_type != data).then_some(content_type),
        (meta != content_type).then_some(meta),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_ascii_travel_in_ascii() {
        let value = json!(["\u{fc}\u{1f426}\n\"", 1]);
        let text = ascii(&value);
        assert_eq!(text, r#"["\u00fc\ud83d\udc26\n\"",1]"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
    use proptest::prelude::*;

    #[test]
    fn update_rows_are_those_of_openstack() {
        let mut item = json!({
            "name": "o", "created_at": "1700000002.00000+1+2", "size": 1, "content_type": "t",
            "etag": "e", "deleted": 0, "storage_policy_index": 1,
        });
        let row = object_row(&item).unwrap();
        assert_eq!(row.policy, PolicyIndex(1));
        assert_eq!(
            row.meta_timestamp.map(Timestamp::normal).as_deref(),
            Some("1700000002.00003")
        );
        item["meta_timestamp"] = json!("1700000009");
        let explicit = object_row(&item).unwrap().meta_timestamp;
        assert_eq!(explicit.map(Timestamp::normal).as_deref(), Some("1700000009.00000"));
        for (key, odd) in [
            ("size", json!(-1)),
            ("size", json!("many")),
            ("size", json!(null)),
            ("content_type", json!(null)),
            ("etag", json!(5)),
            ("deleted", json!(false)),
        ] {
            let mut item = item.clone();
            item[key] = odd;
            assert!(object_row(&item).is_some(), "{key}");
        }
        for (key, wrong) in [
            ("name", json!(1)),
            ("created_at", json!("x")),
            ("storage_policy_index", json!(-1)),
        ] {
            let mut item = item.clone();
            item[key] = wrong;
            assert_eq!(object_row(&item), None, "{key}");
        }
    }

    /// Items and answers as OpenStack Swift's servers and replicators sent them.
    #[test]
    fn what_openstack_sends_is_read_and_sent_back_alike() {
        let items = [
            (
                Kind::Container,
                r#"{"ROWID":3,"name":"q","created_at":"0000000007.00000+186a0+186a0","size":3,"content_type":"t","etag":"e","deleted":0,"storage_policy_index":0}"#,
            ),
            (
                Kind::Account,
                r#"{"ROWID":1,"name":"c","put_timestamp":"0000000006.00000","delete_timestamp":"0","object_count":3,"bytes_used":4,"deleted":0,"storage_policy_index":0}"#,
            ),
        ];
        for (kind, item) in items {
            let read = Numbered::from_json(kind, &serde_json::from_str(item).unwrap()).unwrap();
            assert_eq!(read.to_json().to_string(), item);
        }
        let answer = json!({
            "account": "a", "created_at": "1795198348.69257", "put_timestamp": "4000000005.00000",
            "delete_timestamp": "0", "status_changed_at": "4000000005.00000", "object_count": 3, "bytes_used": 5,
            "hash": "46d353fe1d25ba007912af4edd6861de", "id": "73a34437-sdb1", "count": 1, "metadata": "",
            "max_row": 1, "point": -1,
        });
        let read = Summary::from_answer(&answer).unwrap();
        assert_eq!((read.max_row, read.point, read.claim), (1, -1, None));
        assert_eq!(Summary::from_sync(&read.to_sync()[1..]), Some(read));
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(
            text in "\\PC{0,40}",
            number in any::<i64>(),
            key in "(name|created_at|put_timestamp|size|ROWID)",
        ) {
            let (number_json, text_json) = (json!(number), json!(text));
            let args = [
                number_json.clone(), text_json.clone(), json!(null), json!([text]), json!({key.clone(): number}),
                text_json.clone(), number_json, text_json,
            ];
            let _ = Summary::from_sync(&args);
            let item = json!({key: text, "ROWID": number, "created_at": text, "name": text});
            let _ = (Numbered::from_json(Kind::Container, &item), Numbered::from_json(Kind::Account, &item));
            let _ = (Summary::from_answer(&item), SyncPoint::from_json(&item));
        }
    }
}
