//! Direct calls of our server, the bodies that they carry, and what a test waits for.

use super::Times;
use super::ours::{FileDevices, MemoryDevices, options};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use object_server::ObjectServer;
use peer::{Body, BodyError, RawCall, Response, Target};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocabulary::{EntityPath, Partition};
use world::World;

pub fn call(method: &str, device: &str, headers: &[(&str, String)]) -> RawCall {
    let target = Target {
        device: device.into(),
        partition: Partition(1),
        path: Arc::new(EntityPath::split("a/c/o").unwrap()),
    };
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            (
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect();
    RawCall::new(Method::from_bytes(method.as_bytes()).unwrap(), target, headers)
}

pub fn put(seconds: f64, body: Body) -> RawCall {
    let timestamp = ("x-timestamp", Times::new().at(seconds));
    call("PUT", "sda", &[timestamp, ("content-type", "t/t".into())]).with_body(body)
}

pub fn get(range: Option<&str>) -> RawCall {
    let headers: Vec<_> = range.map(|range| ("range", range.to_owned())).into_iter().collect();
    call("GET", "sda", &headers)
}

pub async fn read(response: Response) -> Bytes {
    response.into_body().collect(u64::MAX).await.unwrap()
}

pub fn on_files(root: &Path) -> Arc<ObjectServer> {
    std::fs::create_dir_all(root.join("sda")).unwrap();
    ObjectServer::new(World::real(), options(), Arc::new(FileDevices(root.into()))).unwrap()
}

pub fn in_memory() -> Arc<ObjectServer> {
    ObjectServer::new(World::real(), options(), MemoryDevices::with(&["sda"])).unwrap()
}

/// Files below `root`, directories aside.
pub fn files(root: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root) else {
        return vec![];
    };
    let mut found = Vec::new();
    for entry in entries.map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path().display().to_string()),
        }
    }
    found
}

pub fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// Feeds `bytes` in pieces and then ends with `end`.
pub fn fed(bytes: Bytes, length: Option<u64>, end: Option<BodyError>) -> Body {
    let (feed, body) = Body::channel(2, length);
    tokio::spawn(async move {
        for piece in bytes.chunks(10_000) {
            if !feed.send(Bytes::copy_from_slice(piece)).await {
                return;
            }
        }
        match end {
            None => drop(feed.finish().await),
            Some(error) => feed.fail(error).await,
        }
    });
    body
}

pub async fn until(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
