//! What one feature tells another, and the core tells a feature, about the write of an object.
//!
//! Always holds: all are found by their type in [`crate::Request::extensions`], which subrequests inherit; where
//! none is there nothing is taken or looked up but an empty map.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::Timestamp;

/// By which operation an object is written, where that is not its PUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrigin {
    /// A form of a browser.
    Post,
    /// A copy of another object.
    Copy,
    /// Part of another operation, which is no event by itself.
    Inner,
}

/// The write of what is stored already, with the time that it has, for servers that have missed it: no new version, no
/// event, and nothing more for a quota to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAgain {
    /// Of a version its data, then the link that shows it.
    Shown,
    /// Of a version its data alone: something newer is shown.
    Hidden,
}

/// `PUT ?version-id=` of the version before one that was deleted. It is as of just after the deletion, so that all that
/// clients have written since stays what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillsVacancy;

/// Where the core leaves the timestamp of a write, for a feature that has put this into the request.
#[derive(Debug, Clone, Default)]
pub struct WriteTimeSlot(Arc<AtomicU64>);

impl WriteTimeSlot {
    /// Notes the timestamp of a write that storage has taken.
    pub fn note(&self, timestamp: Timestamp) {
        self.0.fetch_max(timestamp.ticks(), Ordering::Relaxed);
    }

    /// The latest that was noted.
    pub fn latest(&self) -> Option<Timestamp> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            ticks => Timestamp::from_ticks(ticks).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_write_counts() {
        let slot = WriteTimeSlot::default();
        assert_eq!(slot.latest(), None);
        for seconds in [5, 7, 6] {
            slot.clone().note(Timestamp::from_seconds(seconds));
        }
        assert_eq!(slot.latest(), Some(Timestamp::from_seconds(7)));
    }
}
