//! A GET of several ranges: one backend GET per range, so that each can fail over by itself.
//!
//! A HEAD answers the conditions and gives the length; the parts are then written as
//! `multipart/byteranges` (RFC 9110 §14.6) with Swift's layout of boundaries.
//! Always holds: all parts come from the same write (`If-Match` on its entity tag), or the download
//! breaks off; the declared length is exact.

use crate::backend::{header, text};
use crate::content_type;
use crate::resume::{self, Reading};
use crate::route::Route;
use crate::shared::Shared;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use peer::message::ReadObject;
use peer::{Body, BodyError};
use request_pipeline::{ClientRequest, Response};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::{ByteRange, RangeSet};

/// Whether there is a `Range` header with several ranges in it.
pub(crate) fn asks_for_several(headers: &HeaderMap) -> bool {
    header(headers, "range").is_some_and(|range| range.contains(','))
}

/// Answers such a GET.
pub(crate) async fn get(shared: &Arc<Shared>, request: &ClientRequest, route: Route, reading: Reading) -> Response {
    let newest = request.is_true("x-newest");
    let ranges = header(&reading.read.headers, "range").and_then(RangeSet::parse);
    let Some(ranges) = ranges else {
        return resume::get(shared, route, reading.of_range(None), newest).await;
    };
    let mut head = reading.clone().of_range(None);
    head.read.head_only = true;
    let response = resume::get(shared, route.clone(), head, newest).await;
    if response.status() != StatusCode::OK {
        // Asked again, since a refusal of a GET has words in it.
        return resume::get(shared, route, reading.of_range(None), newest).await;
    }
    if ignores_ranges(&reading.read, response.headers()) {
        return resume::get(shared, route, reading.of_range(None), newest).await;
    }
    let length = header(response.headers(), "content-length")
        .and_then(|l| l.parse().ok())
        .unwrap_or(0);
    let wanted = ranges.resolve(length);
    match wanted[..] {
        // Refusing them is the object server's to word.
        [] => resume::get(shared, route, reading, newest).await,
        // The last bytes of an empty object: that is all of it.
        _ if wanted.iter().any(ByteRange::is_empty) => resume::get(shared, route, reading.of_range(None), newest).await,
        [only] => resume::get(shared, route, with_range(reading, &only), newest).await,
        _ => several(shared, route, reading, response, length, wanted),
    }
}

/// A feature wants objects with certain metadata whole, whatever range the client asked for.
fn ignores_ranges(asked: &ReadObject, found: &HeaderMap) -> bool {
    let names = asked.ignores_range_if.as_ref().and_then(|names| names.to_str().ok());
    let names = names.unwrap_or_default();
    names.split(',').any(|name| found.contains_key(name.trim()))
}

fn with_range(reading: Reading, range: &ByteRange) -> Reading {
    reading.of_range(Some(&format!("bytes={}-{}", range.start, range.end.saturating_sub(1))))
}

struct Parts {
    shared: Arc<Shared>,
    route: Route,
    reading: Reading,
    total: u64,
    content_type: Bytes,
    boundary: String,
    left: VecDeque<ByteRange>,
    current: Option<Body>,
    ended: bool,
}

fn several(
    shared: &Arc<Shared>,
    route: Route,
    mut reading: Reading,
    head: Response,
    total: u64,
    ranges: Vec<ByteRange>,
) -> Response {
    let (mut head, _) = head.into_parts();
    content_type::show(&mut head.headers);
    // They have held; what the parts are held to is the entity tag that is stored.
    reading.read.etag_is_at = None;
    let headers = Arc::make_mut(&mut reading.read.headers);
    for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_MATCH] {
        headers.remove(condition);
    }
    if let Some(etag) = head.headers.get("etag") {
        headers.insert(IF_MATCH, etag.clone());
    }
    let boundary = format!(
        "{:016x}{:016x}",
        shared.world.random.next_u64(),
        shared.world.random.next_u64()
    );
    let content_type = Bytes::copy_from_slice(head.headers.get("content-type").map_or(b"", HeaderValue::as_bytes));
    let parts = Parts {
        shared: shared.clone(),
        route,
        reading,
        total,
        content_type,
        boundary,
        left: ranges.into(),
        current: None,
        ended: false,
    };
    let length: u64 = parts
        .left
        .iter()
        .map(|range| parts.part_head(range).len() as u64 + range.len() + 2)
        .sum();
    let length = length + parts.end().len() as u64;
    head.status = StatusCode::PARTIAL_CONTENT;
    head.headers.insert(
        "content-type",
        text(&format!("multipart/byteranges;boundary={}", parts.boundary)),
    );
    head.headers.insert("content-length", HeaderValue::from(length));
    let chunks = futures_util::stream::unfold(parts, |mut parts| async move {
        let chunk = parts.next().await?;
        Some((chunk, parts))
    });
    Response::from_parts(head, Body::stream(chunks, Some(length)))
}

impl Parts {
    fn part_head(&self, range: &ByteRange) -> Bytes {
        let mut part = format!("--{}\r\nContent-Type: ", self.boundary).into_bytes();
        part.extend_from_slice(&self.content_type);
        part.extend_from_slice(format!("\r\nContent-Range: {}\r\n\r\n", range.content_range(self.total)).as_bytes());
        part.into()
    }

    fn end(&self) -> Bytes {
        format!("--{}--", self.boundary).into()
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if let Some(body) = &mut self.current {
            if let Some(chunk) = body.next().await {
                self.ended = chunk.is_err();
                if chunk.is_err() {
                    self.left.clear();
                    self.current = None;
                }
                return Some(chunk);
            }
            self.current = None;
            return Some(Ok(Bytes::from_static(b"\r\n")));
        }
        if self.ended {
            return None;
        }
        let Some(range) = self.left.pop_front() else {
            self.ended = true;
            return Some(Ok(self.end()));
        };
        let reading = with_range(self.reading.clone(), &range);
        let part = resume::get(&self.shared, self.route.clone(), reading, false).await;
        // A range that covers everything may be answered as a whole.
        if !part.status().is_success() || part.body().length().is_some_and(|length| length != range.len()) {
            self.ended = true;
            return Some(Err(BodyError::Broken(format!("a part was answered {}", part.status()))));
        }
        let head = self.part_head(&range);
        self.current = Some(part.into_body());
        Some(Ok(head))
    }
}
