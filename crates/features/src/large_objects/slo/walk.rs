//! From the bytes a client wants to the bytes of segments: manifests within manifests, laid end to end.
//!
//! Comes in: a manifest and spans of the large object, in the order they are to be sent. Goes out: pieces.
//! Always holds: a manifest is fetched only when bytes of it are wanted, and once while it is in use; one
//! that is no longer what its parent says is a failure, so no manifest can come to contain itself; and
//! manifests lie at most [`MAX_DEPTH`] deep in each other.

use super::manifest::{self, Content, Object, Segment};
use crate::large_objects::segments::{Asking, ObjectPiece, Piece, Pieces, SegmentFailure, text};
use bytes::Bytes;
use request_pipeline::Response;
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::conditional::bare_etag;
use vocabulary::{ByteRange, EntityPath};

/// Manifests in manifests, the first included.
const MAX_DEPTH: usize = 10;
/// Manifests kept for when they come again.
const KEPT: usize = 10;

/// What is to be sent.
pub(crate) enum ManifestPart {
    /// These bytes: what stands between ranges.
    Data(Bytes),
    /// These bytes of the large object.
    Span(ByteRange),
}

/// A manifest that is being read.
struct Frame {
    segments: Arc<Vec<Segment>>,
    /// The next segment, and where it begins in this large object.
    at: usize,
    begins: u64,
    /// What is wanted of this large object.
    wanted: ByteRange,
}

/// Walks through a large object.
pub(crate) struct Walk {
    segments: Arc<Vec<Segment>>,
    parts: VecDeque<ManifestPart>,
    frames: Vec<Frame>,
    kept: VecDeque<(String, Arc<Vec<Segment>>)>,
    pacing: super::Pacing,
}

impl Walk {
    pub(crate) fn new(segments: Arc<Vec<Segment>>, parts: VecDeque<ManifestPart>, pacing: super::Pacing) -> Self {
        Self {
            segments,
            parts,
            frames: Vec::new(),
            kept: VecDeque::new(),
            pacing,
        }
    }

    /// The next segment of the innermost manifest with the bytes wanted of it (counted in what it adds);
    /// `None` when that manifest has no more.
    fn step(frame: &mut Frame) -> Option<(Segment, ByteRange)> {
        while frame.begins < frame.wanted.end {
            let segment = frame.segments.get(frame.at)?;
            let begins = frame.begins;
            frame.at += 1;
            frame.begins = begins.saturating_add(segment.length);
            let start = frame.wanted.start.max(begins);
            let end = frame.wanted.end.min(frame.begins);
            if start < end {
                let wanted = ByteRange {
                    start: start - begins,
                    end: end - begins,
                };
                return Some((segment.clone(), wanted));
            }
        }
        None
    }

    async fn enter(&mut self, asking: &Asking, object: &Object, wanted: ByteRange) -> Result<(), SegmentFailure> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(SegmentFailure::Conflict(format!(
                "While processing manifest '{}', max recursion depth was exceeded",
                asking.large_object()
            )));
        }
        let known = self.kept.iter().find(|(name, _)| *name == object.name);
        let segments = match known {
            Some((_, segments)) => segments.clone(),
            None => {
                let segments = Arc::new(fetch(asking, object).await?);
                if self.kept.len() >= KEPT {
                    self.kept.pop_front();
                }
                self.kept.push_back((object.name.clone(), segments.clone()));
                segments
            }
        };
        self.frames.push(Frame {
            segments,
            at: 0,
            begins: 0,
            wanted,
        });
        Ok(())
    }
}

#[async_trait::async_trait]
impl Pieces for Walk {
    async fn next(&mut self, asking: &Asking) -> Result<Option<Piece>, SegmentFailure> {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                match self.parts.pop_front() {
                    None => return Ok(None),
                    Some(ManifestPart::Data(bytes)) => return Ok(Some(Piece::Data(bytes))),
                    Some(ManifestPart::Span(wanted)) => self.frames.push(Frame {
                        segments: self.segments.clone(),
                        at: 0,
                        begins: 0,
                        wanted,
                    }),
                }
                continue;
            };
            let Some((segment, wanted)) = Self::step(frame) else {
                self.frames.pop();
                continue;
            };
            let object = match segment.content {
                Content::Data(bytes) => return Ok(Some(Piece::Data(cut(&bytes, wanted)))),
                Content::Object(object) => object,
            };
            let base = object.range.map_or(0, |range| range.start);
            let wanted = ByteRange {
                start: base + wanted.start,
                end: base + wanted.end,
            };
            if object.is_large {
                self.enter(asking, &object, wanted).await?;
                continue;
            }
            self.pacing.wait(segment.length, asking.clock()).await;
            let path = path(asking, &object)?;
            let is_whole = wanted.start == 0 && wanted.end == object.size;
            return Ok(Some(Piece::Object(ObjectPiece {
                path,
                range: (!is_whole).then_some(wanted),
                etag: Some(object.etag),
                size: Some(object.size),
            })));
        }
    }
}

/// Bytes of a data segment; `wanted` lies inside it.
fn cut(bytes: &Bytes, wanted: ByteRange) -> Bytes {
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(at(wanted.start)..at(wanted.end))
}

fn path(asking: &Asking, object: &Object) -> Result<EntityPath, SegmentFailure> {
    let names = object.names();
    let (container, name) =
        names.ok_or_else(|| SegmentFailure::Conflict(format!("{} names no object", object.name)))?;
    Ok(EntityPath::account(asking.account())
        .with_container(container)
        .with_object(name))
}

/// The segments of a large object that is a segment itself.
async fn fetch(asking: &Asking, object: &Object) -> Result<Vec<Segment>, SegmentFailure> {
    let path = path(asking, object)?;
    let mut request = asking.request(path.clone());
    request.query = "multipart-manifest=get".into();
    let response = asking.send(request).await;
    if !response.status().is_success() {
        return Err(asking.refused("submanifest", &path, response).await);
    }
    let is_manifest = super::is_large(response.headers());
    let (etag, size) = slo_etag_and_size(&response);
    let segments = super::collect(response)
        .await
        .map_err(|fault| SegmentFailure::Unavailable(fault.what))?;
    let segments = manifest::read(&segments).ok().filter(|_| is_manifest);
    let changed = || {
        SegmentFailure::Conflict(format!(
            "Object segment no longer valid: {} is not the large object with etag {} and {} bytes",
            path.path(),
            object.etag,
            object.size
        ))
    };
    let segments = segments.ok_or_else(changed)?;
    let etag = etag.unwrap_or_else(|| manifest::etag(&segments));
    let size = size.or_else(|| manifest::length(&segments));
    match bare_etag(&object.etag) == etag && size == Some(object.size) {
        true => Ok(segments),
        false => Err(changed()),
    }
}

fn slo_etag_and_size(response: &Response) -> (Option<String>, Option<u64>) {
    let known = |name| text(response.headers(), name).filter(|value| !value.is_empty());
    let etag = known(super::ETAG_AT).map(str::to_owned);
    (etag, known(super::SIZE_AT).and_then(|size| size.parse().ok()))
}
