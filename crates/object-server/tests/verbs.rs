//! What no comparison with OpenStack shows: long bodies, bodies cut short, devices that come and go,
//! direct calls, and what happens when somebody loses patience.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use object_engine::{
    Commit, EngineError, FilesConfig, FilesEngine, FoundObject, ListingUpdate, MemoryEngine, MetadataUpdate,
    ObjectEngine, ObjectKey, ObjectWriter, OpenOptions,
};
use object_server::{DeviceSource, ObjectServer};
use parking_lot::Mutex;
use peer::deletes::{self, OneDelete};
use peer::{Address, Body, BodyError, Call, Digest, PartitionTarget, Peers, RawCall, Response, Service, Target};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::Times;
use support::container::Container;
use support::ours::{FileDevices, MemoryDevices, options};
use vocabulary::{EntityPath, Partition, PathHash, PolicyIndex, Timestamp};
use world::World;

fn call(method: &str, device: &str, headers: &[(&str, String)]) -> RawCall {
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

fn put(seconds: f64, body: Body) -> RawCall {
    let timestamp = ("x-timestamp", Times::new().at(seconds));
    call("PUT", "sda", &[timestamp, ("content-type", "t/t".into())]).with_body(body)
}

fn get(range: Option<&str>) -> RawCall {
    let headers: Vec<_> = range.map(|range| ("range", range.to_owned())).into_iter().collect();
    call("GET", "sda", &headers)
}

async fn read(response: Response) -> Bytes {
    response.into_body().collect(u64::MAX).await.unwrap()
}

fn on_files(root: &Path) -> Arc<ObjectServer> {
    std::fs::create_dir_all(root.join("sda")).unwrap();
    ObjectServer::new(World::real(), options(), Arc::new(FileDevices(root.into()))).unwrap()
}

fn in_memory() -> Arc<ObjectServer> {
    ObjectServer::new(World::real(), options(), MemoryDevices::with(&["sda"])).unwrap()
}

/// Files below `root`, directories aside.
fn files(root: &Path) -> Vec<String> {
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

fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// Feeds `bytes` in pieces and then ends as told.
fn fed(bytes: Bytes, length: Option<u64>, end: Option<BodyError>) -> Body {
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

/// An older POST may bring a newer content type. That its metadata stay out is said beside the 202: a gateway of ours
/// sends it again then, with a later time.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_metadata_come_too_late_is_answered_with_the_newer_time() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let times = Times::new();
        let post = |seconds, headers: &[(&'static str, &str)]| {
            let mut all = vec![
                ("x-timestamp", times.at(seconds)),
                ("x-object-meta-colour", "red".into()),
            ];
            all.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
            server.call(call("POST", "sda", &all).into())
        };
        assert_eq!(
            server.call(put(5.0, Body::whole("it")).into()).await.status(),
            StatusCode::CREATED
        );
        for (seconds, headers, status, newer) in [
            (10.0, &[][..], 202, None),
            (8.0, &[("content-type", "a/b")][..], 202, Some(10.0)),
            (9.0, &[], 409, Some(10.0)),
            (11.0, &[("content-type", "c/d")], 202, None),
        ] {
            let answer = post(seconds, headers).await;
            let given = answer.headers().get("x-backend-timestamp");
            let given = given.map(|value| value.to_str().unwrap().to_owned());
            let expected = (status, newer.map(|newer| times.at(newer)));
            assert_eq!((answer.status().as_u16(), given), expected, "{seconds}");
        }
    }
}

/// The expirer's time is that of the expiry. What was written before it, on servers that this one could not hear, is newer than
/// what is deleted here.
#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_takes_only_the_version_it_is_of() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let times = Times::new();
        let due = times.whole(15);
        let expiring = [
            ("x-timestamp", times.at(10.0)),
            ("content-type", "t/t".into()),
            ("x-delete-at", due.clone()),
        ];
        let stored = server
            .call(call("PUT", "sda", &expiring).with_body(Body::whole("old")).into())
            .await;
        assert_eq!(stored.status(), StatusCode::CREATED);
        let expired = [("x-timestamp", times.at(15.0)), ("x-if-delete-at", due)];
        let deleted = server.call(call("DELETE", "sda", &expired).into()).await;
        assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
        assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
        // It is gone for good: the same version, brought back by a server that had been away, stays out.
        let again = server
            .call(call("PUT", "sda", &expiring).with_body(Body::whole("old")).into())
            .await;
        assert_eq!(again.status(), StatusCode::CONFLICT);
        let newer = server.call(put(12.0, Body::whole("new")).into()).await;
        assert_eq!(newer.status(), StatusCode::CREATED);
        assert_eq!(read(server.call(get(None).into()).await).await, "new");
        assert_eq!(
            server.call(call("DELETE", "sda", &expired).into()).await.status(),
            StatusCode::PRECONDITION_FAILED
        );
    }
}

/// A container server in this process: who asked what of it.
struct Listing {
    status: StatusCode,
    told: Mutex<Vec<(String, serde_json::Value)>>,
}

#[async_trait::async_trait]
impl Service for Listing {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let line = format!("{} {}", call.method, call.address.url_path());
        let body = call.body.collect(1 << 20).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.told.lock().push((line, body));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response
    }
}

/// Each of many DELETEs is answered as if it had come alone; the rows go to their container in one request, or are kept.
#[tokio::test(flavor = "multi_thread")]
async fn many_deletes_are_as_one_after_the_other() {
    let place = tempfile::tempdir().unwrap();
    let times = Times::new();
    let due = times.whole(15);
    for (status, kept) in [(StatusCode::ACCEPTED, 0), (StatusCode::SERVICE_UNAVAILABLE, 2)] {
        let root = place.path().join(status.as_str());
        let server = on_files(&root);
        let listing = Arc::new(Listing {
            status,
            told: Mutex::default(),
        });
        let mut peers = Peers::new(World::real());
        peers.register("127.0.0.9", 6201, listing.clone());
        server.set_peers(Arc::new(peers));
        let at = |object: &str, partition| Target {
            device: "sda".into(),
            partition,
            path: Arc::new(EntityPath::account("a").with_container("c").with_object(object)),
        };
        for (object, when) in [("1", 10.0), ("2", 10.0), ("newer", 20.0), ("other", 10.0)] {
            let mut call = put(when, Body::whole("body"));
            call.address = Address::Entity(at(object, Partition(3)));
            let expires = match object {
                "newer" => None,
                "other" => Some(times.whole(16)),
                _ => Some(due.clone()),
            };
            if let Some(expires) = expires {
                call.headers.insert("x-delete-at", expires.parse().unwrap());
            }
            assert_eq!(server.call(call.into()).await.status(), StatusCode::CREATED);
        }
        let one = |object: &str, partition| OneDelete {
            partition,
            path: (*at(object, Partition(0)).path).clone(),
            headers: [
                ("x-timestamp", times.at(15.0)),
                ("x-if-delete-at", due.clone()),
                ("x-backend-clean-expiring-object-queue", "no".into()),
                ("x-container-partition", "5".into()),
                ("x-container-host", "127.0.0.9:6201".into()),
                ("x-container-device", "sdc".into()),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        };
        let mut asked: Vec<_> = ["1", "2", "newer", "other", "never"]
            .map(|name| one(name, Partition(3)))
            .into();
        asked.push(one("1", Partition(4)));
        asked[5].headers.clear();
        let ask = |device: &str, asked: &[OneDelete]| RawCall {
            method: deletes::method(),
            address: Address::Partition(PartitionTarget {
                device: device.into(),
                partition: Partition(0),
                rest: String::new(),
            }),
            ..call("PUT", device, &[]).with_body(Body::whole(deletes::encode(asked)))
        };
        let answer = server.call(ask("sda", &asked).into()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let statuses = deletes::decode_statuses(&read(answer).await, 6).unwrap();
        assert_eq!(statuses, [204, 204, 409, 412, 404, 400]);
        let told = std::mem::take(&mut *listing.told.lock());
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "UPDATE /sdc/5/a/c");
        let names: Vec<_> = (told[0].1.as_array().unwrap().iter())
            .map(|row| (row["name"].as_str().unwrap(), row["deleted"].as_i64()))
            .collect();
        assert_eq!(names, [("1", Some(1)), ("2", Some(1))]);
        let pending = files(&root)
            .iter()
            .filter(|path| path.contains("async_pending"))
            .count();
        assert_eq!(pending, kept);
        assert_eq!(files(&root).iter().filter(|path| path.ends_with(".ts")).count(), 2);
        for object in ["1", "newer"] {
            let mut call = get(None);
            call.address = Address::Entity(at(object, Partition(3)));
            let is_gone = server.call(call.into()).await.status() == StatusCode::NOT_FOUND;
            assert_eq!(is_gone, object == "1");
        }
        // Nothing asked for: whether the verb is known. Nothing that is no list.
        assert_eq!(read(server.call(ask("sda", &[]).into()).await).await, "[]");
        let answer = server.call(ask("sdz", &asked[..1]).into()).await;
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
        let rubbish = ask("sda", &[]).with_body(Body::whole("{}"));
        assert_eq!(server.call(rubbish.into()).await.status(), StatusCode::BAD_REQUEST);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_stream_both_ways() {
    let place = tempfile::tempdir().unwrap();
    for server in [on_files(place.path()), in_memory()] {
        let bytes = pattern(3_000_000);
        for (seconds, length) in [(1.0, Some(3_000_000)), (2.0, None)] {
            let written = server.call(put(seconds, fed(bytes.clone(), length, None)).into()).await;
            assert_eq!(written.status(), StatusCode::CREATED);
            let whole = server.call(get(None).into()).await;
            assert_eq!(whole.headers()["content-length"], "3000000");
            assert_eq!(read(whole).await, bytes);
        }
        for (range, start, end) in [
            ("bytes=100-2000000", 100, 2_000_001),
            ("bytes=2999990-", 2_999_990, 3_000_000),
        ] {
            let part = server.call(get(Some(range)).into()).await;
            assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
            assert_eq!(read(part).await, bytes.slice(start..end));
        }
        let parts = server
            .call(get(Some("bytes=0-499999,1000000-1999999,70000-70009")).into())
            .await;
        let promised: usize = parts.headers()["content-length"].to_str().unwrap().parse().unwrap();
        let parts = read(parts).await;
        assert_eq!(parts.len(), promised);
        for (start, end) in [(0, 500_000), (1_000_000, 2_000_000), (70_000, 70_010)] {
            assert!(parts.windows(end - start).any(|window| window == &bytes[start..end]));
        }
        // A reader that goes away in the middle leaves the server as it was.
        let mut left = server.call(get(None).into()).await.into_body();
        assert!(left.next().await.unwrap().is_ok());
        drop(left);
        assert_eq!(
            server.call(get(Some("bytes=0-0")).into()).await.status(),
            StatusCode::PARTIAL_CONTENT
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_cut_short_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    for (error, status) in [
        (BodyError::Abandoned, 499),
        (BodyError::Broken("reset".into()), 499),
        (BodyError::TimedOut, 408),
    ] {
        for (length, bytes) in [
            (Some(900_000), pattern(600_000)),
            (Some(900), pattern(600)),
            (None, pattern(600_000)),
        ] {
            let answer = server
                .call(put(1.0, fed(bytes, length, Some(error.clone()))).into())
                .await;
            assert_eq!(answer.status().as_u16(), status, "{error}");
        }
    }
    let short = server
        .call(put(1.0, fed(pattern(600_000), Some(900_000), None)).into())
        .await;
    assert_eq!(short.status().as_u16(), 499, "ended early");
    let long = server
        .call(put(1.0, fed(pattern(600_000), Some(300_000), None)).into())
        .await;
    assert_eq!(long.status(), StatusCode::BAD_REQUEST, "longer than promised");
    let mut wrong = put(1.0, fed(pattern(600_000), None, None));
    wrong
        .headers
        .insert("etag", HeaderValue::from_static("d41d8cd98f00b204e9800998ecf8427e"));
    assert_eq!(
        server.call(wrong.into()).await.status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
    until(|| files(&place.path().join("sda")).is_empty()).await;
}

async fn until(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_vanishes_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let (feed, body) = Body::channel(1, None);
    let writing = tokio::spawn({
        let server = server.clone();
        async move { server.call(put(1.0, body).into()).await.status() }
    });
    for _ in 0..100 {
        assert!(feed.send(pattern(10_000)).await);
    }
    // As when a connection breaks: the call is dropped where it stands.
    writing.abort();
    drop(writing.await);
    until(|| files(&place.path().join("sda")).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let unavailable = |answer: Response| async {
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert!(read(answer).await.ends_with(b"Drive: sda</p></html>"));
    };
    assert_eq!(
        server.call(put(1.0, Body::whole("one")).into()).await.status(),
        StatusCode::CREATED
    );
    let (here, away) = (place.path().join("sda"), place.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    unavailable(server.call(get(None).into()).await).await;
    unavailable(server.call(put(2.0, Body::whole("two")).into()).await).await;
    unavailable(server.call(put(2.0, fed(pattern(100_000), None, None)).into()).await).await;
    let timestamp = ("x-timestamp", Times::new().at(2.0));
    unavailable(
        server
            .call(call("POST", "sda", std::slice::from_ref(&timestamp)).into())
            .await,
    )
    .await;
    unavailable(
        server
            .call(call("DELETE", "sda", std::slice::from_ref(&timestamp)).into())
            .await,
    )
    .await;
    assert!(!here.exists(), "nothing is made below a mount point");
    std::fs::rename(&away, &here).unwrap();
    assert_eq!(read(server.call(get(None).into()).await).await, "one");
    assert_eq!(
        server.call(put(3.0, Body::whole("three")).into()).await.status(),
        StatusCode::CREATED
    );
    // A new drive in its place.
    std::fs::rename(&here, &away).unwrap();
    std::fs::create_dir(&here).unwrap();
    assert_eq!(server.call(get(None).into()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        server.call(put(4.0, Body::whole("four")).into()).await.status(),
        StatusCode::CREATED
    );
    assert_eq!(read(server.call(get(None).into()).await).await, "four");
    // Names that are no device cost nothing and make nothing.
    let stranger = server.call(call("GET", "sdz", &[]).into()).await;
    assert_eq!(stranger.status(), StatusCode::INSUFFICIENT_STORAGE);
    assert!(!place.path().join("sdz").exists());
}

/// A drive that hangs answers what was read lately, as it answered then, and its workers are not asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_lately_needs_no_worker() {
    struct Hanging(FilesEngine, parking_lot::RwLock<()>);
    impl ObjectEngine for Hanging {
        fn replica(&self) -> &dyn object_engine::Replica {
            &self.0
        }

        fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
            drop(self.1.read());
            self.0.open(key, options)
        }
        fn open_hot(&self, key: &ObjectKey, options: OpenOptions) -> Option<FoundObject> {
            self.0.open_hot(key, options)
        }
        fn create(&self, key: &ObjectKey, size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError> {
            self.0.create(key, size)
        }
        fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>> {
            self.0.put_all(puts)
        }
        fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError> {
            self.0.write_metadata(key, update)
        }
        fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>> {
            self.0.delete_all(deletions)
        }
        fn quarantine(&self, key: &ObjectKey, why: &str) -> Result<(), EngineError> {
            self.0.quarantine(key, why)
        }
        fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError> {
            self.0.save_listing_update(update)
        }
        fn check(&self) -> Result<(), EngineError> {
            self.0.check()
        }
        fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError> {
            self.0.partitions(policy)
        }
        fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError> {
            self.0.suffixes(policy, partition)
        }
        fn hashes(
            &self,
            policy: PolicyIndex,
            partition: Partition,
            suffix: &str,
        ) -> Result<Vec<PathHash>, EngineError> {
            self.0.hashes(policy, partition, suffix)
        }
    }
    struct One(Arc<dyn ObjectEngine>);
    impl DeviceSource for One {
        fn open(&self, _: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
            Ok(self.0.clone())
        }
    }
    let place = tempfile::tempdir().unwrap();
    if !World::real().files.can_glance(place.path()) {
        return; // the tests run on a network file system or the like
    }
    let config = FilesConfig {
        mount_check: false,
        ..FilesConfig::new("sda", place.path())
    };
    let forgetful = FilesConfig {
        hot_objects: 0,
        ..config.clone()
    };
    let forgetful = FilesEngine::start(forgetful, World::real());
    let engine = Arc::new(Hanging(FilesEngine::start(config, World::real()), Default::default()));
    let server = ObjectServer::new(World::real(), options(), Arc::new(One(engine.clone()))).unwrap();
    let forgetful = ObjectServer::new(World::real(), options(), Arc::new(One(Arc::new(forgetful)))).unwrap();
    server.call(put(1.0, Body::whole("abcdefgh")).into()).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let questions = || {
        let with = |name: &str, value: &str| call("GET", "sda", &[(name, value.to_owned())]);
        let etag = "\"e8dc4081b13434b45189a720b77b6818\"";
        [
            get(None),
            call("HEAD", "sda", &[]),
            get(Some("bytes=2-4")),
            get(Some("bytes=9-")),
            with("if-none-match", etag),
            with("if-match", "\"other\""),
        ]
    };
    let ask = async |server: &ObjectServer, question: RawCall| {
        let mut answer = server.call(question.into()).await;
        let headers = std::mem::take(answer.headers_mut());
        (answer.status(), headers, read(answer).await)
    };
    let mut ordinary = vec![];
    for question in questions() {
        ordinary.push(ask(&forgetful, question).await);
    }
    ask(&server, get(None)).await;
    let hanging = engine.clone();
    let (release, hang) = std::sync::mpsc::channel::<()>();
    let held = std::thread::spawn(move || {
        let _hung = hanging.1.write();
        let _ = hang.recv();
    });
    until(|| engine.1.is_locked_exclusive()).await;
    for (question, expected) in questions().into_iter().zip(ordinary) {
        let answer = tokio::time::timeout(Duration::from_secs(60), ask(&server, question)).await;
        assert_eq!(answer.unwrap(), expected);
    }
    drop(release);
    held.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_back_body_is_not_touched_before_it_is_wanted() {
    let server = in_memory();
    assert_eq!(
        server.call(put(5.0, Body::whole("new")).into()).await.status(),
        StatusCode::CREATED
    );
    for (seconds, length, wanted) in [(1.0, 10, false), (1.0, 100_000, false), (6.0, 10, true)] {
        let (mut feed, body) = Body::channel(1, Some(length));
        let mut held = put(seconds, body);
        held.headers.insert("expect", HeaderValue::from_static("100-continue"));
        held.headers.insert("content-length", HeaderValue::from(length));
        let feeding = async move {
            let started = feed.started().await;
            if started {
                assert!(feed.send(pattern(10)).await);
                feed.finish().await;
            }
            started
        };
        let (answer, started) = tokio::join!(server.call(held.into()), feeding);
        assert_eq!((answer.status() == StatusCode::CREATED, started), (wanted, wanted));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_computed_next_door_is_taken() {
    let server = in_memory();
    let digest = "0123456789abcdef0123456789abcdef";
    for (seconds, body) in [(1.0, Body::whole("x")), (2.0, fed(pattern(100_000), None, None))] {
        let known = server
            .call(put(seconds, body.with_digest(Digest::known(digest))).into())
            .await;
        assert_eq!(known.headers()["etag"], format!("\"{digest}\""));
    }
}

/// The row goes out, or is kept, even when whoever asked has gone; and a slow listing holds nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn listings_are_told_whatever_happens() {
    let slow = Container::start("201 Created", String::new(), Duration::from_secs(40));
    let quick = Container::start("201 Created", String::new(), Duration::ZERO);
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    server.set_peers(Arc::new(Peers::new(World::real())));
    let telling = |seconds: f64, container: &Container| {
        let mut call = put(seconds, Body::whole("x"));
        for (name, value) in [
            ("x-container-host", format!("127.0.0.1:{}", container.port)),
            ("x-container-device", "sdb".to_owned()),
            ("x-container-partition", "3".to_owned()),
        ] {
            call.headers
                .insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
        }
        call
    };
    let pending = || {
        let mut found = files(&place.path().join("sda"));
        found.retain(|file| file.contains("async_pending"));
        found.len()
    };
    let began = Instant::now();
    assert_eq!(
        server.call(telling(1.0, &slow).into()).await.status(),
        StatusCode::CREATED
    );
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(900) && took < Duration::from_secs(30),
        "{took:?}"
    );
    assert_eq!((slow.take().len(), pending()), (1, 1));
    let second = telling(2.0, &quick);
    let before = second.headers["x-timestamp"].clone();
    assert_eq!(server.call(second.into()).await.status(), StatusCode::CREATED);
    assert_eq!((quick.take().len(), pending()), (1, 1));
    // The gateway had its quorum and left.
    let left = tokio::spawn({
        let (server, call) = (server.clone(), telling(3.0, &quick));
        async move { server.call(call.into()).await }
    });
    tokio::task::yield_now().await;
    left.abort();
    drop(left.await);
    let told = Instant::now();
    while quick.take().is_empty() {
        // Aborted before it began, nothing was written either.
        let untouched = server.call(get(None).into()).await.headers()["x-timestamp"] == before;
        assert!(untouched || told.elapsed() < Duration::from_secs(60));
        if untouched && told.elapsed() > Duration::from_millis(500) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// OpenStack's replicator removes what rsync has brought here once it has read the answer, whatever that says.
#[tokio::test]
async fn what_rsync_brought_in_vain_is_not_answered_to_the_end() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    for (rest, ends) in [("", true), ("abc", false)] {
        let mut call = call("REPLICATE", "missing", &[]);
        call.address = Address::Partition(PartitionTarget {
            device: "missing".into(),
            partition: Partition(7),
            rest: rest.into(),
        });
        let answer = server.call(call.into()).await;
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(answer.into_body().collect(1000).await.is_ok(), ends, "{rest}");
    }
}

#[tokio::test]
async fn verbs_that_are_not_spoken_say_so() {
    let server = in_memory();
    let answer = server.call(call("BREW", "sda", &[]).into()).await;
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
}

/// A device whose reads hang until they are let go.
struct Hanging {
    memory: MemoryEngine,
    gate: Arc<Mutex<()>>,
    waiting: AtomicU32,
}

impl ObjectEngine for Hanging {
    fn replica(&self) -> &dyn object_engine::Replica {
        &self.memory
    }

    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.lock());
        self.memory.open(key, options)
    }
    fn create(&self, key: &ObjectKey, expected_size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError> {
        self.memory.create(key, expected_size)
    }
    fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>> {
        self.memory.put_all(puts)
    }
    fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError> {
        self.memory.write_metadata(key, update)
    }
    fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>> {
        self.memory.delete_all(deletions)
    }
    fn quarantine(&self, key: &ObjectKey, why: &str) -> Result<(), EngineError> {
        self.memory.quarantine(key, why)
    }
    fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError> {
        self.memory.save_listing_update(update)
    }
    fn check(&self) -> Result<(), EngineError> {
        Ok(())
    }
    fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError> {
        self.memory.partitions(policy)
    }
    fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError> {
        self.memory.suffixes(policy, partition)
    }
    fn hashes(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<Vec<PathHash>, EngineError> {
        self.memory.hashes(policy, partition, suffix)
    }
}

struct OneHangs(Arc<Hanging>);

impl DeviceSource for OneHangs {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        Ok(match name {
            "sda" => self.0.clone(),
            _ => Arc::new(MemoryEngine::new()),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_drive_costs_only_its_own_requests() {
    let gate = Arc::new(Mutex::new(()));
    let hanging = Arc::new(Hanging {
        memory: MemoryEngine::new(),
        gate: gate.clone(),
        waiting: AtomicU32::new(0),
    });
    let options = object_server::ObjectServerOptions {
        threads_per_disk: 1,
        queue_per_disk: 1,
        ..options()
    };
    let server = ObjectServer::new(World::real(), options, Arc::new(OneHangs(hanging.clone()))).unwrap();
    let (release, hold) = std::sync::mpsc::channel::<()>();
    let held = std::thread::spawn({
        let gate = gate.clone();
        move || {
            let _held = gate.lock();
            let _ = hold.recv();
        }
    });
    until(|| gate.is_locked()).await;
    let ask = |device: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { server.call(call("GET", device, &[]).into()).await.status() })
    };
    let running = ask("sda");
    while hanging.waiting.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // There is a place for one of two to wait at.
    let (refused, queued) = match select(ask("sda"), ask("sda")).await {
        Either::Left(first) | Either::Right(first) => first,
    };
    assert_eq!(refused.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("sdb").await.unwrap(), StatusCode::NOT_FOUND);
    assert!(!running.is_finished() && !queued.is_finished());
    drop(release);
    held.join().unwrap();
    assert_eq!(running.await.unwrap(), StatusCode::NOT_FOUND);
    assert_eq!(queued.await.unwrap(), StatusCode::NOT_FOUND);
}
