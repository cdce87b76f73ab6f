//! A device's workers as tasks: jobs take their turns with the delay their drive gives them.
//!
//! Always holds: a job runs at once and wholly when its turn comes; one that panics is counted, as is the
//! longest queue in terms of what it was allowed to be.

use crate::dice::Dice;
use crate::disk::{MOUNTS, SimFiles};
use crate::executor::{Executor, TaskOwner};
use durable_fs::Drives;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use world::workers::{Job, Pool, Pools};
use world::{WorkerError, Workers};

/// What pools, and who watches replicators, have seen that must not be.
#[derive(Default)]
pub struct Census {
    /// Jobs that panicked.
    pub panics: u64,
    /// Jobs that waited beyond the room for them.
    pub beyond_limit: u64,
    /// Copies that a replicator gave up too early.
    pub given_up: Vec<String>,
    /// Drives that were judged out of service.
    pub fallen: Vec<String>,
}

/// The drives of a process that watches them.
#[derive(Clone)]
pub struct WatchedDrives {
    /// Their health.
    pub drives: Arc<Drives>,
    /// A bug: a trial of a drive waits for the long job that is under way on it.
    pub trials_wait: bool,
}

/// The pools of one process of a node.
#[derive(Clone)]
pub struct SimPools {
    /// Where they run.
    pub executor: Executor,
    /// Whose they are.
    pub home: TaskOwner,
    /// The node's drives: a pool is named after the one it works for.
    pub files: SimFiles,
    /// Chance.
    pub dice: Dice,
    /// What they have seen.
    pub census: Arc<Mutex<Census>>,
    /// A bug: no limit to what waits.
    pub unbounded: bool,
    /// Where drives are watched.
    pub watched: Option<WatchedDrives>,
}

struct State {
    pools: SimPools,
    name: String,
    threads: usize,
    limit: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: usize,
}

struct SimPool(Arc<State>);

impl Pools for SimPools {
    fn start(&self, name: &str, threads: usize, queue: usize) -> io::Result<Workers> {
        Ok(Workers::of(SimPool(Arc::new(State {
            pools: self.clone(),
            name: name.to_owned(),
            threads: threads.max(1),
            limit: queue,
            queue: Mutex::default(),
        }))))
    }
}

impl Pool for SimPool {
    fn submit(&self, job: Job) -> Result<(), WorkerError> {
        let state = &self.0;
        let mut queue = state.queue.lock();
        let has_room = queue.running < state.threads || queue.jobs.len() < state.limit;
        if !has_room && !state.pools.unbounded {
            return Err(WorkerError::Busy);
        }
        if !has_room {
            state.pools.census.lock().beyond_limit += 1;
        }
        queue.jobs.push_back(job);
        if queue.running < state.threads {
            queue.running += 1;
            let pools = &state.pools;
            pools.executor.spawn(pools.home, Box::pin(work(state.clone())));
        }
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.0.queue.lock().jobs.len()
    }
}

async fn work(state: Arc<State>) {
    let pools = &state.pools;
    loop {
        let Some(job) = next(&state.queue) else { return };
        // A job happens at its end; until then it is under way.
        let _under_way = match &pools.watched {
            Some(watched) if !state.name.starts_with(TRIALS) => Some(watched.health(&state.name).enter()),
            _ => None,
        };
        let took = match pools.files.begin_long_job(&state.name) {
            Some(long) => long,
            None => {
                let most = pools.files.slowness(&state.name) * 1_000;
                Duration::from_micros(pools.dice.between(20, most.max(21)))
            }
        };
        pools.executor.sleep(took).await;
        state.wait_with_trial().await;
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            pools.census.lock().panics += 1;
        }
    }
}

/// Pools for trials of a drive are named after it.
const TRIALS: &str = "try-";

impl WatchedDrives {
    /// The health of a drive of the node.
    pub(crate) fn health(&self, name: &str) -> Arc<durable_fs::Health> {
        self.drives.health(&Path::new(MOUNTS).join(name))
    }
}

impl State {
    /// With the bug, until no long job is under way on the drive that this pool tries out.
    async fn wait_with_trial(&self) {
        let waits = self.pools.watched.as_ref().is_some_and(|watched| watched.trials_wait);
        if let Some(drive) = self.name.strip_prefix(TRIALS).filter(|_| waits) {
            let left = self.pools.files.long_job_left(drive);
            self.pools.executor.sleep(left).await;
        }
    }
}

fn next(queue: &Mutex<Queue>) -> Option<Job> {
    let mut queue = queue.lock();
    let job = queue.jobs.pop_front();
    if job.is_none() {
        queue.running -= 1;
    }
    job
}
