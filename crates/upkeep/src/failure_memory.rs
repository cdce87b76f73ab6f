//! What fails again and again in a pass is left for the next one, so that it does not take the time of all else.
//!
//! A policy whose servers are down fails every object that is asked for, some of them only after a time-out. After
//! [`FAILURES`] in a row most of its other tasks are not tried in the pass. One now and then is, at distances that
//! double: were none, those that come first in each pass would keep all others from ever being tried.
//! Always holds: a success forgets all failures before it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;

/// Failures in a row, after which tasks are left out.
const FAILURES: u32 = 3;
/// Tasks that are left out first, before one is tried.
const FIRST_GAP: u64 = 8;

/// The failures of a pass, by what they have in common.
pub(crate) struct FailureMemory<K>(Mutex<HashMap<K, FailureRun>>);

/// Failures without a success between.
#[derive(Default)]
struct FailureRun {
    failures: u32,
    /// Tasks still to be left out.
    to_leave: u64,
    gap: u64,
}

impl<K> Default for FailureMemory<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> FailureMemory<K> {
    /// Whether the next task of this is to be left out.
    pub(crate) fn leaves_out(&self, what: &K) -> bool {
        match self.0.lock().get_mut(what) {
            Some(run) if run.to_leave > 0 => {
                run.to_leave -= 1;
                true
            }
            _ => false,
        }
    }

    /// A task of this has been tried.
    pub(crate) fn note(&self, what: K, failed: bool) {
        let mut known = self.0.lock();
        if !failed {
            known.remove(&what);
            return;
        }
        let run = known.entry(what).or_default();
        run.failures = run.failures.saturating_add(1);
        // Others were under way when the first tasks were left out: they say nothing new.
        if run.failures >= FAILURES && run.to_leave == 0 {
            run.gap = run.gap.saturating_mul(2).max(FIRST_GAP);
            run.to_leave = run.gap;
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many tasks are tried, if each fails.
    fn tried(memory: &FailureMemory<&'static str>, count: usize) -> Vec<usize> {
        let tries = |_: &usize| {
            let tries = !memory.leaves_out(&"gold");
            if tries {
                memory.note("gold", true);
            }
            tries
        };
        (0..count).filter(tries).collect()
    }

    #[test]
    fn after_failures_few_are_tried_until_one_succeeds() {
        let memory = FailureMemory::default();
        assert_eq!(tried(&memory, 100), [0, 1, 2, 11, 28, 61]);
        assert!(!memory.leaves_out(&"silver"));
        memory.note("gold", false);
        assert_eq!(tried(&memory, 12), [0, 1, 2, 11]);
        memory.clear();
        assert_eq!(tried(&memory, 3), [0, 1, 2]);
        // Those that were under way.
        (0..30).for_each(|_| memory.note("gold", true));
        assert_eq!(tried(&memory, 10), [8]);
    }
}
