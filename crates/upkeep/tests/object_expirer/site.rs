//! A gateway that lists a queue, container servers that record what they are sent, and object servers.

use crate::common::{Fake, ring_client};
use http::{Method, Request};
use parking_lot::Mutex;
use peer::deletes::{CheckedDelete, DeleteList, OneDelete, decode, encode_checked, encode_statuses};
use peer::{Address, Body, Call, HttpService, PartitionTarget, Peers, Response, Service};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{Delays, ExpirerOptions, InternalClient, ObjectExpirer, ObjectServers};
use vocabulary::{PolicyIndex, Timestamp};
use world::World;

/// A cluster as the expirer sees it.
#[derive(Default)]
pub struct Cluster {
    /// Rows of the queue: container, name, content type.
    pub queue: Mutex<Vec<(String, String, &'static str)>>,
    /// What DELETE of a path is answered, instead of 204.
    pub answers: BTreeMap<&'static str, u16>,
    pub deleted: Mutex<Vec<String>>,
    /// A server of every object does not answer.
    pub one_is_away: Mutex<bool>,
    /// When objects were written, if the gateway knows.
    pub version: Mutex<Option<Timestamp>>,
    /// The containers of the queue that were listed, in the order of the asking.
    pub listed: Mutex<Vec<String>>,
    /// Container servers, and how many requests they had received at each deletion.
    pub watched: Mutex<Option<Arc<Fake>>>,
    pub updates_before: Mutex<Vec<usize>>,
}

#[async_trait::async_trait]
impl HttpService for Cluster {
    async fn serve(&self, request: Request<Body>, _: SocketAddr) -> Response {
        let path = request.uri().path().to_owned();
        let (status, body) = match *request.method() {
            Method::HEAD => return self.head(&path),
            Method::GET => (200, self.list(&path, request.uri().query().unwrap())),
            _ => {
                let headers = request.headers();
                let text = |name: &str| headers.get(name).map_or("-", |value| value.to_str().unwrap());
                let (time, only) = (text("x-timestamp"), text("x-if-delete-at"));
                let clean = text("x-backend-clean-expiring-object-queue");
                self.deleted.lock().push(format!("{path} {time} {only} {clean}"));
                if let Some(containers) = self.watched.lock().as_ref() {
                    self.updates_before.lock().push(containers.received.lock().len());
                }
                if path.starts_with("/v1/a/down/") {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
                (self.status(&path), String::new())
            }
        };
        let mut response = Response::new(Body::whole(body));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        if status < 500 && !*self.one_is_away.lock() {
            let headers = response.headers_mut();
            headers.insert("x-backend-all-primaries-done", "true".parse().unwrap());
        }
        if let Some(version) = *self.version.lock() {
            let headers = response.headers_mut();
            headers.insert("x-backend-timestamp", version.internal().parse().unwrap());
        }
        response
    }
}

impl Cluster {
    fn status(&self, path: &str) -> u16 {
        let usual = if path.starts_with("/v1/a/down/") { 503 } else { 204 };
        self.answers.get(path).copied().unwrap_or(usual)
    }

    /// A container of policy 7; `far` and `down` are spread over shards, and there is no `lost`. The servers of `down`,
    /// of policy 8, are down; the policy of `gone`, 9, has no ring. The bucket `locked` has an object lock.
    fn head(&self, path: &str) -> Response {
        let mut response = Response::new(Body::empty());
        let name = path.rsplit('/').next().unwrap();
        let (state, policy) = match name {
            "far" => ("sharded", "7"),
            "down" => ("sharded", "8"),
            "gone" => ("unsharded", "9"),
            _ => ("unsharded", "7"),
        };
        if path.ends_with("/lost") {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        }
        let headers = response.headers_mut();
        if name == "locked" {
            headers.insert("x-container-sysmeta-s3api-object-lock", "Enabled".parse().unwrap());
        }
        headers.insert("x-backend-sharding-state", state.parse().unwrap());
        headers.insert("x-backend-storage-policy-index", policy.parse().unwrap());
        response
    }

    fn list(&self, path: &str, query: &str) -> String {
        let (first, marker) = query.split_once("&marker=").unwrap();
        let limit = first.split_once("&limit=").map(|(_, limit)| limit.parse().unwrap());
        let marker = vocabulary::names::unquote(marker).unwrap();
        let container = path
            .strip_prefix("/v1/.expiring_objects")
            .unwrap()
            .trim_start_matches('/');
        self.listed.lock().push(container.to_owned());
        let queue = self.queue.lock();
        let mut names: Vec<(String, &str)> = match container {
            "" => queue.iter().map(|row| (row.0.clone(), "")).collect(),
            _ => queue
                .iter()
                .filter(|row| row.0 == container)
                .map(|row| (row.1.clone(), row.2))
                .collect(),
        };
        names.sort();
        names.dedup();
        let rows = names.iter().filter(|(name, _)| *name > marker);
        let rows = rows.take(limit.unwrap_or(usize::MAX));
        let rows = rows.map(|(name, kind)| serde_json::json!({"name": name, "content_type": kind}));
        serde_json::Value::Array(rows.collect()).to_string()
    }
}

/// Object servers that take deletions in batches.
#[derive(Default)]
pub struct Servers {
    /// What they answer about an object instead of 204, and on a device.
    pub answers: BTreeMap<(&'static str, &'static str), u16>,
    /// They do not know the verb.
    pub are_foreign: bool,
    /// They are of a time in which deletions could not be checked.
    pub are_earlier: bool,
    /// Objects were written so many seconds ago.
    pub written_ago: u64,
    /// They begin to answer, and never end.
    pub stall: bool,
    /// Devices and what they were asked to check, the empty batches left out.
    pub checks: Mutex<Vec<(String, Vec<OneDelete>)>>,
    /// Whether each batch was to be checked only, in their order.
    pub order: Mutex<Vec<bool>>,
    /// Devices and what they were asked to delete.
    pub received: Mutex<Vec<(String, Vec<OneDelete>)>>,
}

#[async_trait::async_trait]
impl Service for Servers {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        assert_eq!(call.headers["x-backend-storage-policy-index"], "7");
        let Address::Partition(PartitionTarget { device, .. }) = call.address else {
            panic!("{:?}", call.address)
        };
        let DeleteList { only_checks, requests } = decode(&call.body.collect(1 << 20).await.unwrap()).unwrap();
        let status = |one: &OneDelete| {
            let answer = self.answers.get(&(one.path.object.as_deref().unwrap(), &*device));
            answer.copied().unwrap_or(204)
        };
        let statuses: Vec<u16> = requests.iter().map(status).collect();
        let body = match only_checks {
            true => encode_checked(&statuses.iter().map(|status| self.checked(*status)).collect::<Vec<_>>()),
            false => encode_statuses(&statuses),
        };
        let mut response = Response::new(Body::whole(body));
        if self.are_foreign {
            *response.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
        }
        if self.are_earlier && only_checks {
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
        }
        if self.stall && !requests.is_empty() {
            let silence = futures_util::stream::pending();
            response = Response::new(Body::stream(silence, Some(100)));
        }
        if !requests.is_empty() {
            let received = if only_checks { &self.checks } else { &self.received };
            received.lock().push((device.to_string(), requests));
            self.order.lock().push(only_checks);
        }
        response
    }
}

impl Servers {
    fn checked(&self, status: u16) -> CheckedDelete {
        let tombstone = (status == 204).then(|| Timestamp::from_seconds(ago(self.written_ago.max(200))));
        CheckedDelete { status, tombstone }
    }
}

/// The same site with object servers that can be reached.
pub fn with_servers(mut site: Site, servers: &Arc<Servers>) -> Site {
    let containers = ring_client(&site.fake);
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.2", 6299, servers.clone());
    site.expirer = site.expirer.in_batches(ObjectServers {
        rings: [7, 8]
            .map(|policy| (PolicyIndex(policy), containers.ring.clone()))
            .into(),
        containers: containers.ring,
        hash: containers.hash,
        peers: Arc::new(peers),
        timeouts: containers.timeouts,
    });
    site
}

pub struct Site {
    pub cluster: Arc<Cluster>,
    pub fake: Arc<Fake>,
    pub expirer: ObjectExpirer,
}

pub fn site(
    rows: &[(String, &'static str)],
    answers: &[(&'static str, u16)],
    change: impl FnOnce(&mut ExpirerOptions),
) -> Site {
    let queue = rows
        .iter()
        .map(|(name, kind)| ("0000086400".to_owned(), name.clone(), *kind));
    let cluster = Arc::new(Cluster {
        queue: Mutex::new(queue.collect()),
        answers: answers.iter().copied().collect(),
        ..Cluster::default()
    });
    let fake = Arc::new(Fake::default());
    let mut options = ExpirerOptions {
        account: ".expiring_objects".into(),
        concurrency: 2,
        per_second: 0.0,
        processes: 0,
        process: 0,
        reclaim_age: Duration::from_secs(604_800),
        report_interval: Duration::from_secs(300),
        listing_limit: 10_000,
        delays: Delays::default(),
        idle: false,
    };
    change(&mut options);
    let client = InternalClient::new(World::real(), cluster.clone(), "test", 3);
    let expirer = ObjectExpirer::new(World::real(), client, ring_client(&fake), options);
    Site { cluster, fake, expirer }
}

pub fn ago(seconds: u64) -> u64 {
    World::real().clock.now().seconds() - seconds
}
