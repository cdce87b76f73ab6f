//! Runs works: threads, in each of them workers that ask the store, and what they count.
//!
//! Always holds: a work ends when its workload says so, when it is asked to stop, or a little after either if requests
//! hang; what was counted until then is kept. A request counts when it ended between ramp-up and ramp-down.

pub mod pace;
pub mod plan;
mod script_part;
pub mod search;
pub mod share;
mod worker;

use crate::content::Contents;
use crate::content::hashed::with_checksum;
use crate::figures::{Latencies, RequestOutcome, WorkFigures};
use crate::record::OperationRecorder;
use crate::store::Store;
use crate::workload::{Work, WorkEnd, WorkKind};
use parking_lot::Mutex;
use plan::Positions;
use share::DriverShare;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// How long requests that are under way may go on once a work is over.
pub const GRACE: Duration = Duration::from_secs(5);
/// Memory for buffers of all connections together.
const BUFFERS: usize = 64 << 20;
/// Bytes that a connection reads and writes at a time.
const LEAST_BUFFER: usize = 16 << 10;
const MOST_BUFFER: usize = 256 << 10;

/// How works are run.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Threads for each work.
    pub threads: usize,
    /// What all dice begin with.
    pub seed: u64,
    /// Every body that is read is compared with what was written.
    pub verifies: bool,
}

/// What the load and its caller know of each other: how far it is, and whether it is to stop.
#[derive(Default)]
pub struct LoadWatch {
    stops: AtomicBool,
    succeeded: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    /// Times of requests that succeeded since they were last taken.
    recent: Mutex<Latencies>,
}

impl LoadWatch {
    /// No further request is begun.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    /// Counts a request that ended.
    pub fn count(&self, outcome: &RequestOutcome) {
        self.bytes.fetch_add(outcome.bytes, Ordering::Relaxed);
        let counter = match outcome.failure {
            None => &self.succeeded,
            Some(_) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts requests that ended elsewhere: so many that succeeded and that failed, and their bytes.
    pub fn add(&self, succeeded: u64, failed: u64, bytes: u64) {
        for (counter, more) in [
            (&self.succeeded, succeeded),
            (&self.failed, failed),
            (&self.bytes, bytes),
        ] {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Adds times of requests that succeeded; they come a little later than their counts.
    pub fn add_recent(&self, latencies: &Latencies) {
        self.recent.lock().merge(latencies);
    }

    /// The times that were added since this was last asked.
    pub fn take_recent(&self) -> Latencies {
        std::mem::take(&mut self.recent.lock())
    }

    /// Requests that succeeded and that failed, and bytes, since the load began.
    pub fn so_far(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.succeeded), read(&self.failed), read(&self.bytes))
    }
}

/// What came of a work.
pub struct WorkResult {
    /// What was counted.
    pub figures: WorkFigures,
    /// How long it was counted.
    pub measured: Duration,
    /// Processor time of this program meanwhile, ramps included, all works of the stage together.
    pub cpu: Duration,
    /// From its start to its end, ramps included.
    pub lasted: Duration,
    /// Threads that it ran on.
    pub threads: usize,
}

/// What of a work is done here, and where its operations are recorded.
#[derive(Clone)]
pub struct LoadPart {
    /// Which of its workers run in this process.
    pub share: DriverShare,
    /// Where every operation is recorded, and the name of the stage there.
    pub records: Option<(Arc<OperationRecorder>, String)>,
}

/// A work that runs, as its workers see it.
struct Running {
    work: Arc<Work>,
    store: Store,
    contents: Arc<Contents>,
    watch: Arc<LoadWatch>,
    positions: Arc<Positions>,
    /// Operations that were begun, where a work ends with their number.
    tickets: AtomicU64,
    /// Bytes that went over, where a work ends with them.
    bytes: AtomicU64,
    /// Content of files that are sent, in the order of their names.
    files: Vec<Vec<u8>>,
    begun: Duration,
    options: LoadOptions,
    part: LoadPart,
}

impl Running {
    /// When no further request begins, by the world's clock; nothing where that is no matter of time.
    fn last_start(&self) -> Option<Duration> {
        match self.work.end {
            WorkEnd::After(runtime) => Some(self.begun + self.work.ramp_up + runtime + self.work.ramp_down),
            _ => None,
        }
    }

    /// Whether a request that ended at this time counts.
    fn counts(&self, at: Duration) -> bool {
        let from = self.begun + self.work.ramp_up;
        let is_early_enough = match self.work.end {
            WorkEnd::After(runtime) => at < from + runtime,
            _ => true,
        };
        at >= from && is_early_enough
    }

    /// Whether another operation may begin.
    fn takes_ticket(&self) -> bool {
        if self.watch.is_stopped() {
            return false;
        }
        match self.work.end {
            WorkEnd::Operations(most) => self.tickets.fetch_add(1, Ordering::Relaxed) < most,
            WorkEnd::Bytes(most) => self.bytes.load(Ordering::Relaxed) < most,
            WorkEnd::After(_) | WorkEnd::Enumerated => true,
        }
    }
}

/// Runs a work to its end.
pub async fn run(
    world: &World,
    work: &Arc<Work>,
    store: Store,
    contents: Arc<Contents>,
    watch: Arc<LoadWatch>,
    options: &LoadOptions,
) -> Result<WorkResult, Fault> {
    let part = LoadPart {
        share: DriverShare::whole(work),
        records: None,
    };
    run_part(world, work, part, store, contents, watch, options).await
}

/// Runs a part of a work to its end; `work` has the end and the rate of the part.
pub async fn run_part(
    world: &World,
    work: &Arc<Work>,
    part: LoadPart,
    store: Store,
    contents: Arc<Contents>,
    watch: Arc<LoadWatch>,
    options: &LoadOptions,
) -> Result<WorkResult, Fault> {
    let threads = options.threads.clamp(1, part.share.workers.max(1) as usize);
    let begun = world.clock.elapsed();
    let cpu = processor_time();
    let running = Arc::new(Running {
        work: work.clone(),
        store,
        contents,
        watch: watch.clone(),
        positions: Positions::of_share(work, &part.share),
        tickets: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        files: read_files(world, work)?,
        begun,
        options: options.clone(),
        part,
    });
    let mut figures = WorkFigures::new(work.operations.len(), work.interval);
    if work.kind != WorkKind::Delay {
        let pool = world
            .workers("bench", threads, threads)
            .map_err(|error| Fault::caller(format!("no threads for the load: {error}")))?;
        let shares = (0..threads).map(|thread| {
            let (running, world) = (running.clone(), world.clone());
            pool.run(move || worker::run_thread(&world, &running, thread, threads))
        });
        for share in futures_util::future::join_all(shares).await {
            let share = share.map_err(|error| Fault::caller(format!("a thread of the load ended: {error}")))?;
            figures.merge(&share?);
        }
    }
    let lasted = world.clock.elapsed().saturating_sub(begun);
    let measured = match work.end {
        WorkEnd::After(runtime) => lasted.saturating_sub(work.ramp_up).min(runtime),
        _ => lasted.saturating_sub(work.ramp_up),
    };
    Ok(WorkResult {
        figures,
        measured,
        cpu: processor_time().saturating_sub(cpu),
        lasted,
        threads,
    })
}

/// Bytes that each of so many connections reads and writes at a time.
pub(crate) fn buffer_size(workers: u32) -> usize {
    (BUFFERS / workers.max(1) as usize).clamp(LEAST_BUFFER, MOST_BUFFER)
}

/// Of this process, all threads.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Files that the operations of a work send, each folder's in the order of their names.
fn read_files(world: &World, work: &Work) -> Result<Vec<Vec<u8>>, Fault> {
    let mut contents = vec![];
    for operation in &work.operations {
        let Some(folder) = &operation.files else { continue };
        let failed = |error: &dyn std::fmt::Display| Fault::caller(format!("files={}: {error}", folder.display()));
        let opened = world.files.open_directory(folder).map_err(|error| failed(&error))?;
        let mut names = vec![];
        opened
            .list(&mut |name| names.push(name.to_owned()))
            .map_err(|error| failed(&error))?;
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let content = world.files.read(&path, LONGEST_FILE).map_err(|error| failed(&error))?;
            contents.push(match operation.hash_check {
                true => with_checksum(content),
                false => content,
            });
        }
        if contents.is_empty() {
            return Err(failed(&"expected a folder with files in it"));
        }
    }
    Ok(contents)
}

/// Files of a `filewrite` are held in memory.
const LONGEST_FILE: u64 = 1 << 30;
