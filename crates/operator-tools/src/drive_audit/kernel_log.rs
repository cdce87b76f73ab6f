//! The kernel's log: which devices had errors lately, and how many.
//!
//! Only what is behind the last boot counts: drives that failed before it may have been exchanged, or named anew.
//! Lines begin with the local time, as syslog writes it (`Nov 21 09:28:15`) or as ISO 8601 does; others do not count.
//! Always holds: any bytes are read; a file is read from its beginning, a line at a time.

use regex::{Regex, RegexBuilder};
use settings::drive_audit::USUAL_PATTERNS;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use world::World;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Patterns from configurations may not grow larger than this when compiled.
const LARGEST_PATTERN: usize = 10 << 20;
/// What is longer is no line of a log.
const LONGEST_LINE: u64 = 1 << 20;
/// What the kernel says first after a boot.
const BOOT: [&str; 3] = [
    "[    0.000000]",
    "KERNEL supported cpus:",
    "BIOS-provided physical RAM map:",
];

/// A local time: year, month, day, hour, minute, second.
type Local = [i64; 6];

/// Where the log is, and what is looked for in it.
pub(super) struct KernelLog {
    pattern: PathBuf,
    minutes: i64,
    errors: Vec<Regex>,
}

impl KernelLog {
    /// `patterns` are looked for instead of the usual ones, unless there are none.
    pub(super) fn new(pattern: &str, minutes: i64, patterns: &[String]) -> Result<Self, String> {
        let usual = USUAL_PATTERNS.map(str::to_owned);
        let wanted = if patterns.is_empty() { &usual[..] } else { patterns };
        let compiled = wanted.iter().map(|wanted| {
            let built = RegexBuilder::new(wanted).size_limit(LARGEST_PATTERN).build();
            let built = built.map_err(|error| format!("regex_pattern {wanted}: {error}"))?;
            match built.captures_len() {
                1 => Err(format!(
                    "regex_pattern {wanted}: expected parentheses around the device's name"
                )),
                _ => Ok(built),
            }
        });
        Ok(Self {
            pattern: pattern.into(),
            minutes,
            errors: compiled.collect::<Result<_, _>>()?,
        })
    }

    /// Devices with how many errors they had, the last one that failed first.
    pub(super) fn errors(&self, world: &World) -> io::Result<Vec<(String, i64)>> {
        let now = local_now()?;
        let since = seconds(now) - self.minutes.saturating_mul(60);
        let mut found: Vec<(String, i64)> = vec![];
        for path in files(world, &self.pattern) {
            let opened = File::open(&path).and_then(|file| self.read(BufReader::new(file), now, since, &mut found));
            if let Err(error) = opened {
                tracing::warn!("cannot read {}: {error}", path.display());
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Counts what is in one file behind its last line that is too old, or of a boot.
    fn read(&self, mut lines: impl BufRead, now: Local, since: i64, found: &mut Vec<(String, i64)>) -> io::Result<()> {
        let before = found.clone();
        let mut line = vec![];
        loop {
            line.clear();
            if io::Read::take(&mut lines, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line);
            let time = time_of(&text, now);
            if time.is_some_and(|time| seconds(time) < since) || BOOT.iter().any(|mark| text.contains(mark)) {
                found.clone_from(&before);
                continue;
            }
            if time.is_none() {
                continue;
            }
            for pattern in &self.errors {
                let Some(device) = pattern.captures(&text).and_then(|captures| captures.get(1)) else {
                    continue;
                };
                let before = found.iter().position(|(name, _)| name == device.as_str());
                let count = before.map_or(0, |at| found.remove(at).1);
                found.push((device.as_str().to_owned(), count + 1));
            }
        }
    }
}

/// The machine knows its time zone.
fn local_now() -> io::Result<Local> {
    let said = Command::new("date").arg("+%Y %m %d %H %M %S").output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let parts: Vec<i64> = said.split_whitespace().filter_map(|part| part.parse().ok()).collect();
    parts
        .try_into()
        .map_err(|_| io::Error::other("date does not tell the time"))
}

/// The time at the beginning of a line. Syslog leaves out the year: it is this one, or the last for months to come.
fn time_of(line: &str, now: Local) -> Option<Local> {
    let iso = || -> Option<Local> {
        let parts: Vec<&str> = line.get(..19)?.split(['-', 'T', ':']).collect();
        let parts: Vec<i64> = parts.into_iter().map(|part| part.parse().ok()).collect::<Option<_>>()?;
        parts.try_into().ok()
    };
    let syslog = || -> Option<Local> {
        let mut words = line.split_whitespace();
        let month = words.next()?;
        let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
        let day = words.next()?.parse().ok()?;
        let clock: Vec<i64> = words
            .next()?
            .split(':')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        let [hour, minute, second] = clock.try_into().ok()?;
        let year = if month > now[1] { now[0] - 1 } else { now[0] };
        Some([year, month, day, hour, minute, second])
    };
    let time = iso().or_else(syslog)?;
    let [year, month, day, hour, minute, second] = time;
    let is_time = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = is_time && (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_time.then_some(time)
}

/// Seconds since 1970 if it were the time in Greenwich: for comparing local times.
fn seconds([year, month, day, hour, minute, second]: Local) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    days * 86_400 + hour * 3_600 + minute * 60 + second
}

/// The files that match a pattern, whose last part may have `*`, `?` and `[…]`, in order of names.
fn files(world: &World, pattern: &Path) -> Vec<PathBuf> {
    let directory = pattern.parent().unwrap_or(Path::new("/"));
    let Some(wanted) = pattern.file_name().and_then(|name| name.to_str()).and_then(matcher) else {
        return vec![];
    };
    let mut found = vec![];
    if let Ok(opened) = world.files.open_directory(directory) {
        // What cannot be listed holds no log.
        let _ = opened.list(&mut |name| {
            found.extend(
                name.to_str()
                    .filter(|name| wanted.is_match(name))
                    .map(|name| directory.join(name)),
            );
        });
    }
    found.retain(|path| {
        world
            .files
            .info(path)
            .is_ok_and(|info| info.kind == world::files::Kind::File)
    });
    found.sort();
    found
}

/// A shell's pattern.
fn matcher(pattern: &str) -> Option<Regex> {
    let mut regex = String::from("^");
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match rest.as_str().get(1..).and_then(|behind| behind.find(']')) {
                Some(end) => {
                    let (set, behind) = rest.as_str().split_at(end + 1);
                    let (not, set) = set.strip_prefix('!').map_or(("", set), |set| ("^", set));
                    let set = set.replace('\\', "\\\\").replace('[', "\\[").replace('^', "\\^");
                    regex.push_str(&format!("[{not}{set}]"));
                    rest = behind[1..].chars();
                }
                None => regex.push_str("\\["),
            },
            c => regex.push_str(&regex::escape(&c.to_string())),
        }
    }
    regex.push('$');
    Regex::new(&regex).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Local = [2026, 1, 2, 0, 10, 0];

    fn counted(patterns: &[String], text: &str) -> Vec<(String, i64)> {
        let log = KernelLog::new("/x", 60, patterns).unwrap();
        let mut found = vec![];
        log.read(text.as_bytes(), NOW, seconds(NOW) - 3600, &mut found).unwrap();
        found
    }

    #[test]
    fn counts_what_is_new_enough() {
        let text = "Dec 31 23:59:00 h sdd1 error\nJan  1 23:09:59 h sdb1 error\nJan  1 23:10:00 h sdb1 error\n\
                    2026-01-02T00:09:59.1+05:00 h error on sdc1\njunk sdb1 error\nJan  2 00:01:00 h sdb1 error sdb1 is bad\n";
        assert_eq!(counted(&[], text), [("sdc1".to_owned(), 1), ("sdb1".to_owned(), 3)]);
        let own = [r"weird (dm-\d+)".to_owned()];
        assert_eq!(
            counted(&own, "Jan  2 00:01:00 h weird dm-3 error sdb1"),
            [("dm-3".to_owned(), 1)]
        );
        for behind in [
            "Jan  2 00:02:00 h [    0.000000] Linux version 6.1",
            "Jan  2 00:02:00 h KERNEL supported cpus:",
            "Jan  2 00:02:00 h BIOS-provided physical RAM map:",
            "Jan  1 00:02:00 h out of order",
        ] {
            let text = format!("{text}{behind}\nJan  2 00:03:00 h sdd1 error\n");
            assert_eq!(counted(&[], &text), [("sdd1".to_owned(), 1)], "{behind}");
        }
        assert!(KernelLog::new("/x", 60, &["no group".to_owned()]).is_err());
        assert!(KernelLog::new("/x", 60, &["(".to_owned()]).is_err());
    }

    #[test]
    fn the_usual_pattern_leaves_compressed_logs_alone() {
        let usual = matcher("kern.*[!.][!g][!z]").unwrap();
        for (name, matches) in [
            ("kern.log", true),
            ("kern.log.1", true),
            ("kern.log.2.gz", false),
            ("other.log", false),
        ] {
            assert_eq!(usual.is_match(name), matches, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_line_and_pattern_are_read(text in "\\PC*", line in "[A-Z][a-z]{2} [0-9 :T-]{1,30}") {
            let _ = time_of(&text, NOW);
            let _ = time_of(&line, NOW).map(seconds);
            let _ = matcher(&text);
        }
    }
}
