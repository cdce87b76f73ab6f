//! When object servers hear of an upload that streams: not before its first piece is in the gateway, unless the client
//! waits for their word.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use arc_swap::ArcSwap;
use bytes::Bytes;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use http::{HeaderValue, Method, StatusCode};
use peer::{Body, Call, Feed, HttpService, Peers, Response, Service};
use placement::{Device, Ring, RingBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use vocabulary::{HashPrefix, Policies, PolicyIndex};
use world::World;

/// What is sent at a time; the gateway gathers many of these.
const DROP: usize = 1000;
const LENGTH: usize = 200 * DROP;
const REPLICAS: usize = 3;

/// Counts the uploads that it was asked to take, and takes them.
#[derive(Default)]
struct Node {
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Node {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        if call.method != Method::PUT {
            return answer(204);
        }
        self.asked.fetch_add(1, SeqCst);
        match call.body.collect(1 << 20).await {
            Ok(_) => answer(201),
            Err(_) => answer(499),
        }
    }
}

fn answer(code: u16) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    let headers = response.headers_mut();
    headers.insert("x-backend-storage-policy-index", HeaderValue::from_static("0"));
    headers.insert("x-backend-timestamp", HeaderValue::from_static("1700000000.00000"));
    response
}

fn gateway() -> (Gateway, Arc<Node>) {
    let world = World::real();
    let mut builder = RingBuilder::new(4, 3.0, 1).unwrap();
    let mut peers = Peers::new(world.clone());
    let node = Arc::new(Node::default());
    for port in 1..=3 {
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
        peers.register("node", port, node.clone());
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
        client_timeout: Duration::from_secs(60),
        ..GatewayOptions::default()
    };
    let shared = Shared::new(world, options, rings, Arc::new(peers), None);
    (Gateway::new(shared, vec![]), node)
}

fn upload(body: Body, expects: bool) -> http::Request<Body> {
    let request = http::Request::put("/v1/a/c/o").header("content-length", LENGTH);
    let request = match expects {
        true => request.header("expect", "100-continue"),
        false => request,
    };
    request.body(body).unwrap()
}

/// Sends so many drops; all but the last have been taken then.
async fn drip(feed: &Feed, drops: usize) {
    for _ in 0..drops {
        assert!(feed.send(Bytes::from_static(&[b'x'; DROP])).await);
    }
}

#[tokio::test]
async fn a_crawling_upload_is_no_object_servers_until_its_first_piece_is_whole() {
    let ((gateway, node), (feed, body)) = (gateway(), Body::channel(1, Some(LENGTH as u64)));
    let serving = gateway.serve(upload(body, false), "127.0.0.1:1".parse().unwrap());
    let sending = async {
        drip(&feed, 60).await;
        assert_eq!(node.asked.load(SeqCst), 0, "before 64 KiB have come");
        drip(&feed, LENGTH / DROP - 60).await;
        assert_eq!(node.asked.load(SeqCst), REPLICAS);
        feed.finish().await
    };
    let (response, finished) = tokio::join!(serving, sending);
    assert_eq!((response.status(), finished), (StatusCode::CREATED, true));
}

#[tokio::test]
async fn an_upload_that_ends_within_its_first_piece_never_reaches_them() {
    let ((gateway, node), (feed, body)) = (gateway(), Body::channel(1, Some(LENGTH as u64)));
    let serving = gateway.serve(upload(body, false), "127.0.0.1:1".parse().unwrap());
    let sending = async {
        drip(&feed, 3).await;
        feed.finish().await
    };
    let (response, _) = tokio::join!(serving, sending);
    assert_eq!(response.status().as_u16(), 499);
    assert_eq!(node.asked.load(SeqCst), 0);
}

#[tokio::test]
async fn a_client_that_waits_for_their_word_hears_it_before_it_sends() {
    let ((gateway, node), (mut feed, body)) = (gateway(), Body::channel(1, Some(LENGTH as u64)));
    let serving = gateway.serve(upload(body, true), "127.0.0.1:1".parse().unwrap());
    let sending = async {
        assert!(feed.started().await, "the first look at the body is its acceptance");
        assert_eq!(node.asked.load(SeqCst), REPLICAS);
        drip(&feed, LENGTH / DROP).await;
        feed.finish().await
    };
    let (response, finished) = tokio::join!(serving, sending);
    assert_eq!((response.status(), finished), (StatusCode::CREATED, true));
}
