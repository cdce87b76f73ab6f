//! Upkeep that speaks through a gateway of its own, which no client reaches.
//!
//! As a command each reads the gateway's pipeline from where OpenStack's does: its own file or
//! `internal-client.conf`; within `up` they share one, over what the clients' gateway knows and caches.

use super::{Inner, Way, load, run_over};
use crate::cli::Expirer;
use crate::failure::Failure;
use crate::proxy;
use gateway::Gateway;
use peer::HttpService;
use settings::{ObjectExpirerSettings, ProxyConf, SettingsError, UpkeepConf};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{Circle, Daemon, Delays, ExpirerOptions, InternalClient, ObjectExpirer, Pace};

const OBJECT_EXPIRER: &str = "object-expirer";
/// The file that describes the gateway where a daemon's own file does not.
const INTERNAL_CLIENT: &str = "internal-client.conf";
/// The expirer's own file.
const EXPIRER_CONF: &str = "object-expirer.conf";

/// As OpenStack's expirer waits for container servers.
const CONN_TIMEOUT: Duration = Duration::from_millis(500);
/// Likewise.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Within one process a deletion costs little.
const UP_EXPIRER_CONCURRENCY: usize = 32;

/// `martlet object-expirer`.
pub fn object_expirer(expirer: &Expirer) -> Result<(), Failure> {
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
    run_over(&conf.common, expirer.upkeep.once(), |way| {
        Ok(vec![way.object_expirer(&conf, way.internal_gateway(&gateway)?)?])
    })
}

/// OpenStack tells by the name, too.
fn is_expirers_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains("expirer"))
}

/// What speaks through a gateway within a cluster in one process.
pub(super) fn for_up(way: &Way<'_>, inner: &Inner<'_>) -> Result<Vec<Daemon>, Failure> {
    let conf = ProxyConf::load_internal(&inner.etc.join(INTERNAL_CLIENT))?;
    let gateway: Arc<dyn HttpService> = proxy::build_beside(inner.gateway, way.world, &conf, inner.swift)?;
    let file = match inner.etc.join(EXPIRER_CONF).exists() {
        true => EXPIRER_CONF,
        false => "object-server.conf",
    };
    let mut expirer = load::<ObjectExpirerSettings>(inner.etc, file, OBJECT_EXPIRER)?;
    expirer.settings.dequeue_from_legacy = true;
    if !expirer.says("interval") {
        expirer.settings.interval = super::UP_INTERVAL;
    }
    if !expirer.says("concurrency") {
        expirer.settings.concurrency = UP_EXPIRER_CONCURRENCY;
    }
    if !expirer.says("tasks_per_second") {
        expirer.settings.tasks_per_second = 0.0;
    }
    Ok(vec![way.object_expirer(&expirer, gateway)?])
}

impl Way<'_> {
    /// The gateway that `conf` describes.
    fn internal_gateway(&self, conf: &Path) -> Result<Arc<dyn HttpService>, Failure> {
        let conf = ProxyConf::load_internal(conf)?;
        let gateway: Arc<Gateway> =
            proxy::build_internal(self.world, &conf, self.swift, self.rings.clone(), self.peers.clone())?;
        Ok(gateway)
    }

    fn object_expirer(
        &self,
        conf: &UpkeepConf<ObjectExpirerSettings>,
        gateway: Arc<dyn HttpService>,
    ) -> Result<Daemon, Failure> {
        let settings = &conf.settings;
        if settings.processes > 0 && settings.process >= settings.processes {
            return Err(Failure::Usage(format!(
                "process must be less than processes: process is {}, processes is {}; processes are counted from 0",
                settings.process, settings.processes
            )));
        }
        let account = &settings.expiring_objects_account_name;
        let options = ExpirerOptions {
            account: format!("{}{account}", self.swift.auto_create_account_prefix),
            concurrency: settings.concurrency,
            per_second: settings.tasks_per_second,
            processes: settings.processes,
            process: settings.process,
            reclaim_age: settings.reclaim_age,
            report_interval: settings.report_interval,
            delays: delays(conf)?,
            idle: !settings.dequeue_from_legacy,
        };
        if options.idle {
            tracing::warn!("{OBJECT_EXPIRER}: dequeue_from_legacy is false: there is nothing to do; set it to true");
        }
        let client = InternalClient::new(
            self.world.clone(),
            gateway,
            "Swift Object Expirer",
            settings.request_tries,
        );
        let containers = Circle {
            ring: self.rings.container.clone(),
            ..self.circle(CONN_TIMEOUT, RESPONSE_TIMEOUT)
        };
        let chore = ObjectExpirer::new(self.world.clone(), client, containers, options);
        let pace = Pace {
            per_second: settings.tasks_per_second,
            interval: settings.interval,
        };
        Ok(Daemon::new(self.world.clone(), chore, pace).telling(self.recon(&conf.storage)))
    }
}

fn delays(conf: &UpkeepConf<ObjectExpirerSettings>) -> Result<Delays, SettingsError> {
    let mut delays = Delays::default();
    for (option, value) in conf.scope.iter() {
        if let Some(name) = option.strip_prefix(Delays::PREFIX) {
            let expected =
                "seconds, zero or more, for delay_reaping_ACCOUNT or delay_reaping_ACCOUNT/CONTAINER, quoted";
            delays
                .add(name, value)
                .ok_or_else(|| conf.scope.wrong(option, expected))?;
        }
    }
    Ok(delays)
}
