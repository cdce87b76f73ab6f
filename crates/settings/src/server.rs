//! What servers have in common: where they listen, how they log, where the devices are.
//!
//! These options may stand in `[DEFAULT]` or, with `set`, in the server's own `[app:…]`.

use crate::cluster_tls::ClusterTlsMode;
use crate::declare::options;
use crate::kinds::{AtLeastOne, FallocateReserve, LogFacility, LogLevel, WorkerCount};
use crate::priority::{IoClass, IoPriority, Niceness};
use std::path::PathBuf;
use std::time::Duration;
use vocabulary::IpNetworks;

options! {
    /// Options of every server.
    pub struct ServerCommon {
        /// Address to listen on.
        bind_ip: String = "0.0.0.0",
        /// Port to listen on. Must be given; 0 takes any free one.
        bind_port: u16 = "0",
        /// Seconds to try to bind before giving up.
        bind_timeout: Duration = "30",
        /// Connections that may wait to be accepted.
        backlog: u32 = "4096",
        /// Seconds a connection may be idle before TCP asks whether the other end is there.
        keep_idle: Duration = "600",
        /// Directory of swift.conf and the rings.
        swift_dir: PathBuf = "/etc/swift",
        /// Certificate in PEM, those that vouch for it behind it: serve TLS. A file that changes is read again.
        cert_file: Option<PathBuf> = "",
        /// Private key of the certificate in PEM, without a passphrase; in cert_file when empty.
        key_file: Option<PathBuf> = "",
        /// TLS between the nodes of the cluster, in both directions with certificates of `martlet cluster-ca`. off:
        /// none. allow: a storage server takes it, and plain connections, too; other servers are spoken to without
        /// it. prefer: likewise, but other servers are spoken to with it. require: a storage server closes plain
        /// connections.
        cluster_tls: ClusterTlsMode = "off",
        /// Certificate of this process in PEM, as `martlet cluster-ca issue` writes it. A file that changes is read
        /// again; a daemon's own section may name another one.
        cluster_tls_cert_file: Option<PathBuf> = "",
        /// Private key of that certificate in PEM; in cluster_tls_cert_file when empty.
        cluster_tls_key_file: Option<PathBuf> = "",
        /// The authorities of the cluster in PEM: those that vouch for the certificates of other nodes. A file that
        /// changes is read again.
        cluster_tls_ca_file: Option<PathBuf> = "",
        /// Servers that are spoken to without TLS whatever cluster_tls says, such as those of OpenStack: addresses,
        /// networks or host names as the rings have them, each perhaps with a port.
        cluster_tls_plain: Vec<String> = "",
        /// User the server runs as when it is started by root.
        user: Option<String> = "",
        /// Threads that serve requests, or auto for one per processor.
        workers: WorkerCount = "auto",
        /// Requests that may be served at the same time, per worker. Requests that wait for slow clients do not count
        /// while others wait for their place. A request that waits in vain for 10 seconds is answered with 503.
        max_clients: AtLeastOne = "1024",
        /// Connections that may be open at the same time; 0 for nearly half as many as the process may have files
        /// open, at most 32768. Beyond that those that are idle longest are closed.
        max_connections: usize = "0",
        /// Connections that may be open at the same time from one address; 0 for any number. Behind a load balancer
        /// that does not speak the PROXY protocol all clients have one address.
        max_connections_per_address: usize = "0",
        /// Addresses that max_connections_per_address does not hold for, such as load balancers and the nodes of the
        /// cluster. With require_proxy_protocol the address that the preamble names is compared.
        max_connections_spared: IpNetworks = "",
        /// Seconds from the first byte of a request to the end of its headers, and for a TLS handshake.
        client_header_timeout: Duration = "10",
        /// Name on every log line. The default stands for the name of the program, such as object-server.
        log_name: String = "swift",
        /// Least level that is logged.
        log_level: LogLevel = "INFO",
        /// Socket of the system's log. It is used by servers and daemons called swift-…, unless they run with
        /// --verbose.
        log_address: PathBuf = "/dev/log",
        /// Facility of lines in the system's log.
        log_facility: LogFacility = "LOG_LOCAL0",
        /// Host to send log lines to by UDP instead of to log_address.
        log_udp_host: Option<String> = "",
        /// Port there.
        log_udp_port: u16 = "514",
        /// Seconds a worker may take to finish its requests after a reload.
        stale_worker_timeout: Duration = "86400",
        /// Nice value of the process, from -20 to 19; a daemon's own section may set another one for the daemon. When
        /// empty, the process keeps the value it was started with, the object-auditor at least 10.
        nice_priority: Option<Niceness> = "",
        /// Class of the process among those that want a disk; as it is started with when empty.
        ionice_class: Option<IoClass> = "",
        /// Its priority within ionice_class, of which the idle class has none; 0 when empty.
        ionice_priority: Option<IoPriority> = "",
        /// Write each line on standard error as a JSON object. The system's log has text.
        log_json: bool = "false",
        /// Longest log line in characters; 0 for no limit.
        log_max_line_length: usize = "0",
        /// Port with nothing but the figures for Prometheus (/metrics) of this process; none when empty. Processes that
        /// share a file need ports of their own: set it in their sections. A storage server has them at its
        /// bind_port, too.
        metrics_port: Option<u16> = "",
        /// Address of metrics_port.
        metrics_ip: String = "127.0.0.1",
    }
}

options! {
    /// Options of the servers that own devices.
    pub struct StorageCommon {
        /// Directory that holds one directory (mount point) per device.
        devices: PathBuf = "/srv/node",
        /// Refuse devices that are not mounted, so that nothing lands on the root file system.
        mount_check: bool = "true",
        /// Do not reserve the space of a file before writing it.
        disable_fallocate: bool = "false",
        /// Room on a device that stays free, in bytes or as a percentage of the device.
        fallocate_reserve: FallocateReserve = "1%",
        /// false: refuse REPLICATE and SSYNC; true or empty: serve everything.
        replication_server: Option<bool> = "",
        /// Log every request.
        log_requests: bool = "true",
        /// Directory of the files that recon reads.
        recon_cache_path: PathBuf = "/var/cache/swift",
    }
}
