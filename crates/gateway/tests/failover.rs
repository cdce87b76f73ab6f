//! The gateway among nodes that misbehave by name: what it acknowledges is on a quorum of nodes, what
//! it serves is whole, and one bad node is never a client's trouble.
//!
//! Every node is a scripted storage service with an address of its own in the ring.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use peer::{Address, Body, BodyError, Call, HttpService, Peers, RawCall, Response, Service};
use placement::{Device, Ring, RingBuilder};
use settings::SortingMethod;
use settings::kinds::OptionValue;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Policies, PolicyIndex, RangeSet};
use world::World;

/// How a node behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mood {
    Well,
    /// Its device is gone.
    Gone,
    /// Answers 503 to everything.
    Broken,
    /// Never answers.
    Hung,
    /// Its bodies break off after so many bytes.
    BreaksAfter(usize),
    /// Finds out late that its bytes are wrong.
    Corrupt,
    /// Takes so many bytes of an upload, then stops reading.
    StallsAfter(usize),
    /// Has no room for what is to be written.
    NoRoom,
    /// Has a later version than the others.
    Newer,
    /// Knows of a later deletion.
    Deleted,
    /// Has a replica of the container that was made later, and is deleted.
    ContainerDeleted,
    /// Never had it, and says so as servers of databases do.
    Never,
}

struct Node {
    mood: Mutex<Mood>,
    objects: Mutex<HashMap<String, Bytes>>,
}

const TIMESTAMP: &str = "1700000000.00000";

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let mut call = call.into_raw();
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
        match mood {
            Mood::Gone => return status(507),
            Mood::NoRoom if call.method == Method::PUT => return status(507),
            Mood::Broken => return status(503),
            Mood::Deleted => return described(404, &[("x-backend-timestamp", "1800000000.00000")]),
            Mood::Never => return described(404, &[("x-backend-timestamp", "0000000000.00000")]),
            Mood::Hung => std::future::pending::<()>().await,
            _ => {}
        }
        match call.method {
            Method::PUT => self.put(key, &mut call.body, mood).await,
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
    async fn put(&self, key: String, body: &mut Body, mood: Mood) -> Response {
        let mut bytes = Vec::new();
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
        self.objects.lock().insert(key, bytes.into());
        status(201)
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
fn chunks(part: &Bytes, most: usize, error: BodyError) -> Body {
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

struct Cluster {
    gateway: Gateway,
    nodes: Vec<Arc<Node>>,
    /// Which nodes are primaries of `/v1/a/c/o`, in the ring's order, then the handoffs.
    order: Vec<usize>,
}

const NODES: u16 = 5;

fn cluster() -> Cluster {
    cluster_with(|_| {})
}

fn cluster_with(change: impl FnOnce(&mut GatewayOptions)) -> Cluster {
    cluster_of(|_| true, change)
}

/// `is_local` says of which places of `order` the nodes are services of the gateway's process.
fn cluster_of(is_local: impl Fn(usize) -> bool, change: impl FnOnce(&mut GatewayOptions)) -> Cluster {
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
        objects: BTreeMap::from([(PolicyIndex(0), ring)]),
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
    }
}

impl Cluster {
    fn set(&self, place: usize, mood: Mood) {
        *self.nodes[self.order[place]].mood.lock() = mood;
    }

    async fn ask(&self, method: Method, headers: &[(&'static str, &str)], body: Body) -> Response {
        self.ask_of("/v1/a/c/o", method, headers, body).await
    }

    async fn ask_of(&self, path: &str, method: Method, headers: &[(&'static str, &str)], body: Body) -> Response {
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

    async fn put(&self, bytes: &Bytes) -> u16 {
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

    async fn get(&self, headers: &[(&'static str, &str)]) -> (u16, Result<Bytes, BodyError>) {
        let response = self.ask(Method::GET, headers, Body::empty()).await;
        (response.status().as_u16(), response.into_body().collect(1 << 30).await)
    }

    /// Nodes that hold exactly `bytes`.
    fn holders(&self, bytes: &Bytes) -> usize {
        self.nodes
            .iter()
            .filter(|node| node.objects.lock().get("/a/c/o") == Some(bytes))
            .count()
    }
}

fn small() -> Bytes {
    Bytes::from_static(b"small enough to be read at once")
}

fn large() -> Bytes {
    (0..300_000u32).map(|i| (i * 7 / 3 % 251) as u8).collect()
}

#[tokio::test]
async fn a_write_reaches_three_nodes_whatever_one_of_them_does() {
    for bytes in [small(), large()] {
        for mood in [Mood::Well, Mood::Gone, Mood::Broken, Mood::Hung] {
            let cluster = cluster();
            cluster.set(0, mood);
            assert_eq!(cluster.put(&bytes).await, 201, "{mood:?}");
            let enough = if mood == Mood::Hung { 2 } else { 3 };
            assert!(
                cluster.holders(&bytes) >= enough,
                "{mood:?}: {}",
                cluster.holders(&bytes)
            );
        }
    }
}

#[tokio::test]
async fn without_a_quorum_nothing_is_acknowledged() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        for place in 1..usize::from(NODES) {
            cluster.set(place, Mood::Broken);
        }
        assert_eq!(cluster.put(&bytes).await, 503);
        assert!(cluster.holders(&bytes) <= 1);
    }
}

#[tokio::test]
async fn a_node_that_stalls_in_mid_upload_is_left_behind() {
    let (cluster, bytes) = (cluster(), large());
    cluster.set(1, Mood::StallsAfter(10_000));
    assert_eq!(cluster.put(&bytes).await, 201);
    assert_eq!(cluster.holders(&bytes), 2);
}

#[tokio::test]
async fn an_upload_cut_short_is_no_object() {
    for total in [1000u64, 200_000] {
        let cluster = cluster();
        let body = chunks(&large(), 700, BodyError::Broken("gone".into()));
        let response = cluster
            .ask(Method::PUT, &[("content-length", &total.to_string())], body)
            .await;
        assert_eq!(response.status().as_u16(), 499);
        assert!(
            cluster.nodes.iter().all(|node| node.objects.lock().is_empty()),
            "{total}"
        );
    }
}

#[tokio::test]
async fn a_wrong_etag_is_no_object() {
    for bytes in [small(), large()] {
        let cluster = cluster();
        let length = bytes.len().to_string();
        let headers = [
            ("content-length", length.as_str()),
            ("etag", "900150983cd24fb0d6963f7d28e17f72"),
        ];
        let response = cluster.ask(Method::PUT, &headers, Body::whole(bytes.clone())).await;
        assert_eq!(response.status().as_u16(), 422);
        assert_eq!(cluster.holders(&bytes), 0);
    }
}

#[tokio::test]
async fn a_download_survives_nodes_that_break_off() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    // Whichever primaries are asked first, two of them break off at different places.
    for (broken, other, well) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        cluster.set(broken, Mood::BreaksAfter(100_500));
        cluster.set(other, Mood::BreaksAfter(3));
        cluster.set(well, Mood::Well);
        assert_eq!(cluster.get(&[]).await, (200, Ok(bytes.clone())));
        let (status, part) = cluster.get(&[("range", "bytes=50000-249999")]).await;
        assert_eq!((status, part), (206, Ok(bytes.slice(50_000..250_000))));
    }
}

#[tokio::test]
async fn wrong_bytes_never_complete_a_download() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    for place in 0..3 {
        cluster.set(place, Mood::Corrupt);
    }
    let (status, body) = cluster.get(&[]).await;
    assert_eq!((status, body), (200, Err(BodyError::Corrupt)));
}

/// A drive of this process fails, the next node breaks off after a wrong byte, which its server may have noticed.
#[tokio::test]
async fn what_another_node_sent_is_compared_when_it_breaks_off() {
    let plain = cluster();
    let zones = [0, 1, 2].map(|place| zone(&plain, place));
    for first_is_local in [true, false] {
        let cluster = cluster_of(
            |place| first_is_local && place == 0,
            |options| {
                let [first, second, third] = &zones;
                options.routing.common.sorting_method = SortingMethod::Affinity;
                options.routing.common.read_affinity =
                    OptionValue::parse(&format!("{first}=1, {second}=2, {third}=3")).unwrap();
            },
        );
        let bytes = large();
        assert_eq!(cluster.put(&bytes).await, 201);
        cluster.set(0, Mood::BreaksAfter(5_000));
        cluster.set(1, Mood::BreaksAfter(200_000));
        for range in [&[][..], &[("range", "bytes=0-")][..]] {
            assert!(cluster.get(range).await.1 == Ok(bytes.clone()));
        }
        let mut wrong = bytes.to_vec();
        wrong[100_000] ^= 1;
        let second = &cluster.nodes[cluster.order[1]];
        second.objects.lock().insert("/a/c/o".into(), wrong.into());
        for range in [&[][..], &[("range", "bytes=0-")][..]] {
            let read = cluster.get(range).await.1;
            assert_eq!(read.map(|body| body == bytes), Err(BodyError::Corrupt));
        }
    }
}

#[tokio::test]
async fn several_ranges_come_in_parts() {
    let (cluster, bytes) = (cluster(), large());
    assert_eq!(cluster.put(&bytes).await, 201);
    cluster.set(0, Mood::BreaksAfter(5));
    let response = cluster
        .ask(Method::GET, &[("range", "bytes=0-9,100000-100019")], Body::empty())
        .await;
    assert_eq!(response.status().as_u16(), 206);
    let declared: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let body = response.into_body().collect(1 << 20).await.unwrap();
    assert_eq!(body.len(), declared);
    for part in [&bytes[..10], &bytes[100_000..100_020]] {
        assert!(body.windows(part.len()).any(|window| window == part));
    }
}

#[tokio::test]
async fn what_no_node_has_is_missing_and_what_nobody_answers_is_unavailable() {
    let cluster = cluster();
    assert_eq!(cluster.get(&[]).await.0, 404);
    cluster.set(0, Mood::Broken);
    assert_eq!(cluster.get(&[]).await.0, 404);
    cluster.set(1, Mood::Hung);
    assert_eq!(cluster.get(&[]).await.0, 503);
    assert_eq!(
        cluster.ask(Method::DELETE, &[], Body::empty()).await.status().as_u16(),
        404
    );
}

#[tokio::test]
async fn no_room_for_a_write_keeps_nobody_from_reading() {
    let (cluster, bytes) = (cluster(), small());
    assert_eq!(cluster.put(&bytes).await, 201);
    for place in 0..usize::from(NODES) {
        cluster.set(place, Mood::NoRoom);
    }
    for _ in 0..20 {
        assert_eq!(cluster.put(&large()).await, 503);
    }
    assert_eq!(cluster.get(&[]).await, (200, Ok(bytes)));
}

#[tokio::test]
async fn the_newest_is_found_on_a_handoff_while_a_primary_is_silent() {
    let (cluster, old, new) = (cluster(), small(), Bytes::from_static(b"newer"));
    assert_eq!(cluster.put(&old).await, 201);
    cluster.set(1, Mood::Hung);
    let handoff = &cluster.nodes[cluster.order[3]];
    handoff.objects.lock().insert("/a/c/o".into(), new.clone());
    cluster.set(3, Mood::Newer);
    for _ in 0..5 {
        assert_eq!(cluster.get(&[("x-newest", "true")]).await, (200, Ok(new.clone())));
    }
}

/// Zones are numbered as nodes are, from one.
fn zone(cluster: &Cluster, place: usize) -> String {
    format!("r1z{}", cluster.order[place] + 1)
}

#[tokio::test]
async fn reads_go_where_affinity_points() {
    let plain = cluster();
    let (near, all) = (zone(&plain, 2), NODES);
    let cluster = cluster_with(|options| {
        options.routing.common.sorting_method = SortingMethod::Affinity;
        options.routing.common.read_affinity = OptionValue::parse(&format!("{near}=1, r1=2")).unwrap();
    });
    for node in 0..usize::from(all) {
        let bytes = if node == cluster.order[2] { "near" } else { "far" };
        cluster.nodes[node].objects.lock().insert("/a/c/o".into(), bytes.into());
    }
    for _ in 0..20 {
        let response = cluster.ask(Method::GET, &[], Body::empty()).await;
        assert_eq!(response.into_body().collect(100).await.unwrap(), "near");
    }
}

#[tokio::test]
async fn writes_stay_where_affinity_points() {
    let plain = cluster();
    let homes = format!("{}, {}", zone(&plain, 3), zone(&plain, 4));
    let cluster = cluster_with(|options| {
        options.routing.common.write_affinity = OptionValue::parse(&homes).unwrap();
    });
    let response = cluster
        .ask(
            Method::PUT,
            &[("content-length", "1")],
            Body::whole(Bytes::from_static(b"x")),
        )
        .await;
    assert_eq!(response.status(), 201);
    let has = |place: usize| !cluster.nodes[cluster.order[place]].objects.lock().is_empty();
    assert!(has(3) && has(4), "the handoffs at home have it");
    assert_eq!((0..3).filter(|place| has(*place)).count(), 1);
}

#[tokio::test]
async fn deletions_reach_what_affinity_has_put_on_handoffs() {
    let plain = cluster();
    let homes = format!("{}, {}, {}", zone(&plain, 0), zone(&plain, 3), zone(&plain, 4));
    for (count, expected) in [("auto", 204), ("0", 404), ("2", 204)] {
        let cluster = cluster_with(|options| {
            options.routing.common.write_affinity = OptionValue::parse(&homes).unwrap();
            options.routing.common.write_affinity_handoff_delete_count = OptionValue::parse(count).unwrap();
        });
        for place in [0, 3, 4] {
            let mut objects = cluster.nodes[cluster.order[place]].objects.lock();
            objects.insert("/a/c/o".into(), "here".into());
        }
        let response = cluster.ask(Method::DELETE, &[], Body::empty()).await;
        assert_eq!(response.status(), expected, "{count}");
        let kept = |place: usize| !cluster.nodes[cluster.order[place]].objects.lock().is_empty();
        assert_eq!(kept(3) || kept(4), expected == 404, "{count}");
    }
}

#[tokio::test]
async fn a_handoff_that_never_had_it_does_not_speak_for_silent_primaries() {
    let cluster = cluster();
    for place in 0..3 {
        cluster.set(place, Mood::Gone);
    }
    for (handoff, expected) in [(Mood::Never, 503), (Mood::Deleted, 404)] {
        cluster.set(3, handoff);
        assert_eq!(cluster.get(&[]).await.0, expected, "{handoff:?}");
    }
}

#[tokio::test]
async fn a_silent_node_is_not_waited_for_where_gets_are_concurrent() {
    let hour = Duration::from_secs(3600);
    let cluster = cluster_with(|options| {
        (options.node_timeout, options.recoverable_node_timeout) = (hour, hour);
        options.routing.common.concurrent_gets = true;
        options.routing.common.concurrency_timeout = Some(Duration::from_millis(10));
    });
    cluster.nodes[cluster.order[2]]
        .objects
        .lock()
        .insert("/a/c/o".into(), "here".into());
    cluster.set(0, Mood::Hung);
    cluster.set(1, Mood::Hung);
    // Without it, it would take an hour for each of the two.
    let response = cluster.ask(Method::GET, &[], Body::empty()).await;
    assert_eq!(response.into_body().collect(100).await.unwrap(), "here");
}

#[tokio::test]
async fn a_deletion_that_one_node_knows_of_beats_older_copies() {
    for newest in [true, false] {
        let (cluster, bytes) = (cluster(), small());
        assert_eq!(cluster.put(&bytes).await, 201);
        cluster.set(2, Mood::Deleted);
        let headers: &[_] = if newest { &[("x-newest", "true")] } else { &[] };
        for _ in 0..10 {
            // Without X-Newest an older copy may be met first.
            let status = cluster.get(headers).await.0;
            assert!(status == 404 || (status == 200 && !newest), "{status}");
        }
    }
}

/// The times of databases are those at which each replica was made, which say nothing of the others.
#[tokio::test]
async fn a_container_is_there_as_long_as_one_server_has_it() {
    for newest in ["true", "false"] {
        for place in 0..3 {
            let cluster = cluster();
            for other in (0..cluster.nodes.len()).filter(|other| *other != place) {
                cluster.set(other, Mood::ContainerDeleted);
            }
            let response = cluster
                .ask_of("/v1/a/c", Method::HEAD, &[("x-newest", newest)], Body::empty())
                .await;
            assert_eq!(response.status(), 204, "{place}, newest {newest}");
        }
    }
}
