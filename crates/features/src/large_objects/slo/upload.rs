//! PUT of a manifest: every segment is looked at, then the list is stored with what was found.
//!
//! Comes in: the client's list (`input.rs`). Goes out: a PUT of the stored list (`manifest.rs`) with the
//! length and entity tag of the whole, or the list of what is wrong with which segment.
//! Always holds: an object that is named several times is asked for once, and at most `concurrency` are asked
//! at a time; nothing is stored unless every segment is what the client says. With `heartbeat=on` the
//! status comes in the body, behind spaces.

use super::input::{ManifestEntry, ManifestInput, ManifestRefusal, WantedObject};
use super::json_list::NotJson;
use super::manifest::{BASE64, names};
use super::{ETAG_AT, SIZE_AT, SOURCE, STATIC_LARGE_OBJECT, Shared, in_steps, is_large};
use crate::access::authorised;
use crate::bulk::heartbeat;
use crate::bulk::report::{Report, form_of};
use crate::large_objects::segments::{agent, header_text, md5_hex, text};
use crate::listings::listing_accept::Form;
use base64::Engine;
use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderName, Method, StatusCode};
use md5::{Digest, Md5};
use peer::message::header_names::{X_CRYPTO_CIPHER, X_SEGMENTS_ENCRYPTED};
use peer::{Body, BodyError};
use request_pipeline::{ClientRequest, MemorySeat, Next, NoRoom, Response, is_true, reply};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vocabulary::conditional::bare_etag;
use vocabulary::names::quote;
use vocabulary::{ByteRange, EntityPath, Timestamp, calendar};

/// Entries that are written down without letting others go on.
const A_TURN: usize = 500;

/// Bytes that what an object says of itself takes, besides its name and content type.
const A_LOOK: usize = 256;

const CONTAINER_TAG: HeaderName = HeaderName::from_static("x-object-sysmeta-container-update-override-etag");

/// Answers the PUT of a manifest.
pub(super) async fn handle(shared: &Arc<Shared>, mut request: ClientRequest, next: Next) -> Response {
    let (entries, seat) = match receive(shared, &mut request, &next).await {
        Ok(received) => received,
        Err(refusal) => return refusal,
    };
    let form = form_of(request.headers.get("accept").map(HeaderValue::as_bytes));
    let beats = matches!(request.param("heartbeat"), Some(Ok(value)) if is_true(&value));
    let upload = Upload {
        shared: shared.clone(),
        request,
        next,
        entries,
        seat,
    };
    if !beats {
        return match upload.run().await {
            Outcome::Stored(response) => response,
            Outcome::Wrong(problems) => wrong_segments(form, problems),
        };
    }
    let clock = shared.world.clock.clone();
    heartbeat::accept(form, shared.beat(), clock, heartbeat::BLANK_LINE, async move {
        upload.run().await.print(form).await
    })
}

fn set_form(response: &mut Response, form: Form) {
    let kind = HeaderValue::from_static(form.media_type());
    response.headers_mut().insert(CONTENT_TYPE, kind);
}

/// 400 with what is wrong with which segment.
fn wrong_segments(form: Form, problems: Vec<(String, String)>) -> Response {
    let mut report = Report::new();
    report.errors = problems;
    let text = Bytes::from(report.print(form, "upload"));
    // Sent without its length, as OpenStack does.
    let mut response = Response::new(Body::stream(stream::iter([Ok(text)]), None));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    set_form(&mut response, form);
    response
}

/// Reads the list of a client that says who it is.
async fn receive(
    shared: &Shared,
    request: &mut ClientRequest,
    next: &Next,
) -> Result<(Vec<ManifestEntry>, MemorySeat), Response> {
    let (most_bytes, most) = (shared.settings.max_manifest_size, shared.settings.max_manifest_segments);
    let too_large = || reply::html(413, format!("Manifest File > {most_bytes} bytes"));
    let length = request.header(CONTENT_LENGTH.as_str()).map(str::parse::<u64>);
    match length {
        Some(Ok(length)) if length > most_bytes => return Err(too_large()),
        Some(_) => {}
        None if request.headers.contains_key(TRANSFER_ENCODING) => {}
        None => return Err(reply::status(411)),
    }
    if request.headers.contains_key("x-copy-from") {
        return Err(reply::html(
            405,
            "Multipart Manifest PUTs cannot be COPY requests".into(),
        ));
    }
    let seat = match authorised::check_write(request, next.info()).await {
        Ok(()) => {
            let account = request.entity.as_ref().map_or("", |entity| &entity.account);
            shared.bodies.enter(account)
        }
        Err(refusal) if refusal.status() == StatusCode::UNAUTHORIZED => return Err(refusal),
        // A known user gets a report on the segments first, as by OpenStack.
        Err(_) => shared.bodies.enter_from(request.from.ip()),
    };
    let body = std::mem::replace(&mut request.body, Body::empty());
    let entity = request.entity.as_deref();
    let own = entity.map_or_else(String::new, |e| {
        let (container, object) = (e.container.as_deref(), e.object.as_deref());
        format!("/{}/{}", container.unwrap_or_default(), object.unwrap_or_default())
    });
    let read = read(shared, body, ManifestInput::new(own, most), seat).await;
    let (input, seat) = read.map_err(|incomplete| match incomplete {
        Incomplete::Body(BodyError::TooLarge(_)) => too_large(),
        Incomplete::Body(BodyError::TimedOut) => reply::status(408),
        Incomplete::Body(_) => reply::status(reply::CLIENT_DISCONNECT),
        Incomplete::Json(problem) => refused(problem.into()),
        Incomplete::NoRoom(full) => full.answer(),
    })?;
    Ok((input.finish().map_err(refused)?, seat))
}

fn refused(refusal: ManifestRefusal) -> Response {
    match refusal {
        ManifestRefusal::Whole(text) => reply::html(400, text.into()),
        ManifestRefusal::Lines(text) => reply::plain(400, text),
        ManifestRefusal::TooMany(text) => reply::html(413, text),
    }
}

/// Why a list was not read to its end.
enum Incomplete {
    Body(BodyError),
    Json(NotJson),
    NoRoom(NoRoom),
}

/// All of a body of at most `max_manifest_size` bytes whose sender keeps sending. What is refused is taken in to its
/// end as well: most clients look at the answer only then.
async fn read(
    shared: &Shared,
    mut body: Body,
    input: ManifestInput,
    seat: MemorySeat,
) -> Result<(ManifestInput, MemorySeat), Incomplete> {
    let most = shared.settings.max_manifest_size;
    let (mut length, mut reading) = (0, Ok((input, seat)));
    loop {
        let next = shared.world.timeout(shared.patience, body.next()).await;
        let next = next.unwrap_or(Some(Err(BodyError::TimedOut)));
        let Some(chunk) = next.transpose().map_err(Incomplete::Body)? else {
            return reading;
        };
        length += chunk.len() as u64;
        if length > most {
            return Err(Incomplete::Body(BodyError::TooLarge(most)));
        }
        if let Ok((input, seat)) = &mut reading {
            let read = in_steps(&chunk, |json| {
                input.push(json).map_err(Incomplete::Json)?;
                seat.grow_to(input.weight()).map_err(Incomplete::NoRoom)
            });
            if let Err(refusal) = read.await {
                reading = Err(refusal);
            }
        }
    }
}

/// How it ended.
enum Outcome {
    /// Storage has answered the PUT, or the manifest as a whole was refused.
    Stored(Response),
    /// These segments are not what they should be.
    Wrong(Vec<(String, String)>),
}

impl Outcome {
    /// As the body of an answer whose status was sent before.
    async fn print(self, form: Form) -> String {
        let report = match self {
            Outcome::Wrong(problems) => {
                let mut report = Report::new().with("Response Status", "400 Bad Request");
                report.set("Response Body", page_as_text(400));
                report.errors = problems;
                report
            }
            Outcome::Stored(response) => Self::report_of(response).await,
        };
        report.print(form, "upload")
    }

    async fn report_of(response: Response) -> Report {
        let status = reply::status_line(response.status().as_u16());
        let mut report = Report::new().with("Response Status", status);
        if response.status().is_success() {
            let header = |name: HeaderName| text(response.headers(), name.as_str()).unwrap_or_default().to_owned();
            report.set("Etag", header(ETAG));
            report.set("Last Modified", header(LAST_MODIFIED));
        }
        if response.status() == StatusCode::UNPROCESSABLE_ENTITY {
            report.set("Response Body", page_as_text(422));
            return report;
        }
        let page = response.into_body().collect(64 * 1024).await.unwrap_or_default();
        report.set("Response Body", String::from_utf8_lossy(&page).into_owned());
        report
    }
}

fn page_as_text(code: u16) -> &'static str {
    match code {
        422 => "Unprocessable Entity\nUnable to process the contained instructions",
        _ => {
            "Bad Request\nThe server could not comply with the request since it is either malformed or otherwise incorrect."
        }
    }
}

/// A manifest on its way.
struct Upload {
    shared: Arc<Shared>,
    request: ClientRequest,
    next: Next,
    entries: Vec<ManifestEntry>,
    /// Of the room for bodies.
    seat: MemorySeat,
}

impl Upload {
    async fn run(mut self) -> Outcome {
        match self.write().await {
            Ok(whole) => Outcome::Stored(self.store(whole).await),
            Err(outcome) => outcome,
        }
    }

    /// The list that is to be stored.
    async fn write(&mut self) -> Result<Stored, Outcome> {
        let full = |full: NoRoom| Outcome::Stored(full.answer());
        let nothing = self.seat.other();
        let mut seat = std::mem::replace(&mut self.seat, nothing);
        let seen = self.look(&mut seat).await.map_err(full)?;
        let mut written = 0;
        let mut problems = Vec::new();
        let mut whole = Stored::default();
        let last = self.entries.len().saturating_sub(1);
        for (index, entry) in self.entries.iter().enumerate() {
            if index % A_TURN == A_TURN - 1 {
                seat.grow((whole.json.len() - written) as u64).map_err(full)?;
                written = whole.json.len();
                tokio::task::yield_now().await;
            }
            // Once something is wrong nothing will be stored.
            let is_right = problems.is_empty();
            match entry {
                ManifestEntry::Data(bytes) if is_right => whole.add_data(bytes),
                ManifestEntry::Data(_) => {}
                ManifestEntry::Object(wish) => match seen.get(&wish.name()) {
                    None => {}
                    Some(Err(status)) => problems.push((quote(&wish.path), reply::status_line(status.as_u16()))),
                    Some(Ok(seen)) => match check(wish, seen, index == last) {
                        Ok(range) if is_right => whole.add_object(wish.name(), seen, range),
                        Ok(_) => {}
                        Err(found) => problems.extend(found.into_iter().map(|what| (quote(&wish.path), what.into()))),
                    },
                },
            }
        }
        self.seat = seat;
        match problems.is_empty() {
            true => Ok(whole),
            false => Err(Outcome::Wrong(problems)),
        }
    }

    /// Asks for every object once; `Err` is the status of one that cannot be had.
    async fn look(&self, seat: &mut MemorySeat) -> Result<HashMap<String, Result<Seen, StatusCode>>, NoRoom> {
        let mut known = HashSet::new();
        let mut wanted = self.entries.iter().filter_map(|entry| match entry {
            ManifestEntry::Object(wish) => Some(wish.name()).filter(|name| known.insert(name.clone())),
            ManifestEntry::Data(_) => None,
        });
        let (mut seen, mut under_way) = (HashMap::new(), FuturesUnordered::new());
        loop {
            let free = self.shared.settings.concurrency.0 - under_way.len();
            under_way.extend(wanted.by_ref().take(free).map(|name| self.look_at(name)));
            let Some((name, found)) = under_way.next().await else {
                return Ok(seen);
            };
            // The name is also kept in `known`.
            let texts = 2 * name.len() + found.as_ref().map_or(0, |seen| seen.content_type.len());
            seat.grow((texts + A_LOOK) as u64)?;
            seen.insert(name, found);
        }
    }

    async fn look_at(&self, name: String) -> (String, Result<Seen, StatusCode>) {
        let Some((container, object)) = names(&name).filter(|_| !name.contains('\0')) else {
            return (name, Err(StatusCode::PRECONDITION_FAILED));
        };
        let account = self.request.entity.as_ref().map_or("", |entity| &entity.account);
        let path = EntityPath::account(account)
            .with_container(container)
            .with_object(object);
        let mut request = self.request.subrequest(Method::HEAD, path, SOURCE);
        request.headers.insert(USER_AGENT, agent(&self.request, "MultipartPUT"));
        // Through this feature: a segment may be a large object.
        let response = super::read::handle(&self.shared, request, self.next.clone(), false).await;
        let seen = match response.status().is_success() {
            true => Ok(Seen::of(&response)),
            false => Err(response.status()),
        };
        (name, seen)
    }

    async fn store(mut self, whole: Stored) -> Response {
        let is_encrypted = whole.is_encrypted();
        let etag = vocabulary::hex::encode(whole.md5.finalize());
        let promised = self
            .request
            .header(ETAG.as_str())
            .map(bare_etag)
            .filter(|etag| !etag.is_empty());
        if promised.is_some_and(|promised| promised != etag) {
            return reply::status(422);
        }
        let json = if whole.json.is_empty() {
            "[]".into()
        } else {
            whole.json + "]"
        };
        let own_etag = md5_hex(json.as_bytes());
        let before = self.request.header(CONTAINER_TAG.as_str()).unwrap_or_default();
        let container_tag = match before.split_once(';') {
            None if before.trim().is_empty() => own_etag.clone(),
            Some((tag, rest)) if tag.trim().is_empty() => format!("{own_etag}; {}", rest.trim()),
            _ => before.to_owned(),
        };
        let headers = &mut self.request.headers;
        headers.remove(TRANSFER_ENCODING);
        headers.remove(X_SEGMENTS_ENCRYPTED);
        if is_encrypted {
            headers.insert(X_SEGMENTS_ENCRYPTED, HeaderValue::from_static("true"));
        }
        headers.insert(STATIC_LARGE_OBJECT, HeaderValue::from_static("True"));
        headers.insert(ETAG_AT, header_text(&etag));
        headers.insert(SIZE_AT, HeaderValue::from(whole.length));
        headers.insert(CONTAINER_TAG, header_text(&format!("{container_tag}; slo_etag={etag}")));
        headers.insert(ETAG, header_text(&own_etag));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(json.len()));
        self.request.body = Body::whole(json);
        let mut response = self.next.run(self.request).await;
        if response.status().is_success() {
            let headers = response.headers_mut();
            headers.insert(ETAG, header_text(&format!("\"{etag}\"")));
            if is_encrypted {
                headers.insert(X_SEGMENTS_ENCRYPTED, HeaderValue::from_static("true"));
            }
        }
        response
    }
}

/// What an object says of itself.
struct Seen {
    length: u64,
    etag: String,
    content_type: String,
    modified: String,
    is_large: bool,
    is_encrypted: bool,
}

impl Seen {
    fn of(response: &Response) -> Self {
        let headers = response.headers();
        let header = |name: HeaderName| text(headers, name.as_str()).unwrap_or_default();
        let modified = calendar::parse_http(header(LAST_MODIFIED)).unwrap_or_default();
        Self {
            length: header(CONTENT_LENGTH).parse().unwrap_or_default(),
            etag: bare_etag(header(ETAG)).to_owned(),
            content_type: header(CONTENT_TYPE).to_owned(),
            modified: Timestamp::from_seconds(modified).iso(),
            is_large: is_large(headers),
            is_encrypted: headers.contains_key(X_CRYPTO_CIPHER)
                && (!is_large(headers) || headers.contains_key(X_SEGMENTS_ENCRYPTED)),
        }
    }
}

/// What is wrong with a segment; else the range of it that counts.
fn check(wish: &WantedObject, seen: &Seen, is_last: bool) -> Result<Option<ByteRange>, Vec<&'static str>> {
    let mut problems = Vec::new();
    let mut length = seen.length;
    let mut range = None;
    if let Some(wanted) = &wish.range {
        match wanted.resolve(seen.length).first() {
            Some(found) if !found.is_empty() => {
                length = found.len();
                range = Some(*found).filter(|found| found.len() < seen.length);
            }
            _ => problems.push("Unsatisfiable Range"),
        }
    }
    if length < 1 && !is_last {
        problems.push("Too small; each segment must be at least 1 byte.");
    }
    if wish.size.is_some_and(|size| size != i128::from(seen.length)) {
        problems.push("Size Mismatch");
    }
    if wish.etag.as_ref().is_some_and(|etag| *etag != seen.etag) {
        problems.push("Etag Mismatch");
    }
    match problems.is_empty() {
        true => Ok(range),
        false => Err(problems),
    }
}

/// The list that is stored, as it grows.
#[derive(Default)]
struct Stored {
    /// Without the bracket that ends it.
    json: String,
    length: u64,
    md5: Md5,
    /// Of the objects, of which there is one at least, some are not encrypted.
    has_plain: bool,
}

impl Stored {
    /// Whether what the list names is encrypted. What stands in the list itself is encrypted as the list is.
    fn is_encrypted(&self) -> bool {
        !self.has_plain
    }

    fn add(&mut self, fields: Map<String, Value>) {
        self.json.push_str(if self.json.is_empty() { "[" } else { ", " });
        self.json.push_str(&pythonic::json(&Value::Object(fields)));
    }

    fn add_data(&mut self, bytes: &Bytes) {
        let mut fields = Map::new();
        fields.insert("data".into(), BASE64.encode(bytes).into());
        self.add(fields);
        self.md5.update(md5_hex(bytes));
        self.length += bytes.len() as u64;
    }

    fn add_object(&mut self, name: String, seen: &Seen, range: Option<ByteRange>) {
        let mut fields = Map::new();
        fields.insert("name".into(), name.into());
        fields.insert("bytes".into(), seen.length.into());
        fields.insert("hash".into(), seen.etag.as_str().into());
        fields.insert("content_type".into(), seen.content_type.as_str().into());
        fields.insert("last_modified".into(), seen.modified.as_str().into());
        self.md5.update(&seen.etag);
        if let Some(range) = &range {
            let text = format!("{}-{}", range.start, range.end.saturating_sub(1));
            self.md5.update(format!(":{text};"));
            fields.insert("range".into(), text.into());
        }
        if seen.is_large {
            fields.insert("sub_slo".into(), true.into());
        }
        self.has_plain |= !seen.is_encrypted && seen.length > 0;
        self.add(fields);
        self.length = self
            .length
            .saturating_add(range.map_or(seen.length, |range| range.len()));
    }
}
