//! The options of upkeep: sections such as `[object-updater]` in the files of the servers.
//!
//! A section may be missing: then everything has its default. What stands in `[DEFAULT]` holds unless
//! the section says otherwise.

use crate::declare::{Options, Scope, options};
use crate::ini::Document;
use crate::kinds::Concurrency;
use crate::load::shared_slips;
use crate::report::{SettingsError, Severity, Warning};
use crate::server::{ServerCommon, StorageCommon};
use crate::statsd::StatsdSettings;
use crate::{check, openstack};
use std::path::{Path, PathBuf};
use std::time::Duration;

options! {
    /// `[object-updater]` of `object-server.conf`.
    pub struct ObjectUpdaterSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "300",
        /// Listing updates that are sent at the same time.
        concurrency: usize = "8",
        /// Listing updates sent per second at most; 0 for no limit.
        objects_per_second: f64 = "50",
        /// Seconds to wait for an answer of a container server.
        node_timeout: Duration = "10",
        /// Seconds to wait for a connection to a container server.
        conn_timeout: Duration = "0.5",
    }
}

options! {
    /// `[container-updater]` of `container-server.conf`.
    pub struct ContainerUpdaterSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "300",
        /// Containers that are looked at at the same time.
        concurrency: usize = "4",
        /// Containers reported per second at most; 0 for no limit.
        containers_per_second: f64 = "50",
        /// Seconds to wait for an answer of an account server.
        node_timeout: Duration = "3",
        /// Seconds to wait for a connection to an account server.
        conn_timeout: Duration = "0.5",
        /// Seconds without further updates to an account whose update failed.
        account_suppression_time: Duration = "60",
    }
}

options! {
    /// `[object-expirer]` of `object-expirer.conf` or `object-server.conf`, besides `delay_reaping_ACCOUNT` and
    /// `delay_reaping_ACCOUNT/CONTAINER`: the seconds for which what has expired stays.
    pub struct ObjectExpirerSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "300",
        /// Seconds between log lines about the progress of a long pass.
        report_interval: Duration = "300",
        /// How often listing the queue is tried when it fails. A deletion is tried once in a pass.
        request_tries: u32 = "3",
        /// Objects that are deleted at the same time.
        concurrency: usize = "1",
        /// Objects deleted per second at most; 0 for no limit.
        tasks_per_second: f64 = "50",
        /// In how many parts the work is divided, each for a process of its own; 0 for one.
        processes: u64 = "0",
        /// Which of the parts this process does, from 0.
        process: u64 = "0",
        /// Seconds for which an object that cannot be found is looked for again.
        reclaim_age: Duration = "604800",
        /// Work on the queue, which is the only one there is; always so where the section stands in
        /// object-expirer.conf.
        dequeue_from_legacy: bool = "false",
        /// The gateway that the expirer has for itself; object-expirer.conf describes its own.
        internal_client_conf_path: PathBuf = "/etc/swift/internal-client.conf",
        /// Name of the queue's account, behind the prefix of hidden accounts.
        expiring_objects_account_name: String = "expiring_objects",
    }
}

options! {
    /// `[account-reaper]` of `account-server.conf`.
    pub struct AccountReaperSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "3600",
        /// Objects that are deleted at the same time.
        concurrency: usize = "25",
        /// Seconds for which a deleted account is left as it is, by the clocks of all its servers that answer; more
        /// than half have to.
        delay_reaping: Duration = "0",
        /// Seconds, besides those of delay_reaping, after which the log names what could not be deleted.
        reap_warn_after: Duration = "2592000",
        /// Seconds to wait for an answer of a container or object server.
        node_timeout: Duration = "10",
        /// Seconds to wait for a connection to a container or object server.
        conn_timeout: Duration = "0.5",
    }
}

options! {
    /// `[container-reconciler]` of `container-reconciler.conf`.
    pub struct ContainerReconcilerSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "30",
        /// Seconds for which an object that cannot be found is looked for again.
        reclaim_age: Duration = "604800",
        /// How often listing the queue is tried when it fails. An object is tried once in a pass.
        request_tries: u32 = "3",
        /// Objects that are moved at the same time.
        concurrency: usize = "1",
        /// In how many parts the work is divided, each for a process of its own; 0 for one.
        processes: u64 = "0",
        /// Which of the parts this process does, from 0.
        process: u64 = "0",
    }
}

options! {
    /// `[container-sync]` of `container-server.conf`.
    pub struct ContainerSyncDaemonSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "300",
        /// Seconds that a container may take in a pass.
        container_time: Duration = "60",
        /// Seconds to wait for a connection to the other side.
        conn_timeout: Duration = "5",
        /// How often reading an object that fails is tried.
        request_tries: u32 = "3",
        /// Rows of a container that are sent at the same time.
        sync_row_concurrency: usize = "8",
        /// HTTP proxies on the way to the other side, http://host:port each; every request takes one of them.
        sync_proxy: Vec<String> = "",
        /// The gateway that objects are read through.
        internal_client_conf_path: PathBuf = "/etc/swift/internal-client.conf",
        /// Hosts of full addresses in X-Container-Sync-To, as for the container server.
        allowed_sync_hosts: Vec<String> = "",
    }
}

options! {
    /// `[container-lifecycle]` of `container-server.conf`.
    pub struct ContainerLifecycleSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "21600",
        /// Objects, versions and parts that are deleted at the same time.
        concurrency: usize = "8",
        /// Objects, versions and uploads deleted per second at most; 0 for no limit.
        objects_per_second: f64 = "400",
        /// How often a page of a listing, or a step of the end of an upload or a large object, that fails is tried; the
        /// next pass does the rest.
        request_tries: u32 = "3",
        /// Seconds to wait for a connection to a server.
        conn_timeout: Duration = "0.5",
        /// In how many parts the buckets of this server are divided, each for a process of its own; 0 for one.
        processes: u64 = "0",
        /// Which of the parts this process does, from 0.
        process: u64 = "0",
        /// The gateway that deletes; versions and links are kept in it whatever its pipeline says.
        internal_client_conf_path: PathBuf = "/etc/swift/internal-client.conf",
        /// To try rules out: how many seconds a day of a rule has, counted without rounding up to midnight. It makes
        /// rules delete early, so leave it at 0, for real days, wherever data matter.
        seconds_per_day: u64 = "0",
    }
}

options! {
    /// `[container-notifier]` of `container-server.conf`.
    pub struct ContainerNotifierSettings {
        /// Seconds from one look at the queue to the next, where nothing is left to deliver.
        interval: Duration = "2",
        /// Deliveries to one target at the same time.
        concurrency: Concurrency = "8",
        /// Seconds that a delivery may take, from connecting to the last byte of the answer.
        request_timeout: Duration = "10",
        /// PEM file of the authorities that https:// targets are verified by; those that browsers trust when empty.
        cafile: Option<PathBuf> = "",
        /// Seconds between two tries of an event, or of a target that does not answer, at most. The first pause is a
        /// second, each further one twice as long.
        max_backoff: Duration = "300",
        /// Seconds after which an event that cannot be delivered is dropped, with a line in the log; 0 for never.
        max_age: Duration = "604800",
        /// How often a target may refuse an event before it is dropped, with a line in the log, counted since this
        /// daemon began; 0 for no limit. A target that does not answer refuses nothing.
        max_refusals: u32 = "0",
        /// Seconds after which it is looked whether the write of an event was made that no gateway has confirmed.
        intent_patience: Duration = "60",
        /// Seconds after which such an event is dropped if the write was not made.
        intent_grace: Duration = "3600",
        /// How often a request that fails is tried.
        request_tries: u32 = "3",
        /// In how many parts the queue is divided, each for a process of its own; 0 for one.
        processes: u64 = "0",
        /// Which of the parts this process does, from 0.
        process: u64 = "0",
        /// The gateway that the queue is read through; versions and links are kept in it whatever its pipeline says.
        /// Where gateways of clients encrypt, it needs their keymaster and encryption.
        internal_client_conf_path: PathBuf = "/etc/swift/internal-client.conf",
    }
}

/// What one kind of upkeep finds in a server's file.
#[derive(Debug, Clone)]
pub struct UpkeepConf<S> {
    /// How to log, where `swift.conf` and the rings are.
    pub common: ServerCommon,
    /// Where metrics are sent.
    pub statsd: StatsdSettings,
    /// Where the devices are.
    pub storage: StorageCommon,
    /// Its own options.
    pub settings: S,
    /// Names of its own options that the file sets.
    pub own_options: Vec<String>,
    /// Everything that holds in its section, for options whose names are the operator's.
    pub scope: Scope,
    /// Options of its section that nothing reads. The server that shares the file reports those of `[DEFAULT]`.
    pub warnings: Vec<Warning>,
    /// What is probably a slip in `[DEFAULT]`, for a test of this file. A start leaves that to the server that
    /// shares it.
    shared_slips: Vec<Warning>,
    file: PathBuf,
    section: String,
}

/// What every kind of upkeep starts with.
#[derive(Debug, Clone, Copy)]
pub struct DaemonConf<'a> {
    /// How to log, where `swift.conf` and the rings are.
    pub common: &'a ServerCommon,
    /// What to tell the operator first.
    pub warnings: &'a [Warning],
    /// What to tell besides when the configuration is tested.
    pub shared_slips: &'a [Warning],
}

impl<S: Options> UpkeepConf<S> {
    /// Reads `section` of a file or directory.
    pub fn load(path: &Path, section: &str) -> Result<Self, SettingsError> {
        Self::from_document(&Document::load(path)?, section)
    }

    /// Makes sense of a document.
    pub fn from_document(document: &Document, section: &str) -> Result<Self, SettingsError> {
        let scope = Scope::plain(document, section)?;
        let own = |(name, _): &(&str, &str)| S::TABLE.iter().any(|option| option.name == *name);
        Ok(Self {
            common: ServerCommon::read(&scope)?,
            statsd: StatsdSettings::read(&scope)?,
            storage: StorageCommon::read(&scope)?,
            settings: S::read(&scope)?,
            own_options: scope.iter().filter(own).map(|(name, _)| name.to_owned()).collect(),
            scope,
            warnings: warnings::<S>(document, section),
            shared_slips: shared_slips(document, S::TABLE),
            file: document.path.clone(),
            section: section.into(),
        })
    }

    /// Adds a warning about another option of its section that has no effect.
    pub fn warn(&mut self, option: &str, message: String) {
        self.warnings.push(Warning {
            file: self.file.clone(),
            section: self.section.clone(),
            subject: option.into(),
            severity: Severity::Ignored,
            message,
        });
    }

    /// What a process that does this upkeep starts with.
    pub fn beginning(&self) -> DaemonConf<'_> {
        DaemonConf {
            common: &self.common,
            warnings: &self.warnings,
            shared_slips: &self.shared_slips,
        }
    }

    /// Whether the file sets this option, rather than leaving it to its default.
    pub fn says(&self, option: &str) -> bool {
        self.own_options.iter().any(|name| name == option)
    }
}

/// The only section with options whose names are the operator's.
const EXPIRER: &str = "object-expirer";
/// What the expirer's options begin with whose names end in an account, or an account and a container.
pub const DELAY_REAPING: &str = "delay_reaping_";

fn warnings<S: Options>(document: &Document, name: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(section) = document.section(name) {
        let tables = [
            S::TABLE,
            ServerCommon::TABLE,
            StatsdSettings::TABLE,
            StorageCommon::TABLE,
        ];
        let mut supported: Vec<&str> = tables.iter().flat_map(|table| table.iter().map(|o| o.name)).collect();
        // The rest of these names is the operator's: an account, a container.
        let written = section.options.iter().map(|option| option.name.as_str());
        supported.extend(written.filter(|option| name == EXPIRER && option.starts_with(DELAY_REAPING)));
        let known = [
            openstack::LOGGING,
            openstack::ANONYMIZATION,
            openstack::PROCESS,
            openstack::DAEMONS,
        ];
        check::options(document, section, &supported, &known.concat(), &mut warnings);
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_nobody_reads_is_named() {
        let text = "[object-updater]\ninterval = 5\nconcurency = 3\nupdater_workers = 4\nlog_name = updates\n";
        let document = Document::parse(Path::new("object-server.conf"), text).unwrap();
        let conf = UpkeepConf::<ObjectUpdaterSettings>::from_document(&document, "object-updater").unwrap();
        let messages: Vec<_> = conf.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].ends_with("did you mean concurrency?"), "{}", messages[0]);
        assert!(
            messages[1].contains("updater_workers") && messages[1].contains("not supported"),
            "{}",
            messages[1]
        );
    }

    #[test]
    fn a_missing_section_means_defaults_and_default_holds_for_all() {
        let read = |text: &str| {
            let document = Document::parse(Path::new("object-server.conf"), text).unwrap();
            UpkeepConf::<ObjectUpdaterSettings>::from_document(&document, "object-updater").unwrap()
        };
        let conf = read("[DEFAULT]\nnode_timeout = 7\ndevices = /d\n");
        assert_eq!(conf.settings.interval, Duration::from_secs(300));
        assert_eq!(conf.settings.node_timeout, Duration::from_secs(7));
        assert_eq!(conf.storage.devices, Path::new("/d"));
        assert!(conf.says("node_timeout") && !conf.says("interval"));
        let conf = read("[object-updater]\ninterval = 5\nobjects_per_second = 0\n");
        assert_eq!(conf.settings.interval, Duration::from_secs(5));
        assert_eq!(conf.settings.objects_per_second, 0.0);
        assert_eq!(ContainerUpdaterSettings::default().concurrency, 4);
    }
}
