//! What an operator can tell a gateway: the options of `[app:proxy-server]` that it serves.
//!
//! Always holds: the field names are the option names; defaults are Swift's.

use request_pipeline::cors::CorsSettings;
use settings::{NodeCount, PolicyRouting};
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::Limits;

/// See the sample `proxy-server.conf` for what each means.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names are the documented option names")]
pub struct GatewayOptions {
    pub account_autocreate: bool,
    pub allow_account_management: bool,
    pub node_timeout: Duration,
    pub recoverable_node_timeout: Duration,
    pub conn_timeout: Duration,
    pub client_timeout: Duration,
    pub post_quorum_timeout: Duration,
    /// How long a device may answer none of its requests before it is passed over; zero for ever.
    pub silence_timeout: Duration,
    /// How far stored timestamps may move the clock of writes ahead of the machine's.
    pub max_clock_skew: Duration,
    pub recheck_account_existence: Duration,
    pub recheck_container_existence: Duration,
    pub error_suppression_interval: Duration,
    pub error_suppression_limit: u32,
    /// Nodes asked at most per read, as a multiple of the replicas or a number.
    pub request_node_count: NodeCount,
    /// In which order nodes are asked, by policy.
    pub routing: PolicyRouting,
    /// How long a measured timing is good for.
    pub timing_expiry: Duration,
    pub max_containers_per_account: u64,
    pub max_containers_whitelist: Vec<String>,
    pub deny_host_headers: Vec<String>,
    pub allow_open_expired: bool,
    /// Lower case.
    pub swift_owner_headers: Vec<String>,
    pub auto_create_account_prefix: String,
    pub expiring_objects_container_divisor: u64,
    pub expiring_objects_account_name: String,
    pub limits: Limits,
    pub trans_id_suffix: String,
    /// `cors_allow_origin`, `cors_expose_headers`, `strict_cors_mode`.
    pub cors: CorsSettings,
    /// How long what is cached in this process is believed without asking memcached again.
    pub local_cache: Duration,
    pub log_handoffs: bool,
    /// Where metrics go.
    pub statsd: Statsd,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        let owner_headers = "x-container-read x-container-write x-container-sync-key x-container-sync-to \
            x-account-meta-temp-url-key x-account-meta-temp-url-key-2 x-container-meta-temp-url-key \
            x-container-meta-temp-url-key-2 x-account-access-control";
        Self {
            account_autocreate: false,
            allow_account_management: false,
            node_timeout: Duration::from_secs(10),
            recoverable_node_timeout: Duration::from_secs(10),
            conn_timeout: Duration::from_millis(500),
            client_timeout: Duration::from_secs(60),
            post_quorum_timeout: Duration::from_millis(500),
            silence_timeout: Duration::from_secs(1),
            max_clock_skew: Duration::from_secs(60),
            recheck_account_existence: Duration::from_secs(60),
            recheck_container_existence: Duration::from_secs(60),
            error_suppression_interval: Duration::from_secs(60),
            error_suppression_limit: 10,
            request_node_count: NodeCount::TimesReplicas(2),
            routing: PolicyRouting::default(),
            timing_expiry: Duration::from_secs(300),
            max_containers_per_account: 0,
            max_containers_whitelist: vec![],
            deny_host_headers: vec![],
            allow_open_expired: false,
            swift_owner_headers: owner_headers.split_whitespace().map(Into::into).collect(),
            auto_create_account_prefix: ".".into(),
            expiring_objects_container_divisor: 86_400,
            expiring_objects_account_name: "expiring_objects".into(),
            limits: Limits::default(),
            trans_id_suffix: String::new(),
            cors: CorsSettings {
                allow_origin: vec![],
                expose_headers: vec![],
                strict: true,
            },
            local_cache: Duration::from_secs(1),
            log_handoffs: true,
            statsd: Statsd::default(),
        }
    }
}
