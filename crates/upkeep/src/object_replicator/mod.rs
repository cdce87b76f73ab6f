//! Object-replicator: every primary has what the others have, and handoffs keep nothing.
//!
//! Of each partition on each of this server's devices the suffix hashes are compared with those of its
//! other primaries; what differs is sent to them (they send what we lack). A partition that does not
//! belong here is sent to all primaries and then removed.
//! Always holds: nothing is removed here unless every primary (or `handoff_delete` of them) has said that
//! it has it, and it is still what they were offered; a partition that has not changed costs a look at
//! its recorded hashes on each side, no object file is opened; a peer that stalls, lies or sends too much
//! costs one bounded time-out.
//! Deliberately absent: erasure-coded policies (the reconstructor's), several processes.
//!
//! | question | file |
//! |---|---|
//! | which partitions, in which order | `tasks.rs` |
//! | a partition that belongs here | `compare.rs` |
//! | one that does not | `revert.rs` |
//! | what object servers are asked | `backend.rs` |
//! | how objects travel | `ssync.rs` (`offers.rs`, `requests.rs`) or `rsync.rs` |
//! | what is counted | `tally.rs` |
//!
//! Tests: `tests/object_replicator/`; beside OpenStack's in `tests/interop/test_object_replication.py`.

mod backend;
mod compare;
mod local;
mod offers;
mod requests;
mod revert;
mod rsync;
mod ssync;
mod tally;
mod tasks;

pub use rsync::ObjectRsyncOptions;

use crate::frame::PassProgress;
use crate::local_server::LocalServer;
use crate::peer_failures::PeerFailures;
use crate::recon::ReconFile;
use crate::{Disks, UpkeepJob, UpkeepStep};
use arc_swap::ArcSwap;
use futures_util::{StreamExt, stream};
use local::Locals;
use object_engine::Notice;
use peer::Peers;
use placement::Ring;
use rsync::ObjectRsync;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally::Tally;
use tasks::{PartitionTask, TaskQueue};
use telemetry::Statsd;
use vocabulary::{HashPrefix, Partition, PolicyIndex};
use world::World;

const NAME: &str = "object-replicator";
/// A server has no more devices, as far as threads are made before they are counted.
const MOST_DISKS: usize = 64;
/// Every so many passes a partition is listed again, for suffixes that no request announced.
const LISTED_EVERY: u32 = 10;
/// Partitions of a step for each that is worked on at the same time, so that one that takes long does not hold up
/// the others.
const TURNS: usize = 8;

/// How objects travel (`sync_method`).
#[derive(Debug, Clone)]
pub enum SyncMethod {
    /// Over the object servers' own protocol.
    Ssync,
    /// With the program rsync.
    Rsync(ObjectRsyncOptions),
}

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct ObjectReplicatorOptions {
    /// How objects travel.
    pub method: SyncMethod,
    /// Partitions that are worked on at the same time.
    pub concurrency: usize,
    /// Multiplies that, up to the number of devices (`replicator_workers`); 0 for once.
    pub workers: usize,
    /// For a connection.
    pub conn_timeout: Duration,
    /// For an answer (`node_timeout`).
    pub node_timeout: Duration,
    /// For what takes longer: a piece of an exchange, hashing (`http_timeout`).
    pub http_timeout: Duration,
    /// How long tombstones are kept.
    pub reclaim_age: Duration,
    /// Partitions that do not belong here come first, and others only once all of those are home.
    pub handoffs_first: bool,
    /// So many primaries are enough for removing here; all when `None`.
    pub handoff_delete: Option<usize>,
    /// Only these partitions; all when empty.
    pub partitions: Vec<Partition>,
    /// Only these policies; all when empty.
    pub policies: Vec<PolicyIndex>,
}

impl ObjectReplicatorOptions {
    /// Partitions at a time on so many devices.
    fn at_once(&self, devices: usize) -> usize {
        let workers = self.workers.min(devices).max(1);
        self.concurrency.max(1).saturating_mul(workers)
    }
}

/// The cluster that objects are replicated in.
#[derive(Clone)]
pub struct ObjectRingClient {
    /// The rings of replicated policies.
    pub rings: BTreeMap<PolicyIndex, Arc<ArcSwap<Ring>>>,
    /// The cluster's path secrets.
    pub hash: HashPrefix,
    /// The way to the others.
    pub peers: Arc<Peers>,
}

/// Goes over the partitions of all devices.
pub struct ObjectReplicator {
    disks: Disks,
    locals: Locals,
    server: LocalServer,
    shared: Arc<Shared>,
    selected: bool,
    pass: Option<TaskQueue>,
    passes: u32,
    /// Devices that this pass found.
    devices: Vec<String>,
}

/// What all tasks use.
struct Shared {
    world: World,
    ring_client: ObjectRingClient,
    options: ObjectReplicatorOptions,
    rsync: Option<ObjectRsync>,
    tally: Tally,
    peer_failures: PeerFailures,
    /// Whether in this pass a handoff could not be brought home.
    handoffs_left: AtomicBool,
}

/// What became of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing was to be done.
    Same,
    /// Something was, and is.
    Done,
    /// Something is left for a later pass.
    Left,
}

impl ObjectReplicator {
    /// For the devices of `disks` of `server`.
    pub fn new(
        disks: Disks,
        ring_client: ObjectRingClient,
        server: LocalServer,
        options: ObjectReplicatorOptions,
    ) -> Self {
        let world = disks.world().clone();
        let rsync = match &options.method {
            SyncMethod::Rsync(rsync) => Some(ObjectRsync::new(&world, rsync.clone(), options.at_once(MOST_DISKS))),
            SyncMethod::Ssync => None,
        };
        let selected = disks.is_selection() || !options.partitions.is_empty() || !options.policies.is_empty();
        Self {
            locals: Locals::new(disks.must_be_mounted(), options.reclaim_age, options.concurrency.max(1)),
            disks,
            server,
            shared: Arc::new(Shared {
                world,
                ring_client,
                options,
                rsync,
                tally: Tally::default(),
                peer_failures: PeerFailures::new(NAME),
                handoffs_left: AtomicBool::default(),
            }),
            selected,
            pass: None,
            passes: 0,
            devices: vec![],
        }
    }

    /// All that is to be looked at.
    async fn collect(&mut self) -> TaskQueue {
        self.passes = self.passes.wrapping_add(1);
        self.shared.tally.begin();
        self.shared.handoffs_left.store(false, Ordering::Relaxed);
        let mut tasks = TaskQueue::new(self.shared.options.handoffs_first);
        self.devices.clear();
        self.shared.warn_of_growing_rings();
        for name in self.disks.names().await {
            let Some(local) = self.locals.open(&mut self.disks, &name).await else {
                continue;
            };
            self.devices.push(name);
            let swept = local.run(|engine| {
                engine.replica().sweep();
                Ok(())
            });
            if let Err(error) = swept.await {
                tracing::error!("{NAME}: {error}");
                continue;
            }
            let found = tasks::of_device(&self.shared, &self.server, &local).await;
            tasks.add(found);
        }
        tasks
    }
}

impl Shared {
    async fn work_on(self: &Arc<Self>, task: PartitionTask, pass: u32) -> Fate {
        self.tally.attempted();
        let listed = task.key.partition.0.wrapping_add(pass).is_multiple_of(LISTED_EVERY);
        let (what, began) = (
            if task.belongs_here { "update" } else { "delete" },
            self.world.clock.elapsed(),
        );
        self.tally.begins(what, &task.local.name);
        let fate = match task.belongs_here {
            true => self.compare(&task, listed).await,
            false => self.revert(&task).await,
        };
        self.tally.ended(what, self.world.clock.elapsed().saturating_sub(began));
        fate
    }

    /// The ring by which a partition was found; `None` when it has got another number of partitions since, or is
    /// about to ([`is_growing`]).
    fn ring(&self, task: &PartitionTask) -> Option<Arc<Ring>> {
        let ring = self.ring_client.rings.get(&task.key.policy)?.load_full();
        (!is_growing(&ring) && ring.partition_count() == task.partition_count).then_some(ring)
    }

    /// Says which policies this pass leaves alone.
    fn warn_of_growing_rings(&self) {
        let chosen = |policy: &PolicyIndex| self.options.policies.is_empty() || self.options.policies.contains(policy);
        for (policy, ring) in &self.ring_client.rings {
            if chosen(policy) && is_growing(&ring.load()) {
                tracing::warn!(
                    "{NAME}: policy {policy} is left alone while the partition power of its ring is increased \
                     (next_part_power is set)"
                );
            }
        }
    }
}

/// Whether the partition power of a ring is being increased. A partition's directory has objects of two partitions
/// then, which share their files: comparing them would send all of them, and bringing some home would remove others.
fn is_growing(ring: &Ring) -> bool {
    ring.data().next_part_power().is_some()
}

#[async_trait::async_trait]
impl UpkeepJob for ObjectReplicator {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut tasks = match self.pass.take() {
            Some(tasks) => tasks,
            None => self.collect().await,
        };
        let concurrency = self.shared.options.at_once(self.devices.len());
        if self.shared.handoffs_left.load(Ordering::Relaxed)
            && let put_off @ 1.. = tasks.put_off_all_but_handoffs()
        {
            tracing::warn!("{NAME}: handoffs_first: not all handoffs are home; {put_off} other partitions wait for it");
        }
        let now = tasks.take(concurrency.saturating_mul(TURNS));
        if now.is_empty() {
            self.shared.peer_failures.report();
            return UpkeepStep::PassOver;
        }
        self.pass = Some(tasks);
        let shared = &self.shared;
        let pass = self.passes;
        let working = stream::iter(now.into_iter().map(|task| shared.work_on(task, pass)));
        let fates: Vec<Fate> = working.buffer_unordered(concurrency).collect().await;
        let count = |wanted: Fate| fates.iter().filter(|fate| **fate == wanted).count() as u64;
        UpkeepStep::Did {
            done: count(Fate::Done),
            failed: count(Fate::Left),
        }
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.locals.quarantined = match statsd.clone() {
            statsd if statsd.is_wanted() => Notice::to(move || statsd.increment("quarantines")),
            _ => Notice::default(),
        };
        // No task has it before the first step.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.tally.statsd = statsd;
        }
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        // A pass over a selection says nothing about the server.
        let now = self.shared.world.clock.now().as_f64();
        let mut figures = self.shared.tally.figures(now, pass.seconds());
        if self.shared.options.workers > 0 {
            tally::of_each(&mut figures, &self.devices);
        }
        (!self.selected).then_some((ReconFile::Object, figures))
    }
}
