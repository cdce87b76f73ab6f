//! Buckets on one device, a container server and a gateway in this process.

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use lifecycle::{LifecycleRule, LifecycleRules};
use listing_engine::{Broker, Kind, Location, Metadata, NewDatabase};
use parking_lot::Mutex;
use peer::message::header_names::{X_CRYPTO_AS_STORED, X_UNLESS_CURRENT};
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
use vocabulary::{EntityPath, HashPrefix, Policies, PolicyIndex, Timestamp, calendar};
use world::World;

/// The type of a delete marker.
pub const MARKER: &str = "application/x-deleted;swift_versions_deleted=1";
pub const DAY: u64 = 100;
/// What markers of uploads have.
const OF_MARKERS: [&str; 2] = [
    "x-object-sysmeta-s3api-has-content-type",
    "x-object-sysmeta-s3api-upload-reopened",
];
const RULES: &str = "X-Container-Sysmeta-S3api-Lifecycle-0";
const HASH: fn() -> HashPrefix = || HashPrefix::new("a", "b").unwrap();

pub fn now() -> u64 {
    World::real().clock.now().seconds()
}

/// What the gateway has, and what it was asked.
#[derive(Default)]
pub struct Gateway {
    /// The rows of containers, by path.
    pub listings: Mutex<BTreeMap<String, Vec<Value>>>,
    /// The headers of objects, by path and query.
    pub objects: Mutex<BTreeMap<String, Vec<(&'static str, String)>>>,
    /// What servers fail for begins with one of these.
    pub failing: Mutex<Vec<String>>,
    /// Paths whose objects cannot be decrypted.
    pub sealed: Mutex<Vec<String>>,
    /// Paths of what cannot be read.
    pub unreadable: Mutex<Vec<String>>,
    /// Paths of which the answer to the next deletion is lost.
    pub losing: Mutex<Vec<String>>,
    /// A version that a client makes the current one while it is looked at.
    pub made_current: Mutex<Option<String>>,
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
        let at = |query: &str| match query.is_empty() {
            true => path.clone(),
            false => format!("{path}?{query}"),
        };
        if request.method() == Method::PUT {
            self.store(path, request.headers());
            return with_status(StatusCode::CREATED);
        }
        // What is no link is shown as it is.
        let (what, link) = (at(query.replace("symlink=get", "").trim_end_matches('&')), at(&query));
        self.asked.lock().push(format!("{} {what}", request.method()));
        let mut response = Response::new(Body::empty());
        let is_container = what.split('/').count() == 4;
        let objects = self.objects.lock();
        match objects.get(&link).or_else(|| objects.get(&what)) {
            Some(headers) => {
                for (name, value) in headers {
                    response.headers_mut().insert(*name, value.parse().unwrap());
                }
            }
            None if is_container => {}
            None => *response.status_mut() = StatusCode::NOT_FOUND,
        }
        drop(objects);
        let is_marker = |kind: &HeaderValue| kind == MARKER;
        if request.method() == Method::HEAD && response.headers().get("content-type").is_some_and(is_marker) {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        if self.failing.lock().iter().any(|path| what.starts_with(path)) {
            return with_status(StatusCode::SERVICE_UNAVAILABLE);
        }
        let is_as_stored = request.headers().contains_key(X_CRYPTO_AS_STORED);
        let is_sealed = |path: &String| what.starts_with(path);
        let is_sealed = request.method() == Method::HEAD && !is_as_stored && self.sealed.lock().iter().any(is_sealed);
        if is_sealed || self.unreadable.lock().iter().any(|path| what.starts_with(path)) {
            return with_status(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let is_made_current = self.made_current.lock().as_ref() == Some(&what);
        if is_made_current && request.headers().contains_key(X_UNLESS_CURRENT) {
            *response.status_mut() = StatusCode::CONFLICT;
            return response;
        }
        if request.method() == Method::DELETE {
            self.objects.lock().remove(&what);
            for (container, rows) in &mut *self.listings.lock() {
                rows.retain(|row| format!("{container}/{}", row["name"].as_str().unwrap()) != what);
            }
            let mut losing = self.losing.lock();
            if let Some(lost) = losing.iter().position(|path| *path == what) {
                losing.remove(lost);
                return with_status(StatusCode::SERVICE_UNAVAILABLE);
            }
        }
        response
    }
}

fn with_status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

impl Gateway {
    /// Keeps the marker of an upload.
    fn store(&self, path: String, headers: &HeaderMap) {
        self.asked.lock().push(format!("PUT {path}"));
        let text = |name: &str| Some(headers.get(name)?.to_str().unwrap().to_owned());
        let kept = OF_MARKERS.into_iter().filter_map(|name| Some((name, text(name)?)));
        let written = Timestamp::from_seconds(now());
        let time = [("x-backend-data-timestamp", written.internal())];
        self.objects.lock().insert(path.clone(), kept.chain(time).collect());
        let (container, name) = path.match_indices('/').nth(3).map(|(at, _)| path.split_at(at)).unwrap();
        let row = json!({"name": &name[1..], "last_modified": written.iso()});
        self.listings.lock().entry(container.to_owned()).or_default().push(row);
    }

    /// What is listed there.
    pub fn names(&self, container: &str) -> Vec<String> {
        let listings = self.listings.lock();
        let rows = listings.get(&format!("/v1/a/{container}")).into_iter().flatten();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    fn list(&self, path: &str, query: &str) -> String {
        let parameters: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, vocabulary::names::unquote(value).unwrap()))
            .collect();
        let text = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let (prefix, limit) = (text("prefix"), text("limit").parse().unwrap_or(usize::MAX));
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
    pub fn asked(&self, verb: &str) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock());
        asked.into_iter().filter(|line| line.starts_with(verb)).collect()
    }
}

/// A container server: its buckets' headers, what it lists, whether it fails at that, and seconds by which its clock is
/// behind.
#[derive(Default)]
pub struct ContainerServer {
    buckets: Mutex<BTreeMap<String, Vec<(&'static str, String)>>>,
    pub listed: Mutex<BTreeMap<String, Vec<Value>>>,
    pub lists_nothing: Mutex<bool>,
    pub behind: Mutex<u64>,
}

#[async_trait::async_trait]
impl Service for ContainerServer {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let Address::Entity(target) = call.address else {
            panic!("no container")
        };
        if call.method == Method::GET {
            if *self.lists_nothing.lock() {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return response;
            }
            let rows = self.listed.lock().get(&target.path.path()).cloned().unwrap_or_default();
            return Response::new(Body::whole(Value::from(rows).to_string()));
        }
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

pub struct Site {
    dir: tempfile::TempDir,
    pub gateway: Arc<Gateway>,
    pub servers: Arc<ContainerServer>,
    pub job: ContainerLifecycle,
}

impl Site {
    pub fn new(page: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sd0")).unwrap();
        let (gateway, servers) = (Arc::new(Gateway::default()), Arc::new(ContainerServer::default()));
        let client = InternalClient::new(World::real(), gateway.clone(), "test", 3);
        let disks = Disks::new(World::real(), dir.path(), false);
        let options = LifecycleOptions {
            concurrency: 2,
            page,
            day: LifecycleDay::Seconds(DAY),
            max_clock_skew: Duration::from_secs(60),
            policies: Policies::default(),
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
    pub fn bucket(&self, name: &str, rule: LifecycleRule) {
        self.create(name, PolicyIndex::LEGACY, rule, &[]);
    }

    /// One that keeps versions.
    pub fn versioned(&self, name: &str, rule: LifecycleRule) {
        self.create(
            name,
            PolicyIndex::LEGACY,
            rule,
            &[("x-container-sysmeta-versions-container", "v")],
        );
    }

    pub fn create(&self, name: &str, policy: PolicyIndex, rule: LifecycleRule, more: &[(&'static str, &str)]) {
        let hash = HASH().container("a", name);
        let location = Location::new(self.dir.path().join("sd0"), Kind::Container, hash.partition(4), hash);
        let broker = Broker::create(
            location,
            &NewDatabase {
                account: "a".into(),
                container: Some(name.into()),
                put_timestamp: Timestamp::from_seconds(1_700_000_000),
                created_at: Timestamp::from_seconds(1_700_000_000),
                policy,
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
    pub fn object(&self, bucket: &str, key: &str, age: u64) {
        let written = Timestamp::from_seconds(now() - age);
        let row = json!({"name": key, "bytes": 1, "hash": "x", "content_type": "t", "last_modified": written.iso()});
        let path = format!("/v1/a/{bucket}");
        let headers = vec![("x-timestamp", written.internal())];
        self.gateway.objects.lock().insert(format!("{path}/{key}"), headers);
        self.gateway.listings.lock().entry(path).or_default().push(row);
    }

    /// A row of a listing, and what is found there.
    pub fn put(&self, container: &str, mut row: Value, query: &str, age: u64, headers: &[(&'static str, &str)]) {
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
    pub fn upload(&self, bucket: &str, id: &str, parts: usize, [marker_age, parts_age]: [u64; 2]) {
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

    /// This marker of an upload says that upkeep has written it anew.
    pub fn reopen(&self, path: &str) {
        let mut objects = self.gateway.objects.lock();
        let marker = objects.get_mut(path).unwrap();
        marker.push(("x-object-sysmeta-s3api-upload-reopened", "true".into()));
    }

    /// Versions of `k`, newest first; the newest is so old.
    pub fn versions(&self, bucket: &str, count: u64, age: u64, headers: &[(&'static str, &str)]) {
        for number in 0..count {
            let id = Timestamp::from_seconds(now() - age - number).normal();
            let row = json!({"name": "k", "version_id": id});
            self.put(bucket, row, &format!("?version-id={id}"), age + number, headers);
        }
    }

    /// A pass: done and failed.
    pub async fn pass(&mut self) -> (u64, u64) {
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
