//! The process around the servers: threads, limits, privileges, signals, the end.
//!
//! Always holds: a server that root starts with a `user` has given up root before it reads its first
//! request; SIGTERM and Ctrl-C finish running requests, then exit 0.

use crate::failure::Failure;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User, initgroups, setgid, setuid};
use peer::http_server::Shutdown;
use settings::Workers;
use std::future::Future;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use world::World;

/// How long running requests may take to finish after SIGTERM.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `main` on `threads` threads.
pub fn run<T>(threads: usize, main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    raise_file_limit();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .enable_all()
        .build()
        .map_err(Failure::io("start threads for", Path::new("the server")))?
        .block_on(main)
}

/// How many threads `workers` asks for.
pub fn threads(workers: Workers) -> usize {
    match workers {
        Workers::Auto => std::thread::available_parallelism().map_or(1, usize::from),
        Workers::Count(count) => count.max(1),
    }
}

/// Connections and open objects are files: take as many as the system lets us.
fn raise_file_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!("cannot raise the limit of open files from {soft} to {hard}: {error}");
    }
}

/// Becomes `user` when started by root; anybody else stays who he is.
pub fn drop_privileges(user: Option<&str>) -> Result<(), Failure> {
    let Some(name) = user.filter(|_| Uid::effective().is_root()) else {
        return Ok(());
    };
    let refuse = |error: String| Failure::Usage(format!("cannot run as user {name:?}: {error}"));
    let user = User::from_name(name)
        .map_err(|error| refuse(error.to_string()))?
        .ok_or_else(|| refuse("there is no such user; create it or change `user` in the configuration".into()))?;
    let c_name = std::ffi::CString::new(name).map_err(|error| refuse(error.to_string()))?;
    initgroups(&c_name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| refuse(error.to_string()))
}

/// Serves until SIGTERM or Ctrl-C, then lets running requests finish.
pub async fn until_asked_to_end(world: &World, shutdown: &Shutdown) -> Result<(), Failure> {
    asked_to_end().await?;
    shutdown.begin();
    if world.timeout(PATIENCE, shutdown.finished()).await.is_err() {
        tracing::warn!("some requests did not finish in {PATIENCE:?} and were cut off");
    }
    Ok(())
}

/// Completes on SIGTERM or Ctrl-C.
pub async fn asked_to_end() -> Result<(), Failure> {
    let doing = || Failure::io("watch", Path::new("signals"));
    let mut terminate = signal(SignalKind::terminate()).map_err(doing())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(doing())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
