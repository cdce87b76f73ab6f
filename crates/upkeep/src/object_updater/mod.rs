//! Object-updater: rows that no container server took at once.
//!
//! An object server that cannot tell a container keeps a record on the object's device. Each is sent
//! to all of the container's primaries; who has taken it is written into the record, and it is removed
//! when all have. Rows for the same container travel together (`batch.rs`). A container server that names
//! a shard instead has the record redirected to it.
//! Always holds: a record is removed only when every primary of today's ring has the row, or a newer
//! record of the same object is there; a record is never sent to a device that has it already.
//! Deliberately absent: limits per container, several processes.
//! Tests: `tests/object_updater.rs`; behaviour compared with OpenStack Swift 2.38.3's updater.

mod batch;
mod oldest;
mod request;

use crate::circle::{Answer, Circle};
use crate::{Cache, Chore, Disks, Progress, Step};
use batch::{Loaded, RowBatch, group};
use futures_util::stream::{StreamExt, iter};
use http::Method;
use object_engine::{PendingRecord, PendingSuffix, PendingUpdate, PendingUpdates};
use oldest::OldestPending;
use parking_lot::Mutex;
use request::{batch_headers, destination, headers, redirect, refuses_batches};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use vocabulary::{EntityPath, PathHash, Policies};
use world::Workers;

const NAME: &str = "object-updater";

/// Goes over the pending records of all devices.
pub struct ObjectUpdater {
    disks: Disks,
    containers: Circle,
    policies: Policies,
    concurrency: usize,
    at_once: usize,
    oldest: Mutex<OldestPending>,
    /// `None` between passes.
    pass: Option<Pass>,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    devices: VecDeque<String>,
    device: Option<OpenDevice>,
    suffixes: VecDeque<PendingSuffix>,
    records: VecDeque<PendingRecord>,
}

/// The device being worked on.
#[derive(Clone)]
struct OpenDevice {
    name: String,
    thread: Arc<Workers>,
    updates: Arc<PendingUpdates>,
}

impl OpenDevice {
    /// Runs `job` on the device's thread. What fails is logged.
    async fn run<T, E>(&self, job: impl FnOnce(&PendingUpdates) -> Result<T, E> + Send + 'static) -> Option<T>
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let updates = self.updates.clone();
        let said = match self.thread.run(move || job(&updates)).await {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!("{NAME}: device {}: {said}", self.name);
        None
    }
}

/// What became of a batch.
#[derive(Default)]
struct BatchOutcome {
    /// Records that are gone.
    settled: u64,
    /// Records to be sent one by one.
    apart: Vec<Loaded>,
}

/// What became of a record.
enum Fate {
    /// It is gone.
    Settled,
    /// It stays for a later pass.
    Left,
}

impl ObjectUpdater {
    /// Sends up to `concurrency` requests at a time, for up to `at_once` records in a step.
    pub fn new(disks: Disks, containers: Circle, policies: Policies, concurrency: usize, at_once: usize) -> Self {
        Self {
            disks,
            containers,
            policies,
            concurrency: concurrency.max(1),
            at_once: at_once.max(1),
            oldest: Mutex::default(),
            pass: None,
        }
    }

    /// Opens the device and lists its directories of records.
    async fn open(&mut self, name: String, pass: &mut Pass) {
        let thread = match self.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!("{NAME}: device {name}: no thread: {error}"),
        };
        let updates = PendingUpdates::new(self.disks.world(), self.disks.path(&name), self.disks.must_be_mounted());
        let device = OpenDevice {
            name,
            thread,
            updates: Arc::new(updates),
        };
        self.oldest.lock().begin(&device.name);
        let mut suffixes = device.run(PendingUpdates::suffixes).await.unwrap_or_default();
        let known = |suffix: &PendingSuffix| self.policies.get(suffix.policy).is_some();
        let unknown: BTreeSet<u32> = suffixes.iter().filter(|s| !known(s)).map(|s| s.policy.0).collect();
        for policy in unknown {
            let name = &device.name;
            tracing::warn!("{NAME}: device {name} has records of policy {policy}, which does not exist; left alone");
        }
        suffixes.retain(known);
        pass.suffixes = suffixes.into();
        pass.device = Some(device);
    }

    /// The records of the next directories, until there are enough for a step.
    async fn list(&self, device: &OpenDevice, pass: &mut Pass) {
        let now = self.disks.world().clock.now();
        let mut suffixes = std::mem::take(&mut pass.suffixes);
        let enough = self.at_once;
        let listed = device.run(move |updates| {
            let mut records = VecDeque::new();
            while records.len() < enough
                && let Some(suffix) = suffixes.pop_front()
            {
                match updates.records(&suffix, now) {
                    Ok((found, _)) => records.extend(found),
                    Err(error) => tracing::error!("{NAME}: {error}"),
                }
            }
            Ok::<_, std::convert::Infallible>((records, suffixes))
        });
        if let Some((records, suffixes)) = listed.await {
            (pass.records, pass.suffixes) = (records, suffixes);
        }
    }

    async fn send(&self, device: &OpenDevice, records: Vec<PendingRecord>) -> Step {
        let (count, total) = (records.len() as u64, Vec::with_capacity(records.len()));
        let loaded = device.run(move |updates| Ok::<_, std::convert::Infallible>(load(updates, records, total)));
        let Some((loaded, failed)) = loaded.await else {
            return Step::Did { done: 0, failed: count };
        };
        let gone = count - failed - loaded.len() as u64;
        let (batches, single) = group(loaded);
        let sent = iter(batches).map(|batch| self.deliver_batch(device, batch));
        let (mut settled, mut apart) = (gone, single);
        let mut outcomes = sent.buffer_unordered(self.concurrency);
        while let Some(outcome) = outcomes.next().await {
            settled += outcome.settled;
            apart.extend(outcome.apart);
        }
        let sent = iter(apart).map(|(record, pending)| self.deliver(device, record, pending));
        let mut fates = sent.buffer_unordered(self.concurrency);
        while let Some(fate) = fates.next().await {
            settled += u64::from(matches!(fate, Fate::Settled));
        }
        let done = settled;
        Step::Did {
            done,
            failed: count - done,
        }
    }

    /// Tells the container's primaries all rows of a batch.
    async fn deliver_batch(&self, device: &OpenDevice, mut batch: RowBatch) -> BatchOutcome {
        let ring = self.containers.ring.load_full();
        let partition = ring.partition_of(&self.place(&batch.container).0);
        let primaries = ring.primaries(partition);
        let (headers, body) = (batch_headers(&batch), batch.body());
        let update = Method::from_bytes(b"UPDATE").unwrap_or_default();
        let path = batch.container.clone();
        let answers = self
            .containers
            .tell_with(&primaries, partition, &update, path, &headers, body.into())
            .await;
        let took: Vec<u32> = answers
            .iter()
            .filter(|answer| answer.is_success())
            .map(|answer| answer.id)
            .collect();
        for answer in answers.iter().filter(|answer| !answer.is_success()) {
            let (count, container) = (batch.records.len(), batch.container.path());
            tracing::info!(
                "{NAME}: {} did not take {count} rows of {container}: {}",
                answer.place,
                answer.why()
            );
        }
        if !primaries.is_empty() && took.len() == primaries.len() {
            return self.remove_all(device, batch).await;
        }
        for (_, pending) in &mut batch.records {
            pending.successes.clone_from(&took);
        }
        // Those who refused may have refused the verb or one row: each row then goes by itself.
        let refused = |answer: &Answer| {
            answer
                .answer
                .as_ref()
                .is_ok_and(|response| refuses_batches(response.status()))
        };
        if answers.iter().any(refused) {
            return BatchOutcome {
                settled: 0,
                apart: batch.records,
            };
        }
        let records = batch.records;
        records.iter().for_each(|(_, pending)| self.note_left(device, pending));
        device
            .run(move |updates| {
                records
                    .iter()
                    .try_for_each(|(record, pending)| updates.keep(record, pending))
            })
            .await;
        BatchOutcome::default()
    }

    async fn remove_all(&self, device: &OpenDevice, batch: RowBatch) -> BatchOutcome {
        let settled = batch.records.len() as u64;
        let records = batch.records;
        let removed = device.run(move |updates| records.iter().try_for_each(|(record, _)| updates.remove(record)));
        match removed.await {
            Some(()) => BatchOutcome { settled, apart: vec![] },
            None => BatchOutcome::default(),
        }
    }

    fn note_left(&self, device: &OpenDevice, pending: &PendingUpdate) {
        let update = &pending.update;
        let mut oldest = self.oldest.lock();
        oldest.note(&device.name, &update.account, &update.container, update.timestamp);
    }

    async fn deliver(&self, device: &OpenDevice, record: PendingRecord, mut pending: PendingUpdate) -> Fate {
        let before = pending.clone();
        let complete = self.tell(&record, &mut pending).await;
        if complete {
            let settled = device.run(move |updates| updates.remove(&record)).await;
            return settled.map_or(Fate::Left, |()| Fate::Settled);
        }
        self.note_left(device, &pending);
        if pending != before {
            // If it cannot be written, the row is sent once more to those who have it: harmless.
            device.run(move |updates| updates.keep(&record, &pending)).await;
        }
        Fate::Left
    }

    /// Sends the row to the primaries that lack it; whether all have it now.
    async fn tell(&self, record: &PendingRecord, pending: &mut PendingUpdate) -> bool {
        let Some((container, path)) = destination(pending) else {
            tracing::error!("{NAME}: {}: names no container; left alone", record.path().display());
            return false;
        };
        let ring = self.containers.ring.load_full();
        let partition = ring.partition_of(&self.place(&container).0);
        let mut missing = ring.primaries(partition);
        if missing.is_empty() {
            tracing::error!("{NAME}: the container ring names nobody for partition {partition}; kept");
            return false;
        }
        missing.retain(|device| !pending.successes.contains(&device.id));
        let method = match pending.update.op.as_str() {
            "DELETE" => Method::DELETE,
            _ => Method::PUT,
        };
        let headers = headers(pending);
        let answers = self.containers.tell(&missing, partition, &method, path, &headers).await;
        self.judge(record, pending, &answers)
    }

    fn place(&self, container: &EntityPath) -> PathHash {
        let name = container.container.as_deref().unwrap_or_default();
        self.containers.hash.container(&container.account, name)
    }

    fn judge(&self, record: &PendingRecord, pending: &mut PendingUpdate, answers: &[Answer]) -> bool {
        if let Some(shard) = answers.iter().find_map(redirect) {
            pending.update.container_path = Some(shard);
            pending.successes.clear();
            return false;
        }
        let mut complete = true;
        for answer in answers {
            match answer.is_success() {
                true => pending.successes.push(answer.id),
                false => {
                    complete = false;
                    let (place, why) = (&answer.place, answer.why());
                    tracing::info!("{NAME}: {place} did not take {}: {why}; kept", record.path().display());
                }
            }
        }
        complete
    }
}

#[async_trait::async_trait]
impl Chore for ObjectUpdater {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn step(&mut self) -> Step {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => Pass {
                devices: self.disks.names().await.into(),
                ..Pass::default()
            },
        };
        let step = match pass.device.clone() {
            Some(device) if !pass.records.is_empty() => {
                let count = self.at_once.min(pass.records.len());
                let records = pass.records.drain(..count).collect();
                self.send(&device, records).await
            }
            Some(device) if !pass.suffixes.is_empty() => {
                self.list(&device, &mut pass).await;
                Step::LOOKED
            }
            _ => {
                let Some(next) = pass.devices.pop_front() else {
                    return Step::PassOver;
                };
                pass.device = None;
                self.open(next, &mut pass).await;
                Step::LOOKED
            }
        };
        self.pass = Some(pass);
        step
    }

    fn figures(&self, pass: &Progress) -> Option<(Cache, Value)> {
        let now = self.disks.world().clock.now();
        let mut figures = self.oldest.lock().figures(now);
        figures.insert("object_updater_sweep".into(), json!(pass.seconds()));
        figures.insert("object_updater_last".into(), json!(now.as_f64()));
        Some((Cache::Object, figures.into()))
    }
}

/// What `records` say, and how many could not be read now. Those that have gone, or were moved aside as rubbish, are
/// in neither.
fn load(updates: &PendingUpdates, records: Vec<PendingRecord>, mut loaded: Vec<Loaded>) -> (Vec<Loaded>, u64) {
    let mut failed = 0;
    for record in records {
        match updates.load(&record) {
            Ok(Some(pending)) => loaded.push((record, pending)),
            Ok(None) => {}
            Err(error) => {
                failed += 1;
                tracing::error!("{NAME}: {error}");
            }
        }
    }
    (loaded, failed)
}
