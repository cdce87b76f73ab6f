//! One device's records: found and read before they are sent, removed or written back after that.
//!
//! Always holds: what blocks runs on the device's own threads; several of them remove records at the same time, for
//! each removal may have to wait for a log that other writers have just filled; a device that does not answer for
//! [`PATIENCE`] leaves the pass, and the others go on.
//! Deliberately absent: sending.

use super::NAME;
use crate::Disks;
use crate::faults::ToFault;
use object_engine::{Notice, PendingRecord, PendingSuffix, PendingUpdate, PendingUpdates};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{Fault, Policies};
use world::{Workers, World};

/// Threads of a device: that many removals at the same time.
const THREADS: usize = 8;
/// Records that are worth a thread of their own.
const WORTH_A_THREAD: usize = 16;
/// Failures after which a thread leaves the rest of its share for the next pass.
const FAILURES: usize = 4;
/// How long a device may take for a few records before it is left alone.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long records are read before what there is gets sent.
const LONGEST_READ: Duration = Duration::from_secs(5);

/// A device that is worked on.
pub(super) struct UpdaterDevice {
    pub(super) name: String,
    world: World,
    threads: Arc<Workers>,
    updates: Arc<PendingUpdates>,
    statsd: Statsd,
}

/// A record, what it says, and where it is.
pub(super) struct LoadedRecord {
    pub(super) device: Arc<UpdaterDevice>,
    pub(super) record: PendingRecord,
    pub(super) pending: PendingUpdate,
    /// What it says is no longer what is on the device.
    pub(super) is_changed: bool,
}

/// What is left of a device in a pass.
pub(super) struct DeviceQueue {
    device: Arc<UpdaterDevice>,
    suffixes: VecDeque<PendingSuffix>,
    records: VecDeque<PendingRecord>,
}

/// Records that have been read.
#[derive(Default)]
pub(super) struct RecordBatch {
    pub(super) loaded: Vec<LoadedRecord>,
    /// Records that have gone, or were moved aside as rubbish.
    pub(super) gone: u64,
    /// Records that could not be read now.
    pub(super) failed: u64,
}

impl RecordBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.loaded.is_empty() && self.gone + self.failed == 0
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.loaded.extend(other.loaded);
        self.gone += other.gone;
        self.failed += other.failed;
    }
}

impl UpdaterDevice {
    pub(super) fn new(disks: &mut Disks, name: String, statsd: &Statsd) -> Option<Arc<Self>> {
        let threads = match disks.threads(&name, THREADS) {
            Ok(threads) => threads,
            Err(error) => {
                tracing::error!("{NAME}: device {name}: no thread: {error}");
                return None;
            }
        };
        let updates = PendingUpdates::watched(disks.world(), disks.health(&name), disks.must_be_mounted());
        let notice = |metric: &'static str| {
            let statsd = statsd.clone();
            Notice::to(move || statsd.increment(metric))
        };
        let updates = updates.noticed_by(notice("quarantines"), notice("errors"));
        Some(Arc::new(Self {
            name,
            world: disks.world().clone(),
            threads,
            updates: Arc::new(updates),
            statsd: statsd.clone(),
        }))
    }

    /// Runs `job` on one of the device's threads. What fails is logged.
    async fn run<T: Send + 'static>(&self, job: impl FnOnce(&PendingUpdates) -> T + Send + 'static) -> Option<T> {
        let updates = self.updates.clone();
        let ran = self.threads.run(move || job(&updates));
        let late = |_| {
            Fault::device(format!(
                "nothing was done in {PATIENCE:?}; the rest waits for the next pass"
            ))
        };
        let ran = self.world.timeout(PATIENCE, ran).await.map_err(late);
        let done = ran.and_then(|done| done.map_err(|error| error.to_fault()));
        done.inspect_err(|fault| tracing::error!("{NAME}: device {}: {fault}", self.name))
            .ok()
    }

    /// The device's directories of records; `None` when there are none. What servers that are gone left under way is in
    /// them then.
    pub(super) async fn queue(self: &Arc<Self>, policies: &Policies) -> Option<DeviceQueue> {
        let found = self.run(|updates| (updates.recover(), updates.suffixes())).await?;
        match found.0 {
            Ok(0) => {}
            Ok(left) => tracing::info!("{NAME}: device {}: a server left {left} updates under way", self.name),
            Err(error) => tracing::error!("{NAME}: device {}: {error}", self.name),
        }
        let mut suffixes = match found.1 {
            Ok(suffixes) => suffixes,
            Err(error) => {
                tracing::error!("{NAME}: device {}: {error}", self.name);
                return None;
            }
        };
        let known = |suffix: &PendingSuffix| policies.get(suffix.policy).is_some();
        let mut unknown: Vec<u32> = suffixes.iter().filter(|s| !known(s)).map(|s| s.policy.0).collect();
        unknown.dedup();
        for policy in unknown {
            let name = &self.name;
            tracing::warn!("{NAME}: device {name} has records of policy {policy}, which does not exist; left alone");
        }
        suffixes.retain(known);
        (!suffixes.is_empty()).then(|| DeviceQueue {
            device: self.clone(),
            suffixes: suffixes.into(),
            records: VecDeque::new(),
        })
    }

    /// Does `act` to each of `things`, several at the same time; to how many. What fails is logged; a thread ends after
    /// [`FAILURES`] of them, for the device is at fault then.
    async fn to_each<T: Send + 'static, E: std::fmt::Display>(
        &self,
        mut things: Vec<T>,
        act: impl Fn(&PendingUpdates, &T) -> Result<(), E> + Clone + Send + 'static,
    ) -> u64 {
        let share = things.len().div_ceil(THREADS).max(WORTH_A_THREAD);
        let mut jobs = vec![];
        while !things.is_empty() {
            let mine = things.split_off(things.len().saturating_sub(share));
            let act = act.clone();
            jobs.push(self.run(move |updates| {
                let (mut done, mut failed) = (0, 0);
                for thing in &mine {
                    match act(updates, thing) {
                        Ok(()) => done += 1,
                        Err(error) => {
                            tracing::error!("{NAME}: {error}");
                            failed += 1;
                        }
                    }
                    if failed == FAILURES {
                        break;
                    }
                }
                done
            }));
        }
        let done = futures_util::future::join_all(jobs).await;
        done.into_iter().flatten().sum()
    }
}

impl DeviceQueue {
    /// The next records, `most` of them; and the queue again while there is more in it.
    pub(super) async fn next(self, most: usize) -> (RecordBatch, Option<Self>) {
        let Self {
            device,
            mut suffixes,
            mut records,
        } = self;
        let (clock, statsd) = (device.world.clock.clone(), device.statsd.clone());
        let read = device.run(move |updates| {
            let (began, now) = (clock.elapsed(), clock.now());
            let mut batch = Read::default();
            while batch.count < most && clock.elapsed().saturating_sub(began) < LONGEST_READ {
                if let Some(record) = records.pop_front() {
                    batch.take(updates, record);
                } else if let Some(suffix) = suffixes.pop_front() {
                    match updates.records(&suffix, now) {
                        Ok((found, outdated)) => {
                            unlinked(&statsd, outdated);
                            records.extend(found);
                        }
                        Err(error) => tracing::error!("{NAME}: {error}"),
                    }
                } else {
                    break;
                }
            }
            (batch, suffixes, records)
        });
        let Some((read, suffixes, records)) = read.await else {
            return (RecordBatch::default(), None);
        };
        let loaded = read.loaded.into_iter().map(|(record, pending)| LoadedRecord {
            device: device.clone(),
            record,
            pending,
            is_changed: false,
        });
        let batch = RecordBatch {
            gone: read.count as u64 - read.failed - loaded.len() as u64,
            failed: read.failed,
            loaded: loaded.collect(),
        };
        let is_over = suffixes.is_empty() && records.is_empty();
        let rest = Self {
            device,
            suffixes,
            records,
        };
        (batch, (!is_over).then_some(rest))
    }
}

fn unlinked(statsd: &Statsd, records: u64) {
    if records > 0 {
        statsd.count(format_args!("unlinks"), records);
    }
}

/// What a thread has read.
#[derive(Default)]
struct Read {
    count: usize,
    failed: u64,
    loaded: Vec<(PendingRecord, PendingUpdate)>,
}

impl Read {
    fn take(&mut self, updates: &PendingUpdates, record: PendingRecord) {
        self.count += 1;
        match updates.load(&record) {
            Ok(Some(pending)) => self.loaded.push((record, pending)),
            Ok(None) => {}
            Err(error) => {
                self.failed += 1;
                tracing::error!("{NAME}: {error}");
            }
        }
    }
}

/// What is to become of records that were sent, gathered so that each device hears of many at once.
#[derive(Default)]
pub(super) struct RecordEnds {
    devices: BTreeMap<String, DeviceEnds>,
    count: usize,
}

struct DeviceEnds {
    device: Arc<UpdaterDevice>,
    finished: Vec<PendingRecord>,
    changed: Vec<(PendingRecord, PendingUpdate)>,
}

impl RecordEnds {
    /// All servers have its row: it can go.
    pub(super) fn finish(&mut self, loaded: LoadedRecord) {
        self.of(&loaded.device).finished.push(loaded.record);
    }

    /// Other servers than before have its row: it is to be written back.
    pub(super) fn change(&mut self, loaded: LoadedRecord) {
        let changed = (loaded.record, loaded.pending);
        self.of(&loaded.device).changed.push(changed);
    }

    /// How many records wait here.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn of(&mut self, device: &Arc<UpdaterDevice>) -> &mut DeviceEnds {
        self.count += 1;
        self.devices.entry(device.name.clone()).or_insert_with(|| DeviceEnds {
            device: device.clone(),
            finished: vec![],
            changed: vec![],
        })
    }

    /// Has it done on all devices at once, and begins anew; how many records are gone.
    pub(super) async fn carry_out(&mut self) -> u64 {
        let devices = std::mem::take(self).devices.into_values().map(|ends| async move {
            let DeviceEnds {
                device,
                finished,
                changed,
            } = ends;
            let finished = device.to_each(finished, |updates, record| updates.remove(record)).await;
            unlinked(&device.statsd, finished);
            // What cannot be written is sent once more to those who have it: harmless.
            let keep = |updates: &PendingUpdates, (record, pending): &(_, _)| updates.keep(record, pending);
            device.to_each(changed, keep).await;
            finished
        });
        futures_util::future::join_all(devices).await.into_iter().sum()
    }
}
