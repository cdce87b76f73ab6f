//! One command, run to its end.
//!
//! Always holds: it is in a process group of its own, so that Ctrl-C at the terminal does not end it; it is ended with
//! its group when its time is over; of its output a part is kept. What it leaves running in the background when it
//! ends goes on.

use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use world::{Clock, World};

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long its output is still read when it has ended: a process in the background may hold it open.
const LINGER: Duration = Duration::from_millis(200);
/// Bytes of its output that are kept, of each kind.
const KEPT: usize = 64 << 10;

/// What came of a command.
#[derive(Debug, Clone)]
pub(super) struct CommandEnd {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Both of its outputs.
    pub output: String,
}

/// Runs a program with arguments; it is given up after `patience`.
pub(super) async fn run_command(world: &World, words: &[String], patience: Duration) -> CommandEnd {
    let failed = |why: String| CommandEnd {
        failure: Some(why),
        output: String::new(),
    };
    let pool = match world.workers("command", 1, 1) {
        Ok(pool) => pool,
        Err(error) => return failed(format!("no thread for it: {error}")),
    };
    let (words, clock) = (words.to_vec(), world.clock.clone());
    match pool.run(move || run_here(&words, patience, &*clock)).await {
        Ok(end) => end,
        Err(error) => failed(format!("its thread ended: {error}")),
    }
}

fn run_here(words: &[String], patience: Duration, clock: &dyn Clock) -> CommandEnd {
    let mut end = CommandEnd {
        failure: None,
        output: String::new(),
    };
    let [program, arguments @ ..] = words else { return end };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            end.failure = Some(format!("cannot run {program}: {error}"));
            return end;
        }
    };
    let mut outputs: Vec<Box<dyn Read>> = vec![];
    if let Some(output) = child.stdout.take().filter(|output| ioctl_fionbio(output, true).is_ok()) {
        outputs.push(Box::new(output));
    }
    if let Some(output) = child.stderr.take().filter(|output| ioctl_fionbio(output, true).is_ok()) {
        outputs.push(Box::new(output));
    }
    let mut kept = vec![vec![]; outputs.len()];
    let mut read = |outputs: &mut Vec<Box<dyn Read>>| {
        for (output, kept) in outputs.iter_mut().zip(&mut kept) {
            take(output, kept);
        }
    };
    let begun = clock.elapsed();
    let status = loop {
        read(&mut outputs);
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if clock.elapsed().saturating_sub(begun) < patience => clock.block(LOOK),
            _ => break None,
        }
    };
    match status {
        Some(status) if status.success() => {}
        Some(status) => end.failure = Some(status.to_string()),
        None => {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // It may have ended by itself just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            end.failure = Some(format!("ended after {patience:?}"));
        }
    }
    clock.block(LINGER);
    read(&mut outputs);
    end.output = kept.iter().map(|kept| String::from_utf8_lossy(kept)).collect();
    end
}

/// Takes what there is of an output; beyond [`KEPT`] it is dropped.
fn take(output: &mut dyn Read, kept: &mut Vec<u8>) {
    let mut piece = [0; 8192];
    while let Ok(read @ 1..) = output.read(&mut piece) {
        let room = KEPT.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&piece[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::run_command;
    use std::time::Duration;
    use world::World;

    async fn shell(line: &str, patience: Duration) -> super::CommandEnd {
        let words = ["sh", "-c", line].map(str::to_owned);
        run_command(&World::real(), &words, patience).await
    }

    #[tokio::test]
    async fn output_and_failures_are_kept() {
        let long = Duration::from_secs(60);
        let good = shell("echo a; echo b >&2", long).await;
        assert_eq!((good.failure, good.output.as_str()), (None, "a\nb\n"));
        let bad = shell("echo c; exit 3", long).await;
        assert_eq!(
            (bad.failure.as_deref(), bad.output.as_str()),
            (Some("exit status: 3"), "c\n")
        );
        let none = run_command(&World::real(), &["/no/such".to_owned()], long).await;
        assert!(none.failure.unwrap().starts_with("cannot run /no/such"));
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended_and_one_in_the_background_is_not_waited_for() {
        let hung = shell("sleep 600", Duration::from_millis(100)).await;
        assert_eq!(hung.failure.as_deref(), Some("ended after 100ms"));
        let started = shell("sleep 600 & echo $!", Duration::from_secs(60)).await;
        assert_eq!(started.failure, None);
        let pid: i32 = started.output.trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // It still runs: ending it succeeds.
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}
