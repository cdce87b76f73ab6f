//! Dynamic large objects: an object that stands for all whose names begin alike.
//!
//! `X-Object-Manifest: container/prefix` on an object makes GET and HEAD show the objects of that container whose
//! names begin with that prefix, in the order of their names. Source: OpenStack Swift's
//! `overview_large_objects.rst`, and what it answered.
//! Always holds: length and entity tag are sent only when one page of the listing holds all segments; a
//! GET without a length goes on page by page. HEAD asks for one page and no segment; of several ranges none is
//! served, the whole is. A request that is not about one costs a look at its method and a header.

use crate::large_objects::conditional_reply::{decide, failed, set_range};
use crate::large_objects::segments::{
    Asking, Joined, ObjectPiece, Pace, Piece, Pieces, SegmentFailure, header_text, text,
};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, RANGE};
use http::{Method, StatusCode};
use md5::{Digest, Md5};
use peer::Body;
use peer::message::header_names::X_IGNORE_RANGE_IF;
use request_pipeline::{ClientRequest, Feature, Next, Response, reply};
use serde::Deserialize;
use settings::DloSettings;
use std::collections::VecDeque;
use vocabulary::conditional::{Outcome, bare_etag};
use vocabulary::names::{quote, unquote};
use vocabulary::{ByteRange, EntityPath, RangeSet};
use world::World;

/// Marks a manifest, and says where the segments are.
pub const OBJECT_MANIFEST: HeaderName = HeaderName::from_static("x-object-manifest");
/// In the access log.
const SOURCE: &str = "DLO";
/// Rows of a listing that are asked for, and the bytes they may have.
const MAX_PAGE: u64 = 64 * 1024 * 1024;

/// Swift's `dlo`.
pub struct DynamicLargeObjects {
    settings: DloSettings,
    world: World,
    /// Segments in a page: what a container server lists at most.
    page: usize,
}

impl DynamicLargeObjects {
    /// As configured, where listings have at most `page` rows.
    pub fn new(settings: DloSettings, world: World, page: usize) -> Self {
        Self { settings, world, page }
    }
}

#[async_trait::async_trait]
impl Feature for DynamicLargeObjects {
    fn name(&self) -> &'static str {
        "dlo"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.reads_object() || request.headers.contains_key(&OBJECT_MANIFEST)
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let is_object = request.entity.as_ref().is_some_and(|entity| entity.object.is_some());
        match request.method {
            Method::GET | Method::HEAD if is_object && !asks_for_manifest(&request) => self.read(request, next).await,
            Method::PUT if is_object => match check(&mut request) {
                Ok(()) => next.run(request).await,
                Err(refusal) => refusal,
            },
            _ => next.run(request).await,
        }
    }
}

fn asks_for_manifest(request: &ClientRequest) -> bool {
    !request.query.is_empty() && matches!(request.param("multipart-manifest"), Some(Ok(value)) if value == "get")
}

/// Refuses what names no container and prefix.
fn check(request: &mut ClientRequest) -> Result<(), Response> {
    let Some(value) = request.headers.get(&OBJECT_MANIFEST) else {
        return Ok(());
    };
    let text = unquote(&String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    let sent = String::from_utf8_lossy(value.as_bytes());
    let (container, prefix) = sent.split_once('/').unwrap_or_default();
    let bad = container.is_empty() || prefix.is_empty() || sent.contains(['?', '&']) || prefix.starts_with('/');
    match bad || text.is_empty() {
        true => Err(reply::html(
            400,
            "X-Object-Manifest must be in the format container/prefix".into(),
        )),
        false => Ok(()),
    }
}

/// A range is of the whole, not of what the manifest happens to hold.
fn ignore_range(headers: &mut HeaderMap) {
    let names = match text(headers, X_IGNORE_RANGE_IF.as_str()) {
        Some(others) => header_text(&format!("{others},X-Object-Manifest")),
        None => HeaderValue::from_static("X-Object-Manifest"),
    };
    headers.insert(X_IGNORE_RANGE_IF, names);
}

/// Where the segments are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    container: String,
    prefix: String,
}

impl Place {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(&OBJECT_MANIFEST)?;
        let text = unquote(std::str::from_utf8(value.as_bytes()).ok()?).ok()?;
        let (container, prefix) = text.split_once('/')?;
        (!container.is_empty()).then(|| Self {
            container: container.into(),
            prefix: prefix.into(),
        })
    }
}

impl DynamicLargeObjects {
    async fn read(&self, mut request: ClientRequest, next: Next) -> Response {
        let about = request.without_body();
        if request.headers.contains_key(RANGE) {
            ignore_range(&mut request.headers);
        }
        let response = next.clone().run(request).await;
        if !response.headers().contains_key(&OBJECT_MANIFEST)
            || !matches!(response.status().as_u16(), 200 | 206 | 304 | 412 | 416)
        {
            return response;
        }
        match Place::of(response.headers()) {
            Some(place) => Box::pin(self.show(about, next, response, place)).await,
            None => response,
        }
    }

    async fn show(&self, request: ClientRequest, next: Next, response: Response, place: Place) -> Response {
        let clock = self.world.clock.clone();
        let asking = Asking::new(&request, next, SOURCE, clock, self.settings.max_get_time);
        let rows = match list(&asking, &place, "").await {
            Ok(rows) => rows,
            Err(refusal) => return refusal,
        };
        let is_all = rows.len() < self.page;
        let known: u64 = rows.iter().map(|row| row.bytes).sum();
        let wanted = match wanted(&request, known, is_all) {
            Ok(wanted) => wanted,
            Err(refusal) => return refusal,
        };
        let mut headers = response.into_parts().0.headers;
        let judged_as = describe(&mut headers, &rows, is_all, known);
        let outcome = decide(&request, &headers, &judged_as);
        if outcome != Outcome::Proceed {
            return failed(outcome, headers);
        }
        let mut length = is_all.then_some(known);
        let mut status = StatusCode::OK;
        if let Some(range) = wanted.filter(|_| request.method == Method::GET) {
            set_range(&mut headers, &range.content_range(known));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(range.len()));
            (status, length) = (StatusCode::PARTIAL_CONTENT, Some(range.len()));
        }
        let body = match request.method == Method::HEAD {
            true => Body::empty(),
            false => {
                let run = Run::new(self, place, rows, is_all, wanted);
                match Joined::start(asking, Box::new(run), length).await {
                    Ok(joined) => joined.into_body(),
                    Err(failure) => return failure.response(&request.method),
                }
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// Turns a manifest's headers into those of the whole; answers with the entity tag that conditions are about.
fn describe(headers: &mut HeaderMap, rows: &[Row], is_all: bool, length: u64) -> String {
    headers.remove(CONTENT_RANGE);
    headers.remove(CONTENT_LENGTH);
    if !is_all {
        return bare_etag(text(headers, ETAG.as_str()).unwrap_or_default()).to_owned();
    }
    let mut md5 = Md5::new();
    for row in rows {
        md5.update(bare_etag(&row.hash));
    }
    let etag = vocabulary::hex::encode(md5.finalize());
    headers.insert(ETAG, header_text(&format!("\"{etag}\"")));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    etag
}

/// The one range that a request asks for and that can be served; several are none, and so is one of
/// which the first page does not tell whether it lies inside the whole.
fn wanted(request: &ClientRequest, known: u64, is_all: bool) -> Result<Option<ByteRange>, Response> {
    let Some(header) = request.header("range").filter(|header| !header.contains(',')) else {
        return Ok(None);
    };
    let Some(ranges) = RangeSet::parse(header) else {
        return Ok(None);
    };
    let endless = ranges.resolve(u64::MAX).first().copied();
    let ends_inside = endless.is_some_and(|range| range.end < known);
    if !is_all && !ends_inside {
        return Ok(None);
    }
    match ranges.resolve(known).first() {
        Some(range) if range.is_empty() => Ok(None),
        Some(range) => Ok(Some(*range)),
        None => {
            let mut refusal = reply::status_for(&request.method, 416);
            let headers = refusal.headers_mut();
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            set_range(headers, &format!("bytes */{known}"));
            Err(refusal)
        }
    }
}

/// A row of a listing. Directories have none of it and are no segments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Row {
    name: String,
    bytes: u64,
    #[serde(default)]
    hash: String,
}

/// A page of segments; `Err` is the answer of who would not list them.
async fn list(asking: &Asking, place: &Place, marker: &str) -> Result<Vec<Row>, Response> {
    let path = EntityPath::account(asking.account()).with_container(&place.container);
    let mut request = asking.request(path);
    request.query = format!("format=json&prefix={}", quote(&place.prefix));
    if !marker.is_empty() {
        request.query = format!("{}&marker={}", request.query, quote(marker));
    }
    let response = asking.send(request).await;
    if !response.status().is_success() {
        return Err(response);
    }
    if response.status() == StatusCode::NO_CONTENT {
        return Ok(Vec::new());
    }
    let page = response.into_body().collect(MAX_PAGE).await;
    let rows = page.ok().and_then(|json| serde_json::from_slice(&json).ok());
    rows.ok_or_else(|| reply::status(503))
}

/// Segments in order, page after page.
struct Run {
    place: Place,
    rows: VecDeque<Row>,
    is_last_page: bool,
    page: usize,
    marker: String,
    /// Bytes to leave out, then bytes to send; all when absent.
    span: Option<(u64, u64)>,
    pace: Pace,
}

impl Run {
    fn new(feature: &DynamicLargeObjects, place: Place, rows: Vec<Row>, is_all: bool, span: Option<ByteRange>) -> Self {
        let settings = &feature.settings;
        Self {
            place,
            marker: rows.last().map(|row| row.name.clone()).unwrap_or_default(),
            rows: rows.into(),
            is_last_page: is_all,
            page: feature.page,
            span: span.map(|range| (range.start, range.len())),
            pace: Pace::new(settings.rate_limit_after_segment, settings.rate_limit_segments_per_sec),
        }
    }

    async fn row(&mut self, asking: &Asking) -> Result<Option<Row>, SegmentFailure> {
        if let Some(row) = self.rows.pop_front() {
            return Ok(Some(row));
        }
        if self.is_last_page {
            return Ok(None);
        }
        let rows = list(asking, &self.place, &self.marker).await.map_err(|response| {
            let container = &self.place.container;
            SegmentFailure::Conflict(format!("{container} could not be listed: {}", response.status()))
        })?;
        self.is_last_page = rows.len() < self.page;
        self.marker = rows.last().map(|row| row.name.clone()).unwrap_or_default();
        self.rows = rows.into();
        Ok(self.rows.pop_front())
    }

    /// Which of a segment's bytes are wanted: none, all, or a range.
    fn cut(&mut self, length: u64) -> Option<Option<ByteRange>> {
        let Some((skip, left)) = &mut self.span else {
            return Some(None);
        };
        if *skip >= length {
            *skip -= length;
            return None;
        }
        let start = std::mem::take(skip);
        let end = length.min(start.saturating_add(*left));
        *left -= end - start;
        let is_whole = start == 0 && end == length;
        Some((!is_whole).then_some(ByteRange { start, end }))
    }
}

#[async_trait::async_trait]
impl Pieces for Run {
    async fn next(&mut self, asking: &Asking) -> Result<Option<Piece>, SegmentFailure> {
        loop {
            if self.span.is_some_and(|(_, left)| left == 0) {
                return Ok(None);
            }
            let Some(row) = self.row(asking).await? else {
                return Ok(None);
            };
            let Some(range) = self.cut(row.bytes) else {
                continue;
            };
            self.pace.wait(asking.clock()).await;
            let path = EntityPath::account(asking.account())
                .with_container(&self.place.container)
                .with_object(&row.name);
            return Ok(Some(Piece::Object(ObjectPiece {
                path,
                range,
                etag: None,
                size: None,
            })));
        }
    }
}

#[cfg(test)]
mod tests;
