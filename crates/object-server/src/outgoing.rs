//! How bodies leave: pieces of an object, read ahead by one chunk while the one before is on its way.
//!
//! What fits into the first look at the object is sent without another hop to the workers; the rest
//! streams through a channel that holds one chunk.
//! Always holds: a body ends properly only when every byte promised has been sent.

use crate::devices::ObjectDevice;
use crate::refusal::refused_by;
use bytes::{Bytes, BytesMut};
use object_engine::{EngineError, FoundObject, ObjectReader};
use parking_lot::Mutex;
use peer::{Body, BodyError, Feed};
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{Refusal, Turn};
use vocabulary::ByteRange;
use world::{Clock, World};

/// Bytes per read: few hops for a big object. A client that takes nothing holds up to three of these: one that is being
/// written, one behind it, and one in the channel.
const CHUNK: usize = 256 * 1024;
/// … for a client that took no chunk for [`SLOW`], until it takes one sooner.
const SLOW_CHUNK: usize = 64 * 1024;
const SLOW: Duration = Duration::from_secs(1);

/// A stretch of a body to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyPiece {
    /// These bytes.
    Bytes(Bytes),
    /// This part of the object.
    Range(ByteRange),
    /// The object from where its first bytes ended.
    Rest(u64),
}

impl BodyPiece {
    fn len(&self) -> u64 {
        match self {
            BodyPiece::Bytes(bytes) => bytes.len() as u64,
            BodyPiece::Range(range) => range.len(),
            BodyPiece::Rest(length) => *length,
        }
    }
}

/// What is to be sent, as far as it is known without reading more.
#[derive(Default)]
pub(crate) struct OutgoingBody {
    first: Bytes,
    /// What follows.
    pieces: Vec<BodyPiece>,
    reader: Option<Box<dyn ObjectReader>>,
}

impl OutgoingBody {
    /// The whole object.
    pub(crate) fn whole(found: &mut FoundObject) -> Self {
        let first = std::mem::take(&mut found.first);
        let rest = found.size - first.len() as u64;
        Self {
            first,
            pieces: match rest {
                0 => Vec::new(),
                rest => vec![BodyPiece::Rest(rest)],
            },
            reader: found.reader.take(),
        }
    }

    /// These pieces of the object. Blocks: what the first look did not bring of the first range is read
    /// now, so that a small range costs one hop.
    pub(crate) fn pieces(
        found: &mut FoundObject,
        pieces: Vec<BodyPiece>,
        device: &ObjectDevice,
    ) -> Result<Self, Refusal> {
        let mut reader = found.reader.take();
        let mut ready = Vec::with_capacity(pieces.len());
        let mut has_read = false;
        for piece in pieces {
            let BodyPiece::Range(range) = piece else {
                ready.push(piece);
                continue;
            };
            // Inside the first bytes, both ends fit a usize.
            if range.end <= found.first.len() as u64 {
                ready.push(BodyPiece::Bytes(
                    found.first.slice(range.start as usize..range.end as usize),
                ));
                continue;
            }
            let start = match (&mut reader, has_read) {
                (Some(reader), false) => {
                    let bytes = read_range(&mut **reader, range).map_err(refused_by(device))?;
                    has_read = true;
                    let start = range.start + bytes.len() as u64;
                    ready.push(BodyPiece::Bytes(bytes));
                    start
                }
                _ => range.start,
            };
            if start < range.end {
                ready.push(BodyPiece::Range(ByteRange { start, end: range.end }));
            }
        }
        Ok(Self {
            first: Bytes::new(),
            pieces: ready,
            reader,
        })
    }

    /// How many bytes.
    pub(crate) fn len(&self) -> u64 {
        self.first.len() as u64 + self.pieces.iter().map(BodyPiece::len).sum::<u64>()
    }

    /// The body; what is still to be read is read from `device`.
    pub(crate) fn into_body(mut self, world: &World, device: &Arc<ObjectDevice>) -> Body {
        if self.pieces.iter().all(|piece| matches!(piece, BodyPiece::Bytes(_))) {
            return Body::whole(self.in_one());
        }
        let Some(reader) = self.reader.take() else {
            // Only an engine that contradicts itself: the size says there is more, but there is no reader.
            let gone = BodyError::Device("the object has no reader".into());
            return Body::stream(futures_util::stream::iter([Err(gone)]), Some(self.len()));
        };
        let (feed, body) = Body::channel(1, Some(self.len()));
        let pump = Pump {
            clock: world.clock.clone(),
            device: device.clone(),
            reader: Arc::new(Mutex::new(reader)),
        };
        if !self.first.is_empty() {
            self.pieces.insert(0, BodyPiece::Bytes(self.first));
        }
        world.spawn(pump.run(self.pieces, feed));
        body
    }

    fn in_one(self) -> Bytes {
        let mut pieces = self.pieces.into_iter().filter_map(|piece| match piece {
            BodyPiece::Bytes(bytes) => Some(bytes),
            _ => None,
        });
        let first = match self.first.is_empty() {
            true => pieces.next().unwrap_or_default(),
            false => self.first,
        };
        let Some(second) = pieces.next() else { return first };
        let mut all = BytesMut::from(first.as_ref());
        all.extend_from_slice(&second);
        pieces.for_each(|more| all.extend_from_slice(&more));
        all.freeze()
    }
}

fn read_range(reader: &mut dyn ObjectReader, range: ByteRange) -> Result<Bytes, EngineError> {
    let length = usize::try_from(range.len()).unwrap_or(usize::MAX).min(CHUNK);
    reader.read_at(range.start, length)
}

struct Pump {
    clock: Arc<dyn Clock>,
    device: Arc<ObjectDevice>,
    /// Shared with the job that reads, so that a refused job does not take it along.
    reader: Arc<Mutex<Box<dyn ObjectReader>>>,
}

impl Pump {
    async fn run(self, pieces: Vec<BodyPiece>, feed: Feed) {
        for piece in pieces {
            match self.send(piece, &feed).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!("device {}: {error} in the middle of a body", self.device.name());
                    return feed.fail(error).await;
                }
            }
        }
        feed.finish().await;
    }

    /// `false` when the receiver has gone.
    async fn send(&self, piece: BodyPiece, feed: &Feed) -> Result<bool, BodyError> {
        let (mut offset, mut left) = match piece {
            BodyPiece::Bytes(bytes) => return Ok(bytes.is_empty() || feed.send(bytes).await),
            BodyPiece::Range(range) => (Some(range.start), range.len()),
            BodyPiece::Rest(length) => (None, length),
        };
        while left > 0 {
            let waits_since = self.clock.elapsed();
            if !feed.ready().await {
                return Ok(false);
            }
            let most = match self.clock.elapsed().saturating_sub(waits_since) > SLOW {
                true => SLOW_CHUNK,
                false => CHUNK,
            };
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(most);
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
            move |_: &ObjectDevice| {
                let read = match offset {
                    Some(offset) => reader.lock().read_at(offset, want),
                    None => reader.lock().read(want),
                };
                read.map_err(|error| match error {
                    EngineError::Corrupt { .. } | EngineError::Quarantined { .. } => BodyError::Corrupt,
                    error => BodyError::Device(error.to_string()),
                })
            }
        };
        self.device.run_patiently(Turn::Behind, job).await
    }
}
