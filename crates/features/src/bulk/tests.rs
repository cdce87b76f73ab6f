//! Both kinds of bulk request in front of a core that keeps what it is given.

use super::*;
use crate::testing::{request, with_headers};
use futures_util::StreamExt;
use header::{BLOCK, header};
use parking_lot::Mutex;
use request_pipeline::{AccountInfo, ContainerInfo, Core, InfoSource, MemorySeat, Pipeline};
use world::clock::RealClock;

/// Stores objects as lines; containers whose names begin with `no` cannot be made, and `out` is closed to strangers.
#[derive(Default)]
struct Stored(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl Core for Stored {
    async fn handle(&self, request: ClientRequest) -> Response {
        let entity = request.entity.clone().unwrap();
        let container = entity.container.clone().unwrap_or_default();
        if entity.object.is_none() && request.method != Method::DELETE {
            if [&*entity.account, &*container].contains(&"out") {
                return reply::status(401);
            }
            match &*entity.account {
                "away" => return reply::status(503),
                "guest" => return reply::status(403),
                _ => {}
            }
            let code = match request.method {
                Method::HEAD if container.is_empty() => 204,
                Method::HEAD => 404,
                _ => 201,
            };
            return reply::status(if container.starts_with("no") { 403 } else { code });
        }
        let sent =
            ["content-type", "x-object-meta-a", "x-horse"].map(|name| request.header(name).unwrap_or("-").to_owned());
        let line = format!("{} {} {}", request.method, request.path, sent.join(" "));
        match request.body.collect(1 << 20).await {
            Ok(body) => self.0.lock().push(format!("{line} {}", String::from_utf8_lossy(&body))),
            Err(_) => return reply::status(499),
        }
        match entity.object.as_deref() {
            Some("secret") => reply::status(401),
            Some("broken") => reply::status(503),
            _ => reply::status(201),
        }
    }

    fn info(&self) -> &dyn InfoSource {
        self
    }
}

#[async_trait::async_trait]
impl InfoSource for Stored {
    async fn account(&self, _account: &str) -> Arc<AccountInfo> {
        Arc::default()
    }

    async fn container(&self, _account: &str, _container: &str) -> Arc<ContainerInfo> {
        Arc::default()
    }
}

fn settings() -> BulkSettings {
    BulkSettings {
        max_containers_per_extraction: 2,
        max_failed_extractions: 3,
        max_deletes_per_request: 5,
        ..BulkSettings::default()
    }
}

async fn send(method: &str, target: &str, headers: &[(&'static str, &str)], body: Vec<u8>) -> (String, Vec<String>) {
    let mut asked = with_headers(request(method, target), headers);
    if !asked.headers.contains_key("content-length") {
        asked.headers.insert("content-length", HeaderValue::from(body.len()));
    }
    asked.body = Body::whole(body);
    let stored = Stored::default();
    let kept = stored.0.clone();
    let feature = Bulk::new(settings(), 1000, Arc::new(RealClock::new()));
    let response = Pipeline::new(vec![Arc::new(feature)], Arc::new(stored))
        .run(asked)
        .await;
    assert_eq!(response.status() == 200, !target.contains("=zip"));
    let text = response.into_body().collect(100_000).await.unwrap();
    let kept = kept.lock().clone();
    (String::from_utf8_lossy(&text).into_owned(), kept)
}

fn file(name: &str, data: &[u8]) -> Vec<u8> {
    let mut entry = header(name.as_bytes(), data.len(), b'0');
    entry.extend_from_slice(data);
    entry.resize(entry.len().next_multiple_of(BLOCK), 0);
    entry
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive: Vec<u8> = files.iter().flat_map(|(name, data)| file(name, data)).collect();
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

async fn unpack(path: &str, archive: Vec<u8>) -> (String, Vec<String>) {
    let target = format!("/v1/a{path}?extract-archive=tar");
    let (text, kept) = send("PUT", &target, &[("x-object-meta-a", "1"), ("x-horse", "j")], archive).await;
    let kept = kept
        .iter()
        .map(|line| line.replace("PUT /v1/a/", "").replace("- 1 - ", ""))
        .collect();
    (text.replace('\n', "|"), kept)
}

#[tokio::test]
async fn files_become_objects() {
    let (text, kept) = unpack("/c", archive(&[("one", b"1"), ("./d/two", b""), ("/../three", b"3")])).await;
    assert_eq!(
        text,
        "Number Files Created: 3|Response Body: |Response Status: 201 Created|Errors:|"
    );
    assert_eq!(kept, ["c/one 1", "c/d/two ", "c/../three 3"]);
    let (text, kept) = unpack("/", archive(&[("c/one", b"1"), ("base", b"2"), ("d/", b"3")])).await;
    assert!(text.starts_with("Number Files Created: 1|"), "{text}");
    assert_eq!(kept, ["c/one 1"]);
    let (_, kept) = unpack("/c/p/", archive(&[("one", b"1")])).await;
    assert_eq!(kept, ["c/p/one 1"]);
}

#[tokio::test]
async fn failures_are_reported() {
    let long = vec![b'x'; 1001];
    let (text, _) = unpack("/c", archive(&[("broken", b"1"), ("large", &long), ("good", b"")])).await;
    assert_eq!(
        text,
        "Number Files Created: 1|Response Body: |Response Status: 502 Bad Gateway|Errors:|\
         c/broken, 503 Service Unavailable|c/large, 413 Request Entity Too Large|"
    );
    let (text, kept) = unpack("/c", archive(&[("secret", b"1"), ("good", b"")])).await;
    assert!(
        text.ends_with("Response Status: 401 Unauthorized|Errors:|c/secret, 401 Unauthorized|"),
        "{text}"
    );
    assert_eq!(kept.len(), 1);
    let (text, _) = unpack("/", archive(&[("no/a", b""), ("c/a", b"")])).await;
    assert!(text.ends_with("Errors:|/v1/a/no, 403 Forbidden|"), "{text}");
    let (text, _) = unpack("/", archive(&[("c/a", b""), ("d/a", b""), ("e/a", b"")])).await;
    assert!(
        text.contains("Response Body: More than 2 containers to create from tar.|"),
        "{text}"
    );
    let (text, kept) = unpack(
        "/c",
        archive(&[("broken", b""), ("broken", b""), ("broken", b""), ("good", b"")]),
    )
    .await;
    assert_eq!((text.matches("broken").count(), kept.len()), (3, 3), "{text}");
}

#[tokio::test]
async fn what_is_no_archive_is_reported() {
    for (body, reason) in [
        (vec![], "empty file"),
        (vec![b'j'; 2000], "invalid header"),
        (vec![0; 2000], "No Valid Files"),
        (
            archive(&[("cut", &[1; 900])])[..1000].to_vec(),
            "unexpected end of data",
        ),
    ] {
        let (text, kept) = unpack("/c", body).await;
        assert!(
            text.contains(&format!("Response Body: Invalid Tar File: {reason}|")),
            "{text}"
        );
        assert!(kept.is_empty());
    }
    let (text, _) = send("PUT", "/v1/a/c?extract-archive=zip", &[], vec![]).await;
    assert_eq!(text, "Unsupported archive format");
    let (text, _) = send("PUT", "/v1/a/c?extract-archive=tar", &[("accept", "image/png")], vec![]).await;
    assert!(text.contains("406 Not Acceptable"));
    let (text, _) = send("PUT", "/v1?extract-archive=tar", &[], vec![]).await;
    assert!(text.contains("404 Not Found"));
}

#[tokio::test]
async fn attributes_become_metadata() {
    let records = b"33 SCHILY.xattr.user.meta.A=bass\n39 LIBARCHIVE.xattr.user.mime_type=a/b\n";
    let mut bytes = header(b"x", records.len(), b'x');
    bytes.extend_from_slice(records);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes.extend(archive(&[("one", b"1")]));
    let (text, kept) = unpack("/c", bytes).await;
    assert_eq!(kept, ["c/one a/b bass - 1"], "{text}");
}

fn gzip(bytes: &[&[u8]]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bytes.iter().for_each(|bytes| encoder.write_all(bytes).unwrap());
    encoder.finish().unwrap()
}

#[tokio::test]
async fn bombs_are_not_unpacked() {
    let end = "The archive was read to where more than 134217728 bytes would be unpacked without an object to store.";
    let small = archive(&[("small", b"1")]);
    let large = header(b"large", 7_000_000_000, b'0');
    // What follows is no data: unpacking it would fail.
    let mut bomb = gzip(&[&file("first", b"1"), &large, &vec![0; 1 << 20], &small]);
    let middle = bomb.len() / 2;
    bomb.truncate(middle);
    bomb.extend_from_slice(&[0xff; 1 << 16]);
    let (text, kept) = send("PUT", "/v1/a/c?extract-archive=tar.gz", &[], bomb).await;
    assert!(
        text.contains("c/large, 413 Request Entity Too Large") && text.contains(end),
        "{text}"
    );
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn archives_without_compression_are_read_to_their_end() {
    let large = [header(b"large", 140 << 20, b'0'), vec![0; 140 << 20]].concat();
    let (text, kept) = unpack("/c", [large, archive(&[("small", b"1")])].concat()).await;
    assert!(
        text.contains("c/large, 413") && text.contains("Number Files Created: 1"),
        "{text}"
    );
    assert_eq!(kept, ["c/small 1"]);
}

#[tokio::test]
async fn archives_of_strangers_are_not_read() {
    let archive = gzip(&[&header(b"large", 7_000_000_000, b'0'), &vec![0; 1 << 20]]);
    for target in ["/v1/a/out?extract-archive=tar.gz", "/v1/out?extract-archive=tar.gz"] {
        let (text, kept) = send("PUT", target, &[], archive.clone()).await;
        assert!(text.ends_with("Response Status: 401 Unauthorized\nErrors:\n"), "{text}");
        assert!(kept.is_empty());
    }
}

#[tokio::test]
async fn lists_are_deleted() {
    let delete = async |headers: &[(&'static str, &str)], list: &str| {
        let (text, kept) = send("POST", "/v1/a?bulk-delete", headers, list.into()).await;
        (text.replace('\n', "|"), kept.len())
    };
    let (text, count) = delete(&[], "/c/one\nc/secret\n").await;
    assert_eq!(count, 2);
    assert_eq!(
        text,
        "Number Deleted: 1|Number Not Found: 0|Response Body: |Response Status: 400 Bad Request|Errors:|c/secret, 401 Unauthorized|"
    );
    for (headers, list, expected) in [
        (&[][..], "", "Response Body: Invalid bulk delete.|Response Status: 400"),
        (&[("content-type", "text/xml")], "c", "406 Not Acceptable"),
        (
            &[],
            "1\n2\n3\n4\n5\n6",
            "Maximum Bulk Deletes: 5 per request|Response Status: 413",
        ),
    ] {
        let (text, count) = delete(headers, list).await;
        assert!(text.contains(expected) && count == 0, "{text}");
    }
}

#[tokio::test]
async fn lists_without_room_are_refused_but_for_clients_that_are_known() {
    let lists = ListRoom::of(200_000);
    let room = lists.everybody().clone();
    let feature = Arc::new(Bulk::new(settings(), 1000, Arc::new(RealClock::new())).reading_in(lists));
    // The account `out` answers strangers.
    let send_body = async |account: &str, list: Body| {
        let mut asked = request("POST", &format!("/v1/{account}?bulk-delete"));
        asked
            .headers
            .insert("transfer-encoding", HeaderValue::from_static("chunked"));
        asked.body = list;
        let pipeline = Pipeline::new(vec![feature.clone()], Arc::new(Stored::default()));
        let response = pipeline.run(asked).await;
        let status = response.status().as_u16();
        let text = response.into_body().collect(100_000).await.unwrap();
        (status, String::from_utf8_lossy(&text).into_owned())
    };
    let send = async |account: &str, list: String| send_body(account, Body::whole(list)).await;
    let long = || format!("c/{}\n", "x".repeat(2500)).repeat(5);
    let deleted = |answer: (u16, String), count: u32| {
        let expected = format!("Number Deleted: {count}");
        assert!(answer.0 == 200 && answer.1.contains(&expected), "{answer:?}");
    };
    let mut seat = room.enter("b");
    seat.grow(30_000).unwrap();
    deleted(send("out", "c/o\n".repeat(3)).await, 3);
    deleted(send("out", long()).await, 5);
    seat.grow(45_000).unwrap();
    for stranger in ["out", "away"] {
        assert_eq!(send(stranger, "c/o\n".into()).await.0, 503, "{stranger}");
    }
    deleted(send("a", long()).await, 5);
    // A user whom containers let in.
    deleted(send("guest", long()).await, 5);
    drop(seat);
    // The room is filled while the list comes, each tenant as far as it may.
    let filled = || {
        let room = room.clone();
        let fill = move |tenant: u8| {
            let mut seat = room.enter(tenant.to_string());
            while seat.grow(500).is_ok() {}
            seat
        };
        let mut seats: Vec<MemorySeat> = Vec::new();
        let list = futures_util::stream::iter(long().into_bytes().chunks(5000).map(<[u8]>::to_vec).collect::<Vec<_>>());
        Body::stream(
            list.map(move |piece| {
                seats.extend((0..10).map(&fill));
                Ok(piece.into())
            }),
            None,
        )
    };
    let (status, text) = send_body("out", filled()).await;
    assert!(status == 200 && text.contains("Response Status: 503"), "{text}");
    deleted(send_body("a", filled()).await, 5);
    assert_eq!(room.taken(), 0);
}

#[tokio::test]
async fn other_requests_pass() {
    for (method, target) in [
        ("GET", "/v1/a/c/o?bulk-delete"),
        ("PUT", "/v1/a/c/o?bulk-delete"),
        ("POST", "/v1/a/c/o?extract-archive=tar"),
        ("PUT", "/v1/a/c/o"),
    ] {
        let stored = Stored::default();
        let kept = stored.0.clone();
        let feature = Bulk::new(settings(), 1000, Arc::new(RealClock::new()));
        let pipeline = Pipeline::new(vec![Arc::new(feature)], Arc::new(stored));
        pipeline.run(request(method, target)).await;
        assert_eq!(kept.lock().len(), 1, "{method} {target}");
    }
}
