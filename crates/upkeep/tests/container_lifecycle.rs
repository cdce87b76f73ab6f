//! Buckets on one device, a container server and a gateway in this process.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use arc_swap::ArcSwap;
use http::{Method, Request, StatusCode};
use lifecycle::{LifecycleExpiration, LifecycleRule, LifecycleRules};
use listing_engine::{Broker, Kind, Location, Metadata, NewDatabase};
use parking_lot::Mutex;
use peer::{Address, Body, Call, HttpService, Peers, Response, Service, Timeouts};
use placement::{Device, Ring, RingBuilder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{
    ContainerLifecycle, Disks, HeldKeyLock, InternalClient, KeyLockRefusal, KeyLocks, LifecycleDay, LifecycleOptions,
    LocalServer, RingClient, UpkeepJob, UpkeepStep,
};
use vocabulary::{EntityPath, HashPrefix, PolicyIndex, Timestamp, calendar};
use world::World;

const DAY: u64 = 100;
const RULES: &str = "X-Container-Sysmeta-S3api-Lifecycle-0";
const HASH: fn() -> HashPrefix = || HashPrefix::new("a", "b").unwrap();

fn now() -> u64 {
    World::real().clock.now().seconds()
}

/// What the gateway has, and what it was asked.
#[derive(Default)]
struct Gateway {
    /// The rows of containers, by path.
    listings: Mutex<BTreeMap<String, Vec<Value>>>,
    /// The headers of objects, by path and query.
    objects: Mutex<BTreeMap<String, Vec<(&'static str, String)>>>,
    /// All but listings.
    asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl HttpService for Gateway {
    async fn serve(&self, request: Request<Body>, _: SocketAddr) -> Response {
        let path = vocabulary::names::unquote(request.uri().path()).unwrap();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if request.method() == Method::GET {
            return Response::new(Body::whole(self.list(&path, &query)));
        }
        let what = if query.is_empty() {
            path
        } else {
            format!("{path}?{query}")
        };
        self.asked.lock().push(format!("{} {what}", request.method()));
        let mut response = Response::new(Body::empty());
        let is_container = what.split('/').count() == 4;
        match self.objects.lock().get(&what) {
            Some(headers) => {
                for (name, value) in headers {
                    response.headers_mut().insert(*name, value.parse().unwrap());
                }
            }
            None if is_container => {}
            None => *response.status_mut() = StatusCode::NOT_FOUND,
        }
        if request.method() == Method::DELETE {
            self.objects.lock().remove(&what);
            for (container, rows) in &mut *self.listings.lock() {
                rows.retain(|row| format!("{container}/{}", row["name"].as_str().unwrap()) != what);
            }
        }
        response
    }
}

impl Gateway {
    fn list(&self, path: &str, query: &str) -> String {
        let parameters: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, vocabulary::names::unquote(value).unwrap()))
            .collect();
        let text = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let (prefix, limit) = (text("prefix"), text("limit").parse().unwrap());
        let marker = (text("marker"), text("version_marker"));
        let listings = self.listings.lock();
        let rows = listings.get(path).into_iter().flatten().filter(|row| {
            let (name, version) = (
                row["name"].as_str().unwrap(),
                row["version_id"].as_str().unwrap_or_default(),
            );
            let is_behind = name > marker.0.as_str() || (name == marker.0 && version < marker.1.as_str());
            name.starts_with(&prefix) && is_behind
        });
        Value::from_iter(rows.take(limit).cloned()).to_string()
    }

    /// What began with this verb, since the last look.
    fn asked(&self, verb: &str) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock());
        asked.into_iter().filter(|line| line.starts_with(verb)).collect()
    }
}

/// A container server: its buckets' headers, and seconds by which its clock is behind.
#[derive(Default)]
struct ContainerServer {
    buckets: Mutex<BTreeMap<String, Vec<(&'static str, String)>>>,
    behind: Mutex<u64>,
}

#[async_trait::async_trait]
impl Service for ContainerServer {
    async fn call(&self, call: Call) -> Response {
        let Address::Entity(target) = call.into_raw().address else {
            panic!("no container")
        };
        let mut response = Response::new(Body::empty());
        for (name, value) in &self.buckets.lock()[&target.path.path()] {
            response.headers_mut().insert(*name, value.parse().unwrap());
        }
        let date = calendar::http(now() - *self.behind.lock());
        response.headers_mut().insert("date", date.parse().unwrap());
        response
    }
}

struct Locks;
struct Held;

#[async_trait::async_trait]
impl KeyLocks for Locks {
    async fn take(&self, _: EntityPath, _: PolicyIndex) -> Result<Box<dyn HeldKeyLock>, KeyLockRefusal> {
        Ok(Box::new(Held))
    }
}

#[async_trait::async_trait]
impl HeldKeyLock for Held {
    fn is_there(&self) -> bool {
        false
    }

    async fn keep(&self) -> bool {
        true
    }
}

struct Site {
    dir: tempfile::TempDir,
    gateway: Arc<Gateway>,
    servers: Arc<ContainerServer>,
    job: ContainerLifecycle,
}

impl Site {
    fn new(page: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sd0")).unwrap();
        let (gateway, servers) = (Arc::new(Gateway::default()), Arc::new(ContainerServer::default()));
        let client = InternalClient::new(World::real(), gateway.clone(), "test", 1);
        let disks = Disks::new(World::real(), dir.path(), false);
        let options = LifecycleOptions {
            concurrency: 2,
            page,
            day: LifecycleDay::Seconds(DAY),
            max_clock_skew: Duration::from_secs(60),
            interval: Duration::ZERO,
            processes: 0,
            process: 0,
            hidden_prefix: ".".into(),
            here: LocalServer {
                addresses: vec!["127.0.0.1".parse().unwrap()],
                port: 6201,
            },
        };
        let job = ContainerLifecycle::new(disks, containers(&servers), client, Arc::new(Locks), options);
        Self {
            dir,
            gateway,
            servers,
            job,
        }
    }

    /// A bucket with this rule.
    fn bucket(&self, name: &str, rule: LifecycleRule) {
        self.create(name, rule, &[]);
    }

    /// One that keeps versions.
    fn versioned(&self, name: &str, rule: LifecycleRule) {
        self.create(name, rule, &[("x-container-sysmeta-versions-container", "v")]);
    }

    fn create(&self, name: &str, rule: LifecycleRule, more: &[(&'static str, &str)]) {
        let hash = HASH().container("a", name);
        let location = Location::new(self.dir.path().join("sd0"), Kind::Container, hash.partition(4), hash);
        let broker = Broker::create(
            location,
            &NewDatabase {
                account: "a".into(),
                container: Some(name.into()),
                put_timestamp: Timestamp::from_seconds(1_700_000_000),
                created_at: Timestamp::from_seconds(1_700_000_000),
                policy: PolicyIndex(0),
                unique: name.into(),
            },
        );
        let text = LifecycleRules { rules: vec![rule] }.to_text().unwrap();
        let timestamp = Timestamp::from_seconds(1_700_000_001);
        let mut updates = Metadata::default();
        updates.set(RULES, text.clone(), timestamp);
        let mut headers = vec![("x-container-sysmeta-s3api-lifecycle-0", text)];
        for (name, value) in more {
            updates.set(*name, *value, timestamp);
            headers.push((name, (*value).to_owned()));
        }
        broker.unwrap().update_metadata(&updates).unwrap();
        self.servers.buckets.lock().insert(format!("/a/{name}"), headers);
    }

    /// An object in a bucket that was written so many seconds ago.
    fn object(&self, bucket: &str, key: &str, age: u64) {
        let written = Timestamp::from_seconds(now() - age);
        let row = json!({"name": key, "bytes": 1, "hash": "x", "content_type": "t", "last_modified": written.iso()});
        let path = format!("/v1/a/{bucket}");
        let headers = vec![("x-timestamp", written.internal())];
        self.gateway.objects.lock().insert(format!("{path}/{key}"), headers);
        self.gateway.listings.lock().entry(path).or_default().push(row);
    }

    /// A row of a listing, and what is found there.
    fn put(&self, container: &str, mut row: Value, query: &str, age: u64, headers: &[(&'static str, &str)]) {
        let written = Timestamp::from_seconds(now() - age);
        row["last_modified"] = written.iso().into();
        let path = format!("/v1/a/{container}");
        let object = format!("{path}/{}{query}", row["name"].as_str().unwrap());
        let mut found = vec![("x-backend-data-timestamp", written.internal())];
        found.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        self.gateway.objects.lock().insert(object, found);
        self.gateway.listings.lock().entry(path).or_default().push(row);
    }

    /// The marker of an upload of `k`, and so many parts, all that many seconds old.
    fn upload(&self, bucket: &str, id: &str, parts: usize, [marker_age, parts_age]: [u64; 2]) {
        let container = format!("{bucket}+segments");
        let of_marker = [("x-object-sysmeta-s3api-has-content-type", "no")];
        self.put(
            &container,
            json!({"name": format!("k/{id}")}),
            "",
            marker_age,
            &of_marker,
        );
        for part in 1..=parts {
            self.put(
                &container,
                json!({"name": format!("k/{id}/{part}")}),
                "",
                parts_age,
                &[],
            );
        }
    }

    /// Versions of `k`, newest first; the newest is so old.
    fn versions(&self, bucket: &str, count: u64, age: u64, headers: &[(&'static str, &str)]) {
        for number in 0..count {
            let id = Timestamp::from_seconds(now() - age - number).normal();
            let row = json!({"name": "k", "version_id": id});
            self.put(bucket, row, &format!("?version-id={id}"), age + number, headers);
        }
    }

    /// A pass: done and failed.
    async fn pass(&mut self) -> (u64, u64) {
        let mut sum = (0, 0);
        loop {
            match self.job.step().await {
                UpkeepStep::Did { done, failed } => sum = (sum.0 + done, sum.1 + failed),
                UpkeepStep::PassOver => return sum,
            }
        }
    }
}

/// The one device has all partitions.
fn containers(servers: &Arc<ContainerServer>) -> RingClient {
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.1", 6201, servers.clone());
    let mut builder = RingBuilder::new(4, 1.0, 1).unwrap();
    let device = Device {
        region: 1,
        zone: 1,
        weight: 1.0,
        ip: "127.0.0.1".into(),
        port: 6201,
        replication_ip: "127.0.0.1".into(),
        replication_port: 6201,
        device: "sd0".into(),
        ..Device::default()
    };
    builder.add(device).unwrap();
    builder.rebalance(1, 0).unwrap();
    let wait = Duration::from_secs(30);
    RingClient {
        ring: Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap()))),
        hash: HASH(),
        peers: Arc::new(peers),
        timeouts: Timeouts {
            connect: wait,
            response: wait,
        },
    }
}

fn expires(days: u32) -> LifecycleRule {
    LifecycleRule {
        is_enabled: true,
        expiration: Some(LifecycleExpiration::Days(days)),
        ..LifecycleRule::default()
    }
}

/// A machine whose clock is ahead of the bucket's servers deletes nothing that is not due by theirs.
#[tokio::test]
async fn the_clocks_of_the_buckets_servers_count() {
    let mut site = Site::new(1000);
    site.bucket("b", expires(1));
    site.object("b", "due", DAY + 20);
    *site.servers.behind.lock() = 3 * 86_400;
    assert_eq!(site.pass().await, (0, 1));
    assert!(site.gateway.asked("DELETE").is_empty());
    // Closer than that, but not yet due by the earlier clock.
    *site.servers.behind.lock() = 50;
    assert_eq!(site.pass().await, (0, 0));
    assert!(site.gateway.asked("DELETE").is_empty());
    *site.servers.behind.lock() = 0;
    assert_eq!(site.pass().await, (1, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b/due"]);
}

fn ends_uploads() -> LifecycleRule {
    LifecycleRule {
        is_enabled: true,
        abort_after_days: Some(1),
        ..LifecycleRule::default()
    }
}

/// A bucket with much to do holds up no other, and a key with many versions and uploads costs their sum at most.
#[tokio::test]
async fn buckets_take_turns_and_versions_are_looked_at_once() {
    let mut site = Site::new(10);
    site.versioned("heavy", ends_uploads());
    site.versions("heavy", 25, 5, &[]);
    for number in 0..20 {
        site.upload("heavy", &format!("u{number:02}"), 1, [DAY + 20, DAY + 20]);
    }
    for number in 0..8 {
        let bucket = format!("b{number}");
        site.bucket(&bucket, expires(1));
        site.object(&bucket, "due", DAY + 20);
    }
    assert_eq!(site.pass().await, (28, 0));
    let asked = site.gateway.asked("");
    let place = |what: &str| asked.iter().position(|line| line == what).unwrap();
    for number in 0..8 {
        let expired = place(&format!("DELETE /v1/a/b{number}/due"));
        assert!(expired < place("DELETE /v1/a/heavy+segments/k/u00"), "{number}");
    }
    let looks = asked.iter().filter(|line| line.contains("?version-id=")).count();
    assert_eq!(looks, 25);
}

/// What becomes due meanwhile does not wait for the end of a long pass.
#[tokio::test]
async fn the_devices_are_looked_at_anew_while_a_bucket_has_much_to_do() {
    let mut site = Site::new(10);
    site.bucket("heavy", ends_uploads());
    for number in 0..20 {
        site.upload("heavy", &format!("u{number:02}"), 1, [DAY + 20, DAY + 20]);
    }
    while site.gateway.asked("DELETE").is_empty() {
        site.job.step().await;
    }
    site.bucket("late", expires(1));
    site.object("late", "due", DAY + 20);
    site.pass().await;
    let deleted = site.gateway.asked("DELETE");
    let place = |what: &str| deleted.iter().position(|line| line == what).unwrap();
    assert!(place("DELETE /v1/a/late/due") < place("DELETE /v1/a/heavy+segments/k/u05"));
}

/// What is older than an upload was not made by it.
#[tokio::test]
async fn older_versions_are_not_looked_at() {
    let mut site = Site::new(10);
    site.versioned("b", ends_uploads());
    site.versions("b", 25, DAY + 5000, &[]);
    for number in 0..3 {
        site.upload("b", &format!("u{number}"), 0, [DAY + 20, 0]);
    }
    assert_eq!(site.pass().await, (3, 0));
    let asked = site.gateway.asked("HEAD");
    assert!(!asked.iter().any(|line| line.contains("?version-id=")), "{asked:?}");
}

/// The marker of an upload is written anew when what it made is about to be deleted: after a crash in between it is
/// younger than the version whose parts must stay.
#[tokio::test]
async fn parts_of_a_version_stay_whose_upload_is_open_again() {
    let mut site = Site::new(10);
    site.versioned("b", ends_uploads());
    site.upload("b", "u", 2, [DAY + 20, DAY + 9000]);
    site.versions("b", 1, DAY + 8000, &[("x-object-sysmeta-s3api-upload-id", "u")]);
    assert_eq!(site.pass().await, (0, 0));
    assert_eq!(site.gateway.asked("DELETE"), ["DELETE /v1/a/b+segments/k/u"]);
}

/// A step deletes a page of parts, so that a shutdown waits for no more.
#[tokio::test]
async fn an_upload_of_many_parts_ends_in_steps() {
    let mut site = Site::new(2);
    site.bucket("b", ends_uploads());
    site.upload("b", "u", 5, [DAY + 20, DAY + 20]);
    let mut most = 0;
    let mut all = vec![];
    while site.job.step().await != UpkeepStep::PassOver {
        let deleted = site.gateway.asked("DELETE");
        most = most.max(deleted.len());
        all.extend(deleted);
    }
    assert!(most <= 2, "{most}");
    assert_eq!(all.len(), 6);
    assert_eq!(all[5], "DELETE /v1/a/b+segments/k/u");
}
