//! Replicas of one database on devices of one process: compared, levelled, removed where they do not belong.

#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use arc_swap::ArcSwap;
use listing_engine::{Broker, Direction, Error, Kind, Location, Metadata, NewDatabase, ObjectRow, Row, SyncPoint};
use listing_server::{ListingServer, ListingServerOptions, Reserve};
use parking_lot::Mutex;
use peer::{Address, Body, Call, PartitionTarget, Peers, Response, Service, Timeouts};
use placement::{Device, Ring, RingBuilder};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use upkeep::{DatabaseReplicator, DatabaseReplicatorOptions, Disks, LocalServer, RingClient, RsyncOptions};
use vocabulary::{HashPrefix, Partition, Policies, PolicyIndex, Timestamp};
use world::World;

const DEVICES: u32 = 4;
const PORT: u16 = 6299;

/// The server of all devices, which begins its answers about one of them and stalls.
struct Stalling {
    server: Arc<ListingServer>,
    device: Arc<Mutex<Option<String>>>,
    meanwhile: Meanwhile,
}

/// What happens once, before rows that come to this device are merged.
type Meanwhile = Arc<Mutex<Option<(String, Box<dyn FnOnce() + Send>)>>>;

#[async_trait::async_trait]
impl Service for Stalling {
    async fn call(&self, call: Call) -> Response {
        let mut call = call.into_raw();
        let Address::Partition(PartitionTarget { device, .. }) = &call.address else {
            panic!("{:?}", call.address)
        };
        if self
            .meanwhile
            .lock()
            .as_ref()
            .is_some_and(|(name, _)| **name == **device)
        {
            let body = std::mem::replace(&mut call.body, Body::empty())
                .collect(1 << 20)
                .await
                .unwrap();
            if body.starts_with(b"[\"merge_items\"") {
                let (_, happens) = self.meanwhile.lock().take().unwrap();
                happens();
            }
            call.body = Body::whole(body);
        }
        let stalls = self.device.lock().as_deref() == Some(&**device);
        match stalls {
            true => Response::new(Body::stream(futures_util::stream::pending(), Some(100))),
            false => self.server.call(call.into()).await,
        }
    }
}

struct Cluster {
    meanwhile: Meanwhile,
    stalling: Arc<Mutex<Option<String>>>,
    dir: tempfile::TempDir,
    ring_client: RingClient,
}

impl Cluster {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for id in 0..DEVICES {
            std::fs::create_dir(dir.path().join(format!("sd{id}"))).unwrap();
        }
        let hash = HashPrefix::new("a", "b").unwrap();
        let options = ListingServerOptions {
            mount_check: false,
            fallocate_reserve: Reserve::Bytes(0),
            ..ListingServerOptions::new(dir.path(), hash.clone(), Arc::new(Policies::default()))
        };
        let server = ListingServer::new(World::real(), Kind::Container, options).unwrap();
        let mut peers = Peers::new(World::real());
        let stalling = Arc::<Mutex<Option<String>>>::default();
        let meanwhile = Meanwhile::default();
        let service = Stalling {
            server,
            device: stalling.clone(),
            meanwhile: meanwhile.clone(),
        };
        peers.register("127.0.0.1", PORT, Arc::new(service));
        let wait = Duration::from_secs(60);
        let ring_client = RingClient {
            ring: Arc::new(ArcSwap::from_pointee(ring())),
            hash,
            peers: Arc::new(peers),
            timeouts: Timeouts {
                connect: wait,
                response: wait,
            },
        };
        Self {
            meanwhile,
            stalling,
            dir,
            ring_client,
        }
    }

    fn replicator(&self, change: impl FnOnce(&mut DatabaseReplicatorOptions)) -> DatabaseReplicator {
        let mut options = DatabaseReplicatorOptions {
            concurrency: 4,
            per_diff: 10,
            max_diffs: 3,
            reclaim_age: Duration::from_secs(604_800),
            handoffs_only: false,
            handoff_delete: None,
            trust: Duration::ZERO,
            partitions: [].into(),
            rsync: RsyncOptions {
                module: "/nowhere".into(),
                compress: false,
                connect: Duration::from_secs(1),
                stall: Duration::from_secs(1),
            },
        };
        change(&mut options);
        let disks = Disks::new(World::real(), self.dir.path(), false);
        let own = LocalServer {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            port: PORT,
        };
        DatabaseReplicator::new(Kind::Container, disks, self.ring_client.clone(), own, options)
    }

    async fn pass(&self) -> (u64, u64) {
        common::pass(&mut self.replicator(|_| ())).await
    }

    fn partition(&self) -> Partition {
        self.ring_client
            .ring
            .load()
            .partition_of(&self.ring_client.hash.container("a", "c").0)
    }

    /// Devices that should hold the container, and one that should not.
    fn places(&self) -> (Vec<String>, String) {
        let ring = self.ring_client.ring.load();
        let primaries: Vec<String> = ring
            .primaries(self.partition())
            .iter()
            .map(|d| d.device.clone())
            .collect();
        let other = (0..DEVICES)
            .map(|id| format!("sd{id}"))
            .find(|name| !primaries.contains(name));
        (primaries, other.unwrap())
    }

    fn location(&self, device: &str, partition: Partition) -> Location {
        let hash = self.ring_client.hash.container("a", "c");
        Location::new(self.dir.path().join(device), Kind::Container, partition, hash)
    }

    fn open(&self, device: &str) -> Result<Broker, Error> {
        Broker::open(self.location(device, self.partition()))
    }

    fn make(&self, device: &str, partition: Partition) -> Broker {
        let new = NewDatabase {
            account: "a".into(),
            container: Some("c".into()),
            put_timestamp: now(),
            created_at: now(),
            policy: PolicyIndex(0),
            unique: format!("id-of-{device}"),
        };
        Broker::create(self.location(device, partition), &new).unwrap()
    }

    fn hashes(&self) -> Vec<String> {
        let hash = |device: &String| self.open(device).unwrap().replication_info().unwrap().summary.hash;
        self.places().0.iter().map(hash).collect()
    }

    fn equal(&self) -> bool {
        let hashes = self.hashes();
        hashes.iter().all(|hash| *hash == hashes[0])
    }
}

fn ring() -> Ring {
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    for id in 0..DEVICES {
        let device = Device {
            region: 1,
            zone: id,
            weight: 1.0,
            ip: "127.0.0.1".into(),
            port: PORT,
            replication_ip: "127.0.0.1".into(),
            replication_port: PORT,
            device: format!("sd{id}"),
            ..Device::default()
        };
        builder.add(device).unwrap();
    }
    builder.rebalance(1, 0).unwrap();
    Ring::new(builder.to_ring().unwrap())
}

fn now() -> Timestamp {
    World::real().clock.now()
}

fn rows(names: impl IntoIterator<Item = usize>) -> Vec<Row> {
    let row = |n: usize| {
        Row::Object(ObjectRow {
            name: format!("o{n}"),
            timestamp: now(),
            size: 1,
            content_type: "t".into(),
            etag: "e".into(),
            deleted: false,
            policy: PolicyIndex(0),
            content_type_timestamp: None,
            meta_timestamp: None,
        })
    };
    names.into_iter().map(row).collect()
}

fn exists(path: &Path) -> bool {
    path.exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_become_equal_and_then_nothing_is_sent() {
    let cluster = Cluster::new();
    let (primaries, _) = cluster.places();
    for (n, device) in primaries.iter().enumerate() {
        let broker = cluster.make(device, cluster.partition());
        broker.commit_batch(&rows([n, n + 10])).unwrap();
        let mut metadata = Metadata::default();
        metadata.set(format!("X-Container-Meta-{n}"), "v", now());
        broker.update_metadata(&metadata).unwrap();
    }
    cluster.pass().await;
    assert_eq!(cluster.pass().await, (3, 0));
    assert!(cluster.equal());
    for device in &primaries {
        let broker = cluster.open(device).unwrap();
        assert_eq!(
            (
                broker.info().unwrap().object_count,
                broker.metadata().unwrap().iter().count()
            ),
            (6, 3)
        );
    }
    let before: Vec<_> = primaries
        .iter()
        .map(|d| cluster.open(d).unwrap().replication_info().unwrap())
        .collect();
    assert_eq!(cluster.pass().await, (3, 0));
    let after: Vec<_> = primaries
        .iter()
        .map(|d| cluster.open(d).unwrap().replication_info().unwrap())
        .collect();
    assert_eq!(before, after);
}

/// There is no rsync daemon: databases travel over HTTP, for our servers say that they take them.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_database_and_one_that_is_far_behind_are_sent_whole() {
    let cluster = Cluster::new();
    let (primaries, _) = cluster.places();
    cluster
        .make(&primaries[0], cluster.partition())
        .commit_batch(&rows(0..200))
        .unwrap();
    let behind = cluster.make(&primaries[1], cluster.partition());
    behind.commit_batch(&rows([500])).unwrap();
    // The replica that was behind has every row after the first pass, but may have to offer all 201 to the others, 30
    // in a
    // pass, before it comes to the one that they lack.
    for _ in 0..8 {
        cluster.pass().await;
    }
    assert!(cluster.equal());
    let restored = cluster.open(&primaries[2]).unwrap().replication_info().unwrap();
    assert_eq!(restored.info.object_count, 201);
    let ids = primaries.iter().map(|d| cluster.open(d).unwrap().info().unwrap().id);
    assert_eq!(
        ids.collect::<std::collections::HashSet<_>>().len(),
        3,
        "each replica has an identity of its own"
    );
    for device in &primaries {
        let tmp = std::fs::read_dir(cluster.dir.path().join(device).join("tmp")).unwrap();
        assert_eq!(tmp.count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_is_quarantined_and_comes_back() {
    let cluster = Cluster::new();
    let (primaries, _) = cluster.places();
    for device in &primaries {
        cluster
            .make(device, cluster.partition())
            .commit_batch(&rows(0..5))
            .unwrap();
    }
    cluster.pass().await;
    let damaged = cluster.location(&primaries[1], cluster.partition());
    std::fs::write(damaged.db_file(), vec![7; 20_000]).unwrap();
    cluster.pass().await;
    cluster.pass().await;
    assert!(cluster.equal());
    assert!(exists(&damaged.quarantine_dir()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stalls_in_its_answers_costs_time_outs_only() {
    let mut cluster = Cluster::new();
    let patience = Duration::from_secs(3);
    cluster.ring_client.timeouts.response = patience;
    let (primaries, _) = cluster.places();
    for (n, device) in primaries.iter().enumerate().take(2) {
        cluster
            .make(device, cluster.partition())
            .commit_batch(&rows([n]))
            .unwrap();
    }
    *cluster.stalling.lock() = Some(primaries[2].clone());
    let began = Instant::now();
    assert_eq!(cluster.pass().await, (0, 2));
    assert!((patience..patience * 10).contains(&began.elapsed()));
    let count = |device: &String| cluster.open(device).unwrap().info().unwrap().object_count;
    assert_eq!(primaries[..2].iter().map(count).collect::<Vec<_>>(), [2, 2]);
    *cluster.stalling.lock() = None;
    for _ in 0..3 {
        cluster.pass().await;
    }
    assert!(cluster.equal());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_elsewhere_goes_home_and_is_removed_then() {
    let cluster = Cluster::new();
    let (primaries, other) = cluster.places();
    cluster
        .make(&other, cluster.partition())
        .commit_batch(&rows(0..5))
        .unwrap();
    // On the right device but under a wrong partition, too.
    let wrong = Partition((cluster.partition().0 + 1) % 16);
    cluster.make(&primaries[0], wrong).commit_batch(&rows(5..7)).unwrap();
    for _ in 0..3 {
        cluster.pass().await;
    }
    assert!(cluster.equal());
    assert_eq!(cluster.open(&primaries[2]).unwrap().info().unwrap().object_count, 7);
    assert!(!exists(
        &cluster
            .dir
            .path()
            .join(&other)
            .join(format!("containers/{}", cluster.partition()))
    ));
    assert!(!exists(
        &cluster
            .dir
            .path()
            .join(&primaries[0])
            .join(format!("containers/{wrong}"))
    ));
}

/// The storm found it: the creator of a replica was killed, and then the ring gave the partition to another device.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_for_a_database_that_was_never_made_goes() {
    let cluster = Cluster::new();
    let (primaries, other) = cluster.places();
    let place = cluster.location(&other, cluster.partition());
    std::fs::create_dir_all(place.hash_dir()).unwrap();
    std::fs::write(place.lock_file(), "").unwrap();
    cluster.make(&primaries[0], cluster.partition());
    cluster.pass().await;
    assert!(!exists(place.hash_dir().ancestors().nth(2).unwrap()));
    assert!(cluster.open(&primaries[0]).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handoff_stays_while_a_primary_is_away() {
    let cluster = Cluster::new();
    let (primaries, other) = cluster.places();
    cluster
        .make(&other, cluster.partition())
        .commit_batch(&rows(0..5))
        .unwrap();
    let away = cluster.dir.path().join(&primaries[1]);
    std::fs::remove_dir(&away).unwrap();
    for _ in 0..2 {
        assert!(cluster.pass().await.1 > 0, "somebody is not level");
    }
    assert!(cluster.open(&other).is_ok());
    // An operator may say that two replicas are enough.
    let two = |options: &mut DatabaseReplicatorOptions| {
        (options.handoff_delete, options.handoffs_only) = (Some(2), true);
    };
    common::pass(&mut cluster.replicator(two)).await;
    assert!(cluster.open(&other).is_err());
    std::fs::create_dir(&away).unwrap();
    cluster.pass().await;
    assert!(cluster.equal());
}

/// As when a database was set back to an older file, or a peer made the point up.
#[tokio::test(flavor = "multi_thread")]
async fn a_point_behind_the_last_row_makes_no_row_known() {
    let cluster = Cluster::new();
    let (primaries, other) = cluster.places();
    let away = cluster.make(&other, cluster.partition());
    away.commit_batch(&rows(0..5)).unwrap();
    let point = SyncPoint {
        remote_id: away.info().unwrap().id,
        point: 1_000,
    };
    for device in &primaries {
        let broker = cluster.make(device, cluster.partition());
        broker
            .merge_sync_points(std::slice::from_ref(&point), Direction::Incoming)
            .unwrap();
    }
    cluster.pass().await;
    assert!(cluster.open(&other).is_err(), "it is at home");
    let counts = primaries
        .iter()
        .map(|device| cluster.open(device).unwrap().info().unwrap().object_count);
    assert_eq!(counts.collect::<Vec<_>>(), [5, 5, 5]);
}

/// Its rows may come after those that are sent were read.
#[tokio::test(flavor = "multi_thread")]
async fn a_point_that_comes_while_rows_are_sent_goes_with_the_next_rows() {
    let cluster = Cluster::new();
    let (primaries, other) = cluster.places();
    for device in [&primaries[2], &other] {
        std::fs::remove_dir(cluster.dir.path().join(device)).unwrap();
    }
    let [first, second] = [0, 1].map(|place| cluster.make(&primaries[place], cluster.partition()));
    first.commit_batch(&rows(0..5)).unwrap();
    let (point, broker) = (third(7), cluster.open(&primaries[0]).unwrap());
    let happens = move || {
        broker.commit_batch(&rows([5])).unwrap();
        broker.merge_sync_points(&[point], Direction::Incoming).unwrap();
    };
    *cluster.meanwhile.lock() = Some((primaries[1].clone(), Box::new(happens)));
    cluster.pass().await;
    assert!(cluster.meanwhile.lock().is_none(), "no rows were sent");
    let known = |broker: &Broker| broker.sync_point("third", Direction::Incoming).unwrap();
    assert_eq!((known(&first), known(&second)), (7, -1));
    first.commit_batch(&rows([6])).unwrap();
    cluster.pass().await;
    assert_eq!((second.info().unwrap().object_count, known(&second)), (7, 7));
}

/// Of a replica that is not here.
fn third(point: i64) -> SyncPoint {
    SyncPoint {
        remote_id: "third".into(),
        point,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_long_ago_is_forgotten_once_its_account_knows() {
    let cluster = Cluster::new();
    let (primaries, _) = cluster.places();
    let long_ago = Timestamp::from_seconds(1_000_000_000);
    let new = |device: &str| NewDatabase {
        account: "a".into(),
        container: Some("c".into()),
        put_timestamp: Timestamp::from_seconds(900_000_000),
        created_at: Timestamp::from_seconds(900_000_000),
        policy: PolicyIndex(0),
        unique: device.to_owned(),
    };
    for device in &primaries {
        let broker = Broker::create(cluster.location(device, cluster.partition()), &new(device)).unwrap();
        broker.delete(long_ago).unwrap();
    }
    cluster.pass().await;
    assert!(cluster.open(&primaries[0]).is_ok(), "the account has not been told");
    for device in &primaries {
        let info = cluster.open(device).unwrap().info().unwrap();
        cluster
            .open(device)
            .unwrap()
            .reported(info.put_timestamp, info.delete_timestamp, 0, 0)
            .unwrap();
    }
    cluster.pass().await;
    assert!(primaries.iter().all(|device| cluster.open(device).is_err()));
}
