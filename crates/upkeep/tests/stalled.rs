//! Peers that begin a body and stall in its midst: each costs one time-out.

#![allow(clippy::unwrap_used, reason = "this is test code")]

use futures_util::StreamExt;
use http::{HeaderValue, StatusCode};
use listing_server::{ListingServer, ListingServerOptions, Reserve};
use object_engine::{EngineError, ObjectEngine};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use peer::message::{DeleteObjects, Message, ReplicateDatabase, RequestContext, RowChange, UpdateContainer};
use peer::{Body, Call, PartitionTarget, Service, Target};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use vocabulary::{EntityPath, HashPrefix, Partition, Policies, Timestamp};
use world::World;

/// How long a storage server waits for the rest of a body.
const PATIENCE: Duration = Duration::from_secs(60);
const HASH: &str = "0123456789abcdef0123456789abcdef";

/// The beginning of a body that never ends.
fn half(beginning: &'static str) -> Body {
    let begun = futures_util::stream::iter([Ok(beginning.as_bytes().into())]);
    Body::stream(begun.chain(futures_util::stream::pending()), Some(1000))
}

/// The partition directory or the database that the request is about.
fn target() -> PartitionTarget {
    PartitionTarget {
        device: "sda".into(),
        partition: Partition(0),
        rest: HASH.into(),
    }
}

async fn refuses_in_time(server: &dyn Service, message: impl Into<Message>, body: Body, status: StatusCode) {
    let call = Call::new(RequestContext::default(), message).with_body(body);
    let (began, case) = (Instant::now(), call.message.method());
    let answer = server.call(call).await;
    let took = began.elapsed();
    assert_eq!(answer.status(), status, "{case}");
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
    let update = UpdateContainer {
        change: RowChange::Batch,
        timestamp: Timestamp::from_seconds(1_700_000_000).into(),
        ..UpdateContainer::new(Target {
            device: "sda".into(),
            partition: Partition(0),
            path: Arc::new(EntityPath::account("a").with_container("c")),
        })
    };
    let replicate = ReplicateDatabase::new(target());
    refuses_in_time(&*server, replicate, half("[\"sync\", "), StatusCode::REQUEST_TIMEOUT).await;
    refuses_in_time(&*server, update, half("[\"sync\", "), StatusCode::REQUEST_TIMEOUT).await;
    let name = "9e001ef1-89d2-42a2-9539-f3fe21373ad9-sdb";
    let database = ReplicateDatabase {
        database: Some(HeaderValue::from_static(name)),
        ..ReplicateDatabase::new(target())
    };
    refuses_in_time(
        &*server,
        database,
        half("SQLite format 3\0"),
        StatusCode::REQUEST_TIMEOUT,
    )
    .await;
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
    refuses_in_time(
        &*server,
        DeleteObjects::new(target()),
        half("["),
        StatusCode::REQUEST_TIMEOUT,
    )
    .await;
}
