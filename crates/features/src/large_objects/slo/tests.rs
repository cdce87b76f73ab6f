use super::*;
use crate::large_objects::segments::text;
use crate::testing::{request, with_headers};
use crate::testing_store::{Store, read_text};
use http::HeaderMap;
use peer::Body;

mod bounds;

fn slo() -> StaticLargeObjects {
    let settings = SloSettings {
        max_manifest_segments: 3,
        max_manifest_size: 2000,
        ..SloSettings::default()
    };
    let hash = HashPrefix::new("pre", "suf").unwrap();
    StaticLargeObjects::new(settings, World::real(), hash, ".".into(), Duration::from_secs(60))
}

fn store() -> Store {
    let store = Store::default();
    store.put("c/a", "aaaaa");
    store.put("c/b", "bbbbbbbbbb");
    store.put("c/d", "d");
    store
}

struct SeenReply {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl SeenReply {
    fn header(&self, name: &str) -> &str {
        text(&self.headers, name).unwrap_or("-")
    }
}

async fn ask(store: &Store, method: &str, target: &str, headers: &[(&'static str, &str)]) -> SeenReply {
    let asked = with_headers(request(method, &format!("/v1/a/{target}")), headers);
    tell(store.ask(slo(), asked).await).await
}

async fn tell(response: Response) -> SeenReply {
    SeenReply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: read_text(response).await.unwrap_or_else(|broken| broken.what),
    }
}

async fn put(store: &Store, target: &str, manifest: &str) -> SeenReply {
    let mut asked = request("PUT", &format!("/v1/a/{target}multipart-manifest=put"));
    asked = with_headers(asked, &[("content-length", &manifest.len().to_string())]);
    asked.body = Body::whole(manifest.to_owned());
    tell(store.ask(slo(), asked).await).await
}

const MIXED: &str = r#"[{"path": "/c/a"}, {"path": "/c/b", "range": "2-5"}, {"data": "eHl6"}]"#;

#[tokio::test]
async fn stored_as_openstack_stores_it() {
    let store = store();
    let stored = put(&store, "c/m?", MIXED).await;
    assert_eq!(stored.status, 201);
    assert_eq!(stored.header("etag"), "\"936fa5859bd447386d1c599c71345eaf\"");
    let kept = store.objects.lock()["/v1/a/c/m"].clone();
    let kept_headers = kept.headers;
    let json = String::from_utf8(kept.bytes.to_vec()).unwrap();
    assert!(
        json.contains("\"last_modified\": \"2026-11-20T15:17:12.000000\", \"range\": \"2-5\"}, {\"data\": \"eHl6\"}]")
    );
    assert_eq!(kept_headers["x-static-large-object"], "True");
    assert_eq!(kept_headers["x-object-sysmeta-slo-size"], "12");
    assert_eq!(
        kept_headers["x-object-sysmeta-slo-etag"],
        "936fa5859bd447386d1c599c71345eaf"
    );
    let tag = kept_headers["x-object-sysmeta-container-update-override-etag"]
        .to_str()
        .unwrap();
    assert!(tag.ends_with("; slo_etag=936fa5859bd447386d1c599c71345eaf"), "{tag}");
}

#[tokio::test]
async fn lists_say_whether_all_their_segments_are_encrypted() {
    const CIPHER: (&str, &str) = ("x-backend-crypto-cipher", "AES_CTR_256");
    const ALL: &str = "x-object-sysmeta-slo-segments-encrypted";
    let store = store();
    store.put_with("c/e", "eeeee", &[CIPHER]);
    let large = [
        CIPHER,
        ("x-static-large-object", "True"),
        ("x-object-sysmeta-slo-etag", "x"),
        ("x-object-sysmeta-slo-size", "5"),
        (ALL, "true"),
    ];
    store.put_with("c/large", "[]", &large[..4]);
    store.put_with("c/large-encrypted", "[]", &large);
    for (manifest, is_encrypted) in [
        (
            r#"[{"path": "/c/e"}, {"path": "/c/e", "range": "2-3"}, {"data": "eHl6"}]"#,
            true,
        ),
        (r#"[{"path": "/c/e"}, {"path": "/c/a"}]"#, false),
        (r#"[{"path": "/c/large"}]"#, false),
        (r#"[{"path": "/c/large-encrypted"}]"#, true),
    ] {
        let target = "/v1/a/c/m?multipart-manifest=put";
        let length = manifest.len().to_string();
        let mut asked = with_headers(request("PUT", target), &[("content-length", &length), (ALL, "true")]);
        asked.body = Body::whole(manifest);
        let answer = tell(store.ask(slo(), asked).await).await;
        let kept = store.objects.lock()["/v1/a/c/m"].headers.contains_key(ALL);
        assert_eq!((answer.status, kept), (201, is_encrypted), "{manifest}");
        assert_eq!(answer.headers.contains_key(ALL), is_encrypted, "{manifest}");
    }
}

#[tokio::test]
async fn mistakes_are_reported_and_nothing_is_stored() {
    let store = store();
    for (manifest, status, expected) in [
        ("", 400, "Manifest must be valid JSON.\n"),
        (r#"[{"path": "/c/none"}]"#, 400, "Errors:\n/c/none, 404 Not Found\n"),
        (
            r#"[{"path": "/c/a", "etag": "x", "size_bytes": 9}]"#,
            400,
            "Errors:\n/c/a, Size Mismatch\n/c/a, Etag Mismatch\n",
        ),
        (
            r#"[{"path": "/c/a", "range": "9-"}]"#,
            400,
            "Errors:\n/c/a, Unsatisfiable Range\n",
        ),
        (
            r#"[{"path":"/c/a"},{"path":"/c/a"},{"path":"/c/a"},{"path":"/c/a"}]"#,
            413,
            "Number of object-backed segments must be <= 3",
        ),
    ] {
        let refused = put(&store, "c/m?", manifest).await;
        assert_eq!(
            (refused.status, refused.body.as_str()),
            (status, expected),
            "{manifest}"
        );
    }
    assert_eq!(put(&store, "c/m?", &" ".repeat(2001)).await.status, 413);
    assert_eq!(ask(&store, "PUT", "c/m?multipart-manifest=put", &[]).await.status, 411);
    assert_eq!(
        ask(&store, "PUT", "c/m", &[("x-static-large-object", "true")])
            .await
            .status,
        400
    );
    assert_eq!(ask(&store, "GET", "c/m", &[]).await.status, 404);
    let beating = put(&store, "c/m?heartbeat=on&", r#"[{"path": "/c/none"}]"#).await;
    assert_eq!(beating.status, 202);
    assert!(
        beating.body.starts_with(" \r\n\r\nResponse Body: Bad Request\n"),
        "{}",
        beating.body
    );
}

#[tokio::test]
async fn read_whole_in_ranges_and_by_part() {
    let store = store();
    put(&store, "c/m?", MIXED).await;
    store.take_asked();
    let whole = ask(&store, "GET", "c/m", &[]).await;
    assert_eq!((whole.status, whole.body.as_str()), (200, "aaaaabbbbxyz"));
    assert_eq!(whole.header("content-length"), "12");
    assert_eq!(
        store.take_asked(),
        ["GET /v1/a/c/m", "GET /v1/a/c/a", "GET /v1/a/c/b bytes=2-5"]
    );
    for (range, expected) in [
        ("bytes=2-7", (206, "bytes 2-7/12", "aaabbb")),
        ("bytes=-3", (206, "bytes 9-11/12", "xyz")),
        ("bytes=rubbish", (200, "-", "aaaaabbbbxyz")),
    ] {
        let seen = ask(&store, "GET", "c/m", &[("range", range)]).await;
        let shown = (seen.status, seen.header("content-range"), seen.body.as_str());
        assert_eq!(shown, expected, "{range}");
    }
    let none = ask(&store, "GET", "c/m", &[("range", "bytes=100-")]).await;
    assert_eq!((none.status, none.header("content-range")), (416, "bytes */12"));
    let several = ask(&store, "GET", "c/m", &[("range", "bytes=0-1,4-9")]).await;
    assert_eq!(several.header("content-length"), several.body.len().to_string());
    assert!(several.body.contains("Content-Range: bytes 4-9/12\r\n\r\nabbbbx\r\n--"));
    let part = ask(&store, "GET", "c/m?part-number=2", &[]).await;
    assert_eq!((part.status, part.body.as_str()), (206, "bbbb"));
    assert_eq!(
        (part.header("x-parts-count"), part.header("content-range")),
        ("3", "bytes 5-8/12")
    );
    for (target, status) in [("c/m?part-number=0", 400), ("c/m?part-number=4", 416)] {
        assert_eq!(ask(&store, "GET", target, &[]).await.status, status);
    }
}

#[tokio::test]
async fn heads_touch_no_segment() {
    let store = store();
    put(&store, "c/m?", MIXED).await;
    store.take_asked();
    let head = ask(&store, "HEAD", "c/m", &[]).await;
    assert_eq!(
        (head.status, head.header("content-length"), head.body.as_str()),
        (200, "12", "")
    );
    assert_eq!(store.take_asked(), ["HEAD /v1/a/c/m"]);
    // As before clusters stored the tag and length of the whole.
    let kept = store.objects.lock()["/v1/a/c/m"].bytes.clone();
    let json = String::from_utf8(kept.to_vec()).unwrap();
    store.put_with("c/old", &json, &[("x-static-large-object", "True")]);
    let head = ask(&store, "HEAD", "c/old", &[]).await;
    assert_eq!(head.header("etag"), "\"936fa5859bd447386d1c599c71345eaf\"");
    assert_eq!(store.take_asked(), ["HEAD /v1/a/c/old", "GET /v1/a/c/old"]);
    let tag = ("if-none-match", "936fa5859bd447386d1c599c71345eaf");
    assert_eq!(ask(&store, "HEAD", "c/old", &[tag]).await.status, 304);
    assert_eq!(ask(&store, "GET", "c/old", &[("if-match", "x")]).await.status, 412);
    assert_eq!(ask(&store, "GET", "c/old", &[]).await.body, "aaaaabbbbxyz");
}

#[tokio::test]
async fn manifests_within_manifests() {
    let store = store();
    put(&store, "c/s1?", r#"[{"path": "/c/a"}, {"path": "/c/b"}]"#).await;
    let stored = put(
        &store,
        "c/s2?",
        r#"[{"path": "/c/s1", "range": "3-7"}, {"path": "c/s1"}, {"path": "/c/d"}]"#,
    )
    .await;
    assert_eq!(stored.header("etag"), "\"3bcd4b76bbc0ec3c5492676afa94154c\"");
    assert_eq!(ask(&store, "GET", "c/s2", &[]).await.body, "aabbbaaaaabbbbbbbbbbd");
    let some = ask(&store, "GET", "c/s2", &[("range", "bytes=4-6")]).await;
    assert_eq!(some.body, "baa");
    // Only what is wanted is asked for.
    store.take_asked();
    ask(&store, "GET", "c/s2", &[("range", "bytes=20-20")]).await;
    assert_eq!(store.take_asked(), ["GET /v1/a/c/s2 bytes=20-20", "GET /v1/a/c/d"]);
}

#[tokio::test]
async fn what_has_changed_is_never_served() {
    let store = store();
    put(&store, "c/first?", r#"[{"path": "/c/d"}, {"path": "/c/a"}]"#).await;
    put(&store, "c/later?", r#"[{"path": "/c/a"}, {"path": "/c/d"}]"#).await;
    store.put("c/d", "D");
    assert_eq!(ask(&store, "GET", "c/first", &[]).await.status, 409);
    assert_eq!(ask(&store, "HEAD", "c/first", &[]).await.status, 200);
    let broken = ask(&store, "GET", "c/later", &[]).await;
    assert!(broken.body.starts_with("aaaaa then Broken"), "{}", broken.body);
    // A manifest that comes to contain itself is not what its parent stored.
    put(&store, "c/l1?", r#"[{"path": "/c/a"}]"#).await;
    put(&store, "c/l2?", r#"[{"path": "/c/l1"}]"#).await;
    put(&store, "c/l1?", r#"[{"path": "/c/l2"}]"#).await;
    store.take_asked();
    assert_eq!(ask(&store, "GET", "c/l1", &[]).await.status, 409);
    assert!(store.take_asked().len() < 12);
}

#[tokio::test]
async fn deep_manifests_end() {
    let store = store();
    put(&store, "c/m0?", r#"[{"path": "/c/a"}]"#).await;
    for depth in 1..12 {
        put(
            &store,
            &format!("c/m{depth}?"),
            &format!(r#"[{{"path": "/c/m{}"}}]"#, depth - 1),
        )
        .await;
    }
    assert_eq!(ask(&store, "GET", "c/m9", &[]).await.body, "aaaaa");
    assert_eq!(ask(&store, "GET", "c/m10", &[]).await.status, 409);
}

#[tokio::test]
async fn deleted_with_its_segments() {
    let store = store();
    put(&store, "c/s1?", r#"[{"path": "/c/a"}, {"path": "/c/b"}]"#).await;
    put(
        &store,
        "c/s2?",
        r#"[{"path": "/c/s1"}, {"path": "/c/d"}, {"path": "/c/d"}]"#,
    )
    .await;
    let seen = ask(&store, "DELETE", "c/s2?multipart-manifest=delete", &[]).await;
    assert_eq!(seen.header("content-type"), "text/plain");
    assert_eq!(
        seen.body,
        "Number Deleted: 5\nNumber Not Found: 1\nResponse Body: \nResponse Status: 200 OK\nErrors:\n"
    );
    assert!(store.objects.lock().is_empty());
    store.put("c/a", "a");
    let seen = ask(&store, "DELETE", "c/a?multipart-manifest=delete", &[]).await;
    assert!(
        seen.body
            .ends_with("400 Bad Request\nErrors:\n/c/a, Not an SLO manifest\n"),
        "{}",
        seen.body
    );
}

#[tokio::test]
async fn deleted_later_by_the_expirer() {
    let store = store();
    put(&store, "c/m?", r#"[{"path": "/c/a"}, {"path": "/c/b"}]"#).await;
    store.take_asked();
    let seen = ask(&store, "DELETE", "c/m?multipart-manifest=delete&async=on", &[]).await;
    assert_eq!(seen.status, 204);
    let asked = store.take_asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].starts_with("UPDATE /v1/.expiring_objects/"), "{asked:?}");
    assert_eq!(asked[2], "DELETE /v1/a/c/m");
    store.put("s/x", "x");
    put(&store, "c/m?", r#"[{"path": "/c/a"}, {"path": "/s/x"}]"#).await;
    let seen = ask(&store, "DELETE", "c/m?multipart-manifest=delete&async=on", &[]).await;
    assert_eq!(
        seen.body,
        "All segments must be in one container. Found segments in \"c\", \"s\""
    );
}

#[tokio::test]
async fn the_manifest_itself() {
    let store = store();
    put(&store, "c/m?", r#"[{"path": "/c/a"}]"#).await;
    let json = ask(&store, "GET", "c/m?multipart-manifest=get", &[]).await;
    assert_eq!(json.header("content-type"), "application/json; charset=utf-8");
    let raw = ask(&store, "GET", "c/m?multipart-manifest=get&format=raw", &[]).await;
    assert_eq!(
        raw.body,
        r#"[{"etag": "594f803b380a41396ed63dca39503542", "path": "/c/a", "size_bytes": 5}]"#
    );
    assert_eq!(
        raw.header("etag"),
        crate::large_objects::segments::md5_hex(raw.body.as_bytes())
    );
}

#[tokio::test]
async fn what_other_clusters_sync_goes_by_as_it_is() {
    let store = store();
    let mut asked = with_headers(request("PUT", "/v1/a/c/m"), &[("x-static-large-object", "true")]);
    asked.is_synced = true;
    assert_eq!(store.ask(slo(), asked).await.status(), 201);
    assert_eq!(
        store.objects.lock()["/v1/a/c/m"].headers["x-static-large-object"],
        "true"
    );
}
