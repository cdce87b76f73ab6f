//! The time by which a bucket is judged.
//!
//! What a clock that is ahead makes due is deleted for good, and before its time. So the clocks of the bucket's
//! container servers count as well, which their answers carry as `Date`: the earliest of all decides, and a bucket
//! waits while one of them is further from this machine's than `max_clock_skew`.
//! Always holds: a server that takes long to answer is no clock that differs, as its time lies between question and
//! answer. Answers of this process carry no time: where a bucket's other servers are away, and where there are none,
//! this machine's clock alone decides.

use std::time::Duration;
use vocabulary::Timestamp;

/// A server's clock and this machine's are too far apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this machine's clock is {} seconds {} that of this server, more than max_clock_skew ({} seconds)",
    seconds,
    if *is_ahead { "ahead of" } else { "behind" },
    most.as_secs()
)]
pub(super) struct ClocksDiffer {
    /// `ip:port/device` of the server.
    pub(super) place: String,
    seconds: u64,
    is_ahead: bool,
    most: Duration,
}

/// When servers were asked, and when all had answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedBetween {
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl AskedBetween {
    /// The earliest second of this machine's clock and those of the servers, which answered at these seconds of theirs.
    pub(super) fn earliest<'a>(
        self,
        answers: impl Iterator<Item = (&'a str, u64)>,
        most: Duration,
    ) -> Result<u64, ClocksDiffer> {
        let mut earliest = self.first.seconds();
        for (place, date) in answers {
            // A date has whole seconds, and a server may say the same for a second.
            let ahead = self.first.seconds().saturating_sub(date.saturating_add(2));
            let behind = date.saturating_sub(self.last.seconds());
            if ahead.max(behind) > most.as_secs() {
                return Err(ClocksDiffer {
                    place: place.to_owned(),
                    seconds: ahead.max(behind),
                    is_ahead: ahead > 0,
                    most,
                });
            }
            earliest = earliest.min(date);
        }
        Ok(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_clock_counts_and_one_too_far_away_stops() {
        let asked = AskedBetween {
            first: Timestamp::from_seconds(1_700_000_000),
            last: Timestamp::from_seconds(1_700_000_015),
        };
        let earliest =
            |dates: &[u64]| asked.earliest(dates.iter().map(|date| ("s:1/d", *date)), Duration::from_secs(60));
        assert_eq!(earliest(&[]), Ok(1_700_000_000));
        assert_eq!(earliest(&[1_699_999_950, 1_700_000_010]), Ok(1_699_999_950));
        assert_eq!(earliest(&[1_699_999_938, 1_700_000_075]), Ok(1_699_999_938));
        let words = |dates: &[u64]| earliest(dates).unwrap_err().to_string();
        assert_eq!(
            words(&[1_700_000_000, 1_699_740_798]),
            "this machine's clock is 259200 seconds ahead of that of this server, more than max_clock_skew (60 seconds)"
        );
        assert!(words(&[1_700_000_076]).contains("61 seconds behind"));
    }
}
