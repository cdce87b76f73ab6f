//! The `Date` of answers.
//!
//! hyper's own stands still after the machine's clock was set back, until the time that it had shown comes again, and
//! others judge clocks by it.
//! Always holds: it is the world's time, and is written anew when its second changes, in either direction.

use http::HeaderValue;
use parking_lot::Mutex;
use vocabulary::calendar;
use world::Clock;

/// The `Date` of the last answer, which those of the same second share.
#[derive(Debug, Default)]
pub(crate) struct ResponseDate(Mutex<Option<(u64, HeaderValue)>>);

impl ResponseDate {
    /// Of an answer now.
    pub(crate) fn now(&self, clock: &dyn Clock) -> HeaderValue {
        let second = clock.now().seconds();
        let mut last = self.0.lock();
        if let Some((of, date)) = &*last
            && *of == second
        {
            return date.clone();
        }
        // Dates are ASCII.
        let date = HeaderValue::from_str(&calendar::http(second)).unwrap_or(HeaderValue::from_static(""));
        *last = Some((second, date.clone()));
        date
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use vocabulary::Timestamp;
    use world::BoxFuture;

    struct SetClock(AtomicU64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(self.0.load(Ordering::Relaxed))
        }
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn it_follows_a_clock_that_is_set_back() {
        let (date, clock) = (ResponseDate::default(), SetClock(AtomicU64::new(1_700_000_001)));
        assert_eq!(date.now(&clock), "Tue, 14 Nov 2023 22:13:21 GMT");
        assert_eq!(date.now(&clock), "Tue, 14 Nov 2023 22:13:21 GMT");
        clock.0.store(1_700_000_000, Ordering::Relaxed);
        assert_eq!(date.now(&clock), "Tue, 14 Nov 2023 22:13:20 GMT");
    }
}
