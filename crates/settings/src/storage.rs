//! The options of the object, container and account servers, `[app:object-server]` and its kin.

use crate::declare::options;
use crate::kinds::HeaderNames;
use std::time::Duration;

options! {
    /// Options of the object server.
    pub struct ObjectServerSettings {
        /// Seconds to wait for an answer of another server.
        node_timeout: Duration = "3",
        /// Seconds to wait for a connection to another server.
        conn_timeout: Duration = "0.5",
        /// Seconds to wait for a container server before the update is left to the updater.
        container_update_timeout: Duration = "1.0",
        /// Seconds after which a container server's device that has updates under way and answers none of them is
        /// passed over: its updates are left to the updater at once, until it answers; 0 never passes one over.
        silence_timeout: Duration = "1.0",
        /// Seconds to wait for the next piece of a request.
        client_timeout: Duration = "60.0",
        /// Bytes a second at which the bodies of SSYNC and DELETES have to come while they are waited for, on average
        /// over client_timeout; a slower one is ended with 408. An offer of SSYNC has some 60 bytes, for which the
        /// sender's disk may seek a while. 0 for any rate, though not for client_timeout without a byte.
        min_transfer_rate: u64 = "100",
        /// Bytes read from the network at a time.
        network_chunk_size: usize = "65536",
        /// Bytes read from or written to a disk at a time.
        disk_chunk_size: usize = "65536",
        /// Seconds after which a tombstone may be removed.
        reclaim_age: Duration = "604800",
        /// Seconds a file that is not durable yet is left alone.
        commit_window: Duration = "60.0",
        /// Longest time in seconds that an upload may take.
        max_upload_time: Duration = "86400",
        /// Least time in seconds that a PUT, POST or DELETE takes.
        slow: Duration = "0",
        /// Largest object in bytes whose pages stay in the system's cache after a GET.
        keep_cache_size: u64 = "5242880",
        /// Keep pages of objects that only authorised users may read.
        keep_cache_private: bool = "false",
        /// Keep pages of large-object manifests.
        keep_cache_slo_manifest: bool = "false",
        /// Percentage of full GETs whose checksum is verified.
        etag_validate_pct: f64 = "100",
        /// Mebibytes after which a file being written is synced; 0 syncs at the end only.
        mb_per_sync: u64 = "512",
        /// Over 0: listen on every port that the object rings give devices of this machine, besides bind_port. Serving
        /// processes of each port in OpenStack; here one serves all ports, as disks have threads of their own.
        servers_per_port: usize = "0",
        /// The address that the rings know this server by, when it is not bind_ip.
        ring_ip: String = "",
        /// SSYNC exchanges that other nodes may have with this server at the same time; 0 for any number.
        replication_concurrency: usize = "4",
        /// Likewise on one device; up to 16 writes of each are under way at the same time.
        replication_concurrency_per_device: usize = "1",
        /// Seconds that an exchange waits for its device and its partition.
        replication_lock_timeout: Duration = "15",
        /// Failed requests of an exchange that end it, if they are too large a share.
        replication_failure_threshold: u64 = "100",
        /// The share of failed to successful requests that is too large.
        replication_failure_ratio: f64 = "1.0",
        /// Headers, besides the metadata, that are kept with an object.
        allowed_headers: HeaderNames = "Content-Disposition, Content-Encoding, X-Delete-At, X-Object-Manifest, X-Static-Large-Object, Cache-Control, Content-Language, Expires, X-Robots-Tag",
    }
}

options! {
    /// Options of the container server.
    pub struct ContainerServerSettings {
        /// Seconds to wait for an answer of an account server.
        node_timeout: Duration = "3",
        /// Seconds to wait for a connection to an account server.
        conn_timeout: Duration = "0.5",
        /// Seconds after which an account server's device that has updates under way and answers none of them is no
        /// longer waited for: its updates are left to the updater until it answers; 0 waits for it always.
        silence_timeout: Duration = "1.0",
        /// Hosts that container sync may reach without a realm, at any port. Clients choose among them, so name no host
        /// whose other services trust who reaches them, this machine (OpenStack's default) least of all.
        allowed_sync_hosts: Vec<String> = "",
        /// Bytes a second at which the body of a REPLICATE has to come while it is waited for, on average over a
        /// minute; a slower one is answered with 408. 0 for any rate, though not for a minute without a byte.
        min_transfer_rate: u64 = "16384",
        /// Reserve space for databases before it is needed.
        db_preallocation: bool = "off",
    }
}

options! {
    /// Options of the account server.
    pub struct AccountServerSettings {
        /// Bytes a second at which the body of a REPLICATE has to come while it is waited for, on average over a
        /// minute; a slower one is answered with 408. 0 for any rate, though not for a minute without a byte.
        min_transfer_rate: u64 = "16384",
        /// Reserve space for databases before it is needed.
        db_preallocation: bool = "off",
    }
}
