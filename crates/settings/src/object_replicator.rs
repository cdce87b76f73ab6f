//! The options of `[object-replicator]`.

use crate::database_replicators::HandoffDelete;
use crate::declare::options;
use std::time::Duration;

options! {
    /// `[object-replicator]` of `object-server.conf`.
    pub struct ObjectReplicatorSettings {
        /// Seconds from the beginning of one pass to that of the next.
        interval: Duration = "30",
        /// The same under its older name; `interval` goes first.
        run_pause: Option<Duration> = "",
        /// Partitions that are worked on at the same time.
        concurrency: usize = "1",
        /// Multiplies concurrency, up to the number of devices; 0 for once. Processes in OpenStack, one here.
        replicator_workers: usize = "0",
        /// As for the object server: over 0, a device is this server's whatever port the ring gives it.
        servers_per_port: usize = "0",
        /// How objects travel: rsync, or ssync.
        sync_method: String = "rsync",
        /// Seconds that a call of rsync may take.
        rsync_timeout: Duration = "900",
        /// Kilobytes per second that rsync may send; 0 for no limit.
        rsync_bwlimit: String = "0",
        /// Seconds without progress, and for a connection, after which rsync gives up.
        rsync_io_timeout: String = "30",
        /// Let rsync compress what goes to other regions.
        rsync_compress: bool = "no",
        /// Where rsync brings objects to; `{replication_ip}::object` when empty.
        rsync_module: String = "",
        /// Longest line about a failure of rsync in characters; 0 for no limit.
        rsync_error_log_line_length: usize = "0",
        /// Log each file that rsync brings, with level DEBUG.
        log_rsync_transfers: bool = "true",
        /// Seconds to wait for an answer of another server.
        node_timeout: Duration = "10",
        /// Seconds to wait for a connection to another server.
        conn_timeout: Duration = "0.5",
        /// Seconds to wait for what takes longer: hashes, a piece of an exchange.
        http_timeout: Duration = "60",
        /// Seconds for which tombstones are kept.
        reclaim_age: Duration = "604800",
        /// Work first on partitions that do not belong on their device, and on others only in a pass in which all of
        /// those got home.
        handoffs_first: bool = "false",
        /// How many replicas must have an object before it is removed where it does not belong; `auto` for
        /// all of them.
        handoff_delete: HandoffDelete = "auto",
        /// The address that the ring knows this server by, when it is not `bind_ip`.
        ring_ip: String = "",
    }
}
