//! A gateway among scripted storage services, which can be stopped, as SIGSTOP does it, and go on.

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use peer::{Address, Body, BodyError, Call, HttpService, Peers, Response, Service};
use placement::{Device, Ring, RingBuilder};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::watch;
use vocabulary::{HashPrefix, PathHash, Policies, PolicyIndex};
use world::World;

pub(crate) const SILENCE: Duration = Duration::from_millis(100);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone)]
pub(crate) struct Stored {
    bytes: Bytes,
    at: &'static str,
}

pub(crate) struct Node {
    pub(crate) is_stopped: watch::Sender<bool>,
    /// It waits in the middle of each body, and answers all else.
    pub(crate) takes_no_bodies: watch::Sender<bool>,
    /// It has no container to change.
    pub(crate) lacks_containers: AtomicBool,
    /// It answers 507 to everything.
    pub(crate) is_gone: AtomicBool,
    pub(crate) objects: Mutex<HashMap<String, Stored>>,
    /// Requests about objects that have reached it.
    asked: AtomicUsize,
    /// Those that it has not answered yet.
    under_way: AtomicUsize,
}

/// A request that is under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let Address::Entity(target) = call.address.clone() else {
            return answer(400, &[]);
        };
        if target.path.object.is_none() {
            if call.method == Method::POST {
                over(&self.is_stopped).await;
                if self.lacks_containers.load(SeqCst) {
                    return answer(404, &[]);
                }
            }
            return answer(
                204,
                &[("x-backend-storage-policy-index", "0"), ("x-backend-timestamp", "1")],
            );
        }
        self.asked.fetch_add(1, SeqCst);
        self.under_way.fetch_add(1, SeqCst);
        let _under_way = UnderWay(&self.under_way);
        over(&self.is_stopped).await;
        if self.is_gone.load(SeqCst) {
            return answer(507, &[]);
        }
        let key = target.path.path();
        let stored = self.objects.lock().get(&key).cloned();
        match (call.method.as_str(), stored) {
            ("PUT", _) => match self.taken(call.body).await {
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
            (_, Some(Stored { bytes, at })) => answer(
                200,
                &[("x-timestamp", at), ("etag", "e"), ("x-delete-at", "1800000000")],
            )
            .map(|_| Body::whole(bytes)),
        }
    }
}

impl Node {
    async fn taken(&self, mut body: Body) -> Result<Bytes, BodyError> {
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await.transpose()? {
            bytes.extend_from_slice(&piece);
            over(&self.takes_no_bodies).await;
        }
        Ok(bytes.into())
    }
}

async fn over(state: &watch::Sender<bool>) {
    state.subscribe().wait_for(|lasts| !lasts).await.unwrap();
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

pub(crate) struct Cluster {
    pub(crate) gateway: Gateway,
    /// The primaries of `/v1/a/c/o`, then its handoffs.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// The same of `/v1/a/c`.
    pub(crate) container_nodes: Vec<Arc<Node>>,
}

pub(crate) fn cluster(count: u16) -> Cluster {
    cluster_with(count, GatewayOptions::default(), HOUR)
}

pub(crate) fn cluster_with(count: u16, options: GatewayOptions, node_timeout: Duration) -> Cluster {
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
            takes_no_bodies: watch::Sender::new(false),
            lacks_containers: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            objects: Mutex::default(),
            asked: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
        });
        peers.register("node", port, node.clone());
        nodes.push(node);
    }
    builder.rebalance(7, 0).unwrap();
    let ring = Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap())));
    let hash = HashPrefix::new("p", "s").unwrap();
    let live = ring.load_full();
    let in_order = |hash: PathHash| -> Vec<Arc<Node>> {
        let partition = live.partition_of(&hash.0);
        let order = live.primaries(partition).into_iter().chain(live.handoffs(partition));
        order
            .map(|device| nodes[usize::from(device.port) - 1].clone())
            .collect()
    };
    let (nodes, container_nodes) = (in_order(hash.object("a", "c", "o")), in_order(hash.container("a", "c")));
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
        node_timeout,
        recoverable_node_timeout: node_timeout,
        client_timeout: HOUR,
        post_quorum_timeout: HOUR,
        ..options
    };
    let shared = Shared::new(world, options, rings, Arc::new(peers), None);
    Cluster {
        gateway: Gateway::new(shared, vec![]),
        nodes,
        container_nodes,
    }
}

impl Cluster {
    pub(crate) fn stop(&self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            self.nodes[place].is_stopped.send_replace(true);
        }
    }

    pub(crate) fn go_on(&self, places: impl IntoIterator<Item = usize>) {
        for place in places {
            self.nodes[place].is_stopped.send_replace(false);
        }
    }

    /// Stops a node, and asks until it is known to say nothing.
    pub(crate) async fn silence(&self, place: usize) {
        self.stop([place]);
        let before = self.gateway.silence().silent();
        for _ in 0..1000 {
            // A read asks one of the three first.
            self.ask(Method::HEAD, &[], Bytes::new()).await;
            if self.gateway.silence().silent() > before {
                return;
            }
        }
        panic!("it was not noticed");
    }

    pub(crate) async fn ask(&self, method: Method, headers: &[(&'static str, &str)], body: Bytes) -> (u16, Bytes) {
        self.ask_for("/v1/a/c/o", method, headers, body).await
    }

    pub(crate) async fn ask_for(
        &self,
        path: &str,
        method: Method,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> (u16, Bytes) {
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
        *request.uri_mut() = path.parse().unwrap();
        let response = self.gateway.serve(request, "127.0.0.1:1".parse().unwrap()).await;
        (
            response.status().as_u16(),
            response.into_body().collect(1 << 30).await.unwrap(),
        )
    }

    pub(crate) async fn status(&self, method: Method, body: Bytes) -> u16 {
        self.ask(method, &[], body).await.0
    }

    pub(crate) fn put_on(&self, places: impl IntoIterator<Item = usize>, bytes: &Bytes, at: &'static str) {
        for place in places {
            let stored = Stored {
                bytes: bytes.clone(),
                at,
            };
            self.nodes[place].objects.lock().insert("/a/c/o".into(), stored);
        }
    }

    /// Places that hold exactly `bytes`.
    pub(crate) fn holders(&self, bytes: &Bytes) -> Vec<usize> {
        let has = |place: &usize| {
            let objects = self.nodes[*place].objects.lock();
            objects.get("/a/c/o").is_some_and(|stored| stored.bytes == bytes)
        };
        (0..self.nodes.len()).filter(has).collect()
    }

    pub(crate) fn asked(&self, place: usize) -> usize {
        self.nodes[place].asked.load(SeqCst)
    }

    pub(crate) fn under_way(&self, place: usize) -> usize {
        self.nodes[place].under_way.load(SeqCst)
    }
}

pub(crate) fn small() -> Bytes {
    Bytes::from_static(b"small")
}

pub(crate) fn large() -> Bytes {
    (0..300_000u32).map(|i| (i * 7 / 3 % 251) as u8).collect()
}
