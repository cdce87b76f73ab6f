//! GET and HEAD: of the whole, of ranges, of one segment (`part-number`), of the manifest itself.
//!
//! The client's request goes to storage as it is, with the order to judge conditions by the entity tag of the whole
//! and to send a manifest whole whatever range was asked for. Manifests from before clusters stored that
//! tag are fetched again and judged here.
//! Always holds: HEAD asks for no segment; the first segment of a GET has answered before the client gets
//! a status.

use super::manifest::RawManifest;
use super::walk::{ManifestPart, Walk};
use super::{ETAG_AT, HeldManifest, SIZE_AT, SOURCE, STATIC_LARGE_OBJECT, Shared, Unread, each_step, is_large};
use crate::large_objects::conditional_reply::{WantedRanges, decide, failed, set_range, unsatisfiable, wanted};
use crate::large_objects::segments::{Asking, Joined, header_text, md5_hex, pass_on, text};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use peer::Body;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_ETAG_IS_AT, X_IGNORE_RANGE_IF, X_TIMESTAMP};
use request_pipeline::{ClientRequest, Next, Response, reply};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::conditional::{Outcome, bare_etag};
use vocabulary::{ByteRange, EntityPath, Timestamp};
use world::Random;

const MARK: HeaderValue = HeaderValue::from_static("X-Static-Large-Object");
const MANIFEST_ETAG: HeaderName = HeaderName::from_static("x-manifest-etag");
const PARTS_COUNT: HeaderName = HeaderName::from_static("x-parts-count");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// What tells storage and listings about the manifest says nothing about a copy of the whole.
const OF_THE_MANIFEST: [&str; 3] = [ETAG_AT, SIZE_AT, "x-object-sysmeta-container-update-override-etag"];

/// Answers a read of an object.
pub(super) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, next: Next, raw: bool) -> Response {
    if raw {
        return Box::pin(manifest_itself(request, next)).await;
    }
    let is_at = match request.headers.get(&X_ETAG_IS_AT) {
        None => HeaderValue::from_static(ETAG_AT),
        Some(before) => header_text(&format!("{},{ETAG_AT}", String::from_utf8_lossy(before.as_bytes()))),
    };
    request.headers.insert(X_ETAG_IS_AT, is_at);
    if request.headers.contains_key("range") {
        request.headers.insert(X_IGNORE_RANGE_IF, MARK);
    }
    // The request goes on; this one is kept for what may have to be asked after it.
    let about = request.without_body();
    let response = next.clone().run(request).await;
    if !is_large(response.headers()) {
        return response;
    }
    match Reading::begin(shared, &about, next, response) {
        Ok(reading) => Box::pin(reading.answer()).await,
        Err(refusal) => refusal,
    }
}

/// A large object that is being read.
struct Reading<'a> {
    shared: &'a Arc<Shared>,
    request: &'a ClientRequest,
    next: Next,
    response: Response,
    part: Option<u64>,
    /// Entity tag and length of the whole, where the manifest's metadata has them.
    known: Option<(String, u64)>,
}

impl<'a> Reading<'a> {
    fn begin(
        shared: &'a Arc<Shared>,
        request: &'a ClientRequest,
        next: Next,
        response: Response,
    ) -> Result<Self, Response> {
        let expected = [200, 206, 304, 412, 416].contains(&response.status().as_u16());
        if !expected {
            return Err(no_manifest());
        }
        let part = part_number(request)?;
        let known = known(response.headers());
        Ok(Self {
            shared,
            request,
            next,
            response,
            part,
            known,
        })
    }

    async fn answer(mut self) -> Response {
        let is_head = self.request.method == Method::HEAD;
        let status = self.response.status().as_u16();
        let is_refused = matches!(status, 304 | 412);
        let asks_for_part = is_head && self.part.is_some();
        if let Some((etag, length)) = self.known.clone()
            && (is_refused || is_head)
            && !asks_for_part
        {
            let length = if is_refused { 0 } else { length };
            let manifest_etag = self.response.headers().get(ETAG).cloned();
            describe(self.response.headers_mut(), &etag, manifest_etag, length);
            return self.response.map(|_| Body::empty());
        }
        let fetched_again = is_head || status != 200;
        if fetched_again && let Err(answer) = self.fetch_again().await {
            return answer;
        }
        let (head, body) = self.response.into_parts();
        let held = match self.shared.read(self.request.from.ip(), body).await {
            Ok(held) => held,
            Err(Unread::NoRoom(full)) => return full.answer(),
            Err(_) => return no_manifest(),
        };
        let manifest = &held.manifest;
        let Some(total) = manifest.length() else {
            return no_manifest();
        };
        let (etag, length) = self.known.clone().unwrap_or_else(|| (manifest.etag(), total));
        if length != total {
            tracing::error!(
                "{}: the manifest has {total} bytes and says {length}",
                self.request.path
            );
            return no_manifest();
        }
        let mut headers = head.headers;
        headers.remove(CONTENT_RANGE);
        let manifest_etag = headers.get(ETAG).cloned();
        let judged = self.known.is_some() && !fetched_again;
        let judged_as = etag_to_judge_by(self.request, &headers, &etag);
        describe(&mut headers, &etag, manifest_etag, length);
        let mut whole = Whole {
            shared: self.shared,
            request: self.request,
            next: self.next,
            headers,
            held,
            length,
        };
        let part = match self.part.map(|number| whole.mark_part(number)) {
            Some(None) => return whole.no_such_part(),
            Some(part) => part,
            None => None,
        };
        // A known tag was judged by storage, with the metadata at hand.
        if !judged {
            let outcome = decide(self.request, &whole.headers, &judged_as);
            if outcome != Outcome::Proceed {
                return failed(outcome, whole.headers);
            }
        }
        match part {
            Some(range) => whole.send_range(range).await,
            None => whole.read().await,
        }
    }

    /// Fetches the manifest whole and without conditions: the first answer had none of it, or part of it.
    async fn fetch_again(&mut self) -> Result<(), Response> {
        let entity = self
            .request
            .entity
            .as_deref()
            .cloned()
            .unwrap_or(EntityPath::account(""));
        let mut request = self.request.subrequest(Method::GET, entity, SOURCE);
        request.query = manifest_query(&self.request.query);
        pass_on(self.request, &mut request);
        let again = self.next.clone().run(request).await;
        let is_older = written(again.headers()) < written(self.response.headers());
        if !again.status().is_success() || is_older {
            return Err(reply::status_for(&self.request.method, 503));
        }
        if !is_large(again.headers()) {
            // It has been overwritten meanwhile, by an object as any other.
            return Err(again);
        }
        self.known = known(again.headers());
        self.response = again;
        Ok(())
    }
}

/// The query for the manifest itself, of the version that was asked for.
pub(super) fn manifest_query(query: &str) -> String {
    match vocabulary::names::query_value(query, "version-id") {
        Some(Ok(version)) => format!("multipart-manifest=get&version-id={version}"),
        _ => "multipart-manifest=get".into(),
    }
}

fn written(headers: &HeaderMap) -> Timestamp {
    let at = |name: HeaderName| text(headers, name.as_str()).and_then(|time| time.parse().ok());
    at(X_BACKEND_TIMESTAMP).or(at(X_TIMESTAMP)).unwrap_or_default()
}

fn known(headers: &HeaderMap) -> Option<(String, u64)> {
    let etag = text(headers, ETAG_AT).filter(|etag| !etag.is_empty())?;
    Some((etag.to_owned(), text(headers, SIZE_AT)?.parse().ok()?))
}

/// Features in front may keep a tag of their own in the metadata.
fn etag_to_judge_by(request: &ClientRequest, headers: &HeaderMap, etag: &str) -> String {
    let places = request.header(X_ETAG_IS_AT.as_str()).unwrap_or_default().split(',');
    let mut found = places.filter_map(|name| text(headers, name.trim()).filter(|etag| !etag.is_empty()));
    bare_etag(found.next().unwrap_or(etag)).to_owned()
}

/// Turns a manifest's headers into those of the whole.
fn describe(headers: &mut HeaderMap, etag: &str, manifest_etag: Option<HeaderValue>, length: u64) {
    headers.insert(ETAG, header_text(&format!("\"{etag}\"")));
    if let Some(etag) = manifest_etag {
        headers.insert(MANIFEST_ETAG, etag);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    for name in OF_THE_MANIFEST {
        headers.remove(name);
    }
}

fn no_manifest() -> Response {
    reply::html(500, "Unable to load SLO manifest".into())
}

fn part_number(request: &ClientRequest) -> Result<Option<u64>, Response> {
    let Some(given) = request.param("part-number") else {
        return Ok(None);
    };
    let number = given.ok().and_then(|text| read_number(text.trim()));
    let refusal = match number.filter(|number| *number > 0) {
        None => "Part number must be an integer greater than 0",
        Some(_) if request.headers.contains_key("range") => "Range requests are not supported with part number queries",
        number => return Ok(number),
    };
    Err(reply::html(400, refusal.into()))
}

/// A number of a segment; one beyond 64 bits is beyond every manifest as well.
fn read_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// A large object with its segments.
struct Whole<'a> {
    shared: &'a Arc<Shared>,
    request: &'a ClientRequest,
    next: Next,
    headers: HeaderMap,
    held: Arc<HeldManifest>,
    length: u64,
}

impl Whole<'_> {
    async fn read(self) -> Response {
        match wanted(self.request, self.length) {
            WantedRanges::Nothing => unsatisfiable(self.headers, self.length),
            WantedRanges::Whole => {
                let all = ByteRange {
                    start: 0,
                    end: self.length,
                };
                self.send(StatusCode::OK, VecDeque::from([ManifestPart::Span(all)]))
                    .await
            }
            WantedRanges::Ranges(ranges) => match ranges[..] {
                [range] => self.send_range(range).await,
                _ => self.send_ranges(&ranges).await,
            },
        }
    }

    /// Says which segment is meant; `None` when there is no such, or nothing in it.
    fn mark_part(&mut self, number: u64) -> Option<ByteRange> {
        self.headers
            .insert(PARTS_COUNT, HeaderValue::from(self.held.manifest.len()));
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let segment = self.held.manifest.segment(index)?;
        let start = self.held.manifest.begins(index);
        let end = start.checked_add(segment.length)?;
        let range = Some(ByteRange { start, end }).filter(|range| !range.is_empty())?;
        set_range(&mut self.headers, &range.content_range(self.length));
        Some(range)
    }

    fn no_such_part(self) -> Response {
        const TEXT: &str = "The requested part number is not satisfiable";
        let is_head = self.request.method == Method::HEAD;
        let body = if is_head { "" } else { TEXT };
        let mut response = Response::new(Body::whole(body));
        *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
        *response.headers_mut() = self.headers;
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        set_range(headers, &format!("bytes */{}", self.length));
        response
    }

    async fn send_range(mut self, range: ByteRange) -> Response {
        set_range(&mut self.headers, &range.content_range(self.length));
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(range.len()));
        self.send(StatusCode::PARTIAL_CONTENT, VecDeque::from([ManifestPart::Span(range)]))
            .await
    }

    /// Several ranges: `multipart/byteranges`.
    async fn send_ranges(mut self, ranges: &[ByteRange]) -> Response {
        let boundary = boundary(&*self.shared.world.random);
        let kind = self
            .headers
            .get(CONTENT_TYPE)
            .map_or(&b""[..], HeaderValue::as_bytes)
            .to_vec();
        let mut parts = VecDeque::with_capacity(2 * ranges.len() + 1);
        let mut length = 0;
        for (index, range) in ranges.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\r\n" };
            let mut head = format!("{gap}--{boundary}\r\nContent-Type: ").into_bytes();
            head.extend_from_slice(&kind);
            let range_line = format!("\r\nContent-Range: {}\r\n\r\n", range.content_range(self.length));
            head.extend_from_slice(range_line.as_bytes());
            length += head.len() as u64 + range.len();
            parts.extend([ManifestPart::Data(head.into()), ManifestPart::Span(*range)]);
        }
        let end = format!("\r\n--{boundary}--");
        length += end.len() as u64;
        parts.push_back(ManifestPart::Data(Bytes::from(end)));
        let kind = header_text(&format!("multipart/byteranges;boundary={boundary}"));
        self.headers.insert(CONTENT_TYPE, kind);
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        self.send(StatusCode::PARTIAL_CONTENT, parts).await
    }

    async fn send(self, status: StatusCode, parts: VecDeque<ManifestPart>) -> Response {
        let body = match self.request.method == Method::HEAD {
            true => Body::empty(),
            false => match self.join(parts).await {
                Ok(body) => body,
                Err(refusal) => return refusal,
            },
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = self.headers;
        response
    }

    async fn join(&self, parts: VecDeque<ManifestPart>) -> Result<Body, Response> {
        let settings = &self.shared.settings;
        let clock = self.shared.world.clock.clone();
        let asking = Asking::new(self.request, self.next.clone(), SOURCE, clock, settings.max_get_time);
        let walk = Walk::new(self.shared.clone(), self.held.clone(), parts);
        let length = text(&self.headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
        match Joined::start(asking, Box::new(walk), length).await {
            Ok(joined) => Ok(joined.into_body()),
            Err(failure) => Err(failure.response(&self.request.method)),
        }
    }
}

fn boundary(random: &dyn Random) -> String {
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

/// `multipart-manifest=get`, in Swift's words or, with `format=raw`, in those of the client that sent it.
async fn manifest_itself(mut request: ClientRequest, next: Next) -> Response {
    let wants_raw = matches!(request.param("format"), Some(Ok(format)) if format == "raw");
    let is_head = request.method == Method::HEAD;
    if wants_raw {
        // Length and entity tag of what is not stored are known only once it is made.
        request.method = Method::GET;
    }
    let mut response = next.run(request).await;
    if !response.headers().contains_key(&STATIC_LARGE_OBJECT) {
        return match wants_raw && is_head {
            true => response.map(|_| Body::empty()),
            false => response,
        };
    }
    let is_whole = response.status() == StatusCode::OK;
    if !wants_raw || !is_whole {
        if response.headers().contains_key(STATIC_LARGE_OBJECT) && !wants_raw {
            response.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        return response;
    }
    let (mut head, body) = response.into_parts();
    let mut raw = RawManifest::default();
    let read = each_step(body, |json| raw.push(json)).await;
    let Some(raw) = read.ok().and_then(|()| raw.finish().ok()) else {
        return no_manifest();
    };
    head.headers.insert(ETAG, header_text(&md5_hex(raw.as_bytes())));
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(raw.len()));
    let body = if is_head { Body::empty() } else { Body::whole(raw) };
    Response::from_parts(head, body)
}
