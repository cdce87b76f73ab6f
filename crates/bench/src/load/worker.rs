//! One thread of a load and its workers: each asks, waits for the answer, counts it, and asks again.

use super::pace::{ArrivalPace, TIMER_SLACK};
use super::plan::{Planned, Planner};
use super::{GRACE, Running, buffer_size};
use crate::figures::{Latencies, RequestOutcome, WorkFigures};
use crate::record::RecordBuffer;
use crate::record::row::RecordedOperation;
use crate::store::{RequestDetail, StoreRequest, StoreSession};
use crate::workload::OperationKind;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vocabulary::Fault;
use world::World;

/// How often a thread looks whether it has to end although requests are under way.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the workers of one of `threads` threads.
pub(super) fn run_thread(
    world: &World,
    running: &Arc<Running>,
    thread: usize,
    threads: usize,
) -> Result<WorkFigures, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::caller(format!("no runtime for a thread of the load: {error}")))?;
    let part = running.part.share;
    // Threads of several drivers have dice of their own.
    let seed = mixed(running.options.seed, thread as u64 | u64::from(part.part) << 32);
    let pace = ArrivalPace::new(running.work.arrivals, thread, threads, seed);
    let share = ThreadShare {
        world,
        running,
        figures: RefCell::new(WorkFigures::new(running.work.operations.len(), running.work.interval)),
        recent: RefCell::default(),
        records: RefCell::new(running.part.records.as_ref().map(|(recorder, stage)| {
            let work = &running.work.name;
            RecordBuffer::new(recorder, stage, work)
        })),
        pace: RefCell::new(pace.beside_others(threads, part.part, part.parts)),
    };
    // Without a budget: tokio would let so many sockets be read in a row, and put off all others behind those that have
    // become ready meanwhile, so that a few connections would have all of the load.
    runtime.block_on(tokio::task::coop::unconstrained(async {
        let mine = (0..part.workers).filter(|worker| *worker as usize % threads == thread);
        let mine = mine.map(|worker| part.first + worker);
        let mut workers: FuturesUnordered<_> = mine.map(|worker| share.work(worker)).collect();
        let all = async { while workers.next().await.is_some() {} };
        tokio::select! {
            () = all => {}
            () = share.too_late() => {}
        }
    }));
    share.tell_recent();
    Ok(share.figures.into_inner())
}

/// What the workers of a thread share.
struct ThreadShare<'a> {
    world: &'a World,
    running: &'a Arc<Running>,
    figures: RefCell<WorkFigures>,
    pace: RefCell<ArrivalPace>,
    /// Times that the watch does not have yet.
    recent: RefCell<Latencies>,
    records: RefCell<Option<RecordBuffer>>,
}

impl ThreadShare<'_> {
    /// One worker, until it has nothing more to do.
    async fn work(&self, worker: u32) {
        let running = self.running;
        let seed = mixed(running.options.seed ^ 0x5eed, u64::from(worker));
        let mut planner = Planner::new(running.work.clone(), worker, running.positions.clone(), seed);
        let buffer = buffer_size(running.part.share.workers);
        let mut session = StoreSession::new(
            running.store.for_worker(worker),
            self.world.clone(),
            running.contents.clone(),
            buffer,
        );
        let mut names = RequestNames::default();
        while let Some(planned) = planner.draw() {
            // Held until the operation has ended, or is given up.
            let _turn = running.positions.turn(&planned).await;
            let Some(due) = self.next_start(planned.at).await else {
                return;
            };
            if !running.takes_ticket() {
                return;
            }
            let start = running.part.records.as_ref().map(|_| self.world.clock.elapsed());
            let outcome = self.ask(&mut session, &planned, &mut names, due).await;
            self.count(&planned, &outcome);
            if let (Some(start), Some(records)) = (start, &mut *self.records.borrow_mut()) {
                records.add(&RecordedOperation {
                    kind: running.work.operations[planned.operation].kind.name(),
                    container: &names.container,
                    object: &names.object,
                    due,
                    start,
                    outcome,
                    worker,
                });
            }
        }
    }

    /// Waits until the next request is to begin, `at` its own time or at that of the pace; answers when it was due.
    /// Nothing when no further one begins.
    async fn next_start(&self, at: Option<Duration>) -> Option<Duration> {
        let (clock, running) = (&self.world.clock, self.running);
        let due = at.or_else(|| self.pace.borrow_mut().due());
        let now = clock.elapsed();
        let due = due.map_or(now, |due| running.begun.saturating_add(due));
        if running.last_start().is_some_and(|last| due.max(now) >= last) || running.watch.is_stopped() {
            return None;
        }
        if due <= now {
            return Some(due);
        }
        clock.sleep(due - now).await;
        let woken = clock.elapsed();
        Some(if woken.saturating_sub(due) <= TIMER_SLACK {
            woken
        } else {
            due
        })
    }

    async fn ask(
        &self,
        session: &mut StoreSession,
        planned: &Planned,
        names: &mut RequestNames,
        due: Duration,
    ) -> RequestOutcome {
        let running = self.running;
        let operation = &running.work.operations[planned.operation];
        names.container.clear();
        names.object.clear();
        let (of, on) = (&operation.containers, &operation.objects);
        // Writing to memory does not fail.
        let _ = write!(names.container, "{}{}{}", of.prefix, planned.container, of.suffix);
        if let Some(of) = on {
            let _ = write!(names.object, "{}{}{}", of.prefix, planned.object, of.suffix);
        }
        let detail = &operation.detail;
        if let Some(of) = &detail.copies {
            names.copy.clear();
            let _ = write!(names.copy, "{}{}{}", of.prefix, planned.copy, of.suffix);
        }
        let file = match operation.kind {
            OperationKind::FileWrite => running.files.get(planned.object as usize % running.files.len().max(1)),
            _ => None,
        };
        let body = running.contents.key(&names.container, &names.object, operation.content);
        let mut request = StoreRequest {
            kind: operation.kind,
            container: &names.container,
            object: &names.object,
            size: file.map_or(planned.size, |file| file.len() as u64),
            body,
            chunked: operation.chunked,
            verifies: operation.kind == OperationKind::Read && (running.options.verifies || operation.hash_check),
            file: file.map(Vec::as_slice),
            detail: RequestDetail {
                range: planned.range,
                part_size: detail.part_size,
                copy: &names.copy,
                condition: detail.condition,
                etag: None,
                has_versions: detail.has_versions,
                removes_parts: detail.removes_parts,
                hash_check: operation.hash_check,
                is_absent: planned.is_absent,
                is_emptied: detail.is_emptied,
                query: &detail.query,
            },
        };
        if operation.with_container && operation.kind == OperationKind::Write {
            request.kind = OperationKind::MakeContainer;
            request.object = "";
            let made = session.ask(&request, due).await;
            if made.failure.is_some() {
                return made;
            }
            request.kind = operation.kind;
            request.object = &names.object;
        }
        session.ask(&request, due).await
    }

    fn count(&self, planned: &Planned, outcome: &RequestOutcome) {
        let running = self.running;
        let now = self.world.clock.elapsed();
        running.bytes.fetch_add(outcome.bytes, Ordering::Relaxed);
        running.watch.count(outcome);
        if outcome.failure.is_none() {
            self.recent.borrow_mut().record(outcome.latency);
        }
        let at = now.saturating_sub(running.begun);
        let counts = running.counts(now);
        self.figures.borrow_mut().record(planned.operation, at, counts, outcome);
    }

    /// Tells the watch how long requests took since the last time.
    fn tell_recent(&self) {
        let mut recent = self.recent.borrow_mut();
        if recent.count() > 0 {
            self.running.watch.add_recent(&recent);
            recent.clear();
        }
    }

    /// Completes when requests that are still under way have had their time.
    async fn too_late(&self) {
        let (clock, running) = (&self.world.clock, self.running);
        loop {
            clock.sleep(LOOK).await;
            self.tell_recent();
            let is_over = running.last_start().is_some_and(|last| clock.elapsed() >= last);
            if is_over || running.watch.is_stopped() {
                return clock.sleep(GRACE).await;
            }
        }
    }
}

/// Names of a request; their memory is used again.
#[derive(Default)]
struct RequestNames {
    container: String,
    object: String,
    copy: String,
}

/// A seed for each part of a load (SplitMix64).
fn mixed(seed: u64, part: u64) -> u64 {
    let mut mixed = seed.wrapping_add(part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
