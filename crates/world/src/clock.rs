//! The clock seam: what time is it, and wake me later.
//!
//! Always holds: [`Clock::elapsed`] never goes back, whatever the wall clock does.

use crate::BoxFuture;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use vocabulary::Timestamp;

/// A deadline passed before the work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {0:?}")]
pub struct Elapsed(pub Duration);

/// Wall time, monotonic time, sleeping.
pub trait Clock: Send + Sync {
    /// Wall time at Swift's precision.
    fn now(&self) -> Timestamp;
    /// Time since the world began; for measuring.
    fn elapsed(&self) -> Duration;
    /// Completes `duration` from now.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
    /// Blocks the thread, one of [`crate::Workers`], for `duration`.
    fn block(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The machine's clocks and tokio's timer.
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// Starts measuring now.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Polls `work` first, so that work which is ready beats an expired deadline.
/// The timer is only armed when `work` is not ready at once.
pub async fn timeout<T>(clock: &dyn Clock, limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = pin!(work);
    let mut timer: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|context| {
        if let Poll::Ready(value) = work.as_mut().poll(context) {
            return Poll::Ready(Ok(value));
        }
        let timer = timer.get_or_insert_with(|| clock.sleep(limit));
        timer.as_mut().poll(context).map(|()| Err(Elapsed(limit)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ready_work_beats_a_deadline_of_zero() {
        let clock = RealClock::new();
        assert_eq!(timeout(&clock, Duration::ZERO, async { 7 }).await, Ok(7));
        let never = std::future::pending::<()>();
        assert_eq!(
            timeout(&clock, Duration::ZERO, never).await,
            Err(Elapsed(Duration::ZERO))
        );
    }
}
