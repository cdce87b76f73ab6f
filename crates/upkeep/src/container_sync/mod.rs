//! Container-sync: containers that are kept equal to others elsewhere.
//!
//! A container whose metadata names another one sends it every row: new ones are divided among its servers
//! by a hash, and later every server makes sure of all of them. Two points in its database say how far it
//! has got: up to the first all servers have done their share, up to the second everything is there.
//! Found are containers by their links in `sync_containers`, which the container server and the replicator keep.
//! Always holds: a point is moved only behind rows that have been dealt with as it says, the second one
//! never over a row that has failed; a container takes no longer than its share of time in a pass.
//! Deliberately absent: the receiving side (`features`), and TLS.
//! Tests: beside the code, `tests/interop/test_container_sync_sender.py`.

mod row;
mod target;

use crate::internal_client::InternalClient;
use crate::local_server::LocalServer;
use crate::ring_client::RingClient;
use crate::{Disks, UpkeepJob, UpkeepStep};
use futures_util::future::join_all;
use listing_engine::{Broker, Error, Info, Location, ObjectRow, Row};
use peer::Timeouts;
use row::Carrier;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use target::Target;
pub use target::{HttpProxy, SyncPeers, SyncRealm};
use telemetry::Statsd;
use vocabulary::EntityPath;
use world::Workers;

const NAME: &str = "container-sync";
const SYNC_TO: &str = "X-Container-Sync-To";
const SYNC_KEY: &str = "X-Container-Sync-Key";
/// Names the hidden container of one that keeps versions.
const VERSIONS: &str = "X-Container-Sysmeta-Versions-Container";

/// What an operator can say.
#[derive(Clone)]
pub struct SyncOptions {
    /// How long a container may take in a pass.
    pub container_time: Duration,
    /// Rows at the same time.
    pub concurrency: usize,
    /// Says whom containers may be synced to; asked for each container, since that may change.
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
    disks: Disks,
    containers: RingClient,
    carrier: Carrier,
    options: SyncOptions,
    statsd: Statsd,
    pass: Option<Pass>,
}

#[derive(Default)]
struct Pass {
    devices: VecDeque<String>,
    device: Option<(String, Arc<Workers>)>,
    partitions: VecDeque<u32>,
    databases: VecDeque<Location>,
    task: Option<SyncTask>,
}

/// A container that is being synced.
struct SyncTask {
    broker: Arc<Broker>,
    info: Info,
    path: EntityPath,
    target: Target,
    /// Which of the container's servers this is, and of how many.
    share: (usize, usize),
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
            statsd: Statsd::default(),
        };
        Self {
            disks,
            containers,
            carrier,
            options,
            statsd: Statsd::default(),
            pass: None,
        }
    }

    async fn open(&mut self, name: String, pass: &mut Pass) {
        let thread = match self.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!("{NAME}: device {name}: no thread: {error}"),
        };
        let root = self.disks.root(&name);
        let listed = run(&thread, &name, move || Location::synced_partitions(&root)).await;
        pass.partitions = listed.unwrap_or_default().into();
        pass.device = Some((name, thread));
    }

    /// The databases of the next partitions, until some are found.
    async fn list(&self, name: &str, thread: &Arc<Workers>, pass: &mut Pass) {
        while let Some(partition) = pass.partitions.pop_front() {
            let root = self.disks.root(name);
            let listed = run(thread, name, move || Location::synced_in_partition(&root, partition)).await;
            if let Some(databases) = listed
                && !databases.is_empty()
            {
                pass.databases = databases.into();
                return;
            }
        }
    }

    /// Begins with a container if it is synced, and from here.
    async fn look(&self, name: &str, thread: &Arc<Workers>, location: Location) -> Option<SyncTask> {
        let Some((broker, info, to, key)) = run(thread, name, move || look_into(location)).await? else {
            self.statsd.increment("skips");
            return None;
        };
        let container = info.container.clone()?;
        let path = EntityPath::account(info.account.as_str()).with_container(container.as_str());
        let ring = self.containers.ring.load_full();
        let partition = ring.partition_of(&self.containers.hash.container(&info.account, &container).0);
        let primaries = ring.primaries(partition);
        let number = primaries
            .iter()
            .position(|device| device.device == name && self.options.here.serves(device))?;
        let target = (self.options.peers)().resolve(&to, &key);
        let target = target
            .inspect_err(|why| {
                tracing::error!("{NAME}: {}: {why}; not synced", path.path());
                self.statsd.increment("failures");
            })
            .ok()?;
        Some(SyncTask {
            share: (number, primaries.len()),
            began: self.disks.world().clock.elapsed(),
            second: info.sync_point2,
            failed_behind: None,
            first: info.sync_point1,
            cursor: info.sync_point2,
            broker: Arc::new(broker),
            info,
            path,
            target,
        })
    }

    /// Sends some rows; `false` when there are no more, or no time.
    async fn sync(&self, name: &str, thread: &Arc<Workers>, task: &mut SyncTask) -> (UpkeepStep, bool) {
        let used = self.disks.world().clock.elapsed().saturating_sub(task.began);
        if used >= self.options.container_time {
            return (UpkeepStep::LOOKED, false);
        }
        let (broker, cursor, count) = (task.broker.clone(), task.cursor, self.options.concurrency.max(1));
        let Some(rows) = run(thread, name, move || broker.rows_since(cursor, count)).await else {
            return (UpkeepStep::LOOKED, false);
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
                self.note(name, thread, task).await;
            }
            return (UpkeepStep::LOOKED, more);
        };
        let mine = batch.into_iter().filter(|(_, row)| again || self.is_mine(task, row));
        let (carrier, target, path, policy) = (&self.carrier, &task.target, &task.path, task.info.policy);
        let carried = mine.map(|(id, row)| async move { (id, carrier.carry(target, path, policy, &row).await) });
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
        self.note(name, thread, task).await;
        let done = carried.len() as u64 - failed;
        (UpkeepStep::Did { done, failed }, true)
    }

    fn is_mine(&self, task: &SyncTask, row: &ObjectRow) -> bool {
        let container = task.path.container.as_deref().unwrap_or_default();
        let hash = self.containers.hash.object(&task.path.account, container, &row.name);
        let [a, b, c, d, ..] = hash.0;
        let (number, of) = task.share;
        u32::from_be_bytes([a, b, c, d]) as usize % of.max(1) == number
    }

    async fn note(&self, name: &str, thread: &Arc<Workers>, task: &SyncTask) {
        let (broker, first, second) = (task.broker.clone(), task.first, task.second);
        run(thread, name, move || broker.set_sync_points(first, second)).await;
    }
}

/// Runs `job` on the device's thread. What fails is logged.
async fn run<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
    thread: &Arc<Workers>,
    device: &str,
    job: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Option<T> {
    let said = match thread.run(job).await {
        Ok(Ok(done)) => return Some(done),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!("{NAME}: device {device}: {said}");
    None
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
    let said = |name: &str| {
        let item = metadata.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
        (!item.value.is_empty()).then(|| item.value.clone())
    };
    let (Some(to), Some(key)) = (said(SYNC_TO), said(SYNC_KEY)) else {
        return Ok(None);
    };
    let info = broker.info()?;
    if said(VERSIONS).is_some() {
        let container = info.container.as_deref().unwrap_or_default();
        tracing::warn!(
            "{NAME}: Skipping container {}/{container} with object versioning configured",
            info.account
        );
        return Ok(None);
    }
    match info.is_deleted() || broker.sharding_state()? != "unsharded" {
        true => Ok(None),
        false => Ok(Some((broker, info, to, key))),
    }
}

#[async_trait::async_trait]
impl UpkeepJob for ContainerSyncDaemon {
    fn name(&self) -> &'static str {
        NAME
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.carrier.statsd = statsd.clone();
        self.statsd = statsd;
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => Pass {
                devices: self.disks.names().await.into(),
                ..Pass::default()
            },
        };
        let mut step = UpkeepStep::LOOKED;
        match (pass.device.clone(), pass.task.take()) {
            (Some((name, thread)), Some(mut task)) => {
                let (did, more) = self.sync(&name, &thread, &mut task).await;
                step = did;
                if !more {
                    self.statsd.increment("syncs");
                }
                pass.task = more.then_some(task);
            }
            (Some((name, thread)), None) if !pass.databases.is_empty() => {
                if let Some(location) = pass.databases.pop_front() {
                    pass.task = self.look(&name, &thread, location).await;
                }
            }
            (Some((name, thread)), None) if !pass.partitions.is_empty() => self.list(&name, &thread, &mut pass).await,
            _ => {
                let Some(next) = pass.devices.pop_front() else {
                    return UpkeepStep::PassOver;
                };
                pass.device = None;
                self.open(next, &mut pass).await;
            }
        }
        self.pass = Some(pass);
        step
    }
}
