//! Container-lifecycle: what the lifecycle rules of S3's buckets make due.
//!
//! Every container database of this server is looked at; one that has rules, and whose turn it is here, has its listing
//! walked in pages, and what is due is deleted through upkeep's own gateway.
//! Always holds: what goes is the version that was looked at, never what was written after; where versions are kept,
//! the current one stays behind a delete marker; a bucket is worked on by one of its primaries at a time, each pass by
//! another one, so that none depends on one drive; rules count while the bucket's servers agree on them and on the
//! time; buckets take turns; memory is that of a page of so many of them; after a crash everything is judged anew.
//! Deliberately absent: what rules mean (`lifecycle`), how the gateway keeps versions (`features`).
//!
//! | question | file |
//! |---|---|
//! | whether its servers agree on its rules | `agreed.rs`, on the time `clocks.rs` |
//! | a bucket, page after page | `bucket.rs`, its rows `rows.rs` |
//! | how an object or a version goes | `remove.rs`, whether another has its parts `twins.rs` |
//! | whether a delete marker is all that is left of its key | `alone.rs` |
//! | whether the newer versions are there that a rule keeps | `newer.rs` |
//! | uploads that were never completed, and parts | `uploads.rs`, whether they became an object `standing.rs` |
//! | what deletions take | `remover.rs` |
//!
//! Tests: beside the code, `crates/upkeep/tests/container_lifecycle`,
//! `tests/clients/test_boto3_lifecycle_pass.py`.

mod agreed;
mod alone;
mod bucket;
mod clocks;
mod listed_alike;
mod newer;
mod remove;
mod remover;
mod rows;
mod standing;
mod twins;
mod unlisted;
mod uploads;

use crate::internal_client::InternalClient;
use crate::local_server::LocalServer;
use crate::open_device::OpenDevice;
use crate::peer_failures::PeerFailures;
use crate::ring_client::RingClient;
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::work_share::WorkShare;
use crate::{Disks, PassProgress, ReconFile};
use agreed::ReasonToWait;
use bucket::BucketWalk;
use lifecycle::{DayLength, LifecycleRules, text_of_pieces};
use listing_engine::{Broker, DeviceRoot, Error, Info, Kind, Location};
use parking_lot::Mutex;
use peer::message::header_names::X_VERSIONS_CONTAINER;
pub use remover::{HeldKeyLock, KeyLockRefusal, KeyLocks};
use remover::{Remover, RuledBucket};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use unlisted::UnlistedBuckets;
use vocabulary::names::RESERVED;
use vocabulary::{EntityPath, Partition, Policies};

const NAME: &str = "container-lifecycle";
/// Buckets that take turns, a step each: one that has much to do must not hold up others. Each of them has up to a page
/// of what is due in memory.
const MOST_BUCKETS: usize = 64;

/// What an operator can say, and who this server is.
#[derive(Debug, Clone)]
pub struct LifecycleOptions {
    /// Deletions at the same time.
    pub concurrency: usize,
    /// Rows of a page: what a step works on.
    pub page: usize,
    /// How long a day of the rules is.
    pub day: DayLength,
    /// How far the clocks of a bucket's servers may be from this machine's.
    pub max_clock_skew: Duration,
    /// Those that there are: without its policy nothing can be deleted in a bucket.
    pub policies: Policies,
    /// From one pass to the next.
    pub interval: Duration,
    /// In how many parts the work is divided; 0 for one.
    pub processes: u64,
    /// Which of them this is.
    pub process: u64,
    /// What hidden accounts begin with.
    pub hidden_prefix: String,
    /// How the ring names this server.
    pub here: LocalServer,
}

/// Goes over the container databases of all devices.
pub struct ContainerLifecycle {
    containers: RingClient,
    remover: Remover,
    options: LifecycleOptions,
    /// Which of a bucket's primaries works on it, as of the last look at the devices.
    turn: u64,
    /// When that began.
    looked: Duration,
    /// Looks at the devices in this pass.
    looks: u64,
    /// The buckets that are being walked over, and by which look they were found.
    walking: Mutex<HashMap<EntityPath, u64>>,
    /// What this pass has done.
    pass: LifecycleFigures,
    /// What the pass before has done.
    last_pass: LifecycleFigures,
    state: WalkState<Self>,
}

/// What the walk comes to: a database, then its bucket.
pub(crate) enum LifecycleItem {
    Found(Location),
    Walking(Box<BucketWalk>),
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LifecycleFigures {
    /// Buckets with rules that were walked over.
    pub(crate) buckets: u64,
    /// Rows that were judged.
    pub(crate) looked_at: u64,
    /// Current versions that were deleted, or hidden by a marker.
    pub(crate) expired: u64,
    /// Older versions that were deleted, markers among them.
    pub(crate) versions: u64,
    /// Delete markers with nothing behind them that were deleted.
    pub(crate) markers: u64,
    /// Uploads that were ended.
    pub(crate) uploads: u64,
    /// What was due, but is another version now.
    pub(crate) changed: u64,
    /// What was due, but must not be deleted: a lock holds it.
    pub(crate) held: u64,
    /// What was due, but could not be deleted; the next pass tries again.
    pub(crate) failed: u64,
}

impl LifecycleFigures {
    fn add(&mut self, more: Self) {
        self.buckets += more.buckets;
        self.looked_at += more.looked_at;
        self.expired += more.expired;
        self.versions += more.versions;
        self.markers += more.markers;
        self.uploads += more.uploads;
        self.changed += more.changed;
        self.held += more.held;
        self.failed += more.failed;
    }

    /// What went.
    fn done(&self) -> u64 {
        self.expired + self.versions + self.markers + self.uploads
    }
}

/// What is in a database, as far as rules go.
struct FoundBucket {
    info: Info,
    rules: LifecycleRules,
    stored: String,
    versions: Option<String>,
}

impl ContainerLifecycle {
    /// Deletes through `client`, whose gateway must keep versions as the clients' does; `locks` keep completions of
    /// uploads away.
    pub fn new(
        disks: Disks,
        containers: RingClient,
        client: InternalClient,
        locks: Arc<dyn KeyLocks>,
        options: LifecycleOptions,
    ) -> Self {
        let remover = Remover {
            world: disks.world().clone(),
            once: client.once(),
            client,
            containers: containers.clone(),
            locks,
            concurrency: options.concurrency.max(1),
            page: options.page.max(1),
            failures: Arc::new(PeerFailures::new(NAME)),
            unlisted: UnlistedBuckets::default(),
        };
        Self {
            containers,
            remover,
            options,
            turn: 0,
            looked: Duration::ZERO,
            looks: 0,
            walking: Mutex::default(),
            pass: LifecycleFigures::default(),
            last_pass: LifecycleFigures::default(),
            state: WalkState::new(NAME, disks),
        }
    }

    /// Begins a look at all devices: at the beginning of a pass, and where that takes long after each `interval`.
    async fn begin_look(&mut self) -> Vec<String> {
        let clock = &self.state.world().clock;
        let (now, elapsed) = (clock.now().seconds(), clock.elapsed());
        self.turn = now / self.options.interval.as_secs().max(1);
        self.looked = elapsed;
        self.looks += 1;
        self.state.disks.names().await
    }

    /// Begins with a bucket if it has rules, it is its turn here, and it is not under way.
    async fn look(&self, device: &OpenDevice, location: Location) -> Option<BucketWalk> {
        let found = device.run(move || look_into(location)).await??;
        let account = found.info.account.as_str();
        let container = found.info.container.clone()?;
        if account.starts_with(&self.options.hidden_prefix) || container.starts_with(RESERVED) {
            return None;
        }
        let path = EntityPath::account(account).with_container(container);
        let ring = self.containers.ring.load_full();
        let partition = self.containers.partition_of(&ring, &path);
        let primary = self.options.here.share_of(&ring, partition, &device.name)?;
        let process = WorkShare {
            number: self.options.process,
            of: self.options.processes,
        };
        if !primary.has(self.turn.into()) || !process.has_name(&path.path()) {
            return None;
        }
        match self.walking.lock().entry(path.clone()) {
            Entry::Vacant(entry) => entry.insert(self.looks),
            Entry::Occupied(_) => return None,
        };
        Some(BucketWalk::new(RuledBucket {
            path,
            rules: found.rules,
            stored: found.stored,
            versions: found.versions,
            policy: found.info.policy,
            now: self.state.world().clock.now().seconds(),
            day: self.options.day,
        }))
    }
}

/// The rules in a database, if it has any.
fn look_into(location: Location) -> Result<Option<FoundBucket>, Error> {
    let broker = match Broker::open(location) {
        Err(Error::NotFound { .. }) => return Ok(None),
        other => other?,
    };
    let metadata = broker.metadata()?;
    let value_of = |name: &str| {
        let item = metadata.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
        (!item.value.is_empty()).then_some(item.value.as_str())
    };
    let Some(text) = text_of_pieces(value_of) else {
        return Ok(None);
    };
    let (info, _) = broker.whole_info()?;
    if info.is_deleted() {
        return Ok(None);
    }
    match LifecycleRules::of_text(&text) {
        Ok(rules) => Ok(Some(FoundBucket {
            info,
            rules,
            stored: text,
            versions: value_of(X_VERSIONS_CONTAINER.as_str()).map(str::to_owned),
        })),
        Err(error) => {
            let container = info.container.as_deref().unwrap_or_default();
            tracing::error!(
                "{NAME}: {}/{container}: {error}; put them anew. Left alone",
                info.account
            );
            Ok(None)
        }
    }
}

keeps_walk!(ContainerLifecycle);

#[async_trait::async_trait]
impl WalkJob for ContainerLifecycle {
    type Device = OpenDevice;
    type Directory = Partition;
    type Item = LifecycleItem;
    type Outcome = LifecycleFigures;

    async fn begin(&mut self) -> Vec<String> {
        self.pass = LifecycleFigures::default();
        self.looks = 0;
        self.begin_look().await
    }

    async fn begin_again(&mut self) -> Option<Vec<String>> {
        let since = self.state.world().clock.elapsed().saturating_sub(self.looked);
        // Those that were found by the first look end some time, and with them the pass.
        let is_first_left = self.walking.lock().values().any(|look| *look == 1);
        if since < self.options.interval || !is_first_left {
            return None;
        }
        self.remover.failures.report();
        Some(self.begin_look().await)
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let partitions = |root: &DeviceRoot| Location::partitions(root, Kind::Container);
        OpenDevice::open_with(&mut self.state.disks, NAME, name, partitions).await
    }

    async fn list(&mut self, device: &OpenDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let in_partition = |root: &DeviceRoot, partition| Location::in_partition(root, Kind::Container, partition);
        let found = device.databases_in(partitions, in_partition).await;
        DirectoryContents::Items(found.into_iter().map(LifecycleItem::Found).collect())
    }

    fn unfinished_at_once(&self) -> usize {
        MOST_BUCKETS
    }

    async fn work(&self, device: &OpenDevice, item: LifecycleItem) -> WorkedItem<Self> {
        let (outcome, rest) = match item {
            LifecycleItem::Found(location) => {
                let mut walk = self.look(device, location).await.map(Box::new);
                let mut outcome = LifecycleFigures {
                    buckets: walk.is_some().into(),
                    ..LifecycleFigures::default()
                };
                let is_unknown = |bucket: &RuledBucket| self.options.policies.get(bucket.policy).is_none();
                if let Some(left) = walk.take_if(|walk| is_unknown(walk.bucket())) {
                    let bucket = left.bucket();
                    self.walking.lock().remove(&bucket.path);
                    outcome.add(left.leave(&self.remover, &ReasonToWait::Policy(bucket.policy)));
                }
                (outcome, walk)
            }
            LifecycleItem::Walking(mut walk) => {
                let (outcome, has_more) = match self.agreed_time(walk.bucket()).await {
                    Ok(now) => {
                        walk.judge_by(now);
                        walk.step(&self.remover).await
                    }
                    Err(why) => (walk.leave(&self.remover, &why), false),
                };
                if !has_more {
                    self.walking.lock().remove(&walk.bucket().path);
                }
                (outcome, has_more.then_some(walk))
            }
        };
        WorkedItem {
            outcome,
            rest: rest.map(LifecycleItem::Walking),
        }
    }

    fn count(&mut self, _: &OpenDevice, outcome: LifecycleFigures) -> ItemCount {
        self.pass.add(outcome);
        let statsd = &self.state.statsd;
        for (name, count) in [
            ("buckets", outcome.buckets),
            ("expired", outcome.expired),
            ("versions", outcome.versions),
            ("markers", outcome.markers),
            ("uploads", outcome.uploads),
            ("changed", outcome.changed),
            ("held", outcome.held),
            ("errors", outcome.failed),
        ] {
            if count > 0 {
                statsd.count(format_args!("{name}"), count);
            }
        }
        ItemCount::of(outcome.done(), outcome.failed)
    }

    async fn stepped(&mut self, _: Duration, is_last: bool) {
        if !is_last {
            return;
        }
        self.remover.failures.report();
        self.last_pass = self.pass;
        let figures = self.pass;
        if figures.buckets > 0 {
            tracing::info!(
                "{NAME}: {} buckets, {} rows: {} expired, {} older versions, {} markers and {} uploads deleted; \
                 {} changed meanwhile, {} held, {} failed",
                figures.buckets,
                figures.looked_at,
                figures.expired,
                figures.versions,
                figures.markers,
                figures.uploads,
                figures.changed,
                figures.held,
                figures.failed
            );
        }
    }

    fn pass_figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let figures = self.last_pass;
        let figures = json!({
            "container_lifecycle_pass": pass.seconds(),
            "container_lifecycle_last_pass": {
                "buckets": figures.buckets,
                "looked_at": figures.looked_at,
                "expired": figures.expired,
                "versions": figures.versions,
                "markers": figures.markers,
                "uploads": figures.uploads,
                "changed": figures.changed,
                "held": figures.held,
                "failed": figures.failed,
            },
        });
        Some((ReconFile::Container, figures))
    }
}
