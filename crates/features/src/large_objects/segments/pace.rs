//! How fast the segments of a large object follow each other.
//!
//! Always holds: those that are free are never held up, and without a rate none is.

use std::time::Duration;
use world::Clock;

/// Segments per second, after some that are free.
pub struct Pace {
    free: u64,
    interval: Duration,
    earliest: Option<Duration>,
}

impl Pace {
    /// `per_second` of 0 does not limit.
    pub fn new(free: u64, per_second: f64) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or_default();
        Self {
            free,
            interval,
            earliest: None,
        }
    }

    /// Waits until the next one may go.
    pub async fn wait(&mut self, clock: &dyn Clock) {
        if self.interval.is_zero() {
            return;
        }
        if self.free > 0 {
            self.free -= 1;
            return;
        }
        let now = clock.elapsed();
        let at = self.earliest.unwrap_or(now).max(now);
        if at > now {
            clock.sleep(at - now).await;
        }
        self.earliest = Some(at + self.interval);
    }
}
