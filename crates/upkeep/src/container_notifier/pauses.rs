//! What waits for how long after a failure: single events, and a target as a whole that does not answer.
//!
//! Always holds: a pause begins at a second and doubles up to `max_backoff`; a success of a target ends its own; at
//! most [`MOST_EVENTS`] events have one, further ones are tried again in their turn (`run.rs`).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// Events with a pause, of each target.
const MOST_EVENTS: usize = 10_000;
/// The first pause.
const FIRST: Duration = Duration::from_secs(1);

/// How often something has failed, and until when it waits.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    times: u32,
    refusals: u32,
    until: Duration,
}

impl Pause {
    fn fail(&mut self, now: Duration, most: Duration) {
        let factor = 1_u32.checked_shl(self.times).unwrap_or(u32::MAX);
        self.times = self.times.saturating_add(1);
        self.until = now.saturating_add(FIRST.saturating_mul(factor.max(1)).min(most));
    }
}

/// The pauses of a target and of its events.
#[derive(Default)]
pub(super) struct TargetPauses {
    target: Mutex<Pause>,
    events: Mutex<HashMap<String, Pause>>,
}

impl TargetPauses {
    /// Whether the target as a whole waits.
    pub(super) fn is_paused(&self, now: Duration) -> bool {
        self.target.lock().until > now
    }

    /// The target has not answered.
    pub(super) fn target_failed(&self, now: Duration, most: Duration) {
        let mut pause = self.target.lock();
        // Several deliveries of one run fail together.
        if pause.until <= now {
            pause.fail(now, most);
        }
    }

    /// The target has answered.
    pub(super) fn target_answered(&self) {
        *self.target.lock() = Pause::default();
    }

    /// Whether an event waits.
    pub(super) fn has_event(&self, name: &str, now: Duration) -> bool {
        self.events.lock().get(name).is_some_and(|pause| pause.until > now)
    }

    /// An event was not delivered, or a look at it decided nothing. Returns how often it was refused.
    pub(super) fn event_failed(&self, name: &str, is_refusal: bool, now: Duration, most: Duration) -> u32 {
        let mut events = self.events.lock();
        if events.len() >= MOST_EVENTS && !events.contains_key(name) {
            // What another daemon has delivered is never asked for again.
            events.retain(|_, pause| pause.until.saturating_add(most) > now);
            if events.len() >= MOST_EVENTS {
                return u32::from(is_refusal);
            }
        }
        let pause = events.entry(name.to_owned()).or_default();
        pause.fail(now, most);
        pause.refusals += u32::from(is_refusal);
        pause.refusals
    }

    /// An event is over.
    pub(super) fn event_over(&self, name: &str) {
        self.events.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = TargetPauses::default();
        let mut now = at(100);
        for expected in [1, 2, 4, 5, 5] {
            pauses.target_failed(now, MOST);
            pauses.target_failed(now, MOST);
            assert!(pauses.is_paused(now + at(expected) - Duration::from_millis(1)));
            now += at(expected);
            assert!(!pauses.is_paused(now), "{expected}");
        }
        pauses.target_answered();
        pauses.target_failed(now, MOST);
        assert!(!pauses.is_paused(now + at(1)));
        let mut long = Pause::default();
        (0..100).for_each(|_| long.fail(now, MOST));
        assert_eq!(long.until, now + MOST);
    }

    #[test]
    fn events_wait_by_themselves_and_are_bounded() {
        let pauses = TargetPauses::default();
        assert_eq!(pauses.event_failed("a", true, at(0), MOST), 1);
        assert_eq!(pauses.event_failed("a", false, at(1), MOST), 1);
        assert_eq!(pauses.event_failed("a", true, at(3), MOST), 2);
        assert!(pauses.has_event("a", at(6)) && !pauses.has_event("b", at(6)));
        pauses.event_over("a");
        assert!(!pauses.has_event("a", at(6)));
        for number in 0..=MOST_EVENTS {
            pauses.event_failed(&number.to_string(), false, at(10), MOST);
        }
        assert_eq!(pauses.events.lock().len(), MOST_EVENTS);
        pauses.event_failed("later", false, at(100), MOST);
        assert_eq!(pauses.events.lock().len(), 1);
    }
}
