//! From the bytes a client wants to the bytes of segments: manifests within manifests, laid end to end.
//!
//! Comes in: a manifest and spans of the large object, in the order they are to be sent. Goes out: pieces.
//! Always holds: a manifest is fetched only when bytes of it are wanted, and kept while those that came later are not
//! too large; one that is no longer what its parent says is a failure, so no manifest can come to contain itself;
//! manifests lie at most [`MAX_DEPTH`] deep in each other. A download keeps the manifest it was asked for, the one that
//! it is in, and [`MOST_KEPT`] bytes of others; the rest is fetched again, at the pace of small segments.

use super::manifest::{Content, Object, SegmentList};
use super::{HeldManifest, Shared, Unread};
use crate::large_objects::segments::{Asking, ObjectPiece, Piece, Pieces, SegmentFailure, text};
use bytes::Bytes;
use request_pipeline::{NoRoom, Response};
use std::collections::VecDeque;
use std::sync::Arc;
use vocabulary::conditional::bare_etag;
use vocabulary::{ByteRange, EntityPath};

/// Manifests in manifests, the first included.
const MAX_DEPTH: usize = 10;
/// Bytes of manifests kept for when they come again.
const MOST_KEPT: u64 = 1 << 20;

/// What is to be sent.
pub(crate) enum ManifestPart {
    /// These bytes: what stands between ranges.
    Data(Bytes),
    /// These bytes of the large object.
    Span(ByteRange),
}

/// A manifest that is being read.
struct Frame {
    /// Which; the one that was asked for when absent.
    object: Option<Object>,
    /// What is still wanted of this large object.
    wanted: ByteRange,
}

/// What comes next of a frame.
enum Step {
    Data(Bytes),
    /// These bytes of an object.
    Object(Object, ByteRange),
    /// All has been sent.
    End,
}

/// Walks through a large object.
pub(crate) struct Walk {
    shared: Arc<Shared>,
    whole: Arc<HeldManifest>,
    parts: VecDeque<ManifestPart>,
    frames: Vec<Frame>,
    /// Manifests within it, those that were used last behind.
    kept: VecDeque<(Object, Arc<HeldManifest>)>,
    pacing: super::Pacing,
}

impl Walk {
    pub(crate) fn new(shared: Arc<Shared>, whole: Arc<HeldManifest>, parts: VecDeque<ManifestPart>) -> Self {
        Self {
            pacing: super::Pacing::new(&shared.settings),
            shared,
            whole,
            parts,
            frames: Vec::new(),
            kept: VecDeque::new(),
        }
    }

    fn enter(&mut self, asking: &Asking, object: Object, wanted: ByteRange) -> Result<(), SegmentFailure> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(SegmentFailure::Conflict(format!(
                "While processing manifest '{}', max recursion depth was exceeded",
                asking.large_object()
            )));
        }
        self.frames.push(Frame {
            object: Some(object),
            wanted,
        });
        Ok(())
    }

    /// The manifest of the innermost frame.
    async fn manifest(&mut self, asking: &Asking) -> Result<Arc<HeldManifest>, SegmentFailure> {
        let Some(object) = self.frames.last().and_then(|frame| frame.object.as_ref()) else {
            return Ok(self.whole.clone());
        };
        let known = self.kept.iter().position(|(known, _)| known == object);
        let (object, held) = match known.and_then(|at| self.kept.remove(at)) {
            Some(known) => known,
            None => {
                self.pacing.wait_for_manifest(asking.clock()).await;
                let held = fetch(&self.shared, asking, object).await?;
                self.pacing.fetched(held.manifest.weight());
                (object.clone(), held)
            }
        };
        self.kept.push_back((object, held.clone()));
        let mut behind = 0;
        let others = self.kept.iter().rev().skip(1);
        let fit = others.take_while(|(_, held)| {
            behind += held.manifest.weight();
            behind <= MOST_KEPT
        });
        let too_many = self.kept.len() - 1 - fit.count();
        self.kept.drain(..too_many);
        Ok(held)
    }
}

impl Frame {
    /// The bytes that come next, which are then wanted no more.
    fn step(&mut self, manifest: &SegmentList) -> Step {
        if self.wanted.is_empty() {
            return Step::End;
        }
        let at = manifest.at(self.wanted.start);
        if let Some(bytes) = manifest.data_at(at, self.wanted) {
            self.wanted.start += bytes.len() as u64;
            return Step::Data(bytes);
        }
        let Some(segment) = manifest.segment(at) else {
            return Step::End;
        };
        let Content::Object(object) = segment.content else {
            return Step::End;
        };
        let begins = manifest.begins(at);
        let base = object.range.map_or(0, |range| range.start);
        let end = self.wanted.end.min(begins + segment.length);
        let wanted = ByteRange {
            start: base + (self.wanted.start - begins),
            end: base + (end - begins),
        };
        self.wanted.start = end;
        Step::Object(object, wanted)
    }
}

#[async_trait::async_trait]
impl Pieces for Walk {
    async fn next(&mut self, asking: &Asking) -> Result<Option<Piece>, SegmentFailure> {
        loop {
            if self.frames.is_empty() {
                match self.parts.pop_front() {
                    None => return Ok(None),
                    Some(ManifestPart::Data(bytes)) => return Ok(Some(Piece::Data(bytes))),
                    Some(ManifestPart::Span(wanted)) => self.frames.push(Frame { object: None, wanted }),
                }
            }
            let held = self.manifest(asking).await?;
            let Some(frame) = self.frames.last_mut() else { continue };
            let (object, wanted) = match frame.step(&held.manifest) {
                Step::Object(object, wanted) => (object, wanted),
                Step::Data(bytes) => {
                    self.pacing.pass(bytes.len() as u64);
                    return Ok(Some(Piece::Data(bytes)));
                }
                Step::End => {
                    self.frames.pop();
                    continue;
                }
            };
            if object.is_large {
                self.enter(asking, object, wanted)?;
                continue;
            }
            let length = object.range.map_or(object.size, |range| range.len());
            self.pacing.wait(length, asking.clock()).await;
            self.pacing.pass(wanted.len());
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

fn path(asking: &Asking, object: &Object) -> Result<EntityPath, SegmentFailure> {
    let names = object.names();
    let (container, name) =
        names.ok_or_else(|| SegmentFailure::Conflict(format!("{} names no object", object.name)))?;
    Ok(EntityPath::account(asking.account())
        .with_container(container)
        .with_object(name))
}

/// The segments of a large object that is a segment itself.
async fn fetch(shared: &Shared, asking: &Asking, object: &Object) -> Result<Arc<HeldManifest>, SegmentFailure> {
    let path = path(asking, object)?;
    let mut request = asking.request(path.clone());
    request.query = "multipart-manifest=get".into();
    let response = asking.send(request).await;
    if !response.status().is_success() {
        return Err(asking.refused("submanifest", &path, response).await);
    }
    let changed = || {
        SegmentFailure::Conflict(format!(
            "Object segment no longer valid: {} is not the large object with etag {} and {} bytes",
            path.path(),
            object.etag,
            object.size
        ))
    };
    let is_manifest = super::is_large(response.headers());
    let (etag, size) = slo_etag_and_size(&response);
    let differs = etag.as_deref().is_some_and(|etag| bare_etag(&object.etag) != etag)
        || size.is_some_and(|size| size != object.size);
    if !is_manifest || differs {
        return Err(changed());
    }
    let held = shared
        .read(asking.from(), response.into_body())
        .await
        .map_err(|problem| match problem {
            Unread::NotAManifest => changed(),
            Unread::Broken(error) => SegmentFailure::Unavailable(format!("{} could not be read: {error}", path.path())),
            Unread::NoRoom(NoRoom) => SegmentFailure::Unavailable(NoRoom::TEXT.into()),
        })?;
    let etag = etag.unwrap_or_else(|| held.manifest.etag());
    let size = size.or_else(|| held.manifest.length());
    match bare_etag(&object.etag) == etag && size == Some(object.size) {
        true => Ok(held),
        false => Err(changed()),
    }
}

fn slo_etag_and_size(response: &Response) -> (Option<String>, Option<u64>) {
    let known = |name| text(response.headers(), name).filter(|value| !value.is_empty());
    let etag = known(super::ETAG_AT).map(str::to_owned);
    (etag, known(super::SIZE_AT).and_then(|size| size.parse().ok()))
}
