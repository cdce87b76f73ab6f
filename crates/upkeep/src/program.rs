//! Another program, run to its end: rsync.
//!
//! Always holds: it is ended, with all that it has started, when its time is over; of what it says a part is kept,
//! however much that is; nobody waits longer for it, whoever else holds its output open.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use world::Clock;

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of its words that are kept.
const KEPT: usize = 64;
/// Bytes of a line that are kept.
const LINE: usize = 4096;

/// What came of it.
pub(crate) struct Ran {
    /// What it said, at most [`KEPT`] lines.
    pub(crate) said: Vec<String>,
    /// What it complained of, likewise.
    complaints: Vec<String>,
    status: ExitStatus,
}

impl Ran {
    /// Why it failed, if it did: its first complaint.
    pub(crate) fn failure(&self) -> Option<(ExitStatus, &str)> {
        let why = self.complaints.first().map_or("no reason given", String::as_str);
        (!self.status.success()).then_some((self.status, why))
    }
}

/// Runs a program; blocks.
pub(crate) fn run(program: &str, arguments: &[OsString], limit: Duration, clock: &dyn Clock) -> Result<Ran, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What it starts in its turn is in its group, too.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let (said, complaints) = (Said::default(), Said::default());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let status = std::thread::scope(|scope| {
        scope.spawn(|| said.listen(out));
        scope.spawn(|| complaints.listen(err));
        wait(program, &mut child, limit, clock)
    })?;
    Ok(Ran {
        said: said.0.into_inner(),
        complaints: complaints.0.into_inner(),
        status,
    })
}

/// Waits for its end, or ends it. What it has started and left behind ends, too: that would keep its output open.
fn wait(program: &str, child: &mut Child, limit: Duration, clock: &dyn Clock) -> Result<ExitStatus, String> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| format!("{program} has no process id"))?;
    let has_ended = || {
        waitid(
            WaitId::Pid(group),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
        )
    };
    let began = clock.elapsed();
    let in_time = loop {
        match has_ended() {
            Ok(None) if clock.elapsed().saturating_sub(began) < limit => std::thread::sleep(LOOK),
            Ok(None) => break false,
            Ok(Some(_)) | Err(_) => break true,
        }
    };
    // Its number is nobody else's before it has been waited for.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for {program}: {error}"))?;
    match in_time {
        true => Ok(status),
        false => Err(format!("{program} was ended after {limit:?}")),
    }
}

/// What a program says, as far as it is kept.
#[derive(Default)]
struct Said(Mutex<Vec<String>>);

impl Said {
    fn listen(&self, output: Option<impl Read>) {
        let Some(output) = output else { return };
        let mut output = BufReader::new(output);
        let mut line = vec![];
        loop {
            let (taken, over) = match output.fill_buf() {
                Ok([]) | Err(_) => break,
                Ok(bytes) => {
                    let end = memchr::memchr(b'\n', bytes);
                    let piece = &bytes[..end.unwrap_or(bytes.len())];
                    line.extend_from_slice(&piece[..piece.len().min(LINE - line.len())]);
                    (end.map_or(bytes.len(), |end| end + 1), end.is_some())
                }
            };
            output.consume(taken);
            if over {
                self.keep(&mut line);
            }
        }
        if !line.is_empty() {
            self.keep(&mut line);
        }
    }

    fn keep(&self, line: &mut Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(String::from_utf8_lossy(line).into_owned());
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use world::World;

    fn sh(script: &str, limit: Duration) -> Result<Ran, String> {
        let arguments = ["-c", script].map(OsString::from);
        run("sh", &arguments, limit, &*World::real().clock)
    }

    #[test]
    fn a_program_is_ended_in_time_with_all_that_it_started() {
        let began = Instant::now();
        let stalled = sh("sleep 60 & sleep 60", Duration::from_millis(200)).err().unwrap();
        assert!(stalled.contains("was ended after 200ms"), "{stalled}");
        // It has ended; what it left behind holds its output open.
        let ran = sh("echo done; sleep 60 &", Duration::from_secs(50)).unwrap();
        assert_eq!(
            (ran.said, began.elapsed() < Duration::from_secs(30)),
            (vec!["done".into()], true)
        );
    }

    #[test]
    fn a_part_of_what_it_says_is_kept() {
        let ran = sh(
            "head -c 10000000 /dev/zero | tr '\\0' x; echo; seq 1000; head -c 9999999 /dev/zero >&2; exit 3",
            Duration::from_secs(50),
        );
        let ran = ran.unwrap();
        assert_eq!(
            (ran.said.len(), ran.said[0].len(), ran.said[1].as_str()),
            (KEPT, LINE, "1")
        );
        let (status, why) = ran.failure().unwrap();
        assert_eq!((status.code(), why.len()), (Some(3), LINE));
        assert!(run("no-such-program", &[], Duration::ZERO, &*World::real().clock).is_err());
    }
}
