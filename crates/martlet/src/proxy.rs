//! From `proxy-server.conf` to a gateway.
//!
//! Always holds: what the configuration says and Martlet serves is in force; the rest has been named
//! in a warning by `settings`.

use crate::failure::CommandFailure;
use crate::metrics::{MemcacheMetrics, MetricsSetup, SilenceMetrics};
use crate::process;
use features::context::FeatureContext;
use gateway::{Gateway, GatewayOptions, Rings, Shared};
use memcache::Memcache;
use peer::{Arrival, Peers, ServerOptions};
use request_pipeline::{Feature, MemoryRoom, SharedCache};
use serde_json::Value;
use settings::server::ServerCommon;
use settings::{ProxyConf, SettingsError, SwiftConf};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use telemetry::metrics::Role;
use world::{Clock, World};

/// The gateway that `conf` describes, over these rings and peers.
pub fn build(
    world: &World,
    conf: &ProxyConf,
    swift: &SwiftConf,
    rings: Rings,
    peers: Arc<Peers>,
    metrics: &MetricsSetup,
) -> Result<Arc<Gateway>, CommandFailure> {
    let memcached = connect(world, conf)?;
    if let Some(memcached) = &memcached {
        metrics.add(Arc::new(MemcacheMetrics(memcached.clone())));
    }
    let times = Statsd::open(&conf.statsd, Role::Proxy.word(), world);
    let cache = shared(world, memcached, times);
    let gateway = make(world, conf, swift, (rings, peers), cache, features::registry::build)?;
    metrics.add(gateway.clock_skew_metrics());
    metrics.add(Arc::new(SilenceMetrics {
        role: Role::Proxy,
        silence: gateway.silence(),
    }));
    Ok(gateway)
}

/// The gateway that `conf` describes for upkeep: no client reaches it, and it checks no credentials.
pub fn build_internal(
    world: &World,
    conf: &ProxyConf,
    swift: &SwiftConf,
    rings: Rings,
    peers: Arc<Peers>,
) -> Result<Arc<Gateway>, CommandFailure> {
    // OpenStack's have names of their own for it.
    let cache = shared(world, connect(world, conf)?, Statsd::default());
    make(
        world,
        conf,
        swift,
        (rings, peers),
        cache,
        features::registry::build_internal,
    )
}

/// The gateway that `conf` describes for upkeep, over what another one knows and remembers.
pub fn build_beside(
    gateway: &Gateway,
    world: &World,
    conf: &ProxyConf,
    swift: &SwiftConf,
) -> Result<Arc<Gateway>, CommandFailure> {
    let features = features::registry::build_internal(&FeatureContext {
        conf,
        swift,
        world,
        cache: None,
        bodies: MemoryRoom::default(),
    })?;
    Ok(Arc::new(gateway.beside(features)))
}

fn make(
    world: &World,
    conf: &ProxyConf,
    swift: &SwiftConf,
    (rings, peers): (Rings, Arc<Peers>),
    cache: Option<Arc<dyn SharedCache>>,
    features: impl FnOnce(&FeatureContext<'_>) -> Result<Vec<Arc<dyn Feature>>, SettingsError>,
) -> Result<Arc<Gateway>, CommandFailure> {
    let statsd = Statsd::open(&conf.statsd, Role::Proxy.word(), world);
    let shared = Shared::new(world.clone(), options(conf, swift, statsd), rings, peers, cache.clone());
    let features = features(&FeatureContext {
        conf,
        swift,
        world,
        cache,
        bodies: MemoryRoom::default(),
    })?;
    Ok(Arc::new(Gateway::new(shared, features)))
}

/// Requests of clients that are slow, for each request that is worked at.
const SLOW_PER_SEAT: usize = 4;

/// Bounds on clients' connections.
pub fn server_options(conf: &ProxyConf, swift: &SwiftConf) -> ServerOptions {
    ServerOptions {
        max_headers: swift.limits.max_header_count(),
        max_head_size: 16 * swift.limits.max_header_size,
        idle_timeout: conf.proxy.keepalive_timeout(),
        max_requests_per_account: conf.proxy.max_requests_per_account,
        max_slow_requests: conf.common.max_clients.0.saturating_mul(SLOW_PER_SEAT),
        min_transfer_rate: conf.proxy.min_transfer_rate,
        write_timeout: conf.proxy.client_timeout,
        arrival: Arrival {
            tls: None,
            require_proxy_protocol: conf.proxy.require_proxy_protocol,
            cluster: None,
        },
        ..storage_options(&conf.common)
    }
}

/// Bounds on connections of any server. The clients of a storage server are gateways: they limit what their clients may
/// hold there, and an upload stands before several servers.
pub fn storage_options(common: &ServerCommon) -> ServerOptions {
    let max_connections = process::connections(common.max_connections);
    ServerOptions {
        max_clients: common.max_clients.0,
        max_connections,
        max_slow_requests: max_connections,
        max_connections_per_address: common.max_connections_per_address,
        max_connections_spared: common.max_connections_spared.clone(),
        head_timeout: common.client_header_timeout,
        ..ServerOptions::default()
    }
}

fn options(conf: &ProxyConf, swift: &SwiftConf, statsd: Statsd) -> GatewayOptions {
    let proxy = &conf.proxy;
    GatewayOptions {
        account_autocreate: proxy.account_autocreate,
        allow_account_management: proxy.allow_account_management,
        node_timeout: proxy.node_timeout,
        recoverable_node_timeout: proxy.recoverable_node_timeout(),
        conn_timeout: proxy.conn_timeout,
        client_timeout: proxy.client_timeout,
        post_quorum_timeout: proxy.post_quorum_timeout,
        silence_timeout: proxy.silence_timeout,
        max_clock_skew: proxy.max_clock_skew,
        recheck_account_existence: proxy.recheck_account_existence,
        recheck_container_existence: proxy.recheck_container_existence,
        error_suppression_interval: proxy.error_suppression_interval,
        error_suppression_limit: u32::try_from(proxy.error_suppression_limit).unwrap_or(u32::MAX),
        request_node_count: proxy.request_node_count,
        routing: conf.routing.clone(),
        timing_expiry: proxy.timing_expiry,
        max_containers_per_account: proxy.max_containers_per_account,
        max_containers_whitelist: proxy.max_containers_whitelist.clone(),
        deny_host_headers: proxy.deny_host_headers.clone(),
        allow_open_expired: proxy.allow_open_expired,
        swift_owner_headers: proxy
            .swift_owner_headers
            .0
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect(),
        auto_create_account_prefix: swift.auto_create_account_prefix.clone(),
        limits: swift.limits.clone(),
        trans_id_suffix: proxy.trans_id_suffix.clone(),
        cors: proxy.into(),
        log_handoffs: proxy.log_handoffs,
        statsd,
        ..GatewayOptions::default()
    }
}

/// The cache that the configuration names, if it does.
fn connect(world: &World, conf: &ProxyConf) -> Result<Option<Arc<Memcache>>, CommandFailure> {
    let Some(cache) = &conf.cache else {
        return Ok(None);
    };
    let options = memcache::MemcacheOptions {
        servers: cache.memcache_servers.clone(),
        max_connections: cache.memcache_max_connections.0,
        connect_timeout: cache.connect_timeout,
        pool_timeout: cache.pool_timeout,
        io_timeout: cache.io_timeout,
        tries: cache.tries,
        error_interval: cache.error_suppression_interval,
        error_limit: cache.error_suppression_limit,
    };
    let memcached = Memcache::new(world.clone(), options).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    Ok(Some(Arc::new(memcached)))
}

fn shared(world: &World, memcached: Option<Arc<Memcache>>, statsd: Statsd) -> Option<Arc<dyn SharedCache>> {
    let cache = GatewayCache {
        memcached: memcached?,
        statsd,
        clock: world.clock.clone(),
    };
    Some(Arc::new(cache))
}

/// memcached as the gateway's shared cache, its calls timed as OpenStack's client times them.
struct GatewayCache {
    memcached: Arc<Memcache>,
    statsd: Statsd,
    clock: Arc<dyn Clock>,
}

/// The shares of calls whose time is sent.
const OF_GETS: f64 = 0.01;
const OF_WRITES: f64 = 0.1;
const OF_COUNTS: f64 = 0.001;

impl GatewayCache {
    async fn timed<T>(&self, what: &str, share: f64, call: impl Future<Output = T>) -> T {
        if !self.statsd.is_wanted() {
            return call.await;
        }
        let began = self.clock.elapsed();
        let done = call.await;
        let took = self.clock.elapsed().saturating_sub(began);
        self.statsd
            .timing_of_share(Some(share), format_args!("memcached.{what}.timing"), took);
        done
    }
}

#[async_trait::async_trait]
impl SharedCache for GatewayCache {
    async fn get(&self, key: &str) -> Option<Value> {
        self.timed("get", OF_GETS, self.memcached.get_json(key)).await
    }

    async fn set(&self, key: &str, value: &Value, keep: Duration) {
        let set = self.memcached.set_json(key, value, keep);
        self.timed("set", OF_WRITES, set).await;
    }

    async fn delete(&self, key: &str) {
        self.timed("delete", OF_WRITES, self.memcached.delete(key)).await;
    }

    async fn increment(&self, key: &str, by: i64, keep: Duration) -> Option<u64> {
        let counted = self.memcached.incr(key, by, keep);
        self.timed("incr", OF_COUNTS, counted).await
    }
}
