//! The half of a server that stays: it holds the socket, and replaces the [worker](crate::worker) that serves.
//!
//! Its process id is what `swift-init` and unit files know; it stays the same for as long as the server is not
//! stopped. What it does on a signal is what OpenStack's servers do:
//!
//! | signal | `swift-init` | means |
//! |---|---|---|
//! | SIGTERM, SIGINT | `stop` | the worker finishes what runs, then both end |
//! | SIGHUP | `shutdown`, `reload` | accept no more and end at once; the worker finishes alone |
//! | SIGUSR1 | `reload-seamless` | start the program and configuration of now; once it serves, the old worker leaves |
//!
//! Always holds: from the start to the end there is a socket that connections can queue at; a worker leaves only once
//! its successor serves, so a build that does not run and a configuration that is wrong cost a line in the log and
//! nothing else; a worker that dies is replaced.
//! Does not serve, and touches no device.

mod child;
mod renewal;

use crate::failure::CommandFailure;
use crate::process;
use crate::program::{Program, RUNNING};
use crate::service_manager::{NOT_RELOADED, READY, RELOADING, STOPPING, tell_service_manager};
use child::{Child, WorkerStart};
use futures_util::FutureExt;
use nix::sys::signal::Signal;
use nix::unistd::setsid;
use renewal::Inheritance;
use settings::server::ServerCommon;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout};
use world::network::RealNetwork;

/// How long to wait for a worker to close its socket, or to end after SIGTERM, before going on without.
const CLOSING: Duration = Duration::from_secs(10);
/// A worker that another process asked to leave gets a successor after this time, should it not have ended before.
const SUCCESSION: Duration = Duration::from_secs(5);
/// Between two workers that die at once.
const REST: Duration = Duration::from_secs(1);
/// Signals to several processes that were sent together have come within this time.
const AT_ONCE: Duration = Duration::from_millis(100);
/// Between two tries to take an address that is still in use.
const BETWEEN_BINDS: Duration = Duration::from_millis(100);

/// Whether this process is an overseer that goes on as another build.
pub fn is_renewed() -> bool {
    std::env::var_os(child::WORKERS).is_some()
}

/// Runs a server until it is asked to end; `warning` goes to its log.
pub fn run(common: &ServerCommon, warning: Option<String>) -> Result<(), CommandFailure> {
    let program = &Program::called();
    program.start_logging(common);
    if let Some(warning) = warning {
        tracing::error!("{warning}");
    }
    if program.is_quiet() {
        // `swift-init --kill-after-timeout` signals the group of this process. It may lead one already.
        let _ = setsid();
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandFailure::io("start", Path::new("the overseer")))?
        .block_on(oversee(program, common))
}

async fn oversee(program: &Program, common: &ServerCommon) -> Result<(), CommandFailure> {
    let mut signals = Signals::watch()?;
    let mut server = match Inheritance::take()? {
        Some(inheritance) => inheritance.server(program)?,
        None => match OverseenServer::start(program, common, &mut signals).await? {
            Some(server) => server,
            None => return Ok(()),
        },
    };
    renewal::unblock_signals()?;
    // A worker that ended before the signals were watched has raised none.
    server.take_note_of_the_dead(&mut signals).await;
    program.let_go_of_output()?;
    tell_service_manager(READY);
    loop {
        match server.next(&mut signals).await {
            Event::End => return server.end(&mut signals).await,
            Event::Leave => return server.leave().await,
            Event::Renew => server.renew(&mut signals).await,
            Event::Ended => server.take_note_of_the_dead(&mut signals).await,
            Event::WorkerClosed => server.expect_successor(SUCCESSION),
            Event::Successor => server.replace(&mut signals).await,
        }
    }
}

/// What can happen to a server.
enum Event {
    End,
    Leave,
    Renew,
    /// One of the workers, perhaps.
    Ended,
    /// Another process has asked the worker to leave.
    WorkerClosed,
    /// The time for another worker has come.
    Successor,
}

/// The signals that mean something here.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    renew: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
    /// SIGTERM or SIGINT has come.
    asked_to_end: bool,
}

impl Signals {
    fn watch() -> Result<Self, CommandFailure> {
        let on = |kind| signal(kind).map_err(CommandFailure::io("watch", Path::new("signals")));
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
            hangup: on(SignalKind::hangup())?,
            renew: on(SignalKind::user_defined1())?,
            child: on(SignalKind::child())?,
            asked_to_end: false,
        })
    }

    /// Completes when the server is asked to end, and from then on at once.
    async fn end(&mut self) {
        if !self.asked_to_end {
            tokio::select! { _ = self.terminate.recv() => {}, _ = self.interrupt.recv() => {} }
        }
        self.asked_to_end = true;
    }

    /// Those that have come and were not acted on yet.
    async fn pending(&mut self) -> Vec<Signal> {
        // The runtime passes on what the handlers saw.
        tokio::task::yield_now().await;
        let all = [
            (&mut self.terminate, Signal::SIGTERM),
            (&mut self.interrupt, Signal::SIGINT),
            (&mut self.hangup, Signal::SIGHUP),
            (&mut self.renew, Signal::SIGUSR1),
        ];
        let come = all
            .into_iter()
            .filter_map(|(watch, signal)| watch.recv().now_or_never().map(|_| signal));
        come.collect()
    }
}

/// A server with its processes.
struct OverseenServer<'a> {
    program: &'a Program,
    socket: TcpListener,
    /// What the worker has passed on to the next one: its further ports.
    ports: Option<OwnedFd>,
    /// The one that serves; none while it is replaced after its death.
    worker: Option<Child>,
    /// Those that finish.
    leaving: Vec<Child>,
    /// When to start another worker.
    successor: Option<Instant>,
}

/// Takes the address, waiting up to `bind_timeout` for a predecessor that still ends.
async fn bind(common: &ServerCommon, port: u16) -> Result<TcpListener, CommandFailure> {
    let (since, mut reported) = (Instant::now(), false);
    loop {
        match RealNetwork.bind(&common.bind_ip, port, common.backlog) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && since.elapsed() < common.bind_timeout => {
                if !reported {
                    let (ip, patience) = (&common.bind_ip, common.bind_timeout);
                    tracing::warn!("{ip}:{port} is in use; trying again for {patience:?} (bind_timeout)");
                    reported = true;
                }
                tokio::time::sleep(BETWEEN_BINDS).await;
            }
            other => {
                return other.map_err(|error| CommandFailure::Listen {
                    address: format!("{}:{port}", common.bind_ip),
                    error,
                });
            }
        }
    }
}

impl<'a> OverseenServer<'a> {
    /// None when it was asked to end before it served.
    async fn start(
        program: &'a Program,
        common: &ServerCommon,
        signals: &mut Signals,
    ) -> Result<Option<Self>, CommandFailure> {
        let Some(port) = Some(common.bind_port).filter(|port| *port != 0) else {
            let missing = "bind_port is missing; say in [DEFAULT] on which port to listen";
            return Err(CommandFailure::Usage(missing.into()));
        };
        let socket = bind(common, port).await?;
        match Child::begin(program, Path::new(RUNNING), (&socket, None), signals).await? {
            WorkerStart::Serving(mut worker) => Ok(Some(Self {
                program,
                socket,
                ports: worker.take_ports(),
                worker: Some(worker),
                leaving: Vec::new(),
                successor: None,
            })),
            WorkerStart::Stopped => Ok(None),
            WorkerStart::Ended(code) => Err(CommandFailure::Worker(code)),
        }
    }

    async fn next(&mut self, signals: &mut Signals) -> Event {
        if signals.asked_to_end {
            return Event::End;
        }
        let Signals {
            terminate,
            interrupt,
            hangup,
            renew,
            child,
            asked_to_end: _,
        } = signals;
        let successor = self.successor;
        let closed = async {
            match &mut self.worker {
                Some(worker) => worker.closed().await,
                None => std::future::pending().await,
            }
        };
        let due = async {
            match successor {
                Some(time) => tokio::time::sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = terminate.recv() => Event::End,
            _ = interrupt.recv() => Event::End,
            _ = hangup.recv() => Event::Leave,
            _ = renew.recv() => Event::Renew,
            _ = child.recv() => Event::Ended,
            () = closed => Event::WorkerClosed,
            () = due => Event::Successor,
        }
    }

    /// Takes note of workers that have ended. A worker that died is not replaced where this process is asked to end as
    /// well: a service manager asks all processes at once, and the worker may be quicker.
    async fn take_note_of_the_dead(&mut self, signals: &mut Signals) {
        self.leaving.retain(|child| child.ended().is_none());
        let Some(code) = self.worker.as_ref().and_then(Child::ended) else {
            return;
        };
        let was_asked = self.worker.as_ref().is_some_and(Child::has_closed);
        if !was_asked {
            if timeout(AT_ONCE, signals.end()).await.is_ok() {
                return;
            }
            tracing::error!("the worker has died ({code}) and is replaced");
        }
        let lived = self.worker.take().map(|worker| worker.age()).unwrap_or_default();
        self.expect_successor(if was_asked || lived > REST {
            Duration::ZERO
        } else {
            REST
        });
    }

    fn expect_successor(&mut self, within: Duration) {
        self.successor = Some(Instant::now() + within);
    }

    /// A new worker for one that is gone or going.
    async fn replace(&mut self, signals: &mut Signals) {
        self.successor = None;
        self.leaving.extend(self.worker.take());
        match Child::begin(self.program, Path::new(RUNNING), self.passes_on(), signals).await {
            Ok(WorkerStart::Serving(mut worker)) => {
                self.ports = worker.take_ports();
                self.worker = Some(worker);
            }
            Ok(WorkerStart::Stopped) => {}
            Ok(WorkerStart::Ended(code)) => {
                tracing::error!("a new worker did not start ({code}); trying again");
                self.expect_successor(REST);
            }
            Err(failure) => {
                tracing::error!("a new worker did not start: {failure}; trying again");
                self.expect_successor(REST);
            }
        }
    }

    /// SIGUSR1: on success this process goes on as another build.
    async fn renew(&mut self, signals: &mut Signals) {
        tell_service_manager(RELOADING);
        match Child::begin(self.program, &self.program.path(), self.passes_on(), signals).await {
            Ok(WorkerStart::Serving(mut worker)) => {
                self.ports = worker.take_ports();
                if let Some(old) = self.worker.replace(worker) {
                    old.signal(Signal::SIGHUP);
                    self.leaving.push(old);
                }
                self.successor = None;
                let failure = renewal::go_on_as_new_build(self, signals).await;
                tracing::error!("the worker is renewed, but its overseer is not: {failure}");
            }
            Ok(WorkerStart::Stopped) => return,
            Ok(WorkerStart::Ended(code)) => {
                tracing::error!(
                    "what is at {:?} did not start ({code}); serving as before",
                    self.program.path()
                );
            }
            Err(failure) => tracing::error!("not reloaded, serving as before: {failure}"),
        }
        tell_service_manager(NOT_RELOADED);
    }

    /// What every worker is given.
    fn passes_on(&self) -> (&TcpListener, Option<&OwnedFd>) {
        (&self.socket, self.ports.as_ref())
    }

    fn children(&self) -> impl Iterator<Item = &Child> {
        self.worker.iter().chain(&self.leaving)
    }

    /// SIGTERM: ends with the last worker.
    async fn end(self, signals: &mut Signals) -> Result<(), CommandFailure> {
        tell_service_manager(STOPPING);
        // Connections from now on are refused, and do not wait for the last worker's end.
        drop((self.socket, self.ports));
        let mut children: Vec<Child> = self.worker.into_iter().chain(self.leaving).collect();
        let tell = |children: &[Child], signal| children.iter().for_each(|child| child.signal(signal));
        tell(&children, Signal::SIGTERM);
        let until = Instant::now() + process::PATIENCE + CLOSING;
        loop {
            children.retain(|child| child.ended().is_none());
            if children.is_empty() {
                return Ok(());
            }
            let reported = tokio::select! {
                _ = signals.child.recv() => false,
                _ = signals.terminate.recv() => true,
                _ = signals.interrupt.recv() => true,
                () = tokio::time::sleep_until(until) => {
                    tell(&children, Signal::SIGKILL);
                    return Ok(());
                }
            };
            if reported {
                tell(&children, Signal::SIGTERM);
            }
        }
    }

    /// SIGHUP: ends as soon as no process holds the socket any more.
    async fn leave(mut self) -> Result<(), CommandFailure> {
        tell_service_manager(STOPPING);
        if let Some(worker) = &mut self.worker {
            worker.signal(Signal::SIGHUP);
            if timeout(CLOSING, worker.closed()).await.is_err() {
                tracing::error!("the worker did not close its socket in {CLOSING:?}");
            }
        }
        Ok(())
    }
}
