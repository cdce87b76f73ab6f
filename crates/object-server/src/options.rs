//! What an operator may set about an object server, with Swift's defaults.

use std::sync::Arc;
use std::time::Duration;
use storage_shell::MinimumRate;
use telemetry::Statsd;
use vocabulary::{HashPrefix, Limits, Policies, expiry_queue};

/// The options of `[app:object-server]`, and what it needs of `swift.conf`.
#[derive(Debug, Clone)]
pub struct ObjectServerOptions {
    /// The cluster's hash prefix and suffix.
    pub hash_prefix: HashPrefix,
    /// The cluster's storage policies.
    pub policies: Arc<Policies>,
    /// `[swift-constraints]`.
    pub limits: Limits,
    /// How long a container server may take for a connection (`conn_timeout`).
    pub conn_timeout: Duration,
    /// How long a container server may take for an answer (`node_timeout`).
    pub node_timeout: Duration,
    /// How long an acknowledgement waits for container servers (`container_update_timeout`).
    pub container_update_timeout: Duration,
    /// How long a container server's device may answer none of its rows before those are kept at once, zero for ever
    /// (`silence_timeout`).
    pub silence_timeout: Duration,
    /// How long the next piece of a request body may take (`client_timeout`).
    pub client_timeout: Duration,
    /// Bytes a second at which the bodies of SSYNC and DELETES have to come, on average over `client_timeout`; 0 for
    /// any rate (`min_transfer_rate`).
    pub min_transfer_rate: u64,
    /// How long a whole upload may take (`max_upload_time`).
    pub max_upload_time: Duration,
    /// Headers besides `X-Object-Meta-*` and the system's that stay with an object, in lower case
    /// (`allowed_headers`).
    pub allowed_headers: Vec<String>,
    /// The account whose containers say what expires when.
    pub expiring_objects_account: String,
    /// How many seconds of expirations share a container.
    pub expiring_objects_container_divisor: u64,
    /// I/O threads per device.
    pub threads_per_disk: usize,
    /// Jobs that may wait for those threads before the device counts as overloaded (503).
    pub queue_per_disk: usize,
    /// Whether requests are written to the access log (`log_requests`).
    pub log_requests: bool,
    /// Where metrics are sent, besides those that every request has anyway.
    pub statsd: Statsd,
    /// What other nodes' upkeep may do here.
    pub replication: ReplicationOptions,
}

/// What other nodes' upkeep may do here.
#[derive(Debug, Clone)]
pub struct ReplicationOptions {
    /// Whether REPLICATE and SSYNC are answered at all (`replication_server`).
    pub serves: bool,
    /// SSYNC exchanges at a time, 0 for any number (`replication_concurrency`).
    pub concurrency: usize,
    /// SSYNC exchanges at a time on one device, 0 for any number (`replication_concurrency_per_device`).
    pub concurrency_per_device: usize,
    /// Objects that one exchange may bring, each of which takes 18 bytes of memory. No operator needs to set this.
    pub most_wishes: usize,
    /// How long an exchange waits for its device and its partition (`replication_lock_timeout`).
    pub lock_timeout: Duration,
    /// Fewer requests that fail do not end an exchange (`replication_failure_threshold`).
    pub failure_threshold: u64,
    /// Nor do more, when they are no larger a share of those that succeed (`replication_failure_ratio`).
    pub failure_ratio: f64,
}

impl Default for ReplicationOptions {
    fn default() -> Self {
        Self {
            serves: true,
            concurrency: 4,
            concurrency_per_device: 1,
            most_wishes: 1 << 20,
            lock_timeout: Duration::from_secs(15),
            failure_threshold: 100,
            failure_ratio: 1.0,
        }
    }
}

/// `allowed_headers` of a server that sets none.
const ALLOWED_HEADERS: [&str; 9] = [
    "content-disposition",
    "content-encoding",
    "x-delete-at",
    "x-object-manifest",
    "x-static-large-object",
    "cache-control",
    "content-language",
    "expires",
    "x-robots-tag",
];

impl ObjectServerOptions {
    /// Swift's defaults for a cluster with this hash prefix and these policies.
    pub fn new(hash_prefix: HashPrefix, policies: Arc<Policies>) -> Self {
        Self {
            hash_prefix,
            policies,
            limits: Limits::default(),
            conn_timeout: Duration::from_millis(500),
            node_timeout: Duration::from_secs(3),
            container_update_timeout: Duration::from_secs(1),
            silence_timeout: Duration::from_secs(1),
            client_timeout: Duration::from_secs(60),
            min_transfer_rate: 100,
            max_upload_time: Duration::from_secs(86_400),
            allowed_headers: ALLOWED_HEADERS.map(String::from).to_vec(),
            expiring_objects_account: expiry_queue::ACCOUNT.into(),
            expiring_objects_container_divisor: expiry_queue::DIVISOR,
            threads_per_disk: 4,
            queue_per_disk: 256,
            log_requests: true,
            statsd: Statsd::default(),
            replication: ReplicationOptions::default(),
        }
    }

    /// For the bodies of other nodes' upkeep.
    pub(crate) fn minimum_rate(&self) -> MinimumRate {
        MinimumRate {
            bytes: self.min_transfer_rate,
            window: self.client_timeout,
        }
    }
}
