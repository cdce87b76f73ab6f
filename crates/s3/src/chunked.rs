//! `aws-chunked`: a body in chunks, each perhaps with a signature, perhaps with headers behind the last one.
//!
//! ```text
//! 10000;chunk-signature=…\r\n … bytes … \r\n
//! 0;chunk-signature=…\r\n
//! x-amz-checksum-crc32:…\r\n
//! x-amz-trailer-signature:…\r\n
//! \r\n
//! ```
//! Always holds: the line of a chunk and the headers behind the last one are limited before they are kept; a chunk of
//! a signed body is handed on after its signature was verified, which is why such chunks are limited; the bytes of
//! unsigned ones pass as they come.
//! Source: AWS, "Signature calculations for the Authorization header: transferring payload in multiple chunks".

use crate::checksum::{Trailer, sha256_hex};
use crate::error::{INCOMPLETE_BODY, INVALID_CHUNK_SIZE, MALFORMED_TRAILER, S3Error};
use bytes::{Buf, Bytes, BytesMut};
use identity::signed_request::sha256;
use identity::{SignedRequest, SigningScope};
use peer::Body;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Bytes of a chunk's line, and of the headers behind the last chunk.
const LONGEST_LINE: usize = 1024;
const LONGEST_TRAILER: usize = 16 * 1024;
/// Bytes of one signed chunk, which is held until its signature was verified; SDKs send 64 KiB to 1 MiB.
const LARGEST_SIGNED_CHUNK: u64 = 16 << 20;

/// Bytes that every signed chunk but the last must have.
const LEAST_SIGNED_CHUNK: u64 = 8192;

/// What signatures of chunks are verified with.
pub struct ChunkSigning {
    key: [u8; 32],
    /// When the head was signed, in the long form of ISO 8601.
    time: String,
    head: Arc<SignedRequest>,
    /// The signature of what came before.
    previous: String,
    /// Chunks so far, and the bytes of the last.
    chunks: u64,
    last_size: u64,
}

impl ChunkSigning {
    /// From the derived key, and the time and signature of the request's head.
    pub fn new(key: [u8; 32], time: &str, head: Arc<SignedRequest>) -> Self {
        Self {
            key,
            time: time.to_owned(),
            previous: head.signature.clone(),
            head,
            chunks: 0,
            last_size: LEAST_SIGNED_CHUNK,
        }
    }

    fn verify(&mut self, algorithm: &str, content: &str, signature: &str) -> Result<(), S3Error> {
        let scope = self.head.scope.as_ref().map(SigningScope::text).unwrap_or_default();
        let message = format!("{algorithm}\n{}\n{scope}\n{}\n{content}", self.time, self.previous);
        let expected = vocabulary::hex::encode(sha256(&self.key, message.as_bytes()));
        if !bool::from(expected.as_bytes().ct_eq(signature.as_bytes())) {
            let head = &self.head;
            let canonical = head.canonical_request.as_deref();
            return Err(S3Error::wrong_signature(
                &head.access_key,
                &message,
                signature,
                canonical,
            ));
        }
        self.previous = expected;
        Ok(())
    }

    fn verify_chunk(&mut self, bytes: &[u8], signature: &str) -> Result<(), S3Error> {
        let content = format!("{}\n{}", sha256_hex(b""), sha256_hex(bytes));
        self.verify("AWS4-HMAC-SHA256-PAYLOAD", &content, signature)
    }

    fn verify_trailer(&mut self, headers: &str, signature: &str) -> Result<(), S3Error> {
        self.verify("AWS4-HMAC-SHA256-TRAILER", &sha256_hex(headers.as_bytes()), signature)
    }

    /// A chunk of this size begins: no small one may have been before it.
    fn begin(&mut self, size: u64) -> Result<(), S3Error> {
        self.chunks += 1;
        if size > 0 && self.last_size < LEAST_SIGNED_CHUNK {
            return Err(INVALID_CHUNK_SIZE
                .about("Chunk", self.chunks.to_string())
                .with("BadChunkSize", self.last_size.to_string()));
        }
        self.last_size = size;
        Ok(())
    }
}

/// Reads such a body.
pub struct ChunkedBody {
    body: Body,
    buffer: BytesMut,
    signing: Option<ChunkSigning>,
    has_trailer: bool,
    trailer: Trailer,
    /// Bytes of the object, and how many of them are still to come.
    length: u64,
    left: u64,
    /// Bytes of the present chunk that are still to come; of an unsigned body only.
    in_chunk: u64,
    is_over: bool,
}

/// A refusal; without a reason of ours when the client has gone.
pub type ChunkError = Option<S3Error>;

impl ChunkedBody {
    /// Reads `length` bytes out of `body`; what comes behind them goes to `trailer`.
    pub fn new(body: Body, signing: Option<ChunkSigning>, has_trailer: bool, length: u64, trailer: Trailer) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            signing,
            has_trailer,
            trailer,
            length,
            left: length,
            in_chunk: 0,
            is_over: false,
        }
    }

    /// The next bytes of the object; nothing when all have come and what follows them is as it should be.
    pub async fn next(&mut self) -> Option<Result<Bytes, ChunkError>> {
        if self.is_over {
            return None;
        }
        let found = self.read().await.transpose();
        self.is_over = !matches!(found, Some(Ok(_)));
        found
    }

    async fn read(&mut self) -> Result<Option<Bytes>, ChunkError> {
        if self.in_chunk > 0 {
            return self.unsigned_bytes().await.map(Some);
        }
        let line = self.line(LONGEST_LINE).await?;
        let (size, signature) = parse_line(&line)?;
        if let Some(signing) = &mut self.signing {
            signing.begin(size)?;
            if signature.is_empty() {
                return Err(Some(INCOMPLETE_BODY.into()));
            }
        }
        if size > self.left {
            let provided = (self.length - self.left).saturating_add(size);
            return Err(Some(S3Error::wrong_length(provided, self.length)));
        }
        self.left -= size;
        if size == 0 {
            return self.end(signature).await.map(|()| None);
        }
        if self.signing.is_some() {
            return self.signed_bytes(size, signature).await.map(Some);
        }
        self.in_chunk = size;
        self.unsigned_bytes().await.map(Some)
    }

    async fn unsigned_bytes(&mut self) -> Result<Bytes, ChunkError> {
        if self.buffer.is_empty() {
            self.more().await?;
        }
        let take = usize::try_from(self.in_chunk)
            .unwrap_or(usize::MAX)
            .min(self.buffer.len());
        let bytes = self.buffer.split_to(take).freeze();
        self.in_chunk -= take as u64;
        if self.in_chunk == 0 {
            self.line_end().await?;
        }
        Ok(bytes)
    }

    async fn signed_bytes(&mut self, size: u64, signature: String) -> Result<Bytes, ChunkError> {
        if size > LARGEST_SIGNED_CHUNK {
            return Err(Some(INVALID_CHUNK_SIZE.into()));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        while self.buffer.len() < size {
            self.more().await?;
        }
        let bytes = self.buffer.split_to(size).freeze();
        if let Some(signing) = &mut self.signing {
            signing.verify_chunk(&bytes, &signature)?;
        }
        self.line_end().await?;
        Ok(bytes)
    }

    /// Behind the last chunk.
    async fn end(&mut self, signature: String) -> Result<(), ChunkError> {
        if self.left > 0 {
            return Err(Some(S3Error::wrong_length(self.length - self.left, self.length)));
        }
        if let Some(signing) = &mut self.signing {
            signing.verify_chunk(b"", &signature)?;
        }
        let mut signed = String::new();
        let mut trailer_signature = String::new();
        loop {
            let room = LONGEST_TRAILER.saturating_sub(signed.len()).min(LONGEST_LINE);
            // Some clients leave out the empty line at the end.
            let line = match self.is_at_end().await? {
                true => String::new(),
                false => self.line(room).await?,
            };
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(Some(MALFORMED_TRAILER.into()))?;
            if name.eq_ignore_ascii_case("x-amz-trailer-signature") {
                trailer_signature = value.trim().to_owned();
                continue;
            }
            if !self.has_trailer {
                return Err(Some(MALFORMED_TRAILER.into()));
            }
            signed.push_str(&format!("{}:{}\n", name.to_ascii_lowercase(), value.trim()));
            self.trailer.note(name, value);
        }
        match &mut self.signing {
            Some(_) if self.has_trailer == trailer_signature.is_empty() => Err(Some(INCOMPLETE_BODY.into())),
            Some(signing) if self.has_trailer => Ok(signing.verify_trailer(&signed, &trailer_signature)?),
            _ => Ok(()),
        }
    }

    /// Whether nothing follows.
    async fn is_at_end(&mut self) -> Result<bool, ChunkError> {
        while self.buffer.is_empty() {
            match self.body.next().await {
                Some(Ok(bytes)) => self.buffer = bytes.into(),
                Some(Err(_)) => return Err(None),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    async fn more(&mut self) -> Result<(), ChunkError> {
        match self.body.next().await {
            Some(Ok(bytes)) if self.buffer.is_empty() => {
                // Without a copy where nothing else holds the bytes.
                self.buffer = bytes.into();
                Ok(())
            }
            Some(Ok(bytes)) => {
                self.buffer.extend_from_slice(&bytes);
                Ok(())
            }
            Some(Err(_)) => Err(None),
            None => Err(Some(INCOMPLETE_BODY.into())),
        }
    }

    async fn line_end(&mut self) -> Result<(), ChunkError> {
        match self.line(LONGEST_LINE).await?.is_empty() {
            true => Ok(()),
            false => Err(Some(INCOMPLETE_BODY.into())),
        }
    }

    async fn line(&mut self, longest: usize) -> Result<String, ChunkError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                let line = line.strip_suffix(b"\r").map(|line| String::from_utf8(line.to_vec()));
                return match line {
                    Some(Ok(line)) => Ok(line),
                    _ => Err(Some(INCOMPLETE_BODY.into())),
                };
            }
            if self.buffer.len() > longest {
                return Err(Some(INCOMPLETE_BODY.into()));
            }
            self.more().await?;
        }
    }
}

/// `SIZE;chunk-signature=…`: the size, and the signature; an empty one where there is none.
fn parse_line(line: &str) -> Result<(u64, String), S3Error> {
    let (size, extension) = line.split_once(';').unwrap_or((line, ""));
    let size = size.trim_end();
    let is_hex = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = u64::from_str_radix(size, 16).ok().filter(|_| is_hex);
    let size = size.ok_or(S3Error::from(INCOMPLETE_BODY))?;
    let (name, value) = extension.split_once('=').unwrap_or((extension, ""));
    match name.trim() {
        "chunk-signature" if value.contains(';') => Err(INCOMPLETE_BODY.into()),
        _ => Ok((size, value.trim().to_owned())),
    }
}

#[cfg(test)]
mod tests;
