//! How far clocks of servers are from this machine's, by the `Date` of their answers, and by `/recon/time` or
//! `martlet_clock_seconds` where there is one.
//!
//! An answer's time lies between question and answer: that bounds the distance from both sides, and each further answer
//! narrows it. Which clock is wrong is a vote: the time that fits most machines, this one among them, counts as right
//! (Marzullo's algorithm, as NTP has it).
//! Always holds: a clock counts as off only when every distance that its answers allow is more than a second away from
//! the time that fits most; a hostile date is a date.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Clocks may differ by so much, in seconds.
pub(super) const CLOSE_CLOCKS: f64 = 1.0;
/// How exact a `Date` is: it has whole seconds, and a server may say the same for a second.
pub(super) const DATE_GRAIN: f64 = 2.0;
/// Distances by which intervals are widened when the right time is looked for: half of what is allowed.
const SLACK: f64 = 0.5;

/// Seconds that a clock is ahead of this machine's, at least and at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClockOffset {
    pub least: f64,
    pub most: f64,
}

impl ClockOffset {
    /// This machine's own.
    pub const NONE: Self = Self { least: 0.0, most: 0.0 };

    /// Of a clock that reported a time between question and answer; `grain` is how much later it may have been.
    pub fn of(reported: f64, asked: f64, answered: f64, grain: f64) -> Option<Self> {
        let (least, most) = (reported - answered, reported + grain - asked);
        (least.is_finite() && most.is_finite() && least <= most).then_some(Self { least, most })
    }

    /// Both; the later one alone where a clock was set in between.
    pub fn and(self, later: Self) -> Self {
        let both = Self {
            least: self.least.max(later.least),
            most: self.most.min(later.most),
        };
        if both.least <= both.most { both } else { later }
    }

    /// The likeliest.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    /// How far it is away from a time, at least: ahead is more than 0, behind is less.
    pub fn distance(self, right: f64) -> f64 {
        match () {
            () if self.least > right => self.least - right,
            () if self.most < right => self.most - right,
            () => 0.0,
        }
    }
}

/// What is known of a clock with one more answer.
pub(super) fn narrowed(known: Option<ClockOffset>, later: Option<ClockOffset>) -> Option<ClockOffset> {
    match (known, later) {
        (Some(known), Some(later)) => Some(known.and(later)),
        (known, later) => later.or(known),
    }
}

/// The distance that fits most machines; of several the one next to this machine's clock. One machine has one vote,
/// however many servers run on it: `own` are this machine's addresses.
pub(super) fn right_time<'s>(clocks: impl Iterator<Item = (&'s str, ClockOffset)>, own: &[IpAddr]) -> f64 {
    let mut machines: BTreeMap<&str, ClockOffset> = BTreeMap::new();
    let is_own = |machine: &str| machine.parse().is_ok_and(|address| own.contains(&address));
    for (machine, clock) in clocks.filter(|(machine, _)| !is_own(machine)) {
        machines
            .entry(machine)
            .and_modify(|known| *known = known.and(clock))
            .or_insert(clock);
    }
    let mut all: Vec<ClockOffset> = machines.into_values().collect();
    all.push(ClockOffset::NONE);
    let votes = |time: f64| all.iter().filter(|clock| clock.distance(time).abs() <= SLACK).count();
    let ends = all
        .iter()
        .flat_map(|clock| [clock.least - SLACK, clock.most + SLACK, clock.middle()]);
    let best = ends.max_by(|one, other| votes(*one).cmp(&votes(*other)).then(other.abs().total_cmp(&one.abs())));
    match best {
        // This machine's clock, where it is among those that fit.
        Some(best) if votes(best) > votes(0.0) => best,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockOffset, DATE_GRAIN, right_time};

    fn of(least: f64, most: f64) -> ClockOffset {
        ClockOffset { least, most }
    }

    #[test]
    fn an_answer_bounds_a_clock_from_both_sides() {
        // Asked at 100.2, answered at 100.4 with second 103.
        let date = ClockOffset::of(103.0, 100.2, 100.4, DATE_GRAIN).unwrap();
        assert!((date.least - 2.6).abs() < 1e-9 && (date.most - 4.8).abs() < 1e-9);
        assert!((date.distance(0.0) - 2.6).abs() < 1e-9 && (date.distance(6.0) + 1.2).abs() < 1e-9);
        assert_eq!(date.and(of(3.0, 9.0)), of(3.0, date.most));
        assert_eq!(date.and(of(8.0, 9.0)), of(8.0, 9.0));
        assert_eq!(ClockOffset::of(f64::INFINITY, 0.0, 1.0, 1.0), None);
    }

    #[test]
    fn most_machines_are_right() {
        let (near, far) = (of(-0.2, 0.3), of(29.0, 31.0));
        assert_eq!(right_time([("a", near), ("b", far)].into_iter(), &[]), 0.0);
        // This machine is the one that is off.
        let right = right_time([("a", far), ("b", far), ("c", of(29.5, 29.6))].into_iter(), &[]);
        assert!((29.0..=30.0).contains(&right), "{right}");
        // Three servers of one machine have one vote, and of one against one this machine's counts.
        assert_eq!(right_time([("a", far), ("a", far), ("a", far)].into_iter(), &[]), 0.0);
        assert_eq!(right_time(std::iter::empty(), &[]), 0.0);
        // Of a cluster of three this machine is one, and the two others agree.
        let three = [("10.0.0.1", near), ("10.0.0.2", far), ("10.0.0.3", far)];
        let right = right_time(three.into_iter(), &["10.0.0.1".parse().unwrap()]);
        assert!((28.5..=31.0).contains(&right), "{right}");
    }
}
