use super::*;
use crate::testing::{request, with_headers};
use crate::testing_store::{Store, read_text};

fn store() -> Store {
    let store = Store::default();
    for (name, bytes) in [
        ("s/1", "aaaaa"),
        ("s/2", "bbbbb"),
        ("s/3", "ccccc"),
        ("s/4", "ddddd"),
        ("t/ü1", "u"),
    ] {
        store.put(&format!("s/{name}"), bytes);
    }
    store.put_with("c/d", "content", &[("x-object-manifest", "s/s/")]);
    store.put_with("c/two", "", &[("x-object-manifest", "s/t%2F%C3%BC")]);
    store
}

/// Pages of the store have three rows.
fn dlo(page: usize) -> DynamicLargeObjects {
    DynamicLargeObjects::new(DloSettings::default(), World::real(), page)
}

async fn get(store: &Store, name: &str, headers: &[(&'static str, &str)]) -> (u16, String, String) {
    let asked = with_headers(request("GET", &format!("/v1/a/{name}")), headers);
    let response = store.ask(dlo(3), asked).await;
    let header = |name: &str| text(response.headers(), name).unwrap_or("-").to_owned();
    let shown = format!("{} {}", header("content-length"), header("content-range"));
    let status = response.status().as_u16();
    (
        status,
        shown,
        read_text(response).await.unwrap_or_else(|broken| broken.what),
    )
}

#[tokio::test]
async fn page_after_page() {
    let store = store();
    let (status, shown, body) = get(&store, "c/d", &[]).await;
    assert_eq!(
        (status, shown.as_str(), body.as_str()),
        (200, "- -", "aaaaabbbbbcccccddddd")
    );
    let asked = store.take_asked();
    assert_eq!(
        asked.iter().filter(|line| line.ends_with("/v1/a/s")).count(),
        2,
        "{asked:?}"
    );
    let (status, shown, body) = get(&store, "c/two", &[]).await;
    assert_eq!((status, shown.as_str(), body.as_str()), (200, "1 -", "u"));
}

#[tokio::test]
async fn ranges_that_one_page_can_judge() {
    let store = store();
    for (range, expected) in [
        ("bytes=3-12", (206, "10 bytes 3-12/15", "aabbbbbccc")),
        ("bytes=10-16", (200, "- -", "aaaaabbbbbcccccddddd")),
        ("bytes=-5", (200, "- -", "aaaaabbbbbcccccddddd")),
        ("bytes=0-0,2-2", (200, "- -", "aaaaabbbbbcccccddddd")),
    ] {
        let (status, shown, body) = get(&store, "c/d", &[("range", range)]).await;
        assert_eq!((status, shown.as_str(), body.as_str()), expected, "{range}");
    }
    for (range, expected) in [
        ("bytes=0-0", (206, "1 bytes 0-0/1", "u")),
        ("bytes=1-", (416, "97 bytes */1", "")),
    ] {
        let (status, shown, body) = get(&store, "c/two", &[("range", range)]).await;
        assert_eq!((status, shown.as_str()), (expected.0, expected.1), "{range}");
        assert!(body.starts_with(expected.2) || status == 416);
    }
}

#[tokio::test]
async fn conditions_are_about_the_whole() {
    let store = store();
    // MD5 of the MD5 of "u".
    let etag = crate::large_objects::segments::md5_hex(crate::large_objects::segments::md5_hex(b"u").as_bytes());
    assert_eq!(get(&store, "c/two", &[("if-none-match", &etag)]).await.0, 304);
    assert_eq!(get(&store, "c/two", &[("if-match", &etag)]).await.0, 200);
    assert_eq!(get(&store, "c/two", &[("if-match", "x")]).await.0, 412);
    let head = store.ask(dlo(3), request("HEAD", "/v1/a/c/two")).await;
    assert_eq!(head.headers()["etag"], format!("\"{etag}\"").as_str());
}

#[tokio::test]
async fn the_manifest_itself_and_other_objects() {
    let store = store();
    assert_eq!(get(&store, "c/d?multipart-manifest=get", &[]).await.2, "content");
    assert_eq!(get(&store, "s/s/1", &[]).await.2, "aaaaa");
    store.instead.lock().insert("/v1/a/s".into(), 403);
    assert_eq!(get(&store, "c/d", &[]).await.0, 403);
}

#[tokio::test]
async fn a_segment_that_has_changed_size_breaks_the_body() {
    let store = Store::default();
    store.put("s/1", "aaaaa");
    store.put("s/2", "bbbbb");
    store.put_with("c/d", "", &[("x-object-manifest", "s/")]);
    // Not a manifest: no prefix. It is shown as it is.
    assert_eq!(get(&store, "c/d", &[]).await.0, 200);
    store.put_with("c/d", "", &[("x-object-manifest", "s/2")]);
    store.put_with("s/2", "bbbbb", &[("etag", "0cc175b9c0f1b6a831c399e269772661")]);
    assert_eq!(get(&store, "c/d", &[]).await.2, "bbbbb then Corrupt");
}

#[tokio::test]
async fn only_a_container_and_a_prefix_will_do() {
    for (value, fine) in [
        ("c/o", true),
        ("c/obj/with//slashes/", true),
        ("c/%3f", true),
        ("c/ü", true),
        ("", false),
        ("/leading/slash", false),
        ("double//slash", false),
        ("container-only", false),
        ("whole-container/", false),
        ("c/o?short=querystring", false),
        ("c/o&x", false),
        ("c%2Fo", false),
    ] {
        let asked = with_headers(request("PUT", "/v1/a/c/m"), &[("x-object-manifest", value)]);
        let status = Store::default().ask(dlo(3), asked).await.status();
        assert_eq!(status == 201, fine, "{value}: {status}");
    }
}

proptest::proptest! {
    #[test]
    fn any_value_is_read_or_refused(value in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.insert(OBJECT_MANIFEST, value);
            let _ = Place::of(&headers);
        }
    }
}
