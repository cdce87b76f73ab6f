//! PUT: accept, receive and write, commit, tell the listings.
//!
//! Three ways for the bytes, one set of rules: a small body is received first and costs one hop to the
//! device's workers; a long one streams in batches, the next received while the one before is written;
//! one wrapped in MIME says in its footer what became known on the way (a sender in this process says it with
//! the body itself).
//! The listing rows are known, and the device has a note of them, before the object is published.
//! Always holds: what decides without the body (timestamps, conditions, space) is asked before a long
//! body, or one the sender holds back, is touched; once the bytes are there the rest happens whether or
//! not the sender still waits, so that no object lacks its listing row.

use crate::devices::Device;
use crate::expiry::{self, Change};
use crate::incoming::{Incoming, Limits, too_large};
use crate::kept;
use crate::refusal::{Refusal, empty};
use crate::request::Request;
use crate::service::Shared;
use crate::sink::Sink;
use crate::updates::{Noted, Operation, Row, set};
use bytes::Bytes;
use futures_util::future::join;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPECT, IF_NONE_MATCH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use md5::{Digest as _, Md5};
use object_engine::rules::{FileName, Part};
use object_engine::{Commit, EngineError, Found, Metadata, ObjectEngine, ObjectKey, OpenOptions};
use peer::{Body, Digest, Interim, Response};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::conditional::bare_etag;
use vocabulary::limits::LimitError;
use vocabulary::{Conditions, Outcome, Timestamp};

/// A body this small is received before the device is asked anything.
pub(crate) const SMALL: u64 = 64 * 1024;
const BACKEND_OVERRIDE: &str = "x-backend-container-update-override-";
const SYSTEM_OVERRIDE: &str = "x-object-sysmeta-container-update-override-";

/// Answers a PUT.
pub(crate) async fn put(
    shared: &Arc<Shared>,
    mut request: Request,
    body: Body,
    interim: Option<Interim>,
) -> Result<Response, Refusal> {
    let timestamp = request.timestamp()?;
    let length = promised_length(&request, &body, interim.is_some())?;
    check_creation(&mut request, length, timestamp, shared)?;
    let wrapping = crate::wrapped::Wrapping::of(&request)?;
    let upload = Upload {
        intent: Arc::new(Intent::of(&request, timestamp, &shared.options.allowed_headers)),
        request,
        shared: shared.clone(),
    };
    match wrapping {
        Some(wrapping) => upload.wrapped(body, length, wrapping, interim).await,
        None if upload.is_small(&body, length) => upload.at_once(body, length).await,
        None => upload.streamed(body, length).await,
    }
}

/// What a body that came whole is to become, before a device is asked.
pub(crate) fn intend(request: &mut Request, length: u64, shared: &Shared) -> Result<Intent, Refusal> {
    let timestamp = request.timestamp()?;
    check_creation(request, Some(length), timestamp, shared)?;
    Ok(Intent::of(request, timestamp, &shared.options.allowed_headers))
}

/// What the sender says about the body's length; `None` for chunked bodies.
fn promised_length(request: &Request, body: &Body, came_by_wire: bool) -> Result<Option<u64>, Refusal> {
    match request.text(TRANSFER_ENCODING.as_str()) {
        Some(encoding) if encoding.eq_ignore_ascii_case("chunked") => return Ok(None),
        Some(_) => return Err(Refusal::bad_request("Invalid Transfer-Encoding header value")),
        None => {}
    }
    match request.headers.get(CONTENT_LENGTH) {
        Some(value) => {
            let length = value.to_str().ok().and_then(|text| text.parse().ok());
            length
                .map(Some)
                .ok_or_else(|| Refusal::bad_request("Invalid Content-Length header value"))
        }
        None if came_by_wire => Err(Refusal::Text(
            StatusCode::LENGTH_REQUIRED,
            "Missing Content-Length header.".into(),
        )),
        None => Ok(body.length()),
    }
}

/// What can be refused before any device is asked, in OpenStack's order.
fn check_creation(
    request: &mut Request,
    length: Option<u64>,
    timestamp: Timestamp,
    shared: &Shared,
) -> Result<(), Refusal> {
    let limits = &shared.options.limits;
    if length.is_some_and(|length| length > limits.max_file_size) {
        return Err(too_large());
    }
    if let Err(error @ LimitError::TooLong { what: "Object", .. }) = limits.check_names(&request.path) {
        return Err(Refusal::bad_request(error.to_string()));
    }
    if request.text(CONTENT_TYPE.as_str()).is_none_or(str::is_empty) {
        return Err(Refusal::bad_request("Invalid Content-Type"));
    }
    expiry::settle_delete_at(request, timestamp)?;
    kept::check_limits(&request.headers, limits)
}

/// What is to be written, as far as the request's head says.
#[derive(Clone)]
pub(crate) struct Intent {
    pub(crate) key: ObjectKey,
    timestamp: Timestamp,
    content_type: Vec<u8>,
    conditions: Conditions,
    /// The checksum the sender expects.
    pub(crate) etag: Option<String>,
    /// Headers that stay.
    pub(crate) kept: Metadata,
}

/// What was there before.
pub(crate) struct Prior {
    delete_at: Option<i64>,
}

/// What is there now, and what is to be told of it.
pub(crate) struct Written {
    etag: String,
    noted: Noted,
}

impl Intent {
    fn of(request: &Request, timestamp: Timestamp, allowed: &[String]) -> Self {
        let mut kept = Metadata::new();
        kept::keep_for_put(&mut kept, &request.headers, allowed);
        let content_type = request.headers.get(CONTENT_TYPE);
        Self {
            key: request.key.clone(),
            timestamp,
            content_type: content_type.map(|value| value.as_bytes().to_vec()).unwrap_or_default(),
            conditions: Conditions::new(None, request.text(IF_NONE_MATCH.as_str()), None, None),
            etag: request.text(ETAG.as_str()).map(|etag| bare_etag(etag).to_owned()),
            kept,
        }
    }

    /// Whether the write may happen. Blocks.
    fn look(&self, engine: &dyn ObjectEngine) -> Result<Result<Prior, Refusal>, EngineError> {
        self.judge(engine.open(&self.key, OpenOptions::BEFORE_WRITE))
    }

    /// Whether the write may happen in view of what was found.
    fn judge(&self, found: Result<Found, EngineError>) -> Result<Result<Prior, Refusal>, EngineError> {
        let nothing = Prior { delete_at: None };
        let found = match found {
            Ok(found) => found,
            Err(EngineError::NotFound { deleted_at }) => {
                let newer = deleted_at.filter(|deleted| *deleted >= self.timestamp);
                return Ok(newer.map_or(Ok(nothing), |newer| Err(Refusal::conflict(newer))));
            }
            Err(EngineError::Quarantined { .. }) => return Ok(Ok(nothing)),
            Err(error) => return Err(error),
        };
        let expired = expiry::has_expired(&found.metadata, self.timestamp);
        let etag = found.metadata.text("ETag").unwrap_or_default();
        let unwanted = || self.conditions.check_read(&[etag], found.timestamps.data) != Outcome::Proceed;
        if !expired && unwanted() {
            return Ok(Err(Refusal::Page(StatusCode::PRECONDITION_FAILED)));
        }
        if found.timestamps.data >= self.timestamp {
            return Ok(Err(Refusal::conflict(found.timestamps.data)));
        }
        let delete_at = expiry::delete_at(&found.metadata).filter(|_| !expired);
        Ok(Ok(Prior { delete_at }))
    }

    /// What to commit of a body that came whole, if it may be written in view of what was found.
    pub(crate) fn of_whole(
        &self,
        found: Result<Found, EngineError>,
        bytes: &[u8],
    ) -> Result<Result<Commit, Refusal>, EngineError> {
        Ok(match self.judge(found)? {
            Ok(_) => self.commit(&hex(&Md5::digest(bytes)), bytes.len() as u64),
            Err(refusal) => Err(refusal),
        })
    }

    /// What to commit, once the bytes' checksum and number are known.
    pub(crate) fn commit(&self, etag: &str, size: u64) -> Result<Commit, Refusal> {
        if self.etag.as_deref().is_some_and(|expected| expected != etag) {
            return Err(Refusal::Page(StatusCode::UNPROCESSABLE_ENTITY));
        }
        let mut metadata = Metadata::new()
            .with("X-Timestamp", self.timestamp.internal())
            .with("Content-Type", self.content_type.clone())
            .with("Content-Length", size.to_string())
            .with("ETag", etag);
        self.kept.iter().for_each(|(name, value)| metadata.set(name, value));
        Ok(Commit {
            timestamp: self.timestamp,
            metadata,
        })
    }
}

/// A PUT that was accepted.
pub(crate) struct Upload {
    pub(crate) shared: Arc<Shared>,
    pub(crate) request: Request,
    pub(crate) intent: Arc<Intent>,
}

impl Upload {
    fn is_small(&self, body: &Body, length: Option<u64>) -> bool {
        let is_here = body.as_whole().is_some();
        is_here || (length.is_some_and(|length| length <= SMALL) && !self.request.headers.contains_key(EXPECT))
    }

    pub(crate) fn incoming(&self, body: Body, length: Option<u64>) -> Incoming {
        let options = &self.shared.options;
        let limits = Limits {
            patience: options.client_timeout,
            whole: options.max_upload_time,
            bytes: options.limits.max_file_size,
        };
        Incoming::new(&self.shared.world, body, length, limits).telling(&options.statsd)
    }

    /// Receive, then look and write in one hop.
    async fn at_once(mut self, body: Body, length: Option<u64>) -> Result<Response, Refusal> {
        let (digest, footer) = (body.digest(), body.footer());
        let bytes = self.incoming(body, length).all().await?;
        self.take_footer(footer)?;
        let shared = self.shared.clone();
        shared.to_its_end(self.write_at_once(bytes, digest)).await?
    }

    async fn write_at_once(self, bytes: Bytes, digest: Option<Digest>) -> Result<Response, Refusal> {
        let size = bytes.len() as u64;
        let upload = Arc::new(self);
        let its = upload.clone();
        let job = move |engine: &dyn ObjectEngine| {
            let prior = match its.intent.look(engine)? {
                Ok(prior) => prior,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let known = digest.as_ref().and_then(Digest::get).map(str::to_owned);
            let etag = known.unwrap_or_else(|| hex(&Md5::digest(&bytes)));
            let clock = &its.shared.world.clock;
            let began = clock.elapsed();
            let done = its.publish(engine, &prior, etag, size, |commit| {
                engine.put(&its.intent.key, &bytes, commit)
            });
            its.measure(size, clock.elapsed().saturating_sub(began));
            done
        };
        let request = &upload.request;
        let ran = upload.shared.devices.run(&request.device, request.lane, job).await;
        let (done, device) = ran.map_err(|trouble| Refusal::from_trouble(trouble, &request.device))?;
        Ok(upload.tell(done?, &device).await)
    }

    /// How long the device took for so many bytes, where somebody wants to know.
    fn measure(&self, bytes: u64, took: Duration) {
        if bytes > 0 {
            let name = format_args!("PUT.{}.timing", self.request.device);
            self.shared.options.statsd.transfer(name, took, bytes);
        }
    }

    /// Notes what is to be told, and publishes. Blocks.
    pub(crate) fn publish(
        &self,
        engine: &dyn ObjectEngine,
        prior: &Prior,
        etag: String,
        size: u64,
        publish: impl FnOnce(Commit) -> Result<(), EngineError>,
    ) -> Result<Result<Written, Refusal>, EngineError> {
        let commit = match self.intent.commit(&etag, size) {
            Ok(commit) => commit,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let file = FileName {
            timestamp: commit.timestamp,
            part: Part::Data,
        };
        let rows = self.rows(prior, &commit.metadata, &etag, size);
        let noted = Noted::take(engine, &self.intent.key, file, rows);
        publish(commit)?;
        Ok(Ok(Written { etag, noted }))
    }

    /// Look, then receive and write in turns.
    async fn streamed(mut self, body: Body, length: Option<u64>) -> Result<Response, Refusal> {
        let (digest, footer) = (body.digest(), body.footer());
        let (prior, sink) = self.begin(length, digest).await?;
        let mut incoming = self.incoming(body, length);
        let mut batch = incoming.batch().await?;
        while !batch.is_empty() {
            let (written, next) = join(sink.write(batch), incoming.batch()).await;
            written?;
            batch = next?;
        }
        self.take_footer(footer)?;
        self.finish(prior, sink).await
    }

    /// Asks everything that can be asked without the body, and begins to write.
    pub(crate) async fn begin(
        &self,
        expected_size: Option<u64>,
        digest: Option<Digest>,
    ) -> Result<(Prior, Sink), Refusal> {
        let intent = self.intent.clone();
        let job = move |engine: &dyn ObjectEngine| match intent.look(engine)? {
            Ok(prior) => Ok(Ok((prior, engine.create(&intent.key, expected_size)?))),
            Err(refusal) => Ok(Err(refusal)),
        };
        let ran = self
            .shared
            .devices
            .run(&self.request.device, self.request.lane, job)
            .await;
        let (begun, device) = ran.map_err(|trouble| Refusal::from_trouble(trouble, &self.request.device))?;
        let (prior, writer) = begun?;
        Ok((prior, Sink::new(&self.shared.world, device, writer, digest)))
    }

    /// Commits and tells.
    pub(crate) async fn finish(self, prior: Prior, sink: Sink) -> Result<Response, Refusal> {
        let shared = self.shared.clone();
        let finishing = async move {
            let upload = Arc::new(self);
            let committed = sink.commit(&upload, &Arc::new(prior)).await;
            let (bytes, took) = sink.effort();
            upload.measure(bytes, took);
            let written = committed?;
            Ok(upload.tell(written, sink.device()).await)
        };
        shared.to_its_end(finishing).await?
    }

    /// What the listings are to be told.
    fn rows(&self, prior: &Prior, metadata: &Metadata, etag: &str, size: u64) -> Vec<Row> {
        let timestamp = self.intent.timestamp;
        let change = Change {
            old: prior.delete_at,
            new: Some(metadata),
            size,
            timestamp,
            content_type_timestamp: timestamp,
        };
        let mut rows = expiry::queue_rows(&self.request, &self.shared.options, &change);
        let headers = self.listing_headers(metadata, etag, size);
        rows.extend(Row::of_object(&self.request, Operation::Put, timestamp, headers));
        rows
    }

    async fn tell(&self, written: Written, device: &Arc<Device>) -> Response {
        self.shared.updates.tell(written.noted, device).await;
        let mut response = empty(StatusCode::CREATED);
        if let Ok(value) = HeaderValue::from_str(&format!("\"{}\"", written.etag)) {
            response.headers_mut().insert(ETAG, value);
        }
        response
    }

    fn listing_headers(&self, metadata: &Metadata, etag: &str, size: u64) -> HeaderMap {
        let mut more = HeaderMap::with_capacity(6);
        set(&mut more, "x-size", &size.to_string());
        set(&mut more, "x-etag", etag);
        if let Ok(value) = HeaderValue::from_bytes(&self.intent.content_type) {
            more.insert("x-content-type", value);
        }
        overrides(&mut more, &self.request.headers, metadata);
        more
    }
}

/// What the listing is to show instead: headers for this purpose, and above them what was stored with the
/// object for it.
pub(crate) fn overrides(more: &mut HeaderMap, headers: &HeaderMap, stored: &Metadata) {
    let mut replace = |name: &str, value: &[u8]| {
        if name.is_empty() {
            return;
        }
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(format!("x-{name}")),
            HeaderValue::from_bytes(value),
        ) {
            more.insert(name, value);
        }
    };
    for (name, value) in headers {
        if let Some(name) = name.as_str().strip_prefix(BACKEND_OVERRIDE) {
            replace(name, value.as_bytes());
        }
    }
    for (name, value) in stored.iter() {
        let lower = name.to_ascii_lowercase();
        if let Some(name) = lower.strip_prefix(SYSTEM_OVERRIDE) {
            replace(name, value);
        }
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
