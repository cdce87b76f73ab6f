//! A worker as its overseer sees it: a process that says on a pipe how it is.

use super::Signals;
use crate::failure::CommandFailure;
use crate::passed_on::{CHANNELS, KEPT, channel, inherit, numbers};
use crate::program::Program;
use crate::worker::{CLOSED, OVERSEER, READY};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::cell::Cell;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

/// How long a worker may take until it serves.
const STARTING: Duration = Duration::from_secs(120);
/// How long one that says nothing any more may take to end.
const SILENCE: Duration = Duration::from_secs(5);
/// Process ids of the workers, the one that serves first.
pub const WORKERS: &str = "MARTLET_OVERSEER_OF";
/// How long a worker may take that is asked to end before it serves.
const PARTING: Duration = Duration::from_secs(1);

/// What came of starting one.
pub enum WorkerStart {
    /// It accepts connections.
    Serving(Child),
    /// It ended with this status before it did; it has said why.
    Ended(i32),
    /// The server was asked to end; [`Signals`] remember it.
    Stopped,
}

/// A worker.
pub struct Child {
    pid: Pid,
    begun: Instant,
    /// What it says; none of a worker that was inherited as one that leaves.
    output: Option<BufReader<Receiver>>,
    /// It has closed its socket as it was asked to.
    closed: bool,
    /// Where it passes its ports on.
    ports: Option<OwnedFd>,
    ended: Cell<Option<i32>>,
}

impl Child {
    /// Starts `build` as a worker, with the `ports` of the one before, and waits until it serves. If the server is
    /// asked to
    pub async fn begin(
        program: &Program,
        build: &Path,
        (socket, ports): (&TcpListener, Option<&OwnedFd>),
        signals: &mut Signals,
    ) -> Result<WorkerStart, CommandFailure> {
        let mut child = Self::spawn(program, build, socket, ports)?;
        let word = tokio::select! {
            word = tokio::time::timeout(STARTING, child.word()) => word.unwrap_or_default(),
            () = signals.end() => {
                // It may have taken a request already, or not even watch for signals.
                child.signal(Signal::SIGTERM);
                child.end_within(PARTING).await;
                return Ok(WorkerStart::Stopped);
            }
        };
        if word.as_deref() == Some(READY) {
            return Ok(WorkerStart::Serving(child));
        }
        // Having fallen silent, it ends in a moment, or never.
        let patience = if word.is_none() { SILENCE } else { Duration::ZERO };
        let ended = child.end_within(patience).await;
        Ok(WorkerStart::Ended(ended.unwrap_or(1)))
    }

    fn spawn(
        program: &Program,
        build: &Path,
        socket: &TcpListener,
        ports: Option<&OwnedFd>,
    ) -> Result<Self, CommandFailure> {
        let doing = || CommandFailure::io("start", build);
        let [name, arguments @ ..] = program.arguments.as_slice() else {
            return Err(CommandFailure::Usage("called without a name".into()));
        };
        let socket: OwnedFd = socket.try_clone().map_err(doing())?.into();
        let (to, kept) = match channel() {
            Ok((to, kept)) => (Some(to), Some(kept)),
            Err(error) => {
                tracing::warn!("further ports will be closed for a moment when this worker is replaced: {error}");
                (None, None)
            }
        };
        // Only behind an end to write to.
        let from = ports.filter(|_| to.is_some()).map(OwnedFd::try_clone);
        let from = from.transpose().map_err(doing())?;
        let channels: Vec<OwnedFd> = to.into_iter().chain(from).collect();
        for channel in &channels {
            inherit(channel, true).map_err(doing())?;
        }
        let mut process = Command::new(build)
            .arg0(name)
            .args(arguments)
            .env(OVERSEER, std::process::id().to_string())
            .env(CHANNELS, numbers(&channels))
            .env_remove(WORKERS)
            .env_remove(KEPT)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(doing())?;
        let pid =
            i32::try_from(process.id()).map_err(|_| CommandFailure::Usage("a process id beyond all bounds".into()))?;
        let output = process.stdout.take().map(OwnedFd::from);
        let mut child = Self::known(Pid::from_raw(pid), output)?;
        child.ports = kept;
        Ok(child)
    }

    /// A worker that runs already.
    pub fn known(pid: Pid, output: Option<OwnedFd>) -> Result<Self, CommandFailure> {
        let output = output.map(Receiver::from_owned_fd).transpose();
        let output = output.map_err(CommandFailure::io("listen to", Path::new("the worker")))?;
        Ok(Self {
            pid,
            begun: Instant::now(),
            output: output.map(BufReader::new),
            closed: false,
            ports: None,
            ended: Cell::new(None),
        })
    }

    /// The next thing it says; `None` when it will say no more.
    async fn word(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.as_mut()?.read_line(&mut line).await;
        match read {
            Ok(length) if length > 0 => Some(line.trim_end().to_owned()),
            _ => None,
        }
    }

    /// Completes once: when it has closed its socket, or has ended.
    pub async fn closed(&mut self) {
        if self.output.is_none() {
            return std::future::pending().await;
        }
        while let Some(word) = self.word().await {
            if word == CLOSED {
                self.closed = true;
                break;
            }
        }
        self.output = None;
    }

    /// Whether it closed its socket as it was asked to.
    pub fn has_closed(&self) -> bool {
        self.closed
    }

    /// Its exit status, once it has ended; minus the signal that killed it.
    pub fn ended(&self) -> Option<i32> {
        if self.ended.get().is_none() {
            self.ended.set(match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => Some(code),
                Ok(WaitStatus::Signaled(_, signal, _)) => Some(-(signal as i32)),
                Err(Errno::ECHILD) => Some(0),
                _ => None,
            });
        }
        self.ended.get()
    }

    /// Its exit status, should it end within `patience`; otherwise it is killed.
    async fn end_within(&self, patience: Duration) -> Option<i32> {
        let since = Instant::now();
        while since.elapsed() < patience {
            if let Some(code) = self.ended() {
                return Some(code);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.signal(Signal::SIGKILL);
        // One that hangs in a call to the system ends when that does.
        let killed = Instant::now();
        while self.ended().is_none() && killed.elapsed() < PARTING {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        None
    }

    /// How long it has run, or has been known.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Signals it; one that has ended hears nothing.
    pub fn signal(&self, signal: Signal) {
        if self.ended().is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// What it passes on to its successor.
    pub fn take_ports(&mut self) -> Option<OwnedFd> {
        self.ports.take()
    }

    /// The pipe, for the process that listens from now on.
    pub fn take_pipe(&mut self) -> Option<Receiver> {
        self.output.take().map(BufReader::into_inner)
    }

    pub fn give_pipe_back(&mut self, pipe: Option<Receiver>) {
        self.output = pipe.map(BufReader::new);
    }
}
