//! The gateway among nodes that are silent: they are passed over, and no request waits for them that has its answer
//! without them; where all are silent, all are waited for.
//!
//! Every node is a scripted storage service that can be stopped, as SIGSTOP does it, and goes on. Time-outs are an
//! hour: a test that ends has waited for none.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use peer::{Address, Body, Call, HttpService, Peers, Response, Service};
use placement::{Device, Ring, RingBuilder};
use request_pipeline::{LockName, LockRefusal};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vocabulary::{EntityPath, HashPrefix, Policies, PolicyIndex};
use world::World;

const SILENCE: Duration = Duration::from_millis(100);
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone)]
struct Stored {
    bytes: Bytes,
    at: &'static str,
}

struct Node {
    is_stopped: watch::Sender<bool>,
    objects: Mutex<HashMap<String, Stored>>,
    /// Requests about objects that have reached it.
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let Address::Entity(target) = call.address.clone() else {
            return answer(400, &[]);
        };
        if target.path.object.is_none() {
            return answer(
                204,
                &[("x-backend-storage-policy-index", "0"), ("x-backend-timestamp", "1")],
            );
        }
        self.asked.fetch_add(1, SeqCst);
        self.is_stopped
            .subscribe()
            .wait_for(|is_stopped| !is_stopped)
            .await
            .unwrap();
        let key = target.path.path();
        let stored = self.objects.lock().get(&key).cloned();
        match (call.method.as_str(), stored) {
            ("PUT", _) => match call.body.collect(1 << 20).await {
                Ok(bytes) => {
                    self.objects.lock().insert(
                        key,
                        Stored {
                            bytes,
                            at: "1700000000.00000",
                        },
                    );
                    answer(201, &[])
                }
                Err(_) => answer(499, &[]),
            },
            ("LOCK", _) => answer(201, &[("x-backend-timestamp", "1700000000.00000")]),
            (_, None) => answer(404, &[]),
            ("DELETE", _) => {
                self.objects.lock().remove(&key);
                answer(204, &[])
            }
            ("POST", _) => answer(202, &[]),
            (_, Some(Stored { bytes, at })) => {
                answer(200, &[("x-timestamp", at), ("etag", "e")]).map(|_| Body::whole(bytes))
            }
        }
    }
}

fn answer(code: u16, headers: &[(&'static str, &str)]) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(*name, HeaderValue::from_str(value).unwrap());
    }
    response
}

struct Cluster {
    gateway: Gateway,
    /// The primaries of `/v1/a/c/o`, then its handoffs.
    nodes: Vec<Arc<Node>>,
}

fn cluster(count: u16) -> Cluster {
    let world = World::real();
    let mut builder = RingBuilder::new(6, 3.0, 1).unwrap();
    let mut peers = Peers::new(world.clone());
    let mut nodes = Vec::new();
    for port in 1..=count {
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
        let node = Arc::new(Node {
            is_stopped: watch::Sender::new(false),
            objects: Mutex::default(),
            asked: AtomicUsize::new(0),
        });
        peers.register("node", port, node.clone());
        nodes.push(node);
    }
    builder.rebalance(7, 0).unwrap();
    let ring = Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap())));
    let hash = HashPrefix::new("p", "s").unwrap();
    let live = ring.load_full();
    let partition = live.partition_of(&hash.object("a", "c", "o").0);
    let order = live.primaries(partition).into_iter().chain(live.handoffs(partition));
    let nodes = order
        .map(|device| nodes[usize::from(device.port) - 1].clone())
        .collect();
    let rings = Rings {
        account: ring.clone(),
        container: ring.clone(),
        objects: BTreeMap::from([(PolicyIndex(0), ring)]),
        policies: Policies::default(),
        hash,
        nodes: gateway::nodes::NodeTables::default(),
    };
    let options = GatewayOptions {
        silence_timeout: SILENCE,
        node_timeout: HOUR,
        recoverable_node_timeout: HOUR,
        client_timeout: HOUR,
        post_quorum_timeout: HOUR,
        ..GatewayOptions::default()
    };
    let shared = Shared::new(world, options, rings, Arc::new(peers), None);
    Cluster {
        gateway: Gateway::new(shared, vec![]),
        nodes,
    }
}

impl Cluster {
    fn stop(&self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            self.nodes[place].is_stopped.send_replace(true);
        }
    }

    fn go_on(&self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            self.nodes[place].is_stopped.send_replace(false);
        }
    }

    /// Stops a node, and asks until it is known to say nothing.
    async fn silence(&self, place: usize) {
        self.stop([place]);
        for _ in 0..1000 {
            // A read asks one of the three first.
            self.ask(Method::HEAD, &[], Bytes::new()).await;
            if self.gateway.silence().silent() > 0 {
                return;
            }
        }
        panic!("it was not noticed");
    }

    async fn ask(&self, method: Method, headers: &[(&'static str, &str)], body: Bytes) -> (u16, Bytes) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        map.insert("content-length", HeaderValue::from(body.len()));
        let mut request = http::Request::new(match body.len() {
            0..1000 => Body::whole(body),
            length => {
                let chunks: Vec<_> = body
                    .chunks(5000)
                    .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
                    .collect();
                Body::stream(futures_util::stream::iter(chunks), Some(length as u64))
            }
        });
        (*request.method_mut(), *request.headers_mut()) = (method, map);
        *request.uri_mut() = "/v1/a/c/o".parse().unwrap();
        let response = self.gateway.serve(request, "127.0.0.1:1".parse().unwrap()).await;
        (
            response.status().as_u16(),
            response.into_body().collect(1 << 30).await.unwrap(),
        )
    }

    async fn status(&self, method: Method, body: Bytes) -> u16 {
        self.ask(method, &[], body).await.0
    }

    fn put_on(&self, places: impl IntoIterator<Item = usize>, bytes: &Bytes, at: &'static str) {
        for place in places {
            let stored = Stored {
                bytes: bytes.clone(),
                at,
            };
            self.nodes[place].objects.lock().insert("/a/c/o".into(), stored);
        }
    }

    /// Places that hold exactly `bytes`.
    fn holders(&self, bytes: &Bytes) -> Vec<usize> {
        let has = |place: &usize| {
            let objects = self.nodes[*place].objects.lock();
            objects.get("/a/c/o").is_some_and(|stored| stored.bytes == bytes)
        };
        (0..self.nodes.len()).filter(has).collect()
    }

    fn asked(&self, place: usize) -> usize {
        self.nodes[place].asked.load(SeqCst)
    }
}

fn small() -> Bytes {
    Bytes::from_static(b"small")
}

fn large() -> Bytes {
    (0..300_000u32).map(|i| (i * 7 / 3 % 251) as u8).collect()
}

/// Reads end at once, whatever they find, and no request reaches the node but one that finds out whether it answers.
#[tokio::test]
async fn a_silent_node_is_asked_last() {
    let cluster = cluster(5);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    let asked = cluster.asked(0);
    for _ in 0..50 {
        assert_eq!(cluster.ask(Method::GET, &[], Bytes::new()).await, (200, small()));
        assert_eq!(
            cluster.ask(Method::GET, &[("x-newest", "true")], Bytes::new()).await,
            (200, small())
        );
    }
    for place in 1..3 {
        cluster.nodes[place].objects.lock().clear();
    }
    for _ in 0..50 {
        assert_eq!(
            cluster.status(Method::HEAD, Bytes::new()).await,
            404,
            "two of three know of none"
        );
    }
    assert!(cluster.asked(0) <= asked + 1, "{} of {asked}", cluster.asked(0));
    assert_eq!(cluster.gateway.silence().times(), 1);
}

#[tokio::test]
async fn it_is_asked_where_the_others_do_not_agree() {
    let cluster = Arc::new(cluster(3));
    cluster.put_on([0], &small(), "1");
    cluster.silence(0).await;
    // One of the two that speak is gone: there is no quorum for a 404.
    cluster.stop([1]);
    let reading = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.ask(Method::GET, &[], Bytes::new()).await }
    });
    tokio::time::sleep(3 * SILENCE).await;
    assert!(!reading.is_finished());
    cluster.go_on([0]);
    assert_eq!(reading.await.unwrap(), (200, small()));
}

#[tokio::test]
async fn the_newest_is_found_on_a_handoff_in_place_of_a_silent_primary() {
    let (cluster, newer) = (cluster(5), Bytes::from_static(b"newer"));
    cluster.put_on(0..3, &small(), "1");
    cluster.put_on([3], &newer, "2");
    cluster.silence(0).await;
    for _ in 0..5 {
        let found = cluster.ask(Method::GET, &[("x-newest", "true")], Bytes::new()).await;
        assert_eq!(found, (200, newer.clone()));
    }
}

/// It is not known yet: the read that waits for it asks another beside it.
#[tokio::test]
async fn a_read_goes_on_when_its_node_falls_silent() {
    for concurrent in [false, true] {
        let cluster = cluster(5);
        cluster.put_on(0..3, &small(), "1");
        cluster.stop([0, 1]);
        let headers: &[_] = if concurrent { &[("x-newest", "true")] } else { &[] };
        for _ in 0..10 {
            assert_eq!(cluster.ask(Method::GET, headers, Bytes::new()).await, (200, small()));
        }
    }
}

#[tokio::test]
async fn a_handoff_takes_what_is_written() {
    for bytes in [small(), large()] {
        let cluster = cluster(5);
        cluster.silence(0).await;
        let asked = cluster.asked(0);
        for _ in 0..20 {
            assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
            assert_eq!(cluster.holders(&bytes), [1, 2, 3]);
            assert_eq!(cluster.status(Method::POST, Bytes::new()).await, 202);
            assert_eq!(cluster.status(Method::DELETE, Bytes::new()).await, 204);
            assert!(cluster.holders(&bytes).is_empty());
        }
        assert!(cluster.asked(0) <= asked + 1, "{} of {asked}", cluster.asked(0));
    }
}

/// It is not known yet: an upload that waits for its word goes to a handoff.
#[tokio::test]
async fn an_upload_goes_on_when_its_node_falls_silent() {
    let (cluster, bytes) = (cluster(5), large());
    cluster.stop([1]);
    assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
    assert_eq!(cluster.holders(&bytes), [0, 2, 3]);
}

/// Three nodes for three replicas: nothing takes its place, and nothing waits for it.
#[tokio::test]
async fn without_a_handoff_a_quorum_is_enough() {
    for bytes in [small(), large()] {
        let cluster = cluster(3);
        cluster.silence(2).await;
        let asked = cluster.asked(2);
        for _ in 0..20 {
            assert_eq!(cluster.status(Method::PUT, bytes.clone()).await, 201);
            assert_eq!(cluster.holders(&bytes), [0, 1]);
        }
        assert!(cluster.asked(2) <= asked + 1, "{} of {asked}", cluster.asked(2));
    }
}

/// A handoff that never had the object does not speak for a silent primary.
#[tokio::test]
async fn a_change_waits_for_it_where_the_others_do_not_agree() {
    let cluster = Arc::new(cluster(5));
    cluster.put_on([0, 1], &small(), "1");
    cluster.silence(0).await;
    let changing = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.status(Method::POST, Bytes::new()).await }
    });
    tokio::time::sleep(3 * SILENCE).await;
    assert!(!changing.is_finished());
    cluster.go_on([0]);
    assert_eq!(changing.await.unwrap(), 202);
}

/// A cluster that stands still as a whole is waited for: what was asked before and what is asked meanwhile ends well.
#[tokio::test]
async fn where_all_are_silent_all_are_waited_for() {
    for count in [3, 5] {
        let cluster = Arc::new(cluster(count));
        let all = || 0..usize::from(count);
        cluster.put_on(0..3, &small(), "1");
        cluster.stop(all());
        let ask = |method: Method, body: Bytes| {
            let cluster = cluster.clone();
            tokio::spawn(async move { (method.clone(), cluster.status(method, body).await) })
        };
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(ask(Method::GET, Bytes::new()));
            asked.push(ask(Method::POST, Bytes::new()));
            asked.push(ask(Method::PUT, small()));
            asked.push(ask(Method::PUT, large()));
            tokio::time::sleep(2 * SILENCE).await;
        }
        assert_eq!(cluster.gateway.silence().silent(), usize::from(count));
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        cluster.go_on(all());
        for asked in asked {
            let (method, status) = asked.await.unwrap();
            assert!((200..300).contains(&status), "{method}: {status}");
        }
        // Each of them was the last to be asked by something.
        cluster.put_on(0..3, &small(), "1");
        let until = Instant::now() + Duration::from_secs(30);
        while cluster.gateway.silence().silent() > 0 {
            cluster.status(Method::GET, Bytes::new()).await;
            cluster.status(Method::PUT, small()).await;
            assert!(Instant::now() < until);
        }
    }
}

#[tokio::test]
async fn a_node_that_answers_again_is_asked_again() {
    let cluster = cluster(5);
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    // A request passes it over, and a HEAD asks whether it answers.
    assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
    cluster.go_on([0]);
    let until = Instant::now() + Duration::from_secs(30);
    while cluster.gateway.silence().silent() > 0 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
        assert!(Instant::now() < until);
    }
    assert_eq!(cluster.status(Method::PUT, small()).await, 201);
    assert!(cluster.holders(&small()).contains(&0));
    let asked = cluster.asked(0);
    for _ in 0..100 {
        assert_eq!(cluster.status(Method::GET, Bytes::new()).await, 200);
    }
    assert!(cluster.asked(0) > asked);
}

/// Most primaries have to grant a lock. One that is silent is not waited for; where two are, both are.
#[tokio::test]
async fn a_lock_is_taken_from_those_that_answer() {
    let cluster = cluster(5);
    let locks = cluster.gateway.write_locks();
    let name = LockName {
        entity: EntityPath::account("a").with_container("c").with_object("o"),
        policy: PolicyIndex(0),
        value: HeaderValue::from_static("lock"),
        trans_id: "tx".into(),
    };
    cluster.put_on(0..3, &small(), "1");
    cluster.silence(0).await;
    let asked = cluster.asked(0);
    assert!(locks.take(&name, Duration::from_secs(10)).await.is_ok());
    assert!(cluster.asked(0) <= asked + 1);

    cluster.stop([1]);
    let mut taking = std::pin::pin!(locks.take(&name, Duration::from_secs(10)));
    let early = tokio::time::timeout(5 * SILENCE, &mut taking).await;
    assert!(
        early.is_err(),
        "one of three is no majority: {:?}",
        early.map(|taken| taken.err())
    );
    cluster.go_on([1]);
    assert_eq!(taking.await.err(), None::<LockRefusal>);
}

/// The next who takes the lock asks primaries only: what went to a handoff in their place would not be seen.
#[tokio::test]
async fn what_is_written_under_a_lock_goes_to_primaries_alone() {
    for bytes in [small(), large()] {
        let cluster = Arc::new(cluster(5));
        cluster.silence(0).await;
        let (asking, body) = (cluster.clone(), bytes.clone());
        let put = tokio::spawn(async move {
            let lock = [("x-backend-write-lock", "l")];
            asking.ask(Method::PUT, &lock, body).await.0
        });
        tokio::time::sleep(4 * SILENCE).await;
        assert!(!put.is_finished());
        cluster.go_on([0]);
        assert_eq!(put.await.unwrap(), 201);
        assert_eq!(cluster.holders(&bytes), [0, 1, 2]);
    }
}
