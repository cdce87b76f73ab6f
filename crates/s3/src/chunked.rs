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
use crate::error::{INCOMPLETE_BODY, INVALID_CHUNK_SIZE, MALFORMED_TRAILER, S3Error, SIGNATURE_DOES_NOT_MATCH};
use bytes::{Buf, Bytes, BytesMut};
use identity::signed_request::sha256;
use peer::Body;
use subtle::ConstantTimeEq;

/// Bytes of a chunk's line, and of the headers behind the last chunk.
const LONGEST_LINE: usize = 1024;
const LONGEST_TRAILER: usize = 16 * 1024;
/// Bytes of one signed chunk, which is held until its signature was verified; SDKs send 64 KiB to 1 MiB.
const LARGEST_SIGNED_CHUNK: u64 = 16 << 20;

/// What signatures of chunks are verified with.
pub struct ChunkSigning {
    key: [u8; 32],
    /// `TIME\nSCOPE`, as in every string to sign.
    heading: String,
    /// The signature of what came before.
    previous: String,
}

impl ChunkSigning {
    /// From the key, time, scope and signature of the request's head.
    pub fn new(key: [u8; 32], time: &str, scope: &str, seed: &str) -> Self {
        Self {
            key,
            heading: format!("{time}\n{scope}"),
            previous: seed.to_owned(),
        }
    }

    fn verify(&mut self, algorithm: &str, content: &str, signature: &str) -> Result<(), S3Error> {
        let message = format!("{algorithm}\n{}\n{}\n{content}", self.heading, self.previous);
        let expected = vocabulary::hex::encode(sha256(&self.key, message.as_bytes()));
        if !bool::from(expected.as_bytes().ct_eq(signature.as_bytes())) {
            return Err(SIGNATURE_DOES_NOT_MATCH.into());
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
}

/// Reads such a body.
pub struct ChunkedBody {
    body: Body,
    buffer: BytesMut,
    signing: Option<ChunkSigning>,
    has_trailer: bool,
    trailer: Trailer,
    /// Bytes of the object that are still to come.
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
        if size > self.left {
            return Err(Some(INCOMPLETE_BODY.into()));
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

    async fn signed_bytes(&mut self, size: u64, signature: Option<String>) -> Result<Bytes, ChunkError> {
        if size > LARGEST_SIGNED_CHUNK {
            return Err(Some(INVALID_CHUNK_SIZE.into()));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        while self.buffer.len() < size {
            self.more().await?;
        }
        let bytes = self.buffer.split_to(size).freeze();
        if let Some(signing) = &mut self.signing {
            signing.verify_chunk(&bytes, &signature.unwrap_or_default())?;
        }
        self.line_end().await?;
        Ok(bytes)
    }

    /// Behind the last chunk.
    async fn end(&mut self, signature: Option<String>) -> Result<(), ChunkError> {
        if self.left > 0 {
            return Err(Some(INCOMPLETE_BODY.into()));
        }
        if let Some(signing) = &mut self.signing {
            signing.verify_chunk(b"", &signature.unwrap_or_default())?;
        }
        let mut signed = String::new();
        let mut trailer_signature = String::new();
        loop {
            let room = LONGEST_TRAILER.saturating_sub(signed.len()).min(LONGEST_LINE);
            let line = match self.line(room).await {
                // Some clients leave out the empty line at the end.
                Err(None) if self.buffer.is_empty() => break,
                line => line?,
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
        if self.has_trailer
            && let Some(signing) = &mut self.signing
        {
            signing.verify_trailer(&signed, &trailer_signature)?;
        }
        Ok(())
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
            Some(Err(_)) | None => Err(None),
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
                let line = line.strip_suffix(b"\r").unwrap_or(&line);
                return String::from_utf8(line.to_vec()).map_err(|_| Some(INVALID_CHUNK_SIZE.into()));
            }
            if self.buffer.len() > longest {
                return Err(Some(INVALID_CHUNK_SIZE.into()));
            }
            self.more().await?;
        }
    }
}

fn parse_line(line: &str) -> Result<(u64, Option<String>), S3Error> {
    let (size, extension) = line.split_once(';').unwrap_or((line, ""));
    let is_hex = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = u64::from_str_radix(size, 16).ok().filter(|_| is_hex);
    let signature = extension.trim().strip_prefix("chunk-signature=").map(str::to_owned);
    size.map(|size| (size, signature)).ok_or(INVALID_CHUNK_SIZE.into())
}

#[cfg(test)]
mod tests;
