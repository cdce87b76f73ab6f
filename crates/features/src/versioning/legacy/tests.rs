use super::*;
use crate::testing::{Answer, ask, request, shown_headers, with_headers};
use http::HeaderValue;
use proptest::prelude::*;
use request_pipeline::{Response, reply};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use world::World;

fn legacy() -> LegacyVersions {
    let settings = VersionedWritesSettings {
        allow_versioned_writes: true,
        ..VersionedWritesSettings::default()
    };
    LegacyVersions::new(&settings, 1000, World::real().clock)
}

/// Name and type of stored objects, and what was done to them.
#[derive(Default)]
struct Store {
    objects: BTreeMap<String, String>,
    done: Vec<String>,
}

type Shared = Arc<Mutex<Store>>;

fn answer(store: &mut Store, request: &ClientRequest) -> Response {
    let path = request.path.to_string();
    let is_object = request.entity.as_ref().is_some_and(|entity| entity.object.is_some());
    if request.method == Method::GET && !is_object {
        let prefix = request.param("prefix").unwrap().unwrap();
        let marker = request.param("marker").unwrap().unwrap();
        let names = store
            .objects
            .iter()
            .rev()
            .filter_map(|(name, kind)| Some((name.strip_prefix("/v1/a/v/")?, kind)));
        let wanted = names.filter(|(name, _)| name.starts_with(&prefix) && (marker.is_empty() || **name < *marker));
        let rows: Vec<_> = wanted
            .map(|(name, kind)| json!({"name": name, "content_type": kind}))
            .collect();
        return reply::plain(200, json!(rows).to_string());
    }
    store.done.push(format!("{} {path}", request.method));
    match request.method.as_str() {
        "PUT" => {
            let kind = request.header("content-type").unwrap_or_default().to_owned();
            store.objects.insert(path, kind);
            reply::html(201, String::new())
        }
        "DELETE" => reply::html(
            if store.objects.remove(&path).is_some() {
                204
            } else {
                404
            },
            String::new(),
        ),
        _ => match store.objects.get(&path) {
            None => reply::status(404),
            Some(kind) => {
                let mut response = reply::plain(200, "x");
                let headers = response.headers_mut();
                headers.insert("content-type", HeaderValue::from_str(kind).unwrap());
                headers.insert("x-timestamp", HeaderValue::from_static("1700000000.00000"));
                headers.insert("x-object-meta-a", HeaderValue::from_static("b"));
                response
            }
        },
    }
}

async fn run(mode: &str, objects: &[(&str, &str)], method: &str) -> (Response, Store) {
    let store = Shared::default();
    store.lock().unwrap().objects = objects
        .iter()
        .map(|(name, kind)| ((*name).into(), (*kind).into()))
        .collect();
    let shared = store.clone();
    let core = Answer::new(move |request| answer(&mut shared.lock().unwrap(), &request));
    let mut info = ContainerInfo {
        status: 204,
        ..ContainerInfo::default()
    };
    info.sysmeta = [(LOCATION, "v"), (MODE, mode)]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    *core.container.lock().unwrap() = Arc::new(info);
    let asked = with_headers(request(method, "/v1/a/c/%C3%BC"), &[("content-type", "new")]);
    let response = ask(legacy(), asked, core).await;
    let store = std::mem::take(&mut *store.lock().unwrap());
    (response, store)
}

const MARKER: &str = "application/x-deleted;swift_versions_deleted=1";

#[tokio::test]
async fn what_is_overwritten_is_kept() {
    let (response, store) = run("stack", &[("/v1/a/c/ü", "old")], "PUT").await;
    assert_eq!(response.status(), 201);
    assert_eq!(store.objects["/v1/a/v/002ü/1700000000.00000"], "old");
    assert_eq!(store.objects["/v1/a/c/ü"], "new");
    let (_, store) = run("stack", &[], "PUT").await;
    assert_eq!(store.done, ["GET /v1/a/c/ü", "PUT /v1/a/c/ü"]);
}

#[tokio::test]
async fn a_stack_brings_back_the_newest() {
    let versions = [
        ("/v1/a/c/ü", "3"),
        ("/v1/a/v/002ü/1", "1"),
        ("/v1/a/v/002ü/2", "2"),
        ("/v1/a/v/002x/3", "x"),
    ];
    let (response, store) = run("stack", &versions, "DELETE").await;
    assert_eq!(response.status(), 204);
    assert_eq!(store.objects["/v1/a/c/ü"], "2");
    assert!(!store.objects.contains_key("/v1/a/v/002ü/2"));
    let (_, store) = run("stack", &versions[..1], "DELETE").await;
    assert!(store.objects.is_empty());
}

#[tokio::test]
async fn a_history_notes_deletions() {
    let (response, store) = run("history", &[("/v1/a/c/ü", "1")], "DELETE").await;
    assert_eq!(response.status(), 204);
    let kinds: Vec<&str> = store.objects.values().map(String::as_str).collect();
    assert_eq!(kinds, ["1", MARKER]);
    assert!(store.objects.keys().all(|name| name.starts_with("/v1/a/v/002ü/")));
}

#[tokio::test]
async fn a_stack_over_a_history() {
    // Deleted: the marker goes, and what was under it comes back.
    let versions = [("/v1/a/v/002ü/1", "1"), ("/v1/a/v/002ü/2", MARKER)];
    let (_, store) = run("stack", &versions, "DELETE").await;
    assert_eq!(
        store.objects.into_iter().collect::<Vec<_>>(),
        [("/v1/a/c/ü".to_owned(), "1".to_owned())]
    );
    // There again: back to being deleted.
    let versions = [("/v1/a/c/ü", "3"), ("/v1/a/v/002ü/1", "1"), ("/v1/a/v/002ü/2", MARKER)];
    let (_, store) = run("stack", &versions, "DELETE").await;
    assert_eq!(store.objects.len(), 2);
    // Deleted twice: one marker goes.
    let versions = [
        ("/v1/a/v/002ü/1", "1"),
        ("/v1/a/v/002ü/2", MARKER),
        ("/v1/a/v/002ü/3", MARKER),
    ];
    let (_, store) = run("stack", &versions, "DELETE").await;
    assert_eq!(store.objects.len(), 2);
}

#[tokio::test]
async fn containers_say_where_versions_go() {
    for (headers, expected) in [
        (&[("x-versions-location", "v")][..], Ok("x-versions-location: v")),
        (
            &[("x-history-location", "v"), ("x-versions-location", "")][..],
            Ok("x-history-location: v"),
        ),
        (
            &[("x-versions-location", "v"), ("x-remove-versions-location", "1")][..],
            Ok("x-versions-location: v"),
        ),
        (&[("x-remove-history-location", "1")][..], Ok("")),
        (
            &[("x-history-location", "v"), ("x-versions-location", "w")][..],
            Err(400),
        ),
        (&[("x-history-location", "v/w")][..], Err(412)),
    ] {
        let core = Answer::new(|request| {
            let mut response = reply::html(204, String::new());
            response.headers_mut().extend(request.headers);
            response
        });
        let response = ask(legacy(), with_headers(request("POST", "/v1/a/c"), headers), core).await;
        match expected {
            Err(status) => assert_eq!(response.status(), status),
            Ok("") => assert_eq!(response.headers().len(), 2, "{headers:?}"),
            Ok(line) => assert!(shown_headers(&response).contains(&line.to_owned()), "{headers:?}"),
        }
    }
    let off = LegacyVersions::new(&VersionedWritesSettings::default(), 1, World::real().clock);
    assert!(off.info().is_empty());
    let asked = with_headers(request("PUT", "/v1/a/c"), &[("x-versions-location", "v")]);
    assert_eq!(ask(off, asked, Answer::new(|_| reply::status(404))).await.status(), 412);
}

#[tokio::test]
async fn a_bucket_with_an_object_lock_keeps_versions_by_itself() {
    for (name, value, status) in [
        ("x-versions-location", "v", 409),
        ("x-history-location", "v", 409),
        ("x-versions-location", "", 204),
        ("x-remove-history-location", "1", 204),
    ] {
        let core = Answer::new(|_| reply::status(204));
        let mut info = ContainerInfo::default();
        info.sysmeta.insert("s3api-object-lock".into(), "Enabled".into());
        *core.container.lock().unwrap() = Arc::new(info);
        let asked = with_headers(request("POST", "/v1/a/c"), &[(name, value)]);
        assert_eq!(ask(legacy(), asked, core).await.status(), status, "{name}: {value}");
    }
}

#[tokio::test]
async fn versions_are_not_kept_twice() {
    for (switch, location, status) in [
        ("true", "v", 400),
        ("on", "v", 400),
        ("false", "v", 204),
        ("true", "", 204),
    ] {
        for name in ["x-versions-location", "x-history-location"] {
            for method in ["PUT", "POST"] {
                let headers = [(name, location), ("x-versions-enabled", switch)];
                let asked = with_headers(request(method, "/v1/a/c"), &headers);
                let core = Answer::new(|_| reply::status(204));
                assert_eq!(
                    ask(legacy(), asked, core).await.status(),
                    status,
                    "{name}: {location}, {switch}"
                );
            }
        }
    }
    let headers = [
        ("x-versions-location", "v"),
        ("x-container-sysmeta-s3api-object-lock", "Enabled"),
    ];
    let asked = with_headers(request("PUT", "/v1/a/c"), &headers);
    let core = Answer::new(|_| reply::status(204));
    assert_eq!(ask(legacy(), asked, core).await.status(), 409);
}

/// A bucket that has got both, by two requests at the same time: its own versions count, not copies elsewhere.
#[tokio::test]
async fn a_lock_wins_over_a_location() {
    for (lock, copies) in [(None, true), (Some("Enabled"), false)] {
        let asked_for = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let seen = asked_for.clone();
        let core = Answer::new(move |request| {
            seen.lock().push(format!("{} {}", request.method, request.path));
            reply::status(if request.method == Method::GET { 404 } else { 201 })
        });
        let mut info = ContainerInfo::default();
        info.sysmeta.insert(LOCATION.into(), "v".into());
        if let Some(lock) = lock {
            info.sysmeta.insert("s3api-object-lock".into(), lock.into());
        }
        *core.container.lock().unwrap() = Arc::new(info);
        let mut put = with_headers(request("PUT", "/v1/a/c/o"), &[("content-length", "0")]);
        put.aim_at_path("/v1/a/c/o");
        assert_eq!(ask(legacy(), put, core).await.status(), 201);
        assert_eq!(asked_for.lock().len() > 1, copies, "{:?}", asked_for.lock());
    }
}

proptest! {
    #[test]
    fn any_listing_is_read(text in "\\PC*", location in "[a-z%0-9/]*") {
        let core = Answer::new(move |_| reply::plain(200, text.clone()));
        let mut info = ContainerInfo::default();
        info.sysmeta.insert(LOCATION.into(), location);
        *core.container.lock().unwrap() = Arc::new(info);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(ask(legacy(), request("DELETE", "/v1/a/c/o"), core));
    }
}
