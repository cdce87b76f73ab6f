//! What a client must say of a body, with Swift's texts, and how long its head may be. Limits on metadata:
//! `request_pipeline::constraints`.
//!
//! Always holds: what is refused here has been written nowhere.

use crate::backend::header;
use http::Method;
use peer::LONGEST_HEAD;
pub(crate) use request_pipeline::constraints::check_metadata;
use request_pipeline::{ClientRequest, Response, reply};

/// Bytes that may come to what a client sent: names of devices, other servers, times.
const MOST_ADDED: usize = 4096;

/// Refuses a write whose head may be too long for one storage server, though not for another: 431. It would be carried
/// out in part.
pub(crate) fn check_head(request: &ClientRequest) -> Result<(), Response> {
    if matches!(request.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let lengths = request
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    let length = lengths.sum::<usize>() + request.query.len();
    if length < LONGEST_HEAD / 2 {
        return Ok(());
    }
    // A write lock names the path a second time.
    let path = request.entity.as_ref().map_or(0, |entity| 2 * entity.quoted().len());
    match length + path + MOST_ADDED > LONGEST_HEAD {
        true => Err(reply::status_for(&request.method, 431)),
        false => Ok(()),
    }
}

/// The length a client declared: `Ok(None)` for a chunked body, `Err` when it declared none.
pub(crate) fn declared_length(request: &ClientRequest) -> Result<Option<u64>, Response> {
    if let Some(length) = header(&request.headers, "content-length") {
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        return match digits {
            true => Ok(Some(length.parse().unwrap_or(u64::MAX))),
            false => Err(reply::plain(400, "Invalid Content-Length header value")),
        };
    }
    match header(&request.headers, "transfer-encoding") {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => Ok(None),
        Some(codings) if codings.contains(',') => Err(reply::plain(
            501,
            "Unsupported Transfer-Coding header value specified in Transfer-Encoding header",
        )),
        Some(_) => Err(reply::plain(400, "Invalid Transfer-Encoding header value")),
        None => Err(reply::plain(411, "Missing Content-Length header.")),
    }
}
