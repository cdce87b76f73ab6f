//! The catalogue: every metric that Martlet exports to Prometheus, declared once.
//!
//! Always holds: names follow Prometheus' rules (base units, `_total` on what only grows); docs/reference/metrics.md
//! is written from here, and a test compares the two.

use std::fmt::Write;

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows while the process lives.
    Counter,
    /// It is what it is now.
    Gauge,
    /// How values are distributed.
    Histogram,
}

impl MetricKind {
    /// As the page has it.
    pub fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// As it is scraped; a histogram's without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    /// How it behaves.
    pub kind: MetricKind,
    /// Its labels, in their order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

macro_rules! catalogue {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $constant: Metric =
                Metric { name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help };
        )*
        /// All of them, in the order of the page.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

catalogue! {
    BUILD = Gauge "martlet_build" ["version"] "Always 1; the version that runs";
    REQUESTS = Counter "martlet_requests_total" ["role", "verb", "status"] "Requests that are over, by the class of their status (2xx); gone: the client did not wait for an answer";
    REQUEST_SECONDS = Histogram "martlet_request_seconds" ["role", "verb"] "Seconds from a request's head to that of its answer";
    REQUESTS_UNDER_WAY = Gauge "martlet_requests_under_way" ["role"] "Requests that have no answer yet";
    BODY_BYTES = Counter "martlet_body_bytes_total" ["role", "direction"] "Bytes of bodies, received and sent";
    CONNECTIONS = Gauge "martlet_connections" ["role"] "Connections that are open";
    CONNECTIONS_LIMIT = Gauge "martlet_connections_limit" ["role"] "Connections that may be open at a time (max_connections)";
    REFUSED = Counter "martlet_refused_total" ["role", "reason"] "Connections and requests that a server did not serve or keep: no room for one more connection (connections), for one more of its address (address), request (requests) or request of its account (account); closed to make room (idle), because headers took too long (head), too few bytes moved (slow) or long answers that wait took too much memory (memory); of the cluster's TLS, connections without it (plain), failed handshakes (handshake) and requests that the certificate's role may not make (role)";
    CLOCK_SKEW = Counter "martlet_clock_skew_writes_total" ["outcome"] "Writes of a gateway that met a stored timestamp from ahead of its clock: sent again with a later time (resent), or refused with 503, as it was further ahead than max_clock_skew (refused)";
    SILENCES = Counter "martlet_silences_total" ["role"] "Times that a device of a storage server became silent: it had requests of this server under way for silence_timeout and answered none of them";
    SILENT_DEVICES = Gauge "martlet_silent_devices" ["role"] "Devices of storage servers that are silent: this server passes them over until they answer";
    DEVICE_IN_SERVICE = Gauge "martlet_device_in_service" ["device"] "1: serves everything; 0.5: reads only; 0: out of service";
    DEVICE_BYTES = Gauge "martlet_device_bytes" ["device"] "Room on a device";
    DEVICE_FREE_BYTES = Gauge "martlet_device_free_bytes" ["device"] "Room that is left for us on a device";
    DEVICE_FILES = Gauge "martlet_device_files" ["device"] "Files (inodes) there may be on a device, where its file system has a limit for them";
    DEVICE_FREE_FILES = Gauge "martlet_device_free_files" ["device"] "Files that may still be made on a device, where that has a limit";
    DEVICE_OPERATIONS = Counter "martlet_device_operations_total" ["device"] "Reads and writes that a device's drive has ended, for all programs; not there where the kernel does not count them (tmpfs, network)";
    DEVICE_OPERATION_SECONDS = Counter "martlet_device_operation_seconds_total" ["device"] "Seconds that those took, time in the drive's queue included";
    DEVICE_BUSY = Counter "martlet_device_busy_seconds_total" ["device"] "Seconds in which a device's drive had something to do";
    DEVICE_PENDING = Gauge "martlet_async_pending" ["device"] "Listing updates that wait on a device for the object-updater, counted once a minute, up to a million";
    QUARANTINED = Gauge "martlet_quarantined" ["device", "kind"] "Damaged databases (accounts, containers) and objects (objects, objects-1 for policy 1, …) that were put aside on a device";
    POOL_WAITING = Gauge "martlet_io_waiting" ["pool"] "Blocking jobs that wait for a thread of their device (or of what else the pool is for)";
    POOL_RUNNING = Gauge "martlet_io_running" ["pool"] "Blocking jobs that run";
    POOL_LIMIT = Gauge "martlet_io_waiting_limit" ["pool"] "Blocking jobs that may wait before further ones are refused";
    UPKEEP_PASSES = Counter "martlet_upkeep_passes_total" ["daemon"] "Passes that are over";
    UPKEEP_UNDER_WAY = Gauge "martlet_upkeep_under_way" ["daemon"] "1 while a pass is under way, 0 between passes";
    UPKEEP_DONE = Gauge "martlet_upkeep_pass_done" ["daemon"] "What was dealt with in the pass under way, or in the last one";
    UPKEEP_FAILED = Gauge "martlet_upkeep_pass_failed" ["daemon"] "What the pass under way, or the last one, left for a later one";
    UPKEEP_SECONDS = Gauge "martlet_upkeep_last_pass_seconds" ["daemon"] "How long the last whole pass took";
    UPKEEP_OLDEST = Gauge "martlet_upkeep_oldest_seconds" ["daemon"] "Age of the oldest thing that waits: of an object that should have expired (object-expirer), of an entry of the queue (container-reconciler), of an event that waits (container-notifier)";
    NOTIFICATIONS_DELIVERED = Counter "martlet_notifications_delivered_total" ["target"] "Events of buckets that container-notifier has delivered to a target";
    NOTIFICATIONS_FAILED = Counter "martlet_notifications_failed_total" ["target"] "Deliveries to a target that failed; their events are tried again";
    NOTIFICATIONS_DROPPED = Counter "martlet_notifications_dropped_total" ["target"] "Events that container-notifier dropped undelivered, as they were too old (max_age) or refused too often (max_refusals); each has a line in the log";
    NOTIFICATIONS_PENDING = Gauge "martlet_notifications_pending" ["target"] "Events that wait for a target, as of the last look at its queue; of a target that does not answer only those that were looked at";
    RECON_AGE = Gauge "martlet_daemon_last_pass_age_seconds" ["daemon"] "Seconds since a daemon beside this server last said in recon_cache_path that a pass was over";
    RECON_SECONDS = Gauge "martlet_daemon_last_pass_seconds" ["daemon"] "How long that pass took";
    ASYNC_PENDING = Gauge "martlet_async_pending_containers" [] "Containers that lack updates which the object-updater could not bring to their servers in its last pass";
    ASYNC_PENDING_AGE = Gauge "martlet_async_pending_oldest_seconds" [] "Age of the oldest such update; 0 when there is none";
    EXPIRED_AGE = Gauge "martlet_expired_oldest_seconds" [] "How long the oldest object that the object-expirer left in its last pass should have been gone";
    RING = Gauge "martlet_ring" ["ring", "md5"] "Always 1; the MD5 of a ring file in swift_dir, as recon tells it";
    CERTIFICATE_END = Gauge "martlet_certificate_not_after_seconds" ["use"] "When the certificate that is shown to clients (clients) or to other nodes (cluster), or the first of its chain, ends, in seconds since 1970";
    MEMCACHED_FAILURES = Counter "martlet_memcached_failures_total" ["server"] "Calls to a memcached server of a gateway that failed: it could not be reached, was too slow or sent no valid answer";
    LOST_LINES = Counter "martlet_log_lines_lost_total" [] "Lines of the log that the process has lost: standard error could not be written, or its reader stood still";
    CLOCK = Gauge "martlet_clock_seconds" [] "What the clock of this node says, in seconds since 1970";
    STARTED = Gauge "process_start_time_seconds" [] "When the process began, in seconds since 1970";
    CPU = Counter "process_cpu_seconds_total" [] "Processor time that the process used";
    PROCESSORS = Gauge "martlet_processors" [] "Processors that the process may run on, by its affinity";
    RESIDENT = Gauge "process_resident_memory_bytes" [] "Memory that is resident";
    THREADS = Gauge "process_threads" [] "Threads of the process";
    OPEN_FILES = Gauge "process_open_fds" [] "File descriptors that are open";
    MOST_FILES = Gauge "process_max_fds" [] "File descriptors that may be open";
}

/// The page of the documentation.
pub fn reference() -> String {
    let mut text = String::from(
        "# Metrics for Prometheus\n\nWritten from `crates/telemetry/src/metrics/catalogue.rs`. How to scrape them: \
         [monitoring](../operating/monitoring.md).\n\n| metric | kind | labels | what it says |\n|---|---|---|---|\n",
    );
    for metric in ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (metric.name, metric.kind.word(), labels.join(", "));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {} |", metric.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for (index, metric) in ALL.iter().enumerate() {
            let name = metric.name;
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
            assert!(
                ALL.iter().skip(index + 1).all(|other| other.name != name),
                "{name} twice"
            );
            assert!(!metric.help.ends_with('.'), "{name}: the page puts a full stop");
        }
    }

    #[test]
    fn the_reference_page_is_as_declared() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        if std::env::var_os("MARTLET_WRITE").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            reference(),
            "MARTLET_WRITE=1 cargo test -p telemetry writes it anew"
        );
    }
}
