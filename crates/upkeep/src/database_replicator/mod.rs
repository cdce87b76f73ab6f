//! Account- and container-replicator: all replicas of a database come to say the same.
//!
//! Every database of this server's devices is compared with its other replicas, which get what they lack
//! (`push.rs`); each replica does the same, so changes spread from wherever they happened. A database that
//! does not belong on its device goes to all who should have it and is then removed. Both kinds are one
//! replicator; containers differ in two duties: `misplaced.rs`, and shard ranges are carried along.
//! Always holds: what is removed here is unchanged since all primaries (or `handoff_delete` of them) have
//! said that they have it; a database that cannot be read is quarantined and comes back from another
//! replica; what nobody needs to remember any more is forgotten only after `reclaim_age`.
//! Each pass removes temporary files of the device whose writers are gone: of Martlet's databases at once, copies that
//! nobody claimed after an hour, anybody's after `reclaim_age`.
//! Synced containers are linked as such (`listing_engine`, `sync_links.rs`) when their metadata came from elsewhere.
//! Deliberately absent: acting on shard ranges.
//! Tests: `tests/database_replicator.rs`, and `tests/interop` with OpenStack's replicators on either side.

mod figures;
mod line;
mod misplaced;
mod push;

use crate::database_stamp::DatabaseStamp;
use crate::open_device::OpenDevice;
use crate::ring_client::RingClient;
use crate::rsync::Rsync;
use crate::{Disks, LocalServer, PassProgress, ReconFile, RsyncOptions, UpkeepJob, UpkeepStep};
use figures::Figures;
use futures_util::future::join_all;
use listing_engine::{Broker, Error, Kind, Location, ReplicationInfo, sweep, sweep_copies, sweep_forgotten};
use placement::{Device, Ring};
use push::{Push, Pushed};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{PathHash, Timestamp};
use world::World;

/// Partitions looked into in one step.
const PARTITIONS_PER_STEP: usize = 64;
/// Devices that stand in for those that are out of service, at most.
const STAND_INS: usize = 3;
/// How long a database that was sent here may wait for word of what to do with it.
const UNCLAIMED: Duration = Duration::from_secs(3600);

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct DatabaseReplicatorOptions {
    /// Databases worked on at the same time.
    pub concurrency: usize,
    /// Rows per request.
    pub per_diff: usize,
    /// Requests with rows per database, replica and pass.
    pub max_diffs: usize,
    /// How long deleted things are remembered.
    pub reclaim_age: Duration,
    /// Only databases that do not belong on their device.
    pub handoffs_only: bool,
    /// How many replicas must have a database before it is removed where it does not belong; `None` for all.
    pub handoff_delete: Option<usize>,
    /// How long a database that was level with all others and has not changed since is taken on trust. Zero
    /// where others may lose theirs without a word.
    pub trust: Duration,
    /// Only these partitions; all when empty.
    pub partitions: HashSet<u32>,
    /// How whole databases travel to those who want them by rsync.
    pub rsync: RsyncOptions,
}

/// What stays the same during all work.
struct Ground {
    name: &'static str,
    kind: Kind,
    world: World,
    ring_client: RingClient,
    options: DatabaseReplicatorOptions,
    rsync: Rsync,
}

/// A database that was found, and what it said of itself.
#[derive(Clone)]
struct Found {
    broker: Arc<Broker>,
    info: ReplicationInfo,
    state: &'static str,
}

/// Goes over the databases of one kind on this server's devices.
pub struct DatabaseReplicator {
    ground: Arc<Ground>,
    disks: Disks,
    server: LocalServer,
    /// `None` between passes.
    pass: Option<Pass>,
    figures: Figures,
    statsd: Statsd,
    began: Timestamp,
    /// Per device: databases that were found level.
    settled: HashMap<String, HashMap<PathHash, Settled>>,
}

/// A database that was level with all its replicas.
#[derive(Clone, Copy)]
struct Settled {
    stamp: u64,
    /// When it was compared.
    at: Duration,
}

/// What became of a database.
struct Outcome {
    figures: Figures,
    took: Duration,
    settled: Option<(PathHash, Settled)>,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    devices: VecDeque<String>,
    device: Option<Local>,
    partitions: VecDeque<u32>,
    databases: VecDeque<Location>,
    /// A device of this server has been met.
    met: bool,
    /// Becomes the device's entry in `settled`.
    seen: HashMap<PathHash, Settled>,
}

/// A device of this server, and who it is in the ring.
#[derive(Clone)]
struct Local {
    open: OpenDevice,
    id: u32,
    region: u32,
}

/// What a look at a database showed.
enum Look {
    /// There is none, or not any more.
    Nothing,
    /// As it was when it was level with all others.
    Settled,
    /// It was deleted long ago, and is gone now.
    Removed,
    Found(Box<Found>),
}

impl DatabaseReplicator {
    /// For databases of `kind`, whose ring `ring_client` has, on devices of `server`.
    pub fn new(
        kind: Kind,
        disks: Disks,
        ring_client: RingClient,
        server: LocalServer,
        options: DatabaseReplicatorOptions,
    ) -> Self {
        let name = match kind {
            Kind::Account => "account-replicator",
            Kind::Container => "container-replicator",
        };
        let ground = Ground {
            name,
            kind,
            world: disks.world().clone(),
            ring_client,
            rsync: Rsync::new(disks.world().clone(), options.rsync.clone(), options.concurrency),
            options,
        };
        Self {
            ground: Arc::new(ground),
            disks,
            server,
            pass: None,
            figures: Figures::default(),
            statsd: Statsd::default(),
            began: Timestamp::ZERO,
            settled: HashMap::new(),
        }
    }

    async fn begin(&mut self) -> Pass {
        self.figures = Figures::default();
        self.began = self.ground.world.clock.now();
        let mut devices = self.disks.names().await;
        world::random::shuffle(&*self.ground.world.random, &mut devices);
        Pass {
            devices: devices.into(),
            ..Pass::default()
        }
    }

    async fn open(&mut self, name: String, pass: &mut Pass) {
        let who = self.ground.name;
        let thread = match self.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!("{who}: device {name}: no thread: {error}"),
        };
        let open = OpenDevice { who, name, thread };
        let (server, ring, name) = (
            self.server.clone(),
            self.ground.ring_client.ring.load_full(),
            open.name.clone(),
        );
        let (root, kind) = (self.disks.root(&open.name), self.ground.kind);
        let (unclaimed, forgotten) = (
            self.ground.before(UNCLAIMED),
            self.ground.before(self.ground.options.reclaim_age),
        );
        let looked = open.run(move || {
            let Some(device) = server.device(&ring, &name) else {
                return Ok(None);
            };
            let swept = sweep(&root) + sweep_copies(&root, unclaimed) + sweep_forgotten(&root, forgotten);
            if swept > 0 {
                tracing::info!("{who}: device {name}: {swept} temporary files that nobody claimed removed");
            }
            let partitions = Location::partitions(&root, kind)?;
            Ok::<_, std::io::Error>(Some((device.id, device.region, partitions)))
        });
        let Some(Some((id, region, mut partitions))) = looked.await else {
            return;
        };
        pass.met = true;
        partitions.retain(|partition| self.is_wanted(id, *partition));
        world::random::shuffle(&*self.ground.world.random, &mut partitions);
        pass.partitions = partitions.into();
        pass.device = Some(Local { open, id, region });
    }

    fn is_wanted(&self, id: u32, partition: u32) -> bool {
        let options = &self.ground.options;
        let chosen = options.partitions.is_empty() || options.partitions.contains(&partition);
        let ring = self.ground.ring_client.ring.load();
        chosen && !(options.handoffs_only && is_primary(&ring, partition, id))
    }

    /// Looks into partitions until there is enough to do, and removes what is empty there.
    async fn list(&self, local: &Local, pass: &mut Pass) {
        let count = PARTITIONS_PER_STEP.min(pass.partitions.len());
        let partitions: Vec<u32> = pass.partitions.drain(..count).collect();
        let (root, kind) = (self.disks.root(&local.open.name), self.ground.kind);
        let listed = local.open.run(move || {
            let mut found = vec![];
            for partition in partitions {
                let databases = Location::in_partition(&root, kind, partition)?;
                if databases.is_empty() {
                    Location::tidy_partition(&root, kind, partition);
                }
                found.extend(databases);
            }
            Ok::<_, std::io::Error>(found)
        });
        pass.databases = listed.await.unwrap_or_default().into();
    }

    async fn work(&mut self, local: &Local, pass: &mut Pass) -> UpkeepStep {
        let count = self.ground.options.concurrency.max(1).min(pass.databases.len());
        let batch: Vec<Location> = pass.databases.drain(..count).collect();
        let known = self.settled.get(&local.open.name);
        let attend = |location: Location| {
            let settled = known.and_then(|known| known.get(&location.hash())).copied();
            self.ground.attend(local, location, settled)
        };
        let all = join_all(batch.into_iter().map(attend)).await;
        let (mut done, mut failed) = (0, 0);
        for Outcome { figures, took, settled } in all {
            pass.seen.extend(settled);
            figures.tell(&self.statsd, &local.open.name, took);
            let well = figures.left == 0;
            let anything = figures != Figures::default();
            done += u64::from(anything && well);
            failed += u64::from(!well);
            self.figures.add(figures);
        }
        UpkeepStep::Did { done, failed }
    }
}

fn is_primary(ring: &Ring, partition: u32, id: u32) -> bool {
    partition < ring.partition_count() && ring.primaries(partition).iter().any(|device| device.id == id)
}

impl Ground {
    fn since(&self, began: Duration) -> Duration {
        self.world.clock.elapsed().saturating_sub(began)
    }

    /// So long ago.
    fn before(&self, age: Duration) -> Timestamp {
        let now = self.world.clock.now().seconds();
        Timestamp::from_seconds(now.saturating_sub(age.as_secs()))
    }

    async fn attend(&self, local: &Local, location: Location, known: Option<Settled>) -> Outcome {
        let (hash, partition) = (location.hash(), location.partition());
        let began = self.world.clock.elapsed();
        let ages = self.ages();
        let (world, trust) = (self.world.clone(), self.options.trust);
        let looked = local.open.run(move || {
            let stamp = DatabaseStamp::of(&world, &location);
            let trusted = known.filter(|known| began.saturating_sub(known.at) < trust);
            match (stamp, trusted) {
                (Some(stamp), Some(known)) if stamp.value == known.stamp => Ok((None, Look::Settled)),
                _ => Ok::<_, Error>((stamp, look(location, ages)?)),
            }
        });
        let figures = match looked.await {
            None => self.unreadable(partition),
            Some((_, Look::Nothing)) => Figures::default(),
            Some((_, Look::Settled)) => {
                return Outcome {
                    figures: Figures::default(),
                    took: Duration::ZERO,
                    settled: known.map(|known| (hash, known)),
                };
            }
            Some((_, Look::Removed)) => Figures {
                attempted: 1,
                remove: 1,
                ..Figures::default()
            },
            Some((stamp, Look::Found(found))) => {
                let (figures, at_home) = self.replicate(local, *found).await;
                let stamp = stamp.and_then(DatabaseStamp::trusted);
                let stamp = stamp.filter(|_| at_home && figures.changed_nothing());
                let settled = stamp.map(|stamp| (hash, Settled { stamp, at: began }));
                return Outcome {
                    figures,
                    took: self.since(began),
                    settled,
                };
            }
        };
        Outcome {
            figures,
            took: self.since(began),
            settled: None,
        }
    }

    /// Of a database that cannot be read: nobody has been brought anything of it.
    fn unreadable(&self, partition: u32) -> Figures {
        let ring = self.ring_client.ring.load_full();
        let mut figures = Figures {
            attempted: 1,
            left: 1,
            failure: 1,
            ..Figures::default()
        };
        if partition < ring.partition_count() {
            ring.primaries(partition)
                .into_iter()
                .for_each(|node| figures.lacks(node));
        }
        figures
    }

    /// Since when deleted things, and replicas that have not been heard of, are remembered.
    fn ages(&self) -> (Timestamp, Timestamp) {
        let now = self.world.clock.now();
        let micros = |age: Duration| u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let ago = |age: Duration| Timestamp::from_micros(as_micros(now).saturating_sub(micros(age)));
        let age = self.options.reclaim_age;
        (ago(age), ago(age.saturating_mul(2)))
    }

    /// Also whether it belongs where it is.
    async fn replicate(&self, local: &Local, found: Found) -> (Figures, bool) {
        let ring = self.ring_client.ring.load_full();
        let info = &found.info.info;
        let hash = match &info.container {
            None => self.ring_client.hash.account(&info.account),
            Some(container) => self.ring_client.hash.container(&info.account, container),
        };
        let (partition, lies_in) = (ring.partition_of(&hash.0), found.broker.location().partition());
        if partition != lies_in {
            let file = found.broker.location().db_file();
            tracing::error!(
                "{}: found {} when it should be on partition {partition}; will replicate out and remove",
                self.name,
                file.display()
            );
        }
        let primaries = ring.primaries(partition);
        let at_home = partition == lies_in && primaries.iter().any(|device| device.id == local.id);
        let mut push = Push {
            ground: self,
            device: &local.open,
            region: Some(local.region),
            partition,
            found,
            overtaken: false,
            figures: Figures {
                attempted: 1,
                ..Figures::default()
            },
        };
        let others = others(&primaries, local.id, partition == lies_in);
        let (reached, all) = push_to_all(&mut push, &ring, partition, &others, local.id).await;
        let level = (reached + usize::from(at_home)) * 2 > primaries.len();
        misplaced::enqueue(self, &local.open, &push.found, level).await;
        let broker = push.found.broker.clone();
        // What fails has been logged.
        let _ = local.open.run(move || broker.keep_sync_link()).await;
        let enough = match self.options.handoff_delete {
            Some(count) => reached >= count,
            None => reached == all && all > 0,
        };
        if !at_home && enough && !push.overtaken {
            let (broker, seen) = (push.found.broker.clone(), push.found.info.summary.clone());
            let removed = local.open.run(move || broker.remove_if_unchanged(&seen)).await;
            push.figures.remove += u64::from(removed == Some(true));
        }
        let mut figures = push.figures;
        figures.success += reached as u64;
        figures.failure += (all - reached) as u64;
        figures.left += u64::from(reached < all);
        (figures, at_home)
    }
}

/// Whom a replica is to be brought to: all other primaries, those behind it in the ring's order first, so
/// that replicas that begin at the same time do not all begin with the same one.
fn others<'r>(primaries: &[&'r Device], id: u32, right_partition: bool) -> Vec<&'r Device> {
    match primaries.iter().position(|device| device.id == id) {
        Some(at) if right_partition => primaries[at + 1..].iter().chain(&primaries[..at]).copied().collect(),
        _ => primaries.to_vec(),
    }
}

/// How many of how many have it now.
async fn push_to_all(push: &mut Push<'_>, ring: &Ring, partition: u32, others: &[&Device], own: u32) -> (usize, usize) {
    let mut stand_ins = ring
        .handoffs(partition)
        .filter(|device| device.id != own)
        .take(STAND_INS);
    let mut waiting: VecDeque<&Device> = others.iter().copied().collect();
    let (mut reached, mut asked) = (0, 0);
    while let Some(node) = waiting.pop_front() {
        asked += 1;
        match push.to(node).await {
            Pushed::Done => reached += 1,
            Pushed::Failed => {}
            Pushed::NoDevice => waiting.extend(stand_ins.next()),
        }
    }
    (reached, asked)
}

fn as_micros(time: Timestamp) -> u64 {
    time.ticks().saturating_mul(10)
}

/// Forgets what is old, and says what there is.
fn look(location: Location, (before, silent): (Timestamp, Timestamp)) -> Result<Look, Error> {
    let found = match open(location.clone(), before, silent) {
        // Gone meanwhile, or a directory without a database (yet).
        Err(Error::NotFound { .. }) => return location.remove_if_unmade().map(|_| Look::Nothing),
        other => other?,
    };
    let info = &found.info.info;
    let told = info.container.is_none()
        || (
            info.put_timestamp,
            info.delete_timestamp,
            info.object_count,
            info.bytes_used,
        ) == (
            info.reported_put_timestamp,
            info.reported_delete_timestamp,
            info.reported_object_count,
            info.reported_bytes_used,
        );
    let forgotten = info.is_deleted() && info.delete_timestamp < before && found.broker.is_empty()?;
    match forgotten && found.state == "unsharded" {
        true if told && found.broker.remove_if_unchanged(&found.info.summary)? => Ok(Look::Removed),
        // Its account must know first; nobody else needs to.
        true => Ok(Look::Nothing),
        false => Ok(Look::Found(Box::new(found))),
    }
}

fn open(location: Location, before: Timestamp, silent: Timestamp) -> Result<Found, Error> {
    let broker = Broker::open(location)?;
    broker.reclaim(before, silent)?;
    Ok(Found {
        info: broker.replication_info()?,
        state: broker.sharding_state()?,
        broker: Arc::new(broker),
    })
}

#[async_trait::async_trait]
impl UpkeepJob for DatabaseReplicator {
    fn name(&self) -> &'static str {
        self.ground.name
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin().await,
        };
        let step = match pass.device.clone() {
            Some(local) if !pass.databases.is_empty() => self.work(&local, &mut pass).await,
            Some(local) if !pass.partitions.is_empty() => {
                self.list(&local, &mut pass).await;
                UpkeepStep::LOOKED
            }
            _ => {
                // Nothing is kept of databases that are gone.
                if let Some(local) = pass.device.take() {
                    self.settled.insert(local.open.name, std::mem::take(&mut pass.seen));
                }
                let Some(next) = pass.devices.pop_front() else {
                    if !pass.met {
                        let LocalServer { addresses, port } = &self.server;
                        tracing::error!(
                            "{}: no device in the ring is at {addresses:?}, port {port}",
                            self.ground.name
                        );
                    }
                    return UpkeepStep::PassOver;
                };
                self.open(next, &mut pass).await;
                UpkeepStep::LOOKED
            }
        };
        self.pass = Some(pass);
        step
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let cache = match self.ground.kind {
            Kind::Account => ReconFile::Account,
            Kind::Container => ReconFile::Container,
        };
        Some((cache, self.figures.to_recon(self.began, pass.seconds())))
    }
}
