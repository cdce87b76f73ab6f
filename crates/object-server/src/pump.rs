//! What is left of a body on its way from the device to a receiver that takes it at its own pace.
//!
//! Behind the first bytes nothing is read before the receiver has taken them. From then on one chunk is read ahead
//! while the one before is being written. Until a receiver has taken more than its connection
//! can hold, chunks are as long as all that came before them and come in small pieces, so that what it has not taken is
//! little, and little is read for it ([`Pace`]). When it takes nothing for
//! [`SLOW`], what it has not looked at is taken back, and read again once it comes for it.
//! Always holds: a receiver that takes nothing holds one piece, and what was read ahead for no longer than [`SLOW`];
//! bytes that are read again are the same bytes, or the body fails.

use crate::devices::ObjectDevice;
use bytes::Bytes;
use object_engine::{EngineError, ObjectReader};
use parking_lot::Mutex;
use peer::{BodyError, Feed, Loan};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use storage_shell::Turn;
use vocabulary::ByteRange;
use world::{Clock, World};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes per read: few hops for a big object.
pub(crate) const CHUNK: usize = 256 * 1024;
/// ... in one piece, and per read for a slow receiver.
const PIECE: usize = 64 * 1024;
/// A receiver that has taken so many bytes reads them: the buffers between hold less.
const TRUSTED: u64 = 512 * 1024;
const SLOW: Duration = Duration::from_secs(1);

/// What is known of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Whether it reads is not known yet: chunks that grow, in pieces.
    Unknown,
    /// It took nothing for [`SLOW`]: pieces.
    Slow,
    /// It has taken [`TRUSTED`] bytes since: whole chunks.
    Quick,
}

impl Pace {
    /// Bytes per read and per piece, behind so many that were handed over.
    fn sizes(self, handed_over: u64) -> (usize, usize) {
        match self {
            Pace::Unknown => (handed_over.clamp(PIECE as u64, CHUNK as u64) as usize, PIECE),
            Pace::Slow => (PIECE, PIECE),
            Pace::Quick => (CHUNK, CHUNK),
        }
    }
}

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
    pub(crate) fn len(&self) -> u64 {
        match self {
            BodyPiece::Bytes(bytes) => bytes.len() as u64,
            BodyPiece::Range(range) => range.len(),
            BodyPiece::Rest(length) => *length,
        }
    }
}

/// See the module's header.
pub(crate) struct Pump {
    clock: Arc<dyn Clock>,
    device: Arc<ObjectDevice>,
    /// Shared with the job that reads, so that a refused job does not take it along.
    reader: Arc<Mutex<Box<dyn ObjectReader>>>,
    /// Bytes that the first look has brought.
    first: usize,
    feed: Feed,
    lent: Option<Lent>,
    /// Pieces that wait for the one in the channel to be taken, and where they are in the object.
    waiting: VecDeque<(u64, Bytes)>,
    pace: Pace,
    /// Bytes that were handed over at this pace.
    handed_over: u64,
}

/// A piece in the channel, and where it is in the object.
struct Lent {
    loan: Loan,
    offset: u64,
}

/// How the next chunk is read.
#[derive(Clone, Copy)]
enum Read {
    /// Behind the one before, with the checksum of the whole.
    Next,
    /// From here.
    At(u64),
}

impl Pump {
    /// Behind the first look, which has brought `first` bytes.
    pub(crate) fn new(
        world: &World,
        device: &Arc<ObjectDevice>,
        reader: Box<dyn ObjectReader>,
        first: usize,
        feed: Feed,
    ) -> Self {
        Self {
            clock: world.clock.clone(),
            device: device.clone(),
            reader: Arc::new(Mutex::new(reader)),
            first,
            feed,
            lent: None,
            waiting: VecDeque::new(),
            pace: Pace::Unknown,
            handed_over: 0,
        }
    }

    pub(crate) async fn run(mut self, pieces: Vec<BodyPiece>) {
        match self.send_all(pieces).await {
            Ok(true) => drop(self.feed.finish().await),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!("device {}: {error} in the middle of a body", self.device.name());
                self.feed.fail(error).await;
            }
        }
    }

    /// `false` when the receiver has gone.
    async fn send_all(&mut self, pieces: Vec<BodyPiece>) -> Result<bool, BodyError> {
        for piece in pieces {
            if !self.send(piece).await? {
                return Ok(false);
            }
        }
        self.room().await
    }

    async fn send(&mut self, piece: BodyPiece) -> Result<bool, BodyError> {
        let (mut offset, mut left, is_rest) = match piece {
            BodyPiece::Bytes(bytes) => {
                let length = bytes.len() as u64;
                let is_sent = bytes.is_empty() || self.room().await? && self.feed.send(bytes).await;
                self.handed_over += length;
                return Ok(is_sent);
            }
            BodyPiece::Range(range) => (range.start, range.len(), false),
            BodyPiece::Rest(length) => (self.first as u64, length, true),
        };
        let has_first_bytes_only = self.pace == Pace::Unknown && (1..=PIECE as u64).contains(&self.handed_over);
        if left > 0 && has_first_bytes_only && !self.feed.asked().await {
            return Ok(false);
        }
        while left > 0 {
            if !self.room().await? {
                return Ok(false);
            }
            let (chunk, piece) = self.pace.sizes(self.handed_over);
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(chunk);
            let from = if is_rest { Read::Next } else { Read::At(offset) };
            for bytes in self.read(from, want, piece).await? {
                let length = bytes.len() as u64;
                if bytes.is_empty() || length > left {
                    return Err(BodyError::Device("the object is not as long as it was".into()));
                }
                self.waiting.push_back((offset, bytes));
                left -= length;
                offset += length;
            }
            if !self.hand_over().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What waits, piece by piece; there is room for the first. `false` when the receiver has gone.
    async fn hand_over(&mut self) -> Result<bool, BodyError> {
        while let Some((offset, piece)) = self.waiting.pop_front() {
            self.handed_over += piece.len() as u64;
            if self.handed_over >= TRUSTED {
                self.pace = Pace::Quick;
            }
            let loan = self.feed.lend(piece).await;
            self.lent = loan.map(|loan| Lent { loan, offset });
            if self.lent.is_none() || !self.waiting.is_empty() && !self.room().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until the receiver has taken the last piece; `false` when it has gone. When it takes its time nothing
    /// waits any more.
    async fn room(&mut self) -> Result<bool, BodyError> {
        let lent = self.lent.take();
        let ready = world::clock::timeout(&*self.clock, SLOW, self.feed.ready()).await;
        if let Ok(is_there) = ready {
            return Ok(is_there);
        }
        (self.pace, self.handed_over) = (Pace::Slow, 0);
        let lent = lent.and_then(|lent| Some((lent.offset, lent.loan.take_back()?)));
        let taken_back: Vec<(u64, Bytes)> = lent.into_iter().chain(self.waiting.drain(..)).collect();
        match taken_back.is_empty() {
            true => Ok(self.feed.ready().await),
            false => self.send_again(taken_back).await,
        }
    }

    /// What was taken back, once the receiver comes for it.
    async fn send_again(&mut self, taken_back: Vec<(u64, Bytes)>) -> Result<bool, BodyError> {
        let parts = taken_back.iter().flat_map(|(offset, bytes)| {
            let offsets = (*offset..).step_by(PIECE);
            offsets.zip(bytes.chunks(PIECE).map(|part| (part.len(), xxh3_64(part))))
        });
        let parts: Vec<_> = parts.collect();
        drop(taken_back);
        for (offset, (length, hash)) in parts {
            if !self.feed.ready().await {
                return Ok(false);
            }
            let part = self
                .read(Read::At(offset), length, PIECE)
                .await?
                .pop()
                .unwrap_or_default();
            if part.len() != length || xxh3_64(&part) != hash {
                return Err(BodyError::Corrupt);
            }
            if !self.feed.send(part).await {
                return Ok(false);
            }
        }
        Ok(self.feed.ready().await)
    }

    /// `want` bytes in pieces; an empty one where the object ends before.
    async fn read(&self, read: Read, want: usize, piece: usize) -> Result<Vec<Bytes>, BodyError> {
        let job = || {
            let reader = self.reader.clone();
            move |_: &ObjectDevice| {
                let mut reader = reader.lock();
                let ends = (0..want).step_by(piece).map(|at| (at as u64, piece.min(want - at)));
                let pieces = ends.map(|(at, length)| match read {
                    Read::At(offset) => reader.read_at(offset + at, length),
                    Read::Next => reader.read(length),
                });
                pieces.collect::<Result<Vec<Bytes>, _>>().map_err(|error| match error {
                    EngineError::Corrupt { .. } | EngineError::Quarantined { .. } => BodyError::Corrupt,
                    error => BodyError::Device(error.to_string()),
                })
            }
        };
        self.device.run_patiently(Turn::Behind, job).await
    }
}
