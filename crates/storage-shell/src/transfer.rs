//! A minimum rate for the bodies that other nodes send.
//!
//! Always holds: only time in which the sender is waited for counts, not the receiver's own work; a body that keeps the
//! rate is never ended; one that stalls ends after at most two windows.

use futures_util::stream;
use peer::{Body, BodyError};
use std::time::Duration;
use world::World;

/// How slowly a body may come.
#[derive(Debug, Clone, Copy)]
pub struct MinimumRate {
    /// Bytes a second; 0 for any rate.
    pub bytes: u64,
    /// On average over so much time in which the sender is waited for; over this without a byte any body ends.
    pub window: Duration,
}

impl MinimumRate {
    fn is_kept_by(self, moved: u64) -> bool {
        moved > 0 && u128::from(moved) * 1000 >= u128::from(self.bytes) * self.window.as_millis()
    }

    /// The same bytes; they end with [`BodyError::TimedOut`] when they come too slowly.
    pub fn watch(self, world: &World, body: Body) -> Body {
        if body.as_whole().is_some() {
            return body;
        }
        let length = body.length();
        let watched = WatchedBody {
            body,
            world: world.clone(),
            rate: self,
            waited: Duration::ZERO,
            moved: 0,
        };
        let chunks = stream::unfold(watched, async |mut watched| Some((watched.next().await?, watched)));
        Body::stream(chunks, length)
    }
}

struct WatchedBody {
    body: Body,
    world: World,
    rate: MinimumRate,
    /// In this window.
    waited: Duration,
    moved: u64,
}

impl WatchedBody {
    async fn next(&mut self) -> Option<Result<bytes::Bytes, BodyError>> {
        loop {
            let left = self.rate.window.saturating_sub(self.waited);
            let began = self.world.clock.elapsed();
            let next = self.world.timeout(left, self.body.next()).await;
            self.waited += self.world.clock.elapsed().saturating_sub(began);
            match next {
                Ok(chunk) => {
                    let length = chunk
                        .as_ref()
                        .and_then(|chunk| chunk.as_ref().ok())
                        .map_or(0, bytes::Bytes::len);
                    self.moved += length as u64;
                    return chunk;
                }
                Err(_) if self.rate.is_kept_by(self.moved) => (self.waited, self.moved) = (Duration::ZERO, 0),
                Err(_) => return Some(Err(BodyError::TimedOut)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::Stream;
    use std::sync::Arc;
    use tokio::time::Instant;
    use vocabulary::Timestamp;
    use world::{BoxFuture, Clock};

    /// Tokio's time, which stands still while there is work.
    struct TokioClock(Instant);

    impl Clock for TokioClock {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            Box::pin(tokio::time::sleep(duration))
        }
    }

    const RATE: MinimumRate = MinimumRate {
        bytes: 10,
        window: Duration::from_secs(60),
    };

    /// Chunks of so many bytes, each after so many seconds that it is waited for.
    fn paced(chunks: Vec<(usize, u64)>) -> (World, impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) {
        let world = World {
            clock: Arc::new(TokioClock(Instant::now())),
            ..World::real()
        };
        let chunks = stream::unfold(chunks.into_iter(), async |mut chunks| {
            let (length, after) = chunks.next()?;
            tokio::time::sleep(Duration::from_secs(after)).await;
            Some((Ok(Bytes::from(vec![7; length])), chunks))
        });
        (world, chunks)
    }

    /// When and how they end.
    async fn received(rate: MinimumRate, chunks: Vec<(usize, u64)>) -> (u64, Result<usize, BodyError>) {
        let (world, chunks) = paced(chunks);
        let began = Instant::now();
        let body = rate.watch(&world, Body::stream(chunks, None)).collect(1 << 20).await;
        (began.elapsed().as_secs(), body.map(|bytes| bytes.len()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_body_may_take_long_and_a_slow_one_may_not() {
        assert_eq!(received(RATE, vec![(100, 10); 30]).await, (300, Ok(3000)));
        assert_eq!(received(RATE, vec![(99, 10); 30]).await.1, Err(BodyError::TimedOut));
        assert_eq!(received(RATE, vec![(1, 1); 90]).await, (60, Err(BodyError::TimedOut)));
    }

    /// Far below the rate over the whole time, and at it while the sender is waited for.
    #[tokio::test(start_paused = true)]
    async fn what_the_receiver_takes_for_its_own_work_does_not_count() {
        let (world, chunks) = paced(vec![(100, 10); 30]);
        let mut body = RATE.watch(&world, Body::stream(chunks, None));
        let mut received = 0;
        while let Some(chunk) = body.next().await {
            received += chunk.unwrap().len();
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
        assert_eq!(received, 3000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_ends_at_any_rate() {
        let any = MinimumRate { bytes: 0, ..RATE };
        assert_eq!(received(any, vec![(1, 59); 10]).await, (590, Ok(10)));
        assert_eq!(received(any, vec![(1, 61)]).await, (60, Err(BodyError::TimedOut)));
        assert_eq!(
            received(RATE, vec![(600, 1), (600, 120)]).await.1,
            Err(BodyError::TimedOut)
        );
    }
}
