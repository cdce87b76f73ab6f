//! Upkeep that speaks through a gateway of its own, which no client reaches.
//!
//! As a command each reads the gateway's pipeline from where OpenStack's does: its own file or
//! `internal-client.conf`; within `up` they share one, over what the clients' gateway knows and caches.

use super::{UpCluster, UpkeepContext, load, preset, run_as_client, sync};
use crate::cli::{Expirer, Upkeep};
use crate::failure::CommandFailure;
use crate::proxy;
use gateway::Gateway;
use peer::{HttpService, Timeouts};
use settings::{ContainerReconcilerSettings, ObjectExpirerSettings, ProxyConf, SettingsError, UpkeepConf};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{
    ContainerReconciler, Daemon, Delays, ExpirerOptions, InternalClient, MISPLACED_OBJECTS, ObjectExpirer,
    ObjectServers, ReconcilerOptions,
};

const OBJECT_EXPIRER: &str = "object-expirer";
/// The file that describes the gateway where a daemon's own file does not.
pub(super) const INTERNAL_CLIENT: &str = "internal-client.conf";
/// The expirer's own file.
const EXPIRER_CONF: &str = "object-expirer.conf";
const CONTAINER_RECONCILER: &str = "container-reconciler";
/// The reconciler's own file.
const RECONCILER_CONF: &str = "container-reconciler.conf";

/// As OpenStack's expirer waits for container servers.
const CONN_TIMEOUT: Duration = Duration::from_millis(500);
/// As OpenStack's expirer waits for the response of container servers.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Many deletions take longer than one.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Within one process a deletion costs little.
const UP_EXPIRER_CONCURRENCY: usize = 32;

/// `martlet object-expirer`.
pub fn object_expirer(expirer: &Expirer) -> Result<(), CommandFailure> {
    let path = &expirer.upkeep.conf;
    let mut conf = UpkeepConf::<ObjectExpirerSettings>::load(path, OBJECT_EXPIRER)?;
    let settings = &mut conf.settings;
    settings.processes = expirer.processes.unwrap_or(settings.processes);
    settings.process = expirer.process.unwrap_or(settings.process);
    let own_file = is_expirers_own(path);
    settings.dequeue_from_legacy |= own_file;
    let gateway = match own_file {
        true => path.clone(),
        false => settings.internal_client_conf_path.clone(),
    };
    run_as_client(OBJECT_EXPIRER, conf.beginning(), expirer.upkeep.passes(), |context| {
        context.object_expirer(&conf, context.internal_gateway(&gateway)?)
    })
}

/// `martlet container-reconciler`.
pub fn container_reconciler(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerReconcilerSettings>::load(&upkeep.conf, CONTAINER_RECONCILER)?;
    run_as_client(CONTAINER_RECONCILER, conf.beginning(), upkeep.passes(), |context| {
        context.container_reconciler(&conf, context.internal_gateway(&upkeep.conf)?)
    })
}

/// OpenStack tells by the name, too.
fn is_expirers_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains("expirer"))
}

/// What speaks through a gateway within a cluster in one process.
pub(super) fn for_up(context: &UpkeepContext<'_>, inner: &UpCluster<'_>) -> Result<Vec<Daemon>, CommandFailure> {
    let conf = ProxyConf::load_internal(&inner.etc.join(INTERNAL_CLIENT))?;
    let gateway: Arc<dyn HttpService> = proxy::build_beside(inner.gateway, context.world, &conf, inner.swift)?;
    let file = match inner.etc.join(EXPIRER_CONF).exists() {
        true => EXPIRER_CONF,
        false => "object-server.conf",
    };
    let mut expirer = load::<ObjectExpirerSettings>(inner.etc, file, OBJECT_EXPIRER)?;
    expirer.settings.dequeue_from_legacy = true;
    preset(&mut expirer, "interval", |own| own.interval = super::UP_INTERVAL);
    preset(&mut expirer, "concurrency", |own| {
        own.concurrency = UP_EXPIRER_CONCURRENCY
    });
    preset(&mut expirer, "tasks_per_second", |own| own.tasks_per_second = 0.0);
    let mut daemons = vec![
        context.object_expirer(&expirer, gateway.clone())?,
        sync::for_up(context, inner.etc, gateway)?,
    ];
    let own_file = inner.etc.join(RECONCILER_CONF);
    if own_file.exists() {
        // Its gateway must not follow links, as the others' may.
        let gateway = proxy::build_beside(
            inner.gateway,
            context.world,
            &ProxyConf::load_internal(&own_file)?,
            inner.swift,
        )?;
        let reconciler = load::<ContainerReconcilerSettings>(inner.etc, RECONCILER_CONF, CONTAINER_RECONCILER)?;
        daemons.push(context.container_reconciler(&reconciler, gateway)?);
    }
    Ok(daemons)
}

impl UpkeepContext<'_> {
    /// The gateway that `conf` describes.
    pub(super) fn internal_gateway(&self, conf: &Path) -> Result<Arc<dyn HttpService>, CommandFailure> {
        let gateway: Arc<Gateway> = self.internal_gateway_of(&ProxyConf::load_internal(conf)?)?;
        Ok(gateway)
    }

    pub(super) fn internal_gateway_of(&self, conf: &ProxyConf) -> Result<Arc<Gateway>, CommandFailure> {
        proxy::build_internal(self.world, conf, self.swift, self.rings.clone(), self.peers.clone())
    }

    /// Sends requests through a gateway.
    pub(super) fn internal_client(&self, gateway: Arc<dyn HttpService>, agent: &str, tries: u32) -> InternalClient {
        InternalClient::new(self.world.clone(), gateway, agent, tries)
    }

    fn container_reconciler(
        &self,
        conf: &UpkeepConf<ContainerReconcilerSettings>,
        gateway: Arc<dyn HttpService>,
    ) -> Result<Daemon, CommandFailure> {
        let settings = &conf.settings;
        check_share(settings.process, settings.processes)?;
        let options = ReconcilerOptions {
            account: format!("{}{MISPLACED_OBJECTS}", self.swift.auto_create_account_prefix),
            reclaim_age: settings.reclaim_age,
            concurrency: settings.concurrency,
            processes: settings.processes,
            process: settings.process,
            policies: self.swift.policies.clone(),
        };
        let client = self.internal_client(gateway, "Swift Container Reconciler", settings.request_tries);
        let containers = self.container_servers(CONN_TIMEOUT, RESPONSE_TIMEOUT);
        let job = ContainerReconciler::new(self.world.clone(), client, containers, options);
        Ok(self.daemon(conf, job, 0.0, settings.interval))
    }

    fn object_expirer(
        &self,
        conf: &UpkeepConf<ObjectExpirerSettings>,
        gateway: Arc<dyn HttpService>,
    ) -> Result<Daemon, CommandFailure> {
        let settings = &conf.settings;
        check_share(settings.process, settings.processes)?;
        let account = &settings.expiring_objects_account_name;
        let options = ExpirerOptions {
            account: format!("{}{account}", self.swift.auto_create_account_prefix),
            concurrency: settings.concurrency,
            per_second: settings.tasks_per_second,
            processes: settings.processes,
            process: settings.process,
            reclaim_age: settings.reclaim_age,
            report_interval: settings.report_interval,
            listing_limit: self.swift.limits.container_listing_limit,
            delays: delays(conf)?,
            idle: !settings.dequeue_from_legacy,
        };
        if options.idle {
            tracing::warn!("{OBJECT_EXPIRER}: dequeue_from_legacy is false: there is nothing to do; set it to true");
        }
        let client = self.internal_client(gateway, "Swift Object Expirer", settings.request_tries);
        let containers = self.container_servers(CONN_TIMEOUT, RESPONSE_TIMEOUT);
        let objects = ObjectServers {
            rings: self.replicated_rings(),
            containers: containers.ring.clone(),
            hash: containers.hash.clone(),
            peers: containers.peers.clone(),
            timeouts: Timeouts {
                connect: CONN_TIMEOUT,
                response: BATCH_TIMEOUT,
            },
        };
        let job = ObjectExpirer::new(self.world.clone(), client, containers, options).in_batches(objects);
        Ok(self.daemon(conf, job, settings.tasks_per_second, settings.interval))
    }
}

pub(super) fn check_share(process: u64, processes: u64) -> Result<(), CommandFailure> {
    match processes > 0 && process >= processes {
        true => Err(CommandFailure::Usage(format!(
            "process must be less than processes: process is {process}, processes is {processes}; processes are \
             counted from 0"
        ))),
        false => Ok(()),
    }
}

fn delays(conf: &UpkeepConf<ObjectExpirerSettings>) -> Result<Delays, SettingsError> {
    let mut delays = Delays::default();
    for (option, value) in conf.scope.iter() {
        if let Some(name) = option.strip_prefix(settings::DELAY_REAPING) {
            let expected =
                "seconds, zero or more, for delay_reaping_ACCOUNT or delay_reaping_ACCOUNT/CONTAINER, quoted";
            delays
                .add(name, value)
                .ok_or_else(|| conf.scope.wrong(option, expected))?;
        }
    }
    Ok(delays)
}
