//! What is left of a body on its way from the device to a receiver that takes it at its own pace.
//!
//! One chunk is read ahead, in the channel, while the one before is being written. Chunks begin small and double up to
//! [`CHUNK`] while the receiver takes them. When it takes nothing for [`SLOW`], the chunk in the channel is taken back,
//! and read again once the receiver comes for it; then they begin small again.
//! Always holds: a receiver that takes nothing holds one chunk, and that of the channel for no longer than [`SLOW`];
//! bytes that are read again are the same bytes, or the body fails.

use crate::devices::ObjectDevice;
use bytes::Bytes;
use object_engine::{EngineError, ObjectReader};
use parking_lot::Mutex;
use peer::{BodyError, Feed, Loan};
use std::sync::Arc;
use std::time::Duration;
use storage_shell::Turn;
use vocabulary::ByteRange;
use world::{Clock, World};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes per read: few hops for a big object. The first look and the read behind it are one together.
pub(crate) const CHUNK: usize = 256 * 1024;
/// ... for a receiver that has not been seen to take any yet, or took none for [`SLOW`].
const SMALL_CHUNK: usize = 64 * 1024;
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
    /// How long the next one is at most.
    chunk: usize,
}

/// A chunk in the channel, and where it is in the object.
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
            chunk: SMALL_CHUNK,
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
                return Ok(bytes.is_empty() || self.room().await? && self.feed.send(bytes).await);
            }
            BodyPiece::Range(range) => (range.start, range.len(), false),
            BodyPiece::Rest(length) => (self.first as u64, length, true),
        };
        while left > 0 {
            if !self.room().await? {
                return Ok(false);
            }
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(self.chunk);
            let chunk = self
                .read(if is_rest { Read::Next } else { Read::At(offset) }, want)
                .await?;
            let length = chunk.len() as u64;
            if chunk.is_empty() || length > left {
                return Err(BodyError::Device("the object is not as long as it was".into()));
            }
            if !self.hand_over(chunk, offset).await {
                return Ok(false);
            }
            self.chunk = (self.chunk * 2).min(CHUNK);
            left -= length;
            offset += length;
        }
        Ok(true)
    }

    /// `false` when the receiver has gone. A small chunk is not worth taking back.
    async fn hand_over(&mut self, chunk: Bytes, offset: u64) -> bool {
        if chunk.len() <= SMALL_CHUNK {
            return self.feed.send(chunk).await;
        }
        let loan = self.feed.lend(chunk).await;
        self.lent = loan.map(|loan| Lent { loan, offset });
        self.lent.is_some()
    }

    /// Waits until the receiver has taken the last chunk; `false` when it has gone.
    async fn room(&mut self) -> Result<bool, BodyError> {
        let lent = self.lent.take();
        let ready = world::clock::timeout(&*self.clock, SLOW, self.feed.ready()).await;
        if let Ok(is_there) = ready {
            return Ok(is_there);
        }
        self.chunk = SMALL_CHUNK;
        let taken_back = lent.and_then(|lent| Some((lent.offset, lent.loan.take_back()?)));
        match taken_back {
            Some((offset, chunk)) => self.send_again(offset, chunk).await,
            None => Ok(self.feed.ready().await),
        }
    }

    /// What was taken back, once the receiver comes for it.
    async fn send_again(&mut self, offset: u64, chunk: Bytes) -> Result<bool, BodyError> {
        let parts = chunk.chunks(SMALL_CHUNK);
        let parts: Vec<(usize, u64)> = parts.map(|part| (part.len(), xxh3_64(part))).collect();
        drop(chunk);
        let mut offset = offset;
        for (length, hash) in parts {
            if !self.feed.ready().await {
                return Ok(false);
            }
            let part = self.read(Read::At(offset), length).await?;
            if part.len() != length || xxh3_64(&part) != hash {
                return Err(BodyError::Corrupt);
            }
            offset += length as u64;
            if !self.feed.send(part).await {
                return Ok(false);
            }
        }
        Ok(self.feed.ready().await)
    }

    async fn read(&self, read: Read, want: usize) -> Result<Bytes, BodyError> {
        let job = || {
            let reader = self.reader.clone();
            move |_: &ObjectDevice| {
                let bytes = match read {
                    Read::At(offset) => reader.lock().read_at(offset, want),
                    Read::Next => reader.lock().read(want),
                };
                bytes.map_err(|error| match error {
                    EngineError::Corrupt { .. } | EngineError::Quarantined { .. } => BodyError::Corrupt,
                    error => BodyError::Device(error.to_string()),
                })
            }
        };
        self.device.run_patiently(Turn::Behind, job).await
    }
}
