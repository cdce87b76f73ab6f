//! The options of the auditors: `[object-auditor]`, `[container-auditor]`, `[account-auditor]`, and of
//! the watchers of the first.

use crate::declare::options;
use crate::kinds::OptionValue;
use std::time::Duration;

/// Seconds, or as many as suit other options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoSeconds(pub Option<Duration>);

impl OptionValue for AutoSeconds {
    const EXPECTS: &'static str = "seconds, or auto";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Some(Self(None)),
            seconds => Duration::parse(seconds).map(|seconds| Self(Some(seconds))),
        }
    }
}

impl OptionValue for Vec<u64> {
    const EXPECTS: &'static str = "whole numbers separated by commas";

    fn parse(text: &str) -> Option<Self> {
        let items = Vec::<String>::parse(text)?;
        items.iter().map(|item| item.parse().ok()).collect()
    }
}

options! {
    /// `[object-auditor]` of `object-server.conf`.
    pub struct ObjectAuditorSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "30.0",
        /// Groups of devices that are audited side by side, each at the rates below.
        concurrency: usize = "1",
        /// Objects audited per second at most; 0 for no limit.
        files_per_second: f64 = "20",
        /// Bytes read per second at most; 0 for no limit.
        bytes_per_second: f64 = "10000000",
        /// Objects per second of the scan that reads no bytes; 0 leaves it out.
        zero_byte_files_per_second: f64 = "50",
        /// Bytes read from a disk at a time.
        disk_chunk_size: usize = "65536",
        /// Seconds between two reports of figures.
        log_time: Duration = "3600",
        /// Sizes up to which objects are counted; the counts are logged after each full scan.
        object_size_stats: Vec<u64> = "",
        /// Seconds after which an unfinished file of rsync is removed; auto takes `rsync_timeout` of the
        /// object-replicator and 900 more.
        rsync_tempfile_timeout: AutoSeconds = "auto",
        /// What else looks at each object: `swift#dark_data`, or nothing.
        watchers: Vec<String> = "",
        /// Seconds after which a tombstone may be removed.
        reclaim_age: Duration = "604800",
    }
}

options! {
    /// `[object-auditor:watcher:swift#dark_data]` of `object-server.conf`.
    pub struct DarkDataSettings {
        /// What happens to an object that no container lists: log, delete or quarantine.
        action: String = "log",
        /// Seconds for which an object is left in peace after its last change.
        grace_age: Duration = "604800",
        /// Seconds to wait for an answer of a container server.
        node_timeout: Duration = "15",
        /// Seconds to wait for a connection to a container server.
        conn_timeout: Duration = "0.5",
    }
}

options! {
    /// `[container-auditor]` of `container-server.conf`.
    pub struct ContainerAuditorSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "1800",
        /// Databases audited per second at most; 0 for no limit.
        containers_per_second: f64 = "200",
    }
}

options! {
    /// `[account-auditor]` of `account-server.conf`.
    pub struct AccountAuditorSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "1800",
        /// Databases audited per second at most; 0 for no limit.
        accounts_per_second: f64 = "200",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_the_auditors() {
        assert_eq!(AutoSeconds::parse("Auto"), Some(AutoSeconds(None)));
        assert_eq!(AutoSeconds::parse("7"), Some(AutoSeconds(Some(Duration::from_secs(7)))));
        assert_eq!(AutoSeconds::parse("soon"), None);
        assert_eq!(Vec::<u64>::parse("10, 100,"), Some(vec![10, 100]));
        assert_eq!(Vec::<u64>::parse("ten"), None);
        assert_eq!(ObjectAuditorSettings::default().files_per_second, 20.0);
        assert_eq!(DarkDataSettings::default().action, "log");
        assert_eq!(ContainerAuditorSettings::default().containers_per_second, 200.0);
        assert_eq!(AccountAuditorSettings::default().interval, Duration::from_secs(1800));
    }
}
