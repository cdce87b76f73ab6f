//! What is counted in a pass, and how recon tells it.

use parking_lot::Mutex;
use placement::Device;
use serde_json::{Map, Value, json};
use std::time::Duration;
use telemetry::Statsd;

/// The numbers of a pass; shared by its tasks.
#[derive(Default)]
pub(super) struct Tally {
    counts: Mutex<Counts>,
    pub(super) statsd: Statsd,
}

#[derive(Default)]
struct Counts {
    attempted: u64,
    failure: u64,
    hashmatch: u64,
    remove: u64,
    rsync: u64,
    success: u64,
    suffix_count: u64,
    suffix_hash: u64,
    suffix_sync: u64,
    /// Address → device → failures.
    failure_nodes: Map<String, Value>,
}

impl Tally {
    pub(super) fn begin(&self) {
        *self.counts.lock() = Counts::default();
    }

    /// A partition is looked at.
    pub(super) fn attempted(&self) {
        self.counts.lock().attempted += 1;
    }

    /// A partition of `device` is looked at that belongs there, or goes.
    pub(super) fn begins(&self, what: &str, device: &str) {
        self.statsd.count(format_args!("partition.{what}.count.{device}"), 1);
    }

    /// It has been seen to.
    pub(super) fn ended(&self, what: &str, took: Duration) {
        self.statsd.timing(format_args!("partition.{what}.timing"), took);
    }

    /// Suffixes were found, some of which had to be hashed.
    pub(super) fn hashed(&self, found: usize, computed: usize) {
        if computed > 0 {
            self.statsd.count(format_args!("suffix.hashes"), computed as u64);
        }
        let mut counts = self.counts.lock();
        counts.suffix_count += found as u64;
        counts.suffix_hash += computed as u64;
    }

    /// A node has the same.
    pub(super) fn matched(&self) {
        self.counts.lock().hashmatch += 1;
    }

    /// Suffixes are sent to a primary that lacks them.
    pub(super) fn synced(&self, suffixes: usize) {
        if suffixes > 0 {
            self.statsd.count(format_args!("suffix.syncs"), suffixes as u64);
        }
        self.counts.lock().suffix_sync += suffixes as u64;
    }

    /// A node is sent something, by whatever method: OpenStack Swift's replicator calls that `rsync` too.
    pub(super) fn sent(&self) {
        self.counts.lock().rsync += 1;
    }

    /// A partition was removed.
    pub(super) fn removed(&self) {
        self.counts.lock().remove += 1;
    }

    /// So many of a partition's nodes have what they should have.
    pub(super) fn succeeded(&self, nodes: usize) {
        self.counts.lock().success += nodes as u64;
    }

    /// A node does not have what it should have.
    pub(super) fn failed(&self, node: &Device) {
        let mut counts = self.counts.lock();
        counts.failure += 1;
        let devices = counts.failure_nodes.entry(node.replication_ip.clone());
        let devices = devices.or_insert_with(|| Value::Object(Map::new()));
        if let Some(devices) = devices.as_object_mut() {
            let count = devices.get(&node.device).and_then(Value::as_u64).unwrap_or(0);
            devices.insert(node.device.clone(), json!(count + 1));
        }
    }

    /// As OpenStack Swift's replicator tells it: times in minutes.
    pub(super) fn figures(&self, now: f64, seconds: f64) -> Value {
        let counts = self.counts.lock();
        let stats = json!({
            "attempted": counts.attempted,
            "failure": counts.failure,
            "failure_nodes": counts.failure_nodes,
            "hashmatch": counts.hashmatch,
            "remove": counts.remove,
            "rsync": counts.rsync,
            "success": counts.success,
            "suffix_count": counts.suffix_count,
            "suffix_hash": counts.suffix_hash,
            "suffix_sync": counts.suffix_sync,
        });
        json!({
            "replication_stats": stats,
            "replication_time": seconds / 60.0,
            "replication_last": now,
            "object_replication_time": seconds / 60.0,
            "object_replication_last": now,
        })
    }
}

/// The figures of a pass once more for each of its devices (`replicator_workers`): those of the worker that had the
/// device, as OpenStack's are; one worker here has them all.
pub(super) fn of_each(figures: &mut Value, devices: &[String]) {
    let same = |device: &String| (device.clone(), figures.clone());
    let each: Map<String, Value> = devices.iter().map(same).collect();
    if let Some(figures) = figures.as_object_mut() {
        figures.insert("object_replication_per_disk".into(), Value::Object(each));
    }
}
