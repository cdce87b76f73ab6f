//! What an operator may set about an account or container server, with Swift's defaults.

use durable_fs::{Drives, Reserve};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::{HashPrefix, Limits, Policies};

/// The realms that containers may be synced in, with their clusters, in upper case. They may change while the server
/// runs, so they are read each time.
#[derive(Clone)]
pub struct AllowedSyncRealms(Arc<dyn Fn() -> BTreeMap<String, Vec<String>> + Send + Sync>);

impl AllowedSyncRealms {
    /// As `now` says when it is asked.
    pub fn asked(now: impl Fn() -> BTreeMap<String, Vec<String>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> BTreeMap<String, Vec<String>> {
        (self.0)()
    }
}

impl Default for AllowedSyncRealms {
    fn default() -> Self {
        Self::asked(BTreeMap::new)
    }
}

impl fmt::Debug for AllowedSyncRealms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now().fmt(f)
    }
}

/// The options of `[app:account-server]` or `[app:container-server]`, and what they need of `swift.conf`.
#[derive(Debug, Clone)]
pub struct ListingServerOptions {
    /// Where the devices are mounted (`devices`).
    pub devices: PathBuf,
    /// The health of the drives of this process.
    pub drives: Arc<Drives>,
    /// Whether a device must be a mount point (`mount_check`).
    pub mount_check: bool,
    /// Room that stays free; below it PUT answers 507.
    pub fallocate_reserve: Reserve,
    /// The cluster's hash prefix and suffix.
    pub hash_prefix: HashPrefix,
    /// The cluster's storage policies.
    pub policies: Arc<Policies>,
    /// `[swift-constraints]`.
    pub limits: Limits,
    /// Accounts and containers below it appear when first written to (`auto_create_account_prefix`).
    pub auto_create_account_prefix: String,
    /// How long an account server may take for a connection (`conn_timeout`).
    pub conn_timeout: Duration,
    /// How long an account server may take for an answer (`node_timeout`).
    pub node_timeout: Duration,
    /// How long an account server's device may answer none of its rows before it is not waited for, zero for ever
    /// (`silence_timeout`).
    pub silence_timeout: Duration,
    /// Hosts that containers may be synced to (`allowed_sync_hosts`).
    pub allowed_sync_hosts: Vec<String>,
    /// Realms that containers may be synced in (`container-sync-realms.conf`).
    pub sync_realms: AllowedSyncRealms,
    /// Databases kept open, over all devices.
    pub open_databases: usize,
    /// I/O threads per device.
    pub threads_per_disk: usize,
    /// Jobs that may wait for those threads before the device counts as overloaded (503).
    pub queue_per_disk: usize,
    /// `false`: replicators are sent elsewhere; else their verbs are served beside all others
    /// (`replication_server`).
    pub replication_server: Option<bool>,
    /// Bytes a second at which the body of a REPLICATE has to come (`min_transfer_rate`); 0 for any rate.
    pub min_transfer_rate: u64,
    /// Whether requests are written to the access log (`log_requests`).
    pub log_requests: bool,
    /// Where metrics are sent, besides those that every request has anyway.
    pub statsd: Statsd,
}

impl ListingServerOptions {
    /// Whether REPLICATE is answered.
    pub(crate) fn serves_replication(&self) -> bool {
        self.replication_server != Some(false)
    }

    /// Swift's defaults for devices below `devices` in a cluster with this hash prefix and these policies.
    pub fn new(devices: impl Into<PathBuf>, hash_prefix: HashPrefix, policies: Arc<Policies>) -> Self {
        Self {
            drives: Arc::default(),
            devices: devices.into(),
            mount_check: true,
            fallocate_reserve: Reserve::Percent(1.0),
            hash_prefix,
            policies,
            limits: Limits::default(),
            auto_create_account_prefix: ".".into(),
            conn_timeout: Duration::from_millis(500),
            node_timeout: Duration::from_secs(3),
            silence_timeout: Duration::from_secs(1),
            allowed_sync_hosts: vec![],
            sync_realms: AllowedSyncRealms::default(),
            open_databases: 512,
            threads_per_disk: 4,
            queue_per_disk: 1024,
            replication_server: None,
            min_transfer_rate: 16_384,
            log_requests: true,
            statsd: Statsd::default(),
        }
    }
}
