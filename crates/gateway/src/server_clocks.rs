//! Whether this machine's clock agrees with those of the storage servers.
//!
//! Their answers carry the time (`Date`). A gateway whose clock is far from most of theirs writes what no other gateway
//! can overwrite for as long, or what is over, expired or due by a lifecycle as soon as it is written; so it writes
//! nothing. Before it refuses a write it asks some servers once more: a clock that was corrected, or a machine that
//! stood still, costs no client anything.
//! Always holds: each server's machine counts once; where as many agree with this clock as do not, it counts as right,
//! and so it does where one machine of several is all that disagrees.
//! Servers of this process carry no time in their answers, and where none is known every write is made.
//! Deliberately absent: which clock is right; asking (`clock_question.rs`).

use http::header::{DATE, HeaderMap};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vocabulary::calendar;
use world::{Clock, World};

/// Between two answers whose time is noted.
const NOTE_EVERY: Duration = Duration::from_millis(100);
/// An answer has whole seconds, and may have waited for this process.
const SLACK: i64 = 5;
/// How long answers count that were asked for.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Machines whose time is remembered.
const MOST_KNOWN: usize = 256;

/// See the module.
pub(crate) struct ServerClocks {
    machine: Arc<dyn Clock>,
    most: Duration,
    /// By address: what the clock there shows less this machine's monotonic time, in seconds.
    known: Mutex<HashMap<Arc<str>, i64>>,
    /// When the next answer is noted, by monotonic time in milliseconds.
    next_note: AtomicU64,
    /// When servers were last asked, and whether there is but one machine.
    asked: tokio::sync::Mutex<(Option<Duration>, bool)>,
}

/// This machine's clock is far from those of most servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockDiffers {
    /// By so many seconds it is ahead; behind, where it is less than none.
    pub(crate) ahead: i64,
}

/// What storage servers answered to the question what time it is.
pub(crate) struct TimeAnswers {
    /// Heads of answers, with the addresses of their machines.
    pub(crate) heads: Vec<(Arc<str>, HeaderMap)>,
    /// Whether the cluster has but one machine.
    pub(crate) is_one_machine: bool,
}

impl ServerClocks {
    /// Clocks may differ by `most`.
    pub(crate) fn new(world: &World, most: Duration) -> Self {
        Self {
            machine: world.clock.clone(),
            most,
            known: Mutex::default(),
            next_note: AtomicU64::new(0),
            asked: tokio::sync::Mutex::default(),
        }
    }

    /// Takes note of the time in an answer from `address`, now and then.
    pub(crate) fn see(&self, address: &Arc<str>, headers: &HeaderMap) {
        let now = self.machine.elapsed();
        let millis = now.as_millis() as u64;
        if millis < self.next_note.load(Ordering::Relaxed) {
            return;
        }
        self.next_note
            .store(millis + NOTE_EVERY.as_millis() as u64, Ordering::Relaxed);
        self.note(address, headers);
    }

    fn note(&self, address: &Arc<str>, headers: &HeaderMap) {
        let date = headers
            .get(DATE)
            .and_then(|date| calendar::parse_http(date.to_str().ok()?));
        let Some(date) = date.and_then(|date| i64::try_from(date).ok()) else {
            return;
        };
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN && !known.contains_key(address) {
            known.clear();
        }
        known.insert(address.clone(), date - self.machine.elapsed().as_secs() as i64);
    }

    /// What most of the machines whose time is known say of this one's clock, if at least `least` say so.
    fn judge(&self, least: usize) -> Result<(), ClockDiffers> {
        let now = self.machine.now().seconds() as i64 - self.machine.elapsed().as_secs() as i64;
        let allowed = i64::try_from(self.most.as_secs())
            .unwrap_or(i64::MAX)
            .saturating_add(SLACK);
        let known = self.known.lock();
        let mut far: Vec<i64> = known
            .values()
            .map(|base| now - base)
            .filter(|ahead| ahead.abs() > allowed)
            .collect();
        if far.len() < least || 2 * far.len() <= known.len() {
            return Ok(());
        }
        far.sort_unstable();
        let ahead = far.get(far.len() / 2).copied().unwrap_or_default();
        Err(ClockDiffers { ahead })
    }

    /// Whether a write may have its time by this machine's clock. Where what is known says no, servers are asked anew:
    /// `ask` has their answers, which alone count then.
    pub(crate) async fn check(&self, ask: impl Future<Output = TimeAnswers>) -> Result<(), ClockDiffers> {
        if self.judge(1).is_ok() {
            return Ok(());
        }
        let mut asked = self.asked.lock().await;
        let is_recent = |asked: Duration| self.machine.elapsed().saturating_sub(asked) < ASK_EVERY;
        if !asked.0.is_some_and(is_recent) {
            let TimeAnswers { heads, is_one_machine } = ask.await;
            self.known.lock().clear();
            heads.iter().for_each(|(address, headers)| self.note(address, headers));
            *asked = (Some(self.machine.elapsed()), is_one_machine);
        }
        self.judge(if asked.1 { 1 } else { 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_clock::tests::machine;

    const NOW: u64 = 1_700_000_000;

    #[test]
    fn most_machines_decide_and_each_counts_once() {
        let (machine, world) = machine(NOW, 0);
        let clocks = ServerClocks::new(&world, Duration::from_secs(60));
        let note = |address: &str, ahead: i64| {
            let date = calendar::http((NOW as i64 + ahead) as u64).parse().unwrap();
            clocks.note(&address.into(), &HeaderMap::from_iter([(DATE, date)]));
        };
        let ahead = || clocks.judge(1).map_err(|differs| differs.ahead);
        assert_eq!(ahead(), Ok(()), "none is known");
        clocks.note(&"none".into(), &HeaderMap::new());
        note("a", 65);
        assert_eq!(ahead(), Ok(()));
        note("a", 66);
        assert_eq!(ahead(), Err(-66));
        note("b", 0);
        note("a", 4000);
        assert_eq!(ahead(), Ok(()), "one says this, the other that");
        note("c", 3900);
        assert_eq!(ahead(), Err(-3900));
        note("a", 0);
        assert_eq!(ahead(), Ok(()));
        drop(machine);
        note("a", 4000);
        assert!(clocks.judge(2).is_err() && clocks.judge(3).is_ok());
        for server in 0..2 * MOST_KNOWN {
            note(&server.to_string(), 0);
        }
        assert!(clocks.known.lock().len() <= MOST_KNOWN);
    }
}
