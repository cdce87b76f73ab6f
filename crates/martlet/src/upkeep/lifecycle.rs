//! From `container-server.conf` to container-lifecycle: its gateway, which keeps versions, and the locks of uploads.

use super::through_gateway::{INTERNAL_CLIENT, check_share};
use super::{UpCluster, UpkeepContext, load, local_server, preset, run_as_client};
use crate::cli::Upkeep;
use crate::failure::CommandFailure;
use crate::proxy;
use ::upkeep::{ContainerLifecycle, Daemon, HeldKeyLock, KeyLockRefusal, KeyLocks, LifecycleDay, LifecycleOptions};
use gateway::Gateway;
use request_pipeline::{LockRefusal, ObjectStanding, WriteLock, WriteLocks};
use settings::{ContainerLifecycleSettings, ProxyConf, ProxySettings, UpkeepConf};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, PolicyIndex};
use world::World;

const CONTAINER_LIFECYCLE: &str = "container-lifecycle";
/// Rows of a page. A step works on one, so that it ends soon after SIGTERM.
const PAGE: usize = 1000;
/// How long container servers are waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a lock of an upload's key is kept without a renewal, which comes with each page of parts.
const LEASE: Duration = Duration::from_secs(60);
/// Within one process; rules count in days.
const UP_INTERVAL: Duration = Duration::from_secs(600);
const UP_CONCURRENCY: usize = 16;

/// `martlet container-lifecycle`.
pub fn container_lifecycle(upkeep: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerLifecycleSettings>::load(&upkeep.conf, CONTAINER_LIFECYCLE)?;
    run_as_client(CONTAINER_LIFECYCLE, conf.beginning(), upkeep.passes(), |context| {
        let described = ProxyConf::load_internal_with_versions(&conf.settings.internal_client_conf_path)?;
        context.container_lifecycle(&conf, &described.proxy, context.internal_gateway_of(&described)?)
    })
}

/// Within a cluster in one process.
pub(super) fn for_up(context: &UpkeepContext<'_>, inner: &UpCluster<'_>) -> Result<Daemon, CommandFailure> {
    let described = ProxyConf::load_internal_with_versions(&inner.etc.join(INTERNAL_CLIENT))?;
    let gateway = proxy::build_beside(inner.gateway, context.world, &described, inner.swift)?;
    let mut conf = load::<ContainerLifecycleSettings>(inner.etc, "container-server.conf", CONTAINER_LIFECYCLE)?;
    preset(&mut conf, "interval", |own| own.interval = UP_INTERVAL);
    preset(&mut conf, "concurrency", |own| own.concurrency = UP_CONCURRENCY);
    preset(&mut conf, "objects_per_second", |own| own.objects_per_second = 0.0);
    context.container_lifecycle(&conf, &described.proxy, gateway)
}

impl UpkeepContext<'_> {
    fn container_lifecycle(
        &self,
        conf: &UpkeepConf<ContainerLifecycleSettings>,
        proxy: &ProxySettings,
        gateway: Arc<Gateway>,
    ) -> Result<Daemon, CommandFailure> {
        let settings = &conf.settings;
        check_share(settings.process, settings.processes)?;
        if settings.seconds_per_day > 0 {
            tracing::warn!(
                "{CONTAINER_LIFECYCLE}: seconds_per_day is {}: rules delete early; leave it out where data matter",
                settings.seconds_per_day
            );
        }
        let options = LifecycleOptions {
            concurrency: settings.concurrency,
            page: PAGE.min(self.swift.limits.container_listing_limit),
            day: match settings.seconds_per_day {
                0 => LifecycleDay::Calendar,
                seconds => LifecycleDay::Seconds(seconds),
            },
            max_clock_skew: proxy.max_clock_skew,
            policies: self.swift.policies.clone(),
            interval: settings.interval,
            processes: settings.processes,
            process: settings.process,
            hidden_prefix: self.swift.auto_create_account_prefix.clone(),
            here: local_server(&conf.common, ""),
        };
        let locks = Arc::new(LocksOfGateway {
            world: self.world.clone(),
            locks: gateway.write_locks(),
        });
        let client = self.internal_client(gateway, "Martlet Container Lifecycle", settings.request_tries);
        let containers = self.container_servers(settings.conn_timeout, RESPONSE_TIMEOUT);
        let disks = self.disks(&conf.storage, &[]);
        let job = ContainerLifecycle::new(disks, containers, client, locks, options);
        Ok(self.daemon(conf, job, settings.objects_per_second, settings.interval))
    }
}

/// The write locks of a gateway, as upkeep takes them.
struct LocksOfGateway {
    world: World,
    locks: Arc<dyn WriteLocks>,
}

struct LockOfGateway {
    lock: WriteLock,
    is_there: bool,
}

#[async_trait::async_trait]
impl KeyLocks for LocksOfGateway {
    async fn take(&self, key: EntityPath, policy: PolicyIndex) -> Result<Box<dyn HeldKeyLock>, KeyLockRefusal> {
        let mut random = [0; 16];
        self.world.random.fill(&mut random);
        let random = vocabulary::hex::encode(random);
        let lock = WriteLock::new(self.locks.clone(), key, policy, &random, CONTAINER_LIFECYCLE);
        let lock = lock.ok_or(KeyLockRefusal::Held)?;
        match lock.take(LEASE).await {
            Ok(ObjectStanding { is_there, .. }) => Ok(Box::new(LockOfGateway { lock, is_there })),
            Err(LockRefusal::Unknown) => Err(KeyLockRefusal::Unknown),
            Err(LockRefusal::Held | LockRefusal::Unavailable) => Err(KeyLockRefusal::Held),
        }
    }
}

#[async_trait::async_trait]
impl HeldKeyLock for LockOfGateway {
    fn is_there(&self) -> bool {
        self.is_there
    }

    async fn keep(&self) -> bool {
        self.lock.take(LEASE).await.is_ok_and(|standing| standing.was_kept)
    }
}
