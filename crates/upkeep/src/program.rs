//! Another program, run to its end: rsync.
//!
//! Always holds: it is ended, with all of its process group, when its time is over, or when this process ends by
//! [`end_all`]; of its output a part is kept, however much that is; its output is read a moment longer than it lives,
//! even if another process holds it open.

use parking_lot::Mutex;
use rustix::fd::AsFd;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use vocabulary::Fault;
use world::Clock;

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long its output is still read when it has ended: a process that it started and that left its group may hold the
/// output open for ever.
const LINGER: Duration = Duration::from_secs(3);
/// Lines of an output that are kept.
const KEPT: usize = 64;
/// Bytes of a line that are kept.
const LINE: usize = 4096;
/// Bytes that are taken at a time.
const PIECE: usize = 8192;

/// The process groups of what runs; `None` once nothing may be started any more.
static RUNNING: Mutex<Option<Vec<Pid>>> = Mutex::new(Some(Vec::new()));

/// Ends all programs that this process runs, and lets it start no more: without it, they would go on using drives
/// that are about to be unmounted.
pub fn end_all() {
    // A thread that is starting one just now may hang in it.
    let Some(mut running) = RUNNING.try_lock_for(LINGER) else {
        return;
    };
    // Held meanwhile: no thread waits for them, so that their numbers stay theirs.
    for group in running.take().unwrap_or_default() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// What came of it.
pub(crate) struct Ran {
    /// Its output, at most [`KEPT`] lines.
    pub(crate) output: Vec<String>,
    /// What it complained of, at most as many lines.
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
pub(crate) fn run(program: &str, arguments: &[OsString], limit: Duration, clock: &dyn Clock) -> Result<Ran, Fault> {
    let (mut child, group) = start(program, arguments)?;
    let mut outputs = Outputs {
        output: OutputReader::on(child.stdout.take()),
        complaints: OutputReader::on(child.stderr.take()),
    };
    let status = wait(program, (&mut child, group), limit, clock, &mut outputs)?;
    let ended = clock.elapsed();
    while !outputs.are_over() && clock.elapsed().saturating_sub(ended) < LINGER {
        outputs.read(clock);
    }
    Ok(Ran {
        output: outputs.output.into_lines(),
        complaints: outputs.complaints.into_lines(),
        status,
    })
}

/// Starts it, in a process group that [`end_all`] knows.
fn start(program: &str, arguments: &[OsString]) -> Result<(Child, Pid), Fault> {
    let mut running = RUNNING.lock();
    let running = running
        .as_mut()
        .ok_or_else(|| Fault::caller(format!("{program} is not started any more: the process ends")))?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What it starts in its turn is in its group, too.
        .process_group(0)
        .spawn()
        .map_err(|error| Fault::caller(format!("cannot run {program}: {error}")))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| Fault::caller(format!("{program} has no process id")))?;
    running.push(group);
    Ok((child, group))
}

/// Waits for its end, or ends it. What it has started and left behind in its group ends, too.
fn wait(
    program: &str,
    (child, group): (&mut Child, Pid),
    limit: Duration,
    clock: &dyn Clock,
    outputs: &mut Outputs,
) -> Result<ExitStatus, Fault> {
    let has_ended = || {
        waitid(
            WaitId::Pid(group),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
        )
    };
    let began = clock.elapsed();
    let in_time = loop {
        match has_ended() {
            Ok(None) if clock.elapsed().saturating_sub(began) < limit => outputs.read(clock),
            Ok(None) => break false,
            Ok(Some(_)) | Err(_) => break true,
        }
    };
    // Its number is that of no other process before it has been waited for.
    let _ = kill_process_group(group, Signal::KILL);
    if let Some(running) = RUNNING.lock().as_mut() {
        running.retain(|other| *other != group);
    }
    let status = child
        .wait()
        .map_err(|error| Fault::caller(format!("cannot wait for {program}: {error}")))?;
    match in_time {
        true => Ok(status),
        false => Err(Fault::peer(format!("{program} was ended after {limit:?}"))),
    }
}

/// The outputs of a program, as far as they are kept.
struct Outputs {
    output: OutputReader<ChildStdout>,
    complaints: OutputReader<ChildStderr>,
}

impl Outputs {
    /// Takes what there is, or waits a moment for more.
    fn read(&mut self, clock: &dyn Clock) {
        // Both, so that one that is full does not hold the program up.
        let is_more = self.output.read() | self.complaints.read();
        if !is_more {
            clock.block(LOOK);
        }
    }

    fn are_over(&self) -> bool {
        self.output.source.is_none() && self.complaints.source.is_none()
    }
}

/// One of its outputs.
struct OutputReader<R> {
    /// Until its end.
    source: Option<R>,
    /// The line that has not ended.
    line: Vec<u8>,
    kept: Vec<String>,
}

impl<R: Read + AsFd> OutputReader<R> {
    /// On an output, which is never waited for.
    fn on(source: Option<R>) -> Self {
        Self {
            source: source.filter(|source| ioctl_fionbio(source, true).is_ok()),
            line: vec![],
            kept: vec![],
        }
    }

    /// Takes a piece; whether there was any.
    fn read(&mut self) -> bool {
        let mut piece = [0; PIECE];
        match self.source.as_mut().map(|source| source.read(&mut piece)) {
            Some(Ok(length @ 1..)) => self.take(&piece[..length]),
            Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => return false,
            Some(Ok(0) | Err(_)) => self.source = None,
            None => return false,
        }
        true
    }

    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n");
            let bytes = text.unwrap_or(part);
            self.line
                .extend_from_slice(&bytes[..bytes.len().min(LINE - self.line.len())]);
            if text.is_some() {
                self.keep();
            }
        }
    }

    fn keep(&mut self) {
        if self.kept.len() < KEPT {
            self.kept.push(String::from_utf8_lossy(&self.line).into_owned());
        }
        self.line.clear();
    }

    fn into_lines(mut self) -> Vec<String> {
        if !self.line.is_empty() {
            self.keep();
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use world::World;

    fn sh(script: &str, limit: Duration) -> Result<Ran, Fault> {
        let arguments = ["-c", script].map(OsString::from);
        run("sh", &arguments, limit, &*World::real().clock)
    }

    #[test]
    fn a_program_is_ended_in_time_with_all_that_it_started() {
        let began = Instant::now();
        let stalled = sh("sleep 60 & sleep 60", Duration::from_millis(200)).err().unwrap();
        assert!(stalled.what.contains("was ended after 200ms"), "{stalled}");
        // It has ended; what it left behind holds its output open.
        let ran = sh("echo done; sleep 60 &", Duration::from_secs(50)).unwrap();
        assert_eq!(
            (ran.output, began.elapsed() < Duration::from_secs(30)),
            (vec!["done".into()], true)
        );
    }

    #[test]
    fn what_has_left_its_group_is_not_waited_for() {
        let began = Instant::now();
        let left = "pid=$(setsid sh -c 'printf half >&2; sleep 60 >&2 & echo $!'); echo $pid";
        let ran = sh(left, Duration::from_secs(50)).unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(ran.failure().is_none() && ran.complaints == ["half"]);
        let pid = ran.output[0].parse().ok().and_then(Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }

    #[test]
    fn a_part_of_what_it_says_is_kept() {
        let ran = sh(
            "head -c 10000000 /dev/zero | tr '\\0' x; echo; seq 1000; head -c 9999999 /dev/zero >&2; exit 3",
            Duration::from_secs(50),
        );
        let ran = ran.unwrap();
        assert_eq!(
            (ran.output.len(), ran.output[0].len(), ran.output[1].as_str()),
            (KEPT, LINE, "1")
        );
        let (status, why) = ran.failure().unwrap();
        assert_eq!((status.code(), why.len()), (Some(3), LINE));
        assert!(run("no-such-program", &[], Duration::ZERO, &*World::real().clock).is_err());
    }
}
