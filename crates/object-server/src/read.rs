//! GET and HEAD: look at the object, decide what to send, send it.
//!
//! The look, the decision and the first 64 KiB are one job on the device's workers; of an object read
//! lately the engine knows them without waiting for the drive, and there is no job.
//! Source of the decisions' order: RFC 9110 §13.2.2 and OpenStack's answers: conditions before ranges,
//! expiry before both.

use crate::devices::Device;
use crate::expiry;
use crate::kept::is_shown;
use crate::outgoing::{Piece, Sending};
use crate::refusal::{Refusal, X_BACKEND_TIMESTAMP, page};
use crate::request::Request;
use crate::service::Shared;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use object_engine::{EngineError, Found, Metadata, ObjectEngine, OpenOptions};
use peer::{Body, Response};
use std::sync::Arc;
use vocabulary::{ByteRange, Conditions, Outcome, RangeSet, Timestamp};

const DEFAULT_TYPE: &str = "application/octet-stream";

/// Answers a GET or HEAD.
pub(crate) async fn read(shared: &Arc<Shared>, request: Request) -> Result<Response, Refusal> {
    let question = Question::of(&request, shared)?;
    let insists = question.insists_on_anything;
    let boundary = question.boundary.clone();
    let looked = match look_hot(shared, &request, &question) {
        Some(answered) => Ok(answered),
        None => {
            let key = request.key.clone();
            let look = move |engine: &dyn ObjectEngine| question.answer(engine.open(&key, question.options())?);
            shared.devices.run(&request.device, request.lane, look).await
        }
    };
    let absent = |timestamp| match insists {
        true => Refusal::NothingMatches(timestamp),
        false => Refusal::not_found(timestamp),
    };
    let (answer, device) = looked.map_err(|trouble| match Refusal::from_trouble(trouble, &request.device) {
        Refusal::Decided(StatusCode::NOT_FOUND, timestamp) => absent(timestamp),
        refusal => refusal,
    })?;
    match answer {
        Answer::Expired(timestamp) => Err(absent(Some(timestamp))),
        Answer::Object { found, plan, sending } => {
            let head_only = request.method == Method::HEAD;
            let mut response = match plan {
                Plan::NotModified => bodiless(StatusCode::NOT_MODIFIED),
                Plan::PreconditionFailed => bodiless(StatusCode::PRECONDITION_FAILED),
                Plan::Unsatisfiable => page(StatusCode::RANGE_NOT_SATISFIABLE),
                Plan::Whole if head_only => sized(StatusCode::OK, found.size, Body::empty()),
                Plan::Whole => sized(StatusCode::OK, sending.len(), sending.into_body(&shared.world, &device)),
                Plan::Ranges(_) => sized(
                    StatusCode::PARTIAL_CONTENT,
                    sending.len(),
                    sending.into_body(&shared.world, &device),
                ),
            };
            describe(
                response.headers_mut(),
                &found,
                &plan,
                &boundary,
                &shared.options.allowed_headers,
            );
            Ok(response)
        }
    }
}

/// The answer, when the engine knows the object without waiting for the drive.
fn look_hot(shared: &Shared, request: &Request, question: &Question) -> Option<(Answer, Arc<Device>)> {
    let device = shared.devices.opened(&request.device)?;
    let found = device.open_hot(&request.key, question.options())?;
    // Without a reader there is nothing in it that blocks, nor that can fail.
    let answer = question.answer(found).ok()?;
    Some((answer, device))
}

/// What the request wants to know.
struct Question {
    head: bool,
    now: Timestamp,
    opens_expired: bool,
    conditions: Conditions,
    /// `If-Match: *`.
    insists_on_anything: bool,
    /// Where the entity tag is that conditions are about, the first that is there.
    etag_is_at: Vec<String>,
    ranges: Option<RangeSet>,
    /// The whole object is sent when it has any of these.
    ignore_ranges_if: Vec<String>,
    boundary: String,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    NotModified,
    PreconditionFailed,
    Unsatisfiable,
    Whole,
    Ranges(Vec<ByteRange>),
}

enum Answer {
    Expired(Timestamp),
    Object {
        found: Box<Found>,
        plan: Plan,
        sending: Sending,
    },
}

impl Question {
    fn of(request: &Request, shared: &Shared) -> Result<Self, Refusal> {
        let list = |name: &str| -> Vec<String> {
            let names = request.text(name).unwrap_or_default().split(',');
            names
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect()
        };
        let if_match = request.text("if-match");
        let bare = |tag: &str| tag.trim().trim_matches('"') == "*";
        Ok(Self {
            head: request.method == Method::HEAD,
            now: request.timestamp_or(shared.world.clock.now())?,
            opens_expired: request.opens_expired(),
            conditions: Conditions::new(
                if_match,
                request.text("if-none-match"),
                request.text("if-modified-since"),
                request.text("if-unmodified-since"),
            ),
            insists_on_anything: if_match.is_some_and(|tags| tags.split(',').any(bare)),
            etag_is_at: list("x-backend-etag-is-at"),
            ranges: request.text("range").and_then(RangeSet::parse),
            ignore_ranges_if: list("x-backend-ignore-range-if-metadata-present"),
            boundary: boundary(shared),
        })
    }

    fn options(&self) -> OpenOptions {
        if self.head { OpenOptions::HEAD } else { OpenOptions::GET }
    }

    /// Blocks where the object has more than its first bytes.
    fn answer(&self, mut found: Found) -> Result<Answer, EngineError> {
        if !self.opens_expired && expiry::has_expired(&found.metadata, self.now) {
            return Ok(Answer::Expired(found.timestamps.newest()));
        }
        let plan = self.plan(&found);
        let sending = match &plan {
            Plan::Whole => Sending::whole(&mut found),
            Plan::Ranges(ranges) => {
                let pieces = pieces(ranges, found.size, content_type(&found.metadata), &self.boundary);
                Sending::pieces(&mut found, pieces)?
            }
            _ => Sending::nothing(),
        };
        let found = Box::new(found);
        Ok(Answer::Object { found, plan, sending })
    }

    fn plan(&self, found: &Found) -> Plan {
        let text = |name: &str| found.metadata.text(name);
        let elsewhere = self.etag_is_at.iter().find_map(|name| text(name));
        let etag = elsewhere.or_else(|| text("ETag")).unwrap_or_default();
        match self.conditions.check_read(&[etag], found.timestamps.newest()) {
            Outcome::NotModified => return Plan::NotModified,
            Outcome::PreconditionFailed => return Plan::PreconditionFailed,
            Outcome::Proceed => {}
        }
        let ignores = || {
            self.ignore_ranges_if
                .iter()
                .any(|name| found.metadata.get(name).is_some())
        };
        let Some(ranges) = self.ranges.as_ref().filter(|_| !self.head && !ignores()) else {
            return Plan::Whole;
        };
        let ranges = ranges.resolve(found.size);
        if ranges.is_empty() {
            Plan::Unsatisfiable
        } else if ranges.iter().all(ByteRange::is_empty) {
            // The last bytes of an empty object: that is all of it.
            Plan::Whole
        } else {
            Plan::Ranges(ranges)
        }
    }
}

fn boundary(shared: &Shared) -> String {
    format!(
        "{:016x}{:016x}",
        shared.world.random.next_u64(),
        shared.world.random.next_u64()
    )
}

/// One range as it is, several wrapped in MIME.
fn pieces(ranges: &[ByteRange], size: u64, content_type: &str, boundary: &str) -> Vec<Piece> {
    if let [range] = ranges {
        return vec![Piece::Range(*range)];
    }
    let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
    for (index, range) in ranges.iter().enumerate() {
        let before = if index == 0 { "" } else { "\r\n" };
        let head = format!(
            "{before}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {}\r\n\r\n",
            range.content_range(size)
        );
        pieces.extend([Piece::Bytes(head.into()), Piece::Range(*range)]);
    }
    pieces.push(Piece::Bytes(format!("\r\n--{boundary}--").into()));
    pieces
}

fn content_type(metadata: &Metadata) -> &str {
    metadata.text("Content-Type").unwrap_or(DEFAULT_TYPE)
}

fn bodiless(status: StatusCode) -> Response {
    sized(status, 0, Body::empty())
}

fn sized(status: StatusCode, length: u64, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// The headers that say what the object is.
fn describe(headers: &mut HeaderMap, found: &Found, plan: &Plan, boundary: &str, allowed: &[String]) {
    headers.reserve(12);
    for (name, value) in found.metadata.iter() {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        if is_shown(name.as_str(), allowed)
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.insert(name, value);
        }
    }
    let mut set = |name: HeaderName, value: &[u8]| {
        // A value that HTTP cannot carry can only come from a damaged file; the rest is still useful.
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    };
    match plan {
        Plan::Ranges(ranges) if ranges.len() > 1 => {
            set(
                CONTENT_TYPE,
                format!("multipart/byteranges;boundary={boundary}").as_bytes(),
            );
        }
        _ => set(
            CONTENT_TYPE,
            found.metadata.get("Content-Type").unwrap_or(DEFAULT_TYPE.as_bytes()),
        ),
    }
    match plan {
        Plan::Ranges(ranges) if ranges.len() == 1 => {
            set(CONTENT_RANGE, ranges[0].content_range(found.size).as_bytes());
        }
        Plan::Unsatisfiable => set(CONTENT_RANGE, format!("bytes */{}", found.size).as_bytes()),
        _ => {}
    }
    let times = &found.timestamps;
    let newest = times.newest();
    set(
        ETAG,
        format!("\"{}\"", found.metadata.text("ETag").unwrap_or_default()).as_bytes(),
    );
    set(LAST_MODIFIED, newest.last_modified().as_bytes());
    set(HeaderName::from_static("x-timestamp"), newest.normal().as_bytes());
    set(X_BACKEND_TIMESTAMP, newest.internal().as_bytes());
    set(
        HeaderName::from_static("x-backend-data-timestamp"),
        times.data.internal().as_bytes(),
    );
    set(
        HeaderName::from_static("x-backend-durable-timestamp"),
        times.durable.internal().as_bytes(),
    );
}
