//! What a pass has done, in the words that `swift-recon` reads.

use placement::Device;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use telemetry::Statsd;
use vocabulary::Timestamp;

/// Counters of a pass, or of a part of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) attempted: u64,
    /// Databases that a later pass must look at again.
    pub(super) left: u64,
    /// Answers of nodes that have all of a database now.
    pub(super) success: u64,
    /// Answers of those that do not, none among them; and databases that could not be read.
    pub(super) failure: u64,
    pub(super) no_change: u64,
    pub(super) hashmatch: u64,
    pub(super) diff: u64,
    pub(super) diff_capped: u64,
    pub(super) rsync: u64,
    pub(super) remote_merge: u64,
    pub(super) remove: u64,
    /// Nodes that do not have all of a database, by address and device; all of its primaries where it could not be
    /// read.
    pub(super) failures: BTreeMap<(String, String), u64>,
}

impl Figures {
    /// Compared, found level everywhere, nothing sent.
    pub(super) fn changed_nothing(&self) -> bool {
        self.left + self.diff + self.rsync + self.remote_merge + self.remove == 0 && self.failures.is_empty()
    }

    /// What was done about one database of `device`, by OpenStack's names.
    pub(super) fn report(&self, statsd: &Statsd, device: &str, took: Duration) {
        if !statsd.is_wanted() || *self == Self::default() {
            return;
        }
        let counts = [
            ("attempts", self.attempted),
            ("successes", self.success),
            ("failures", self.failure),
            ("no_changes", self.no_change),
            ("hashmatches", self.hashmatch),
            ("diffs", self.diff),
            ("diff_caps", self.diff_capped),
            ("rsyncs", self.rsync),
            ("remote_merges", self.remote_merge),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            statsd.count(format_args!("{name}"), count);
        }
        if self.remove > 0 {
            statsd.count(format_args!("removes.{device}"), self.remove);
        }
        if self.left == 0 {
            statsd.timing(format_args!("timing"), took);
        }
    }

    /// This node does not have all of the database.
    pub(super) fn lacks(&mut self, node: &Device) {
        let at = (node.replication_ip.clone(), node.device.clone());
        *self.failures.entry(at).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Figures) {
        let sums = [
            (&mut self.attempted, other.attempted),
            (&mut self.left, other.left),
            (&mut self.success, other.success),
            (&mut self.failure, other.failure),
            (&mut self.no_change, other.no_change),
            (&mut self.hashmatch, other.hashmatch),
            (&mut self.diff, other.diff),
            (&mut self.diff_capped, other.diff_capped),
            (&mut self.rsync, other.rsync),
            (&mut self.remote_merge, other.remote_merge),
            (&mut self.remove, other.remove),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
        for (node, count) in other.failures {
            *self.failures.entry(node).or_default() += count;
        }
    }

    /// As OpenStack's replicators write them after a pass that began at `start` and took `seconds`.
    pub(super) fn to_recon(&self, start: Timestamp, seconds: f64) -> Value {
        let mut nodes = Map::new();
        for ((ip, device), count) in &self.failures {
            let node = nodes.entry(ip.as_str()).or_insert_with(|| json!({}));
            node[device] = json!(count);
        }
        json!({
            "replication_stats": {
                "attempted": self.attempted, "deferred": 0, "diff": self.diff, "diff_capped": self.diff_capped,
                "empty": 0, "failure": self.failures.values().sum::<u64>(), "failure_nodes": nodes,
                "hashmatch": self.hashmatch,
                "no_change": self.no_change, "remote_merge": self.remote_merge, "remove": self.remove,
                "rsync": self.rsync, "start": start.as_f64(), "success": self.success, "ts_repl": 0,
            },
            "replication_time": seconds,
            "replication_last": start.as_f64() + seconds,
        })
    }
}
