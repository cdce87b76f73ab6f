//! Conditions and ranges of a read, decided where the object that clients see is made: by features whose
//! answer has another entity tag and length than what storage holds.
//!
//! Comes in: an answer with `ETag`, `Last-Modified` and `Content-Length` as the client is to see them.
//! Goes out: that answer, or 304, 412 or 416.
//! Always holds: a condition that failed has no body and keeps the headers that describe the object.

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use peer::Body;
use request_pipeline::{ClientRequest, Response, reply};
use vocabulary::conditional::{Conditions, Outcome};
use vocabulary::{ByteRange, RangeSet, Timestamp, calendar};

/// What a client's conditions say of an object with these headers, under any of these entity tags.
pub fn decide(request: &ClientRequest, headers: &HeaderMap, etag: &str) -> Outcome {
    let conditions = Conditions::new(
        request.header("if-match"),
        request.header("if-none-match"),
        request.header("if-modified-since"),
        request.header("if-unmodified-since"),
    );
    if conditions.is_empty() {
        return Outcome::Proceed;
    }
    let modified = headers.get("last-modified").and_then(|date| date.to_str().ok());
    let modified = modified.and_then(calendar::parse_http).unwrap_or_default();
    conditions.check_read(&[etag], Timestamp::from_seconds(modified))
}

/// 304 or 412 with the headers of the object.
pub fn failed(outcome: Outcome, headers: HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = match outcome {
        Outcome::NotModified => StatusCode::NOT_MODIFIED,
        _ => StatusCode::PRECONDITION_FAILED,
    };
    *response.headers_mut() = headers;
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// What of an object of `length` bytes a GET asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedRanges {
    /// All of it.
    Whole,
    /// One or several runs of bytes, none of them empty.
    Ranges(Vec<ByteRange>),
    /// Nothing that there is: 416.
    Nothing,
}

/// Reads the `Range` header of a GET; HEAD has none.
pub fn wanted(request: &ClientRequest, length: u64) -> WantedRanges {
    if request.method != Method::GET {
        return WantedRanges::Whole;
    }
    let Some(ranges) = request.header("range").and_then(RangeSet::parse) else {
        return WantedRanges::Whole;
    };
    let ranges = ranges.resolve(length);
    if ranges.is_empty() {
        return WantedRanges::Nothing;
    }
    match ranges.iter().any(ByteRange::is_empty) {
        // The last bytes of an empty object: that is all of it.
        true => WantedRanges::Whole,
        false => WantedRanges::Ranges(ranges),
    }
}

/// 416 with the headers of the object of `length` bytes.
pub fn unsatisfiable(mut headers: HeaderMap, length: u64) -> Response {
    let (mut head, body) = reply::status(416).into_parts();
    let kind = headers.get(CONTENT_TYPE).cloned();
    set_range(&mut headers, &format!("bytes */{length}"));
    for name in [CONTENT_LENGTH, CONTENT_TYPE] {
        if let Some(value) = head.headers.remove(&name) {
            headers.insert(name, value);
        }
    }
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    head.headers = headers;
    Response::from_parts(head, body)
}

/// Sets `Content-Range`.
pub fn set_range(headers: &mut HeaderMap, text: &str) {
    // Digits and a slash are always a header value.
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(CONTENT_RANGE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{request, with_headers};

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            "last-modified",
            HeaderValue::from_static("Tue, 14 Nov 2023 22:13:20 GMT"),
        );
        headers.insert("content-type", HeaderValue::from_static("t/x"));
        headers
    }

    fn ask(name: &'static str, value: &str) -> ClientRequest {
        with_headers(request("GET", "/v1/a/c/o"), &[(name, value)])
    }

    #[test]
    fn conditions_are_about_what_clients_see() {
        for (name, value, expected) in [
            ("if-match", "\"x\"", Outcome::Proceed),
            ("if-match", "y", Outcome::PreconditionFailed),
            ("if-none-match", "x", Outcome::NotModified),
            (
                "if-modified-since",
                "Tue, 14 Nov 2023 22:13:20 GMT",
                Outcome::NotModified,
            ),
            (
                "if-unmodified-since",
                "Tue, 14 Nov 2023 22:13:19 GMT",
                Outcome::PreconditionFailed,
            ),
            ("accept", "x", Outcome::Proceed),
        ] {
            assert_eq!(decide(&ask(name, value), &headers(), "x"), expected, "{name}: {value}");
        }
        let refused = failed(Outcome::PreconditionFailed, headers());
        assert_eq!(refused.status(), 412);
        assert_eq!(refused.headers()["content-type"], "t/x");
        assert_eq!(refused.headers()["content-length"], "0");
    }

    #[test]
    fn ranges() {
        let range = |start, end| WantedRanges::Ranges(vec![ByteRange { start, end }]);
        for (value, length, expected) in [
            ("bytes=0-1", 9, range(0, 2)),
            ("bytes=100-", 9, WantedRanges::Nothing),
            ("rubbish", 9, WantedRanges::Whole),
            ("bytes=-1", 0, WantedRanges::Whole),
            ("bytes=0-", 0, WantedRanges::Nothing),
        ] {
            assert_eq!(wanted(&ask("range", value), length), expected, "{value}");
        }
        let refused = unsatisfiable(headers(), 9);
        assert_eq!(refused.headers()["content-range"], "bytes */9");
        assert_eq!(refused.headers()["content-type"], "t/x");
        assert_eq!(refused.headers()["content-length"], "97");
    }
}
