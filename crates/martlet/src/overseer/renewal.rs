//! How an overseer goes on as another build: same process, same children, same socket.
//!
//! The socket passes as standard input, what the worker says as standard output, who the workers are and where the
//! ports are that they pass on in the environment. Always holds: signals are blocked from before until the new build
//! watches them, and those that have come while its worker started are sent once more, so none is lost and none kills;
//! if the other build cannot be executed, this one goes on.

use super::child::WORKERS;
use super::{Child, OverseenServer, Signals};
use crate::failure::CommandFailure;
use crate::passed_on::{KEPT, inherit, inherited, numbers};
use crate::process;
use crate::program::{Program, let_go_of_input, redirect};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, execve};
use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// What the build before left.
pub struct Inheritance {
    socket: OwnedFd,
    output: OwnedFd,
    ports: Option<OwnedFd>,
    workers: Vec<Pid>,
}

impl Inheritance {
    /// There is one after a renewal.
    pub fn take() -> Result<Option<Self>, CommandFailure> {
        let Ok(workers) = std::env::var(WORKERS) else {
            return Ok(None);
        };
        let doing = || CommandFailure::io("take over", Path::new("the socket"));
        let kept = std::env::var(KEPT).ok().and_then(|number| number.parse().ok());
        let inheritance = Self {
            socket: std::io::stdin().as_fd().try_clone_to_owned().map_err(doing())?,
            output: std::io::stdout().as_fd().try_clone_to_owned().map_err(doing())?,
            ports: kept.and_then(|number| inherited(number).ok()),
            workers: workers
                .split(',')
                .filter_map(|pid| pid.parse().ok())
                .map(Pid::from_raw)
                .collect(),
        };
        let_go_of_input()?;
        dup2_stdout(std::io::stderr()).map_err(redirect)?;
        Ok(Some(inheritance))
    }

    pub fn server(self, program: &Program) -> Result<OverseenServer<'_>, CommandFailure> {
        let mut workers = self.workers.into_iter();
        let worker = workers
            .next()
            .map(|pid| Child::known(pid, Some(self.output)))
            .transpose()?;
        Ok(OverseenServer {
            program,
            socket: TcpListener::from(self.socket),
            ports: self.ports,
            worker,
            leaving: workers.map(|pid| Child::known(pid, None)).collect::<Result<_, _>>()?,
            successor: None,
        })
    }
}

/// The signals a server lives by.
fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1]
        .into_iter()
        .collect()
}

/// What was sent in between arrives now.
pub fn unblock_signals() -> Result<(), CommandFailure> {
    signals().thread_unblock().map_err(redirect)
}

/// Comes back only if that did not work.
pub async fn go_on_as_new_build(server: &mut OverseenServer<'_>, signals: &mut Signals) -> CommandFailure {
    let kept = keep_signals(signals).await;
    let failure = match kept.and_then(|()| hand_over(server)) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    drop(unblock_signals());
    failure
}

/// Blocks signals; those that this build has heard of and not acted on wait as if they came only now.
async fn keep_signals(watched: &mut Signals) -> Result<(), CommandFailure> {
    signals().thread_block().map_err(redirect)?;
    for signal in watched.pending().await {
        raise(signal).map_err(redirect)?;
    }
    Ok(())
}

fn hand_over(server: &mut OverseenServer) -> Result<Infallible, CommandFailure> {
    let Some(pipe) = server.worker.as_mut().and_then(Child::take_pipe) else {
        return Err(CommandFailure::Usage("the worker has fallen silent".into()));
    };
    let executed = execute(server, &pipe);
    if let Some(worker) = &mut server.worker {
        worker.give_pipe_back(Some(pipe));
    }
    executed
}

fn execute(server: &OverseenServer, pipe: &impl AsFd) -> Result<Infallible, CommandFailure> {
    let path = server.program.path();
    let refuse = |error: nix::errno::Errno| CommandFailure::io("execute", &path)(error.into());
    let workers: Vec<String> = server.children().map(|child| child.pid().to_string()).collect();
    let environment = std::env::vars_os()
        .filter(|(name, _)| name != WORKERS && name != KEPT)
        .chain([
            (WORKERS.into(), workers.join(",").into()),
            (KEPT.into(), numbers(&server.ports).into()),
        ])
        .map(|(name, value)| c_string([name, OsString::from("="), value].into_iter().collect()))
        .collect::<Result<Vec<_>, _>>()?;
    let arguments = server
        .program
        .arguments
        .iter()
        .cloned()
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let build = c_string(path.clone().into_os_string())?;
    dup2_stdin(&server.socket).map_err(redirect)?;
    dup2_stdout(pipe).map_err(redirect)?;
    let keep = |inherited| server.ports.iter().try_for_each(|kept| inherit(kept, inherited));
    keep(true).map_err(CommandFailure::io("keep", Path::new("the ports")))?;
    // The thread that writes the log does not come along.
    telemetry::log_output::flush(process::LAST_LINES);
    let executed = execve(&build, &arguments, &environment).map_err(refuse);
    drop(keep(false));
    executed
}

fn c_string(text: OsString) -> Result<CString, CommandFailure> {
    CString::new(text.into_vec())
        .map_err(|_| CommandFailure::Usage("a zero byte in the command line or environment".into()))
}
