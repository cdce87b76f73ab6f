//! Account- and container-replicator: all replicas of a database come to say the same.
//!
//! Every database of this server's devices is compared with its other replicas, which get what they lack
//! (`push.rs`); each replica does the same, so changes spread from wherever they happened. A database that
//! does not belong on its device goes to all devices that should have it and is then removed. Both kinds are one
//! replicator; containers differ in two duties: `misplaced.rs`, and shard ranges are carried along.
//! Always holds: what is removed here is unchanged since all primaries (or `handoff_delete` of them) have
//! said that they have it; a database that cannot be read is quarantined and comes back from another
//! replica; deleted things are forgotten only after `reclaim_age`.
//! Each pass removes temporary files of the device whose writers are gone: of Martlet's databases at once, unclaimed
//! copies after an hour, any others after `reclaim_age`.
//! Synced containers are linked as such (`listing_engine`, `sync_links.rs`) when their metadata came from elsewhere.
//! Deliberately absent: acting on shard ranges.
//! Tests: `tests/database_replicator.rs`, and `tests/interop` with OpenStack's replicators on either side.

mod context;
mod database;
mod figures;
mod misplaced;
mod push;
mod replica_client;

use crate::database_stamp::KnownDatabases;
use crate::local_server::is_primary;
use crate::open_device::OpenDevice;
use crate::peer_failures::PeerFailures;
use crate::ring_client::RingClient;
use crate::rsync::DatabaseRsync;
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::{Disks, LocalServer, PassProgress, ReconFile, RsyncOptions};
use context::Context;
use database::{DatabaseOutcome, LevelDatabase, ReplicatedDevice};
use figures::Figures;
use listing_engine::{Kind, Location, sweep, sweep_copies, sweep_forgotten};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{Partition, Timestamp};

/// Partitions looked into in one step.
const PARTITIONS_PER_STEP: usize = 64;
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
    pub partitions: HashSet<Partition>,
    /// How whole databases travel to those who want them by rsync.
    pub rsync: RsyncOptions,
}

/// Goes over the databases of one kind on this server's devices.
pub struct DatabaseReplicator {
    context: Arc<Context>,
    server: LocalServer,
    state: WalkState<Self>,
    /// This pass has met a device of this server.
    met: bool,
    figures: Figures,
    began: Timestamp,
    /// Databases that were found level.
    level: KnownDatabases<LevelDatabase>,
}

impl DatabaseReplicator {
    /// For databases of `kind`, whose ring `ring_client` has, on the devices of `server`.
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
        let context = Context {
            name,
            kind,
            world: disks.world().clone(),
            ring_client,
            rsync: DatabaseRsync::new(disks.world().clone(), options.rsync.clone(), options.concurrency),
            options,
            peer_failures: PeerFailures::new(name),
        };
        Self {
            context: Arc::new(context),
            server,
            state: WalkState::new(name, disks),
            met: false,
            figures: Figures::default(),
            began: Timestamp::ZERO,
            level: KnownDatabases::default(),
        }
    }

    fn is_wanted(&self, id: u32, partition: Partition) -> bool {
        let options = &self.context.options;
        let chosen = options.partitions.is_empty() || options.partitions.contains(&partition);
        let ring = self.context.ring_client.ring.load();
        chosen && !(options.handoffs_only && is_primary(&ring, partition, id))
    }
}

keeps_walk!(DatabaseReplicator);

#[async_trait::async_trait]
impl WalkJob for DatabaseReplicator {
    type Device = ReplicatedDevice;
    /// A partition.
    type Directory = Partition;
    type Item = Location;
    type Outcome = DatabaseOutcome;

    async fn begin(&mut self) -> Vec<String> {
        self.figures = Figures::default();
        self.began = self.context.world.clock.now();
        self.met = false;
        let mut devices = self.state.disks.names().await;
        world::random::shuffle(&*self.context.world.random, &mut devices);
        devices
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let daemon = self.context.name;
        let Some(open) = OpenDevice::open(&mut self.state.disks, daemon, name) else {
            return OpenedDevice::LeftOut;
        };
        let (server, ring, kind) = (
            self.server.clone(),
            self.context.ring_client.ring.load_full(),
            self.context.kind,
        );
        let (root, name) = (open.root.clone(), open.name.clone());
        let (unclaimed, forgotten) = (
            self.context.before(UNCLAIMED),
            self.context.before(self.context.options.reclaim_age),
        );
        let looked = open.run(move || {
            let Some(device) = server.device(&ring, &name) else {
                return Ok(None);
            };
            let swept = sweep(&root) + sweep_copies(&root, unclaimed) + sweep_forgotten(&root, forgotten);
            if swept > 0 {
                tracing::info!("{daemon}: device {name}: {swept} temporary files that nobody claimed removed");
            }
            let partitions = Location::partitions(&root, kind)?;
            Ok::<_, std::io::Error>(Some((device.id, device.region, partitions)))
        });
        let Some(Some((id, region, mut partitions))) = looked.await else {
            return OpenedDevice::LeftOut;
        };
        self.met = true;
        partitions.retain(|partition| self.is_wanted(id, *partition));
        world::random::shuffle(&*self.context.world.random, &mut partitions);
        OpenedDevice::Here(ReplicatedDevice { open, id, region }, partitions)
    }

    fn listed_at_once(&self) -> usize {
        PARTITIONS_PER_STEP
    }

    /// Also removes what is empty there.
    async fn list(&mut self, device: &ReplicatedDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let (root, kind) = (device.open.root.clone(), self.context.kind);
        let listed = device.open.run(move || {
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
        DirectoryContents::Items(listed.await.unwrap_or_default())
    }

    fn items_at_once(&self) -> usize {
        self.context.options.concurrency
    }

    async fn work(&self, device: &ReplicatedDevice, location: Location) -> WorkedItem<Self> {
        let level = self.level.of(&device.open.name, location.hash());
        let outcome = self.context.attend(device, location, level).await;
        WorkedItem { outcome, rest: None }
    }

    fn count(&mut self, device: &ReplicatedDevice, outcome: DatabaseOutcome) -> ItemCount {
        let DatabaseOutcome { figures, took, level } = outcome;
        self.level.learn(level);
        figures.report(&self.state.statsd, &device.open.name, took);
        let counted = match figures.left {
            0 => ItemCount::of(u64::from(figures != Figures::default()), 0),
            _ => ItemCount::FAILED,
        };
        self.figures.add(figures);
        counted
    }

    fn close(&mut self, device: ReplicatedDevice) {
        self.level.keep(device.open.name);
    }

    async fn stepped(&mut self, _: Duration, is_last: bool) {
        if is_last {
            self.context.peer_failures.report();
        }
        if is_last && !self.met {
            let LocalServer { addresses, port } = &self.server;
            tracing::error!(
                "{}: no device in the ring is at {addresses:?}, port {port}",
                self.context.name
            );
        }
    }

    fn pass_figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let figures = self.figures.to_recon(self.began, pass.seconds());
        Some((ReconFile::of(self.context.kind), figures))
    }
}
