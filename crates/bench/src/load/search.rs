//! The highest rate that a store bears: how the next rate to try follows from those that were tried.
//!
//! Rates grow by half until one is not borne, then the gap between the last one borne and the first one not is halved
//! until it is small enough.
//! Always holds: the answer was borne when it was tried; the gap above it is at most [`CLOSE`] of it, unless the steps
//! were used up.

/// The gap at which the search ends, of the rate that is borne.
pub const CLOSE: f64 = 0.02;
/// Steps after which it ends in any case.
const MOST_STEPS: u32 = 40;

/// A search.
#[derive(Debug, Clone)]
pub struct RateSearch {
    first: f64,
    borne: Option<f64>,
    not_borne: Option<f64>,
    steps: u32,
}

impl RateSearch {
    /// One that begins with this rate.
    pub fn new(first: f64) -> Self {
        Self {
            first: first.max(1.0),
            borne: None,
            not_borne: None,
            steps: 0,
        }
    }

    /// What to try next; nothing when the search is over.
    pub fn next_rate(&self) -> Option<f64> {
        if self.steps >= MOST_STEPS {
            return None;
        }
        match (self.borne, self.not_borne) {
            (None, None) => Some(self.first),
            (Some(borne), None) => Some(borne * 1.5),
            (None, Some(not_borne)) if not_borne <= 1.0 => None,
            (None, Some(not_borne)) => Some(not_borne / 2.0),
            (Some(borne), Some(not_borne)) if not_borne - borne <= borne * CLOSE => None,
            (Some(borne), Some(not_borne)) => Some((borne + not_borne) / 2.0),
        }
    }

    /// Says how a rate went.
    pub fn tell(&mut self, rate: f64, is_borne: bool) {
        self.steps += 1;
        if is_borne {
            self.borne = Some(self.borne.unwrap_or(0.0).max(rate));
        } else {
            self.not_borne = Some(self.not_borne.unwrap_or(f64::INFINITY).min(rate));
        }
    }

    /// The highest rate that was borne.
    pub fn borne(&self) -> Option<f64> {
        self.borne
    }
}

#[cfg(test)]
mod tests {
    use super::{CLOSE, RateSearch};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_limit_is_found(limit in 1.0_f64..1e6, first in 1.0_f64..1e5) {
            let mut search = RateSearch::new(first);
            let mut steps = 0;
            while let Some(rate) = search.next_rate() {
                search.tell(rate, rate <= limit);
                steps += 1;
                prop_assert!(steps <= 45);
            }
            let found = search.borne().unwrap_or(0.0);
            let is_close = found * (1.0 + CLOSE) >= limit || found == 0.0 && limit < 2.0;
            prop_assert!(found <= limit && is_close, "{} of {}", found, limit);
        }
    }
}
