//! Bodies of other nodes' upkeep that come slowly: at the minimum rate they may take long, below it they end.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method};
use object_server::{ObjectServer, ObjectServerOptions, ReplicationOptions};
use peer::{Address, Body, PartitionTarget, RawCall, Response, Service, deletes};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::ours::{FileDevices, options};
use vocabulary::{Partition, PathHash, Timestamp};
use world::{BoxFuture, Clock, World};

/// Tokio's time, which stands still while there is work.
struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// One exchange at a time, and 1000 bytes a second.
fn server(root: &Path) -> Arc<ObjectServer> {
    std::fs::create_dir_all(root.join("sda")).unwrap();
    let options = ObjectServerOptions {
        client_timeout: Duration::from_secs(60),
        min_transfer_rate: 1_000,
        replication: ReplicationOptions {
            concurrency: 1,
            ..ReplicationOptions::default()
        },
        ..options()
    };
    let world = World {
        clock: Arc::new(TokioClock(tokio::time::Instant::now())),
        ..World::real()
    };
    ObjectServer::new(world, options, Arc::new(FileDevices(root.into()))).unwrap()
}

/// So many bytes of `body` each second.
fn slowly(body: &str, rate: usize) -> Body {
    let second = move |body: Bytes| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let count = rate.min(body.len());
        (count > 0).then(|| (Ok(body.slice(..count)), body.slice(count..)))
    };
    Body::stream(stream::unfold(Bytes::from(body.to_owned()), second), None)
}

async fn answer(server: &ObjectServer, method: Method, body: Body) -> Response {
    let call = RawCall {
        method,
        address: Address::Partition(PartitionTarget {
            device: "sda".into(),
            partition: Partition(1),
            rest: String::new(),
        }),
        query: String::new(),
        headers: HeaderMap::new(),
        body,
        interim: None,
    };
    server.call(call.into()).await
}

async fn exchange(server: &ObjectServer, body: Body) -> String {
    let answer = answer(server, Method::from_bytes(b"SSYNC").unwrap(), body).await;
    let response = answer.into_body().collect(u64::MAX).await;
    response.map_or_else(
        |error| error.to_string(),
        |response| String::from_utf8_lossy(&response).into_owned(),
    )
}

fn put(name: usize, length: usize) -> String {
    let head = "X-Timestamp: 1700000000.00000\r\nContent-Type: t/t\r\n";
    let body = "x".repeat(length);
    format!("PUT /a/c/{name}\r\n{head}Content-Length: {length}\r\n\r\n{body}")
}

#[tokio::test(start_paused = true)]
async fn an_exchange_may_take_as_long_as_its_rate_is_worth() {
    let offer = |n: u8| format!("{} 1700000000.00000\r\n", PathHash([n; 16]));
    let offers: String = (0..12).flat_map(|_| 0..=255).map(offer).collect();
    let small: String = (0..150).map(|n| put(n, 1_000)).collect();
    for (offers, requests) in [(offers.as_str(), String::new()), ("", small), ("", put(0, 150_000))] {
        let body = format!(
            ":MISSING_CHECK: START\r\n{offers}:MISSING_CHECK: END\r\n:UPDATES: START\r\n{requests}:UPDATES: END\r\n"
        );
        let root = tempfile::tempdir().unwrap();
        let server = server(root.path());
        for (rate, end) in [
            (1_100, ":UPDATES: END\r\n"),
            (900, ":ERROR: 408"),
            (1_100, ":UPDATES: END\r\n"),
        ] {
            let response = exchange(&server, slowly(&body, rate)).await;
            let last = &response[response.rfind(end).unwrap_or_default()..];
            assert!(
                last.starts_with(end) && last.lines().count() == 1,
                "{rate}: {response:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_deletions_may_take_as_long_as_its_rate_is_worth() {
    let root = tempfile::tempdir().unwrap();
    let server = server(root.path());
    let empty = String::from_utf8(deletes::encode(&[]).to_vec()).unwrap();
    let body = format!("{}{empty}", " ".repeat(150_000));
    for (rate, status) in [(1_100, 200), (900, 408)] {
        let answer = answer(&server, deletes::method(), slowly(&body, rate)).await;
        assert_eq!(answer.status(), status, "at {rate} bytes a second");
    }
}
