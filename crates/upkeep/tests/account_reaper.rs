//! A deleted account on three devices, and its servers in this process, which say whether and when it may go.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, Log, pass, ring_client};
use listing_engine::{Broker, ContainerRow, Kind, Location, NewDatabase, Row};
use peer::Peers;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{AccountReaper, Disks, LocalServer, ReaperOptions, ReaperTargets, RingClient};
use vocabulary::{HashPrefix, PolicyIndex, Timestamp};
use world::World;

const SERVERS: [&str; 3] = ["sd0", "sd1", "sd2"];
const DELAY: u64 = 1000;

fn now() -> u64 {
    World::real().clock.now().seconds()
}

struct Site {
    _dir: tempfile::TempDir,
    fake: Arc<Fake>,
    reaper: AccountReaper,
}

impl Site {
    /// An account that was deleted twice the delay ago, on all devices here, whose servers' clocks are right.
    fn new(delay: u64) -> Self {
        Self::with(delay, |_| {})
    }

    fn with(delay: u64, change: impl FnOnce(&mut RingClient)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let deleted = Timestamp::from_seconds(now() - 2 * DELAY);
        for device in SERVERS {
            let hash = HashPrefix::new("a", "b").unwrap().account("AUTH_t");
            let location = Location::new(dir.path().join(device), Kind::Account, hash.partition(4), hash);
            std::fs::create_dir(dir.path().join(device)).unwrap();
            let broker = Broker::create(location, &new_account()).unwrap();
            let row = ContainerRow {
                name: "c".into(),
                put_timestamp: Timestamp::from_seconds(1),
                delete_timestamp: Timestamp::ZERO,
                object_count: 0,
                bytes_used: 0,
                policy: PolicyIndex(0),
            };
            broker.commit_batch(&[Row::Container(row)]).unwrap();
            broker.delete(deleted).unwrap();
        }
        let fake = Arc::new(Fake::default());
        for device in SERVERS {
            fake.dates.lock().insert(device.into(), now());
            fake.refusing.lock().insert(device.into(), (404, None));
        }
        let below = ReaperTargets {
            containers: ring_client(&fake),
            objects: BTreeMap::new(),
        };
        let options = ReaperOptions {
            delay: Duration::from_secs(delay),
            warn_after: Duration::from_secs(1 << 30),
            concurrency: 1,
            here: LocalServer {
                addresses: vec!["127.0.0.1".parse().unwrap()],
                port: 6201,
            },
        };
        let disks = Disks::new(World::real(), dir.path(), false);
        let mut accounts = ring_client(&fake);
        change(&mut accounts);
        let reaper = AccountReaper::new(disks, accounts, below, options);
        Self {
            _dir: dir,
            fake,
            reaper,
        }
    }

    /// Whether a pass deletes the container.
    async fn reaps(&mut self) -> bool {
        pass(&mut self.reaper).await;
        self.fake.lines().iter().any(|line| line.starts_with("DELETE"))
    }
}

fn new_account() -> NewDatabase {
    NewDatabase {
        account: "AUTH_t".into(),
        container: None,
        put_timestamp: Timestamp::from_seconds(1),
        created_at: Timestamp::from_seconds(1),
        policy: PolicyIndex(0),
        unique: "u".into(),
    }
}

#[tokio::test]
async fn the_clocks_of_the_accounts_servers_count() {
    let mut site = Site::new(DELAY);
    let (log, _guard) = Log::listen();
    site.fake.dates.lock().insert("sd1".into(), now() - DELAY - 60);
    assert!(!site.reaps().await);
    let lines = log.lines("one of the two clocks is wrong");
    assert!(lines.iter().any(|line| line.contains("127.0.0.2:6299")), "{lines:?}");
    site.fake.dates.lock().insert("sd1".into(), now() - DELAY + 60);
    assert!(site.reaps().await);
}

#[tokio::test]
async fn servers_that_are_away_are_waited_for() {
    let mut site = Site::with(DELAY, |accounts| accounts.peers = Arc::new(Peers::new(World::real())));
    let (log, _guard) = Log::listen();
    assert!(!site.reaps().await);
    assert!(!log.lines("too few of its servers answer").is_empty());
}

#[tokio::test]
async fn without_a_delay_no_clock_counts() {
    let mut site = Site::new(0);
    site.fake.dates.lock().insert("sd1".into(), 1);
    assert!(site.reaps().await);
}

/// As where it was made again after most servers had reclaimed it.
#[tokio::test]
async fn an_account_that_another_server_has_is_left_alone() {
    let mut site = Site::new(0);
    site.fake.refusing.lock().insert("sd1".into(), (204, None));
    let (log, _guard) = Log::listen();
    assert!(!site.reaps().await);
    assert!(!log.lines("while they disagree").is_empty());
    site.fake.refusing.lock().insert("sd1".into(), (404, None));
    assert!(site.reaps().await);
}

#[tokio::test]
async fn servers_whose_drives_are_away_know_nothing() {
    let mut site = Site::new(0);
    let away = SERVERS.iter().skip(1);
    away.for_each(|device| drop(site.fake.refusing.lock().insert((*device).into(), (507, None))));
    let (log, _guard) = Log::listen();
    assert!(!site.reaps().await);
    assert!(!log.lines("too few of its servers answer").is_empty());
}
