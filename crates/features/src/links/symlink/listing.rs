//! What a container's listing says of the links in it: `symlink_path`, and of static ones `symlink_etag` and
//! `symlink_bytes`.
//!
//! Stored behind the entity tag of the row (`link.rs`); only JSON shows it, other forms leave it out.
//! Always holds: a listing without links passes as it is, unread.

use super::link::Link;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use peer::Body;
use request_pipeline::{ClientRequest, Next, Response};
use serde_json::{Map, Value};

/// Ten thousand rows of the longest names.
const MAX_LISTING: u64 = 256 << 20;
const MARK: &[u8] = b"symlink_target=";

/// Answers the GET of a container.
pub(super) async fn get(request: ClientRequest, next: Next) -> Response {
    let version = request.api_version.clone();
    let account = request.entity.as_ref().map(|entity| entity.account.clone());
    let response = next.run(request).await;
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !response.status().is_success() || !is_json {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(json) = body.collect(MAX_LISTING).await else {
        return request_pipeline::reply::status(503);
    };
    let shown = shown(&json, &version, account.as_deref().unwrap_or_default());
    let body = shown.map_or(json, Into::into);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response::from_parts(head, Body::whole(body))
}

/// The listing as clients see it; `None` when it is so already.
fn shown(json: &[u8], version: &str, account: &str) -> Option<String> {
    if !json.windows(MARK.len()).any(|bytes| bytes == MARK) {
        return None;
    }
    let mut rows: Vec<Value> = serde_json::from_slice(json).ok()?;
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        show(row, version, account);
    }
    Some(pythonic::json(&Value::Array(rows)))
}

fn show(row: &mut Map<String, Value>, version: &str, account: &str) {
    let listed = row.get("hash").and_then(Value::as_str).and_then(Link::listed_in);
    let Some((link, hash)) = listed else { return };
    row.insert("hash".into(), hash.into());
    if let Some(etag) = &link.etag {
        row.insert("symlink_etag".into(), etag.as_str().into());
    }
    if let Some(bytes) = link.bytes.as_ref().and_then(|bytes| bytes.parse::<u64>().ok()) {
        row.insert("symlink_bytes".into(), bytes.into());
    }
    row.insert("symlink_path".into(), link.location(version, account).into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_of_links_say_where_they_lead() {
        let json = br#"[{"name": "a", "hash": "x"}, {"subdir": "b/"},
            {"name": "l", "hash": "x; symlink_target=c/o"},
            {"name": "s", "hash": "x; slo_etag=y; symlink_target=c/o; symlink_target_account=b; symlink_target_etag=z; symlink_target_bytes=3"}]"#;
        assert_eq!(
            shown(json, "v1", "a").unwrap(),
            "[{\"name\": \"a\", \"hash\": \"x\"}, {\"subdir\": \"b/\"}, \
             {\"name\": \"l\", \"hash\": \"x\", \"symlink_path\": \"/v1/a/c/o\"}, \
             {\"name\": \"s\", \"hash\": \"x; slo_etag=y\", \"symlink_etag\": \"z\", \"symlink_bytes\": 3, \
             \"symlink_path\": \"/v1/b/c/o\"}]"
        );
        assert_eq!(shown(b"[{\"name\": \"a\", \"hash\": \"x\"}]", "v1", "a"), None);
    }

    proptest! {
        #[test]
        fn any_hash_is_read(hash in "\\PC*") {
            let row = serde_json::json!([{"name": "a", "hash": format!("{hash}; symlink_target={hash}")}]);
            shown(row.to_string().as_bytes(), "v1", "a");
        }
    }
}
