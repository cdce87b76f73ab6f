//! Signed forms in front of a core that keeps what it is given.

use super::*;
use crate::access::signatures::sign;
use crate::testing::{request, with_headers};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use request_pipeline::{AccountInfo, ContainerInfo, Core, InfoSource, Pipeline};
use settings::kinds::DigestKind;
use world::clock::RealClock;

/// Stores objects as lines.
#[derive(Default)]
struct Stored(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl Core for Stored {
    async fn handle(&self, request: ClientRequest) -> Response {
        if request.path.contains("none") {
            return reply::status(404);
        }
        let sent = ["content-type", "content-encoding", "x-delete-at"]
            .map(|name| request.header(name).unwrap_or("-").to_owned());
        let line = format!("{} {} {}", request.method, request.path, sent.join(" "));
        let user = request.remote_user.clone().unwrap_or_default();
        match request.body.collect(1000).await {
            Ok(body) => self
                .0
                .lock()
                .push(format!("{line} {user} {}", String::from_utf8_lossy(&body))),
            Err(_) => return reply::status(499),
        }
        reply::status(201)
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for Stored {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        let meta = [("temp-url-key".to_owned(), "key".to_owned())].into();
        Arc::new(AccountInfo {
            meta,
            ..AccountInfo::default()
        })
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        Arc::default()
    }
}

const LATER: &str = "9000000000";

fn signed(path: &str, redirect: &str, size: &str, count: &str) -> Vec<(&'static str, String)> {
    let signature = sign(
        DigestKind::Sha256,
        "key",
        &format!("{path}\n{redirect}\n{size}\n{count}\n{LATER}"),
    );
    let fields = [
        ("redirect", redirect),
        ("max_file_size", size),
        ("max_file_count", count),
        ("expires", LATER),
        ("signature", &signature),
    ];
    fields.map(|(name, value)| (name, value.to_owned())).into()
}

fn form(fields: &[(&str, String)], files: &[(&str, &str)]) -> Vec<u8> {
    let mut form = String::new();
    for (name, value) in fields {
        form += &format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    for (name, data) in files {
        form += &format!(
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n{data}\r\n"
        );
    }
    (form + "--B--\r\n").into_bytes()
}

async fn post(path: &str, form: &[u8]) -> (Response, Vec<String>) {
    let mut asked = with_headers(
        request("POST", path),
        &[
            ("content-type", "multipart/form-data; boundary=B"),
            ("x-auth-token", "t"),
        ],
    );
    let chunks: Vec<_> = form.chunks(7).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    asked.body = Body::stream(stream::iter(chunks), None);
    let stored = Stored::default();
    let kept = stored.0.clone();
    let feature = FormPost::new(FormPostSettings::default(), Arc::new(RealClock::new()));
    let response = Pipeline::new(vec![Arc::new(feature)], Arc::new(stored))
        .run(asked)
        .await;
    let kept = kept.lock().clone();
    (response, kept)
}

async fn outcome_of(path: &str, form: &[u8]) -> (u16, String, usize) {
    let (response, kept) = post(path, form).await;
    let text = response.body().as_whole().unwrap();
    (
        response.status().as_u16(),
        String::from_utf8_lossy(&text).into_owned(),
        kept.len(),
    )
}

#[tokio::test]
async fn files_become_objects() {
    let mut fields = signed("/v1/a/c/p-", "", "10", "2");
    fields.push(("x_delete_at", "9000000001".into()));
    fields.push(("content-encoding", "gzip".into()));
    let (response, kept) = post("/v1/a/c/p-", &form(&fields, &[("one", "1\r\n-"), ("ü", "")])).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.body().as_whole().unwrap(), "201 Created");
    assert_eq!(
        kept,
        [
            "PUT /v1/a/c/p-one text/plain gzip 9000000001 .wsgi.formpost 1\r\n-",
            "PUT /v1/a/c/p-ü text/plain gzip 9000000001 .wsgi.formpost "
        ]
    );
    let (_, kept) = post("/v1/a/c", &form(&signed("/v1/a/c", "", "10", "2"), &[("one", "1")])).await;
    assert!(kept[0].starts_with("PUT /v1/a/c/one "), "{kept:?}");
}

#[tokio::test]
async fn forms_are_refused_as_openstack_refuses_them() {
    let good = signed("/v1/a/c/p", "", "3", "1");
    let file = [("f", "abc")];
    let without = |name: &str| {
        good.iter()
            .filter(|(field, _)| *field != name)
            .cloned()
            .collect::<Vec<_>>()
    };
    let with = |name: &'static str, value: &str| {
        let mut fields = without(name);
        fields.push((name, value.into()));
        fields
    };
    for (fields, files, expected) in [
        (good.clone(), &file[..], (201, "201 Created", 1)),
        (
            good.clone(),
            &[],
            (400, "400 Bad Request\r\nFormPost: No Files To Process", 0),
        ),
        (
            good.clone(),
            &[("f", "abcd")],
            (400, "FormPost: max_file_size exceeded", 0),
        ),
        (
            good.clone(),
            &[("f", ""), ("g", "")],
            (400, "400 Bad Request\r\nFormPost: Max File Count Exceeded", 1),
        ),
        (good.clone(), &[("none", "")], (404, "404 Not Found", 0)),
        (good.clone(), &[("a\0b", "")], (412, "412 Precondition Failed", 0)),
        (without("signature"), &file, (401, "FormPost: Invalid Signature", 0)),
        (
            with("max_file_size", "4"),
            &file,
            (401, "FormPost: Invalid Signature", 0),
        ),
        (
            with("max_file_size", "x"),
            &file,
            (400, "FormPost: max_file_size not an integer", 0),
        ),
        (
            with("max_file_count", "x"),
            &file,
            (400, "FormPost: max_file_count not an integer", 0),
        ),
        (
            with("expires", "x"),
            &file,
            (400, "FormPost: expired not an integer", 0),
        ),
        (with("expires", "5"), &file, (401, "FormPost: Form Expired", 0)),
        (
            with("redirect", "http://x"),
            &file,
            (401, "FormPost: Invalid Signature", 0),
        ),
        (
            with("x_delete_at", "x"),
            &file,
            (400, "FormPost: x_delete_at not an integer: Unix timestamp required.", 0),
        ),
    ] {
        let (code, text, stored) = expected;
        assert_eq!(
            outcome_of("/v1/a/c/p", &form(&fields, files)).await,
            (code, text.to_owned(), stored)
        );
    }
    let form = form(&good, &file);
    let invalid = (401, "FormPost: Invalid Signature".to_owned(), 0);
    for path in ["/v1/a/c/q", "/v2/a/c/p", "/v1/a", "/x/y"] {
        assert_eq!(outcome_of(path, &form).await, invalid, "{path}");
    }
    assert_eq!(
        outcome_of("/v1/a/c/p", b"x").await,
        (400, "FormPost: invalid starting boundary".to_owned(), 0)
    );
    let cut = outcome_of("/v1/a/c/p", &form[..form.len() - 8]).await;
    assert_eq!(cut, (400, "FormPost: unexpected end of form".to_owned(), 0));
}

#[tokio::test]
async fn browsers_are_sent_on() {
    let fields = signed("/v1/a/c/p", "http://x/?q=\"", "3", "0");
    let (response, _) = post("/v1/a/c/p", &form(&fields, &[("f", "")])).await;
    assert_eq!(response.status(), 303);
    let expected = "http://x/?q=\"&status=400&message=max%20file%20count%20exceeded";
    assert_eq!(response.headers()[LOCATION], expected);
    let page = response.body().as_whole().unwrap();
    assert!(String::from_utf8_lossy(&page).contains("href=\"http://x/?q=&quot;&status=400"));
    let fields = signed("/v1/a/c/p", "http://x/\r\nx: y", "3", "1");
    let (code, text, _) = outcome_of("/v1/a/c/p", &form(&fields, &[("f", "")])).await;
    assert_eq!((code, text.as_str()), (400, "FormPost: redirect is no address"));
}

#[tokio::test]
async fn other_requests_pass() {
    let stored = Stored::default();
    let kept = stored.0.clone();
    let feature = FormPost::new(FormPostSettings::default(), Arc::new(RealClock::new()));
    let pipeline = Pipeline::new(vec![Arc::new(feature)], Arc::new(stored));
    for (method, path, kind) in [
        ("PUT", "/v1/a/c", "multipart/form-data; boundary=B"),
        ("POST", "/v1/a/c", "multipart/form-data"),
        ("POST", "/v1/a/c", "multipart/form-data; boundary="),
        ("POST", "/v1/a/c", "Multipart/Form-Data; boundary=B"),
        ("POST", "/v1/a/c", "text/plain"),
        ("POST", "/bucket", "multipart/form-data; boundary=B"),
        ("POST", "/bucket/", "multipart/form-data; boundary=B"),
        ("POST", "/", "multipart/form-data; boundary=B"),
    ] {
        pipeline
            .run(with_headers(request(method, path), &[("content-type", kind)]))
            .await;
    }
    assert_eq!(kept.lock().len(), 8);
}
