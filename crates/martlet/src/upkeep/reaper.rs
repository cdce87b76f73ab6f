//! From `account-server.conf` to the reaper of deleted accounts.

use super::{UpkeepContext, load, local_server, preset, run};
use crate::cli::Upkeep;
use crate::failure::CommandFailure;
use settings::{AccountReaperSettings, UpkeepConf};
use std::path::Path;
use std::time::Duration;
use upkeep::{AccountReaper, Daemon, ReaperOptions, ReaperTargets};

const ACCOUNT_REAPER: &str = "account-reaper";

/// No request waits for it, and it looks into every account.
const UP_INTERVAL: Duration = Duration::from_secs(60);

/// `martlet account-reaper`.
pub fn account_reaper(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<AccountReaperSettings>::load(&upkeep.conf, ACCOUNT_REAPER)?;
    run(conf.beginning(), upkeep.passes(), |context| {
        context.account_reaper(&conf)
    })
}

/// Within a cluster in one process.
pub(super) fn for_up(context: &UpkeepContext<'_>, etc: &Path) -> Result<Daemon, CommandFailure> {
    let mut conf = load::<AccountReaperSettings>(etc, "account-server.conf", ACCOUNT_REAPER)?;
    preset(&mut conf, "interval", |own| own.interval = UP_INTERVAL);
    Ok(context.account_reaper(&conf))
}

impl UpkeepContext<'_> {
    fn account_reaper(&self, conf: &UpkeepConf<AccountReaperSettings>) -> Daemon {
        let settings = &conf.settings;
        let accounts = self.account_servers(settings.conn_timeout, settings.node_timeout);
        let below = ReaperTargets {
            containers: self.container_servers(settings.conn_timeout, settings.node_timeout),
            objects: self.rings.objects.clone(),
        };
        let options = ReaperOptions {
            delay: settings.delay_reaping,
            warn_after: settings.reap_warn_after,
            concurrency: settings.concurrency,
            here: local_server(&conf.common, ""),
        };
        let job = AccountReaper::new(self.disks(&conf.storage, &[]), accounts, below, options);
        self.daemon(conf, job, 0.0, settings.interval)
    }
}
