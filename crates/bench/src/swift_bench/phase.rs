//! One phase of swift-bench: so many PUT, GET or DELETE requests, by so many workers.
//!
//! Always holds: a request that failed is counted among the requests and among the failures; only objects that were
//! written are read and deleted; a phase that is asked to stop begins no further request.

use crate::content::Contents;
use crate::figures::Latencies;
use crate::load::{LoadWatch, buffer_size};
use crate::store::{RequestDetail, Store, StoreRequest, StoreSession};
use crate::workload::{BodyContent, OperationKind};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::Fault;
use world::World;

/// An object that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MadeObject {
    container: u32,
    name: u128,
}

/// What a phase does.
pub(super) enum PhaseWork {
    /// Writes new objects of sizes in this range.
    Put { sizes: (u64, u64), containers: u32 },
    /// Reads objects, each time any of them.
    Get(Arc<Vec<MadeObject>>),
    /// Deletes objects, each once.
    Delete(Arc<Vec<MadeObject>>),
}

impl PhaseWork {
    /// As swift-bench calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Put { .. } => "PUTS",
            Self::Get(_) => "GETS",
            Self::Delete(_) => "DEL",
        }
    }
}

/// A phase that runs.
pub(super) struct BenchPhase {
    pub(super) work: PhaseWork,
    pub(super) store: Store,
    pub(super) contents: Arc<Contents>,
    /// What names of containers begin with.
    pub(super) base: String,
    /// Requests.
    pub(super) requests: u64,
    pub(super) concurrency: u32,
    pub(super) seed: u64,
    pub(super) watch: Arc<LoadWatch>,
    pub(super) begun: AtomicU64,
}

/// What came of a phase, or of one thread's share.
pub(super) struct PhaseResult {
    /// Objects that were written.
    pub(super) made: Vec<MadeObject>,
    /// Of requests that succeeded.
    pub(super) latencies: Latencies,
}

/// The name of a container.
pub(super) fn container_name(base: &str, number: u32) -> String {
    format!("{base}_{number}")
}

/// Runs a phase on all processors.
pub(super) async fn run(world: &World, phase: &Arc<BenchPhase>) -> Result<PhaseResult, Fault> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.clamp(1, phase.concurrency.max(1) as usize);
    let pool = world
        .workers("bench", threads, threads)
        .map_err(|error| Fault::caller(format!("no threads for the load: {error}")))?;
    let shares = (0..threads).map(|thread| {
        let (phase, world) = (phase.clone(), world.clone());
        pool.run(move || run_thread(&world, &phase, thread, threads))
    });
    let mut whole = PhaseResult {
        made: vec![],
        latencies: Latencies::default(),
    };
    for share in futures_util::future::join_all(shares).await {
        let share = share.map_err(|error| Fault::caller(format!("a thread of the load ended: {error}")))??;
        whole.made.extend(share.made);
        whole.latencies.merge(&share.latencies);
    }
    Ok(whole)
}

fn run_thread(world: &World, phase: &BenchPhase, thread: usize, threads: usize) -> Result<PhaseResult, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::caller(format!("no runtime for a thread of the load: {error}")))?;
    let share = PhaseShare {
        world,
        phase,
        dice: RefCell::new(fastrand::Rng::with_seed(phase.seed.wrapping_add(thread as u64))),
        result: RefCell::new(PhaseResult {
            made: vec![],
            latencies: Latencies::default(),
        }),
    };
    runtime.block_on(async {
        let mine = (0..phase.concurrency as usize).filter(|worker| worker % threads == thread);
        let mut workers: FuturesUnordered<_> = mine.map(|_| share.work()).collect();
        while workers.next().await.is_some() {}
    });
    Ok(share.result.into_inner())
}

/// What the workers of a thread share.
struct PhaseShare<'a> {
    world: &'a World,
    phase: &'a BenchPhase,
    dice: RefCell<fastrand::Rng>,
    result: RefCell<PhaseResult>,
}

impl PhaseShare<'_> {
    /// One worker, until all requests were begun.
    async fn work(&self) {
        let phase = self.phase;
        let buffer = buffer_size(phase.concurrency);
        let mut session = StoreSession::new(phase.store.clone(), self.world.clone(), phase.contents.clone(), buffer);
        while !phase.watch.is_stopped() {
            let ticket = phase.begun.fetch_add(1, Ordering::Relaxed);
            if ticket >= phase.requests {
                return;
            }
            let Some((object, size)) = self.pick(ticket) else {
                return;
            };
            let (container, name) = (
                container_name(&phase.base, object.container),
                format!("{:032x}", object.name),
            );
            let request = StoreRequest {
                kind: match phase.work {
                    PhaseWork::Put { .. } => OperationKind::Write,
                    PhaseWork::Get(_) => OperationKind::Read,
                    PhaseWork::Delete(_) => OperationKind::Delete,
                },
                container: &container,
                object: &name,
                size,
                body: phase.contents.key(&container, &name, BodyContent::Random),
                chunked: false,
                verifies: false,
                file: None,
                detail: RequestDetail::default(),
            };
            let outcome = session.ask(&request, self.world.clock.elapsed()).await;
            phase.watch.count(&outcome);
            if outcome.failure.is_none() {
                let mut result = self.result.borrow_mut();
                result.latencies.record(outcome.latency);
                if request.kind == OperationKind::Write {
                    result.made.push(object);
                }
            }
        }
    }

    /// The object of a request, and the size of its body.
    fn pick(&self, ticket: u64) -> Option<(MadeObject, u64)> {
        let mut dice = self.dice.borrow_mut();
        match &self.phase.work {
            PhaseWork::Put { sizes, containers } => {
                let object = MadeObject {
                    container: dice.u32(0..*containers),
                    name: dice.u128(..),
                };
                Some((object, dice.u64(sizes.0..=sizes.1)))
            }
            PhaseWork::Get(made) => dice.choice(made.iter()).map(|object| (*object, 0)),
            PhaseWork::Delete(made) => made.get(usize::try_from(ticket).ok()?).map(|object| (*object, 0)),
        }
    }
}
