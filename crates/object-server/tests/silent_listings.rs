//! Rows for a container server that is silent: they are kept at once, and one at a time is sent until it answers.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderName, HeaderValue, StatusCode};
use object_server::{ObjectServer, ObjectServerOptions};
use peer::{Body, Call, Peers, Response, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::calls::{files, put};
use support::ours::{FileDevices, options};
use tokio::sync::watch;
use world::World;

/// How long a row is waited for; the server is silent before that.
const PATIENCE: Duration = Duration::from_millis(400);

/// A container server that can be stopped, as SIGSTOP does it.
struct Listing {
    is_stopped: watch::Sender<bool>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Service for Listing {
    async fn call(&self, _: Call) -> Response {
        self.asked.fetch_add(1, SeqCst);
        self.is_stopped
            .subscribe()
            .wait_for(|is_stopped| !is_stopped)
            .await
            .unwrap();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::CREATED;
        response
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_silent_server_are_kept_at_once() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("sda")).unwrap();
    let options = ObjectServerOptions {
        node_timeout: Duration::from_secs(3600),
        container_update_timeout: PATIENCE,
        silence_timeout: PATIENCE / 4,
        ..options()
    };
    let server = ObjectServer::new(World::real(), options, Arc::new(FileDevices(place.path().into()))).unwrap();
    let listing = Arc::new(Listing {
        is_stopped: watch::Sender::new(true),
        asked: AtomicUsize::new(0),
    });
    let mut peers = Peers::new(World::real());
    peers.register("127.0.0.9", 6201, listing.clone());
    server.set_peers(Arc::new(peers));
    let pending = || {
        let kept = files(&place.path().join("sda"));
        kept.iter().filter(|file| file.contains("async_pending")).count()
    };

    // It is not known yet: this one waits.
    let began = Instant::now();
    written(&server, 1).await;
    assert!(began.elapsed() >= PATIENCE);
    assert_eq!((pending(), listing.asked.load(SeqCst)), (1, 1));
    for number in 2..10 {
        written(&server, number).await;
        assert!(
            listing.asked.load(SeqCst) <= 2,
            "the first waits, one asks whether it answers again, and no other"
        );
    }
    assert_eq!(server.silence().silent(), 1);
    assert_eq!(pending(), 9, "each row is kept");

    listing.is_stopped.send_replace(false);
    while server.silence().silent() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for file in files(&place.path().join("sda")) {
        if file.contains("async_pending") {
            std::fs::remove_file(file).unwrap();
        }
    }
    written(&server, 10).await;
    assert!(listing.asked.load(SeqCst) >= 3);
    assert_eq!(pending(), 0, "it has the row");
}

/// Writes the object at this second.
async fn written(server: &ObjectServer, second: u16) {
    let mut call = put(f64::from(second), Body::whole("x"));
    for (name, value) in [
        ("x-container-host", "127.0.0.9:6201"),
        ("x-container-device", "sdb"),
        ("x-container-partition", "3"),
    ] {
        call.headers
            .insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    assert_eq!(server.call(call.into()).await.status(), StatusCode::CREATED);
}
