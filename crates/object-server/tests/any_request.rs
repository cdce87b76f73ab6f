//! Whatever a request says, the answer is one, it is no internal error, and the object that was there
//! before is whole.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

mod support;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use object_server::ObjectServer;
use peer::{Address, Body, RawCall, Service};
use proptest::prelude::*;
use support::ours::{MemoryDevices, options};
use world::World;

const NAMES: [&str; 30] = [
    "x-timestamp",
    "content-type",
    "content-length",
    "transfer-encoding",
    "etag",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "range",
    "expect",
    "x-delete-at",
    "x-delete-after",
    "x-if-delete-at",
    "x-object-meta-a",
    "x-object-sysmeta-a",
    "x-static-large-object",
    "x-backend-storage-policy-index",
    "x-backend-replication",
    "x-backend-replication-headers",
    "x-backend-open-expired",
    "x-backend-etag-is-at",
    "x-backend-obj-metadata-footer",
    "x-backend-obj-multipart-mime-boundary",
    "x-backend-obj-content-length",
    "x-container-host",
    "x-container-device",
    "x-container-partition",
    "x-delete-at-host",
    "x-delete-at-container",
    "x-backend-quoted-container-path",
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,12}(\\.[0-9]{1,6})?(_[0-9a-f]{1,16})?",
        "bytes=[0-9,-]{0,12}",
        "(yes|true|chunked|100-continue|\\*|a/b|bnd|127\\.0\\.0\\.1:1|,|%00|%ff|-5|)",
        "[ -~]{0,20}",
        "\\PC{0,8}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        "/sda/1/a/c/o",
        "/sda/1/a/c/[a-z%0f/]{0,8}",
        "/(sda|sdb)/[0-9]{1,9}/[a-z.%/]{0,12}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn gets_an_answer(
        verb in "(GET|HEAD|PUT|POST|DELETE|OPTIONS|REPLICATE|BREW)",
        path in path(),
        headers in prop::collection::vec((prop::sample::select(NAMES.to_vec()), value()), 0..12),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = ObjectServer::new(World::real(), options(), MemoryDevices::with(&["sda"])).unwrap();
            let call = |method: &str, path: &str, headers: HeaderMap, body: Body| {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let address = Address::parse(&method, path).ok()?;
                Some(RawCall { method, address, query: String::new(), headers, body, interim: None })
            };
            let before = [("x-timestamp", "1"), ("content-type", "t/t")];
            let before = before.map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)));
            let first = call("PUT", "/sda/1/a/c/kept", before.into_iter().collect(), Body::whole("kept")).unwrap();
            assert_eq!(server.call(first.into()).await.status().as_u16(), 201);
            let headers = headers.into_iter().filter_map(|(name, value)| {
                Some((HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).ok()?))
            });
            if let Some(call) = call(&verb, &path, headers.collect(), Body::whole(body)) {
                let answer = server.call(call.into()).await;
                assert_ne!(answer.status().as_u16(), 500);
                // A body may break, but it ends.
                let _ = answer.into_body().collect(1 << 20).await;
            }
            let kept = call("GET", "/sda/1/a/c/kept", HeaderMap::new(), Body::empty()).unwrap();
            assert_eq!(server.call(kept.into()).await.into_body().collect(100).await.unwrap(), "kept");
        });
    }
}
