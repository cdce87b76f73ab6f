//! One server of a cluster: `martlet {proxy,account,container,object}-server CONF`.
//!
//! It runs as two processes. The [overseer] reads the configuration and listens; the [worker](crate::worker), start and
//! its mirror: read the configuration → certificate → give up root → serve; then signals → stop accepting → finish what
//! runs → exit.

use crate::cli::ServerLine;
use crate::cluster_tls::{self, ClusterCredentials};
use crate::failure::{CommandFailure, no_threads};
use crate::metrics::{
    ConnectionMetrics, Devices, MeasuredGateway, MetricsAccess, MetricsDoor, MetricsSetup, NodeFiles, ReconFigures,
    own_port,
};
use crate::program::Program;
use crate::recon_door::ReconDoor;
use crate::ring_ports::RingPorts;
use crate::rings::WatchedRings;
use crate::storage::{BuiltServer, Storage};
use crate::tls::Certificate;
use crate::upkeep::watch_drives;
use crate::worker::{Leaving, Worker};
use crate::{logging, overseer, priority, process, proxy};
use ::upkeep::ReconFile;
use durable_fs::Drives;
use features::monitoring::recon::Recon;
use peer::http_server::{Shutdown, serve};
use peer::message::ServerKind;
use peer::{HttpService, Peers, ServerOptions, StorageDoor};
use settings::gateway_filters::ReconSettings;
use settings::server::ServerCommon;
use settings::{AccountConf, ContainerConf, ObjectConf, ProxyConf, SettingsError, StorageConf, SwiftConf};
use std::sync::Arc;
use telemetry::Statsd;
use telemetry::metrics::Role;
use tokio::sync::oneshot;
use world::World;

/// The gateway.
pub fn proxy(server: &ServerLine) -> Result<(), CommandFailure> {
    let Some(conf) = readable(ProxyConf::load(&server.conf))? else {
        return Ok(());
    };
    let Some(half) = begin(server, &conf.common)? else {
        return Ok(());
    };
    let swift = read_swift_conf(half, &conf.common, &conf.warnings)?;
    run(half, &conf.common, |metrics| {
        let world = &metrics.world.clone();
        let (rings, ring_files) = WatchedRings::load(&conf.common.swift_dir, &swift.policies, &swift.hash)?;
        world.spawn(ring_files.watch(world.clone()));
        let peers = cluster_tls::peers(world, &conf.common)?;
        let gateway = proxy::build(world, &conf, &swift, rings, peers, &metrics)?;
        let service = MeasuredGateway::new(
            gateway,
            metrics.requests(Role::Proxy, Statsd::default()),
            world.clock.clone(),
        );
        Ok(Ready {
            service,
            options: proxy::server_options(&conf, &swift),
            ports: None,
            role: Role::Proxy,
            who: MetricsAccess::From(conf.proxy.metrics_clients.clone()),
            metrics,
            leave: Box::new(|| {}),
        })
    })
}

/// The object server.
pub fn object(server: &ServerLine) -> Result<(), CommandFailure> {
    let Some(conf) = readable(ObjectConf::load(&server.conf))? else {
        return Ok(());
    };
    let ports = |swift: &SwiftConf| RingPorts::of(swift, &conf.common, &conf.settings);
    run_storage(server, &conf, ReconFile::Object, ports, |storage| {
        storage.object_server(&conf)
    })
}

/// The container server.
pub fn container(server: &ServerLine) -> Result<(), CommandFailure> {
    let Some(conf) = readable(ContainerConf::load(&server.conf))? else {
        return Ok(());
    };
    run_storage(server, &conf, ReconFile::Container, one_port, |storage| {
        storage.container_server(&conf)
    })
}

/// The account server.
pub fn account(server: &ServerLine) -> Result<(), CommandFailure> {
    let Some(conf) = readable(AccountConf::load(&server.conf))? else {
        return Ok(());
    };
    run_storage(server, &conf, ReconFile::Account, one_port, |storage| {
        storage.account_server(&conf)
    })
}

/// A server's configuration. An overseer whose worker serves already needs none: when it was broken since the worker
/// read it, the server goes on, and this gives nothing back once it has ended.
fn readable<C>(loaded: Result<C, SettingsError>) -> Result<Option<C>, CommandFailure> {
    match loaded {
        Err(error) if overseer::is_renewed() => {
            let warning = format!("{error}; the worker has read it before that, and serves");
            overseer::run(&ServerCommon::default(), Some(warning)).map(|()| None)
        }
        other => Ok(Some(other?)),
    }
}

/// What is done with a configuration in this process.
#[derive(Clone, Copy)]
enum ServerStart {
    /// All that a start needs is looked for, and nothing is served.
    Test,
    Serve(Worker),
}

/// Which half of the server this process is. As the overseer it is done when this returns.
fn begin(server: &ServerLine, common: &ServerCommon) -> Result<Option<ServerStart>, CommandFailure> {
    if server.test_config {
        logging::start_test();
        return Ok(Some(ServerStart::Test));
    }
    match Worker::from_environment() {
        Some(worker) => {
            worker.take_name();
            logging::start(common);
            Ok(Some(ServerStart::Serve(worker)))
        }
        None => overseer::run(common, None).map(|()| None),
    }
}

/// `swift.conf`, and what both configurations ask for in vain.
fn read_swift_conf(
    half: ServerStart,
    common: &ServerCommon,
    warnings: &[settings::Warning],
) -> Result<SwiftConf, CommandFailure> {
    let swift = SwiftConf::load_from_dir(&common.swift_dir)?;
    logging::warn_of(&swift.warnings)?;
    logging::warn_of(warnings)?;
    if matches!(half, ServerStart::Test) {
        logging::refuse_slips(&[&swift.warnings, warnings].concat())?;
    }
    Ok(swift)
}

/// Of servers that listen on `bind_port` alone.
fn one_port(_: &SwiftConf) -> Result<Option<RingPorts>, CommandFailure> {
    Ok(None)
}

fn run_storage<S>(
    server: &ServerLine,
    conf: &StorageConf<S>,
    cache: ReconFile,
    ports: impl Fn(&SwiftConf) -> Result<Option<RingPorts>, CommandFailure>,
    make: impl Fn(Storage) -> Result<BuiltServer, CommandFailure>,
) -> Result<(), CommandFailure> {
    let common = &conf.common;
    let Some(half) = begin(server, common)? else {
        return Ok(());
    };
    let swift = &read_swift_conf(half, common, &conf.warnings)?;
    run(half, common, |metrics| {
        let drives = &Arc::new(Drives::default());
        let (role, kind) = match cache {
            ReconFile::Account => (Role::Account, ServerKind::Account),
            ReconFile::Container => (Role::Container, ServerKind::Container),
            // The drives are the object server's.
            _ => (Role::Object, ServerKind::Object),
        };
        let metrics = metrics.with_devices(Devices::new(drives).of_role(role));
        let world = &metrics.world.clone();
        cluster_tls::refuse_two_kinds(common)?;
        let cluster = ClusterCredentials::load(world, common)?;
        metrics.add(Arc::new(ReconFigures {
            world: world.clone(),
            directory: conf.storage.recon_cache_path.clone(),
            files: cache.of_kind(),
        }));
        let mut made = make(Storage { world, swift, drives })?.measured(&metrics, role);
        let leave = std::mem::replace(&mut made.leave, Box::new(|| {}));
        watch_drives(world, drives, &conf.storage, cache);
        let client = cluster.as_ref().and_then(ClusterCredentials::client);
        let service = made.connect(Arc::new(Peers::secured(world.clone(), client)));
        let mut options = proxy::storage_options(common);
        options.arrival.cluster = cluster.as_ref().map(|cluster| cluster.arrival(kind));
        if let Some(cluster) = cluster {
            world.spawn(cluster.watch(world.clone()));
        }
        Ok(Ready {
            service: door(world, swift, conf.recon.as_ref(), StorageDoor(service))?,
            options,
            ports: ports(swift)?,
            role,
            who: MetricsAccess::Anybody,
            metrics,
            leave,
        })
    })
}

/// What requests meet first: `recon`, where the pipeline has it.
fn door(
    world: &World,
    swift: &SwiftConf,
    recon: Option<&ReconSettings>,
    storage: StorageDoor,
) -> Result<Arc<dyn HttpService>, CommandFailure> {
    let Some(settings) = recon else {
        return Ok(Arc::new(storage));
    };
    let recon = Recon::new(world, settings.clone(), &swift.policies).map_err(no_threads)?;
    Ok(Arc::new(ReconDoor { recon, storage }))
}

/// What a server needs to begin serving.
struct Ready {
    service: Arc<dyn HttpService>,
    options: ServerOptions,
    /// Where it serves besides `bind_port`.
    ports: Option<RingPorts>,
    role: Role,
    /// The clients that may see its figures.
    who: MetricsAccess,
    metrics: MetricsSetup,
    /// What is to be done when this process is asked to end, or to leave to a successor.
    leave: Box<dyn FnOnce() + Send>,
}

fn run(
    half: ServerStart,
    common: &ServerCommon,
    prepare: impl FnOnce(MetricsSetup) -> Result<Ready, CommandFailure>,
) -> Result<(), CommandFailure> {
    let ServerStart::Serve(worker) = half else {
        // One thread: no task is begun, for nothing is waited for.
        return process::run(1, process::PATIENCE, async {
            let metrics = MetricsSetup::new()?;
            let _certificate = Certificate::load(common)?;
            process::drop_privileges(common.user.as_deref())?;
            prepare(metrics).map(drop)
        });
    };
    priority::take(common);
    process::run(process::threads(common.workers), process::PATIENCE, async {
        let metrics = MetricsSetup::new()?;
        let world = metrics.world.clone();
        metrics.add(Arc::new(NodeFiles::of(&world, common)));
        let listener = worker.listener()?;
        let certificate = Certificate::load(common)?;
        process::drop_privileges(common.user.as_deref())?;
        worker.end_with_overseer()?;
        let Ready {
            service,
            mut options,
            ports,
            role,
            who,
            metrics,
            leave,
        } = prepare(metrics)?;
        if let Some(certificate) = certificate {
            options.arrival.tls = Some(certificate.tls());
            world.spawn(certificate.watch(world.clone()));
        }
        let (shutdown, linger) = (Shutdown::default(), options.linger.clone());
        let mut asked = shutdown.watch();
        world.spawn(async move {
            drop(asked.wait_for(|asked| *asked).await);
            leave();
        });
        metrics.add(Arc::new(ConnectionMetrics {
            role,
            open: options.open.clone(),
            limit: options.max_connections,
            refusals: options.refusals.clone(),
        }));
        let page = metrics.ready();
        own_port(&world, common, &page, shutdown.watch());
        let service: Arc<dyn HttpService> = Arc::new(MetricsDoor { page, who, service });
        tracing::info!("serving on {}:{}", common.bind_ip, common.bind_port);
        if let Some(ports) = ports {
            world.spawn(ports.serve(world.clone(), service.clone(), options.clone(), shutdown.watch()));
        }
        let (open, closed) = oneshot::channel::<()>();
        let serving = serve(world.clone(), listener, service, options, shutdown.watch());
        world.spawn(async move {
            serving.await;
            drop(open);
        });
        Program::called().let_go_of_errors()?;
        let leaving = Leaving {
            linger,
            closed,
            longest: common.stale_worker_timeout,
        };
        worker.until_stopped(&world, shutdown, leaving).await
    })
}
