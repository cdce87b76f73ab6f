//! The half of a server that serves; the other half is the [overseer](crate::overseer).
//!
//! It finds the socket to accept from as its standard input and tells the overseer in lines on its standard output
//! how it is: [`READY`], [`CLOSED`]. On SIGTERM and Ctrl-C it finishes the requests that run, idle connections are
//! closed at once. On SIGHUP and SIGUSR1 it leaves to its successor: it accepts no more, answers on the connections
//! it has until each has got `Connection: close` with its last response, and finishes.
//! Always holds: it ends when its overseer is killed, unless it is leaving.

use crate::failure::CommandFailure;
use crate::process;
use crate::program::{let_go_of_input, redirect};
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use peer::http_server::{Linger, Shutdown};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use world::network::RealNetwork;
use world::{Listener, World};

/// The process id of the overseer; set for workers only.
pub const OVERSEER: &str = "MARTLET_WORKER_OF";
/// Said once it accepts connections.
pub const READY: &str = "ready";
/// Said once it accepts no more.
pub const CLOSED: &str = "closed";

/// How long a connection that is not used stays open when the worker leaves. A client that uses it within this time
/// hears that it ends and loses nothing.
const LINGER: Duration = Duration::from_secs(5);

/// This process, when an overseer has started it.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    overseer: i32,
}

/// What leaving takes.
pub struct Leaving {
    /// Receives how long unused connections stay.
    pub linger: Linger,
    /// Ends when the socket has been closed.
    pub closed: oneshot::Receiver<()>,
    /// How long requests may take to finish.
    pub longest: Duration,
}

impl Worker {
    /// Whether this process is one.
    pub fn from_environment() -> Option<Self> {
        let overseer = std::env::var(OVERSEER).ok()?.parse().ok()?;
        Some(Self { overseer })
    }

    /// Lists of processes show it as what it is; the path it was started by ends in `exe`.
    pub fn take_name(self) {
        let _ = set_name(c"martlet");
    }

    /// The socket to accept from.
    pub fn listener(self) -> Result<Box<dyn Listener>, CommandFailure> {
        let doing = || CommandFailure::io("take", Path::new("the socket from the overseer"));
        let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(doing())?;
        let_go_of_input()?;
        RealNetwork.accept_on(socket.into()).map_err(doing())
    }

    /// To be called with the user the worker keeps: a change of it forgets this.
    pub fn end_with_overseer(self) -> Result<(), CommandFailure> {
        set_pdeathsig(Signal::SIGTERM).map_err(redirect)?;
        match getppid().as_raw() == self.overseer {
            true => Ok(()),
            false => Err(CommandFailure::Usage("the overseer has ended".into())),
        }
    }

    /// Tells the overseer; one that is gone need not know.
    pub fn say(self, word: &str) {
        let mut out = std::io::stdout().lock();
        drop(writeln!(out, "{word}").and_then(|()| out.flush()));
    }

    /// Serves until asked to end or to leave, and then what there is to finish.
    pub async fn until_stopped(
        self,
        world: &World,
        shutdown: Shutdown,
        leaving: Leaving,
    ) -> Result<(), CommandFailure> {
        let doing = || CommandFailure::io("watch", Path::new("signals"));
        let mut leave = signal(SignalKind::hangup()).map_err(doing())?;
        let mut renew = signal(SignalKind::user_defined1()).map_err(doing())?;
        let leaves = async {
            tokio::select! { _ = leave.recv() => {}, _ = renew.recv() => {} }
        };
        self.say(READY);
        tokio::select! {
            ended = process::until_asked_to_end(world, &shutdown) => return ended,
            () = leaves => {}
        }
        // It outlives its overseer from here on.
        set_pdeathsig(None).map_err(redirect)?;
        leaving.linger.set(LINGER);
        shutdown.begin();
        // An error is what it gives: the other end is dropped with the socket.
        let _ = leaving.closed.await;
        self.say(CLOSED);
        tracing::info!("leaving to a successor; finishing what runs");
        tokio::select! {
            _ = world.timeout(leaving.longest, shutdown.finished()) => return Ok(()),
            asked = process::asked_to_end() => asked?,
        }
        // Its requests have the time that those of its successor have.
        let _ = world.timeout(process::PATIENCE, shutdown.finished()).await;
        Ok(())
    }
}
