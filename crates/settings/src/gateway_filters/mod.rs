//! The options of the filters that Martlet serves, besides TempAuth (`tempauth.rs`).

mod copy;
mod encryption;
mod keystone;
mod large_objects;
mod symlink;
mod versioned_writes;

pub use copy::CopySettings;
pub use encryption::{EncryptionSettings, KeymasterOptions, KeymasterSettings, MetaVersion, RootSecret};
mod bulk;
mod small;
mod tempurl;

pub use bulk::BulkSettings;
pub use keystone::{AUTHTOKEN_KNOWN, AuthTokenSettings, KeystoneAuthOptions, KeystoneAuthSettings, PrefixRoles};
pub use large_objects::{DloSettings, SloSettings};
pub use small::{CrossdomainSettings, EtagQuoterSettings, NameCheckSettings};
pub use symlink::SymlinkSettings;
pub use tempurl::{FormPostSettings, TempUrlSettings};
pub use versioned_writes::VersionedWritesSettings;
mod cname_lookup;
mod container_sync;
mod domain_remap;
mod list_endpoints;
mod ratelimit;
mod read_only;
mod recon;
mod s3api;
mod staticweb;

use crate::declare::options;
use crate::kinds::{AtLeastOne, LogLevel};
use std::path::PathBuf;
use std::time::Duration;

pub use cname_lookup::{CnameLookupSettings, Nameservers};
pub use container_sync::ContainerSyncSettings;
pub use domain_remap::DomainRemapSettings;
pub use list_endpoints::ListEndpointsSettings;
pub use ratelimit::{RatelimitOptions, RatelimitSettings, SizeLimit};
pub use read_only::ReadOnlySettings;
pub use recon::ReconSettings;
pub use s3api::{S3ApiSettings, S3TokenSettings};
pub use staticweb::StaticwebSettings;

options! {
    /// `[filter:healthcheck]`.
    pub struct HealthcheckSettings {
        /// A file whose presence makes /healthcheck answer 503.
        disable_path: Option<PathBuf> = "",
    }
}

options! {
    /// `[filter:gatekeeper]`.
    pub struct GatekeeperSettings {
        /// Set clients' X-Timestamp aside, so that only servers say when something was written.
        shunt_inbound_x_timestamp: bool = "true",
        /// Let clients reach reserved names with X-Backend-Allow-Reserved-Names; for tests only.
        allow_reserved_names_header: bool = "false",
    }
}

options! {
    /// `[filter:proxy-logging]`.
    pub struct ProxyLoggingSettings {
        /// Name on every access line; log_name when empty.
        access_log_name: Option<String> = "",
        /// Level of access lines.
        access_log_level: LogLevel = "INFO",
        /// Log the request's headers.
        access_log_headers: bool = "false",
        /// The headers to log, with access_log_headers; all when empty.
        access_log_headers_only: Vec<String> = "",
        /// How many characters of tokens and signatures are logged.
        reveal_sensitive_prefix: usize = "16",
        /// The access line: fields in braces, with a transformer behind a dot, as in {path.anonymized}.
        log_msg_template: String = "{client_ip} {remote_addr} {end_time.datetime} {method} {path} {protocol} {status_int} {referer} {user_agent} {auth_token} {bytes_recvd} {bytes_sent} {client_etag} {transaction_id} {headers} {request_time} {source} {log_info} {start_time} {end_time} {policy_index} {access_user_id}",
        /// What anonymized fields are hashed with: MD5, SHA1, SHA224, SHA256, SHA384 or SHA512.
        log_anonymization_method: String = "MD5",
        /// What goes before an anonymized field to be hashed with it.
        log_anonymization_salt: String = "",
        /// Host that takes StatsD metrics; log_statsd_host when empty.
        access_log_statsd_host: Option<String> = "",
        /// Its port; log_statsd_port when empty.
        access_log_statsd_port: Option<u16> = "",
        /// Share of metrics that is sent; log_statsd_default_sample_rate when empty.
        access_log_statsd_default_sample_rate: Option<f64> = "",
        /// Multiplies it; log_statsd_sample_rate_factor when empty.
        access_log_statsd_sample_rate_factor: Option<f64> = "",
        /// First part of metrics' names; log_statsd_metric_prefix when empty.
        access_log_statsd_metric_prefix: Option<String> = "",
        /// Verbs that have metrics of their own; the others are BAD_METHOD.
        log_statsd_valid_http_methods: Vec<String> = "GET, HEAD, POST, PUT, DELETE, COPY, OPTIONS, UPDATE",
    }
}

options! {
    /// `[filter:cache]` and the `[memcache]` section of `memcache.conf`.
    pub struct CacheSettings {
        /// Servers of memcached, host:port separated by commas.
        memcache_servers: Vec<String> = "127.0.0.1:11211",
        /// Connections to each server.
        memcache_max_connections: AtLeastOne = "2",
        /// Seconds to wait for a connection.
        connect_timeout: Duration = "0.3",
        /// Seconds to wait for a connection from the pool.
        pool_timeout: Duration = "1.0",
        /// Servers to try when one fails.
        tries: usize = "3",
        /// Seconds to wait for a reply.
        io_timeout: Duration = "2.0",
        /// Seconds without an error after which a server's errors are forgotten; 0 never counts them.
        error_suppression_interval: Duration = "60.0",
        /// Errors after which a server is left alone for a while.
        error_suppression_limit: usize = "10",
    }
}
