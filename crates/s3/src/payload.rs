//! The body of a request: what was signed of it, and its bytes checked while they pass.
//!
//! Always holds: the last chunk of a body is handed on only after all that the client promised of the whole has been
//! checked, so that a body that is not what was signed never becomes an object; bytes pass without a copy.
//! Why a body was refused lies in [`Verdict`] when the request has been answered.

use crate::checksum::{Algorithm, Checksum, Checksums, Trailer, md5_of_header};
use crate::chunked::{ChunkSigning, ChunkedBody};
use crate::error::{
    BAD_DIGEST, ENTITY_TOO_LARGE, ENTITY_TOO_SMALL, INCOMPLETE_BODY, INVALID_REQUEST, MISSING_CONTENT_LENGTH, S3Error,
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use identity::{SignedRequest, VerifiedKey};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use peer::{Body, BodyError, client_network};
use request_pipeline::{MemoryRoom, MemorySeat, Request};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a signature says of the body (`x-amz-content-sha256`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadHash {
    /// The body is not signed.
    Unsigned,
    /// Its SHA-256, as sent; a text that is none is one that no body has.
    Sha256(String),
    /// It comes in chunks (`aws-chunked`), perhaps with a signature each, perhaps with a trailer.
    Streaming {
        /// As sent.
        text: String,
        /// Whether each chunk has a signature.
        is_signed: bool,
    },
}

impl PayloadHash {
    /// Of the header's value.
    pub fn parse(text: &str) -> Self {
        let streaming = |is_signed| Self::Streaming {
            text: text.to_owned(),
            is_signed,
        };
        match text {
            "UNSIGNED-PAYLOAD" => Self::Unsigned,
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => streaming(true),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => streaming(true),
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => streaming(false),
            _ => Self::Sha256(text.to_owned()),
        }
    }

    /// Of the header's value where bodies in chunks are not taken: in presigned URLs and in signatures of version 2.
    pub fn of_whole(text: &str) -> Self {
        match text {
            "UNSIGNED-PAYLOAD" => Self::Unsigned,
            _ => Self::Sha256(text.to_owned()),
        }
    }

    /// As it stands in what is signed.
    pub fn text(&self) -> &str {
        match self {
            Self::Unsigned => "UNSIGNED-PAYLOAD",
            Self::Sha256(text) | Self::Streaming { text, .. } => text,
        }
    }
}

/// What is known of a body's signature behind authentication.
#[derive(Clone)]
pub struct SignedBody {
    /// What was signed.
    pub payload: PayloadHash,
    /// When (`20130524T000000Z`).
    pub time: String,
    /// The signature of the head, which the first chunk's signature continues.
    pub signed: Arc<SignedRequest>,
    /// What chunks are signed with; absent where the authenticator does not learn secrets.
    pub signing_key: Option<[u8; 32]>,
}

/// Why a body was refused, once it was.
#[derive(Clone, Default)]
pub struct Verdict {
    refusal: Arc<Mutex<Option<S3Error>>>,
    trailer: Trailer,
}

impl Verdict {
    /// The reason, if there is one.
    pub fn refusal(&self) -> Option<S3Error> {
        self.refusal.lock().clone()
    }

    /// The checksum that came behind the body, once that has been read and found right.
    pub fn checksum_behind(&self) -> Option<(Algorithm, String)> {
        self.trailer.checksum()
    }

    /// Notes why.
    pub(crate) fn refuse(&self, error: S3Error) -> BodyError {
        *self.refusal.lock() = Some(error);
        BodyError::Corrupt
    }
}

/// Puts in front of the request's body whatever checks it, and takes `aws-chunked` off. The body of the request is
/// then the object's bytes, its `Content-Length` their number.
pub fn check_body(request: &mut Request, signed: Option<&SignedBody>) -> Result<Verdict, S3Error> {
    let mut wanted = Checksums::default();
    let verdict = Verdict {
        trailer: wanted.trailer(),
        ..Verdict::default()
    };
    let payload = signed.map_or(&PayloadHash::Unsigned, |signed| &signed.payload);
    let is_streaming = matches!(payload, PayloadHash::Streaming { .. });
    if let PayloadHash::Sha256(digest) = payload {
        // Chunks are not taken here, but a client that sends them forgot their length first of all.
        let is_chunked = matches!(PayloadHash::parse(digest), PayloadHash::Streaming { .. });
        if is_chunked && number(request, "x-amz-decoded-content-length").is_none() {
            return Err(MISSING_CONTENT_LENGTH.into());
        }
        wanted.add(Checksum::payload(digest));
    }
    let has_trailer = wanted.read(&request.headers, is_streaming)?;
    if let PayloadHash::Streaming { is_signed, .. } = payload {
        let signing = match (is_signed, signed) {
            (true, Some(signed)) => Some(chunk_signing(signed)?),
            _ => None,
        };
        take_chunks_off(request, signing, has_trailer, &mut wanted, &verdict)?;
    }
    if !is_streaming
        && let Some(expected) = number(request, "x-amz-decoded-content-length")
        && let Some(provided) = request.body.length().filter(|provided| *provided != expected)
    {
        return Err(S3Error::wrong_length(provided, expected));
    }
    if !request.headers.contains_key(CONTENT_LENGTH) && !request.headers.contains_key(TRANSFER_ENCODING) {
        return Err(MISSING_CONTENT_LENGTH.into());
    }
    if let Some(range) = request.extensions.get::<SizeRange>().copied() {
        let body = std::mem::replace(&mut request.body, Body::empty());
        request.body = within(body, range, &verdict);
    }
    if !wanted.is_empty() {
        let body = std::mem::replace(&mut request.body, Body::empty());
        request.body = checked(body, wanted, verdict.clone());
    }
    Ok(verdict)
}

fn number(request: &Request, name: &str) -> Option<u64> {
    request.header(name).and_then(|text| text.parse().ok())
}

fn chunk_signing(signed: &SignedBody) -> Result<ChunkSigning, S3Error> {
    let key = signed.signing_key.ok_or_else(|| {
        INVALID_REQUEST
            .saying("Signed chunks cannot be verified with this authenticator: send UNSIGNED-PAYLOAD or a digest")
    })?;
    Ok(ChunkSigning::new(key, &signed.time, signed.signed.clone()))
}

fn take_chunks_off(
    request: &mut Request,
    signing: Option<ChunkSigning>,
    has_trailer: bool,
    wanted: &mut Checksums,
    verdict: &Verdict,
) -> Result<(), S3Error> {
    let length =
        number(request, "x-amz-decoded-content-length").ok_or_else(|| S3Error::from(MISSING_CONTENT_LENGTH))?;
    if request.body.length().is_some_and(|sent| length > 0 && length == sent) {
        return Err(INCOMPLETE_BODY.into());
    }
    let encodings: Vec<String> = request
        .header("content-encoding")
        .unwrap_or_default()
        .split(',')
        .map(|encoding| encoding.trim().to_owned())
        .filter(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("aws-chunked"))
        .collect();
    request.headers.remove(CONTENT_ENCODING);
    if !encodings.is_empty()
        && let Ok(value) = HeaderValue::from_str(&encodings.join(", "))
    {
        request.headers.insert(CONTENT_ENCODING, value);
    }
    request.headers.remove(TRANSFER_ENCODING);
    request.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let body = std::mem::replace(&mut request.body, Body::empty());
    let chunked = ChunkedBody::new(body, signing, has_trailer, length, wanted.trailer());
    let verdict = verdict.clone();
    let bytes = unfold(Some(chunked), move |chunked| {
        let verdict = verdict.clone();
        async move {
            let mut chunked = chunked?;
            match chunked.next().await {
                None => None,
                Some(Ok(bytes)) => Some((Ok(bytes), Some(chunked))),
                Some(Err(Some(error))) => Some((Err(verdict.refuse(error)), None)),
                Some(Err(None)) => Some((Err(BodyError::Abandoned), None)),
            }
        }
    });
    request.body = Body::stream(bytes, Some(length));
    Ok(())
}

/// The same bytes, the last of them only when all have the checksums they should have.
fn checked(body: Body, wanted: Checksums, verdict: Verdict) -> Body {
    let length = body.length();
    struct State {
        body: Body,
        held: Option<Bytes>,
        wanted: Checksums,
        passed: u64,
        is_over: bool,
    }
    let state = State {
        body,
        held: None,
        wanted,
        passed: 0,
        is_over: false,
    };
    let bytes = unfold(state, move |mut state| {
        let verdict = verdict.clone();
        async move {
            loop {
                if state.is_over {
                    return None;
                }
                match state.body.next().await {
                    Some(Ok(chunk)) => {
                        state.wanted.update(&chunk);
                        state.passed += chunk.len() as u64;
                        if let Some(before) = state.held.replace(chunk) {
                            return Some((Ok(before), state));
                        }
                    }
                    Some(Err(error)) => {
                        state.is_over = true;
                        return Some((Err(error), state));
                    }
                    None => {
                        state.is_over = true;
                        if length.is_some_and(|length| length != state.passed) {
                            let error = S3Error::wrong_length(state.passed, length.unwrap_or_default());
                            return Some((Err(verdict.refuse(error)), state));
                        }
                        if let Err(error) = state.wanted.check() {
                            return Some((Err(verdict.refuse(error)), state));
                        }
                        let last = state.held.take()?;
                        return Some((Ok(last), state));
                    }
                }
            }
        }
    });
    Body::stream(bytes, length)
}

/// How large the body of a request may be, as its form's policy has it.
#[derive(Clone, Copy)]
pub(crate) struct SizeRange(pub(crate) u64, pub(crate) u64);

/// A body of which no end is let go that is too small, and no more than may be.
fn within(body: Body, SizeRange(least, most): SizeRange, verdict: &Verdict) -> Body {
    let passed = Arc::new(AtomicU64::new(0));
    let (length, counted, verdict_of_size) = (body.length(), passed.clone(), verdict.clone());
    let bytes = unfold(Some(body), move |body| {
        let (counted, verdict) = (counted.clone(), verdict_of_size.clone());
        async move {
            let mut body = body?;
            let chunk = body.next().await?;
            let size = chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
            let size = counted.fetch_add(size, Ordering::Relaxed) + size;
            if size > most {
                let error = ENTITY_TOO_LARGE.about("MaxSizeAllowed", most.to_string());
                return Some((Err(verdict.refuse(error.with("ProposedSize", size.to_string()))), None));
            }
            Some((chunk, Some(body)))
        }
    });
    released_by(Body::stream(bytes, length), verdict.clone(), async move {
        let size = passed.load(Ordering::Relaxed);
        match size >= least {
            true => Ok(()),
            false => Err(ENTITY_TOO_SMALL
                .about("MinSizeAllowed", least.to_string())
                .with("ProposedSize", size.to_string())),
        }
    })
}

/// The same bytes, the last of them only once the gate has been passed.
pub fn released_by(
    body: Body,
    verdict: Verdict,
    gate: impl Future<Output = Result<(), S3Error>> + Send + 'static,
) -> Body {
    let length = body.length();
    let state = (body, None, Some(Box::pin(gate)));
    let bytes = unfold(state, move |(mut body, mut held, mut gate)| {
        let verdict = verdict.clone();
        async move {
            loop {
                match body.next().await {
                    Some(Ok(chunk)) => {
                        if let Some(before) = held.replace(chunk) {
                            return Some((Ok(before), (body, held, gate)));
                        }
                    }
                    Some(Err(error)) => return Some((Err(error), (Body::empty(), None, None))),
                    None => {
                        if let Err(error) = gate.take()?.await {
                            return Some((Err(verdict.refuse(error)), (Body::empty(), None, None)));
                        }
                        return Some((Ok(held.take()?), (body, None, None)));
                    }
                }
            }
        }
    });
    Body::stream(bytes, length)
}

/// The whole of a small body (a document), checked as its client promised; `limit` is in bytes. It takes its part of
/// the gateway's room for documents, as long as the request lives.
pub async fn collect(request: &mut Request, signed: Option<&SignedBody>, limit: u64) -> Result<Bytes, S3Error> {
    let verdict = check_body(request, signed)?;
    let body = std::mem::replace(&mut request.body, Body::empty());
    let content_md5 = request.header("content-md5").map(str::to_owned);
    if body.length().is_some_and(|length| length > limit) {
        pass_over(body).await;
        return Err(crate::error::MALFORMED_XML.into());
    }
    let seat = request.extensions.get::<DocumentRoom>().map(DocumentRoom::enter);
    let (bytes, seat) = match read(body, limit, seat).await? {
        Ok(read) => read,
        Err(BodyError::TooLarge(_)) => return Err(crate::error::MALFORMED_XML.into()),
        Err(BodyError::TimedOut) => return Err(crate::error::REQUEST_TIMEOUT.into()),
        Err(_) => return Err(verdict.refusal().unwrap_or(INCOMPLETE_BODY.into())),
    };
    if let Some(refusal) = verdict.refusal() {
        return Err(refusal);
    }
    if let Some(md5) = content_md5 {
        let expected = md5_of_header(&md5)?;
        if Md5::digest(&bytes).as_slice() != expected {
            return Err(BAD_DIGEST.about("ExpectedDigest", md5));
        }
    }
    if let Some(mut seat) = seat {
        seat.grow(elements_of(&bytes))?;
        request.extensions.insert(DocumentSeat { _taken: Arc::new(seat) });
    }
    Ok(bytes)
}

/// The gateway's room for documents, and whose seat in it is a request's: the verified user's, as a key may name any
/// account; for one without a key, its address's.
#[derive(Clone)]
pub(crate) struct DocumentRoom {
    room: MemoryRoom,
    tenant: Arc<str>,
}

impl DocumentRoom {
    pub(crate) fn new(room: &MemoryRoom, from: IpAddr, verified: Option<&VerifiedKey>) -> Self {
        let tenant = match verified {
            Some(key) => key.principal.as_str().into(),
            None => client_network(from).to_string().into(),
        };
        let room = room.clone();
        Self { room, tenant }
    }

    fn enter(&self) -> MemorySeat {
        self.room.enter(self.tenant.clone())
    }
}

/// What a request has of the gateway's room, until it has been answered.
#[derive(Clone)]
struct DocumentSeat {
    _taken: Arc<MemorySeat>,
}

/// What the elements of a document take when it is read.
fn elements_of(document: &[u8]) -> u64 {
    let begins = |bytes: &&[u8]| matches!(bytes, [b'<', next] if *next != b'/');
    let begun = document.windows(2).filter(begins).count();
    begun.min(crate::xml::MAX_ELEMENTS) as u64 * ELEMENT
}

/// What an element takes, twice that while the list that it is in grows.
const ELEMENT: u64 = 320;

/// The whole of a body, each piece of which takes its room; refused where there is none.
async fn read(
    mut body: Body,
    limit: u64,
    mut seat: Option<MemorySeat>,
) -> Result<Result<(Bytes, Option<MemorySeat>), BodyError>, S3Error> {
    let mut all = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = match chunk {
            Ok(chunk) if (all.len() + chunk.len()) as u64 <= limit => chunk,
            Ok(_) => return Ok(Err(BodyError::TooLarge(limit))),
            Err(error) => return Ok(Err(error)),
        };
        // As much again for the texts that are copied from it.
        if let Some(refusal) = seat.as_mut().and_then(|seat| seat.grow(2 * chunk.len() as u64).err()) {
            drop((all, seat));
            pass_over(body).await;
            return Err(refusal.into());
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Ok((all.freeze(), seat)))
}

/// Takes in what is not read, up to a bound: some clients look at the answer only when all is sent.
async fn pass_over(mut body: Body) {
    let mut passed = 0;
    while passed < MOST_PASSED_OVER
        && let Some(Ok(chunk)) = body.next().await
    {
        passed += chunk.len() as u64;
    }
}

/// Bytes.
const MOST_PASSED_OVER: u64 = 256 << 20;

#[cfg(test)]
mod tests;
