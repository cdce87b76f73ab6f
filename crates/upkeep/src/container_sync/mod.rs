//! Container-sync: containers that are kept equal to others elsewhere.
//!
//! A container whose metadata names another one sends it every row: new ones are divided among its servers
//! by a hash, and later every server makes sure of all of them. Two points in its database say how far it
//! has got: up to the first all servers have done their share, up to the second everything is there.
//! Found are containers by their links in `sync_containers`, which the container server and the replicator keep.
//! Always holds: a point is moved only behind rows that have been dealt with as it says, the second one
//! never over a row that has failed; a container takes no longer than its share of time in a pass, of which what was
//! sent before leaves half to what is new and is gone on with in the next pass where it was left, and those of a
//! cluster that does not answer hold up the others a few times a minute.
//! Deliberately absent: the receiving side (`features`), and TLS.
//! Tests: beside the code, `tests/interop/test_container_sync_sender.py`.

mod broken_off;
mod row;
mod silence;
mod target;

use crate::Disks;
use crate::internal_client::InternalClient;
use crate::local_server::LocalServer;
use crate::open_device::OpenDevice;
use crate::peer_failures::PeerFailures;
use crate::ring_client::RingClient;
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::work_share::WorkShare;
use broken_off::BrokenOff;
use futures_util::future::join_all;
use listing_engine::{Broker, Error, Info, Location, ObjectRow, Row, is_sharded};
use peer::Timeouts;
use peer::message::header_names::X_VERSIONS_CONTAINER;
use row::Carrier;
use silence::SilentClusters;
use std::sync::Arc;
use std::time::Duration;
use target::SyncTarget;
pub use target::{HttpProxy, SyncPeers, SyncRealm};
use vocabulary::{EntityPath, Partition};

const NAME: &str = "container-sync";
const SYNC_TO: &str = "X-Container-Sync-To";
const SYNC_KEY: &str = "X-Container-Sync-Key";

/// What an operator can say.
#[derive(Clone)]
pub struct SyncOptions {
    /// How long a container may take in a pass.
    pub container_time: Duration,
    /// Rows at the same time.
    pub concurrency: usize,
    /// The peers that containers may be synced to; asked for each container, since they may change.
    pub peers: Arc<dyn Fn() -> SyncPeers + Send + Sync>,
    /// HTTP proxies on the way to the other side, each request through one of them; none for the straight way.
    pub proxies: Vec<HttpProxy>,
    /// How the ring names this server.
    pub here: LocalServer,
    /// How long to wait for the other side.
    pub timeouts: Timeouts,
}

/// Goes over the synced containers of all devices.
pub struct ContainerSyncDaemon {
    containers: RingClient,
    carrier: Carrier,
    options: SyncOptions,
    broken_off: BrokenOff,
    state: WalkState<Self>,
}

/// What the walk comes to: a synced container, and how far it has got.
pub(crate) enum SyncItem {
    Found(Location),
    Syncing(Box<SyncTask>),
}

/// A container that is being synced.
pub(crate) struct SyncTask {
    broker: Arc<Broker>,
    info: Info,
    path: EntityPath,
    target: SyncTarget,
    /// What falls to this one of the container's servers.
    share: WorkShare,
    began: Duration,
    /// Rows up to here are made sure of.
    second: i64,
    /// Nothing up to here has failed; behind it something has.
    failed_behind: Option<i64>,
    /// Rows up to here have been sent by those whose share they were, when this pass began.
    first: i64,
    /// Where this pass reads on.
    cursor: i64,
}

impl ContainerSyncDaemon {
    /// Reads objects through `client`, which must not compose what it reads.
    pub fn new(disks: Disks, containers: RingClient, client: InternalClient, options: SyncOptions) -> Self {
        let carrier = Carrier {
            world: disks.world().clone(),
            client,
            peers: containers.peers.clone(),
            proxies: options.proxies.clone(),
            timeouts: options.timeouts,
            failures: Arc::new(PeerFailures::new(NAME)),
            silent: SilentClusters::default(),
        };
        Self {
            containers,
            carrier,
            options,
            broken_off: BrokenOff::default(),
            state: WalkState::new(NAME, disks),
        }
    }

    /// Begins with a container if it is synced, and from here.
    async fn look(&self, device: &OpenDevice, location: Location) -> Option<SyncTask> {
        let Some((broker, info, to, key)) = device.run(move || look_into(location)).await? else {
            self.state.statsd.increment("skips");
            return None;
        };
        let container = info.container.clone()?;
        let path = EntityPath::account(info.account.as_str()).with_container(container.as_str());
        let ring = self.containers.ring.load_full();
        let partition = self.containers.partition_of(&ring, &path);
        let share = self.options.here.share_of(&ring, partition, &device.name)?;
        let target = (self.options.peers)().resolve(&to, &key);
        let target = target
            .inspect_err(|why| {
                let why = format_args!("{why}; not synced");
                self.carrier.failures.note_item(path.path(), why);
                self.state.statsd.increment("failures");
            })
            .ok()?;
        let (second, first) = (info.sync_point2, info.sync_point1);
        let left_at = self.broken_off.take(&info.id).filter(|at| (second..first).contains(at));
        Some(SyncTask {
            share,
            began: self.state.world().clock.elapsed(),
            second,
            // What was passed over then stays to be made sure of.
            failed_behind: left_at.map(|_| second),
            first,
            cursor: left_at.unwrap_or(second),
            broker: Arc::new(broker),
            info,
            path,
            target,
        })
    }

    /// Sends some rows; `false` when there are no more, or no time.
    async fn sync(&self, device: &OpenDevice, task: &mut SyncTask) -> (ItemCount, bool) {
        let used = self.state.world().clock.elapsed().saturating_sub(task.began);
        if used >= self.options.container_time {
            self.break_off(task);
            return (ItemCount::default(), false);
        }
        if self.carrier.is_silent(&task.target) {
            // It may be one row that is not answered: the next pass begins behind it.
            self.break_off(task);
            let why = "not synced: no answer came in time a moment ago; left alone for a minute".to_owned();
            let place = task.target.place();
            self.carrier.failures.note_at(place, task.path.path(), why);
            return (ItemCount::default(), false);
        }
        let is_time_for_newer = task.cursor < task.first && used >= self.options.container_time / 2;
        if is_time_for_newer && self.has_newer(device, task).await {
            // The next pass makes sure of the rest.
            self.break_off(task);
            task.cursor = task.first;
        }
        let (broker, cursor, count) = (task.broker.clone(), task.cursor, self.options.concurrency.max(1));
        let Some(rows) = device.run(move || broker.rows_since(cursor, count)).await else {
            return (ItemCount::default(), false);
        };
        let again = task.cursor < task.first;
        let mut batch: Vec<(i64, ObjectRow)> = vec![];
        for numbered in rows {
            if let Row::Object(row) = numbered.row
                && !(again && numbered.id > task.first)
            {
                batch.push((numbered.id, row));
            }
        }
        let Some(last) = batch.last().map(|(id, _)| *id) else {
            // Everything that was sent before has been made sure of: on to what is new.
            let more = again;
            if again {
                task.cursor = task.first;
                task.second = task.failed_behind.unwrap_or(task.first);
                self.save_points(device, task).await;
            }
            return (ItemCount::default(), more);
        };
        let mine = batch.into_iter().filter(|(_, row)| again || self.is_mine(task, row));
        let (carrier, statsd, info) = (&self.carrier, &self.state.statsd, &task.info);
        let (target, path) = (&task.target, &task.path);
        let carried = mine.map(|(id, row)| async move {
            let is_done = carrier.carry(statsd, target, path, info.policy, &row).await;
            (id, is_done)
        });
        let carried: Vec<(i64, bool)> = join_all(carried).await;
        let failures = carried.iter().filter(|(_, done)| !done).map(|(id, _)| *id);
        let (failed, first_failure) = (failures.clone().count() as u64, failures.min());
        if again {
            let behind = first_failure.map(|id| id - 1);
            task.failed_behind = task.failed_behind.or(behind);
            task.second = task.failed_behind.unwrap_or(last);
        } else {
            task.first = last;
        }
        task.cursor = last;
        self.save_points(device, task).await;
        let done = carried.len() as u64 - failed;
        (ItemCount::of(done, failed), true)
    }

    /// Remembers where the rows are gone on with that were sent before: rows that fail time and again would else hold
    /// up those behind them for good.
    fn break_off(&self, task: &SyncTask) {
        if task.cursor < task.first && task.failed_behind.is_some() {
            self.broken_off.note(&task.info.id, task.cursor);
        }
    }

    /// Whether there are rows that have not been sent at all.
    async fn has_newer(&self, device: &OpenDevice, task: &SyncTask) -> bool {
        let (broker, first) = (task.broker.clone(), task.first);
        let newer = device.run(move || broker.rows_since(first, 1)).await;
        newer.is_some_and(|rows| !rows.is_empty())
    }

    fn is_mine(&self, task: &SyncTask, row: &ObjectRow) -> bool {
        let container = task.path.container.as_deref().unwrap_or_default();
        let hash = self.containers.hash.object(&task.path.account, container, &row.name);
        let [a, b, c, d, ..] = hash.0;
        task.share.has(u32::from_be_bytes([a, b, c, d]).into())
    }

    async fn save_points(&self, device: &OpenDevice, task: &SyncTask) {
        let (broker, first, second) = (task.broker.clone(), task.first, task.second);
        // What fails has been logged; the rows are sent again then.
        device.run(move || broker.set_sync_points(first, second)).await;
    }
}

/// The database, and where and with which key it is synced, if it is.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
fn look_into(location: Location) -> Result<Option<(Broker, Info, String, String)>, Error> {
    let broker = match Broker::open(location.clone()) {
        // It went, and its link stayed.
        Err(Error::NotFound { .. }) => return location.drop_sync_link().map(|()| None),
        other => other?,
    };
    let metadata = broker.metadata()?;
    let value_of = |name: &str| {
        let item = metadata.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
        (!item.value.is_empty()).then(|| item.value.clone())
    };
    let (Some(to), Some(key)) = (value_of(SYNC_TO), value_of(SYNC_KEY)) else {
        return Ok(None);
    };
    let (info, state) = broker.whole_info()?;
    if value_of(X_VERSIONS_CONTAINER.as_str()).is_some() {
        let container = info.container.as_deref().unwrap_or_default();
        tracing::warn!(
            "{NAME}: Skipping container {}/{container} with object versioning configured",
            info.account
        );
        return Ok(None);
    }
    match info.is_deleted() || is_sharded(state) {
        true => Ok(None),
        false => Ok(Some((broker, info, to, key))),
    }
}

keeps_walk!(ContainerSyncDaemon);

#[async_trait::async_trait]
impl WalkJob for ContainerSyncDaemon {
    type Device = OpenDevice;
    /// A partition with synced containers.
    type Directory = Partition;
    type Item = SyncItem;
    type Outcome = ItemCount;

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        OpenDevice::open_with(&mut self.state.disks, NAME, name, Location::synced_partitions).await
    }

    async fn list(&mut self, device: &OpenDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let found = device.databases_in(partitions, Location::synced_in_partition).await;
        DirectoryContents::Items(found.into_iter().map(SyncItem::Found).collect())
    }

    async fn stepped(&mut self, _: Duration, is_last: bool) {
        if is_last {
            self.carrier.failures.report();
        }
    }

    async fn work(&self, device: &OpenDevice, item: SyncItem) -> WorkedItem<Self> {
        let (outcome, rest) = match item {
            SyncItem::Found(location) => (ItemCount::default(), self.look(device, location).await.map(Box::new)),
            SyncItem::Syncing(mut task) => {
                let (counted, more) = self.sync(device, &mut task).await;
                if !more {
                    self.state.statsd.increment("syncs");
                }
                (counted, more.then_some(task))
            }
        };
        WorkedItem {
            outcome,
            rest: rest.map(SyncItem::Syncing),
        }
    }

    fn count(&mut self, _: &OpenDevice, counted: ItemCount) -> ItemCount {
        counted
    }
}
