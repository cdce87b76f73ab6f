//! Blocking I/O off the async threads: a bounded set of worker threads per device.
//!
//! One slow or hung drive costs only its own requests: its queue fills, further work for it is
//! refused at once ([`WorkerError::Busy`]), and other devices have their own workers.
//! Always holds: at most `threads` jobs run and `queue` of each kind wait; a job that was accepted runs even
//! when no caller waits for it any more, so half-done disk work is never abandoned.
//! Jobs of long transfers wait behind the others ([`Workers::run_behind`]), so that many of them do not hold up short
//! requests; one job in [`TURNS`] is one of theirs while any waits, and half of the threads at most begin them while
//! others wait.
//! Threads begin when there is work for them and end when there has been none for [`IDLE`]: most jobs have a device to
//! themselves for a moment each half minute, and a thread that only waits still holds memory.
//! Threads for background work can be [nicer](NiceThreads): one of those makes room at once when a thread that serves
//! wakes.
//! [`WatchedThreads`] starts threads whose queues can be counted.
//! A world that is not the machine's runs jobs its own way ([`Pools`]); [`crate::World::workers`] asks it.

use parking_lot::{Condvar, Mutex};
use rustix::process::{getpriority_process, setpriority_process};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a thread waits for more work before it ends.
pub const IDLE: Duration = if cfg!(test) {
    Duration::from_millis(500)
} else {
    Duration::from_secs(10)
};

/// Of so many jobs one is of those that wait behind the others, if any waits there.
const TURNS: usize = 4;

/// Blocking work.
pub type Job = Box<dyn FnOnce() + Send>;

/// A place where jobs run that is not a set of threads.
pub trait Pool: Send + Sync {
    /// Takes a job, which then runs whether or not anybody waits; [`WorkerError::Busy`] when too many wait.
    fn submit(&self, job: Job) -> Result<(), WorkerError>;
    /// Jobs that wait for their turn.
    fn waiting(&self) -> usize;
}

/// Where a world has its blocking work done.
pub trait Pools: Send + Sync {
    /// Workers named after `name`: so many jobs at a time, and room for `queue` waiting ones.
    fn start(&self, name: &str, threads: usize, queue: usize) -> std::io::Result<Workers>;
}

/// Threads of this process.
pub struct Threads;

impl Pools for Threads {
    fn start(&self, name: &str, threads: usize, queue: usize) -> std::io::Result<Workers> {
        Workers::start(name, threads, queue)
    }
}

/// Threads of this process, with a list of what works and waits.
#[derive(Default)]
pub struct WatchedThreads(Mutex<Vec<Weak<Shared>>>);

/// How busy workers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// What they are named after.
    pub name: String,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that may wait.
    pub limit: usize,
}

impl WatchedThreads {
    /// Of all workers there are now.
    pub fn loads(&self) -> Vec<Load> {
        let mut all = self.0.lock();
        all.retain(|shared| shared.strong_count() > 0);
        let loads = all.iter().filter_map(Weak::upgrade).map(|shared| shared.load());
        loads.collect()
    }
}

impl Pools for WatchedThreads {
    fn start(&self, name: &str, threads: usize, queue: usize) -> std::io::Result<Workers> {
        let workers = Workers::start(name, threads, queue)?;
        if let WorkersKind::Threads(shared) = &workers.kind {
            let mut all = self.0.lock();
            // Daemons start and end workers all the time.
            all.retain(|shared| shared.strong_count() > 0);
            all.push(Arc::downgrade(shared));
        }
        Ok(workers)
    }
}

/// Threads of this process that are at least so nice: `setpriority(2)` of each thread, as Linux has it. Any thread may
/// become nicer, only root's less nice again; so such a thread starts no other, and no other work runs on it. It is for
/// work without locks: a lock that such a thread holds is held until the machine has nothing better to do.
pub struct NiceThreads(pub i32);

impl Pools for NiceThreads {
    fn start(&self, name: &str, threads: usize, queue: usize) -> std::io::Result<Workers> {
        Workers::start_as(name, threads, queue, Some(self.0))
    }
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The queue is full: the device is slower than its load, or hung.
    #[error("the device's I/O queue is full")]
    Busy,
    /// The job panicked; the thread lives on.
    #[error("an I/O job failed unexpectedly")]
    Panicked,
}

struct Shared {
    name: String,
    queue: Mutex<Queue>,
    ready: Condvar,
    /// Jobs that may wait, and as many behind those.
    limit: usize,
    /// Threads that may live at a time.
    threads: usize,
    /// How nice they are at least.
    niceness: Option<i32>,
}

impl Shared {
    fn load(&self) -> Load {
        let queue = self.queue.lock();
        Load {
            name: self.name.strip_prefix(PREFIX).unwrap_or(&self.name).to_owned(),
            running: queue.living.saturating_sub(queue.waiting),
            waiting: queue.len(),
            limit: self.limit,
        }
    }
}

/// Names of threads begin with this.
const PREFIX: &str = "io-";

struct Queue {
    jobs: VecDeque<Job>,
    /// Jobs that wait behind those.
    behind: VecDeque<Job>,
    /// Jobs begun since one of these was.
    passed: usize,
    /// Jobs of those that run.
    running_behind: usize,
    open: bool,
    /// Threads that live, and those of them that wait for a job.
    living: usize,
    waiting: usize,
}

impl Queue {
    fn len(&self) -> usize {
        self.jobs.len() + self.behind.len()
    }

    /// The next job, and whether it is of those that wait behind the others, of which `most` run while others wait.
    fn pop(&mut self, most: usize) -> Option<(Job, bool)> {
        let is_their_turn = self.jobs.is_empty() || self.passed + 1 >= TURNS && self.running_behind < most;
        if is_their_turn && let Some(job) = self.behind.pop_front() {
            self.passed = 0;
            self.running_behind += 1;
            return Some((job, true));
        }
        self.passed += 1;
        self.jobs.pop_front().map(|job| (job, false))
    }
}

/// The I/O workers of one device. Dropping it ends the threads once their queue is empty.
pub struct Workers {
    kind: WorkersKind,
}

enum WorkersKind {
    Threads(Arc<Shared>),
    Given(Box<dyn Pool>),
}

impl Workers {
    /// Up to `threads` threads named after `name`, with room for `queue` waiting jobs. The first is started now, so
    /// that a process which may have no more threads hears of it here.
    pub fn start(name: &str, threads: usize, queue: usize) -> std::io::Result<Self> {
        Self::start_as(name, threads, queue, None)
    }

    fn start_as(name: &str, threads: usize, queue: usize, niceness: Option<i32>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            name: format!("{PREFIX}{name}"),
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                behind: VecDeque::new(),
                passed: 0,
                running_behind: 0,
                open: true,
                living: 0,
                waiting: 0,
            }),
            ready: Condvar::new(),
            limit: queue,
            threads: threads.max(1),
            niceness,
        });
        one_more(&shared, &mut shared.queue.lock())?;
        Ok(Self {
            kind: WorkersKind::Threads(shared),
        })
    }

    /// Workers that are not threads.
    pub fn of(pool: impl Pool + 'static) -> Self {
        Self {
            kind: WorkersKind::Given(Box::new(pool)),
        }
    }

    /// Runs `job` on a worker and waits for its result. What it logs stands in the caller's span, as if it had run
    /// there.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkerError> {
        self.run_in(false, job).await
    }

    /// The same for a job of a long transfer: jobs of [`Workers::run`] come first.
    pub async fn run_behind<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerError> {
        self.run_in(true, job).await
    }

    async fn run_in<T: Send + 'static>(
        &self,
        is_behind: bool,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerError> {
        let (done, result) = oneshot::channel();
        let span = tracing::Span::current();
        // A caller that has gone is fine: the work itself has been done.
        self.submit(is_behind, Box::new(move || drop(done.send(span.in_scope(job)))))?;
        result.await.map_err(|_| WorkerError::Panicked)
    }

    fn submit(&self, is_behind: bool, job: Job) -> Result<(), WorkerError> {
        let shared = match &self.kind {
            WorkersKind::Threads(shared) => shared,
            WorkersKind::Given(pool) => return pool.submit(job),
        };
        let mut queue = shared.queue.lock();
        let jobs = match is_behind {
            true => &mut queue.behind,
            false => &mut queue.jobs,
        };
        if jobs.len() >= shared.limit {
            return Err(WorkerError::Busy);
        }
        jobs.push_back(job);
        if queue.waiting < queue.len()
            && queue.living < shared.threads
            && let Err(error) = one_more(shared, &mut queue)
            && queue.living == 0
        {
            tracing::error!("{}: no thread can be started: {error}", shared.name);
            let jobs = match is_behind {
                true => &mut queue.behind,
                false => &mut queue.jobs,
            };
            jobs.pop_back();
            return Err(WorkerError::Busy);
        }
        drop(queue);
        shared.ready.notify_one();
        Ok(())
    }

    /// Jobs that wait for a thread.
    pub fn waiting(&self) -> usize {
        match &self.kind {
            WorkersKind::Threads(shared) => shared.queue.lock().len(),
            WorkersKind::Given(pool) => pool.waiting(),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let WorkersKind::Threads(shared) = &self.kind {
            shared.queue.lock().open = false;
            shared.ready.notify_all();
        }
    }
}

/// Starts a thread. Counted before it runs: who looks next must not start another in its place.
fn one_more(shared: &Arc<Shared>, queue: &mut Queue) -> std::io::Result<()> {
    let its = shared.clone();
    std::thread::Builder::new()
        .name(shared.name.clone())
        .spawn(move || work(&its))?;
    queue.living += 1;
    Ok(())
}

fn work(shared: &Shared) {
    if let Some(niceness) = shared.niceness {
        be_nice(niceness);
    }
    while let Some((job, is_behind)) = next(shared) {
        // The panic is reported by the default hook; the waiting side sees `Panicked`.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        if is_behind {
            shared.queue.lock().running_behind -= 1;
        }
    }
}

/// This thread, of all threads of the process.
fn be_nice(niceness: i32) {
    let is_less = getpriority_process(None).is_ok_and(|now| now < niceness);
    if is_less && let Err(error) = setpriority_process(None, niceness) {
        tracing::debug!("a thread cannot be as nice as {niceness}: {error}");
    }
}

/// The next job; none when this thread is to end, and then it is counted no more.
fn next(shared: &Shared) -> Option<(Job, bool)> {
    let mut queue = shared.queue.lock();
    let mut idle = false;
    loop {
        if let Some(job) = queue.pop((shared.threads / 2).max(1)) {
            return Some(job);
        }
        if !queue.open || idle {
            queue.living -= 1;
            return None;
        }
        queue.waiting += 1;
        idle = shared.ready.wait_for(&mut queue, IDLE).timed_out();
        queue.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn the_watched_tell_what_runs_and_waits() {
        let watched = WatchedThreads::default();
        let workers = Arc::new(watched.start("sda", 1, 5).unwrap());
        let (go, wait) = mpsc::channel::<()>();
        let (began, begun) = oneshot::channel();
        let its = workers.clone();
        let first = tokio::spawn(async move {
            its.run(move || {
                let _ = began.send(());
                wait.recv().is_ok()
            })
            .await
        });
        begun.await.unwrap();
        workers.submit(false, Box::new(|| {})).unwrap();
        let load = |running, waiting| Load {
            name: "sda".into(),
            running,
            waiting,
            limit: 5,
        };
        assert_eq!(watched.loads(), [load(1, 1)]);
        go.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        drop(workers);
        // Its thread may still be about to end.
        while !watched.loads().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_hung_device_refuses_instead_of_growing() {
        let workers = Arc::new(Workers::start("sda", 1, 1).unwrap());
        let (release, hang) = mpsc::channel::<()>();
        let (began, running) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let workers = workers.clone();
            async move { workers.run(move || (began.send(()), hang.recv()).1.is_ok()).await }
        });
        tokio::task::spawn_blocking(move || running.recv())
            .await
            .unwrap()
            .unwrap();
        let second = tokio::spawn({
            let workers = workers.clone();
            async move { workers.run(|| 2).await }
        });
        while workers.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(workers.run(|| 3).await, Err(WorkerError::Busy));
        release.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Ok(true));
        assert_eq!(second.await.unwrap(), Ok(2));
    }

    #[tokio::test]
    async fn half_of_the_threads_at_most_begin_long_transfers_while_others_wait() {
        let workers = Workers::start("sdd", 2, 100).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let hang = |is_behind| {
            let ((go, wait), (began, begun)) = (mpsc::channel::<()>(), oneshot::channel());
            let job = move || {
                let _ = began.send(());
                let _ = wait.recv();
            };
            workers.submit(is_behind, Box::new(job)).unwrap();
            (go, begun)
        };
        let (long, begun) = hang(true);
        begun.await.unwrap();
        let (short, begun) = hang(false);
        begun.await.unwrap();
        let (last, ended) = oneshot::channel();
        let its = order.clone();
        let behind = move || {
            its.lock().push("behind");
            let _ = last.send(());
        };
        workers.submit(true, Box::new(behind)).unwrap();
        for _ in 0..2 * TURNS {
            let its = order.clone();
            workers
                .submit(false, Box::new(move || its.lock().push("first")))
                .unwrap();
        }
        drop(short);
        ended.await.unwrap();
        assert_eq!(*order.lock(), [vec!["first"; 2 * TURNS], vec!["behind"]].concat());
        drop(long);
    }

    fn threads_of(workers: &Workers) -> usize {
        let WorkersKind::Threads(shared) = &workers.kind else {
            unreachable!("not threads")
        };
        shared.queue.lock().living
    }

    #[tokio::test]
    async fn threads_come_with_the_work_and_not_beyond_the_limit() {
        let workers = Arc::new(Workers::start("sdc", 2, 10).unwrap());
        for n in 0..20 {
            assert_eq!(workers.run(move || n).await, Ok(n));
        }
        let (release, hang): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel::<()>()).unzip();
        let waiting: Vec<_> = hang
            .into_iter()
            .map(|hang| {
                let workers = workers.clone();
                tokio::spawn(async move { workers.run(move || hang.recv().is_ok()).await })
            })
            .collect();
        while workers.waiting() != 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads_of(&workers), 2);
        drop(release);
        for one in waiting {
            assert_eq!(one.await.unwrap(), Ok(false));
        }
    }

    #[test]
    fn a_thread_without_work_ends_and_another_begins_when_there_is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let workers = Workers::start("sdd", 1, 10).unwrap();
        assert_eq!(runtime.block_on(workers.run(|| 1)), Ok(1));
        let began = std::time::Instant::now();
        while threads_of(&workers) > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "the thread did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(runtime.block_on(workers.run(|| 2)), Ok(2));
    }

    #[tokio::test]
    async fn nice_threads_are_nice_and_others_stay_as_they_are() {
        let now = || getpriority_process(None).unwrap();
        let own = now();
        let nicer = (own + 3).min(19);
        let (nice, plain) = (
            NiceThreads(nicer).start("sdc", 1, 10).unwrap(),
            Workers::start("sdc", 1, 10).unwrap(),
        );
        assert_eq!((nice.run(now).await, plain.run(now).await), (Ok(nicer), Ok(own)));
        // Never less nice than what the process is.
        let modest = NiceThreads(own - 1).start("sdc", 1, 10).unwrap();
        assert_eq!((modest.run(now).await, now()), (Ok(own), own));
    }

    #[tokio::test]
    async fn a_panic_costs_one_job() {
        let workers = Workers::start("sdb", 1, 10).unwrap();
        let failed: Result<(), _> = workers.run(|| panic!("planted")).await;
        assert_eq!(failed, Err(WorkerError::Panicked));
        assert_eq!(workers.run(|| 4).await, Ok(4));
    }
}
