//! How many requests have begun lately and are not done.
//!
//! Always holds: a request counts for one to two [`EPOCH_MILLIS`]s at most, and no longer than its [`Beginning`] lives.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Longer than a request needs of a processor that it shares with few others.
pub(super) const EPOCH_MILLIS: u32 = 100;
const EPOCHS_PER_SECOND: u64 = 1000 / EPOCH_MILLIS as u64;

/// See the module's header.
#[derive(Default)]
pub(super) struct Beginnings(Mutex<Counts>);

/// Of the epoch `number` and of the one before it.
#[derive(Default)]
struct Counts {
    number: u64,
    current: usize,
    before: usize,
}

impl Counts {
    fn move_to(&mut self, now: Duration) {
        let number = now.as_secs() * EPOCHS_PER_SECOND + u64::from(now.subsec_millis() / EPOCH_MILLIS);
        if number <= self.number {
            return;
        }
        self.before = if number == self.number + 1 { self.current } else { 0 };
        self.current = 0;
        self.number = number;
    }
}

/// A request that counts, until it is dropped.
pub(crate) struct Beginning {
    all: Arc<Beginnings>,
    number: u64,
}

impl Beginnings {
    /// One more.
    pub(super) fn begin(all: &Arc<Self>, now: Duration) -> Beginning {
        let mut counts = all.0.lock();
        counts.move_to(now);
        counts.current += 1;
        Beginning {
            all: all.clone(),
            number: counts.number,
        }
    }

    /// How many there are.
    pub(super) fn count(&self, now: Duration) -> usize {
        let mut counts = self.0.lock();
        counts.move_to(now);
        counts.current + counts.before
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock();
        if self.number == counts.number {
            counts.current -= 1;
        } else if self.number + 1 == counts.number {
            counts.before -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_until_it_is_done_or_takes_long() {
        let all = Arc::new(Beginnings::default());
        let at = Duration::from_millis;
        let (early, late) = (Beginnings::begin(&all, at(1000)), Beginnings::begin(&all, at(1150)));
        let stays = Beginnings::begin(&all, at(1150));
        assert_eq!(all.count(at(1199)), 3);
        assert_eq!(all.count(at(1200)), 2, "the first one takes long");
        drop(early);
        assert_eq!(all.count(at(1200)), 2);
        drop(late);
        assert_eq!(all.count(at(1299)), 1);
        assert_eq!(all.count(at(1500)), 0);
        drop(stays);
        assert_eq!(all.count(at(1500)), 0);
    }
}
