//! Peers that begin a body and stall in its midst: each costs one time-out.

#![allow(clippy::unwrap_used, reason = "this is test code")]

use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use listing_server::{ListingServer, ListingServerOptions, Reserve};
use object_engine::{EngineError, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use peer::{Address, Body, DATABASE_HEADER, PartitionTarget, RawCall, Service, deletes};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use vocabulary::{HashPrefix, Partition, Policies};
use world::World;

/// How long a storage server waits for the rest of a body.
const PATIENCE: Duration = Duration::from_secs(60);
const HASH: &str = "0123456789abcdef0123456789abcdef";

/// The beginning of a body that never ends.
fn half(beginning: &'static str) -> Body {
    let begun = futures_util::stream::iter([Ok(beginning.as_bytes().into())]);
    Body::stream(begun.chain(futures_util::stream::pending()), Some(1000))
}

fn call(method: &Method, body: Body) -> RawCall {
    let address = match method.as_str() {
        "UPDATE" => Address::parse(method, "/sda/0/a/c").unwrap(),
        _ => Address::Partition(PartitionTarget {
            device: "sda".into(),
            partition: Partition(0),
            rest: HASH.into(),
        }),
    };
    let mut headers = HeaderMap::new();
    headers.insert("x-timestamp", HeaderValue::from_static("1700000000.00000"));
    RawCall {
        method: method.clone(),
        address,
        query: String::new(),
        headers,
        body,
        interim: None,
    }
}

async fn refuses_in_time(server: &dyn Service, call: RawCall) {
    let (began, case) = (Instant::now(), call.method.clone());
    let answer = server.call(call.into()).await;
    let took = began.elapsed();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{case}");
    assert!(took >= PATIENCE && took < PATIENCE * 2, "{case}: {took:?}");
}

fn listing_server(devices: &Path) -> Arc<ListingServer> {
    std::fs::create_dir(devices.join("sda")).unwrap();
    let hash = HashPrefix::new("a", "b").unwrap();
    let options = ListingServerOptions {
        mount_check: false,
        fallocate_reserve: Reserve::Bytes(0),
        ..ListingServerOptions::new(devices, hash, Arc::new(Policies::default()))
    };
    ListingServer::new(World::real(), listing_server::Kind::Container, options).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_listing_server_is_not_held_by_half_a_body() {
    let devices = tempfile::tempdir().unwrap();
    let server = listing_server(devices.path());
    let replicate = Method::from_bytes(b"REPLICATE").unwrap();
    for method in [&replicate, &Method::from_bytes(b"UPDATE").unwrap()] {
        refuses_in_time(&*server, call(method, half("[\"sync\", "))).await;
    }
    let mut database = call(&replicate, half("SQLite format 3\0"));
    let name = "9e001ef1-89d2-42a2-9539-f3fe21373ad9-sdb";
    database.headers.insert(DATABASE_HEADER, HeaderValue::from_static(name));
    refuses_in_time(&*server, database).await;
    let left: Vec<_> = std::fs::read_dir(devices.path().join("sda/tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

struct NoDevices;

impl DeviceSource for NoDevices {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        panic!("{name} was opened for half a request");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_server_is_not_held_by_half_a_batch_of_deletions() {
    let options = ObjectServerOptions {
        client_timeout: PATIENCE,
        ..ObjectServerOptions::new(HashPrefix::new("a", "b").unwrap(), Arc::new(Policies::default()))
    };
    let server = ObjectServer::new(World::real(), options, Arc::new(NoDevices)).unwrap();
    refuses_in_time(&*server, call(&deletes::method(), half("["))).await;
}
