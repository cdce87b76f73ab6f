//! Listings of containers: the entity tag that a large object has as such.
//!
//! Rows of large objects come from the container server with `hash;…;slo_etag=…`; clients see the two apart.
//! Always holds: a listing without large objects is passed on as it came, unread.

use http::header::{CONTENT_LENGTH, HeaderValue};
use memchr::memmem;
use peer::Body;
use request_pipeline::Response;
use serde_json::Value;

const PARAMETER: &str = "slo_etag";

/// The listing as clients see it.
pub(crate) fn show(response: Response) -> Response {
    let Some(json) = response.body().as_whole() else {
        return response;
    };
    if memmem::find(&json, b"slo_etag=").is_none() {
        return response;
    }
    let Ok(Value::Array(mut rows)) = serde_json::from_slice(&json) else {
        return response;
    };
    for row in &mut rows {
        let Some((hash, etag)) = row.get("hash").and_then(Value::as_str).and_then(split) else {
            continue;
        };
        row["hash"] = hash.into();
        row["slo_etag"] = format!("\"{etag}\"").into();
    }
    let text = pythonic::json(&Value::Array(rows));
    let (mut head, _) = response.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    Response::from_parts(head, Body::whole(text))
}

/// `hash; a=b; slo_etag=x` → `hash; a=b`, `x`.
fn split(hash: &str) -> Option<(String, String)> {
    let mut kept: Vec<&str> = Vec::new();
    let mut found = None;
    for (index, part) in hash.split(';').enumerate() {
        let value = part
            .trim()
            .strip_prefix(PARAMETER)
            .and_then(|rest| rest.trim_start().strip_prefix('='));
        match value.filter(|_| index > 0) {
            Some(value) => found = Some(value.trim().trim_matches('"').to_owned()),
            None => kept.push(part.trim()),
        }
    }
    Some((kept.join("; "), found?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use request_pipeline::reply;

    fn shown(json: &str) -> String {
        let response = show(reply::plain(200, json));
        let body = response.body().as_whole().unwrap();
        assert_eq!(response.headers()["content-length"], body.len().to_string().as_str());
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn rows_of_large_objects_have_two_tags() {
        assert_eq!(
            shown(
                r#"[{"bytes": 1, "hash": "8d; this=that;slo_etag=dc", "name": "ü"}, {"hash": "x"}, {"subdir": "slo_etag="}]"#
            ),
            r#"[{"bytes": 1, "hash": "8d; this=that", "name": "\u00fc", "slo_etag": "\"dc\""}, {"hash": "x"}, {"subdir": "slo_etag="}]"#
        );
        for same in ["[]", "not json slo_etag=", r#"{"slo_etag=": 1}"#] {
            assert_eq!(shown(same), same);
        }
    }
}
