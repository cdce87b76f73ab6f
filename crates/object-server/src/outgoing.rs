//! How bodies leave: pieces of an object, read ahead by one chunk while the one before is on its way.
//!
//! What fits into the first look at the object is sent without another hop to the workers; the rest
//! streams through a channel that holds one chunk.
//! Always holds: a body ends properly only when every byte promised has been sent.

use crate::devices::{Device, Trouble};
use bytes::{Bytes, BytesMut};
use object_engine::{EngineError, Found, ObjectEngine, ObjectReader};
use parking_lot::Mutex;
use peer::{Body, BodyError, Feed};
use std::sync::Arc;
use vocabulary::ByteRange;
use world::World;

/// Bytes per read: few hops for a big object, and at most three of these in memory per request.
const CHUNK: usize = 256 * 1024;

/// A stretch of a body to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// These bytes.
    Bytes(Bytes),
    /// This part of the object.
    Range(ByteRange),
    /// The object from where its first bytes ended.
    Rest(u64),
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Range(range) => range.len(),
            Piece::Rest(length) => *length,
        }
    }
}

/// What is to be sent, as far as it is known without reading more.
pub(crate) struct Sending {
    pieces: Vec<Piece>,
    reader: Option<Box<dyn ObjectReader>>,
}

impl Sending {
    /// Nothing.
    pub(crate) fn nothing() -> Self {
        let (pieces, reader) = (Vec::new(), None);
        Self { pieces, reader }
    }

    /// The whole object.
    pub(crate) fn whole(found: &mut Found) -> Self {
        let first = std::mem::take(&mut found.first);
        let rest = found.size - first.len() as u64;
        let mut pieces = vec![Piece::Bytes(first)];
        if rest > 0 {
            pieces.push(Piece::Rest(rest));
        }
        let reader = found.reader.take();
        Self { pieces, reader }
    }

    /// These pieces of the object. Blocks: what the first look did not bring of the first range is read
    /// now, so that a small range costs one hop.
    pub(crate) fn pieces(found: &mut Found, pieces: Vec<Piece>) -> Result<Self, EngineError> {
        let mut reader = found.reader.take();
        let mut ready = Vec::with_capacity(pieces.len());
        let mut has_read = false;
        for piece in pieces {
            let Piece::Range(range) = piece else {
                ready.push(piece);
                continue;
            };
            // Inside the first bytes, both ends fit a usize.
            if range.end <= found.first.len() as u64 {
                ready.push(Piece::Bytes(
                    found.first.slice(range.start as usize..range.end as usize),
                ));
                continue;
            }
            let start = match (&mut reader, has_read) {
                (Some(reader), false) => {
                    let bytes = read_range(&mut **reader, range)?;
                    has_read = true;
                    let start = range.start + bytes.len() as u64;
                    ready.push(Piece::Bytes(bytes));
                    start
                }
                _ => range.start,
            };
            if start < range.end {
                ready.push(Piece::Range(ByteRange { start, end: range.end }));
            }
        }
        Ok(Self { pieces: ready, reader })
    }

    /// How many bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// The body; what is still to be read is read from `device`.
    pub(crate) fn into_body(mut self, world: &World, device: &Arc<Device>) -> Body {
        if self.pieces.iter().all(|piece| matches!(piece, Piece::Bytes(_))) {
            return Body::whole(self.in_one());
        }
        let Some(reader) = self.reader.take() else {
            // Only an engine that contradicts itself: the size says there is more, but nobody to read it.
            let gone = BodyError::Device("the object has no reader".into());
            return Body::stream(futures_util::stream::iter([Err(gone)]), Some(self.len()));
        };
        let (feed, body) = Body::channel(1, Some(self.len()));
        let pump = Pump {
            world: world.clone(),
            device: device.clone(),
            reader: Arc::new(Mutex::new(reader)),
        };
        world.spawn(pump.run(self.pieces, feed));
        body
    }

    fn in_one(self) -> Bytes {
        let mut bytes = self.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes),
            _ => None,
        });
        let first = bytes.next().unwrap_or_default();
        let Some(second) = bytes.next() else { return first };
        let mut all = BytesMut::from(first.as_ref());
        all.extend_from_slice(&second);
        bytes.for_each(|more| all.extend_from_slice(&more));
        all.freeze()
    }
}

fn read_range(reader: &mut dyn ObjectReader, range: ByteRange) -> Result<Bytes, EngineError> {
    let length = usize::try_from(range.len()).unwrap_or(usize::MAX).min(CHUNK);
    reader.read_at(range.start, length)
}

struct Pump {
    world: World,
    device: Arc<Device>,
    /// Shared with the job that reads, so that a refused job does not take it along.
    reader: Arc<Mutex<Box<dyn ObjectReader>>>,
}

impl Pump {
    async fn run(self, pieces: Vec<Piece>, feed: Feed) {
        for piece in pieces {
            match self.send(piece, &feed).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!("device {}: {error} in the middle of a body", self.device.name);
                    return feed.fail(error).await;
                }
            }
        }
        feed.finish().await;
    }

    /// `false` when nobody wants it any more.
    async fn send(&self, piece: Piece, feed: &Feed) -> Result<bool, BodyError> {
        let (mut offset, mut left) = match piece {
            Piece::Bytes(bytes) => return Ok(bytes.is_empty() || feed.send(bytes).await),
            Piece::Range(range) => (Some(range.start), range.len()),
            Piece::Rest(length) => (None, length),
        };
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
            let chunk = self.read(offset, want).await?;
            let length = chunk.len() as u64;
            if chunk.is_empty() || length > left {
                return Err(BodyError::Device("the object is not as long as it was".into()));
            }
            left -= length;
            offset = offset.map(|start| start + length);
            if !feed.send(chunk).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn read(&self, offset: Option<u64>, want: usize) -> Result<Bytes, BodyError> {
        let job = || {
            let reader = self.reader.clone();
            move |_: &dyn ObjectEngine| match offset {
                Some(offset) => reader.lock().read_at(offset, want),
                None => reader.lock().read(want),
            }
        };
        let read = self.device.run_patiently(&self.world, job).await;
        read.map_err(|trouble| match trouble {
            Trouble::Engine(EngineError::Corrupt { .. } | EngineError::Quarantined { .. }) => BodyError::Corrupt,
            trouble => BodyError::Device(format!("{trouble:?}")),
        })
    }
}
