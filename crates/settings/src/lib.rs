//! Configuration: Swift's own files become typed settings.
//!
//! Comes in: paths of `swift.conf`, `{proxy,object,container,account}-server.conf` or `conf.d`
//! directories. Goes out: [`SwiftConf`], [`ProxyConf`], [`ObjectConf`], [`ContainerConf`],
//! [`AccountConf`], each with the [`Warning`]s a start should print; and, the other way, the text of
//! such files (`write.rs`, `sample.rs`).
//! Always holds: every option has one declaration (the [`declare::Options`] tables), from which field,
//! parser, default, sample and reference come; every refusal names file, section, option and remedy.
//! Deliberately absent: the environment, command lines, acting on a setting.
//!
//! | question | file |
//! |---|---|
//! | what is a line, a section, a comment | `ini.rs`, `source.rs`, `interpolate.rs` |
//! | how is an option declared | `declare.rs`, `kinds.rs` |
//! | which options does a server have | `server.rs`, `storage.rs`, `proxy.rs` |
//! | TLS between nodes | `cluster_tls.rs` |
//! | how favoured a process is | `priority.rs` |
//! | which filters are there, and their options | `filters.rs`, `gateway_filters/`, `tempauth.rs` |
//! | accounts by prefix, options by prefix | `reseller.rs` |
//! | which options do tools have | `dispersion.rs`, `drive_audit.rs` |
//! | which options does upkeep have | `upkeep.rs`, `database_replicators.rs` |
//! | `swift.conf` | `swift_conf.rs` |
//! | a whole file at once | `load.rs` |
//! | which options are ignored, and how that is said | `check.rs`, `openstack.rs`, `report.rs` |
//! | writing such files | `write.rs`, `sample.rs` |
//!
//! Tests: beside the code, and `tests/` for OpenStack's own sample files.

pub mod affinity;
pub mod auditors;
pub mod check;
pub mod cluster_tls;
pub mod database_replicators;
pub mod declare;
pub mod dispersion;
pub mod drive_audit;
pub mod filters;
pub mod gateway_filters;
pub mod ini;
pub mod interpolate;
pub mod kinds;
pub mod load;
pub mod notification_targets;
pub mod object_replicator;
pub mod openstack;
pub mod priority;
pub mod proxy;
pub mod realms;
pub mod report;
pub mod reseller;
pub mod sample;
pub mod server;
pub mod source;
pub mod statsd;
pub mod storage;
pub mod swift_conf;
pub mod tempauth;
pub mod upkeep;
pub mod write;

pub use cluster_tls::ClusterTlsMode;
pub use filters::{Filter, FilterSpec, PipelineConf, Support};
pub use gateway_filters::{
    AuthTokenSettings, CacheSettings, CopySettings, DloSettings, EncryptionSettings, GatekeeperSettings,
    HealthcheckSettings, KeymasterOptions, KeymasterSettings, KeystoneAuthSettings, PrefixRoles, ProxyLoggingSettings,
    RootSecret, S3ApiSettings, S3TokenSettings, SloSettings, SymlinkSettings, VersionedWritesSettings,
};
pub use ini::Document;
pub use kinds::{
    FallocateReserve, HeaderNames, LogFacility, LogLevel, NodeCount, SortingMethod, UrlScheme, WorkerCount,
};
pub use load::{AccountConf, ContainerConf, ObjectConf, ProxyConf, StorageConf, unsafe_to_start};
pub use priority::{IoClass, IoPriority, Niceness};
pub use proxy::{PolicyRouting, ProxySettings, Routing};
pub use report::{SettingsError, Severity, Warning};
pub use server::{ServerCommon, StorageCommon};
pub use statsd::StatsdSettings;
pub use storage::{AccountServerSettings, ContainerServerSettings, ObjectServerSettings};
pub use swift_conf::SwiftConf;
pub use tempauth::{ResellerPrefix, TempAuthOptions, TempAuthSettings, TempAuthUser};
pub use upkeep::{
    AccountReaperSettings, ContainerLifecycleSettings, ContainerNotifierSettings, ContainerReconcilerSettings,
    ContainerSyncDaemonSettings, ContainerUpdaterSettings, DELAY_REAPING, DaemonConf, ObjectExpirerSettings,
    ObjectUpdaterSettings, UpkeepConf,
};
