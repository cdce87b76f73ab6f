//! Databases of real files audited, with the damage that drives and crashes leave.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::pass;
use listing_engine::{Broker, Kind, Location, NewDatabase};
use std::path::PathBuf;
use upkeep::{DatabaseAuditor, Disks};
use vocabulary::{HashPrefix, PolicyIndex, Timestamp};
use world::World;

struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sda")).unwrap();
        Self(dir)
    }

    fn device(&self) -> PathBuf {
        self.0.path().join("sda")
    }

    fn secrets() -> HashPrefix {
        HashPrefix::new("a", "b").unwrap()
    }

    /// A database of an account's or container's own; its file.
    fn make(&self, kind: Kind, name: &str) -> PathBuf {
        let hash = match kind {
            Kind::Account => Self::secrets().account(name),
            Kind::Container => Self::secrets().container("a", name),
        };
        let location = Location::new(self.device(), kind, hash.partition(4), hash);
        let (account, container) = match kind {
            Kind::Account => (name.to_owned(), None),
            Kind::Container => ("a".into(), Some(name.to_owned())),
        };
        let new = NewDatabase {
            account,
            container,
            put_timestamp: Timestamp::from_seconds(1_700_000_000),
            created_at: Timestamp::from_seconds(1_700_000_000),
            policy: PolicyIndex(0),
            unique: name.into(),
        };
        Broker::create(location.clone(), &new).unwrap();
        location.db_file()
    }

    async fn audit(&self, kind: Kind) -> (u64, u64) {
        let disks = Disks::new(World::real(), self.0.path(), false);
        pass(&mut DatabaseAuditor::new(disks, kind, Self::secrets())).await
    }

    fn quarantined(&self, kind: Kind) -> usize {
        let place = self.device().join("quarantined").join(kind.directory());
        std::fs::read_dir(place).map_or(0, Iterator::count)
    }
}

#[tokio::test]
async fn damaged_databases_go_to_quarantine() {
    for kind in [Kind::Account, Kind::Container] {
        let site = Site::new();
        let good = site.make(kind, "good");
        let bad: Vec<PathBuf> = ["rubbish", "empty", "cut", "spoilt"]
            .map(|name| site.make(kind, name))
            .into();
        std::fs::write(&bad[0], "rubbish ".repeat(1000)).unwrap();
        std::fs::write(&bad[1], "").unwrap();
        let whole = std::fs::read(&bad[2]).unwrap();
        std::fs::write(&bad[2], &whole[..whole.len() / 2]).unwrap();
        // Every page but the first: a reader of the statistics row alone does not notice.
        let mut spoilt = std::fs::read(&bad[3]).unwrap();
        let page = 4096;
        let last = spoilt.len() - page;
        spoilt[last..].fill(0x5a);
        std::fs::write(&bad[3], &spoilt).unwrap();
        assert_eq!(site.audit(kind).await, (1, 4), "{kind:?}");
        assert!(good.exists());
        assert!(bad.iter().all(|file| !file.exists()));
        assert_eq!(site.quarantined(kind), 4);
        assert_eq!(site.audit(kind).await, (1, 0));
    }
}

#[tokio::test]
async fn an_account_that_contradicts_itself_is_named_and_left() {
    let site = Site::new();
    let file = site.make(Kind::Account, "a");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection
        .execute("UPDATE account_stat SET container_count = 7", [])
        .unwrap();
    drop(connection);
    assert_eq!(site.audit(Kind::Account).await, (0, 1));
    assert!(file.exists());
}

#[tokio::test]
async fn times_from_far_ahead_are_named_and_left() {
    for (kind, table) in [(Kind::Account, "account_stat"), (Kind::Container, "container_stat")] {
        for column in ["put_timestamp", "delete_timestamp"] {
            let site = Site::new();
            let file = site.make(kind, "a");
            let connection = rusqlite::Connection::open(&file).unwrap();
            let sql = format!("UPDATE {table} SET {column} = '9987654321.00000'");
            connection.execute(&sql, []).unwrap();
            drop(connection);
            assert_eq!(site.audit(kind).await, (0, 1), "{column} of {table}");
            assert!(file.exists());
        }
    }
}

#[tokio::test]
async fn deleted_ones_and_foreign_things_are_passed_over() {
    let site = Site::new();
    let kind = Kind::Container;
    let (good, deleted) = (site.make(kind, "good"), site.make(kind, "deleted"));
    let hash = Site::secrets().container("a", "deleted");
    let location = Location::new(site.device(), kind, hash.partition(4), hash);
    Broker::open(location)
        .unwrap()
        .delete(Timestamp::from_seconds(1_700_000_001))
        .unwrap();
    let containers = site.device().join("containers");
    std::fs::create_dir_all(containers.join("3/abc/no hash")).unwrap();
    for name in [
        "77",
        "rubbish",
        "3/file",
        "3/abc/0123456789abcdef0123456789abcabc",
        "3/.lock",
    ] {
        std::fs::write(containers.join(name), "x").unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", containers.join("3/abd")).unwrap();
    // A directory where the file belongs.
    let directory = site.make(kind, "directory");
    std::fs::remove_file(&directory).unwrap();
    std::fs::create_dir(&directory).unwrap();
    assert_eq!(site.audit(kind).await, (1, 2));
    assert!(good.exists() && deleted.exists());
    // Both were in the way of a database.
    let in_the_way = containers.join("3/abc/0123456789abcdef0123456789abcabc");
    assert!(!directory.exists() && !in_the_way.exists());
    assert_eq!(site.quarantined(kind), 2);
}
