//! LOCK: writes under a lock that is held, that another has, that has ended.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderValue, StatusCode};
use object_server::ObjectServer;
use peer::{Body, RawCall, Response, Service};
use std::sync::Arc;
use support::calls::{call, get, on_files, put, read};

/// A LOCK of the object that `support::calls` is about.
fn lock(random: &str, lease: u64) -> RawCall {
    let headers = [
        ("x-backend-write-lock", format!("{random}/a/c/o")),
        ("x-backend-write-lock-lease", lease.to_string()),
    ];
    call("LOCK", "sda", &headers)
}

fn patient_lock(random: &str) -> RawCall {
    let mut call = lock(random, 60);
    call.headers
        .insert("x-backend-write-lock-patience", HeaderValue::from_static("10000"));
    call
}

fn put_under(time: f64, random: &str) -> RawCall {
    let mut call = put(time, Body::whole("body"));
    call.headers.insert(
        "x-backend-write-lock",
        HeaderValue::from_str(&format!("{random}/a/c/o")).unwrap(),
    );
    call
}

fn standing(response: &Response) -> (u16, Option<&str>, bool) {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let timestamp = text("x-backend-timestamp").is_some();
    (response.status().as_u16(), text("x-backend-object-exists"), timestamp)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_under_a_lock_needs_it() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let status = |call: RawCall| {
        let server = server.clone();
        async move { server.call(call.into()).await.status() }
    };
    let refused = server.call(put_under(10.0, "a").into()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(status(get(None)).await, StatusCode::NOT_FOUND);

    let taken = server.call(lock("a", 60).into()).await;
    assert_eq!(standing(&taken), (201, Some("false"), false));
    assert_eq!(status(lock("b", 60)).await, StatusCode::CONFLICT);
    assert_eq!(status(put_under(10.0, "b")).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status(put_under(10.0, "a")).await, StatusCode::CREATED);
    let kept = server.call(lock("a", 60).into()).await;
    assert_eq!(standing(&kept), (200, Some("true"), true));
    // A PUT that names no lock is not held up.
    assert_eq!(status(put(11.0, Body::whole("other"))).await, StatusCode::CREATED);

    assert_eq!(status(lock("a", 0)).await, StatusCode::NO_CONTENT);
    assert_eq!(status(put_under(12.0, "a")).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status(lock("b", 60)).await, StatusCode::CREATED);
    assert_eq!(read(server.call(get(None).into()).await).await, "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_line_gets_the_lock() {
    let place = tempfile::tempdir().unwrap();
    let server = on_files(place.path());
    let status = |call: RawCall| {
        let server = server.clone();
        async move { server.call(call.into()).await.status().as_u16() }
    };
    assert_eq!(status(lock("a", 60)).await, 201);
    let outcomes = tokio::join!(status(patient_lock("b")), status(lock("a", 0)));
    assert_eq!(outcomes, (201, 204));
    // A lock that its holder leaves ends with its lease.
    assert_eq!(status(lock("b", 0)).await, 204);
    assert_eq!(status(lock("c", 1)).await, 201);
    assert_eq!(status(patient_lock("d")).await, 201);
}

/// As two workers after SIGUSR1: the new one serves, the old one finishes.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_has_one_holder_in_two_processes() {
    let place = tempfile::tempdir().unwrap();
    let (old, new) = (on_files(place.path()), on_files(place.path()));
    let status = async |server: &Arc<ObjectServer>, call: RawCall| server.call(call.into()).await.status().as_u16();
    assert_eq!(status(&old, lock("a", 60)).await, 201);
    assert_eq!(status(&new, lock("b", 60)).await, 409);
    assert_eq!(status(&old, put_under(10.0, "a")).await, 201);
    let (taken, given_back) = tokio::join!(status(&new, patient_lock("b")), status(&old, lock("a", 0)));
    assert_eq!((taken, given_back), (201, 204));
    assert_eq!(status(&old, put_under(11.0, "a")).await, 503);
    assert_eq!(status(&new, put_under(12.0, "b")).await, 201);
    // What the new one does not give back ends with its lease, though no client asks the new one.
    assert_eq!(status(&new, lock("b", 1)).await, 200);
    assert_eq!(status(&old, patient_lock("c")).await, 201);
}
