//! The kernel's log: which devices had errors lately, and how many.
//!
//! Lines begin with the local time, as syslog writes it (`Nov 21 09:28:15`) or as ISO 8601 does; others do not count.
//! Nothing counts that stands before the last boot or before a line that is too old, neither in that file nor in older
//! ones: after a boot the letters may belong to other drives.
//! Always holds: any bytes are read; a file is read from its beginning, a line at a time; nothing waits for a pipe's
//! writer; an audit that read no file is no success.

use super::log_files::written_last_first;
use regex::{Regex, RegexBuilder};
use rustix::fs::{Mode, OFlags};
use settings::drive_audit::USUAL_PATTERNS;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use vocabulary::Fault;
use vocabulary::calendar::{LAST_SECOND, month_number, parse_iso, utc};
use world::World;
use world::files::FileKind;

/// Patterns from configurations may not grow larger than this when compiled.
const LARGEST_PATTERN: usize = 10 << 20;
/// What Python's expressions have beyond ours, and what to do without.
const NOT_KNOWN: &str = "look-ahead, look-behind and backreferences are not known here; let several regex_pattern_ options say which lines count";
/// What is longer is no line of a log.
const LONGEST_LINE: u64 = 1 << 20;

/// What the kernel logs first.
const BOOT: [&[u8]; 3] = [
    b"[    0.000000]",
    b"KERNEL supported cpus:",
    b"BIOS-provided physical RAM map:",
];

/// Devices with how many errors they had.
type Errors = Vec<(String, i64)>;

/// Where the log is, and what is looked for in it.
pub(super) struct KernelLog {
    pattern: PathBuf,
    minutes: i64,
    errors: Vec<Regex>,
}

/// What matches the pattern.
pub(super) struct LogFiles {
    read: Vec<PathBuf>,
    /// Pipes, sockets and devices: reading them may wait for ever.
    pub(super) skipped: Vec<PathBuf>,
}

impl KernelLog {
    /// `patterns`, each with the option that says it, are looked for instead of the usual ones, unless there are none.
    pub(super) fn new(pattern: &str, minutes: i64, patterns: &[(String, String)]) -> Result<Self, Fault> {
        let usual = USUAL_PATTERNS.map(|wanted| ("the usual pattern".to_owned(), wanted.to_owned()));
        let wanted = if patterns.is_empty() { &usual[..] } else { patterns };
        let compiled = wanted.iter().map(|(option, wanted)| {
            let built = RegexBuilder::new(wanted).size_limit(LARGEST_PATTERN).build();
            built.map_err(|error| {
                Fault::caller(format!(
                    "Error: unable to compile regex pattern \"{wanted}\"\n{option}: {error}\n{NOT_KNOWN}"
                ))
            })
        });
        Ok(Self {
            pattern: pattern.into(),
            minutes,
            errors: compiled.collect::<Result<_, _>>()?,
        })
    }

    /// What matches the pattern now, what was written last first.
    pub(super) fn files(&self, world: &World) -> LogFiles {
        let is_special = |path: &PathBuf| world.files.info(path).is_ok_and(|info| info.kind == FileKind::Other);
        let (skipped, read) = written_last_first(world, &self.pattern)
            .into_iter()
            .partition(is_special);
        LogFiles { read, skipped }
    }

    /// The last to fail is the first. What went wrong is in words for the operator.
    pub(super) fn errors(&self, files: &LogFiles) -> Result<Errors, Fault> {
        if files.read.is_empty() {
            let pattern = self.pattern.display();
            return Err(Fault::caller(format!(
                "No log file matches log_file_pattern = {pattern}: nothing was audited"
            )));
        }
        let now = local_now().map_err(|error| Fault::caller(error.to_string()))?;
        let since = now.saturating_add_signed(self.minutes.saturating_mul(-60));
        let mut all = Errors::new();
        for path in &files.read {
            let read = open(path).and_then(|file| self.read(BufReader::new(file), now, since));
            let (errors, older_count) = read.map_err(|error| {
                tracing::debug!("cannot read {}: {error}", path.display());
                Fault::device(format!("Unable to open {}", path.display()))
            })?;
            for (device, count) in errors.into_iter().rev() {
                match all.iter_mut().find(|(name, _)| *name == device) {
                    Some((_, all)) => *all += count,
                    None => all.push((device, count)),
                }
            }
            if !older_count {
                break;
            }
        }
        Ok(all)
    }

    /// The errors of a file, the last to fail last, and whether what older files hold counts too.
    fn read(&self, mut lines: impl BufRead, now: u64, since: u64) -> io::Result<(Errors, bool)> {
        let (mut found, mut older_count) = (Errors::new(), true);
        let mut line = vec![];
        loop {
            line.clear();
            if io::Read::take(&mut lines, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok((found, older_count));
            }
            let text = String::from_utf8_lossy(&line);
            let boot = BOOT
                .iter()
                .any(|boot| line.windows(boot.len()).any(|part| part == *boot));
            let time = time_of(&text, now);
            if boot || time.is_some_and(|time| time <= since) {
                found.clear();
                older_count = false;
                continue;
            }
            if time.is_none() {
                continue;
            }
            for pattern in &self.errors {
                // Without parentheses all that matches is the device's name.
                let group = usize::from(pattern.captures_len() > 1);
                for device in pattern.captures_iter(&text).filter_map(|captures| captures.get(group)) {
                    let before = found.iter().position(|(name, _)| name == device.as_str());
                    let count = before.map_or(0, |at| found.remove(at).1);
                    found.push((device.as_str().to_owned(), count + 1));
                }
            }
        }
    }
}

/// A pipe that has come in place of the file since does not wait for a writer.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// The local time, for which the machine knows its time zone, as seconds since 1970 if it were UTC.
fn local_now() -> io::Result<u64> {
    let output = Command::new("date").arg("+%Y-%m-%dT%H:%M:%S").output()?;
    let time = parse_iso(&String::from_utf8_lossy(&output.stdout), LAST_SECOND).map(|(seconds, _)| seconds);
    time.ok_or_else(|| io::Error::other("date does not print the time"))
}

/// The local time at the beginning of a line, as seconds since 1970 if it were UTC. Syslog leaves out the year: it is
/// this one, or the last for months to come.
fn time_of(line: &str, now: u64) -> Option<u64> {
    let iso = line.get(..19).and_then(|time| parse_iso(time, LAST_SECOND));
    if let Some((seconds, "")) = iso {
        return Some(seconds);
    }
    let mut words = line.split_whitespace();
    let (month, day, clock) = (month_number(words.next()?)?, words.next()?, words.next()?);
    let now = utc(now);
    let is_last_year = i32::from(month) > i32::from(now.month());
    let year = now.year() - i16::from(is_last_year);
    match parse_iso(&format!("{year:04}-{month}-{day}T{clock}"), LAST_SECOND)? {
        (seconds, "") => Some(seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-01-02, ten minutes after midnight.
    const NOW: u64 = 1_767_312_600;

    fn own(pattern: &str) -> [(String, String); 1] {
        [("regex_pattern_1".to_owned(), pattern.to_owned())]
    }

    fn counted(patterns: &[(String, String)], text: &str) -> (Errors, bool) {
        let log = KernelLog::new("/x", 60, patterns).unwrap();
        log.read(text.as_bytes(), NOW, NOW - 3600).unwrap()
    }

    fn expected(devices: &[(&str, i64)]) -> Errors {
        devices
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn counts_what_is_new_enough() {
        let text = "Dec 31 23:59:00 h sdd1 error\nJan  1 23:10:00 h sdb1 error\nJan  1 23:10:01 h sdb1 error\n\
                    2026-01-02T00:09:59.1+05:00 h error on sdc1\njunk sdb1 error\nJan  2 00:01:00 h sdb1 error sdb1 is bad\n";
        assert_eq!(counted(&[], text), (expected(&[("sdc1", 1), ("sdb1", 3)]), false));
        let (found, older_count) = counted(
            &own(r"weird (dm-\d+)"),
            "Jan  2 00:01:00 h weird dm-3 error sdb1 weird dm-4",
        );
        assert_eq!((found, older_count), (expected(&[("dm-3", 1), ("dm-4", 1)]), true));
        assert_eq!(
            counted(&own(r"dm-\d"), "Jan  2 00:01:00 h dm-3").0,
            expected(&[("dm-3", 1)])
        );
        for refused in ["(", r"(sd\w)(?!: fine)"] {
            let reason = KernelLog::new("/x", 60, &own(refused)).err().unwrap().what;
            assert!(reason.contains(refused) && reason.contains("regex_pattern_1: ") && reason.ends_with(NOT_KNOWN));
        }
    }

    #[test]
    fn nothing_counts_before_a_boot_or_a_line_that_is_too_old() {
        for line in [
            "Jan  2 00:05:00 h kernel: [    0.000000] Linux version 6.1",
            "KERNEL supported cpus:",
            "Jan  2 00:05:00 h BIOS-provided physical RAM map:",
            "Jan  1 22:00:00 h all is well",
        ] {
            let text = format!("Jan  2 00:04:00 h sdb1 error\n{line}\nJan  2 00:06:00 h sdc1 error\n");
            assert_eq!(counted(&[], &text), (expected(&[("sdc1", 1)]), false), "{line}");
        }
    }

    #[test]
    fn pipes_are_skipped_and_no_file_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = folder.path().join("kern*").display().to_string();
        let log = KernelLog::new(&pattern, 60, &[]).unwrap();
        let world = World::real();
        let reason = log.errors(&log.files(&world)).unwrap_err().what;
        assert!(reason.contains(&pattern), "{reason}");
        let pipe = folder.path().join("kern.pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).unwrap();
        let files = log.files(&world);
        assert_eq!(files.skipped, [pipe.as_path()]);
        log.errors(&files).unwrap_err();
        std::fs::write(folder.path().join("kern.log"), "").unwrap();
        assert_eq!(log.errors(&log.files(&world)).unwrap(), []);
        // In place of a file since it was looked at.
        let mut late = vec![];
        io::Read::read_to_end(&mut open(&pipe).unwrap(), &mut late).unwrap();
        assert!(late.is_empty());
    }

    proptest! {
        #[test]
        fn any_line_is_read(text in "\\PC*", line in "[A-Z][a-z]{2} [0-9 :T-]{1,30}") {
            let _ = time_of(&text, NOW);
            let _ = time_of(&line, NOW);
        }
    }
}
