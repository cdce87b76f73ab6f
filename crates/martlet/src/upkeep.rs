//! From configuration to upkeep: as commands of its own, and all of it within `martlet up`.
//!
//! Always holds: upkeep of `up` begins after the services it speaks to and ends with them; a file that
//! says how fast to go is obeyed in both.

mod auditors;
mod database_replicators;
mod object_replicator;

pub use auditors::{account_auditor, container_auditor, object_auditor};
pub use database_replicators::database_replicator;
pub use object_replicator::object_replicator;

use crate::cli::Upkeep;
use crate::failure::CommandFailure;
use crate::metrics::{self, Daemons};
use crate::program::Program;
use crate::rings::WatchedRings;
use crate::service_manager::{READY, tell_service_manager};
use crate::{cluster_tls, logging, priority, process};
use durable_fs::Drives;
use gateway::{Gateway, Rings};
use peer::http_server::Shutdown;
use peer::{Peers, Timeouts};
use settings::declare::Options;
use settings::server::StorageCommon;
use settings::{ContainerUpdaterSettings, DaemonConf, ObjectUpdaterSettings, StatsdSettings, SwiftConf, UpkeepConf};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use tokio::sync::watch;
use upkeep::{
    ContainerUpdater, Daemon, Disks, DriveWatch, ObjectUpdater, ReconFile, ReconWriter, RingClient, UpkeepPace,
};
use world::World;

mod reaper;
mod sync;
mod through_gateway;

pub use reaper::account_reaper;
pub use sync::container_sync;
pub use through_gateway::{container_reconciler, object_expirer};

const OBJECT_UPDATER: &str = "object-updater";
const CONTAINER_UPDATER: &str = "container-updater";

/// Three passes at the default interval, and longer than replication takes to bring an old figure.
const FIGURES_INTERVAL: Duration = Duration::from_secs(15 * 60);

/// A pass over a cluster in one process costs little, and its user looks at the result at once.
const UP_INTERVAL: Duration = Duration::from_secs(15);
/// Objects per second of the updater of `up`.
const UP_PER_SECOND: f64 = 500.0;

/// How long a step may take after SIGTERM. `swift-init` waits 15 s for daemons to end; a step that is cut off is done
/// again in the next pass.
const STEP_PATIENCE: Duration = Duration::from_secs(5);

/// The inside of a cluster in one process.
pub struct UpCluster<'a> {
    /// Where its files are.
    pub etc: &'a Path,
    /// `swift.conf`.
    pub swift: &'a SwiftConf,
    /// The one that clients use.
    pub gateway: &'a Gateway,
    /// How its drives are.
    pub drives: &'a Arc<Drives>,
}

/// What every daemon needs: configuration, rings, peers and drives.
struct UpkeepContext<'a> {
    world: &'a World,
    swift: &'a SwiftConf,
    rings: &'a Rings,
    peers: Arc<Peers>,
    /// Where figures go when no place is configured.
    recon: Option<PathBuf>,
    /// How the drives are, as far as others in this process know.
    drives: Arc<Drives>,
}

/// `martlet object-updater`.
pub fn object_updater(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ObjectUpdaterSettings>::load(&upkeep.conf, OBJECT_UPDATER)?;
    run(conf.beginning(), upkeep.once(), |context| context.object_updater(&conf))
}

/// `martlet container-updater`.
pub fn container_updater(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerUpdaterSettings>::load(&upkeep.conf, CONTAINER_UPDATER)?;
    run(conf.beginning(), upkeep.once(), |context| {
        context.container_updater(&conf)
    })
}

/// Starts all upkeep of a cluster in one process.
pub fn start_all(
    world: &World,
    inner: &UpCluster<'_>,
    rings: &Rings,
    peers: Arc<Peers>,
    shutdown: &Shutdown,
) -> Result<Daemons, CommandFailure> {
    let etc = inner.etc;
    let mut object = load::<ObjectUpdaterSettings>(etc, "object-server.conf", OBJECT_UPDATER)?;
    if !object.says("interval") {
        object.settings.interval = UP_INTERVAL;
    }
    if !object.says("objects_per_second") {
        object.settings.objects_per_second = UP_PER_SECOND;
    }
    let mut container = load::<ContainerUpdaterSettings>(etc, "container-server.conf", CONTAINER_UPDATER)?;
    if !container.says("interval") {
        container.settings.interval = UP_INTERVAL;
    }
    if !container.says("containers_per_second") {
        container.settings.containers_per_second = UP_PER_SECOND;
    }
    let context = UpkeepContext {
        world,
        swift: inner.swift,
        rings,
        peers,
        recon: Some(own_recon(etc)),
        drives: inner.drives.clone(),
    };
    let mut daemons = vec![context.object_updater(&object), context.container_updater(&container)];
    daemons.extend(auditors::for_up(&context, etc)?);
    daemons.push(reaper::for_up(&context, etc)?);
    // At once: the services look at what it finds.
    let recon = context.recon(&object.storage);
    let watch = drive_watch(world, inner.drives, &object.storage, vec![(recon, ReconFile::Object)]);
    world.spawn(watch.run_forever(shutdown.watch()));
    daemons.extend(through_gateway::for_up(&context, inner)?);
    daemons.push(object_replicator::for_up(&context, etc)?);
    daemons.extend(database_replicators::for_up(&context, etc)?);
    let measured = Daemons::of(world, &daemons);
    for daemon in daemons {
        world.spawn(daemon.scattered().run_forever(shutdown.watch()));
    }
    Ok(measured)
}

/// Where a cluster in one process keeps the figures of its upkeep.
pub fn own_recon(etc: &Path) -> PathBuf {
    etc.with_file_name("recon")
}

/// What a file of the cluster in one process says of one kind of upkeep.
fn load<S: Options>(etc: &Path, file: &str, section: &str) -> Result<UpkeepConf<S>, CommandFailure> {
    let conf = UpkeepConf::load(&etc.join(file), section)?;
    logging::warn_of(&conf.warnings)?;
    Ok(conf)
}

/// One kind of upkeep that speaks to others.
fn run(
    beginning: DaemonConf<'_>,
    once: bool,
    make: impl FnOnce(&UpkeepContext) -> Daemon,
) -> Result<(), CommandFailure> {
    run_all(beginning, once, |context| vec![make(context)])
}

/// The same with several that work side by side.
fn run_all(
    beginning: DaemonConf<'_>,
    once: bool,
    make: impl FnOnce(&UpkeepContext) -> Vec<Daemon>,
) -> Result<(), CommandFailure> {
    run_over(beginning, once, |context| Ok(make(context)))
}

/// The same with what may be refused.
fn run_over(
    beginning: DaemonConf<'_>,
    once: bool,
    make: impl FnOnce(&UpkeepContext) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    let common = beginning.common;
    run_alone(beginning, once, |world, swift| {
        let (rings, ring_files) = WatchedRings::load(&common.swift_dir, &swift.policies, &swift.hash)?;
        world.spawn(ring_files.watch(world.clone()));
        make(&UpkeepContext {
            world,
            swift,
            rings: &rings,
            peers: cluster_tls::peers(world, common)?,
            recon: None,
            drives: Arc::default(),
        })
    })
}

/// Upkeep that needs no other server, and no rings.
///
/// Start and its mirror: give up root → what the daemons need → passes; then a signal → finish the step → exit.
fn run_alone(
    beginning: DaemonConf<'_>,
    once: bool,
    make: impl FnOnce(&World, &SwiftConf) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    let common = beginning.common;
    logging::start(common);
    logging::warn_of(beginning.warnings)?;
    priority::take(common);
    let swift = SwiftConf::load_from_dir(&common.swift_dir)?;
    logging::warn_of(&swift.warnings)?;
    // One thread: it mostly waits, for disks and for others.
    process::run(1, STEP_PATIENCE, async {
        process::drop_privileges(common.user.as_deref())?;
        let measured = metrics::MetricsSetup::new()?;
        let world = measured.world.clone();
        let shutdown = Shutdown::default();
        let daemons = make(&world, &swift)?;
        if !once {
            measured.add(Arc::new(Daemons::of(&world, &daemons)));
            metrics::own_port(&world, common, &measured.ready(), shutdown.watch());
        }
        Program::called().let_go_of_output()?;
        tell_service_manager(READY);
        for daemon in daemons {
            world.spawn(work(daemon, once, shutdown.watch()));
        }
        tokio::select! {
            () = shutdown.finished() => return Ok(()),
            asked = process::asked_to_end() => asked?,
        }
        shutdown.begin();
        if world.timeout(STEP_PATIENCE, shutdown.finished()).await.is_err() {
            tracing::warn!("the step under way did not end in {STEP_PATIENCE:?} and was cut off");
        }
        Ok(())
    })
}

async fn work(mut daemon: Daemon, once: bool, shutdown: watch::Receiver<bool>) {
    match once {
        true => drop(daemon.run_once(shutdown).await),
        false => daemon.scattered().run_forever(shutdown).await,
    }
}

impl UpkeepContext<'_> {
    fn object_updater(&self, conf: &UpkeepConf<ObjectUpdaterSettings>) -> Daemon {
        let settings = &conf.settings;
        let containers = RingClient {
            ring: self.rings.container.clone(),
            ..self.ring_client(settings.conn_timeout, settings.node_timeout)
        };
        let policies = self.rings.policies.clone();
        let at_once = records_at_once(settings.objects_per_second, settings.concurrency);
        let job = ObjectUpdater::new(
            self.disks(&conf.storage),
            containers,
            policies,
            settings.concurrency,
            at_once,
        );
        let pace = UpkeepPace {
            per_second: settings.objects_per_second,
            interval: settings.interval,
        };
        measured(self.world, &conf.statsd, Daemon::new(self.world.clone(), job, pace))
            .with_recon(self.recon(&conf.storage))
    }

    fn container_updater(&self, conf: &UpkeepConf<ContainerUpdaterSettings>) -> Daemon {
        let settings = &conf.settings;
        let job = ContainerUpdater::new(
            self.disks(&conf.storage),
            self.ring_client(settings.conn_timeout, settings.node_timeout),
            settings.concurrency,
            settings.account_suppression_time,
            FIGURES_INTERVAL,
        );
        let pace = UpkeepPace {
            per_second: settings.containers_per_second,
            interval: settings.interval,
        };
        measured(self.world, &conf.statsd, Daemon::new(self.world.clone(), job, pace))
            .with_recon(self.recon(&conf.storage))
    }

    /// Where its figures go.
    fn recon(&self, storage: &StorageCommon) -> ReconWriter {
        recon(self.world, storage, self.recon.as_deref())
    }

    fn disks(&self, storage: &StorageCommon) -> Disks {
        Disks::new(self.world.clone(), &storage.devices, storage.mount_check).watched(self.drives.clone())
    }

    /// Those who hold accounts.
    fn ring_client(&self, connect: Duration, response: Duration) -> RingClient {
        RingClient {
            ring: self.rings.account.clone(),
            hash: self.rings.hash.clone(),
            peers: self.peers.clone(),
            timeouts: Timeouts { connect, response },
        }
    }
}

/// A step of the object-updater is no more than a second's worth of records, so that its pace stays even.
fn records_at_once(per_second: f64, concurrency: usize) -> usize {
    const MOST: usize = 4_096;
    match per_second > 0.0 {
        true => (per_second as usize).clamp(concurrency.clamp(1, MOST), MOST),
        false => MOST,
    }
}

/// Watches the drives on behalf of a storage server for as long as the process lives.
pub fn watch_drives(world: &World, drives: &Arc<Drives>, storage: &StorageCommon, cache: ReconFile) {
    let measured = vec![(recon(world, storage, None), cache)];
    let daemon = drive_watch(world, drives, storage, measured);
    let (kept, shutdown) = watch::channel(false);
    world.spawn(async move {
        daemon.run_forever(shutdown).await;
        drop(kept);
    });
}

fn drive_watch(
    world: &World,
    drives: &Arc<Drives>,
    storage: &StorageCommon,
    measured: Vec<(ReconWriter, ReconFile)>,
) -> Daemon {
    let job = DriveWatch::new(world.clone(), drives.clone(), storage.mount_check, measured);
    Daemon::new(world.clone(), job, DriveWatch::pace())
}

/// A daemon that tells who takes metrics what it does.
fn measured(world: &World, settings: &StatsdSettings, daemon: Daemon) -> Daemon {
    let statsd = Statsd::open(settings, daemon.name(), world);
    daemon.with_statsd(statsd)
}

/// Where figures go: where the file says, or else to `own`.
fn recon(world: &World, storage: &StorageCommon, own: Option<&Path>) -> ReconWriter {
    ReconWriter::new(world.clone(), recon_directory(storage, own))
}

/// The directory of that.
pub fn recon_directory<'a>(storage: &'a StorageCommon, own: Option<&'a Path>) -> &'a Path {
    let chosen = storage.recon_cache_path.as_path();
    let is_default = chosen == StorageCommon::default().recon_cache_path;
    own.filter(|_| is_default).unwrap_or(chosen)
}
