//! One server of a cluster: `martlet {proxy,account,container,object}-server CONF`.
//!
//! Start and its mirror: read the configuration → listen → certificate → give up root → serve; then signals → stop
//! accepting → finish what runs → exit.

use crate::failure::Failure;
use crate::rings::RingFiles;
use crate::storage::{self, Made, Storage};
use crate::tls::Certificate;
use crate::{logging, process, proxy};
use peer::http_server::{Shutdown, serve};
use peer::{HttpService, Peers, ServerOptions, StorageDoor};
use settings::server::ServerCommon;
use settings::{AccountConf, ContainerConf, ObjectConf, ProxyConf, SwiftConf};
use std::path::Path;
use std::sync::Arc;
use world::{Listener, World};

/// The gateway.
pub fn proxy(conf: &Path) -> Result<(), Failure> {
    let conf = ProxyConf::load(conf)?;
    let swift = begin(&conf.common, &conf.warnings)?;
    run(&conf.common, |world, listener| {
        let (rings, ring_files) = RingFiles::load(&conf.common.swift_dir, &swift.policies, &swift.hash)?;
        world.spawn(ring_files.watch(world.clone()));
        let peers = Arc::new(Peers::new(world.clone()));
        let gateway = proxy::build(world, &conf, &swift, rings, peers)?;
        Ok((
            listener,
            gateway as Arc<dyn HttpService>,
            proxy::server_options(&conf, &swift),
        ))
    })
}

/// The object server.
pub fn object(conf: &Path) -> Result<(), Failure> {
    let conf = ObjectConf::load(conf)?;
    let swift = begin(&conf.common, &conf.warnings)?;
    run_storage(&conf.common, &swift, |storage| storage.object_server(&conf))
}

/// The container server.
pub fn container(conf: &Path) -> Result<(), Failure> {
    let conf = ContainerConf::load(conf)?;
    let swift = begin(&conf.common, &conf.warnings)?;
    run_storage(&conf.common, &swift, |storage| storage.container_server(&conf))
}

/// The account server.
pub fn account(conf: &Path) -> Result<(), Failure> {
    let conf = AccountConf::load(conf)?;
    let swift = begin(&conf.common, &conf.warnings)?;
    run_storage(&conf.common, &swift, |storage| storage.account_server(&conf))
}

/// Logging, `swift.conf`, and what both configurations ask for in vain.
fn begin(common: &ServerCommon, warnings: &[settings::Warning]) -> Result<SwiftConf, Failure> {
    logging::start(common);
    let swift = SwiftConf::load_from_dir(&common.swift_dir)?;
    logging::warn_of(&swift.warnings)?;
    logging::warn_of(warnings)?;
    Ok(swift)
}

fn run_storage(
    common: &ServerCommon,
    swift: &SwiftConf,
    make: impl Fn(Storage) -> Result<Made, Failure>,
) -> Result<(), Failure> {
    run(common, |world, listener| {
        let service = make(Storage { world, swift })?.connect(Arc::new(Peers::new(world.clone())));
        let options = ServerOptions {
            max_clients: common.max_clients.0,
            ..ServerOptions::default()
        };
        Ok((
            listener,
            Arc::new(StorageDoor(service)) as Arc<dyn HttpService>,
            options,
        ))
    })
}

/// What a server needs to begin serving.
type Ready = (Box<dyn Listener>, Arc<dyn HttpService>, ServerOptions);

fn run(
    common: &ServerCommon,
    prepare: impl FnOnce(&World, Box<dyn Listener>) -> Result<Ready, Failure>,
) -> Result<(), Failure> {
    process::run(process::threads(common.workers), async {
        let world = World::real();
        if common.bind_port == 0 {
            return Err(Failure::Usage(
                "bind_port is missing; say in [DEFAULT] on which port to listen".into(),
            ));
        }
        let listener = storage::listen(&world, common, &common.bind_ip, common.bind_port)?;
        let certificate = Certificate::load(common)?;
        process::drop_privileges(common.user.as_deref())?;
        let (listener, service, mut options) = prepare(&world, listener)?;
        if let Some(certificate) = certificate {
            options.arrival.tls = Some(certificate.tls());
            world.spawn(certificate.watch(world.clone()));
        }
        let shutdown = Shutdown::default();
        tracing::info!("serving on {}:{}", common.bind_ip, common.bind_port);
        world.spawn(serve(world.clone(), listener, service, options, shutdown.watch()));
        process::until_asked_to_end(&world, shutdown).await
    })
}
