//! Blocking I/O off the async threads: a bounded set of worker threads per device.
//!
//! One slow or hung drive costs only its own requests: its queue fills, further work for it is
//! refused at once ([`WorkerError::Busy`]), and other devices have their own workers.
//! Always holds: at most `threads` jobs run and `queue` wait; a job that was accepted runs even
//! when nobody waits for it any more, so half-done disk work is never abandoned.
//! A world that is not the machine's runs jobs its own way ([`Pools`]); [`crate::World::workers`] asks it.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

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
    queue: Mutex<Queue>,
    ready: Condvar,
    limit: usize,
}

struct Queue {
    jobs: VecDeque<Job>,
    open: bool,
}

/// The I/O workers of one device. Dropping it ends the threads once their queue is empty.
pub struct Workers {
    kind: Kind,
}

enum Kind {
    Threads(Arc<Shared>),
    Given(Box<dyn Pool>),
}

impl Workers {
    /// Starts `threads` threads named after `name`, with room for `queue` waiting jobs.
    pub fn start(name: &str, threads: usize, queue: usize) -> std::io::Result<Self> {
        let queue_of_jobs = Mutex::new(Queue {
            jobs: VecDeque::new(),
            open: true,
        });
        let shared = Arc::new(Shared {
            queue: queue_of_jobs,
            ready: Condvar::new(),
            limit: queue,
        });
        for _ in 0..threads.max(1) {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name(format!("io-{name}"))
                .spawn(move || work(&shared))?;
        }
        Ok(Self {
            kind: Kind::Threads(shared),
        })
    }

    /// Workers that are not threads.
    pub fn of(pool: impl Pool + 'static) -> Self {
        Self {
            kind: Kind::Given(Box::new(pool)),
        }
    }

    /// Runs `job` on a worker and waits for its result.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkerError> {
        let (done, result) = oneshot::channel();
        // Nobody listening any more is fine: the work itself has been done.
        self.submit(Box::new(move || drop(done.send(job()))))?;
        result.await.map_err(|_| WorkerError::Panicked)
    }

    fn submit(&self, job: Job) -> Result<(), WorkerError> {
        let shared = match &self.kind {
            Kind::Threads(shared) => shared,
            Kind::Given(pool) => return pool.submit(job),
        };
        let mut queue = shared.queue.lock();
        if queue.jobs.len() >= shared.limit {
            return Err(WorkerError::Busy);
        }
        queue.jobs.push_back(job);
        drop(queue);
        shared.ready.notify_one();
        Ok(())
    }

    /// Jobs that wait for a thread.
    pub fn waiting(&self) -> usize {
        match &self.kind {
            Kind::Threads(shared) => shared.queue.lock().jobs.len(),
            Kind::Given(pool) => pool.waiting(),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Kind::Threads(shared) = &self.kind {
            shared.queue.lock().open = false;
            shared.ready.notify_all();
        }
    }
}

fn work(shared: &Shared) {
    while let Some(job) = next(shared) {
        // The panic is reported by the default hook; the waiting side sees `Panicked`.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

fn next(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if !queue.open {
            return None;
        }
        shared.ready.wait(&mut queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

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
    async fn a_panic_costs_one_job() {
        let workers = Workers::start("sdb", 1, 10).unwrap();
        let failed: Result<(), _> = workers.run(|| panic!("planted")).await;
        assert_eq!(failed, Err(WorkerError::Panicked));
        assert_eq!(workers.run(|| 4).await, Ok(4));
    }
}
