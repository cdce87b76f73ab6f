//! GET and HEAD: look at the object, decide what to send, send it.
//!
//! The look, the decision and the first 64 KiB are one job on the device's workers; of an object read
//! lately the engine knows them without waiting for the drive, and there is no job.
//! Source of the decisions' order: RFC 9110 §13.2.2 and OpenStack's answers: conditions before ranges,
//! expiry before both.

use crate::answering::Answering;
use crate::devices::ObjectDevice;
use crate::expiry;
use crate::kept::is_shown;
use crate::outgoing::OutgoingBody;
use crate::pump::BodyPiece;
use crate::refusal::refused_by;
use crate::request::{ObjectRequest, ReadHead, text};
use crate::state::ObjectServerState;
use http::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::{FoundObject, ObjectMetadata, OpenOptions};
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_DURABLE_TIMESTAMP, X_TIMESTAMP};
use peer::{Body, Response};
use std::future::ready;
use std::sync::Arc;
use storage_shell::{Refusal, header_value, page};
use vocabulary::{ByteRange, Conditions, Outcome, RangeSet, Timestamp};
use world::Random;

const DEFAULT_TYPE: &str = "application/octet-stream";

/// Begins to answer a GET or HEAD; done at once where the engine knows the object.
pub(crate) fn read(
    state: &Arc<ObjectServerState>,
    (request, head): (ObjectRequest, ReadHead),
) -> Result<Answering<'_>, Refusal> {
    let wanted = ReadRequest::of(&request, &head, state)?;
    let (is_head, insists) = (wanted.head, wanted.insists_on_anything);
    if let Some(known) = look_hot(state, &request, &wanted) {
        return Ok(Box::pin(ready(Ok(answer(state, known, is_head)))));
    }
    Ok(Box::pin(async move {
        let found = look(state, request, wanted).await.map_err(|refusal| match refusal {
            Refusal::Decided(StatusCode::NOT_FOUND, timestamp) if insists => Refusal::NothingMatches(timestamp),
            refusal => refusal,
        })?;
        Ok(answer(state, found, is_head))
    }))
}

/// What is said of an object that was found.
fn answer(state: &ObjectServerState, (reading, device): (Reading, Arc<ObjectDevice>), is_head: bool) -> Response {
    let Reading { found, plan, body } = reading;
    let send = |status| sized(status, body.len(), body.into_body(&state.world, &device));
    let mut response = match &plan {
        ReadPlan::NotModified => bodiless(StatusCode::NOT_MODIFIED),
        ReadPlan::PreconditionFailed => bodiless(StatusCode::PRECONDITION_FAILED),
        ReadPlan::Unsatisfiable => page(StatusCode::RANGE_NOT_SATISFIABLE),
        ReadPlan::Whole if is_head => sized(StatusCode::OK, found.size, Body::empty()),
        ReadPlan::Whole => send(StatusCode::OK),
        ReadPlan::Range(_) | ReadPlan::Ranges(_) => send(StatusCode::PARTIAL_CONTENT),
    };
    describe(response.headers_mut(), &found, &plan, &state.options.allowed_headers);
    response
}

/// What the device has, by one job on its workers.
async fn look(
    state: &ObjectServerState,
    request: ObjectRequest,
    wanted: ReadRequest,
) -> Result<(Reading, Arc<ObjectDevice>), Refusal> {
    let device = state.devices.device(&request.target.device, request.lane).await?;
    let key = request.key;
    let job = move |device: &ObjectDevice| {
        let found = device.engine().open(&key, wanted.options());
        wanted.judge(found.map_err(refused_by(device))?, device)
    };
    let reading = device.run(job).await?;
    Ok((reading, device))
}

/// The same, when the engine knows the object without waiting for the drive.
fn look_hot(
    state: &ObjectServerState,
    request: &ObjectRequest,
    wanted: &ReadRequest,
) -> Option<(Reading, Arc<ObjectDevice>)> {
    let device = state.devices.opened(&request.target.device)?;
    let found = match device.is_in_service() {
        true => device.engine().open_hot(&request.key, wanted.options())?,
        false => return None,
    };
    // Without a reader there is nothing in it that blocks; an object that has expired is found so again.
    let reading = wanted.judge(found, &device).ok()?;
    Some((reading, device))
}

/// What the request wants to know.
struct ReadRequest {
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
    /// Makes the boundary of several ranges.
    random: Arc<dyn Random>,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadPlan {
    NotModified,
    PreconditionFailed,
    Unsatisfiable,
    Whole,
    Range(ByteRange),
    Ranges(SeveralRanges),
}

/// Ranges that are sent wrapped in MIME.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeveralRanges {
    ranges: Vec<ByteRange>,
    boundary: String,
}

/// An object that was found, and what is sent of it.
struct Reading {
    found: FoundObject,
    plan: ReadPlan,
    body: OutgoingBody,
}

impl ReadRequest {
    fn of(request: &ObjectRequest, head: &ReadHead, state: &ObjectServerState) -> Result<Self, Refusal> {
        let list = |names: &Option<HeaderValue>| -> Vec<String> {
            let names = names.as_ref().and_then(text).unwrap_or_default().split(',');
            let names = names.map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        let if_match = request.text(IF_MATCH);
        let bare = |tag: &str| tag.trim().trim_matches('"') == "*";
        Ok(Self {
            head: head.head_only,
            now: request.timestamp_or(state.world.clock.now())?,
            opens_expired: request.opens_expired(),
            conditions: Conditions::new(
                if_match,
                request.text(IF_NONE_MATCH),
                request.text(IF_MODIFIED_SINCE),
                request.text(IF_UNMODIFIED_SINCE),
            ),
            insists_on_anything: if_match.is_some_and(|tags| tags.split(',').any(bare)),
            etag_is_at: list(&head.etag_is_at),
            ranges: request.text(RANGE).and_then(RangeSet::parse),
            ignore_ranges_if: list(&head.ignores_range_if),
            random: state.world.random.clone(),
        })
    }

    fn options(&self) -> OpenOptions {
        if self.head { OpenOptions::HEAD } else { OpenOptions::GET }
    }

    /// 404 when the object has expired. Blocks where the object has more than its first bytes.
    fn judge(&self, mut found: FoundObject, device: &ObjectDevice) -> Result<Reading, Refusal> {
        if !self.opens_expired && expiry::has_expired(&found.metadata, self.now) {
            return Err(Refusal::not_found(Some(found.timestamps.newest())));
        }
        let plan = self.plan(&found);
        let body = match &plan {
            ReadPlan::Whole => OutgoingBody::whole(&mut found),
            // Only what is read as a whole is verified.
            ReadPlan::Range(range) if range.len() == found.size => OutgoingBody::whole(&mut found),
            ReadPlan::Range(range) => OutgoingBody::pieces(&mut found, vec![BodyPiece::Range(*range)], device)?,
            ReadPlan::Ranges(several) => {
                let pieces = several.pieces(found.size, content_type(&found.metadata));
                OutgoingBody::pieces(&mut found, pieces, device)?
            }
            _ => OutgoingBody::default(),
        };
        Ok(Reading { found, plan, body })
    }

    fn plan(&self, found: &FoundObject) -> ReadPlan {
        let text = |name: &str| found.metadata.text(name);
        // A copy has an empty one in the place of its source's.
        let kept = |name: &String| text(name).filter(|etag| !etag.is_empty());
        let elsewhere = self.etag_is_at.iter().find_map(kept);
        let etag = elsewhere.or_else(|| text("ETag")).unwrap_or_default();
        match self.conditions.check_read(&[etag], found.timestamps.newest()) {
            Outcome::NotModified => return ReadPlan::NotModified,
            Outcome::PreconditionFailed => return ReadPlan::PreconditionFailed,
            Outcome::Proceed => {}
        }
        let ignores = || {
            self.ignore_ranges_if
                .iter()
                .any(|name| found.metadata.get(name).is_some())
        };
        let Some(ranges) = self.ranges.as_ref().filter(|_| !self.head && !ignores()) else {
            return ReadPlan::Whole;
        };
        let ranges = ranges.resolve(found.size);
        match &ranges[..] {
            [] => ReadPlan::Unsatisfiable,
            // The last bytes of an empty object: that is all of it.
            ranges if ranges.iter().all(ByteRange::is_empty) => ReadPlan::Whole,
            [range] => ReadPlan::Range(*range),
            _ => ReadPlan::Ranges(SeveralRanges {
                ranges,
                boundary: format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64()),
            }),
        }
    }
}

impl SeveralRanges {
    fn pieces(&self, size: u64, content_type: &str) -> Vec<BodyPiece> {
        let Self { ranges, boundary } = self;
        let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
        for (index, range) in ranges.iter().enumerate() {
            let before = if index == 0 { "" } else { "\r\n" };
            let head = format!(
                "{before}--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {}\r\n\r\n",
                range.content_range(size)
            );
            pieces.extend([BodyPiece::Bytes(head.into()), BodyPiece::Range(*range)]);
        }
        pieces.push(BodyPiece::Bytes(format!("\r\n--{boundary}--").into()));
        pieces
    }
}

fn content_type(metadata: &ObjectMetadata) -> &str {
    metadata.text("Content-Type").unwrap_or(DEFAULT_TYPE)
}

fn bodiless(status: StatusCode) -> Response {
    sized(status, 0, Body::empty())
}

fn sized(status: StatusCode, length: u64, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // Grown once, for all that is going to be said of the object.
    response.headers_mut().reserve(HEADERS);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Headers of an object that has a few of its own.
const HEADERS: usize = 14;

/// The headers that say what the object is. A value that HTTP cannot carry can only come from a damaged file; the rest
/// is still useful.
fn describe(headers: &mut HeaderMap, found: &FoundObject, plan: &ReadPlan, allowed: &[String]) {
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
    let mut set = |name: HeaderName, value: Option<HeaderValue>| {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    let stored_type = || HeaderValue::from_bytes(found.metadata.get("Content-Type").unwrap_or(DEFAULT_TYPE.as_bytes()));
    let content_type = match plan {
        ReadPlan::Ranges(several) => header_value(format_args!("multipart/byteranges;boundary={}", several.boundary)),
        _ => stored_type().ok(),
    };
    set(CONTENT_TYPE, content_type);
    match plan {
        ReadPlan::Range(range) => set(CONTENT_RANGE, header_value(range.content_range(found.size))),
        ReadPlan::Unsatisfiable => set(CONTENT_RANGE, header_value(format_args!("bytes */{}", found.size))),
        _ => {}
    }
    let (times, newest) = (&found.timestamps, found.timestamps.newest());
    let etag = found.metadata.text("ETag").unwrap_or_default();
    set(ETAG, header_value(format_args!("\"{etag}\"")));
    set(LAST_MODIFIED, header_value(newest.last_modified()));
    set(X_TIMESTAMP, header_value(newest.normal()));
    set(X_BACKEND_TIMESTAMP, header_value(newest));
    set(X_DATA_TIMESTAMP, header_value(times.data));
    set(X_DURABLE_TIMESTAMP, header_value(times.durable));
}
