//! Rows of listings: those of many deletions together, and those of slow servers and of clients that have gone.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderName, HeaderValue, StatusCode};
use object_engine::PendingUpdates;
use parking_lot::Mutex;
use peer::deletes::{self, OneDelete};
use peer::{Address, Body, Call, PartitionTarget, Peers, RawCall, Response, Service, Target};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::Times;
use support::calls::{call, files, get, on_files, put, read};
use support::container::Container;
use vocabulary::{EntityPath, Partition};
use world::World;

/// A container server in this process: what it was sent.
struct Listing {
    status: StatusCode,
    sent: Mutex<Vec<(String, serde_json::Value)>>,
}

#[async_trait::async_trait]
impl Service for Listing {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let line = format!("{} {}", call.method, call.address.url_path());
        let body = call.body.collect(1 << 20).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.sent.lock().push((line, body));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response
    }
}

/// Each of many DELETEs is answered as if it had come alone; the rows go to their container in one request, or are
/// kept.
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
            sent: Mutex::default(),
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
        let sent = std::mem::take(&mut *listing.sent.lock());
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].0, "UPDATE /sdc/5/a/c");
        let names: Vec<_> = (sent[0].1.as_array().unwrap().iter())
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

/// The row goes out, or is kept, even when the client has gone; and a slow listing holds up no request.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_sent_or_kept_whatever_happens() {
    let slow = Container::start("201 Created", String::new(), Duration::from_secs(40));
    let quick = Container::start("201 Created", String::new(), Duration::ZERO);
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    server.set_peers(Arc::new(Peers::new(World::real())));
    let with_row = |seconds: f64, container: &Container| {
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
        server.call(with_row(1.0, &slow).into()).await.status(),
        StatusCode::CREATED
    );
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(900) && took < Duration::from_secs(30),
        "{took:?}"
    );
    assert_eq!((slow.take().len(), pending()), (1, 1));
    let second = with_row(2.0, &quick);
    let before = second.headers["x-timestamp"].clone();
    assert_eq!(server.call(second.into()).await.status(), StatusCode::CREATED);
    assert_eq!((quick.take().len(), pending()), (1, 1));
    // The gateway had its quorum and left.
    let left = tokio::spawn({
        let (server, call) = (server.clone(), with_row(3.0, &quick));
        async move { server.call(call.into()).await }
    });
    tokio::task::yield_now().await;
    left.abort();
    drop(left.await);
    let sent = Instant::now();
    while quick.take().is_empty() {
        // Aborted before it began, nothing was written either.
        let untouched = server.call(get(None).into()).await.headers()["x-timestamp"] == before;
        assert!(untouched || sent.elapsed() < Duration::from_secs(60));
        if untouched && sent.elapsed() > Duration::from_millis(500) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A device that can keep no row refuses the write, so that a handoff takes it; what it has done all the same has its
/// row as soon as it can.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_row_is_neither_sent_nor_kept_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let device = place.path().join("sda");
    let server = on_files(place.path());
    server.set_peers(Arc::new(Peers::new(World::real())));
    let mut waiting = put(1.0, Body::whole("x"));
    for (name, value) in [
        ("x-container-host", "127.0.0.1:1"),
        ("x-container-device", "sdb"),
        ("x-container-partition", "3"),
    ] {
        waiting.headers.insert(name, HeaderValue::from_static(value));
    }
    std::fs::create_dir_all(&device).unwrap();
    std::fs::write(device.join("async_pending"), "no directory").unwrap();
    let refused = server.call(waiting.into()).await.status();
    assert_eq!(refused, StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(
        server.call(get(None).into()).await.status(),
        StatusCode::OK,
        "it is there"
    );
    std::fs::remove_file(device.join("async_pending")).unwrap();
    let began = Instant::now();
    let updates = PendingUpdates::new(&World::real(), &device, false);
    while updates.recover().unwrap() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "its row is lost");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kept = files(&device);
    assert!(kept.iter().any(|file| file.contains("async_pending")), "{kept:?}");
}
