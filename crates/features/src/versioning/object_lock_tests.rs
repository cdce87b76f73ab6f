//! What passes the guard, and as what.

use super::*;
use crate::testing::{Answer, ask, request, with_headers};
use request_pipeline::ContainerInfo;
use vocabulary::object_lock::{Retention, RetentionMode};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn retained(mode: RetentionMode, until: u64, set: u64) -> ObjectLock {
    ObjectLock::of_retention(Some(Retention { mode, until }), at(set))
}

fn before(lock: ObjectLock) -> Before {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-object-meta-color", "blue"),
        ("x-object-transient-sysmeta-s3api-tags", "a=1"),
        ("x-object-transient-sysmeta-crypto-meta", "secret"),
        ("x-object-sysmeta-a", "b"),
        ("x-delete-at", "300"),
        ("content-encoding", "gzip"),
        ("etag", "e"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    set_object_lock(&mut headers, &lock);
    Before {
        headers,
        lock,
        write_lock: None,
    }
}

#[test]
fn what_is_held_is_neither_deleted_nor_overwritten() {
    use RetentionMode::{Compliance, Governance};
    for (lock, held, held_from_bypass) in [
        (ObjectLock::default(), false, false),
        (retained(Governance, 200, 1), true, false),
        (retained(Compliance, 200, 1), true, true),
        (retained(Compliance, 100, 1), false, false),
        (ObjectLock::of_hold(true, at(1)), true, true),
    ] {
        for method in ["DELETE", "PUT"] {
            let refused = |bypasses| {
                let mut request = request(method, "/v1/a/b+segments/o");
                prepare(&mut request, &before(lock), at(100), bypasses).is_err()
            };
            assert_eq!((refused(false), refused(true)), (held, held_from_bypass), "{lock:?}");
        }
    }
}

#[test]
fn a_post_of_a_client_carries_the_lock_on() {
    let lock = retained(RetentionMode::Governance, 200, 1).merged(ObjectLock::of_hold(true, at(2)));
    let sent = [("x-object-meta-taste", "sour")];
    let mut request = with_headers(request("POST", "/v1/a/b+segments/o"), &sent);
    prepare(&mut request, &before(lock), at(100), false).unwrap();
    assert_eq!(object_lock_in(&request.headers), lock);
    assert_eq!(request.header("x-object-meta-taste"), Some("sour"));
    assert!(!request.headers.contains_key("x-object-meta-color"));
}

/// What a gateway whose clock is ahead has set does not outlast what is set after it.
#[test]
fn a_change_comes_after_what_is_there_whatever_clocks_say() {
    use RetentionMode::Governance;
    let change = |old: ObjectLock, new: ObjectLock| {
        let mut request = request("POST", "/v1/a/b+segments/o");
        request.headers.insert(X_LOCK_CHANGE, HeaderValue::from_static("true"));
        set_object_lock(&mut request.headers, &new);
        prepare(&mut request, &before(old), at(100), true).unwrap();
        object_lock_in(&request.headers)
    };
    let held = change(ObjectLock::of_hold(false, at(120)), ObjectLock::of_hold(true, at(100)));
    assert!(held.has_hold());
    assert_eq!(held.merged(ObjectLock::of_hold(false, at(120))), held);
    let longer = change(retained(Governance, 200, 120), retained(Governance, 250, 100));
    assert_eq!(longer.active(at(100)).unwrap().until, 250);
    let taken_away = ObjectLock::of_retention(None, at(120));
    let again = change(taken_away, retained(Governance, 250, 100));
    assert_eq!(again.merged(taken_away).active(at(100)).unwrap().until, 250);
}

#[test]
fn a_change_of_a_lock_changes_nothing_else() {
    let change = |old: ObjectLock, new: ObjectLock, bypasses| {
        let mut request = request("POST", "/v1/a/b+segments/o");
        request.headers.insert(X_LOCK_CHANGE, HeaderValue::from_static("true"));
        set_object_lock(&mut request.headers, &new);
        prepare(&mut request, &before(old), at(100), bypasses).map(|()| request)
    };
    let old = retained(RetentionMode::Governance, 200, 1);
    let longer = retained(RetentionMode::Governance, 250, 2);
    let changed = change(old, longer, false).unwrap();
    assert_eq!(object_lock_in(&changed.headers), longer);
    let names: Vec<_> = changed.headers.keys().map(http::HeaderName::as_str).collect();
    for (name, is_kept) in [
        ("x-object-meta-color", true),
        ("x-object-transient-sysmeta-s3api-tags", true),
        ("content-encoding", true),
        ("x-delete-at", true),
        ("x-object-transient-sysmeta-crypto-meta", false),
        ("x-object-sysmeta-a", false),
        ("etag", false),
        ("x-backend-object-lock-change", false),
    ] {
        assert_eq!(names.contains(&name), is_kept, "{name}");
    }
    // An expiry before the end of the lock goes.
    let later = retained(RetentionMode::Governance, 301, 2);
    assert!(!change(old, later, false).unwrap().headers.contains_key("x-delete-at"));

    let none = ObjectLock::of_retention(None, at(2));
    assert!(change(old, none, false).is_err());
    assert!(change(old, none, true).is_ok());
    let compliance = retained(RetentionMode::Compliance, 200, 1);
    assert!(change(compliance, none, true).is_err());
    assert!(change(compliance, retained(RetentionMode::Compliance, 150, 2), true).is_err());
}

#[test]
fn requests_about_versions_and_parts_are_looked_at() {
    let guard = ObjectLockGuard::new(World::real());
    for (method, target, expected) in [
        ("DELETE", "/v1/a/%00versions%00b/%00o%001", true),
        ("POST", "/v1/a/b%2Bsegments/o", true),
        ("PUT", "/v1/a/b+segments/o", true),
        ("GET", "/v1/a/b+segments/o", false),
        ("DELETE", "/v1/a/b+segments", false),
        ("DELETE", "/v1/a/b/o", false),
    ] {
        let mut request = request(method, target);
        let path = request.path.clone();
        request.aim_at_path(&path);
        assert_eq!(guard.wants(&request), expected, "{method} {target}");
    }
}

#[tokio::test]
async fn a_part_stays_while_nobody_says_whether_its_bucket_has_a_lock() {
    for (status, expected) in [(0, 503), (503, 503), (404, 204), (204, 204)] {
        let core = Answer::new(|_| reply::status(204));
        *core.container.lock().unwrap() = Arc::new(ContainerInfo {
            status,
            ..ContainerInfo::default()
        });
        let mut request = request("DELETE", "/v1/a/b+segments/o");
        let path = request.path.clone();
        request.aim_at_path(&path);
        let answer = ask(ObjectLockGuard::new(World::real()), request, core).await;
        assert_eq!(answer.status(), expected, "{status}");
    }
}
