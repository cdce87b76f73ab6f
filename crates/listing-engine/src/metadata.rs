//! Metadata of accounts and containers: one JSON text, `{"Name": ["value", "timestamp"]}`.
//!
//! An item with an empty value is a removal marker; it stays until replicas have seen it.
//! Always holds: of two items of one name the newer wins, the stored one on a tie. Names are kept
//! as given (OpenStack's servers write them as `X-Container-Meta-Name`). Limits on names, sizes
//! and counts are the server's.

use crate::error::{Error, MetadataSyntaxError, WorkError};
use crate::{Broker, Kind, Location};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::Value;
use std::collections::HashMap;
use vocabulary::Timestamp;

/// Items with a value that are taken from a peer, and the bytes of their names and values. Twice as many fit into the
/// head of an answer that gateways still read (`peer`, `connect.rs`); clients set far fewer.
const MOST_FROM_A_PEER: (usize, usize) = (500, 128 * 1024);
/// The same bytes with removal markers.
const MOST_WITH_MARKERS: usize = 4 * 1024 * 1024;

/// A value and when it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataItem {
    /// Empty for a removal marker.
    pub value: String,
    /// When it was set or removed.
    pub timestamp: Timestamp,
}

impl MetadataItem {
    fn is_marker_before(&self, limit: Timestamp) -> bool {
        self.value.is_empty() && self.timestamp < limit
    }
}

/// Items by name, in the order in which they were first set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    items: Vec<(String, MetadataItem)>,
}

impl Metadata {
    /// All items, removal markers included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MetadataItem)> {
        self.items.iter().map(|(name, item)| (name.as_str(), item))
    }

    /// The item of this name, in this case of letters.
    pub fn get(&self, name: &str) -> Option<&MetadataItem> {
        self.items.iter().find(|(found, _)| found == name).map(|(_, item)| item)
    }

    /// Whether there is nothing, not even markers.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes an item if it is newer than what is there; tells whether it was.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>, timestamp: Timestamp) -> bool {
        let (name, value) = (name.into(), value.into());
        let item = MetadataItem { value, timestamp };
        match self.items.iter_mut().find(|(found, _)| *found == name) {
            Some((_, stored)) if stored.timestamp >= timestamp => false,
            Some((_, stored)) => {
                *stored = item;
                true
            }
            None => {
                self.items.push((name, item));
                true
            }
        }
    }

    /// Both, the newer item of each name. A peer may say that there are very many.
    pub(crate) fn merged_with(&self, updates: &Metadata) -> Self {
        let mut items = self.items.clone();
        let known = self.iter().enumerate().map(|(at, (name, _))| (name, at));
        let mut places: HashMap<&str, usize> = known.collect();
        for (name, item) in updates.iter() {
            match places.get(name) {
                Some(&at) if items[at].1.timestamp >= item.timestamp => {}
                Some(&at) => items[at].1 = item.clone(),
                None => {
                    places.insert(name, items.len());
                    items.push((name.to_owned(), item.clone()));
                }
            }
        }
        Self { items }
    }

    /// Why these are not taken from a peer: no gateway could read an answer that says them.
    pub(crate) fn excess(&self) -> Option<String> {
        let (most_items, most_bytes) = MOST_FROM_A_PEER;
        let (mut items, mut bytes, mut all_bytes) = (0, 0, 0);
        for (name, item) in self.iter() {
            let length = name.len() + item.value.len();
            all_bytes += length;
            if !item.value.is_empty() {
                (items, bytes) = (items + 1, bytes + length);
            }
        }
        (items > most_items || bytes > most_bytes || all_bytes > MOST_WITH_MARKERS).then(|| {
            format!(
                "its metadata has {items} items of {bytes} bytes, {all_bytes} with what is removed; \
                 at most {most_items}, {most_bytes} and {MOST_WITH_MARKERS} are taken from another replica"
            )
        })
    }

    /// Whether there are removal markers from before `limit`.
    pub(crate) fn has_markers_before(&self, limit: Timestamp) -> bool {
        self.items.iter().any(|(_, item)| item.is_marker_before(limit))
    }

    /// All but the removal markers from before `limit`.
    pub(crate) fn without_markers_before(mut self, limit: Timestamp) -> Self {
        self.items.retain(|(_, item)| !item.is_marker_before(limit));
        self
    }

    /// Reads the stored text. Empty text is no metadata.
    pub fn from_json(text: &str) -> Result<Self, MetadataSyntaxError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let not_json = |error: serde_json::Error| MetadataSyntaxError::NotJson(error.to_string());
        let parsed: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(not_json)?;
        let items = parsed
            .into_iter()
            .map(|(name, pair)| match pair.as_array().map(Vec::as_slice) {
                Some([Value::String(value), Value::String(time)]) => {
                    let (value, timestamp) = (value.clone(), time.parse().unwrap_or_default());
                    Ok((name, MetadataItem { value, timestamp }))
                }
                _ => Err(MetadataSyntaxError::NotAPair(name)),
            });
        Ok(Self {
            items: items.collect::<Result<_, _>>()?,
        })
    }

    /// The text to store, spelled as Python spells JSON.
    pub fn to_json(&self) -> String {
        if self.items.is_empty() {
            return String::new();
        }
        let mut text = String::from("{");
        for (at, (name, item)) in self.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            pythonic::json_text(&mut text, name);
            text.push_str(": [");
            pythonic::json_text(&mut text, &item.value);
            text.push_str(", \"");
            text.push_str(&item.timestamp.internal().to_string());
            text.push_str("\"]");
        }
        text.push('}');
        text
    }
}

/// Sharding's items survive the deletion of their container, as in OpenStack. Accounts keep nothing.
const KEPT_ON_DELETE: [&str; 3] = [
    "x-container-sysmeta-shard-quoted-root",
    "x-container-sysmeta-shard-root",
    "x-container-sysmeta-sharding",
];

/// The removal of everything in `stored` that a deletion at `timestamp` removes.
pub(crate) fn removed_by_delete(kind: Kind, stored: &Metadata, timestamp: Timestamp) -> Metadata {
    let mut left = stored.clone();
    for (name, item) in &mut left.items {
        let goes = kind == Kind::Account || !KEPT_ON_DELETE.contains(&name.to_ascii_lowercase().as_str());
        if goes && item.timestamp < timestamp {
            let value = String::new();
            *item = MetadataItem { value, timestamp };
        }
    }
    left
}

impl Broker {
    /// All items, removal markers included.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let kind = self.location().kind();
        let text = self.with(|database| database.read("read the metadata of", |c| read(kind, c)))?;
        parse(self.location(), &text)
    }

    /// Merges `updates` in; an empty value removes.
    pub fn update_metadata(&self, updates: &Metadata) -> Result<(), Error> {
        self.update_metadata_checked(updates, |_| Ok(()), |error| error)
    }

    /// Merges `updates` in if `check` accepts what comes out; else changes nothing and says why. `refuse` makes the
    /// same of what fails otherwise.
    pub fn update_metadata_checked<R>(
        &self,
        updates: &Metadata,
        check: impl FnOnce(&Metadata) -> Result<(), R>,
        refuse: impl FnOnce(Error) -> R,
    ) -> Result<(), R> {
        if updates.is_empty() {
            return Ok(());
        }
        let location = self.location();
        let written = self.with(|database| {
            database.write("write the metadata of", |transaction| -> Result<_, WorkError> {
                let stored = parse(location, &read(location.kind(), transaction)?)?;
                let changed = stored.merged_with(updates);
                let accepted = check(&changed);
                if accepted.is_ok() && changed != stored {
                    write(location.kind(), transaction, &changed)?;
                }
                Ok(accepted)
            })
        });
        written.unwrap_or_else(|error| Err(refuse(error)))
    }
}

/// The items of a text that was read from the database at `location`.
pub(crate) fn parse(location: &Location, text: &str) -> Result<Metadata, Error> {
    Metadata::from_json(text).map_err(|detail| Error::Metadata {
        path: location.db_file(),
        detail,
    })
}

/// The stored text; what is no text is none that can be read either.
pub(crate) fn read(kind: Kind, connection: &Connection) -> rusqlite::Result<String> {
    let sql = match kind {
        Kind::Account => "SELECT metadata FROM account_stat",
        Kind::Container => "SELECT metadata FROM container_info",
    };
    connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Null => String::new(),
            other => other.as_str().unwrap_or("\u{fffd}").to_owned(),
        })
    })
}

/// What is stored, if it can be read.
pub(crate) fn readable(kind: Kind, connection: &Connection) -> rusqlite::Result<Option<Metadata>> {
    Ok(Metadata::from_json(&read(kind, connection)?).ok())
}

pub(crate) fn write(kind: Kind, connection: &Connection, metadata: &Metadata) -> rusqlite::Result<()> {
    let sql = format!("UPDATE {} SET metadata = ?", kind.stat_table());
    connection.prepare_cached(&sql)?.execute([metadata.to_json()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn t(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000 + seconds)
    }

    /// The text was written by OpenStack Swift's broker for the same items.
    #[test]
    fn spelled_as_openstack_spells_it() {
        let text = "{\"X-Container-Meta-A\": [\"v\", \"1700000005.00000\"], \
                    \"x-container-meta-b\": [\"\", \"1700000005.00000\"], \
                    \"X-Container-Sysmeta-\\u00dc\": [\"\\u00f6\", \"1700000005.00000\"]}";
        let mut metadata = Metadata::default();
        metadata.set("X-Container-Meta-A", "v", t(5));
        metadata.set("x-container-meta-b", "", t(5));
        metadata.set("X-Container-Sysmeta-Ü", "ö", t(5));
        assert_eq!(metadata.to_json(), text);
        assert_eq!(Metadata::from_json(text).unwrap(), metadata);
    }

    #[test]
    fn newer_items_win_and_ties_keep_what_is_there() {
        let mut metadata = Metadata::default();
        assert!(metadata.set("A", "first", t(2)));
        assert!(!metadata.set("A", "older", t(1)));
        assert!(!metadata.set("A", "same moment", t(2)));
        assert!(metadata.set("A", "", t(3)));
        assert!(metadata.set("a", "other name", t(1)));
        assert_eq!(metadata.get("A").unwrap().value, "");
        for rubbish in ["not json", "[1]", "{\"A\": 1}", "{\"A\": [1, 2]}"] {
            assert!(Metadata::from_json(rubbish).is_err(), "{rubbish}");
        }
    }

    #[test]
    fn deletion_spares_newer_items_and_sharding() {
        let mut metadata = Metadata::default();
        metadata.set("X-Container-Sysmeta-Shard-Root", "r", t(1));
        metadata.set("old", "v", t(1));
        metadata.set("new", "v", t(9));
        let left = removed_by_delete(Kind::Container, &metadata, t(5));
        let values: Vec<_> = left.iter().map(|(_, item)| item.value.as_str()).collect();
        assert_eq!(values, ["r", "", "v"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = Metadata::from_json(&text);
        }

        #[test]
        fn written_is_read_back(name in "\\PC+", value in any::<String>(), ticks in 0u64..200_000_000_000_000) {
            let mut metadata = Metadata::default();
            metadata.set(name, value, Timestamp::from_ticks(ticks).unwrap());
            prop_assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
        }
    }
}
