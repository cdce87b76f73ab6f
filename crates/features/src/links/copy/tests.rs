use super::*;
use crate::testing::{Answer, ask, request, shown_headers, with_headers};
use bytes::Bytes;
use futures_util::stream;
use peer::BodyError;
use proptest::prelude::*;
use std::sync::Mutex;
use world::World;

fn copy() -> Copy {
    Copy::new(&CopySettings::default(), 1000, World::real().clock)
}

type Seen = Arc<Mutex<Vec<ClientRequest>>>;

/// Answers reads with this source, and writes with 201; remembers what it was asked.
fn core(seen: &Seen, source: impl Fn() -> Response + Send + Sync + 'static) -> Answer {
    let seen = seen.clone();
    Answer::new(move |request| {
        let answer = match request.method {
            Method::GET => source(),
            _ => reply::html(201, String::new()),
        };
        seen.lock().unwrap().push(request);
        answer
    })
}

fn source() -> Response {
    let mut response = reply::plain(200, "0123456789");
    for (name, value) in [
        ("etag", "781e5e245d69b566979b86e28d23f2c7"),
        ("last-modified", "Fri, 20 Nov 2026 15:24:47 GMT"),
        ("x-object-meta-a", "1"),
        ("x-object-sysmeta-a", "2"),
        ("x-object-sysmeta-container-update-override-etag", "3"),
        ("x-object-transient-sysmeta-a", "4"),
        ("x-delete-at", "9999999999"),
        ("content-encoding", "gz"),
        ("x-timestamp", "1700000000.00000"),
        ("x-backend-timestamp", "1700000000.00000"),
        ("x-object-manifest", "c/seg"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[tokio::test]
async fn a_copy_is_a_read_and_a_write() {
    let seen = Seen::default();
    let asked = with_headers(
        request("COPY", "/v1/a/c/o?multipart-manifest=get&version-id=3"),
        &[
            ("destination", "/d/p%20q"),
            ("if-match", "x"),
            ("x-object-meta-a", "new"),
        ],
    );
    let response = ask(copy(), asked, core(&seen, source)).await;
    let shown = shown_headers(&response);
    for expected in [
        "x-copied-from: c/o",
        "x-copied-from-account: a",
        "x-copied-from-last-modified: Fri, 20 Nov 2026 15:24:47 GMT",
        "x-copied-from-version-id: 3",
        "x-delete-at: 9999999999",
        "x-object-meta-a: new",
    ] {
        assert!(shown.contains(&expected.to_owned()), "{expected} in {shown:?}");
    }
    let (put, get) = {
        let mut seen = seen.lock().unwrap();
        (seen.pop().unwrap(), seen.pop().unwrap())
    };
    assert_eq!(
        (put.method.as_str(), &*put.path, put.query.as_str()),
        ("PUT", "/v1/a/d/p q", "")
    );
    assert_eq!(put.header("etag"), Some("781e5e245d69b566979b86e28d23f2c7"));
    assert_eq!(put.header("content-length"), Some("10"));
    assert_eq!(put.header("x-object-manifest"), Some("c/seg"));
    assert_eq!(put.header("x-object-transient-sysmeta-a"), Some("4"));
    assert_eq!(put.header("x-timestamp"), None);
    assert_eq!(put.body.collect(100).await, Ok(Bytes::from_static(b"0123456789")));
    assert_eq!((&*get.path, get.header("x-newest")), ("/v1/a/c/o", Some("true")));
    assert_eq!(get.query, "multipart-manifest=get&version-id=3&format=raw");
    assert_eq!(get.header("if-match"), Some("x"));
}

#[tokio::test]
async fn what_is_no_whole_object_vouches_for_nothing() {
    let seen = Seen::default();
    let asked = with_headers(
        request("PUT", "/v1/a/c/o"),
        &[
            ("x-copy-from", "d/p"),
            ("x-copy-from-account", "b"),
            ("x-fresh-metadata", "yes"),
            ("x-object-sysmeta-container-update-override-size", "9"),
        ],
    );
    let part = || {
        let mut part = source();
        *part.status_mut() = StatusCode::PARTIAL_CONTENT;
        part
    };
    let response = ask(copy(), asked, core(&seen, part)).await;
    assert_eq!(response.headers()["x-copied-from-account"], "b");
    let put = seen.lock().unwrap().pop().unwrap();
    assert_eq!((put.header("etag"), put.header("x-object-meta-a")), (None, None));
    assert_eq!(put.header("x-object-sysmeta-a"), Some("2"));
    assert_eq!(put.header("x-object-sysmeta-container-update-override-etag"), None);
    assert_eq!(put.header("x-object-sysmeta-container-update-override-size"), Some("9"));
}

#[tokio::test]
async fn what_cannot_be_copied_is_refused() {
    for (method, headers, status) in [
        ("COPY", &[][..], 412),
        ("COPY", &[("destination", "c")][..], 412),
        ("COPY", &[("destination", "c/o"), ("destination-account", "")][..], 412),
        (
            "PUT",
            &[("x-copy-from", "c/o"), ("x-copy-from-account", "a%2Fb")][..],
            412,
        ),
        ("PUT", &[("x-copy-from", "c/%00")][..], 412),
    ] {
        let seen = Seen::default();
        let asked = with_headers(request(method, "/v1/a/c/o"), headers);
        assert_eq!(
            ask(copy(), asked, core(&seen, source)).await.status(),
            status,
            "{headers:?}"
        );
        assert!(seen.lock().unwrap().is_empty());
    }
    for length in [None, Some(1001)] {
        let seen = Seen::default();
        let large = move || Response::new(Body::stream(stream::empty(), length));
        let asked = with_headers(request("PUT", "/v1/a/c/o"), &[("x-copy-from", "c/p")]);
        assert_eq!(ask(copy(), asked, core(&seen, large)).await.status(), 413);
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
    let seen = Seen::default();
    let mut asked = with_headers(request("PUT", "/v1/a/c/o"), &[("x-copy-from", "c/p")]);
    asked.body = Body::stream(stream::iter([Ok(Bytes::from_static(b"x"))]), None);
    assert_eq!(ask(copy(), asked, core(&seen, source)).await.status(), 400);
}

#[tokio::test]
async fn a_source_that_breaks_off_breaks_the_write() {
    let seen = Seen::default();
    let broken = || {
        let chunks = [Ok(Bytes::from_static(b"0123")), Err(BodyError::Abandoned)];
        Response::new(Body::stream(stream::iter(chunks), Some(10)))
    };
    let asked = with_headers(request("COPY", "/v1/a/c/o"), &[("destination", "d/p")]);
    ask(copy(), asked, core(&seen, broken)).await;
    let put = seen.lock().unwrap().pop().unwrap();
    assert_eq!(put.header("content-length"), Some("10"));
    assert_eq!(put.body.collect(100).await, Err(BodyError::Abandoned));
}

#[tokio::test]
async fn signs_of_life() {
    let seen = Seen::default();
    let asked = with_headers(
        request("COPY", "/v1/a/c/o?heartbeat=on"),
        &[("destination", "d/p"), ("accept", "application/json")],
    );
    let response = ask(copy(), asked, core(&seen, || reply::plain(200, "x"))).await;
    assert_eq!(response.status(), 202);
    assert!(
        seen.lock().unwrap().len() == 1,
        "the write begins with the answer's body"
    );
    let body = response.into_body().collect(10_000).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(
        text.starts_with(
            " {\"Response Status\": \"201 Created\", \"Response Body\": \"\", \"X-Copied-From-Account\": \"a\""
        ),
        "{text}"
    );
    assert!(text.ends_with("\"Errors\": []}"), "{text}");
}

#[tokio::test]
async fn both_accounts_may_be_named() {
    for (header, account) in [("x-copy-from-account", "b"), ("destination-account", "a")] {
        let seen = Seen::default();
        let asked = with_headers(request("COPY", "/v1/a/c/o"), &[("destination", "d/p"), (header, "b")]);
        ask(copy(), asked, core(&seen, source)).await;
        assert_eq!(*seen.lock().unwrap()[0].path, format!("/v1/{account}/c/o"), "{header}");
    }
}

#[tokio::test]
async fn options_name_copy_for_objects() {
    for (path, expected) in [("/v1/a/c/o", "GET, COPY"), ("/v1/a/c", "GET")] {
        let core = Answer::new(|_| {
            let mut response = reply::html(200, String::new());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            response
        });
        let response = ask(copy(), request("OPTIONS", path), core).await;
        assert_eq!(response.headers()[ALLOW], expected);
    }
}

proptest! {
    #[test]
    fn any_header_is_read(text in "\\PC*", account in "\\PC*", method in "PUT|COPY") {
        let seen = Seen::default();
        let headers: &[(&'static str, &str)] = &[
            ("x-copy-from", &text), ("x-copy-from-account", &account),
            ("destination", &text), ("destination-account", &account),
        ];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(ask(copy(), with_headers(request(&method, "/v1/a/c/o?a=%"), headers), core(&seen, source)));
    }
}
