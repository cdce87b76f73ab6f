//! The summary line of a figure, and how times and sizes are written.
//!
//! Always holds: low, high and total lose what is behind the point, as OpenStack's do; the average has one digit of it.

use super::Checks;
use serde_json::{Value, json};
use std::io;
use vocabulary::calendar;

/// What hosts said of one figure, null where they had nothing to say.
pub(super) struct FigureSummary {
    numbers: Vec<f64>,
    wanting: usize,
}

impl FigureSummary {
    /// Of these answers.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let (mut numbers, mut wanting) = (vec![], 0);
        for value in values {
            match value.as_f64() {
                Some(number) => numbers.push(number),
                None => wanting += 1,
            }
        }
        Self { numbers, wanting }
    }

    /// Of these numbers.
    pub(super) fn of_numbers(numbers: Vec<f64>) -> Self {
        Self { numbers, wanting: 0 }
    }

    /// Whether any host said something.
    pub(super) fn is_there(&self) -> bool {
        !self.numbers.is_empty()
    }

    pub(super) fn low(&self) -> f64 {
        self.numbers.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn high(&self) -> f64 {
        self.numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    fn total(&self) -> f64 {
        self.numbers.iter().sum()
    }

    pub(super) fn average(&self) -> f64 {
        self.total() / self.numbers.len() as f64
    }

    fn failed(&self) -> f64 {
        self.wanting as f64 / (self.wanting + self.numbers.len()) as f64 * 100.0
    }

    fn line(&self, name: &str) -> String {
        format!(
            "[{name}] low: {}, high: {}, avg: {:.1}, total: {}, Failed: {:.1}%, no_result: {}, reported: {}",
            self.low() as i128,
            self.high() as i128,
            self.average(),
            self.total() as i128,
            self.failed(),
            self.wanting,
            self.numbers.len()
        )
    }

    fn json(&self) -> Value {
        json!({
            "low": self.low(), "high": self.high(), "average": self.average(), "total": self.total(),
            "no_result": self.wanting, "reported": self.numbers.len(),
        })
    }
}

impl Checks<'_, '_, '_> {
    /// The line of a figure; under `absent` when no host said anything.
    pub(super) fn summarise(&mut self, name: &str, absent: &str, summary: &FigureSummary) -> io::Result<()> {
        match summary.is_there() {
            true => {
                self.writer.summary(name, summary.json());
                self.writer.line(summary.line(name))
            }
            false => {
                self.writer.summary(name, Value::Null);
                self.writer
                    .line(format_args!("[{absent}] - No hosts returned valid data."))
            }
        }
    }

    /// When what hosts do was done the first and the last time: (host, when).
    pub(super) fn completions(&mut self, times: &[(String, f64)]) -> io::Result<()> {
        let Some((first, rest)) = times.split_first() else {
            return Ok(());
        };
        let oldest = rest
            .iter()
            .fold(first, |old, new| if new.1 < old.1 { new } else { old });
        let newest = rest
            .iter()
            .fold(first, |old, new| if new.1 > old.1 { new } else { old });
        self.writer
            .summary("oldest_completion", json!({ "host": oldest.0, "time": oldest.1 }));
        self.writer
            .summary("most_recent_completion", json!({ "host": newest.0, "time": newest.1 }));
        let now = self.scout.now();
        match oldest.1 == 0.0 {
            true => self
                .writer
                .line(format_args!("Oldest completion was NEVER by {}.", oldest.0))?,
            false => {
                let (when, ago) = (date(oldest.1), ago(now - oldest.1));
                self.writer.line(format_args!(
                    "Oldest completion was {when} ({ago} ago) by {}.",
                    oldest.0
                ))?;
            }
        }
        if newest.1 != 0.0 {
            let (when, ago) = (date(newest.1), ago(now - newest.1));
            self.writer.line(format_args!(
                "Most recent completion was {when} ({ago} ago) by {}.",
                newest.0
            ))?;
        }
        Ok(())
    }
}

/// `2026-11-21 08:46:49`.
pub(super) fn date(seconds: f64) -> String {
    calendar::iso(seconds as u64, ' ')
}

/// `3 minutes`.
fn ago(seconds: f64) -> String {
    let (count, unit) = match seconds {
        seconds if seconds < 60.0 => (seconds, "seconds"),
        seconds if seconds < 3600.0 => (seconds / 60.0, "minutes"),
        seconds if seconds < 86_400.0 => (seconds / 3600.0, "hours"),
        seconds => (seconds / 86_400.0, "days"),
    };
    format!("{} {unit}", count as i64)
}

/// `12 GB`: the largest unit of which there is one, cut off.
pub(super) fn size(bytes: u128) -> String {
    const UNITS: [&str; 9] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    let (mut count, mut unit) = (bytes, 0);
    while count >= 1000 && unit + 1 < UNITS.len() {
        count /= 1000;
        unit += 1;
    }
    format!("{count} {}", UNITS[unit])
}
