//! How bodies leave: pieces of an object, read ahead by one chunk while the one before is on its way.
//!
//! What fits into the first look at the object is sent without another hop to the workers; the rest
//! streams (`pump.rs`).
//! Always holds: a body ends properly only when every byte promised has been sent.

use crate::devices::ObjectDevice;
use crate::pump::{BodyPiece, CHUNK, Pump};
use crate::refusal::refused_by;
use bytes::{Bytes, BytesMut};
use object_engine::{EngineError, FoundObject, ObjectReader};
use peer::{Body, BodyError};
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::ByteRange;
use world::World;

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
        let pump = Pump::new(world, device, reader, self.first.len(), feed);
        if !self.first.is_empty() {
            self.pieces.insert(0, BodyPiece::Bytes(self.first));
        }
        world.spawn(pump.run(self.pieces));
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
