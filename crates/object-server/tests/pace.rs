//! How fast one node's object server is by direct call, printed; asserts nothing. Run by hand:
//! `cargo test --release -p object-server --test pace -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement prints")]

mod support;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use object_server::{DeviceSource, ObjectServer};
use peer::{Body, RawCall, Service, Target};
use std::sync::Arc;
use std::time::Instant;
use support::ours::{FileDevices, MemoryDevices, options};
use vocabulary::{EntityPath, Partition};
use world::World;

const AT_A_TIME: usize = 32;

async fn run(what: &str, server: &Arc<ObjectServer>, count: usize, method: Method, body: Bytes) {
    let began = Instant::now();
    let tasks = (0..AT_A_TIME).map(|task| {
        let (server, method, body) = (server.clone(), method.clone(), body.clone());
        tokio::spawn(async move {
            for number in (task..count).step_by(AT_A_TIME) {
                let target = Target {
                    device: "sda".into(),
                    partition: Partition((number % 1024) as u32),
                    path: Arc::new(EntityPath::split(&format!("a/c/o{number}")).unwrap()),
                };
                let mut headers = HeaderMap::new();
                headers.insert(
                    "x-timestamp",
                    HeaderValue::from_str(&World::real().clock.now().normal()).unwrap(),
                );
                headers.insert("content-type", HeaderValue::from_static("application/octet-stream"));
                let call = RawCall::new(method.clone(), target, headers).with_body(Body::whole(body.clone()));
                let answer = server.call(call.into()).await;
                assert!(answer.status().is_success(), "{}", answer.status());
                answer.into_body().collect(u64::MAX).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    println!("{what}: {:.0} per second", count as f64 / began.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, run by hand"]
async fn pace() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("sda")).unwrap();
    let sources: [(&str, Arc<dyn DeviceSource>); 2] = [
        ("memory", MemoryDevices::with(&["sda"])),
        ("files", Arc::new(FileDevices(place.path().into()))),
    ];
    for (engine, source) in sources {
        let server = ObjectServer::new(World::real(), options(), source).unwrap();
        let small = Bytes::from(vec![7; 4096]);
        run(&format!("{engine}: PUT 4 KiB"), &server, 10_000, Method::PUT, small).await;
        run(
            &format!("{engine}: GET 4 KiB"),
            &server,
            10_000,
            Method::GET,
            Bytes::new(),
        )
        .await;
        run(&format!("{engine}: HEAD"), &server, 10_000, Method::HEAD, Bytes::new()).await;
        run(
            &format!("{engine}: DELETE"),
            &server,
            10_000,
            Method::DELETE,
            Bytes::new(),
        )
        .await;
        let large = Bytes::from(vec![7; 1 << 20]);
        run(&format!("{engine}: PUT 1 MiB"), &server, 400, Method::PUT, large).await;
        run(&format!("{engine}: GET 1 MiB"), &server, 400, Method::GET, Bytes::new()).await;
    }
}
