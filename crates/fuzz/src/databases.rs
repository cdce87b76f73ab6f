//! Databases that peers send: a copy that is adopted keeps what it is given.
//!
//! The bytes are changes of a good database: the kind, then again and again three bytes of position, one of length and
//! so many bytes. So small inputs reach every page, and what the engine keeps stays small.

use listing_engine::{
    Arriving, Broker, CopyIdentity, Entry, Kind, ListQuery, Location, NewDatabase, ObjectRow, Row, adopt,
};
use std::cell::OnceCell;
use std::path::Path;
use tempfile::TempDir;
use vocabulary::{Partition, PathHash, PolicyIndex, Timestamp};

const IDENTITY: CopyIdentity<'_> = CopyIdentity {
    name: "5e7ab1e5-0000-4000-8000-000000000002",
    unique: "5e7ab1e5-0000-4000-8000-000000000003",
};

/// Where databases lie, and a good one of each kind.
struct Ground {
    device: TempDir,
    container: Vec<u8>,
    account: Vec<u8>,
}

pub(crate) fn database(bytes: &[u8]) {
    thread_local! {
        static GROUND: OnceCell<Ground> = const { OnceCell::new() };
    }
    GROUND.with(|ground| {
        let ground = ground.get_or_init(Ground::new);
        let (kind, changes) = match bytes.split_first() {
            Some((first, changes)) if first % 2 == 1 => (Kind::Account, changes),
            Some((_, changes)) => (Kind::Container, changes),
            None => (Kind::Container, bytes),
        };
        let good = if kind == Kind::Account {
            &ground.account
        } else {
            &ground.container
        };
        let place = location(ground.device.path(), kind);
        arrive(&place, &changed(good, changes));
        // Whatever happened, the next one finds an empty place.
        let _ = std::fs::remove_dir_all(place.hash_dir());
        let _ = std::fs::remove_dir_all(place.tmp_dir());
    });
}

fn changed(good: &[u8], mut changes: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    while let [a, b, c, length, rest @ ..] = changes {
        let at = (usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c)) % (bytes.len() + 1);
        let (new, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let end = (at + new.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&new[..end - at]);
        // A change without bytes cuts the file.
        if *length == 0 {
            bytes.truncate(at);
        }
        changes = rest;
    }
    bytes
}

fn arrive(place: &Location, bytes: &[u8]) {
    let arrived = Arriving::begin(place, IDENTITY).and_then(|mut arriving| {
        arriving.write(bytes)?;
        arriving.finish()
    });
    assert!(arrived.is_ok(), "{arrived:?}");
    if adopt(place, None, IDENTITY, |_| true).is_err() {
        assert!(!place.db_file().exists());
        return;
    }
    let Ok(broker) = Broker::open(place.clone()) else {
        return;
    };
    let (Ok(_), Ok(_)) = (broker.info(), broker.replication_info()) else {
        return;
    };
    let _ = (broker.metadata(), broker.rows_since(-1, 100), broker.shard_ranges());
    if place.kind() == Kind::Account {
        let _ = broker.list_containers(&ListQuery::default(), |_| {});
        return;
    }
    let row = object("acknowledged", Timestamp::from_seconds(4_000_000_000));
    if broker.commit_batch(&[Row::Object(row)]).is_err() {
        return;
    }
    let mut found = false;
    let query = ListQuery {
        marker: "acknowledgec".into(),
        policy: None,
        ..ListQuery::default()
    };
    let listed = broker.list_objects(&query, |entry| {
        found |= matches!(entry, Entry::Item(item) if item.name == "acknowledged");
    });
    assert!(listed.is_err() || found, "an acknowledged row is gone");
}

fn object(name: &str, timestamp: Timestamp) -> ObjectRow {
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

fn location(device: &Path, kind: Kind) -> Location {
    Location::new(device, kind, Partition(1), PathHash([7; 16]))
}

impl Ground {
    /// Panics where no database can be made: then there is nothing to fuzz.
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let device = match memory.is_dir() {
            true => TempDir::new_in(memory),
            false => TempDir::new(),
        };
        let Ok(device) = device else {
            panic!("no temporary folder: {device:?}")
        };
        let [container, account] = [Kind::Container, Kind::Account].map(|kind| good(device.path(), kind));
        Self {
            device,
            container,
            account,
        }
    }
}

fn good(device: &Path, kind: Kind) -> Vec<u8> {
    let new = NewDatabase {
        account: "a".into(),
        container: (kind == Kind::Container).then(|| "c".into()),
        put_timestamp: Timestamp::from_seconds(1_700_000_000),
        created_at: Timestamp::from_seconds(1_700_000_001),
        policy: PolicyIndex(0),
        unique: "5e7ab1e5-0000-4000-8000-000000000001".into(),
    };
    let place = location(device, kind);
    let made = Broker::create(place.clone(), &new).and_then(|broker| {
        if kind == Kind::Container {
            broker.commit_batch(&[Row::Object(object("o", new.created_at))])?;
        }
        broker.snapshot("1").map(|snapshot| std::fs::read(snapshot.path()))
    });
    let _ = std::fs::remove_dir_all(place.hash_dir());
    match made {
        Ok(Ok(bytes)) => bytes,
        other => panic!("no database: {other:?}"),
    }
}
