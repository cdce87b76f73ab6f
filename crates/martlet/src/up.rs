//! `martlet up`: a whole cluster in one process.
//!
//! Start and its mirror: lock the directory → make the cluster if there is none → read its
//! configuration → open storage → build the gateway over it → listen → certificate → say "ready" → begin upkeep; then
//! signals → stop accepting, end upkeep → finish what runs → exit.
//! Always holds: one process per directory; the published test keys are never served beyond loopback.

use crate::cli::Up;
use crate::failure::CommandFailure;
use crate::first_start::{asked_in_vain, certificate_asked_in_vain, is_missing, make_cluster};
use crate::metrics::{
    ConnectionMetrics, Devices, MeasuredGateway, MetricsAccess, MetricsDoor, MetricsSetup, NodeFiles,
    ProcessMetricsPage, ReconFigures, own_port,
};
use crate::rings::WatchedRings;
use crate::service_manager::{READY, tell_service_manager};
use crate::storage::{self, Storage};
use crate::tls::Certificate;
use crate::{logging, proxy, upkeep};
use crate::{priority, process};
use ::upkeep::ReconFile;
use durable_fs::Drives;
use gateway::Rings;
use peer::http_server::{Shutdown, serve};
use peer::{HttpService, ServerOptions};
use settings::tempauth::{TempAuthSettings, TempAuthUser};
use settings::{AccountConf, ContainerConf, ObjectConf, ProxyConf, SwiftConf};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use telemetry::Statsd;
use telemetry::metrics::Role;
use world::World;

/// What `DIR/etc` describes.
struct Cluster {
    swift: SwiftConf,
    proxy: ProxyConf,
    object: ObjectConf,
    container: ContainerConf,
    account: AccountConf,
}

/// Runs until SIGTERM or Ctrl-C.
pub fn run(up: &Up) -> Result<(), CommandFailure> {
    let bind: SocketAddr = up
        .bind
        .parse()
        .map_err(|_| CommandFailure::Usage(format!("--bind {:?}: expected an address like 127.0.0.1:8080", up.bind)))?;
    let world = World::real();
    make_private(&up.dir).map_err(CommandFailure::io("create", &up.dir))?;
    let dir = up.dir.canonicalize().map_err(CommandFailure::io("find", &up.dir))?;
    let _lock = lock(&dir)?;
    let (etc, srv) = (dir.join("etc"), dir.join("srv"));
    let first = is_missing(&etc)?;
    if first {
        storage::probe(bind)?;
        make_cluster(&world, up, bind, &etc, &srv)?;
    }
    let cluster = Cluster::load(&etc)?;
    logging::start(&cluster.proxy.common);
    cluster.warn()?;
    let users = cluster
        .proxy
        .tempauth
        .as_ref()
        .map_or(&[][..], |auth| auth.users.as_slice());
    refuse_published_keys(bind, users, &etc)?;
    priority::take(&cluster.proxy.common);
    process::run(
        process::threads(cluster.proxy.common.workers),
        process::PATIENCE,
        serve_cluster(&cluster, bind, &etc, (!first).then_some(up)),
    )
}

/// Makes a directory, unless it is there, that other users of the machine cannot enter: it has databases with the names
/// of all objects, and lock files that anybody who can open them can hold.
fn make_private(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// The lock lasts as long as the file is open.
fn lock(dir: &Path) -> Result<std::fs::File, CommandFailure> {
    let path = dir.join("lock");
    let file = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(CommandFailure::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(CommandFailure::Usage(format!(
            "{} is served by another martlet; stop that one, or choose another --dir",
            dir.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => Err(CommandFailure::Io {
            doing: "lock",
            path,
            error,
        }),
    }
}

impl Cluster {
    fn load(etc: &Path) -> Result<Self, CommandFailure> {
        Ok(Self {
            swift: SwiftConf::load_from_dir(etc)?,
            proxy: ProxyConf::load(&etc.join("proxy-server.conf"))?,
            object: ObjectConf::load(&etc.join("object-server.conf"))?,
            container: ContainerConf::load(&etc.join("container-server.conf"))?,
            account: AccountConf::load(&etc.join("account-server.conf"))?,
        })
    }

    fn warn(&self) -> Result<(), CommandFailure> {
        let Self {
            swift,
            proxy,
            object,
            container,
            account,
        } = self;
        for warnings in [
            &swift.warnings,
            &proxy.warnings,
            &object.warnings,
            &container.warnings,
            &account.warnings,
        ] {
            logging::warn_of(warnings)?;
        }
        Ok(())
    }
}

fn refuse_published_keys(bind: SocketAddr, users: &[TempAuthUser], etc: &Path) -> Result<(), CommandFailure> {
    let published = settings::write::test_users();
    let is_published = |user: &TempAuthUser| {
        published
            .iter()
            .any(|p| (&p.account, &p.user, &p.key) == (&user.account, &user.user, &user.key))
    };
    match users
        .iter()
        .find(|user| is_published(user))
        .filter(|_| !bind.ip().is_loopback())
    {
        None => Ok(()),
        Some(user) => Err(CommandFailure::Usage(format!(
            "{bind} can be reached from outside, but user {}:{} still has the key that everybody knows from Swift's \
             documentation; change the keys in {}, or bind to 127.0.0.1",
            user.account,
            user.user,
            etc.join("proxy-server.conf").display()
        ))),
    }
}

async fn serve_cluster(
    cluster: &Cluster,
    bind: SocketAddr,
    etc: &Path,
    later: Option<&Up>,
) -> Result<(), CommandFailure> {
    let shutdown = Shutdown::default();
    let drives = Arc::new(Drives::default());
    let metrics = MetricsSetup::new()?.with_devices(Devices::new(&drives));
    let world = metrics.world.clone();
    metrics.add(Arc::new(NodeFiles::of(&world, &cluster.proxy.common)));
    let (rings, ring_files) = WatchedRings::load(etc, &cluster.swift.policies, &cluster.swift.hash)?;
    world.spawn(ring_files.watch(world.clone()));
    if let Some(up) = later {
        warn_of_what_is_in_vain(up, cluster, &rings, etc);
    }
    let storage = Storage {
        world: &world,
        swift: &cluster.swift,
        drives: &drives,
    };
    let peers = storage.all_near(&cluster.object, &cluster.container, &cluster.account, &metrics)?;
    let gateway = proxy::build(
        &world,
        &cluster.proxy,
        &cluster.swift,
        rings.clone(),
        peers.clone(),
        &metrics,
    )?;
    let listener = storage::listen(&world, &cluster.proxy.common, &bind.ip().to_string(), bind.port())?;
    let certificate = Certificate::load(&cluster.proxy.common)?;
    let address = listener
        .address()
        .map_err(CommandFailure::io("ask for the address of", Path::new("the listener")))?;
    let mut options = proxy::server_options(&cluster.proxy, &cluster.swift);
    let scheme = if certificate.is_some() { "https" } else { "http" };
    if let Some(certificate) = certificate {
        options.arrival.tls = Some(certificate.tls());
        world.spawn(certificate.watch(world.clone()));
    }
    let page = tell(metrics, cluster, etc, &options);
    own_port(&world, &cluster.proxy.common, &page, shutdown.watch());
    let requests = page.requests(Role::Proxy, Statsd::default());
    let door = MetricsDoor {
        page: page.clone(),
        who: MetricsAccess::From(cluster.proxy.proxy.metrics_clients.clone()),
        service: MeasuredGateway::new(gateway.clone(), requests, world.clock.clone()),
    };
    world.spawn(serve(
        world.clone(),
        listener,
        Arc::new(door) as Arc<dyn HttpService>,
        options,
        shutdown.watch(),
    ));
    say_ready(scheme, address, cluster.proxy.tempauth.as_ref(), later.is_none())?;
    tell_service_manager(READY);
    let inner = upkeep::UpCluster {
        etc,
        swift: &cluster.swift,
        gateway: &gateway,
        drives: &drives,
    };
    page.add(Arc::new(upkeep::start_all(&world, &inner, &rings, peers, &shutdown)?));
    process::until_asked_to_end(&world, &shutdown).await
}

/// Options of the first start, given to a later one.
fn warn_of_what_is_in_vain(up: &Up, cluster: &Cluster, rings: &Rings, etc: &Path) {
    let certificate = cluster.proxy.common.cert_file.as_deref();
    let shape = asked_in_vain(up, &rings.account.load(), etc);
    let asked = [shape, certificate_asked_in_vain(up, certificate, etc)];
    for asked in asked.into_iter().flatten() {
        tracing::warn!("{asked}");
    }
}

/// What there is to tell before upkeep begins.
fn tell(metrics: MetricsSetup, cluster: &Cluster, etc: &Path, options: &ServerOptions) -> Arc<ProcessMetricsPage> {
    metrics.add(Arc::new(ConnectionMetrics {
        role: Role::Proxy,
        open: options.open.clone(),
        limit: options.max_connections,
        refusals: options.refusals.clone(),
    }));
    metrics.add(Arc::new(ReconFigures {
        world: metrics.world.clone(),
        directory: upkeep::recon_directory(&cluster.object.storage, Some(&upkeep::own_recon(etc))).to_owned(),
        files: [ReconFile::Object, ReconFile::Container, ReconFile::Account]
            .map(ReconFile::of_kind)
            .concat(),
    }));
    metrics.ready()
}

/// The line scripts wait for, then who may log in. Keys are shown when they are the published ones or
/// have just been made.
fn say_ready(
    scheme: &str,
    address: SocketAddr,
    auth: Option<&TempAuthSettings>,
    first: bool,
) -> Result<(), CommandFailure> {
    let mut text = format!("ready {scheme}://{address}/auth/v1.0\n");
    for user in auth.map_or(&[][..], |auth| auth.users.as_slice()) {
        let key = if first || address.ip().is_loopback() {
            user.key.as_str()
        } else {
            "(key in etc/proxy-server.conf)"
        };
        let groups = user.groups.join(" ");
        text.push_str(&format!("  {}:{} {key} {groups}\n", user.account, user.user).replace(" \n", "\n"));
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CommandFailure::io("write to", &PathBuf::from("standard output")))
}
