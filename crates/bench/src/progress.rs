//! How far a stage is: one line, over and over again in a terminal, now and then elsewhere.
//!
//! Always holds: rate, bandwidth and percentiles are those since the last line, failures those of the whole stage; the
//! remaining time stands there only where it is known or can be estimated.

use crate::figures::Latencies;
use crate::load::LoadWatch;
use crate::workload::script::OperationScript;
use crate::workload::selector::Selector;
use crate::workload::{Division, Stage, Work, WorkEnd};
use std::time::Duration;

/// Between two lines in a terminal.
pub const LIVE: Duration = Duration::from_secs(1);
/// Between two lines elsewhere: a log is not to be filled with them.
pub const PLAIN: Duration = Duration::from_secs(10);

/// Lines about one stage.
pub struct StageProgress<'a> {
    stage: &'a Stage,
    begun: Duration,
    /// When the last line was made, and what had been counted then.
    last: Duration,
    counted: (u64, u64, u64),
    between: Duration,
}

impl<'a> StageProgress<'a> {
    /// Of a stage that begins now.
    pub fn new(stage: &'a Stage, is_live: bool, now: Duration) -> Self {
        Self {
            stage,
            begun: now,
            last: now,
            counted: (0, 0, 0),
            between: if is_live { LIVE } else { PLAIN },
        }
    }

    /// The next line, once it is time for it.
    pub fn line(&mut self, watch: &LoadWatch, now: Duration) -> Option<String> {
        let passed = now.saturating_sub(self.last);
        // Delays count nothing.
        let counts_something = self.stage.works.iter().any(|work| !work.operations.is_empty());
        (passed >= self.between && counts_something).then(|| {
            let (all, recent) = (watch.so_far(), watch.take_recent());
            let line = self.text(all, &recent, passed, now);
            (self.last, self.counted) = (now, all);
            line
        })
    }

    fn text(&self, all: (u64, u64, u64), recent: &Latencies, passed: Duration, now: Duration) -> String {
        let seconds = passed.as_secs_f64().max(1e-9);
        let (before, name) = (self.counted, &self.stage.name);
        let rate = all.0.saturating_sub(before.0) as f64 / seconds;
        let bandwidth = all.2.saturating_sub(before.2) as f64 / seconds / 1e6;
        let mut text = format!("{name}: {rate:.0} op/s, {bandwidth:.1} MB/s");
        if recent.count() > 0 {
            let millis = |percent: f64| recent.percentile(percent).as_secs_f64() * 1e3;
            text += &format!(", p50 {:.2} ms, p99 {:.2} ms", millis(50.0), millis(99.0));
        }
        text += &format!(", {} failed", all.1);
        if let Some(left) = remaining(self.stage, now.saturating_sub(self.begun), all) {
            text += &format!(", {} left", clock(left));
        }
        text
    }
}

/// How long a stage lasts from now on: as its workload says, or estimated from what was done so far.
fn remaining(stage: &Stage, passed: Duration, (succeeded, failed, bytes): (u64, u64, u64)) -> Option<Duration> {
    let timed = |work: &Work| match work.end {
        WorkEnd::Enumerated => work
            .script
            .as_ref()
            .filter(|script| script.is_timed)
            .map(OperationScript::length),
        WorkEnd::After(runtime) => Some(work.ramp_up + runtime + work.ramp_down),
        _ => None,
    };
    if let Some(longest) = stage.works.iter().filter_map(timed).max() {
        return Some(longest.saturating_sub(passed));
    }
    let total = |of: fn(&Work) -> Option<u64>| {
        let each = stage.works.iter().map(of);
        each.sum::<Option<u64>>()
    };
    let estimated = |total: u64, done: u64| {
        let share = total.saturating_sub(done) as f64 / done as f64;
        Duration::try_from_secs_f64(passed.as_secs_f64() * share).ok()
    };
    match (total(operations), total(bodies)) {
        (Some(total), _) if succeeded + failed > 0 => estimated(total, succeeded + failed),
        (None, Some(total)) if bytes > 0 => estimated(total, bytes),
        _ => None,
    }
}

fn bodies(work: &Work) -> Option<u64> {
    match work.end {
        WorkEnd::Bytes(total) => Some(total),
        _ => None,
    }
}

/// Requests that a work makes in all, where it ends with their number.
fn operations(work: &Work) -> Option<u64> {
    match work.end {
        WorkEnd::Operations(total) => Some(total),
        WorkEnd::After(_) | WorkEnd::Bytes(_) => None,
        WorkEnd::Enumerated if work.script.is_some() => work.script.as_ref().map(|script| script.steps.len() as u64),
        WorkEnd::Enumerated => {
            let of_operation = |one: &crate::workload::WorkOperation| {
                let numbers = [Some(&one.containers), one.objects.as_ref()];
                let numbers: Vec<&Selector> = numbers.into_iter().flatten().map(|names| &names.numbers).collect();
                let pairs = numbers.iter().map(|numbers| numbers.span().count());
                let pairs = pairs.fold(1, u64::saturating_mul);
                let is_shared = numbers.iter().any(|numbers| matches!(numbers, Selector::Sequential(_)));
                let is_whole = one.division == Division::None && !is_shared;
                pairs.saturating_mul(if is_whole { u64::from(work.workers) } else { 1 })
            };
            Some(work.operations.iter().map(of_operation).fold(0, u64::saturating_add))
        }
    }
}

/// Minutes and seconds, and hours where there are any.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes:02}:{:02}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{LIVE, PLAIN, StageProgress};
    use crate::figures::Latencies;
    use crate::load::LoadWatch;
    use crate::workload::{Stage, own_format};
    use std::time::Duration;

    fn stage(text: &str) -> Stage {
        own_format::parse(&format!("[storage]\ntype = 'none'\n[[stage]]\nname = 's'\n{text}"))
            .unwrap()
            .stages[0]
            .clone()
    }

    /// The line after ten seconds of 50 requests a second, five failures and one kilobyte for each request.
    fn line(stage: &Stage) -> String {
        let watch = LoadWatch::default();
        let mut progress = StageProgress::new(stage, true, Duration::ZERO);
        watch.add(495, 5, 495_000);
        progress.line(&watch, Duration::from_secs(9)).unwrap();
        let mut recent = Latencies::default();
        (0..98).for_each(|_| recent.record(Duration::from_millis(2)));
        (0..2).for_each(|_| recent.record(Duration::from_millis(80)));
        watch.add_recent(&recent);
        watch.add(100, 0, 2_000_000);
        progress.line(&watch, Duration::from_secs(10)).unwrap()
    }

    #[test]
    fn a_line_says_what_happened_since_the_last_one() {
        let read = "operations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]\nworkers = 4\n";
        let now = "s: 100 op/s, 2.0 MB/s, p50 2.00 ms, p99 80.06 ms, 5 failed";
        for (end, left) in [
            ("runtime = '5m'\nrampup = '10s'", ", 05:00 left"),
            ("runtime = '2h'", ", 1:59:50 left"),
            // 600 of 1,800 requests took ten seconds.
            ("total_operations = 1800", ", 00:20 left"),
            ("total_bytes = 4_990_000", ", 00:10 left"),
        ] {
            assert_eq!(line(&stage(&format!("{read}{end}"))), format!("{now}{left}"));
        }
        let prepare = "type = 'prepare'\nworkers = 4\ncontainers = 'r(1,10)'\nsizes = 'c(1)KB'\nobjects = ";
        assert_eq!(
            line(&stage(&format!("{prepare}'r(1,120)'"))),
            format!("{now}, 00:10 left")
        );
        let each = stage(&format!("{prepare}'r(1,30)'\ndivision = 'none'"));
        assert_eq!(
            line(&each),
            format!("{now}, 00:10 left"),
            "each worker goes through all names"
        );
    }

    #[test]
    fn lines_come_often_in_a_terminal_and_seldom_elsewhere() {
        let stage = stage("runtime = '1m'\noperations = [{ type = 'read', containers = 'c(1)', objects = 'u(1,10)' }]");
        let watch = LoadWatch::default();
        for (is_live, between) in [(true, LIVE), (false, PLAIN)] {
            let mut progress = StageProgress::new(&stage, is_live, Duration::ZERO);
            assert_eq!(progress.line(&watch, between - Duration::from_millis(1)), None);
            let text = progress.line(&watch, between).unwrap();
            assert!(text.starts_with("s: 0 op/s, 0.0 MB/s, 0 failed, 0"), "{text}");
            assert_eq!(progress.line(&watch, between), None);
        }
        let delay = Stage {
            works: vec![],
            ..stage.clone()
        };
        assert_eq!(
            StageProgress::new(&delay, true, Duration::ZERO).line(&watch, PLAIN),
            None
        );
    }
}
