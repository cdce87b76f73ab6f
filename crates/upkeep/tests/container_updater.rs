//! Container databases reported to account services in this process.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod common;

use common::{Fake, pass, ring_client, ring_client_of};
use listing_engine::{Broker, Kind, Location, NewDatabase, ObjectRow, Row};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use upkeep::{ContainerUpdater, Disks};
use vocabulary::{HashPrefix, PolicyIndex, Timestamp};
use world::World;

struct Site {
    dir: tempfile::TempDir,
    fake: Arc<Fake>,
    updater: ContainerUpdater,
}

impl Site {
    fn new(suppression: Duration) -> Self {
        Self::with_recon(suppression, Duration::ZERO)
    }

    fn with_recon(suppression: Duration, again: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sda")).unwrap();
        let fake = Arc::new(Fake::default());
        let disks = Disks::new(World::real(), dir.path(), false);
        let updater = ContainerUpdater::new(disks, ring_client(&fake), 4, suppression, again);
        Self { dir, fake, updater }
    }

    fn device(&self) -> PathBuf {
        self.dir.path().join("sda")
    }

    fn refuse(&self, device: &str) {
        self.fake.refusing.lock().insert(device.into(), (503, None));
    }
}

fn container(device: &Path, account: &str, name: &str) -> Broker {
    let hash = HashPrefix::new("a", "b").unwrap().container(account, name);
    let location = Location::new(device, Kind::Container, hash.partition(4), hash);
    Broker::create(location, &new_container(account, name)).unwrap()
}

fn new_container(account: &str, name: &str) -> NewDatabase {
    NewDatabase {
        account: account.into(),
        container: Some(name.into()),
        put_timestamp: Timestamp::from_seconds(1_700_000_000),
        created_at: Timestamp::from_seconds(1_700_000_000),
        policy: PolicyIndex(0),
        unique: name.into(),
    }
}

fn add(broker: &Broker, name: &str, size: u64) {
    add_of(broker, name, size, PolicyIndex(0));
}

fn add_of(broker: &Broker, name: &str, size: u64, policy: PolicyIndex) {
    let row = ObjectRow {
        size,
        deleted: false,
        content_type: "text/plain".into(),
        ..ObjectRow::deleted(name, Timestamp::from_seconds(1_700_000_001), policy)
    };
    broker.commit_batch(&[Row::Object(row)]).unwrap();
}

/// The request is what OpenStack Swift 2.38.3's updater was seen to send for the same database.
#[tokio::test]
async fn changes_are_reported_once() {
    let mut site = Site::new(Duration::ZERO);
    let broker = container(&site.device(), "AUTH_t", "c");
    add(&broker, "o", 3);
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    let mut headers: Vec<_> = site.fake.received.lock()[0]
        .1
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .filter(|header| !header.starts_with("user-agent: container-updater "))
        .collect();
    headers.sort();
    let expected = [
        "x-account-override-deleted: yes",
        "x-backend-storage-policy-index: 0",
        "x-bytes-used: 3",
        "x-delete-timestamp: 0",
        "x-object-count: 1",
        "x-put-timestamp: 1700000000.00000",
    ];
    assert_eq!(headers, expected);
    let lines = site.fake.lines();
    assert_eq!(
        lines,
        ["PUT /sd0/3/AUTH_t/c", "PUT /sd1/3/AUTH_t/c", "PUT /sd2/3/AUTH_t/c"]
    );
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert!(site.fake.lines().is_empty());

    add(&broker, "p", 4);
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    broker.delete(Timestamp::from_seconds(1_700_000_002)).unwrap();
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    assert_eq!(site.fake.lines().len(), 6);
}

/// An account's replicas may have overwritten each other's figures since.
#[tokio::test]
async fn recent_figures_are_sent_again() {
    let mut site = Site::with_recon(Duration::ZERO, Duration::from_secs(4));
    add(&container(&site.device(), "AUTH_t", "c"), "o", 3);
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    let first = site.fake.lines();
    assert_eq!((pass(&mut site.updater).await, site.fake.lines()), ((0, 0), first));
    World::real().clock.sleep(Duration::from_millis(5200)).await;
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert!(site.fake.lines().is_empty());
}

/// Passes that follow each other quickly cost an account's servers one request for each change, not one for each pass.
#[tokio::test]
async fn figures_are_not_sent_again_in_every_pass() {
    let mut site = Site::with_recon(Duration::ZERO, Duration::from_secs(900));
    site.updater = site.updater.repeating_every(Duration::from_secs(3600));
    let broker = container(&site.device(), "AUTH_t", "c");
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    assert_eq!(site.fake.lines().len(), 3);
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert_eq!(site.fake.lines().len(), 0, "sent a moment ago");
    add(&broker, "o", 3);
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    assert_eq!(site.fake.lines().len(), 3, "a change is sent in every pass");
    site.updater = site.updater.repeating_every(Duration::from_millis(1));
    World::real().clock.sleep(Duration::from_millis(5)).await;
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert_eq!(site.fake.lines().len(), 3, "and once more, later");
}

/// Long enough for the files' times to be trusted: the second pass opens nothing, the third notices.
#[tokio::test]
async fn what_is_reported_is_noticed_when_it_changes() {
    let mut site = Site::new(Duration::ZERO);
    let broker = container(&site.device(), "AUTH_t", "c");
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    World::real().clock.sleep(Duration::from_millis(4200)).await;
    for _ in 0..3 {
        assert_eq!(pass(&mut site.updater).await, (0, 0));
    }
    add(&broker, "o", 3);
    assert_eq!(pass(&mut site.updater).await, (1, 0));
}

#[tokio::test]
async fn a_majority_suffices_and_less_is_tried_again() {
    let mut site = Site::new(Duration::ZERO);
    container(&site.device(), "AUTH_t", "c");
    site.refuse("sd0");
    site.refuse("sd1");
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    site.fake.refusing.lock().remove("sd0");
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    site.fake.refusing.lock().clear();
    site.fake.lines();
    assert_eq!(pass(&mut site.updater).await, (0, 0));
    assert!(site.fake.lines().is_empty());
}

#[tokio::test]
async fn a_container_whose_account_nobody_knows_is_quarantined() {
    let mut site = Site::new(Duration::ZERO);
    let broker = container(&site.device(), "AUTH_t", "c");
    let is_there = || broker.location().db_file().exists();
    let say = |device: &str, status: u16| {
        site.fake.refusing.lock().insert(device.into(), (status, None));
    };
    for (last, lost) in [(503, false), (507, false), (404, true)] {
        say("sd0", 404);
        say("sd1", 404);
        say("sd2", last);
        assert_eq!(pass(&mut site.updater).await, (0, 1), "{last}");
        assert_eq!(!is_there(), lost, "{last}");
    }
    let aside = site.device().join("quarantined/containers");
    assert_eq!(std::fs::read_dir(aside).unwrap().count(), 1);
    assert_eq!(pass(&mut site.updater).await, (0, 0));
}

/// Its account may be on servers that another ring names.
#[tokio::test]
async fn a_container_with_objects_stays_where_it_is() {
    // The reconciler has those of another policy still to move.
    for policy in [0, 1].map(PolicyIndex) {
        let mut site = Site::new(Duration::ZERO);
        let broker = container(&site.device(), "AUTH_t", "c");
        add_of(&broker, "o", 1, policy);
        for device in ["sd0", "sd1", "sd2"] {
            site.fake.refusing.lock().insert(device.into(), (404, None));
        }
        assert_eq!(pass(&mut site.updater).await, (0, 1));
        assert!(broker.location().db_file().exists(), "{policy}");
    }
}

/// As after a rebalance, before replication has moved the account.
#[tokio::test]
async fn an_account_on_a_handoff_is_known() {
    for (status, stays) in [(204, true), (503, true), (404, false)] {
        let mut site = Site::new(Duration::ZERO);
        let accounts = ring_client_of(&site.fake, 1.0);
        let partition = accounts.hash.account("AUTH_t").partition(4);
        let primary = accounts.ring.load().primaries(partition)[0].device.clone();
        let disks = Disks::new(World::real(), site.dir.path(), false);
        site.updater = ContainerUpdater::new(disks, accounts, 1, Duration::ZERO, Duration::ZERO);
        let broker = container(&site.device(), "AUTH_t", "c");
        for device in ["sd0", "sd1", "sd2"] {
            let status = if device == primary { 404 } else { status };
            site.fake.refusing.lock().insert(device.into(), (status, None));
        }
        assert_eq!(pass(&mut site.updater).await, (0, 1));
        assert_eq!(broker.location().db_file().exists(), stays, "{status}");
    }
}

/// As by the secrets of another cluster.
#[tokio::test]
async fn a_container_in_a_foreign_place_is_left_alone() {
    let mut site = Site::new(Duration::ZERO);
    let hash = HashPrefix::new("other", "secrets").unwrap().container("AUTH_t", "c");
    let location = Location::new(site.device(), Kind::Container, hash.partition(4), hash);
    let broker = Broker::create(location, &new_container("AUTH_t", "c")).unwrap();
    for device in ["sd0", "sd1", "sd2"] {
        site.fake.refusing.lock().insert(device.into(), (404, None));
    }
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    assert!(broker.location().db_file().exists() && site.fake.lines().is_empty());
}

#[tokio::test]
async fn an_account_that_cannot_be_updated_is_left_in_peace() {
    let mut site = Site::new(Duration::from_secs(60));
    container(&site.device(), "AUTH_t", "c");
    for device in ["sd0", "sd1", "sd2"] {
        site.refuse(device);
    }
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    assert_eq!(site.fake.lines().len(), 3);
    assert_eq!(pass(&mut site.updater).await, (0, 1));
    assert!(site.fake.lines().is_empty());
}

#[tokio::test]
async fn an_account_that_cannot_be_updated_again_is_left_in_peace() {
    let mut site = Site::with_recon(Duration::from_secs(60), Duration::from_secs(60));
    container(&site.device(), "AUTH_t", "c");
    assert_eq!(pass(&mut site.updater).await, (1, 0));
    site.fake.lines();
    for device in ["sd0", "sd1", "sd2"] {
        site.refuse(device);
    }
    for asked in [3, 0] {
        assert_eq!(pass(&mut site.updater).await, (0, 0));
        assert_eq!(site.fake.lines().len(), asked);
    }
}

#[tokio::test]
async fn rubbish_and_shards_are_passed_by() {
    let mut site = Site::new(Duration::ZERO);
    container(&site.device(), ".shards_AUTH_t", "c-1");
    container(&site.device(), "AUTH_t", "good");
    let broken = container(&site.device(), "AUTH_t", "broken").location().clone();
    std::fs::write(broken.db_file(), vec![b'x'; 8192]).unwrap();
    let containers = site.device().join("containers");
    std::fs::create_dir_all(containers.join("3/abc/no hash")).unwrap();
    std::fs::create_dir_all(containers.join("03/abc/06fbf0b514e5199dfc4e00f42eb5eabc")).unwrap();
    std::fs::create_dir_all(containers.join("3/abc/06fbf0b514e5199dfc4e00f42eb5eabc")).unwrap();
    std::fs::write(containers.join("4"), b"a file where a directory belongs").unwrap();
    assert_eq!(pass(&mut site.updater).await, (1, 1));
    assert_eq!(site.fake.lines().len(), 3);
    assert!(broken.quarantine_dir().exists());
    assert_eq!(pass(&mut site.updater).await, (0, 0));
}
