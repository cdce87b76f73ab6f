//! A device's workers as tasks: jobs take their turns with the delay their drive gives them.
//!
//! Always holds: a job runs at once and wholly when its turn comes; one that panics is counted, as is the
//! longest queue in terms of what it was allowed to be.

use crate::dice::Dice;
use crate::disk::SimFiles;
use crate::executor::{Executor, TaskOwner};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
        let most = pools.files.slowness(&state.name) * 1_000;
        let took = Duration::from_micros(pools.dice.between(20, most.max(21)));
        pools.executor.sleep(took).await;
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            pools.census.lock().panics += 1;
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
