//! Encryption between a client and a core that stores one object as an object server would.

use super::*;
use crate::encryption::keymaster::Keymaster;
use crate::testing::{request, with_headers};
use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use peer::message::header_names::X_CRYPTO_CIPHER;
use request_pipeline::{Core, Feature, InfoSource, Pipeline};
use settings::declare::{Options, Scope};
use std::path::Path;
use world::random::OsRandom;

mod customer_keys;

const ONE: &str = "encryption_root_secret = cnJycnJycnJycnJycnJycnJycnJycnJycnJycnJycnI=\n";
const TWO: &str = "encryption_root_secret = c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=\n";
const ROTATED: &str = "encryption_root_secret = cnJycnJycnJycnJycnJycnJycnJycnJycnJycnJycnI=\n\
     encryption_root_secret_new = c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=\nactive_root_secret_id = new\n";
const ONLY_NEW: &str =
    "encryption_root_secret_new = c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=\nactive_root_secret_id = new\n";
const TEXT: &str = "hello world and more of it";
const MD5: &str = "6355d3a1ea70fc00e23b01a58e1ee3ff";

/// Stores what it gets, and answers reads with it.
#[derive(Default)]
struct Disk {
    headers: Mutex<HeaderMap>,
    body: Mutex<Bytes>,
    /// The request that came last.
    seen: Mutex<HeaderMap>,
}

#[async_trait::async_trait]
impl Core for Disk {
    async fn handle(&self, mut request: ClientRequest) -> Response {
        *self.seen.lock() = request.headers.clone();
        match request.method {
            Method::PUT => {
                let Ok(body) = request.body.collect(1 << 20).await else {
                    return reply::status(499);
                };
                let footers = request.footers.take().map(|footers| footers());
                let footers = match footers.transpose() {
                    Ok(footers) => footers.unwrap_or_default(),
                    Err(refusal) => return refusal,
                };
                let mut headers = request.headers;
                for (name, value) in footers {
                    headers.insert(name.unwrap(), value);
                }
                headers.remove("content-length");
                headers.insert("etag", HeaderValue::from_static("stored"));
                *self.headers.lock() = headers;
                *self.body.lock() = body;
                let mut response = reply::html(201, String::new());
                response
                    .headers_mut()
                    .insert("etag", HeaderValue::from_static("stored"));
                response
            }
            Method::POST => {
                let mut headers = self.headers.lock();
                headers.extend(request.headers);
                reply::status(202)
            }
            _ => self.read(&request),
        }
    }

    fn info(&self) -> &dyn InfoSource {
        unreachable!("nobody asks")
    }
}

impl Disk {
    fn read(&self, request: &ClientRequest) -> Response {
        let body = self.body.lock().clone();
        let range = request.header("range").and_then(vocabulary::RangeSet::parse);
        let ranges = range.map(|range| range.resolve(body.len() as u64)).unwrap_or_default();
        let mut response = match &ranges[..] {
            [] => Response::new(Body::whole(body)),
            [range] => {
                let part = body.slice(range.start as usize..range.end as usize);
                let pieces: Vec<_> = part.chunks(3).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
                let mut response = Response::new(Body::stream(futures_util::stream::iter(pieces), Some(range.len())));
                *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
                let value = HeaderValue::from_str(&range.content_range(body.len() as u64)).unwrap();
                response.headers_mut().insert("content-range", value);
                response
            }
            _ => unreachable!("parts are the gateway's"),
        };
        response.headers_mut().extend(self.headers.lock().clone());
        response
    }
}

fn scope(text: &str) -> Scope {
    let document = settings::Document::parse(Path::new("p.conf"), &format!("[filter:x]\n{text}")).unwrap();
    Scope::paste(&document, "filter:x").unwrap()
}

fn pipeline(disk: &Arc<Disk>, keymaster: Option<&str>, encryption: &str) -> Pipeline {
    let settings = EncryptionSettings::read(&scope(encryption)).unwrap();
    let mut features: Vec<Arc<dyn Feature>> = Vec::new();
    if let Some(text) = keymaster {
        let settings = settings::KeymasterSettings::read(&scope(text)).unwrap();
        features.push(Arc::new(Keymaster::new(settings)));
    }
    features.push(Arc::new(Encryption::new(
        &settings,
        Limits::default(),
        Arc::new(OsRandom),
    )));
    Pipeline::new(features, disk.clone())
}

fn put(body: &'static str, headers: &[(&'static str, &str)]) -> ClientRequest {
    let mut put = with_headers(request("PUT", "/v1/a/c/o"), headers);
    let pieces: Vec<_> = body
        .as_bytes()
        .chunks(7)
        .map(|piece| Ok(Bytes::from_static(piece)))
        .collect();
    put.body = Body::stream(futures_util::stream::iter(pieces), Some(body.len() as u64));
    put
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

async fn text(response: Response) -> (u16, HeaderMap, String) {
    let (head, body) = response.into_parts();
    let body = body.collect(1 << 20).await.unwrap();
    (
        head.status.as_u16(),
        head.headers,
        String::from_utf8_lossy(&body).into_owned(),
    )
}

async fn get(pipeline: &Pipeline, headers: &[(&'static str, &str)]) -> (u16, HeaderMap, String) {
    text(pipeline.run(with_headers(request("GET", "/v1/a/c/o"), headers)).await).await
}

async fn stored(keymaster: &str, headers: &[(&'static str, &str)]) -> Arc<Disk> {
    let disk = Arc::new(Disk::default());
    let pipeline = pipeline(&disk, Some(keymaster), "");
    let (status, headers, _) = text(pipeline.run(put(TEXT, headers)).await).await;
    assert_eq!((status, header(&headers, "etag")), (201, MD5));
    assert_eq!(header(&headers, X_CRYPTO_CIPHER.as_str()), "AES_CTR_256");
    disk
}

#[tokio::test]
async fn nothing_lies_on_disk_in_the_clear() {
    let disk = stored(
        ONE,
        &[("x-object-meta-foo", "bar"), ("x-object-meta-empty", ""), ("etag", MD5)],
    )
    .await;
    let headers = disk.headers.lock().clone();
    let shown = format!("{headers:?}");
    assert!(!shown.contains(MD5) && !shown.contains("bar") && !disk.body.lock().starts_with(b"hello"));
    let names: Vec<&str> = headers
        .keys()
        .map(HeaderName::as_str)
        .filter(|name| name.starts_with("x-"))
        .collect();
    let mut expected = vec![
        "x-object-meta-empty",
        "x-object-transient-sysmeta-crypto-meta",
        "x-object-transient-sysmeta-crypto-meta-foo",
        "x-object-sysmeta-crypto-body-meta",
        "x-object-sysmeta-crypto-etag",
        "x-object-sysmeta-crypto-etag-mac",
        "x-object-sysmeta-container-update-override-etag",
    ];
    let mut names = names;
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    // What OpenStack stored for the same.
    assert_eq!(
        header(&headers, "x-object-transient-sysmeta-crypto-meta"),
        "%7B%22cipher%22%3A+%22AES_CTR_256%22%2C+%22key_id%22%3A+%7B%22path%22%3A+%22%2Fa%2Fc%2Fo%22%2C+%22v%22%3A+%222%22%7D%7D"
    );
    let mask = |text: &str| {
        let mut parts: Vec<String> = text.split("%22").map(str::to_owned).collect();
        parts
            .iter_mut()
            .filter(|part| part.len() > 24)
            .for_each(|part| *part = "#".into());
        parts.join("%22")
    };
    assert_eq!(
        mask(header(&headers, "x-object-sysmeta-crypto-body-meta")),
        "%7B%22body_key%22%3A+%7B%22iv%22%3A+%22#%22%2C+%22key%22%3A+%22#%22%7D%2C+%22cipher%22%3A+%22AES_CTR_256%22%2C+%22iv%22%3A+%22#%22%2C+%22key_id%22%3A+%7B%22path%22%3A+%22%2Fa%2Fc%2Fo%22%2C+%22v%22%3A+%222%22%7D%7D"
    );
}

#[tokio::test]
async fn clients_see_what_they_stored() {
    let disk = stored(ONE, &[("x-object-meta-foo", "bär"), ("x-object-meta-empty", "")]).await;
    for keymaster in [ONE, ROTATED] {
        let pipeline = pipeline(&disk, Some(keymaster), "disable_encryption = yes");
        let (status, headers, body) = get(&pipeline, &[]).await;
        assert_eq!((status, body.as_str(), header(&headers, "etag")), (200, TEXT, MD5));
        assert_eq!(headers["x-object-meta-foo"].as_bytes(), "bär".as_bytes());
        assert!(headers.contains_key("x-object-meta-empty"));
        assert_eq!(header(&headers, "x-object-sysmeta-container-update-override-etag"), MD5);
        assert_eq!(
            headers
                .keys()
                .filter(|name| name.as_str().contains("sysmeta-crypto"))
                .count(),
            0
        );
        for (from, to) in [(0, 0), (3, 9), (15, 16), (16, 25), (17, 20)] {
            let (status, _, body) = get(&pipeline, &[("range", &format!("bytes={from}-{to}"))]).await;
            assert_eq!((status, body.as_str()), (206, &TEXT[from..=to]));
        }
    }
}

#[tokio::test]
async fn pages_from_elsewhere_see_metadata() {
    let disk = stored(ONE, &[("x-object-meta-foo", "bar")]).await;
    let exposed = HeaderValue::from_static("etag, x-trans-id");
    disk.headers.lock().insert("access-control-expose-headers", exposed);
    let (_, headers, _) = get(&pipeline(&disk, Some(ONE), ""), &[]).await;
    let exposed = header(&headers, "access-control-expose-headers");
    assert_eq!(exposed, "etag, x-trans-id, x-object-meta-foo");
}

#[tokio::test]
async fn posts_replace_metadata() {
    let disk = stored(ONE, &[]).await;
    let pipeline = pipeline(&disk, Some(ROTATED), "");
    let post = with_headers(
        request("POST", "/v1/a/c/o"),
        &[("x-object-meta-b", "later"), ("x-object-meta-c", "")],
    );
    assert_eq!(pipeline.run(post).await.status().as_u16(), 202);
    let (status, headers, body) = get(&pipeline, &[]).await;
    assert_eq!(
        (status, body.as_str(), header(&headers, "x-object-meta-b")),
        (200, TEXT, "later")
    );
    let nameless = with_headers(request("POST", "/v1/a/c/o"), &[("x-object-meta-", "x")]);
    assert_eq!(
        text(pipeline.run(nameless).await).await.2,
        "Metadata name cannot be empty"
    );
}

#[tokio::test]
async fn conditions_reach_storage_as_macs() {
    let disk = stored(ONE, &[]).await;
    let pipeline = pipeline(&disk, Some(ROTATED), "");
    get(
        &pipeline,
        &[("if-match", MD5), ("x-backend-etag-is-at", "X-Object-Sysmeta-Slo-Etag")],
    )
    .await;
    let seen = disk.seen.lock().clone();
    let mac = header(&disk.headers.lock(), "x-object-sysmeta-crypto-etag-mac").to_owned();
    assert!(header(&seen, "if-match").contains(&mac) && header(&seen, "if-match").split(',').count() == 3);
    assert_eq!(
        header(&seen, "x-backend-etag-is-at"),
        "X-Object-Sysmeta-Slo-Etag,X-Object-Sysmeta-Crypto-Etag-Mac"
    );
    get(&pipeline, &[("if-none-match", "*")]).await;
    assert!(!disk.seen.lock().contains_key("x-backend-etag-is-at"));
}

#[tokio::test]
async fn entity_tags_are_of_what_the_client_sent() {
    let disk = Arc::new(Disk::default());
    let pipeline = pipeline(&disk, Some(ONE), "");
    assert_eq!(pipeline.run(put(TEXT, &[("etag", "bad")])).await.status().as_u16(), 422);
    assert!(disk.headers.lock().is_empty());
    // A feature in front may know it better at the end.
    let mut known = put(TEXT, &[("etag", "bad")]);
    let etag = [(http::header::ETAG, HeaderValue::from_static(MD5))];
    known.footers = Some(Box::new(|| Ok(etag.into_iter().collect())));
    assert_eq!(pipeline.run(known).await.status().as_u16(), 201);
    // What lists show is for a feature to say, too.
    let listed = put(
        TEXT,
        &[("x-object-sysmeta-container-update-override-etag", "over; slo_etag=y")],
    );
    assert_eq!(pipeline.run(listed).await.status().as_u16(), 201);
    let (_, headers, _) = get(&pipeline, &[]).await;
    assert_eq!(
        header(&headers, "x-object-sysmeta-container-update-override-etag"),
        "over; slo_etag=y"
    );
}

#[tokio::test]
async fn empty_bodies_stay_as_they_are() {
    for (listed, is_hidden) in [(EMPTY, false), ("abc", true)] {
        let disk = Arc::new(Disk::default());
        let pipeline = pipeline(&disk, Some(ONE), "");
        let name = "x-object-sysmeta-container-update-override-etag";
        let response = pipeline
            .run(put("", &[("etag", "x"), (name, listed), ("x-object-meta-a", "b")]))
            .await;
        assert_eq!(header(response.headers(), "etag"), "stored");
        assert!(!response.headers().contains_key(X_CRYPTO_CIPHER));
        let headers = disk.headers.lock().clone();
        assert!(!headers.contains_key("x-object-sysmeta-crypto-body-meta"));
        assert_eq!(header(&headers, name) != listed, is_hidden);
        let (status, headers, _) = get(&pipeline, &[]).await;
        assert_eq!(
            (status, header(&headers, "x-object-meta-a"), header(&headers, name)),
            (200, "b", listed)
        );
    }
}

#[tokio::test]
async fn what_cannot_be_decrypted_is_reported() {
    let disk = stored(ONE, &[("x-object-meta-foo", "bar")]).await;
    for (keymaster, expected) in [
        (Some(TWO), "Error decrypting header"),
        (Some(ONLY_NEW), "Error decrypting object"),
        (None, "Unable to retrieve encryption keys."),
    ] {
        let pipeline = pipeline(&disk, keymaster, "");
        assert_eq!(get(&pipeline, &[]).await.2, expected);
        let head = text(pipeline.run(request("HEAD", "/v1/a/c/o")).await).await;
        assert_eq!((head.0, head.2.as_str()), (500, ""));
    }
    let pipeline = pipeline(&disk, Some(ONE), "");
    let kept = disk.headers.lock().clone();
    for (name, value, expected) in [
        (
            "x-object-sysmeta-crypto-body-meta",
            "garbage",
            "Error decrypting object",
        ),
        ("x-object-sysmeta-crypto-body-meta", "%7B%7D", "Error decrypting object"),
        ("x-object-sysmeta-crypto-etag", "garbage", "Error decrypting header"),
        (
            "x-object-transient-sysmeta-crypto-meta-foo",
            "garbage",
            "Error decrypting header",
        ),
        (
            "x-object-transient-sysmeta-crypto-meta-foo",
            "gar; swift_meta=%7B%7D",
            "Error decrypting header",
        ),
    ] {
        disk.headers.lock().insert(name, HeaderValue::from_static(value));
        assert_eq!(get(&pipeline, &[]).await.2, expected, "{name} {value}");
        *disk.headers.lock() = kept.clone();
    }
    disk.headers.lock().remove("x-object-sysmeta-crypto-body-meta");
    assert_eq!(get(&pipeline, &[]).await.2, "Error decrypting header");
    *disk.headers.lock() = kept.clone();
    // What is meant for the listing only is left out.
    const LISTED: &str = "x-object-sysmeta-container-update-override-etag";
    for (stored, shown) in [("x; swift_meta=zzz", None), ("plain", Some("plain"))] {
        disk.headers.lock().insert(LISTED, HeaderValue::from_static(stored));
        let (status, headers, _) = get(&pipeline, &[]).await;
        assert_eq!(
            (status, headers.get(LISTED).map(|value| value.to_str().unwrap())),
            (200, shown)
        );
    }
}

#[tokio::test]
async fn without_a_keymaster_nothing_is_stored() {
    let disk = Arc::new(Disk::default());
    let none = pipeline(&disk, None, "");
    let (status, _, body) = text(none.run(put(TEXT, &[])).await).await;
    assert_eq!((status, body.as_str()), (500, "Unable to retrieve encryption keys."));
    assert!(disk.body.lock().is_empty());
    let disabled = pipeline(&disk, None, "disable_encryption = true");
    assert_eq!(disabled.run(put(TEXT, &[])).await.status().as_u16(), 201);
    assert_eq!(get(&disabled, &[]).await.2, TEXT);
    assert_eq!(get(&none, &[]).await.2, TEXT, "what is not encrypted needs no key");
}

#[tokio::test]
async fn listings_show_what_clients_know() {
    let disk = stored(ONE, &[]).await;
    let hidden = header(&disk.headers.lock(), LISTED_ETAG.as_str()).to_owned();
    let list = async |keymaster: &'static str, hash: &str, content_type: &'static str| {
        let rows = json!([{"name": "ü", "hash": hash, "bytes": 5}, {"subdir": "x/"}, {"hash": "plain"}]).to_string();
        let disk = Arc::new(Disk::default());
        *disk.body.lock() = rows.into();
        disk.headers
            .lock()
            .insert("content-type", HeaderValue::from_static(content_type));
        let pipeline = pipeline(&disk, Some(keymaster), "");
        text(pipeline.run(request("GET", "/v1/a/c?format=json")).await).await
    };
    let expected = |hash: &str| {
        format!(r#"[{{"name": "\u00fc", "hash": "{hash}", "bytes": 5}}, {{"subdir": "x/"}}, {{"hash": "plain"}}]"#)
    };
    const JSON: &str = "application/json; charset=utf-8";
    for (keymaster, hash, shown) in [
        (ONE, hidden.clone(), MD5),
        (ROTATED, hidden.clone(), MD5),
        (ROTATED, format!("{hidden}; slo_etag=abc"), MD5),
        (ROTATED, hidden.replace("%2Fa%2Fc%2Fo", "%2Fa%2Fd%2Fo"), "<unknown>"),
        (ONLY_NEW, hidden.clone(), "<unknown>"),
        (TWO, hidden.clone(), "<unknown>"),
        (ONE, "x; swift_meta=zz".into(), "<unknown>"),
        (ONE, hidden.replace("%22v%22%3A+%222", "%22v%22%3A+%229"), "<unknown>"),
    ] {
        let (status, headers, body) = list(keymaster, &hash, JSON).await;
        assert_eq!((status, body.clone()), (200, expected(shown)), "{hash}");
        assert_eq!(header(&headers, "content-length"), body.len().to_string());
    }
    assert!(list(ONE, &hidden, "text/plain").await.2.contains("swift_meta"));
}
