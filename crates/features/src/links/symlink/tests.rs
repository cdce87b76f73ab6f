use super::link::{LISTED_ETAG, Link};
use super::*;
use crate::testing::{Answer, ask, request, shown_headers, with_headers};
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use request_pipeline::reply;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn symlink() -> Symlink {
    Symlink::new(&SymlinkSettings::default())
}

fn answer(status: u16, headers: &[(&'static str, &str)]) -> Response {
    let mut response = reply::html(status, String::new());
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(*name, HeaderValue::from_str(value).unwrap());
    }
    response
}

/// `l` leads to `o`, `loop` to itself by way of `pool`, `s` to `o` as it was.
fn core() -> Answer {
    Answer::new(|request| match &*request.path {
        "/v1/a/c/l" => answer(416, &[("x-object-sysmeta-symlink-target", "c/o"), ("etag", "e")]),
        "/v1/a/c/loop" => answer(200, &[("x-object-sysmeta-symlink-target", "c/pool")]),
        "/v1/a/c/pool" => answer(200, &[("x-object-sysmeta-symlink-target", "c/loop")]),
        "/v1/a/c/s" => answer(
            200,
            &[
                ("x-object-sysmeta-symlink-target", "c/o"),
                ("x-object-sysmeta-symlink-target-etag", "old"),
            ],
        ),
        "/v1/a/c/hidden" => answer(
            200,
            &[
                ("x-object-sysmeta-symlink-target", "%00c/%00o"),
                ("x-object-sysmeta-allow-reserved-names", "true"),
            ],
        ),
        "/v1/a/\0c/\0o" if request.authorize_override => answer(200, &[("etag", "h")]),
        _ => answer(
            200,
            &[
                ("etag", "new"),
                ("content-length", "7"),
                ("x-seen-range", request.header("range").unwrap_or("")),
            ],
        ),
    })
}

#[tokio::test]
async fn reads_go_on_to_the_target() {
    let asked = with_headers(request("GET", "/v1/a/c/l"), &[("range", "bytes=1-2")]);
    let response = ask(symlink(), asked, core()).await;
    assert_eq!(response.headers()["content-location"], "/v1/a/c/o");
    assert_eq!(response.headers()["x-seen-range"], "bytes=1-2");
    let response = ask(symlink(), request("GET", "/v1/a/c/l?symlink=get"), core()).await;
    assert!(shown_headers(&response).contains(&"x-symlink-target: c/o".to_owned()));
    let response = ask(symlink(), request("HEAD", "/v1/a/c/hidden"), core()).await;
    assert_eq!(
        (response.headers()["etag"].to_str().unwrap(), response.status().as_u16()),
        ("h", 200)
    );
}

#[tokio::test]
async fn what_leads_nowhere_is_a_conflict() {
    for (path, text) in [
        (
            "/v1/a/c/loop",
            "Too many levels of symbolic links, maximum allowed is 2",
        ),
        (
            "/v1/a/c/s",
            "Object Etag 'new' does not match X-Symlink-Target-Etag header 'old'",
        ),
    ] {
        let response = ask(symlink(), request("GET", path), core()).await;
        assert_eq!(response.status(), 409);
        assert_eq!(response.body().as_whole().unwrap(), text);
        let response = ask(symlink(), request("HEAD", path), core()).await;
        assert_eq!(response.body().length(), Some(0));
    }
}

#[tokio::test]
async fn a_loop_ends_soon() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let core = Answer::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        answer(200, &[("x-object-sysmeta-symlink-target", "c/o")])
    });
    ask(symlink(), request("GET", "/v1/a/c/o"), core).await;
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

type Stored = Arc<Mutex<HeaderMap>>;

async fn put(headers: &[(&'static str, &str)]) -> (Response, HeaderMap) {
    let stored = Stored::default();
    let (keep, others) = (stored.clone(), core());
    let core = Answer::new(move |request| match request.method {
        Method::PUT => {
            *keep.lock().unwrap() = request.headers;
            answer(201, &[])
        }
        _ => futures_util::FutureExt::now_or_never(request_pipeline::Core::handle(&others, request)).unwrap(),
    });
    let response = ask(symlink(), with_headers(request("PUT", "/v1/a/c/new"), headers), core).await;
    let stored = stored.lock().unwrap().clone();
    (response, stored)
}

#[tokio::test]
async fn links_are_stored_as_openstack_stores_them() {
    let (_, stored) = put(&[("x-symlink-target", "c/ü x"), ("x-symlink-target-account", "b c")]).await;
    assert_eq!(stored["x-object-sysmeta-symlink-target"], "c/%C3%BC%20x");
    assert_eq!(stored["content-type"], "application/symlink");
    assert_eq!(
        stored[LISTED_ETAG],
        "d41d8cd98f00b204e9800998ecf8427e; symlink_target=c/%C3%BC%20x; symlink_target_account=b%20c"
    );
    let (_, stored) = put(&[("x-symlink-target", "c/o"), ("x-symlink-target-etag", "\"new\"")]).await;
    assert_eq!(stored["x-object-sysmeta-symlink-target-bytes"], "7");
    assert_eq!(
        stored[LISTED_ETAG],
        "d41d8cd98f00b204e9800998ecf8427e; symlink_target=c/o; symlink_target_etag=new; symlink_target_bytes=7"
    );
    let link = Link::of(&stored).unwrap();
    assert_eq!(Link::listed_in(stored[LISTED_ETAG].to_str().unwrap()).unwrap().0, link);
}

/// The target may be another by now; the signer of the request has seen it as it was.
#[tokio::test]
async fn a_synced_link_is_stored_without_a_look_at_its_target() {
    let static_link = [
        ("x-symlink-target", "c/o"),
        ("x-symlink-target-etag", "old"),
        ("x-symlink-target-bytes", "13"),
    ];
    let mut asked = with_headers(request("PUT", "/v1/a/c/l"), &static_link);
    asked.is_synced = true;
    let stored = Arc::new(Mutex::new(None));
    let seen = stored.clone();
    let core = Answer::new(move |request| {
        assert_eq!(request.method, "PUT");
        *seen.lock().unwrap() = Link::of(&request.headers);
        reply::html(201, String::new())
    });
    assert_eq!(ask(symlink(), asked, core).await.status(), 201);
    let link = stored.lock().unwrap().take().unwrap();
    assert_eq!((link.etag.as_deref(), link.bytes.as_deref()), (Some("old"), Some("13")));
}

#[tokio::test]
async fn what_is_no_link_is_refused() {
    for (headers, status, location) in [
        (&[("x-symlink-target", "c/new")][..], 400, None),
        (&[("x-symlink-target", "c")][..], 412, None),
        (&[("x-symlink-target", "/c/o")][..], 412, None),
        (
            &[("x-symlink-target", "c/%00"), ("x-symlink-target-etag", "a")][..],
            412,
            None,
        ),
        (&[("x-symlink-target", "c/o"), ("content-length", "1")][..], 400, None),
        (
            &[("x-symlink-target", "c/o"), ("x-symlink-target-account", "a/b")][..],
            412,
            None,
        ),
        (
            &[("x-symlink-target", "c/o"), ("x-symlink-target-etag", "a;b")][..],
            400,
            None,
        ),
        (
            &[("x-symlink-target", "c/o"), ("x-symlink-target-etag", "a")][..],
            409,
            Some("/v1/a/c/o"),
        ),
        (
            &[("x-symlink-target", "c/s"), ("x-symlink-target-etag", "new")][..],
            409,
            Some("/v1/a/c/s"),
        ),
    ] {
        let (response, stored) = put(headers).await;
        assert_eq!(response.status(), status, "{headers:?}");
        let shown_location = response
            .headers()
            .get("content-location")
            .map(|at| at.to_str().unwrap());
        assert_eq!(shown_location, location, "{headers:?}");
        assert!(stored.is_empty());
    }
}

#[tokio::test]
async fn a_post_names_the_target() {
    let response = ask(symlink(), request("POST", "/v1/a/c/s"), core()).await;
    assert_eq!(response.status(), 307);
    assert_eq!(response.headers()["location"], "/v1/a/c/o");
    assert_eq!(response.headers()["x-symlink-target-etag"], "old");
    let response = ask(symlink(), request("POST", "/v1/a/c/o"), core()).await;
    assert_eq!(response.status(), 200);
    let asked = with_headers(request("POST", "/v1/a/c/o"), &[("x-symlink-target", "c/o")]);
    assert_eq!(ask(symlink(), asked, core()).await.status(), 400);
}

proptest! {
    #[test]
    fn any_target_is_read(target in "\\PC*", account in "\\PC*", etag in "\\PC*") {
        let headers: &[(&'static str, &str)] = &[
            ("x-symlink-target", &target), ("x-symlink-target-account", &account), ("x-symlink-target-etag", &etag),
        ];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(put(headers));
    }

    #[test]
    fn any_stored_target_is_read(target in "[a-z%0-9/ ]*", account in "[a-z%0-9/ ]*") {
        let mut headers = HeaderMap::new();
        headers.insert("x-object-sysmeta-symlink-target", HeaderValue::from_str(&target).unwrap());
        headers.insert("x-object-sysmeta-symlink-target-account", HeaderValue::from_str(&account).unwrap());
        if let Some(link) = Link::of(&headers) {
            link.leads_to("a");
        }
    }
}
