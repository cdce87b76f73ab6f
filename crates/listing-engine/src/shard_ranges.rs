//! Shard ranges: carried from replica to replica so that all know them. Nothing here acts on them, but that
//! what has some lists its objects elsewhere.
//!
//! A range is made at its `timestamp`; its counters age with `meta_timestamp`, its state with
//! `state_timestamp`. Always holds: of two the one made later wins whole; of two made at the same
//! moment each part comes from where it is newer, and the greater state wins on a tie (observed in
//! OpenStack Swift's brokers).

use crate::migrate;
use crate::{Broker, Error, Kind, columns};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use vocabulary::Timestamp;

/// One range of names and the container that lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRange {
    name: String,
    timestamp: Timestamp,
    lower: String,
    upper: String,
    object_count: i64,
    bytes_used: i64,
    meta_timestamp: Timestamp,
    deleted: bool,
    state: i64,
    state_timestamp: Timestamp,
    epoch: Option<Timestamp>,
    reported: bool,
    tombstones: i64,
}

impl ShardRange {
    /// As `merge_shard_ranges` and the answer to `get_shard_ranges` carry it.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "timestamp": self.timestamp.internal(),
            "lower": self.lower,
            "upper": self.upper,
            "object_count": self.object_count,
            "bytes_used": self.bytes_used,
            "meta_timestamp": self.meta_timestamp.internal(),
            "deleted": i32::from(self.deleted),
            "state": self.state,
            "state_timestamp": self.state_timestamp.internal(),
            "epoch": self.epoch.map(Timestamp::internal),
            "reported": i32::from(self.reported),
            "tombstones": self.tombstones,
        })
    }

    /// Reads one; what older peers leave out has its default.
    pub fn from_json(item: &Value) -> Option<Self> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str, default: i64| item.get(key).map_or(Some(default), Value::as_i64);
        let flag = |key: &str| match item.get(key) {
            None => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => Some(other.as_i64()? != 0),
        };
        let timestamp: Timestamp = text("timestamp")?.parse().ok()?;
        let moment = |key: &str| match item.get(key) {
            None | Some(Value::Null) => Some(timestamp),
            Some(other) => other.as_str()?.parse().ok(),
        };
        let epoch = match item.get("epoch") {
            None | Some(Value::Null) => None,
            Some(other) => Some(other.as_str()?.parse().ok()?),
        };
        Some(Self {
            name: text("name")?,
            timestamp,
            lower: text("lower")?,
            upper: text("upper")?,
            object_count: number("object_count", 0)?,
            bytes_used: number("bytes_used", 0)?,
            meta_timestamp: moment("meta_timestamp")?,
            deleted: flag("deleted")?,
            state: number("state", 0)?,
            state_timestamp: moment("state_timestamp")?,
            epoch,
            reported: flag("reported")?,
            tombstones: number("tombstones", -1)?,
        })
    }
}

/// `incoming` merged into `stored`; `None` when nothing of it is newer.
fn merge(stored: &ShardRange, incoming: &ShardRange) -> Option<ShardRange> {
    if incoming.timestamp != stored.timestamp {
        return (incoming.timestamp > stored.timestamp).then(|| incoming.clone());
    }
    let newer_meta = incoming.meta_timestamp > stored.meta_timestamp;
    let newer_state = (incoming.state_timestamp, incoming.state) > (stored.state_timestamp, stored.state);
    let mut merged = stored.clone();
    if newer_meta {
        merged.object_count = incoming.object_count;
        merged.bytes_used = incoming.bytes_used;
        merged.tombstones = incoming.tombstones;
        merged.meta_timestamp = incoming.meta_timestamp;
    }
    if newer_state {
        merged.state = incoming.state;
        merged.state_timestamp = incoming.state_timestamp;
        merged.epoch = incoming.epoch;
    }
    if newer_meta || newer_state {
        merged.reported = incoming.reported;
    } else if incoming.meta_timestamp == stored.meta_timestamp {
        merged.reported |= incoming.reported;
    }
    (merged != *stored).then_some(merged)
}

/// What accounts of shards begin with.
pub const SHARDS: &str = ".shards_";

/// The ranges of other containers.
macro_rules! others {
    () => {
        "FROM shard_range WHERE deleted = 0
         AND name != (SELECT account || '/' || container FROM container_stat)"
    };
}

/// Those that are in use: active (40), shrinking (50) or sharding (60).
macro_rules! others_in_use {
    () => {
        concat!(others!(), " AND state IN (40, 50, 60)")
    };
}

const HAS_SHARDS: &str = concat!("SELECT EXISTS(SELECT 1 ", others!(), ")");
/// A shard knows ranges of others, which are none of its own.
const HAS_SHARDS_IN_USE: &str = concat!(
    "SELECT EXISTS(SELECT 1 ",
    others_in_use!(),
    " AND (SELECT substr(account, 1, length(?1)) FROM container_stat) != ?1)"
);
const SHARD_USAGE: &str = concat!("SELECT SUM(object_count), SUM(bytes_used) ", others_in_use!());

impl Broker {
    /// All shard ranges, deleted ones included.
    pub fn shard_ranges(&self) -> Result<Vec<ShardRange>, Error> {
        self.container_only()?;
        self.with(|database| database.read("read the shard ranges of", read))
    }

    /// Whether containers besides this one list its objects, or are to.
    pub(crate) fn has_shards(&self) -> Result<bool, Error> {
        self.with(|database| {
            database.read("read the shard ranges of", |c| {
                Ok(has_table(c)? && c.prepare_cached(HAS_SHARDS)?.query_row([], |row| row.get(0))?)
            })
        })
    }

    /// Whether it is no shard itself, and others list its objects.
    pub(crate) fn has_shards_in_use(&self) -> Result<bool, Error> {
        let kind = self.location().kind();
        self.with(|database| database.read("read the shard ranges of", |c| are_in_use(kind, c)))
    }

    /// The objects that its shards list, and their bytes, as far as they have said.
    pub fn shard_usage(&self) -> Result<(u64, u64), Error> {
        self.with(|database| {
            database.read("read the shard ranges of", |c| {
                if !has_table(c)? {
                    return Ok((0, 0));
                }
                let sum = |row: &rusqlite::Row<'_>, at| {
                    columns::signed(row, at).map(|sum| sum.unwrap_or_default().max(0).unsigned_abs())
                };
                c.prepare_cached(SHARD_USAGE)?
                    .query_row([], |row| Ok((sum(row, 0)?, sum(row, 1)?)))
            })
        })
    }

    /// Merges shard ranges in.
    pub fn merge_shard_ranges(&self, ranges: &[ShardRange]) -> Result<(), Error> {
        self.container_only()?;
        if ranges.is_empty() {
            return Ok(());
        }
        self.change(|c| write(c, ranges).map(|()| ranges.len()))
    }
}

/// Whether this is a container, no shard itself, that others list the objects of.
pub(crate) fn are_in_use(kind: Kind, connection: &Connection) -> rusqlite::Result<bool> {
    if kind == Kind::Account {
        return Ok(false);
    }
    // Asked of each container that is read, so that it must cost little.
    match connection.prepare_cached(HAS_SHARDS_IN_USE) {
        Ok(mut statement) => statement.query_row([SHARDS], |row| row.get(0)),
        Err(_) if !has_table(connection)? => Ok(false),
        Err(error) => Err(error),
    }
}

/// Databases of older releases have no such table until they need it.
pub(crate) fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'shard_range')";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Vec<ShardRange>> {
    let present = migrate::columns(connection, "shard_range")?;
    if present.is_empty() {
        return Ok(Vec::new());
    }
    let or = |column: &'static str, default: &'static str| match present.iter().any(|found| found == column) {
        true => column,
        false => default,
    };
    let sql = format!(
        "SELECT name, timestamp, lower, upper, object_count, bytes_used, meta_timestamp, deleted, state,
         state_timestamp, epoch, {}, {} FROM shard_range ORDER BY ROWID",
        or("reported", "0"),
        or("tombstones", "-1")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let ranges = statement.query_map([], |row| {
        let text = |i| columns::text(row, i);
        let number = |i| columns::signed(row, i).map(Option::unwrap_or_default);
        let time = |i| columns::timestamp(row, i);
        Ok(ShardRange {
            name: text(0)?,
            timestamp: time(1)?,
            lower: text(2)?,
            upper: text(3)?,
            object_count: number(4)?,
            bytes_used: number(5)?,
            meta_timestamp: time(6)?,
            deleted: number(7)? != 0,
            state: number(8)?,
            state_timestamp: time(9)?,
            epoch: text(10)?.parse().ok(),
            reported: number(11)? != 0,
            tombstones: columns::signed(row, 12)?.unwrap_or(-1),
        })
    })?;
    ranges.collect()
}

pub(crate) fn write(connection: &Connection, ranges: &[ShardRange]) -> rusqlite::Result<()> {
    migrate::shard_range_table(connection)?;
    let stored = read(connection)?;
    for range in ranges {
        let merged = match stored.iter().find(|found| found.name == range.name) {
            Some(found) => merge(found, range),
            None => Some(range.clone()),
        };
        if let Some(merged) = merged {
            replace(connection, &merged)?;
        }
    }
    Ok(())
}

fn replace(connection: &Connection, range: &ShardRange) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM shard_range WHERE name = ?")?
        .execute([&range.name])?;
    connection
        .prepare_cached(
            "INSERT INTO shard_range (name, timestamp, lower, upper, object_count, bytes_used, meta_timestamp,
                 deleted, state, state_timestamp, epoch, reported, tombstones)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            range.name,
            range.timestamp.internal(),
            range.lower,
            range.upper,
            range.object_count,
            range.bytes_used,
            range.meta_timestamp.internal(),
            range.deleted,
            range.state,
            range.state_timestamp.internal(),
            range.epoch.map(Timestamp::internal),
            range.reported,
            range.tombstones,
        ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn t(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn range() -> ShardRange {
        ShardRange {
            name: ".shards_a/c-1".into(),
            timestamp: t(6),
            lower: "a".into(),
            upper: "m".into(),
            object_count: 1,
            bytes_used: 2,
            meta_timestamp: t(6),
            deleted: false,
            state: 20,
            state_timestamp: t(6),
            epoch: None,
            reported: false,
            tombstones: -1,
        }
    }

    /// (incoming, what becomes of `range()`): observed in OpenStack Swift's broker.
    #[test]
    fn one_row_per_decision() {
        let counted = ShardRange {
            object_count: 9,
            meta_timestamp: t(7),
            ..range()
        };
        let sharding = ShardRange {
            state: 40,
            state_timestamp: t(8),
            epoch: Some(t(8)),
            ..range()
        };
        let later = ShardRange {
            timestamp: t(9),
            lower: "b".into(),
            deleted: true,
            ..range()
        };
        let reported = ShardRange {
            reported: true,
            ..range()
        };
        let on = ShardRange { state: 60, ..range() };
        let deleted = ShardRange {
            deleted: true,
            ..range()
        };
        let earlier = ShardRange {
            timestamp: t(5),
            meta_timestamp: t(20),
            object_count: 77,
            ..range()
        };
        let table = [
            (&counted, Some(counted.clone())),
            (&sharding, Some(sharding.clone())),
            (&later, Some(later.clone())),
            (&reported, Some(reported.clone())),
            (&on, Some(on.clone())),
            (&deleted, None),
            (&earlier, None),
        ];
        for (incoming, expected) in table {
            assert_eq!(merge(&range(), incoming), expected, "{incoming:?}");
        }
        assert_eq!(merge(&counted, &range()), None);
        assert_eq!(merge(&sharding, &reported).unwrap().state, 40);
    }

    proptest! {
        #[test]
        fn written_is_read_back(
            count in any::<i64>(),
            deleted in any::<bool>(),
            epoch in proptest::option::of(0u64..1 << 30),
        ) {
            let range = ShardRange { object_count: count, deleted, epoch: epoch.map(t), ..range() };
            prop_assert_eq!(ShardRange::from_json(&range.to_json()), Some(range));
        }

        #[test]
        fn any_json_is_read_or_refused(text in "\\PC{0,20}", number in any::<i64>()) {
            let item = json!({"name": text, "timestamp": text, "lower": number, "upper": null, "epoch": number});
            let _ = ShardRange::from_json(&item);
            let _ = ShardRange::from_json(&json!(text));
        }
    }
}
