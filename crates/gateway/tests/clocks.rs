//! A gateway whose clock is behind what is stored: its writes win all the same, or are refused with the reason; none is
//! acknowledged and thrown away.
//!
//! Every node is a scripted storage service that remembers one time per path and answers as OpenStack's servers do.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use peer::{Address, Body, Call, HttpService, Peers, Response, Service};
use placement::{Device, Ring, RingBuilder};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use telemetry::metrics::{MetricsPage, MetricsSource};
use vocabulary::{HashPrefix, Policies, PolicyIndex, Timestamp};
use world::clock::RealClock;
use world::{BoxFuture, Clock, World};

/// What the gateway's clock shows. It stands still.
const NOW: u64 = 1_700_000_000;

struct StoppedClock(RealClock);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(NOW)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

fn after(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(NOW + seconds)
}

/// What a node has of one path.
#[derive(Clone, Copy, Default)]
struct Stored {
    at: Timestamp,
    is_deleted: bool,
    /// Another gateway writes so much later after each attempt of this one.
    next_writer: u64,
}

#[derive(Default)]
struct Node {
    stored: Mutex<HashMap<String, Stored>>,
    /// It does not answer.
    is_out: Mutex<bool>,
    /// The writes that it has seen: verb, path and time.
    writes: Mutex<Vec<(Method, String, Timestamp)>>,
    /// 409s of containers say what is newer, as ours do.
    tells_times: bool,
}

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let mut call = call.into_raw();
        let Address::Entity(target) = call.address.clone() else {
            return described(400, &[]);
        };
        if *self.is_out.lock() {
            return described(503, &[]);
        }
        let (path, is_object) = (target.path.path(), target.path.object.is_some());
        let stored = self.stored.lock().get(&path).copied();
        let is_read = matches!(call.method, Method::GET | Method::HEAD);
        if is_read || (!is_object && stored.is_none()) {
            return described_of(is_object, stored);
        }
        let at: Timestamp = call.headers["x-timestamp"].to_str().unwrap().parse().unwrap();
        self.writes.lock().push((call.method.clone(), path.clone(), at));
        let status = self.write(&call.method, &path, at, stored);
        if status == 201 {
            // The first look at a body is its acceptance.
            while let Some(chunk) = call.body.next().await {
                if chunk.is_err() {
                    return described(499, &[]);
                }
            }
            self.keep(&call.method, path, at, stored);
        }
        match (status, stored) {
            (409, Some(stored)) if is_object || self.tells_times => {
                described(409, &[("x-backend-timestamp", &stored.at.internal())])
            }
            _ => described(status, &[]),
        }
    }
}

impl Node {
    fn write(&self, method: &Method, path: &str, at: Timestamp, stored: Option<Stored>) -> u16 {
        let Some(known) = stored else {
            return if *method == Method::PUT { 201 } else { 404 };
        };
        if known.at >= at {
            let again = Stored {
                at: Timestamp::from_ticks(known.at.ticks() + known.next_writer).unwrap(),
                ..known
            };
            self.stored.lock().insert(path.to_owned(), again);
            return 409;
        }
        match *method {
            Method::PUT => 201,
            Method::POST if known.is_deleted => 404,
            _ => {
                self.keep(method, path.to_owned(), at, stored);
                match *method {
                    Method::POST => 202,
                    _ if known.is_deleted => 404,
                    _ => 204,
                }
            }
        }
    }

    fn keep(&self, method: &Method, path: String, at: Timestamp, stored: Option<Stored>) {
        let kept = Stored {
            at,
            is_deleted: *method == Method::DELETE,
            ..stored.unwrap_or_default()
        };
        self.stored.lock().insert(path, kept);
    }
}

fn described_of(is_object: bool, stored: Option<Stored>) -> Response {
    let stored = stored.unwrap_or_default();
    let at = stored.at.internal();
    match is_object {
        true if stored.at == Timestamp::ZERO => described(404, &[]),
        true if stored.is_deleted => described(404, &[("x-backend-timestamp", &at)]),
        true => described(
            200,
            &[("x-backend-timestamp", &at), ("x-timestamp", &at), ("etag", "e")],
        ),
        false => {
            let put = if stored.is_deleted { "0000000001.00000" } else { &at };
            let times = [
                ("x-backend-storage-policy-index", "0"),
                ("x-backend-timestamp", "0000000001.00000"),
                ("x-backend-put-timestamp", put),
                (
                    "x-backend-delete-timestamp",
                    if stored.is_deleted { &at } else { "0000000000.00000" },
                ),
            ];
            described(if stored.is_deleted { 404 } else { 204 }, &times)
        }
    }
}

fn described(code: u16, headers: &[(&'static str, &str)]) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).unwrap();
        response.headers_mut().insert(*name, value);
    }
    response
}

struct Cluster {
    gateway: Gateway,
    nodes: Vec<Arc<Node>>,
}

fn cluster() -> Cluster {
    cluster_of(true)
}

fn cluster_of(tells_times: bool) -> Cluster {
    let node = || Node {
        tells_times,
        ..Node::default()
    };
    let nodes = [(); 3].map(|()| Arc::new(node()));
    let services = nodes.clone().map(|node| node as Arc<dyn Service>);
    Cluster {
        gateway: gateway_before(services),
        nodes: nodes.into(),
    }
}

/// A gateway before three nodes, all of them primaries of everything.
fn gateway_before(services: [Arc<dyn Service>; 3]) -> Gateway {
    let mut world = World::real();
    world.clock = Arc::new(StoppedClock(RealClock::new()));
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    let mut peers = Peers::new(world.clone());
    for (port, service) in (1..).zip(services) {
        let device = Device {
            region: 1,
            zone: u32::from(port),
            weight: 1.0,
            ip: "node".into(),
            port,
            device: format!("d{port}"),
            ..Device::default()
        };
        builder.add(device).unwrap();
        peers.register("node", port, service);
    }
    builder.rebalance(7, 0).unwrap();
    let ring = Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap())));
    let rings = Rings {
        account: ring.clone(),
        container: ring.clone(),
        objects: BTreeMap::from([(PolicyIndex(0), ring)]),
        policies: Policies::default(),
        hash: HashPrefix::new("p", "s").unwrap(),
        nodes: gateway::nodes::NodeTables::default(),
    };
    let options = GatewayOptions {
        node_timeout: Duration::from_secs(1),
        recoverable_node_timeout: Duration::from_secs(1),
        client_timeout: Duration::from_secs(2),
        allow_account_management: true,
        ..GatewayOptions::default()
    };
    Gateway::new(Shared::new(world, options, rings, Arc::new(peers), None), vec![])
}

const OBJECT: &str = "/a/c/o";
const CONTAINER: &str = "/a/c";

impl Cluster {
    /// The first nodes, as many as are wanted, have the path since then.
    fn store(&self, nodes: usize, path: &str, at: Timestamp) {
        self.store_as(
            nodes,
            path,
            Stored {
                at,
                ..Stored::default()
            },
        );
    }

    fn store_as(&self, nodes: usize, path: &str, stored: Stored) {
        for node in &self.nodes[..nodes] {
            node.stored.lock().insert(path.into(), stored);
        }
    }

    async fn ask(&self, method: &Method, path: &str, body: &Bytes, headers: &[(&'static str, &str)]) -> Response {
        let chunks: Vec<_> = body.chunks(10_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
        let body = Body::stream(futures_util::stream::iter(chunks), Some(body.len() as u64));
        let length = body.length().unwrap();
        let mut request = http::Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = format!("/v1{path}").parse().unwrap();
        let mut map = HeaderMap::new();
        map.insert("content-length", HeaderValue::from(length));
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        *request.headers_mut() = map;
        self.gateway.serve(request, "127.0.0.1:1".parse().unwrap()).await
    }

    async fn status(&self, method: &Method, path: &str, body: &Bytes, headers: &[(&'static str, &str)]) -> u16 {
        self.ask(method, path, body, headers).await.status().as_u16()
    }

    /// The newest time at which each node has the path.
    fn times(&self, path: &str) -> Vec<Timestamp> {
        let time = |node: &Arc<Node>| node.stored.lock().get(path).map_or(Timestamp::ZERO, |s| s.at);
        self.nodes.iter().map(time).collect()
    }

    /// How often each node was sent this write.
    fn writes(&self, method: &Method, path: &str) -> Vec<usize> {
        let count = |node: &Arc<Node>| {
            let writes = node.writes.lock();
            writes.iter().filter(|(m, p, _)| m == method && p == path).count()
        };
        self.nodes.iter().map(count).collect()
    }
}

fn small() -> Bytes {
    Bytes::from_static(b"small enough to be read at once")
}

fn large() -> Bytes {
    Bytes::from(vec![7; 300_000])
}

fn object_writes() -> [(Method, Bytes, u16); 4] {
    [
        (Method::PUT, small(), 201),
        (Method::PUT, large(), 201),
        (Method::POST, Bytes::new(), 202),
        (Method::DELETE, Bytes::new(), 204),
    ]
}

#[tokio::test]
async fn a_write_wins_over_what_a_gateway_with_a_faster_clock_has_stored() {
    for newer_on in [1, 2, 3] {
        for (method, body, expected) in object_writes() {
            let cluster = cluster();
            cluster.store(3, OBJECT, Timestamp::from_seconds(1));
            cluster.store(newer_on, OBJECT, after(30));
            assert_eq!(
                cluster.status(&method, OBJECT, &body, &[]).await,
                expected,
                "{method} {newer_on}"
            );
            let times = cluster.times(OBJECT);
            assert!(
                times.iter().all(|at| *at > after(30) && *at < after(31)),
                "{method} {newer_on}: {times:?}"
            );
        }
    }
}

#[tokio::test]
async fn once_it_has_seen_a_time_the_gateway_writes_later_ones() {
    let cluster = cluster();
    cluster.store(3, OBJECT, after(30));
    assert_eq!(cluster.status(&Method::GET, OBJECT, &Bytes::new(), &[]).await, 200);
    assert_eq!(cluster.status(&Method::PUT, OBJECT, &small(), &[]).await, 201);
    assert_eq!(
        cluster.writes(&Method::PUT, OBJECT),
        [1, 1, 1],
        "nothing had to be sent again"
    );
    assert!(cluster.times(OBJECT).iter().all(|at| *at > after(30)));
}

#[tokio::test]
async fn what_is_too_far_ahead_is_refused_and_drags_no_clock() {
    for far_on in [1, 3] {
        for (method, body, _) in object_writes() {
            let cluster = cluster();
            cluster.store(3, OBJECT, Timestamp::from_seconds(1));
            cluster.store(far_on, OBJECT, after(61));
            let response = cluster.ask(&method, OBJECT, &body, &[]).await;
            assert_eq!(response.status().as_u16(), 503, "{method} {far_on}");
            assert!(response.headers().contains_key("retry-after"), "{method}");
            let text = response.into_body().collect(1 << 20).await.unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(
                text.contains("61.0 seconds") && text.contains("max_clock_skew"),
                "{text}"
            );
            assert_eq!(cluster.status(&Method::PUT, "/a/c/other", &small(), &[]).await, 201);
            assert!(cluster.times("/a/c/other").iter().all(|at| *at < after(1)), "{method}");
        }
    }
}

#[tokio::test]
async fn a_write_wins_over_one_that_may_have_ended_before_it_began() {
    for newer_on in [1, 2, 3] {
        for (method, body, expected) in object_writes() {
            let cluster = cluster();
            cluster.store(3, OBJECT, Timestamp::from_seconds(1));
            // Written at the very moment at which the request came, as a clock says that may be a little ahead.
            cluster.store(newer_on, OBJECT, after(0));
            let status = cluster.status(&method, OBJECT, &body, &[]).await;
            assert_eq!(status, expected, "{method} {newer_on}");
            let times = cluster.times(OBJECT);
            assert!(times.iter().all(|at| *at > after(0)), "{method} {newer_on}: {times:?}");
        }
    }
}

#[tokio::test]
async fn a_skewed_clock_is_counted() {
    let cluster = cluster();
    let counts = || {
        let mut page = MetricsPage::default();
        cluster.gateway.clock_skew_metrics().report(&mut page);
        let page = page.write();
        ["resent", "refused"].map(|outcome| {
            let start = format!("martlet_clock_skew_writes_total{{outcome=\"{outcome}\"}} ");
            let count = page.lines().find_map(|line| line.strip_prefix(&start));
            count.unwrap().parse::<u64>().unwrap()
        })
    };
    assert_eq!(counts(), [0, 0]);
    assert_eq!(cluster.status(&Method::PUT, "/a/c/other", &small(), &[]).await, 201);
    assert_eq!(counts(), [0, 0], "nothing is ahead");
    cluster.store(3, OBJECT, after(30));
    assert_eq!(cluster.status(&Method::PUT, OBJECT, &small(), &[]).await, 201);
    assert_eq!(counts(), [1, 0]);
    cluster.store(3, OBJECT, after(61));
    for refused in 1..=2 {
        assert_eq!(cluster.status(&Method::DELETE, OBJECT, &Bytes::new(), &[]).await, 503);
        assert_eq!(counts(), [1, refused]);
    }
}

#[tokio::test]
async fn a_request_with_a_time_of_its_own_gets_openstacks_answers() {
    for ahead in [30, 3600] {
        for (method, body, expected) in [
            (Method::PUT, small(), 202),
            (Method::PUT, large(), 202),
            (Method::POST, Bytes::new(), 409),
            (Method::DELETE, Bytes::new(), 409),
        ] {
            let cluster = cluster();
            cluster.store(3, OBJECT, after(ahead));
            let own = after(1).internal();
            let status = cluster.status(&method, OBJECT, &body, &[("x-timestamp", &own)]).await;
            assert_eq!(status, expected, "{method} {ahead}");
            assert_eq!(cluster.times(OBJECT), [after(ahead); 3]);
            assert_eq!(cluster.writes(&method, OBJECT), [1; 3], "{method} {ahead}");
        }
    }
}

#[tokio::test]
async fn a_write_is_sent_again_once() {
    for body in [small(), large()] {
        let busy = Stored {
            at: after(10),
            next_writer: 100,
            ..Stored::default()
        };
        // All have answered before: what is newer now was written meanwhile.
        let cluster = cluster();
        cluster.store_as(3, OBJECT, busy);
        assert_eq!(cluster.status(&Method::PUT, OBJECT, &body, &[]).await, 202);
        assert_eq!(cluster.writes(&Method::PUT, OBJECT), [2; 3]);
        // One has not: what is newer may have been there.
        let cluster = self::cluster();
        cluster.store_as(3, OBJECT, busy);
        *cluster.nodes[0].is_out.lock() = true;
        assert_eq!(cluster.status(&Method::PUT, OBJECT, &body, &[]).await, 503);
    }
}

#[tokio::test]
async fn containers_come_and_go_whatever_the_clock_that_wrote_before() {
    for tells_times in [true, false] {
        let cluster = cluster_of(tells_times);
        cluster.store(3, "/a", Timestamp::from_seconds(1));
        let deleted = Stored {
            at: after(20),
            is_deleted: true,
            ..Stored::default()
        };
        cluster.store_as(3, CONTAINER, deleted);
        assert_eq!(cluster.status(&Method::PUT, CONTAINER, &Bytes::new(), &[]).await, 201);
        cluster.store(3, CONTAINER, after(40));
        assert_eq!(
            cluster.status(&Method::DELETE, CONTAINER, &Bytes::new(), &[]).await,
            204
        );
        cluster.store(3, CONTAINER, Timestamp::from_seconds(1));
        cluster.store(1, CONTAINER, after(50));
        assert_eq!(
            cluster.status(&Method::DELETE, CONTAINER, &Bytes::new(), &[]).await,
            204
        );
        cluster.store(3, CONTAINER, after(3600));
        let response = cluster.ask(&Method::DELETE, CONTAINER, &Bytes::new(), &[]).await;
        assert_eq!(response.status().as_u16(), 503, "{tells_times}");
    }
}

/// A 2xx that says that something newer is there: metadata that a later write had set already.
#[tokio::test]
async fn metadata_win_too() {
    struct Newer(Mutex<Vec<Timestamp>>);
    #[async_trait::async_trait]
    impl Service for Newer {
        async fn call(&self, call: Call) -> Response {
            let call = call.into_raw();
            if call.method == Method::HEAD {
                return described(204, &[("x-backend-storage-policy-index", "0")]);
            }
            let at: Timestamp = call.headers["x-timestamp"].to_str().unwrap().parse().unwrap();
            self.0.lock().push(at);
            let newest = after(5).internal();
            let newer = [("x-backend-timestamp", newest.as_str())];
            described(204, if at > after(5) { &[] } else { &newer })
        }
    }
    for path in ["/a", "/a/c"] {
        let service = Arc::new(Newer(Mutex::default()));
        let cluster = Cluster {
            gateway: gateway_before([service.clone(), service.clone(), service.clone()]),
            nodes: vec![],
        };
        assert_eq!(cluster.status(&Method::POST, path, &Bytes::new(), &[]).await, 204);
        let times = service.0.lock().clone();
        assert_eq!(times.len(), 6, "{path}: three replicas, twice");
        assert!(times[3..].iter().all(|at| *at > after(5)), "{path}: {times:?}");
    }
}
