//! The options of `[account-replicator]` and `[container-replicator]`: the same, but for one default.

use crate::declare::options;
use crate::kinds::OptionValue;
use std::time::Duration;

options! {
    /// `[account-replicator]` of `account-server.conf`, `[container-replicator]` of `container-server.conf`.
    pub struct DatabaseReplicatorSettings {
        /// Rows sent in one request.
        per_diff: usize = "1000",
        /// Requests with rows per database, replica and pass.
        max_diffs: usize = "100",
        /// Databases that are worked on at the same time.
        concurrency: usize = "8",
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "30",
        /// The same under its older name; `interval` goes first.
        run_pause: Option<Duration> = "",
        /// Databases compared per second at most; 0 for no limit.
        databases_per_second: f64 = "50",
        /// Seconds to wait for an answer of another replica.
        node_timeout: Duration = "10",
        /// Seconds to wait for a connection to another replica.
        conn_timeout: Duration = "0.5",
        /// Seconds for which deleted things are remembered.
        reclaim_age: Duration = "604800",
        /// Let rsync compress what goes to other regions.
        rsync_compress: bool = "false",
        /// Where rsync brings databases to; `{replication_ip}::account` or `{replication_ip}::container` when
        /// empty.
        rsync_module: String = "",
        /// Replicate only databases that do not belong on their device.
        handoffs_only: bool = "false",
        /// How many replicas must have a database before it is removed where it does not belong; `auto` for
        /// all of them.
        handoff_delete: HandoffDelete = "auto",
        /// The address that the ring knows this server by, when it is not `bind_ip`.
        ring_ip: String = "",
    }
}

/// `auto` (or 0), or a number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandoffDelete(pub Option<usize>);

impl OptionValue for HandoffDelete {
    const EXPECTS: &'static str = "auto, or a number of replicas";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self(None)),
            number => Some(Self(Some(number.parse().ok()?).filter(|count| *count > 0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handoff_delete_is_auto_or_a_number() {
        let table = [
            ("auto", Some(None)),
            ("0", Some(None)),
            ("2", Some(Some(2))),
            ("two", None),
        ];
        for (text, expected) in table {
            assert_eq!(HandoffDelete::parse(text), expected.map(HandoffDelete), "{text}");
        }
    }
}
