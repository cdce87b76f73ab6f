//! Five nodes whose behaviour a test sets, and a gateway that knows them from its ring.

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use md5::{Digest as _, Md5};
use parking_lot::Mutex;
use peer::{Address, Body, BodyError, Call, HttpService, Peers, RawCall, Response, Service};
use placement::{Device, Ring, RingBuilder};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Policies, PolicyIndex, RangeSet};
use world::World;

/// How a node behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Mood {
    Well,
    /// Its device is gone.
    Gone,
    /// Answers 503 to everything.
    Broken,
    /// Cannot read or write this object, and says so: its device is well.
    Unreadable,
    /// Never answers.
    Hung,
    /// Its bodies break off after so many bytes.
    BreaksAfter(usize),
    /// Finds out late that its bytes are wrong.
    Corrupt,
    /// Takes so many bytes of an upload, then stops reading.
    StallsAfter(usize),
    /// Receives other bytes than were sent; it compares them with their MD5.
    Garbles,
    /// The same, and it compares nothing.
    GarblesBlindly,
    /// Has no room for what is to be written.
    NoRoom,
    /// Has a later version than the others.
    Newer,
    /// Knows of a later deletion.
    Deleted,
    /// Has a replica of the container that was made later, and is deleted.
    ContainerDeleted,
    /// Says that it has changed it last at this time, and when that expires.
    Expires {
        posted: &'static str,
        due: &'static str,
    },
    /// Never had it, and says so as servers of databases do.
    Never,
}

pub(crate) struct Node {
    pub(crate) mood: Mutex<Mood>,
    pub(crate) objects: Mutex<HashMap<String, Bytes>>,
    /// What each write said of the next partition power.
    pub(crate) next_part_powers: Mutex<Vec<Option<HeaderValue>>>,
}

const TIMESTAMP: &str = "1700000000.00000";

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let mood = *self.mood.lock();
        let Address::Entity(target) = call.address.clone() else {
            return status(400);
        };
        if target.path.object.is_none() {
            return match mood {
                Mood::ContainerDeleted => described(404, &[("x-backend-timestamp", "1800000000.00000")]),
                _ => described(
                    204,
                    &[
                        ("x-backend-storage-policy-index", "0"),
                        ("x-backend-timestamp", TIMESTAMP),
                    ],
                ),
            };
        }
        let key = target.path.path();
        if !matches!(call.method, Method::GET | Method::HEAD) {
            let power = call.headers.get("x-backend-next-part-power").cloned();
            self.next_part_powers.lock().push(power);
        }
        match mood {
            Mood::Gone => return status(507),
            Mood::NoRoom if !matches!(call.method, Method::GET | Method::HEAD) => return status(507),
            Mood::Broken => return status(503),
            Mood::Unreadable => return described(500, &[("x-backend-one-item-failed", "true")]),
            Mood::Deleted => return described(404, &[("x-backend-timestamp", "1800000000.00000")]),
            Mood::Never => return described(404, &[("x-backend-timestamp", "0000000000.00000")]),
            Mood::Expires { posted, due } if call.method == Method::HEAD => {
                return described(200, &[("x-backend-timestamp", posted), ("x-delete-at", due)]);
            }
            Mood::Hung => std::future::pending::<()>().await,
            _ => {}
        }
        match call.method {
            Method::PUT => self.put(key, call, mood).await,
            Method::DELETE => status(if self.objects.lock().remove(&key).is_some() {
                204
            } else {
                404
            }),
            _ => self.get(&key, &call, mood),
        }
    }
}

impl Node {
    async fn put(&self, key: String, mut call: RawCall, mood: Mood) -> Response {
        let mut bytes = Vec::new();
        let body = &mut call.body;
        loop {
            if matches!(mood, Mood::StallsAfter(most) if bytes.len() >= most) {
                std::future::pending::<()>().await;
            }
            match body.next().await {
                None => break,
                Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
                Some(Err(_)) => return status(499),
            }
        }
        if let (Mood::Garbles | Mood::GarblesBlindly, Some(first)) = (mood, bytes.first_mut()) {
            *first ^= 1;
        }
        let md5 = vocabulary::hex::encode(Md5::digest(&bytes));
        let footer = call.body.footer();
        let sent = footer.as_ref().and_then(|footer| footer.get()?.get("etag"));
        let is_wrong = sent.or(call.headers.get("etag")).is_some_and(|sent| *sent != md5);
        if is_wrong && mood != Mood::GarblesBlindly {
            return status(422);
        }
        self.objects.lock().insert(key, bytes.into());
        described(201, &[("etag", &md5)])
    }

    fn get(&self, key: &str, call: &RawCall, mood: Mood) -> Response {
        let Some(bytes) = self.objects.lock().get(key).cloned() else {
            return status(404);
        };
        let total = bytes.len() as u64;
        let range = call
            .headers
            .get("range")
            .and_then(|r| RangeSet::parse(r.to_str().unwrap()));
        let (code, part, content_range) = match range.map(|r| r.resolve(total)) {
            Some(ranges) => {
                let range = ranges[0];
                (
                    206,
                    bytes.slice(range.start as usize..range.end as usize),
                    Some(range.content_range(total)),
                )
            }
            None => (200, bytes, None),
        };
        let length = part.len().to_string();
        let timestamp = match mood {
            Mood::Newer => "1800000000.00000",
            _ => TIMESTAMP,
        };
        let mut headers = vec![
            ("etag", "e"),
            ("x-timestamp", timestamp),
            ("content-length", length.as_str()),
        ];
        headers.extend(content_range.as_deref().map(|range| ("content-range", range)));
        let body = match (&call.method, mood) {
            (&Method::HEAD, _) => Body::empty(),
            (_, Mood::BreaksAfter(most)) => chunks(&part, most, BodyError::Broken("planted".into())),
            (_, Mood::Corrupt) => chunks(&part, part.len() / 2, BodyError::Corrupt),
            _ => chunks(&part, part.len(), BodyError::Abandoned),
        };
        described(code, &headers).map(|_| body)
    }
}

/// `part` in small chunks; breaks off with `error` when there is more of it than `most`.
pub(crate) fn chunks(part: &Bytes, most: usize, error: BodyError) -> Body {
    let sent = part.slice(..most.min(part.len()));
    let mut chunks: Vec<_> = sent.chunks(1000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
    if most < part.len() {
        chunks.push(Err(error));
    }
    Body::stream(futures_util::stream::iter(chunks), Some(part.len() as u64))
}

fn status(code: u16) -> Response {
    described(code, &[])
}

fn described(code: u16, headers: &[(&'static str, &str)]) -> Response {
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
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Which nodes are primaries of `/v1/a/c/o`, in the ring's order, then the handoffs.
    pub(crate) order: Vec<usize>,
    rings: Arc<ArcSwap<Ring>>,
    builder: RingBuilder,
}

pub(crate) const NODES: u16 = 5;

pub(crate) fn cluster() -> Cluster {
    cluster_with(|_| {})
}

pub(crate) fn cluster_with(change: impl FnOnce(&mut GatewayOptions)) -> Cluster {
    cluster_of(|_| true, change)
}

/// `is_local` says of which places of `order` the nodes are services of the gateway's process.
pub(crate) fn cluster_of(is_local: impl Fn(usize) -> bool, change: impl FnOnce(&mut GatewayOptions)) -> Cluster {
    let world = World::real();
    let mut builder = RingBuilder::new(6, 3.0, 1).unwrap();
    let mut peers = Peers::new(world.clone());
    let mut nodes = Vec::<Arc<Node>>::new();
    for port in 1..=NODES {
        builder
            .add(Device {
                region: 1,
                zone: u32::from(port),
                weight: 1.0,
                ip: "node".into(),
                port,
                device: format!("d{port}"),
                ..Device::default()
            })
            .unwrap();
        let node = Arc::new(Node {
            mood: Mutex::new(Mood::Well),
            objects: Mutex::default(),
            next_part_powers: Mutex::default(),
        });
        nodes.push(node);
    }
    builder.rebalance(7, 0).unwrap();
    let ring = Arc::new(ArcSwap::from_pointee(Ring::new(builder.to_ring().unwrap())));
    let hash = HashPrefix::new("p", "s").unwrap();
    let live = ring.load_full();
    let partition = live.partition_of(&hash.object("a", "c", "o").0);
    let primaries = live.primaries(partition).into_iter().map(|d| usize::from(d.port) - 1);
    let order: Vec<usize> = primaries
        .chain(live.handoffs(partition).map(|d| usize::from(d.port) - 1))
        .collect();
    for (place, node) in order.iter().enumerate() {
        let (port, service) = (*node as u16 + 1, nodes[*node].clone());
        match is_local(place) {
            true => peers.register("node", port, service),
            false => peers.register_way("node", port, service),
        }
    }
    let rings = Rings {
        account: ring.clone(),
        container: ring.clone(),
        objects: BTreeMap::from([(PolicyIndex(0), ring.clone())]),
        policies: Policies::default(),
        hash,
        nodes: gateway::nodes::NodeTables::default(),
    };
    let mut options = GatewayOptions {
        node_timeout: Duration::from_secs(1),
        recoverable_node_timeout: Duration::from_secs(1),
        client_timeout: Duration::from_secs(2),
        post_quorum_timeout: Duration::from_millis(500),
        ..GatewayOptions::default()
    };
    change(&mut options);
    let shared = Shared::new(world, options, rings, Arc::new(peers), None);
    Cluster {
        gateway: Gateway::new(shared, vec![]),
        nodes,
        order,
        rings: ring,
        builder,
    }
}

impl Cluster {
    pub(crate) fn set(&self, place: usize, mood: Mood) {
        *self.nodes[self.order[place]].mood.lock() = mood;
    }

    /// Puts another ring into force.
    pub(crate) fn change_ring(&mut self, change: impl FnOnce(&mut RingBuilder)) {
        change(&mut self.builder);
        self.rings.store(Arc::new(Ring::new(self.builder.to_ring().unwrap())));
    }

    pub(crate) async fn ask(&self, method: Method, headers: &[(&'static str, &str)], body: Body) -> Response {
        self.ask_of("/v1/a/c/o", method, headers, body).await
    }

    pub(crate) async fn ask_of(
        &self,
        path: &str,
        method: Method,
        headers: &[(&'static str, &str)],
        body: Body,
    ) -> Response {
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        *request.headers_mut() = map;
        self.gateway.serve(request, "127.0.0.1:1".parse().unwrap()).await
    }

    pub(crate) async fn put(&self, bytes: &Bytes) -> u16 {
        let length = bytes.len().to_string();
        let response = self
            .ask(
                Method::PUT,
                &[("content-length", &length)],
                chunks(bytes, bytes.len(), BodyError::Abandoned),
            )
            .await;
        response.status().as_u16()
    }

    pub(crate) async fn get(&self, headers: &[(&'static str, &str)]) -> (u16, Result<Bytes, BodyError>) {
        let response = self.ask(Method::GET, headers, Body::empty()).await;
        (response.status().as_u16(), response.into_body().collect(1 << 30).await)
    }

    /// Nodes that hold anything at all.
    pub(crate) fn copies(&self) -> usize {
        self.nodes.iter().filter(|node| !node.objects.lock().is_empty()).count()
    }

    /// Nodes that hold exactly `bytes`.
    pub(crate) fn holders(&self, bytes: &Bytes) -> usize {
        self.nodes
            .iter()
            .filter(|node| node.objects.lock().get("/a/c/o") == Some(bytes))
            .count()
    }
}

pub(crate) fn small() -> Bytes {
    Bytes::from_static(b"small enough to be read at once")
}

pub(crate) fn large() -> Bytes {
    (0..300_000u32).map(|i| (i * 7 / 3 % 251) as u8).collect()
}
