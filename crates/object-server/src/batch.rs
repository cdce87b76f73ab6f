//! Bytes gathered for one write to the device.
//!
//! Always holds: a batch has at most [`BATCH`] bytes, and exactly so many unless the body ends or its sender is
//! slow, so that a write past the page cache leaves nothing over; it holds little more memory than bytes, however small
//! the pieces were that they came in.

use bytes::{Bytes, BytesMut};
use std::time::Duration;
use world::World;

/// Bytes gathered for one write.
const BATCH: usize = 256 * 1024;
/// … when they come within this time.
const SOON: Duration = Duration::from_secs(5);
/// … and of a sender that takes longer.
const SLOW_BATCH: usize = 16 * 1024;
/// Smaller pieces are copied together: a piece keeps the whole read buffer that it is part of.
const WORTH_KEEPING: usize = 8 * 1024;

/// What is written at once.
#[derive(Default)]
pub(crate) struct BodyBatch {
    pub(crate) pieces: Vec<Bytes>,
    /// It took long to come.
    pub(crate) is_slow: bool,
}

impl BodyBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// In bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// A batch that is not complete.
pub(crate) struct Gathering {
    world: World,
    began: Duration,
    pieces: Vec<Bytes>,
    /// Of the pieces.
    size: usize,
    /// Small pieces that come after those.
    small: BytesMut,
}

impl Gathering {
    /// With what the batch before had no room for.
    pub(crate) fn begin(world: &World, rest: &mut Bytes) -> Self {
        let mut gathering = Self {
            began: world.clock.elapsed(),
            world: world.clone(),
            pieces: Vec::new(),
            size: 0,
            small: BytesMut::new(),
        };
        *rest = gathering.take(std::mem::take(rest));
        gathering
    }

    fn len(&self) -> usize {
        self.size + self.small.len()
    }

    fn is_late(&self) -> bool {
        self.world.clock.elapsed().saturating_sub(self.began) >= SOON
    }

    pub(crate) fn is_enough(&self) -> bool {
        self.len() >= BATCH || (self.len() >= SLOW_BATCH && self.is_late())
    }

    /// Adds a piece as far as there is room; what is left of it.
    pub(crate) fn take(&mut self, mut piece: Bytes) -> Bytes {
        let rest = piece.split_off(piece.len().min(BATCH - self.len()));
        match piece.len() < WORTH_KEEPING {
            true => self.small.extend_from_slice(&piece),
            false => {
                self.end_small();
                self.size += piece.len();
                self.pieces.push(piece);
            }
        }
        rest
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.size += self.small.len();
            self.pieces.push(std::mem::take(&mut self.small).freeze());
        }
    }

    pub(crate) fn finish(mut self) -> BodyBatch {
        self.end_small();
        let is_slow = self.size < BATCH && self.is_late();
        BodyBatch {
            pieces: self.pieces,
            is_slow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use vocabulary::Timestamp;
    use world::{BoxFuture, Clock};

    /// Seconds that have passed.
    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(1_700_000_000)
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0.load(Relaxed))
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    fn world() -> (World, Arc<Hand>) {
        let hand = Arc::new(Hand::default());
        let clock = hand.clone();
        (World { clock, ..World::real() }, hand)
    }

    #[test]
    fn a_batch_is_exactly_full_and_the_rest_comes_next() {
        let (world, _) = world();
        let mut rest = Bytes::new();
        let mut gathering = Gathering::begin(&world, &mut rest);
        let sent: Vec<u8> = (0..BATCH + 5).map(|number| (number % 251) as u8).collect();
        rest = gathering.take(Bytes::copy_from_slice(&sent[..3]));
        assert!(rest.is_empty() && !gathering.is_enough());
        rest = gathering.take(Bytes::copy_from_slice(&sent[3..]));
        assert!(gathering.is_enough());
        let batch = gathering.finish();
        assert_eq!((batch.len(), batch.is_slow), (BATCH as u64, false));
        assert_eq!(batch.pieces.concat(), sent[..BATCH]);
        let batch = Gathering::begin(&world, &mut rest).finish();
        assert_eq!(batch.pieces.concat(), sent[BATCH..]);
        assert!(rest.is_empty());
    }

    #[test]
    fn small_pieces_do_not_keep_what_they_are_part_of() {
        let (world, _) = world();
        let mut gathering = Gathering::begin(&world, &mut Bytes::new());
        let buffer = Bytes::from(vec![7; 64 * 1024]);
        for at in 0..100 {
            gathering.take(buffer.slice(at..at + 1));
        }
        let batch = gathering.finish();
        assert_eq!((batch.pieces.len(), batch.len()), (1, 100));
        assert!(buffer.try_into_mut().is_ok(), "a piece keeps the buffer");
    }

    #[test]
    fn what_comes_slowly_is_written_in_smaller_batches() {
        let (world, hand) = world();
        let mut gathering = Gathering::begin(&world, &mut Bytes::new());
        gathering.take(Bytes::from(vec![1; SLOW_BATCH]));
        assert!(!gathering.is_enough());
        hand.0.store(SOON.as_secs(), Relaxed);
        assert!(gathering.is_enough());
        assert!(gathering.finish().is_slow);
    }
}
