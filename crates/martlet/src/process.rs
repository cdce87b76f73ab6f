//! The process around the servers: threads, limits, privileges, signals, the end.
//!
//! Always holds: a server that root starts with a `user` has given up root before it reads its first
//! request; SIGTERM and Ctrl-C finish running requests, then exit 0; the time that takes has a limit, also when a drive
//! hangs and a thread with it; programs that upkeep runs end with it.

use crate::failure::CommandFailure;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User, initgroups, setgid, setuid};
use peer::http_server::Shutdown;
use settings::WorkerCount;
use std::cell::RefCell;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use world::World;

/// How long running requests may take to finish after SIGTERM.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// After which the log says what the process still waits for.
const SOON: Duration = Duration::from_secs(5);

/// How long threads may take to end that have nothing more to do. One that does not hangs in a call to the system.
const PARTING: Duration = Duration::from_secs(2);

/// How long the end of the process waits for the log to take what was logged.
pub const LAST_LINES: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// What listens since before `main` began, until [`asked_to_end`] takes it: a signal that comes while the process
    /// still starts, or between its readiness and the wait for its end, is not lost.
    static SINCE_START: RefCell<Option<StopSignals>>;
}

/// Runs `main` on `threads` threads. `main` is to end at most `patience` after SIGTERM; the process does so in any
/// case.
pub fn run<T>(
    threads: usize,
    patience: Duration,
    main: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    raise_file_limit();
    end_in_any_case(patience)?;
    let mut builder = match threads {
        // No task has to be woken then.
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads.max(1)).enable_all().build();
    let runtime = runtime.map_err(no_threads)?;
    let result = runtime.block_on(async {
        let signals = StopSignals::listen()?;
        SINCE_START.scope(RefCell::new(Some(signals)), main).await
    });
    upkeep::end_programs();
    let since = Instant::now();
    // Without a limit this would wait for threads that hang on a drive.
    runtime.shutdown_timeout(PARTING);
    if since.elapsed() >= PARTING {
        tracing::warn!("a thread hangs in a call to the system; ending without it");
    }
    result
}

/// Ends the process after SIGTERM even when all threads hang that could: signals and the time are watched once more,
/// by a thread that does nothing else. It does so when this returns.
fn end_in_any_case(patience: Duration) -> Result<(), CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no_threads)?;
    let (begins, begun) = std::sync::mpsc::channel();
    let watch = async move {
        let (asked, outcome) = match StopSignals::listen() {
            Ok(asked) => (Some(asked), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // A call that waits for it does so to the end.
        let _ = begins.send(outcome);
        let Some(asked) = asked else { return };
        asked.came().await;
        tokio::time::sleep(patience + 2 * PARTING).await;
        tracing::error!(
            "not ended {patience:?} after it was asked to: threads hang in calls to the system; ending now"
        );
        upkeep::end_programs();
        telemetry::log_output::flush(LAST_LINES);
        std::process::exit(0);
    };
    let started = std::thread::Builder::new()
        .name("end".into())
        .spawn(move || runtime.block_on(watch));
    started.map_err(no_threads)?;
    begun.recv().map_err(|error| no_threads(std::io::Error::other(error)))?
}

fn no_threads(error: std::io::Error) -> CommandFailure {
    CommandFailure::io("start threads for", Path::new("the server"))(error)
}

/// How many threads `workers` asks for.
pub fn threads(workers: WorkerCount) -> usize {
    match workers {
        WorkerCount::Auto => std::thread::available_parallelism().map_or(1, usize::from),
        WorkerCount::Count(count) => count.max(1),
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

/// Connections that a server may have open: as configured, or [`share_of`] the files that it may have open.
pub fn connections(configured: usize) -> usize {
    match configured {
        0 => share_of(getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)),
        configured => configured,
    }
}

/// Half of so many files, a reserve aside: a download holds its object beside its connection, and in `martlet up` both
/// are of this process. The reserve is for databases, trials of drives and connections to other servers. Uploads hold
/// more; where they take the last file, what needs another is answered with 503.
fn share_of(files: u64) -> usize {
    const MOST: u64 = 32_768;
    const LEAST: u64 = 64;
    const RESERVE: u64 = 1024;
    let reserve = (files / 4).min(RESERVE);
    // Fits: it is bounded.
    ((files - reserve) / 2).clamp(LEAST, MOST) as usize
}

/// Becomes `user` when started by root; anybody else stays who he is.
pub fn drop_privileges(user: Option<&str>) -> Result<(), CommandFailure> {
    let Some(name) = user.filter(|_| Uid::effective().is_root()) else {
        return Ok(());
    };
    let refuse = |error: String| CommandFailure::Usage(format!("cannot run as user {name:?}: {error}"));
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
pub async fn until_asked_to_end(world: &World, shutdown: &Shutdown) -> Result<(), CommandFailure> {
    asked_to_end().await?;
    shutdown.begin();
    if world.timeout(SOON, shutdown.finished()).await.is_ok() {
        return Ok(());
    }
    tracing::info!("asked to end: requests or upkeep still under way are waited for, {PATIENCE:?} at most");
    if world.timeout(PATIENCE - SOON, shutdown.finished()).await.is_err() {
        tracing::warn!("some requests did not finish in {PATIENCE:?} and were cut off");
    }
    Ok(())
}

/// Completes on SIGTERM or Ctrl-C; the first time also when one came since [`run`] began.
pub async fn asked_to_end() -> Result<(), CommandFailure> {
    let kept = SINCE_START.try_with(RefCell::take).ok().flatten();
    let signals = match kept {
        Some(signals) => signals,
        None => StopSignals::listen()?,
    };
    signals.came().await;
    Ok(())
}

/// SIGTERM and Ctrl-C that come from when this was made.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From now on.
    pub fn listen() -> Result<Self, CommandFailure> {
        let doing = || CommandFailure::io("watch", Path::new("signals"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(doing())?,
            interrupt: signal(SignalKind::interrupt()).map_err(doing())?,
        })
    }

    /// Completes when one of them has come.
    pub async fn came(mut self) {
        self.next().await;
    }

    /// Completes when one of them has come, and one more after that was seen.
    pub async fn came_twice(mut self) {
        self.next().await;
        self.next().await;
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{self, kill};
    use nix::unistd::Pid;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn connections_leave_a_file_for_each_and_a_reserve() {
        for files in [256, 1024, 4096, 20_000, 65_536] {
            let connections = share_of(files) as u64;
            assert!(2 * connections + 64 <= files, "{files}: {connections}");
            assert!(10 * connections >= 3 * files, "{files}: {connections}");
        }
        assert_eq!((share_of(u64::MAX), share_of(0)), (32_768, 64));
    }

    /// Set in the process that hangs.
    const HANG: &str = "MARTLET_TEST_HANG";
    /// What it says before.
    const HANGS: &str = "all of it hangs";

    fn hang() {
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_thread_that_hangs_does_not_keep_the_process() {
        let since = Instant::now();
        let done = run(1, Duration::from_secs(60), async {
            tokio::task::spawn_blocking(hang);
            tokio::task::yield_now().await;
            Ok(7)
        });
        assert_eq!(done.ok(), Some(7));
        assert!(since.elapsed() < PARTING * 15, "{:?}", since.elapsed());
    }

    /// The test below in a process of its own: no thread is left that could see a signal or the time.
    #[test]
    fn hangs_for_the_other_test() {
        if std::env::var_os(HANG).is_some() {
            let forever = run(1, Duration::ZERO, async {
                for _ in 0..4 {
                    tokio::spawn(async { hang() });
                }
                writeln!(std::io::stdout(), "\n{HANGS}").unwrap();
                hang();
                Ok(())
            });
            assert!(forever.is_err(), "it did not hang");
        }
    }

    #[test]
    fn sigterm_ends_a_process_whose_threads_all_hang() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::tests::hangs_for_the_other_test", "--nocapture"])
            .env(HANG, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == HANGS));
        let since = Instant::now();
        kill(pid, signal::Signal::SIGTERM).unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                panic!("it does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}");
    }
}
