//! The seams to the outside: clock, randomness, network, file system, background tasks and I/O workers.
//!
//! Everything that makes two runs of the same program differ comes through a [`World`], so that a
//! simulated one can replay a cluster from a seed. [`World::real`] is the machine we run on.
//! Always holds: no other crate asks the real clock, rolls real dice, opens sockets or files, or
//! starts threads (SQLite's own file access is the one exception).
//! Deliberately absent: any knowledge of what is sent, stored or timed.

pub mod clock;
pub mod files;
pub mod network;
pub mod random;
pub mod real_files;
pub mod tasks;
pub mod workers;

use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

pub use clock::{Clock, Elapsed};
pub use network::{Datagrams, Listener, Network, Stream};
pub use random::Random;
pub use tasks::Tasks;
pub use workers::{NiceThreads, Pools, WatchedThreads, WorkerError, Workers};

/// A future that may be kept and moved between threads.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The handles to all seams; cheap to clone.
#[derive(Clone)]
pub struct World {
    /// Wall time, monotonic time, sleeping.
    pub clock: Arc<dyn Clock>,
    /// Dice.
    pub random: Arc<dyn Random>,
    /// Listening and connecting.
    pub network: Arc<dyn Network>,
    /// Background tasks.
    pub tasks: Arc<dyn Tasks>,
    /// Disks.
    pub files: Arc<dyn files::FileSystem>,
    /// Threads for what blocks.
    pub pools: Arc<dyn Pools>,
}

impl World {
    /// The machine we run on. Tasks run on the tokio runtime that is current when they are spawned.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(clock::RealClock::new()),
            random: Arc::new(random::OsRandom),
            network: Arc::new(network::RealNetwork),
            tasks: Arc::new(tasks::TokioTasks),
            files: Arc::new(real_files::RealFiles),
            pools: Arc::new(workers::Threads),
        }
    }

    /// Runs `work` for at most `limit`.
    pub async fn timeout<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
        clock::timeout(&*self.clock, limit, work).await
    }

    /// Workers named after `name` for what blocks: `threads` jobs at a time, `queue` waiting ones.
    pub fn workers(&self, name: &str, threads: usize, queue: usize) -> std::io::Result<Workers> {
        self.pools.start(name, threads, queue)
    }

    /// Runs `work` in the background; nothing waits for it. What it logs stands in the caller's span.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(Box::pin(work.in_current_span()));
    }

    /// [`World::spawn`] of work that outlives the caller's request, a connection for example: it has no span.
    pub fn spawn_unrelated(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(Box::pin(work));
    }

    /// Runs `work` as a task of its own, which begins now; its result. The work ends also when what is returned is
    /// dropped meanwhile. `None` when the work panicked.
    pub fn run_detached<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Option<T>> + Send + use<T, W> {
        let (done, result) = tokio::sync::oneshot::channel();
        // Into its place at once: it is long, and is handed on a few times.
        let work = Box::pin(work);
        // The receiver is gone when the caller was dropped; the work itself has been done.
        self.spawn(async move { drop(done.send(work.await)) });
        async move { result.await.ok() }
    }
}
