//! From configuration to upkeep: as commands of its own, and all of it within `martlet up`.
//!
//! Always holds: upkeep of `up` begins after the services it speaks to and ends with them; a file that
//! says how fast to go is obeyed in both.

mod auditors;
mod database_replicators;
mod lifecycle;
mod notifier;
mod object_replicator;
mod reaper;
mod sync;
mod through_gateway;

pub use auditors::{account_auditor, container_auditor, object_auditor};
pub use database_replicators::database_replicator;
pub use lifecycle::container_lifecycle;
pub use notifier::container_notifier;
pub use object_replicator::object_replicator;
pub use reaper::account_reaper;
pub use sync::container_sync;
pub use through_gateway::{container_reconciler, object_expirer};

use crate::addresses;
use crate::cli::{Passes, Upkeep};
use crate::failure::CommandFailure;
use crate::metrics::{self, Daemons};
use crate::program::Program;
use crate::rings::WatchedRings;
use crate::service_manager::{READY, tell_service_manager};
use crate::{cluster_tls, logging, priority, process};
use durable_fs::Drives;
use gateway::{Gateway, LiveRing, Rings};
use peer::http_server::Shutdown;
use peer::{Peers, Timeouts};
use settings::declare::Options;
use settings::server::{ServerCommon, StorageCommon};
use settings::{ContainerUpdaterSettings, DaemonConf, ObjectUpdaterSettings, StatsdSettings, SwiftConf, UpkeepConf};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use telemetry::Statsd;
use tokio::sync::watch;
use upkeep::{
    ContainerUpdater, Daemon, Disks, DriveWatch, LocalServer, ObjectUpdater, ReconFile, ReconWriter, RingClient,
    UpkeepJob, UpkeepPace,
};
use vocabulary::{PolicyIndex, PolicyKind};
use world::World;

const OBJECT_UPDATER: &str = "object-updater";
const CONTAINER_UPDATER: &str = "container-updater";

/// Three passes at the default interval, and longer than replication takes to bring an old figure.
const FIGURES_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// Sent again no more often, however short the interval.
const FIGURES_REPEATED_EVERY: Duration = Duration::from_secs(60);

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
    /// How the drives are, where others in this process look after them.
    drives: Option<Arc<Drives>>,
}

/// `martlet object-updater`.
pub fn object_updater(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ObjectUpdaterSettings>::load(&upkeep.conf, OBJECT_UPDATER)?;
    run(conf.beginning(), upkeep.passes(), |context| {
        context.object_updater(&conf)
    })
}

/// `martlet container-updater`.
pub fn container_updater(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerUpdaterSettings>::load(&upkeep.conf, CONTAINER_UPDATER)?;
    run(conf.beginning(), upkeep.passes(), |context| {
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
    preset(&mut object, "interval", |own| own.interval = UP_INTERVAL);
    preset(&mut object, "objects_per_second", |own| {
        own.objects_per_second = UP_PER_SECOND
    });
    let mut container = load::<ContainerUpdaterSettings>(etc, "container-server.conf", CONTAINER_UPDATER)?;
    preset(&mut container, "interval", |own| own.interval = UP_INTERVAL);
    preset(&mut container, "containers_per_second", |own| {
        own.containers_per_second = UP_PER_SECOND
    });
    let context = UpkeepContext {
        world,
        swift: inner.swift,
        rings,
        peers,
        recon: Some(own_recon(etc)),
        drives: Some(inner.drives.clone()),
    };
    let mut daemons = vec![context.object_updater(&object), context.container_updater(&container)];
    daemons.extend(auditors::for_up(&context, etc)?);
    daemons.push(reaper::for_up(&context, etc)?);
    // At once: the services look at what it finds.
    let recon = context.recon(&object.storage);
    let watch = drive_watch(world, inner.drives, &object.storage, vec![(recon, ReconFile::Object)]);
    world.spawn(watch.run_forever(shutdown.watch()));
    daemons.extend(through_gateway::for_up(&context, inner)?);
    daemons.push(lifecycle::for_up(&context, inner)?);
    daemons.push(notifier::for_up(&context, inner)?);
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

/// Sets an option that the file does not set.
fn preset<S: Options>(conf: &mut UpkeepConf<S>, option: &str, set: impl FnOnce(&mut S)) {
    if !conf.says(option) {
        set(&mut conf.settings);
    }
}

/// The time between passes of a replicator, whose older name is `run_pause`.
fn pause<S: Options>(conf: &UpkeepConf<S>, run_pause: Option<Duration>, interval: Duration) -> Duration {
    run_pause.filter(|_| !conf.says("interval")).unwrap_or(interval)
}

/// One kind of upkeep that speaks to others.
fn run(
    beginning: DaemonConf<'_>,
    passes: Passes,
    make: impl FnOnce(&UpkeepContext) -> Daemon,
) -> Result<(), CommandFailure> {
    run_over(beginning, passes, |context| Ok(vec![make(context)]))
}

/// The same with several that work side by side, and that may be refused.
fn run_over(
    beginning: DaemonConf<'_>,
    passes: Passes,
    make: impl FnOnce(&UpkeepContext) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    run_with_peers(beginning, passes, cluster_tls::peers, make)
}

/// The same of a daemon that deletes and moves objects as a client does.
fn run_as_client(
    daemon: &str,
    beginning: DaemonConf<'_>,
    passes: Passes,
    make: impl FnOnce(&UpkeepContext) -> Result<Daemon, CommandFailure>,
) -> Result<(), CommandFailure> {
    let peers = |world: &World, common: &ServerCommon| cluster_tls::peers_of_client(world, common, daemon);
    run_with_peers(beginning, passes, peers, |context| Ok(vec![make(context)?]))
}

fn run_with_peers(
    beginning: DaemonConf<'_>,
    passes: Passes,
    peers: impl FnOnce(&World, &ServerCommon) -> Result<Arc<Peers>, CommandFailure>,
    make: impl FnOnce(&UpkeepContext) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    let common = beginning.common;
    run_alone(beginning, passes, |world, swift| {
        let (rings, ring_files) = WatchedRings::load(&common.swift_dir, &swift.policies, &swift.hash)?;
        world.spawn(ring_files.watch(world.clone()));
        make(&UpkeepContext {
            world,
            swift,
            rings: &rings,
            peers: peers(world, common)?,
            recon: None,
            drives: None,
        })
    })
}

/// Upkeep that needs no other server, and no rings.
///
/// Start and its mirror: give up root → what the daemons need → passes; then a signal → finish the step → exit.
fn run_alone(
    beginning: DaemonConf<'_>,
    passes: Passes,
    make: impl FnOnce(&World, &SwiftConf) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    let common = beginning.common;
    match passes {
        Passes::None => logging::start_test(),
        Passes::Endless | Passes::One => logging::start(common),
    }
    logging::warn_of(beginning.warnings)?;
    if passes == Passes::None {
        logging::warn_of(beginning.shared_slips)?;
    }
    let swift = SwiftConf::load_from_dir(&common.swift_dir)?;
    logging::warn_of(&swift.warnings)?;
    if passes == Passes::None {
        let warnings = [&swift.warnings, beginning.warnings, beginning.shared_slips].concat();
        return test(&warnings, common, |world| make(world, &swift));
    }
    let once = passes == Passes::One;
    priority::take(common);
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
        let panicked = Arc::new(AtomicBool::new(false));
        for daemon in daemons {
            world.spawn(work(daemon, once, shutdown.watch(), panicked.clone()));
        }
        tokio::select! {
            () = shutdown.finished() => return match once && !panicked.load(Ordering::Relaxed) {
                true => Ok(()),
                // Of panics, which the log has: the tasks of those that repeat passes are endless.
                false => Err(CommandFailure::Tool(1)),
            },
            asked = process::asked_to_end() => asked?,
        }
        shutdown.begin();
        if world.timeout(STEP_PATIENCE, shutdown.finished()).await.is_err() {
            tracing::warn!("the step under way did not end in {STEP_PATIENCE:?} and was cut off");
        }
        Ok(())
    })
}

/// Whether the daemons of a configuration could begin.
fn test(
    warnings: &[settings::Warning],
    common: &ServerCommon,
    make: impl FnOnce(&World) -> Result<Vec<Daemon>, CommandFailure>,
) -> Result<(), CommandFailure> {
    logging::refuse_slips(warnings)?;
    process::run(1, STEP_PATIENCE, async {
        process::drop_privileges(common.user.as_deref())?;
        make(&World::real()).map(drop)
    })
}

async fn work(mut daemon: Daemon, once: bool, shutdown: watch::Receiver<bool>, panicked: Arc<AtomicBool>) {
    match once {
        true => {
            if daemon.run_once(shutdown).await.is_err() {
                panicked.store(true, Ordering::Relaxed);
            }
        }
        false => daemon.scattered().run_forever(shutdown).await,
    }
}

impl UpkeepContext<'_> {
    fn object_updater(&self, conf: &UpkeepConf<ObjectUpdaterSettings>) -> Daemon {
        let settings = &conf.settings;
        let job = ObjectUpdater::new(
            self.disks(&conf.storage, &[]),
            self.container_servers(settings.conn_timeout, settings.node_timeout),
            self.rings.policies.clone(),
            settings.concurrency,
            records_at_once(settings.objects_per_second, settings.concurrency),
        );
        self.daemon(conf, job, settings.objects_per_second, settings.interval)
    }

    fn container_updater(&self, conf: &UpkeepConf<ContainerUpdaterSettings>) -> Daemon {
        let settings = &conf.settings;
        let job = ContainerUpdater::new(
            self.disks(&conf.storage, &[]),
            self.account_servers(settings.conn_timeout, settings.node_timeout),
            settings.concurrency,
            settings.account_suppression_time,
            FIGURES_INTERVAL,
        );
        let job = job.repeating_every(FIGURES_REPEATED_EVERY);
        self.daemon(conf, job, settings.containers_per_second, settings.interval)
    }

    /// A daemon with this job, at most so fast, whose figures and metrics go where its file says.
    fn daemon<S>(
        &self,
        conf: &UpkeepConf<S>,
        job: impl UpkeepJob + 'static,
        per_second: f64,
        interval: Duration,
    ) -> Daemon {
        let pace = UpkeepPace { per_second, interval };
        daemon(self.world, &conf.statsd, job, pace).with_recon(self.recon(&conf.storage))
    }

    /// Where its figures go.
    fn recon(&self, storage: &StorageCommon) -> ReconWriter {
        recon(self.world, storage, self.recon.as_deref())
    }

    /// These devices of the server, or all when none is named.
    fn disks(&self, storage: &StorageCommon, only: &[String]) -> Disks {
        let drives = self.drives.clone();
        let drives = drives.unwrap_or_else(|| own_drives(self.world, storage));
        disks(self.world, storage, only, drives)
    }

    /// The servers of accounts.
    fn account_servers(&self, connect: Duration, response: Duration) -> RingClient {
        self.servers_of(&self.rings.account, connect, response)
    }

    /// The servers of containers.
    fn container_servers(&self, connect: Duration, response: Duration) -> RingClient {
        self.servers_of(&self.rings.container, connect, response)
    }

    fn servers_of(&self, ring: &LiveRing, connect: Duration, response: Duration) -> RingClient {
        RingClient {
            ring: ring.clone(),
            hash: self.rings.hash.clone(),
            peers: self.peers.clone(),
            timeouts: Timeouts { connect, response },
        }
    }

    /// The rings of policies whose objects have replicas.
    fn replicated_rings(&self) -> BTreeMap<PolicyIndex, LiveRing> {
        let policies = self.rings.policies.iter();
        let replicated = policies.filter(|policy| policy.kind == PolicyKind::Replication);
        let rings =
            replicated.filter_map(|policy| Some((policy.index, self.rings.objects.get(&policy.index)?.clone())));
        rings.collect()
    }
}

/// How rings name this server: by `ring_ip`, or by the address that it listens on when that is empty.
fn local_server(common: &ServerCommon, ring_ip: &str) -> LocalServer {
    let host = if ring_ip.is_empty() { &common.bind_ip } else { ring_ip };
    LocalServer {
        addresses: addresses::of(host),
        port: common.bind_port,
    }
}

/// The drives of a daemon by itself, which tries them out for as long as it lives: one that hangs is left out, and one
/// that is well again is not.
fn own_drives(world: &World, storage: &StorageCommon) -> Arc<Drives> {
    let drives = Arc::default();
    watch_for_ever(world, drive_watch(world, &drives, storage, vec![]));
    drives
}

fn disks(world: &World, storage: &StorageCommon, only: &[String], drives: Arc<Drives>) -> Disks {
    let disks = Disks::new(world.clone(), &storage.devices, storage.mount_check);
    disks.only(only).watched(drives)
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
    watch_for_ever(world, drive_watch(world, drives, storage, measured));
}

fn watch_for_ever(world: &World, daemon: Daemon) {
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

/// A daemon that sends its metrics.
fn daemon(world: &World, settings: &StatsdSettings, job: impl UpkeepJob + 'static, pace: UpkeepPace) -> Daemon {
    let daemon = Daemon::new(world.clone(), job, pace);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as long as two trials after a rest.
    #[tokio::test]
    async fn a_daemon_by_itself_takes_a_drive_into_service_again() {
        let place = tempfile::tempdir().unwrap();
        let world = World::real();
        let storage = StorageCommon {
            mount_check: false,
            ..StorageCommon::default()
        };
        let drives = own_drives(&world, &storage);
        let health = drives.health(place.path());
        while !health.is_watched() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        health.sync_failed(place.path(), &std::io::Error::from_raw_os_error(5));
        assert!(health.check_writable().is_err());
        for _ in 0..600 {
            if health.check_writable().is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("nothing has tried it out");
    }
}
