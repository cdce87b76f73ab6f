//! Databases to test with, and the naive listing they are compared with.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

use listing_engine::wire::Numbered;
use listing_engine::{
    Broker, ContainerRow, Direction, Entry, Error, Kind, ListQuery, Location, NewDatabase, ObjectRow, Row,
};
use std::path::Path;
use vocabulary::{HashPrefix, Partition, PolicyIndex, Timestamp};

pub fn t(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(1_700_000_000 + seconds)
}

pub fn location(device: &Path, kind: Kind) -> Location {
    let cluster = HashPrefix::new("pre", "suf").unwrap();
    let hash = match kind {
        Kind::Account => cluster.account("a"),
        Kind::Container => cluster.container("a", "c"),
    };
    Location::new(device, kind, Partition(1), hash)
}

pub fn new_database(kind: Kind) -> NewDatabase {
    NewDatabase {
        account: "a".into(),
        container: (kind == Kind::Container).then(|| "c".into()),
        put_timestamp: at(0),
        created_at: at(1),
        policy: PolicyIndex(0),
        unique: "5e7ab1e5-0000-4000-8000-000000000001".into(),
    }
}

pub fn create(device: &Path, kind: Kind) -> Broker {
    Broker::create(location(device, kind), &new_database(kind)).unwrap()
}

pub fn object(name: &str, timestamp: Timestamp) -> ObjectRow {
    ObjectRow {
        name: name.into(),
        timestamp,
        size: 3,
        content_type: "text/plain".into(),
        etag: "d41d8cd98f00b204e9800998ecf8427e".into(),
        deleted: false,
        policy: PolicyIndex(0),
        content_type_timestamp: None,
        meta_timestamp: None,
    }
}

pub fn container(name: &str, put: Timestamp, delete: Timestamp, objects: u64) -> ContainerRow {
    ContainerRow {
        name: name.into(),
        put_timestamp: put,
        delete_timestamp: delete,
        object_count: objects,
        bytes_used: objects * 10,
        policy: PolicyIndex(0),
    }
}

/// Fills a database of either kind with entries of these names.
pub fn fill<'n>(broker: &Broker, names: impl IntoIterator<Item = &'n String>) {
    let kind = broker.location().kind();
    let rows: Vec<Row> = names
        .into_iter()
        .map(|name| match kind {
            Kind::Account => Row::Container(container(name, at(1), Timestamp::ZERO, 1)),
            Kind::Container => Row::Object(object(name, at(1))),
        })
        .collect();
    broker.commit_batch(&rows).unwrap();
}

/// The names a listing gives; shared prefixes end in `*`.
pub fn names(broker: &Broker, query: &ListQuery) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    match broker.location().kind() {
        Kind::Account => broker.list_containers(query, |entry| {
            found.push(match entry {
                Entry::Shared(prefix) => format!("{prefix}*"),
                Entry::Item(item) => item.name.to_owned(),
            });
        })?,
        Kind::Container => broker.list_objects(query, |entry| {
            found.push(match entry {
                Entry::Shared(prefix) => format!("{prefix}*"),
                Entry::Item(item) => item.name.to_owned(),
            });
        })?,
    }
    Ok(found)
}

/// What OpenStack lists, said as simply as possible: look at every name in order.
pub fn naive<'n>(all: impl IntoIterator<Item = &'n String>, query: &ListQuery) -> Vec<String> {
    let mut all: Vec<&str> = all.into_iter().map(String::as_str).collect();
    all.sort_unstable();
    let (above, below) = match query.reverse {
        false => (&query.marker, &query.end_marker),
        true => (&query.end_marker, &query.marker),
    };
    if query.reverse {
        all.reverse();
    }
    let (prefix, delimiter) = match query.path.as_deref() {
        None => (query.prefix.clone(), query.delimiter.clone()),
        Some("") => (String::new(), "/".into()),
        Some(path) => (format!("{}/", path.trim_end_matches('/')), "/".into()),
    };
    let mut listed: Vec<String> = Vec::new();
    let mut passed: Option<String> = None;
    for name in all {
        let wanted = (query.reserved || !name.starts_with('\0'))
            && (above.is_empty() || name > above.as_str())
            && (below.is_empty() || name < below.as_str())
            && name.starts_with(&prefix)
            && !passed.as_ref().is_some_and(|p| name.starts_with(p));
        if listed.len() == query.limit {
            break;
        }
        if !wanted {
            continue;
        }
        let after = &name[prefix.len()..];
        let found = if delimiter.is_empty() {
            None
        } else {
            after.find(&delimiter)
        };
        let shared = found.map(|i| &name[..prefix.len() + i + delimiter.len()]);
        match (query.path.is_some(), shared) {
            (true, _) if after.is_empty() => {}
            (true, Some(shared)) if shared != name => passed = Some(shared.to_owned()),
            (false, Some(shared)) => {
                passed = Some(shared.to_owned());
                if shared != above {
                    listed.push(format!("{shared}*"));
                }
            }
            _ => listed.push(name.to_owned()),
        }
    }
    listed
}

/// All rows without their numbers, which differ between replicas.
pub fn rows(broker: &Broker) -> Vec<String> {
    let mut rows: Vec<String> = broker
        .rows_since(-1, usize::MAX)
        .unwrap()
        .iter()
        .map(|numbered| format!("{:?}", numbered.row))
        .collect();
    rows.sort();
    rows
}

/// What a replicator does from one to the other, its messages as JSON.
pub fn push(from: &Broker, to: &Broker) {
    let kind = from.location().kind();
    let (mine, theirs) = (from.replication_info().unwrap(), to.replication_info().unwrap());
    to.learn(&mine.summary, at(999)).unwrap();
    from.learn(&theirs.summary, at(999)).unwrap();
    let mut point = to.sync_point(&mine.summary.id, Direction::Incoming).unwrap();
    loop {
        let rows = from.rows_since(point, 2).unwrap();
        let Some(last) = rows.last() else { break };
        point = last.id;
        let sent: Vec<_> = rows.iter().map(Numbered::to_json).collect();
        let got = sent
            .iter()
            .map(|item| Numbered::from_json(kind, item).unwrap())
            .collect();
        to.merge_rows_from(got, &mine.summary.id).unwrap();
    }
    to.merge_sync_points(&from.sync_points(Direction::Incoming).unwrap(), Direction::Incoming)
        .unwrap();
}

pub fn replica(device: &Path, kind: Kind, number: u8) -> Broker {
    let new = NewDatabase {
        unique: format!("replica-{number}"),
        ..new_database(kind)
    };
    std::fs::create_dir_all(device).unwrap();
    Broker::create(location(device, kind), &new).unwrap()
}
