//! The options of the proxy, `[app:proxy-server]`, with overrides per storage policy.

use crate::affinity::{ReadAffinity, WriteAffinity};
use crate::declare::options;
use crate::kinds::{AtLeastOne, HandoffDeleteCount, HeaderNames, NodeCount, SortingMethod};
use std::collections::BTreeMap;
use std::time::Duration;
use vocabulary::PolicyIndex;

options! {
    /// Options of the proxy.
    pub struct ProxySettings {
        /// Refuse connections that do not begin with a preamble of the PROXY protocol (version 1 or 2), and
        /// believe what it says about who the client is.
        require_proxy_protocol: bool = "false",
        /// Suffix of every transaction id, to tell clusters apart.
        trans_id_suffix: String = "",
        /// Serve GET /info.
        expose_info: bool = "true",
        /// Addresses and networks (10.0.0.0/8) that may scrape the figures for Prometheus from /metrics directly:
        /// forwarded requests (X-Forwarded-For) may not. For all others there is no such page.
        metrics_clients: Vec<String> = "127.0.0.1, ::1",
        /// Key that signs administrators' requests to /info; empty refuses them.
        admin_key: String = "",
        /// Sections of /info that only administrators see; a dot separates levels.
        disallowed_sections: Vec<String> = "swift.valid_api_versions, swift.auto_create_account_prefix",
        /// Origins that any container answers to.
        cors_allow_origin: Vec<String> = "",
        /// Send CORS headers only to origins that are allowed.
        strict_cors_mode: bool = "true",
        /// Headers that every CORS answer exposes, besides the usual ones.
        cors_expose_headers: Vec<String> = "",
        /// Seconds to wait for a client to send or take data.
        client_timeout: Duration = "60.0",
        /// Seconds to wait for the next request on a connection; client_timeout when empty.
        keepalive_timeout: Option<Duration> = "",
        /// Bytes a second that a client has to send or take while it is waited for, on average over a little more than
        /// client_timeout; a slower one is answered with 408, or its connection is closed. 0 for any rate.
        min_transfer_rate: u64 = "500",
        /// Requests of one account that may be served at the same time, per worker, once it is known that they may be
        /// made; 0 for any number. Further ones are answered with 503.
        max_requests_per_account: usize = "0",
        /// Log requests that had to go to handoff nodes.
        log_handoffs: bool = "true",
        /// Seconds to remember that an account exists; a tenth of it that one does not.
        recheck_account_existence: Duration = "60",
        /// Seconds to remember that a container exists; a tenth of it that one does not.
        recheck_container_existence: Duration = "60",
        /// Bytes read from a storage server at a time.
        object_chunk_size: AtLeastOne = "65536",
        /// Bytes read from a client at a time.
        client_chunk_size: AtLeastOne = "65536",
        /// Seconds to wait for an answer of a storage server.
        node_timeout: Duration = "10",
        /// The same for GET and HEAD of objects, where another server can be asked; node_timeout when empty.
        recoverable_node_timeout: Option<Duration> = "",
        /// Seconds to wait for a connection to a storage server.
        conn_timeout: Duration = "0.5",
        /// Seconds to wait for the remaining servers once a quorum has answered.
        post_quorum_timeout: Duration = "0.5",
        /// Seconds after which a device that has requests under way and answers none of them is passed over: reads ask
        /// it last, writes go to handoffs, until it answers; 0 never passes one over.
        silence_timeout: Duration = "1.0",
        /// Seconds by which stored timestamps may be ahead of this machine's clock and still be passed by new writes;
        /// what is further ahead is logged, and writes to it are answered with 503. So are all writes while this
        /// machine's clock is further from those of most storage servers.
        max_clock_skew: Duration = "60",
        /// Seconds without an error after which a server's errors are forgotten; 0 never counts them.
        error_suppression_interval: Duration = "60.0",
        /// Errors after which a server is left alone for a while.
        error_suppression_limit: usize = "10",
        /// Authorised users may create and delete accounts.
        allow_account_management: bool = "false",
        /// Accounts of authorised users come into being when first used.
        account_autocreate: bool = "false",
        /// Containers an account may have; 0 for any number.
        max_containers_per_account: u64 = "0",
        /// Accounts to which that does not apply.
        max_containers_whitelist: Vec<String> = "",
        /// Host headers that are refused.
        deny_host_headers: Vec<String> = "",
        /// Let requests that say X-Open-Expired reach objects that have expired but are still there.
        allow_open_expired: bool = "false",
        /// Seconds a measured timing is good for, with sorting_method timing.
        timing_expiry: Duration = "300",
        /// Servers asked for one request.
        request_node_count: NodeCount = "2 * replicas",
        /// Headers that only owners see.
        swift_owner_headers: HeaderNames = "x-container-read, x-container-write, x-container-sync-key, x-container-sync-to, x-account-meta-temp-url-key, x-account-meta-temp-url-key-2, x-container-meta-temp-url-key, x-container-meta-temp-url-key-2, x-account-access-control",
    }
}

impl ProxySettings {
    /// How long to wait for a reply that another server could give instead.
    pub fn recoverable_node_timeout(&self) -> Duration {
        self.recoverable_node_timeout.unwrap_or(self.node_timeout)
    }

    /// How long an idle client connection stays open.
    pub fn keepalive_timeout(&self) -> Duration {
        self.keepalive_timeout.unwrap_or(self.client_timeout)
    }
}

options! {
    /// Options of the proxy that `[proxy-server:policy:N]` may override for objects of one policy.
    pub struct Routing {
        /// In which order replicas are asked.
        sorting_method: SortingMethod = "shuffle",
        /// Places asked first, with sorting_method affinity.
        read_affinity: ReadAffinity = "",
        /// Places written to first.
        write_affinity: WriteAffinity = "",
        /// Local servers tried for a write before any other.
        write_affinity_node_count: NodeCount = "2 * replicas",
        /// Local handoffs that a DELETE also reaches.
        write_affinity_handoff_delete_count: HandoffDeleteCount = "auto",
        /// Servers whose 404 is not believed while a rebalance is under way.
        rebalance_missing_suppression_count: usize = "1",
        /// Ask several replicas at once and take the first that answers.
        concurrent_gets: bool = "off",
        /// Seconds before the next replica is asked, with concurrent_gets; conn_timeout when empty.
        concurrency_timeout: Option<Duration> = "",
    }
}

/// [`Routing`] of every policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyRouting {
    /// For policies without a section of their own.
    pub common: Routing,
    /// `[proxy-server:policy:N]`.
    pub overrides: BTreeMap<PolicyIndex, Routing>,
}

impl PolicyRouting {
    /// Whether that is the method of any policy.
    pub fn any(&self, method: SortingMethod) -> bool {
        let mut all = std::iter::once(&self.common).chain(self.overrides.values());
        all.any(|routing| routing.sorting_method == method)
    }

    /// What holds for a policy.
    pub fn of(&self, policy: PolicyIndex) -> &Routing {
        self.overrides.get(&policy).unwrap_or(&self.common)
    }
}
