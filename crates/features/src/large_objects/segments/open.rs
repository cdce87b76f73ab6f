//! One segment of a large object while it is sent.
//!
//! Always holds: it is what the manifest says, by entity tag and size, or it is not opened; it ends properly
//! only with as many bytes as it announced and, where all of it is read, with those of its entity tag.

use super::{ObjectPiece, SegmentFailure, text};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use md5::{Digest, Md5};
use peer::{Body, BodyError};
use request_pipeline::Response;
use vocabulary::EntityPath;
use vocabulary::conditional::bare_etag;

/// What a segment says of itself.
struct Found {
    etag: String,
    size: Option<u64>,
    /// Bytes that it sends.
    sends: Option<u64>,
}

impl Found {
    fn of(response: &Response) -> Self {
        let headers = response.headers();
        let etag = bare_etag(text(headers, ETAG.as_str()).unwrap_or("")).to_owned();
        let sends: Option<u64> = text(headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
        let sends = sends.or(response.body().length());
        let total = |range: &str| range.rsplit_once('/')?.1.parse().ok();
        let size = match response.status() == StatusCode::PARTIAL_CONTENT {
            true => text(headers, CONTENT_RANGE.as_str()).and_then(total),
            false => sends,
        };
        Self { etag, size, sends }
    }

    /// Why it is not what the manifest says.
    fn problem(&self, piece: &ObjectPiece) -> Option<String> {
        let wrong_etag = piece.etag.as_deref().is_some_and(|etag| bare_etag(etag) != self.etag);
        let wrong_size = piece.size.is_some() && self.size.is_some() && piece.size != self.size;
        let wrong_range = piece
            .range
            .is_some_and(|range| self.sends.is_some_and(|sends| sends != range.len()));
        if !(wrong_etag || wrong_size || wrong_range) {
            return None;
        }
        Some(format!(
            "Object segment no longer valid: {} etag: {} != {} or {:?} != {:?}.",
            piece.path.path(),
            self.etag,
            piece.etag.as_deref().unwrap_or("*"),
            self.size,
            piece.size
        ))
    }
}

/// A segment that is being sent.
pub(super) struct OpenSegment {
    pub(super) path: EntityPath,
    etag: String,
    body: Body,
    length: Option<u64>,
    /// Bytes to come, if that is known.
    pub(super) left: Option<u64>,
    md5: Option<Md5>,
}

impl OpenSegment {
    /// The answer to a GET of `piece`; `Err` says why it is not what the manifest says.
    pub(super) fn of(piece: ObjectPiece, response: Response) -> Result<Self, SegmentFailure> {
        let found = Found::of(&response);
        if let Some(problem) = found.problem(&piece) {
            return Err(SegmentFailure::Conflict(problem));
        }
        let is_whole = response.status() != StatusCode::PARTIAL_CONTENT;
        let expected = match &piece.range {
            Some(range) => Some(range.len()),
            None => found.size.filter(|_| is_whole),
        };
        Ok(Self {
            md5: (is_whole && is_md5(&found.etag)).then(Md5::new),
            path: piece.path,
            etag: found.etag,
            body: response.into_body(),
            length: expected,
            left: expected,
        })
    }

    /// The next bytes; `None` when all have come and are what they should be.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Some(chunk) = self.body.next().await.transpose()? else {
            return self.end().map(|()| None);
        };
        if let Some(left) = &mut self.left {
            *left = left
                .checked_sub(chunk.len() as u64)
                .ok_or(BodyError::TooLarge(self.length.unwrap_or(0)))?;
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(&chunk);
        }
        Ok(Some(chunk))
    }

    fn end(&mut self) -> Result<(), BodyError> {
        if self.left.is_some_and(|left| left > 0) {
            tracing::error!("Bad response length for {}: bytes are missing", self.path.path());
            return Err(BodyError::Abandoned);
        }
        let Some(md5) = self.md5.take() else { return Ok(()) };
        let found = vocabulary::hex::encode(md5.finalize());
        if found == self.etag {
            return Ok(());
        }
        tracing::error!(
            "Bad MD5 checksum for {}: headers had {}, but object MD5 was actually {found}",
            self.path.path(),
            self.etag
        );
        Err(BodyError::Corrupt)
    }
}

fn is_md5(etag: &str) -> bool {
    etag.len() == 32 && etag.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}
