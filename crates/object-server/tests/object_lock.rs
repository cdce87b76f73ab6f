//! Object lock: what is held is not deleted, overwritten, or freed, by whichever request.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::HeaderValue;
use object_server::ObjectServer;
use peer::{Body, RawCall, Response, Service};
use std::sync::Arc;
use support::Times;
use support::calls::{call, get, on_files, pattern, put, read};

const RETENTION: &str = "x-object-transient-sysmeta-s3api-retention";
const HOLD: &str = "x-object-transient-sysmeta-s3api-legal-hold";
/// Retentions that end in the year 2100, and one that has ended.
const GOVERNANCE: &str = "GOVERNANCE;4102444800;0000000010.00000";
const COMPLIANCE: &str = "COMPLIANCE;4102444800;0000000010.00000";
const ENDED: &str = "COMPLIANCE;1700000000;0000000010.00000";
const REPLICATION: (&str, &str) = ("x-backend-replication", "True");
const BYPASS: (&str, &str) = ("x-backend-bypass-governance-retention", "true");

/// A request of that moment with these headers.
fn at(method: &str, seconds: f64, headers: &[(&'static str, &str)]) -> RawCall {
    let mut call = match method {
        "PUT" => put(seconds, Body::whole("body")),
        method => call(method, "sda", &[("x-timestamp", Times::new().at(seconds))]),
    };
    for (name, value) in headers {
        call.headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    call
}

async fn ask(server: &Arc<ObjectServer>, call: RawCall) -> u16 {
    server.call(call.into()).await.status().as_u16()
}

async fn head(server: &Arc<ObjectServer>) -> Response {
    server.call(call("HEAD", "sda", &[]).into()).await
}

fn text<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// A server with one object that has these headers.
async fn with(place: &tempfile::TempDir, headers: &[(&'static str, &str)]) -> Arc<ObjectServer> {
    let server = on_files(place.path());
    assert_eq!(ask(&server, at("PUT", 10.0, headers)).await, 201);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_neither_deleted_nor_overwritten() {
    for (lock, status, when_bypassed, by_replication) in [
        ((RETENTION, GOVERNANCE), 403, 204, 204),
        ((RETENTION, COMPLIANCE), 403, 403, 403),
        ((RETENTION, ENDED), 204, 204, 204),
        ((RETENTION, "nonsense"), 403, 403, 204),
        ((HOLD, "ON;0000000010.00000"), 403, 403, 204),
        ((HOLD, "OFF;0000000010.00000"), 204, 204, 204),
    ] {
        for (more, expected) in [
            (&[][..], status),
            (&[BYPASS], when_bypassed),
            (&[REPLICATION], by_replication),
        ] {
            let place = tempfile::tempdir().unwrap();
            let server = with(&place, &[lock]).await;
            let is_held = if status == 403 { 403 } else { 201 };
            if more.is_empty() && is_held == 403 {
                assert_eq!(ask(&server, at("PUT", 20.0, more)).await, 403, "{lock:?}");
                // An older deletion changes nothing, and is answered so.
                assert_eq!(ask(&server, at("DELETE", 5.0, more)).await, 409, "{lock:?}");
            }
            assert_eq!(
                ask(&server, at("DELETE", 20.0, more)).await,
                expected,
                "{lock:?} {more:?}"
            );
            let left = ask(&server, get(None)).await;
            assert_eq!(left, if expected == 403 { 200 } else { 404 }, "{lock:?} {more:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_does_not_expire() {
    let due = Times::new().whole(2000);
    let delete_at = ("x-delete-at", due.as_str());
    for refused in [
        [(RETENTION, GOVERNANCE), delete_at],
        [(HOLD, "ON;0000000010.00000"), delete_at],
    ] {
        let place = tempfile::tempdir().unwrap();
        let server = on_files(place.path());
        assert_eq!(ask(&server, at("PUT", 10.0, &refused)).await, 403);
        // As it came by a server that knows no lock.
        let replicated = [refused[0], refused[1], REPLICATION];
        assert_eq!(ask(&server, at("PUT", 11.0, &replicated)).await, 201);
        let expirer = [
            ("x-if-delete-at", due.as_str()),
            ("x-backend-clean-expiring-object-queue", "no"),
        ];
        assert_eq!(ask(&server, at("DELETE", 2000.0, &expirer)).await, 403);
        assert_eq!(ask(&server, at("DELETE", 3000.0, &[])).await, 403);
    }
    let place = tempfile::tempdir().unwrap();
    let server = with(&place, &[(RETENTION, GOVERNANCE)]).await;
    assert_eq!(ask(&server, at("POST", 20.0, &[delete_at])).await, 403);
    assert_eq!(
        ask(&server, at("POST", 20.0, &[("x-delete-at", "4102444801")])).await,
        202
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_keep_the_lock_and_do_not_weaken_it() {
    let place = tempfile::tempdir().unwrap();
    let server = with(&place, &[(RETENTION, COMPLIANCE), (HOLD, "ON;0000000010.00000")]).await;
    assert_eq!(ask(&server, at("POST", 20.0, &[("x-object-meta-a", "1")])).await, 202);
    let found = head(&server).await;
    assert_eq!(
        (text(&found, RETENTION), text(&found, HOLD)),
        (COMPLIANCE, "ON;0000000010.00000")
    );
    for (weaker, seconds) in [
        ("NONE;0;0000000030.00000", 30.0),
        ("GOVERNANCE;4102444800;0000000030.00000", 31.0),
        ("COMPLIANCE;4102444799;0000000030.00000", 32.0),
    ] {
        assert_eq!(
            ask(&server, at("POST", seconds, &[(RETENTION, weaker), BYPASS])).await,
            202,
            "{weaker}"
        );
        let found = head(&server).await;
        assert_eq!(text(&found, RETENTION), COMPLIANCE, "{weaker}");
    }
    // By upkeep: one that knows nothing of the lock, and one that is older than it.
    for (seconds, more) in [(40.0, ("x-object-meta-a", "2")), (50.0, (HOLD, "OFF;0000000009.00000"))] {
        assert_eq!(ask(&server, at("POST", seconds, &[more, REPLICATION])).await, 202);
        let found = head(&server).await;
        assert_eq!(
            (text(&found, RETENTION), text(&found, HOLD)),
            (COMPLIANCE, "ON;0000000010.00000")
        );
    }
    let longer = "COMPLIANCE;4102444801;0000000060.00000";
    let change = [(RETENTION, longer), (HOLD, "OFF;0000000060.00000")];
    assert_eq!(ask(&server, at("POST", 60.0, &change)).await, 202);
    let found = head(&server).await;
    assert_eq!(
        (text(&found, RETENTION), text(&found, HOLD)),
        (longer, "OFF;0000000060.00000")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn governance_becomes_weaker_by_a_bypass_alone() {
    let place = tempfile::tempdir().unwrap();
    let server = with(&place, &[(RETENTION, GOVERNANCE)]).await;
    let shorter = (RETENTION, "GOVERNANCE;4102444799;0000000030.00000");
    assert_eq!(ask(&server, at("POST", 30.0, &[shorter])).await, 403);
    assert_eq!(text(&head(&server).await, RETENTION), GOVERNANCE);
    assert_eq!(ask(&server, at("POST", 30.0, &[shorter, BYPASS])).await, 202);
    assert_eq!(text(&head(&server).await, RETENTION), shorter.1);
    let none = (RETENTION, "NONE;0;0000000040.00000");
    assert_eq!(ask(&server, at("POST", 40.0, &[none, BYPASS])).await, 202);
    assert_eq!(ask(&server, at("DELETE", 50.0, &[])).await, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_comes_while_a_body_is_on_its_way_counts() {
    let place = tempfile::tempdir().unwrap();
    let server = with(&place, &[]).await;
    let (bytes, (feed, body)) = (pattern(300_000), Body::channel(2, Some(300_000)));
    let writing = {
        let server = server.clone();
        tokio::spawn(async move { ask(&server, put(40.0, body)).await })
    };
    // So much is taken only once the write has been accepted.
    for piece in bytes[..290_000].chunks(10_000) {
        assert!(feed.send(bytes::Bytes::copy_from_slice(piece)).await);
    }
    assert_eq!(
        ask(&server, at("POST", 20.0, &[(HOLD, "ON;0000000020.00000")])).await,
        202
    );
    assert!(feed.send(bytes.slice(290_000..)).await);
    feed.finish().await;
    assert_eq!(writing.await.unwrap(), 403);
    assert_eq!(read(server.call(get(None).into()).await).await, "body");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_posts_under_a_write_lock_need_it() {
    let place = tempfile::tempdir().unwrap();
    let server = with(&place, &[(RETENTION, GOVERNANCE)]).await;
    let under = ("x-backend-write-lock", "a/a/c/o");
    assert_eq!(ask(&server, at("POST", 20.0, &[under])).await, 503);
    assert_eq!(ask(&server, at("DELETE", 20.0, &[under, BYPASS])).await, 503);
    let lease = ("x-backend-write-lock-lease", "60");
    let taken = server.call(at("LOCK", 20.0, &[under, lease]).into()).await;
    // The answer says what holds the object.
    assert_eq!((taken.status().as_u16(), text(&taken, RETENTION)), (201, GOVERNANCE));
    assert_eq!(ask(&server, at("POST", 20.0, &[under])).await, 202);
    assert_eq!(ask(&server, at("DELETE", 30.0, &[under, BYPASS])).await, 204);
}
