//! Names that OpenStack Swift 2.38 knows and Martlet does not declare, so that a warning can tell
//! "not served" from "misspelt". Only names: what they mean is OpenStack's documentation.
//!
//! When an option becomes served, declare it in its table and take its name out here (a test checks
//! that no name stands in both).

/// Log routing, allowed in every section of every file.
pub const LOGGING: &[&str] = &["log_custom_handlers", "log_format", "log_headers", "statsd_label_mode"];

/// What only the proxy's access log serves; allowed in every section all the same.
pub const ANONYMIZATION: &[&str] = &["log_anonymization_method", "log_anonymization_salt"];

/// Processes and event loop, in `[DEFAULT]` or the app of every server.
pub const PROCESS: &[&str] = &["eventlet_debug", "eventlet_tpool_num_threads"];

/// The proxy's app.
pub const PROXY: &[&str] = &[
    "account_existence_skip_cache_pct",
    "concurrent_ec_extra_requests",
    "container_existence_skip_cache_pct",
    "container_listing_shard_ranges_skip_cache_pct",
    "container_updating_shard_ranges_skip_cache_pct",
    "namespace_avg_backend_fetch_time",
    "namespace_cache_tokens_per_session",
    "recheck_listing_shard_ranges",
    "recheck_updating_shard_ranges",
    "write_legacy_ec_crc",
];

/// The object server's `[DEFAULT]` and app.
pub const OBJECT: &[&str] = &[
    "cooperative_period",
    "slow_delete_log_threshold_seconds",
    "splice",
    "auto_create_account_prefix",
];

/// The container server's `[DEFAULT]` and app.
pub const CONTAINER: &[&str] = &[
    "allow_versions",
    "auto_create_account_prefix",
    "db_query_logging",
    "ring_check_interval",
];

/// The account server's `[DEFAULT]` and app.
pub const ACCOUNT: &[&str] = &["auto_create_account_prefix", "db_query_logging"];

/// `[proxy-server:policy:N]`.
pub const POLICY: &[&str] = &["concurrent_ec_extra_requests"];

/// `[filter:proxy-logging]`.
pub const PROXY_LOGGING: &[&str] = &[
    "access_log_address",
    "access_log_facility",
    "access_log_route",
    "access_log_udp_host",
    "access_log_udp_port",
    "statsd_emit_buffer_xfer_bytes_seconds",
    "storage_domain",
];

/// `[filter:s3api]`.
pub const S3API: &[&str] = &[
    "allow_multipart_uploads",
    "auth_pipeline_check",
    "force_swift_request_proxy_log",
];

/// `[filter:s3token]`.
pub const S3TOKEN: &[&str] = &["auth_plugin", "auth_type", "auth_version"];

/// `[filter:cache]` and `memcache.conf`.
pub const CACHE: &[&str] = &[
    "item_size_warning_threshold",
    "memcache_serialization_support",
    "tls_cafile",
    "tls_certfile",
    "tls_enabled",
    "tls_keyfile",
];

/// What daemons read from `[DEFAULT]` or sections of their own: nothing of a server's business.
pub const DAEMONS: &[&str] = &[
    "account_suppression_time",
    "accounts_per_second",
    "async_tracker_dump_count",
    "async_tracker_max_entries",
    "auto_shard",
    "broker_timeout",
    "bytes_per_second",
    "cleave_batch_size",
    "cleave_row_batch_size",
    "concurrency",
    "container_sharding_timeout",
    "container_time",
    "containers_per_second",
    "daemonize",
    "databases_per_second",
    "delay_reaping",
    "dequeue_from_legacy",
    "files_per_second",
    "handoff_delete",
    "handoffs_first",
    "handoffs_only",
    "http_timeout",
    "internal_client_conf_path",
    "interval",
    "lockup_timeout",
    "max_deferred_updates",
    "max_diffs",
    "max_objects_per_container_per_second",
    "objects_per_second",
    "per_container_ratelimit_buckets",
    "per_diff",
    "process",
    "processes",
    "reap_warn_after",
    "reclaim_age",
    "recon_lock_path",
    "replicator_workers",
    "report_interval",
    "request_tries",
    "ring_check_interval",
    "round_robin_task_cache_size",
    "rsync_bwlimit",
    "rsync_compress",
    "rsync_io_timeout",
    "rsync_module",
    "rsync_timeout",
    "run_pause",
    "slowdown",
    "stats_interval",
    "sync_method",
    "tasks_per_second",
    "updater_workers",
    "zero_byte_files_per_second",
];

/// Sections of daemons that share a file with a server.
pub const DAEMON_SECTIONS: &[&str] = &[
    "account-auditor",
    "account-reaper",
    "account-replicator",
    "container-auditor",
    "container-lifecycle",
    "container-notifier",
    "container-reconciler",
    "container-replicator",
    "container-sharder",
    "container-sync",
    "container-updater",
    "object-auditor",
    "object-expirer",
    "object-reconstructor",
    "object-relinker",
    "object-replicator",
    "object-updater",
];
