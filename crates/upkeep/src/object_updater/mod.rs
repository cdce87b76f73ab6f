//! Object-updater: rows that no container server took at once.
//!
//! An object server that cannot tell a container keeps a record on the object's device. Each is sent
//! to all of the container's primaries; who has taken it is written into the record, and it is removed
//! when all have. A step takes a batch of records from all devices together; rows for the same container travel
//! together (`batch.rs`), and while they do the next batch is read. A container server that names a shard instead has
//! the record redirected to it.
//! Always holds: a record is removed only when every primary of today's ring has the row, or a newer
//! record of the same object is there; a record is never sent to a device that has it already; no more than two batches
//! are in memory.
//! Deliberately absent: limits per container, several processes.
//! Tests: `tests/object_updater.rs`; behaviour compared with OpenStack Swift 2.38.3's updater.

mod batch;
mod device;
mod oldest;
mod request;

use crate::peer_failures::PeerFailures;
use crate::ring_client::{NodeResponse, RingClient, context_of};
use crate::{Disks, PassProgress, ReconFile, UpkeepJob, UpkeepStep};
use batch::{RowBatch, group};
use bytes::Bytes;
use device::{DeviceQueue, LoadedRecord, RecordBatch, RecordEnds, UpdaterDevice};
use futures_util::future::{join, join_all};
use futures_util::stream::{StreamExt, iter};
use object_engine::{PendingRecord, PendingUpdate};
use oldest::OldestPending;
use parking_lot::Mutex;
use peer::message::UpdateContainer;
use request::{destination, redirect, refuses_batches, row_update};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::Policies;

const NAME: &str = "object-updater";
/// Records whose end is known before devices hear of it: enough to keep all their threads busy. Sending rests
/// meanwhile, so that removals wait less for what container servers sync.
const ENDS_AT_ONCE: usize = 1_000;

/// Goes over the pending records of all devices.
pub struct ObjectUpdater {
    disks: Disks,
    containers: RingClient,
    policies: Policies,
    concurrency: usize,
    at_once: usize,
    oldest: Mutex<OldestPending>,
    peer_failures: PeerFailures,
    statsd: Statsd,
    /// `None` between passes.
    pass: Option<Pass>,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    /// The next batch comes from those in front.
    queues: VecDeque<DeviceQueue>,
    /// Read already.
    batch: RecordBatch,
    began: Duration,
    /// Devices on which there was anything.
    swept: usize,
}

/// What came of records that were sent.
enum RecordsOutcome {
    /// All servers have the rows.
    Sent(Vec<LoadedRecord>),
    /// It stays for a later pass; some have taken it, or it belongs elsewhere.
    Changed(Vec<LoadedRecord>),
    /// It stays for a later pass as it is.
    Left,
    /// To be sent one by one.
    Apart(Vec<LoadedRecord>),
}

impl ObjectUpdater {
    /// Sends up to `concurrency` requests at a time, for up to `at_once` records in a step.
    pub fn new(disks: Disks, containers: RingClient, policies: Policies, concurrency: usize, at_once: usize) -> Self {
        Self {
            disks,
            containers,
            policies,
            concurrency: concurrency.max(1),
            at_once: at_once.max(1),
            oldest: Mutex::default(),
            peer_failures: PeerFailures::new(NAME),
            statsd: Statsd::default(),
            pass: None,
        }
    }

    /// Looks for directories of records on all devices.
    async fn begin(&mut self) -> Pass {
        let (mut devices, began) = (vec![], self.disks.world().clock.elapsed());
        let names = self.disks.names().await;
        (0..self.disks.left_out()).for_each(|_| self.statsd.increment("errors"));
        for name in names {
            self.oldest.lock().begin(&name);
            devices.extend(UpdaterDevice::new(&mut self.disks, name, &self.statsd));
        }
        let queues = devices.iter().map(|device| device.queue(&self.policies));
        let queues: VecDeque<DeviceQueue> = join_all(queues).await.into_iter().flatten().collect();
        Pass {
            swept: queues.len(),
            queues,
            batch: RecordBatch::default(),
            began,
        }
    }

    /// The next batch, a part of it from each device.
    async fn gather(&self, queues: &mut VecDeque<DeviceQueue>) -> RecordBatch {
        let share = self.at_once.div_ceil(queues.len().max(1));
        let (mut room, mut asked) = (self.at_once, vec![]);
        while room > 0
            && let Some(queue) = queues.pop_front()
        {
            asked.push(queue.next(share.min(room)));
            room = room.saturating_sub(share);
        }
        let mut batch = RecordBatch::default();
        for (part, rest) in join_all(asked).await {
            batch.extend(part);
            queues.extend(rest);
        }
        batch
    }

    async fn send(&self, batch: RecordBatch) -> UpkeepStep {
        let count = batch.gone + batch.failed + batch.loaded.len() as u64;
        let mut finished = batch.gone;
        let (batches, mut single) = group(batch.loaded);
        let mut ends = RecordEnds::default();
        let sent = iter(batches).map(|batch| self.deliver_batch(batch));
        let mut fates = sent.buffer_unordered(self.concurrency);
        while let Some(fate) = fates.next().await {
            finished += self.note(fate, &mut ends, &mut single).await;
        }
        let mut nothing = vec![];
        let sent = iter(single).map(|loaded| self.deliver(loaded));
        let mut fates = sent.buffer_unordered(self.concurrency);
        while let Some(fate) = fates.next().await {
            finished += self.note(fate, &mut ends, &mut nothing).await;
        }
        finished += ends.carry_out().await;
        UpkeepStep::Did {
            done: finished,
            failed: count - finished,
        }
    }

    /// Gathers what is to be done, and has it done when there is enough; how many records are gone.
    async fn note(&self, fate: RecordsOutcome, ends: &mut RecordEnds, single: &mut Vec<LoadedRecord>) -> u64 {
        match fate {
            RecordsOutcome::Sent(records) => records.into_iter().for_each(|loaded| {
                self.statsd.increment("successes");
                ends.finish(loaded);
            }),
            RecordsOutcome::Changed(records) => records.into_iter().for_each(|loaded| ends.change(loaded)),
            RecordsOutcome::Left => {}
            RecordsOutcome::Apart(records) => single.extend(records),
        }
        match ends.count() >= ENDS_AT_ONCE {
            true => ends.carry_out().await,
            false => 0,
        }
    }

    /// Sends all rows of a batch to the container's primaries.
    async fn deliver_batch(&self, mut batch: RowBatch) -> RecordsOutcome {
        let (body, began) = (batch.body(), self.disks.world().clock.elapsed());
        let responses = {
            let place = (&batch.container, batch.container.clone());
            let update = |target| batch.update(target);
            self.containers
                .send_to_primaries(&context_of(NAME), place, body.into(), update)
                .await
        };
        self.time(&responses, began);
        let took: Vec<u32> = responses
            .iter()
            .filter(|response| response.is_success())
            .map(|response| response.id)
            .collect();
        for response in responses.iter().filter(|response| !response.is_success()) {
            self.peer_failures.note_response(response, batch.container.path());
        }
        if !responses.is_empty() && took.len() == responses.len() {
            return RecordsOutcome::Sent(batch.records);
        }
        for loaded in &mut batch.records {
            loaded.pending.successes.clone_from(&took);
            loaded.is_changed = !took.is_empty();
        }
        // A server that refused may have refused the verb or one row: each row then goes by itself.
        let refused = |response: &NodeResponse| response.status().is_some_and(refuses_batches);
        if responses.iter().any(refused) {
            return RecordsOutcome::Apart(batch.records);
        }
        batch.records.iter().for_each(|loaded| self.note_left(loaded));
        match took.is_empty() {
            true => RecordsOutcome::Left,
            false => RecordsOutcome::Changed(batch.records),
        }
    }

    fn note_left(&self, loaded: &LoadedRecord) {
        self.statsd.increment("failures");
        let (device, update) = (&loaded.device.name, &loaded.pending.update);
        let mut oldest = self.oldest.lock();
        oldest.note(device, &update.account, &update.container, update.timestamp);
    }

    async fn deliver(&self, mut loaded: LoadedRecord) -> RecordsOutcome {
        let before = loaded.pending.clone();
        if self.send_row(&loaded.record, &mut loaded.pending).await {
            return RecordsOutcome::Sent(vec![loaded]);
        }
        self.note_left(&loaded);
        match loaded.is_changed || loaded.pending != before {
            true => RecordsOutcome::Changed(vec![loaded]),
            false => RecordsOutcome::Left,
        }
    }

    /// Sends the row to the primaries that lack it; whether all have it now.
    async fn send_row(&self, record: &PendingRecord, pending: &mut PendingUpdate) -> bool {
        let Some((container, path)) = destination(pending) else {
            let path = record.path();
            self.peer_failures
                .note_item(path.display(), "a record names no container; left alone");
            return false;
        };
        let ring = self.containers.ring.load_full();
        let partition = self.containers.partition_of(&ring, &container);
        let mut missing = ring.primaries(partition);
        if missing.is_empty() {
            let what = format_args!("partition {partition}");
            self.peer_failures
                .note_item(what, "the container ring names nobody; kept");
            return false;
        }
        missing.retain(|device| !pending.successes.contains(&device.id));
        let (context, update) = row_update(&pending.update);
        let began = self.disks.world().clock.elapsed();
        let to = |_, target| UpdateContainer {
            target,
            ..update.clone()
        };
        let responses = self
            .containers
            .send(&context, &missing, (partition, path), Bytes::new(), to)
            .await;
        self.time(&responses, began);
        self.judge(record, pending, &responses, context.trans_id())
    }

    /// Requests by what came of them; one without a response is a 500, as OpenStack has it.
    fn time(&self, responses: &[NodeResponse], began: Duration) {
        let took = self.disks.world().clock.elapsed().saturating_sub(began);
        for response in responses {
            let status = response.status().map_or(500, |status| status.as_u16());
            self.statsd.timing(format_args!("updater.timing.status.{status}"), took);
        }
    }

    fn judge(
        &self,
        record: &PendingRecord,
        pending: &mut PendingUpdate,
        responses: &[NodeResponse],
        trans_id: &str,
    ) -> bool {
        if let Some(shard) = responses.iter().find_map(redirect) {
            pending.update.container_path = Some(shard);
            pending.successes.clear();
            return false;
        }
        let mut complete = true;
        for response in responses {
            match response.is_success() {
                true => pending.successes.push(response.id),
                false => {
                    complete = false;
                    let path = record.path();
                    let what = format_args!("{}, txn: {trans_id}", path.display());
                    self.peer_failures.note_response(response, what);
                }
            }
        }
        complete
    }
}

#[async_trait::async_trait]
impl UpkeepJob for ObjectUpdater {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => {
                let mut pass = self.begin().await;
                pass.batch = self.gather(&mut pass.queues).await;
                pass
            }
        };
        if pass.batch.is_empty() && pass.queues.is_empty() {
            let took = self.disks.world().clock.elapsed().saturating_sub(pass.began);
            self.peer_failures.report();
            (0..pass.swept).for_each(|_| self.statsd.timing(format_args!("timing"), took));
            return UpkeepStep::PassOver;
        }
        let batch = std::mem::take(&mut pass.batch);
        let (ahead, step) = join(self.gather(&mut pass.queues), self.send(batch)).await;
        pass.batch = ahead;
        self.pass = Some(pass);
        step
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let now = self.disks.world().clock.now();
        let mut figures = self.oldest.lock().figures(now);
        figures.insert("object_updater_sweep".into(), json!(pass.seconds()));
        figures.insert("object_updater_last".into(), json!(now.as_f64()));
        Some((ReconFile::Object, figures.into()))
    }
}
