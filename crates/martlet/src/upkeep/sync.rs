//! From `container-server.conf` and the realms to container-sync.

use super::{UpkeepContext, load, local_server, preset, run_over};
use crate::cli::Upkeep;
use crate::failure::CommandFailure;
use features::access::sync_realms::SyncRealms;
use peer::{HttpService, Peers};
use settings::{ContainerSyncDaemonSettings, UpkeepConf};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{ContainerSyncDaemon, Daemon, HttpProxy, RingClient, SyncOptions, SyncPeers, SyncRealm};
use vocabulary::Fault;

const CONTAINER_SYNC: &str = "container-sync";
/// The other side may be far away, and busy.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// `martlet container-sync`.
pub fn container_sync(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerSyncDaemonSettings>::load(&upkeep.conf, CONTAINER_SYNC)?;
    run_over(conf.beginning(), upkeep.passes(), |context| {
        let gateway = context.internal_gateway(&conf.settings.internal_client_conf_path)?;
        Ok(vec![context.container_sync(&conf, gateway)?])
    })
}

/// Within a cluster in one process.
pub(super) fn for_up(
    context: &UpkeepContext<'_>,
    etc: &Path,
    gateway: Arc<dyn HttpService>,
) -> Result<Daemon, CommandFailure> {
    let mut conf = load::<ContainerSyncDaemonSettings>(etc, "container-server.conf", CONTAINER_SYNC)?;
    preset(&mut conf, "interval", |own| own.interval = super::UP_INTERVAL);
    context.container_sync(&conf, gateway)
}

impl UpkeepContext<'_> {
    fn container_sync(
        &self,
        conf: &UpkeepConf<ContainerSyncDaemonSettings>,
        gateway: Arc<dyn HttpService>,
    ) -> Result<Daemon, CommandFailure> {
        let settings = &conf.settings;
        let proxies: Result<Vec<HttpProxy>, Fault> = settings.sync_proxy.iter().map(|proxy| proxy.parse()).collect();
        let proxies = proxies.map_err(|why| CommandFailure::Usage(format!("sync_proxy in [container-sync]: {why}")))?;
        let client = self.internal_client(gateway, "Swift Container Sync", settings.request_tries);
        let containers = RingClient {
            // The other side is a gateway of another cluster, which knows no certificates of this one.
            peers: Arc::new(Peers::new(self.world.clone())),
            ..self.container_servers(settings.conn_timeout, RESPONSE_TIMEOUT)
        };
        let options = SyncOptions {
            container_time: settings.container_time,
            concurrency: settings.sync_row_concurrency,
            peers: self.sync_peers(&conf.common.swift_dir, settings),
            proxies,
            here: local_server(&conf.common, ""),
            timeouts: containers.timeouts,
        };
        let job = ContainerSyncDaemon::new(self.disks(&conf.storage, &[]), containers, client, options);
        Ok(self.daemon(conf, job, 0.0, settings.interval))
    }

    fn sync_peers(
        &self,
        swift_dir: &Path,
        settings: &ContainerSyncDaemonSettings,
    ) -> Arc<dyn Fn() -> SyncPeers + Send + Sync> {
        let realms = SyncRealms::new(swift_dir, self.world.clone());
        let allowed_hosts = settings.allowed_sync_hosts.clone();
        Arc::new(move || {
            let known = realms.now();
            let with_key = known.realms.iter().filter_map(|(name, realm)| {
                let (key, clusters) = (realm.key.clone()?, realm.clusters.clone());
                Some((name.clone(), SyncRealm { key, clusters }))
            });
            SyncPeers {
                realms: with_key.collect(),
                allowed_hosts: allowed_hosts.clone(),
            }
        })
    }
}
