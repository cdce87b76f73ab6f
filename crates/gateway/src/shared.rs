//! What all requests share: [`Shared`].
//!
//! Always holds: timestamps this gateway gives to writes are unique and never go back.

use crate::info_cache::InfoCache;
use crate::options::GatewayOptions;
use crate::rings::Rings;
use crate::suppression::Suppression;
use crate::timings::Timings;
use http::HeaderValue;
use peer::Peers;
use request_pipeline::{ClientRequest, Response, SharedCache, reply};
use settings::SortingMethod;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vocabulary::Timestamp;
use world::World;

/// What all requests share.
pub struct Shared {
    pub(crate) world: World,
    pub(crate) options: GatewayOptions,
    pub(crate) rings: Rings,
    pub(crate) peers: Arc<Peers>,
    pub(crate) suppression: Suppression,
    pub(crate) timings: Timings,
    /// Whether any policy asks by timing.
    pub(crate) measures: bool,
    pub(crate) cache: InfoCache,
    last_timestamp: AtomicU64,
}

impl Shared {
    /// `memcached` is absent where none is configured.
    pub fn new(
        world: World,
        options: GatewayOptions,
        rings: Rings,
        peers: Arc<Peers>,
        memcached: Option<Arc<dyn SharedCache>>,
    ) -> Arc<Self> {
        let (limit, interval) = (options.error_suppression_limit, options.error_suppression_interval);
        let suppression = Suppression::new(world.clone(), limit, interval, options.statsd.clone());
        let timings = Timings::new(world.clone(), options.timing_expiry);
        let measures = options.routing.any(SortingMethod::Timing);
        let cache = InfoCache::new(world.clone(), memcached, &options);
        Arc::new(Self {
            world,
            options,
            rings,
            peers,
            suppression,
            timings,
            measures,
            cache,
            last_timestamp: AtomicU64::new(0),
        })
    }

    /// The timestamp of a write: the one that a feature has set, else a new one. (Clients' own are set aside
    /// by the gatekeeper.)
    pub(crate) fn timestamp_of(&self, request: &ClientRequest) -> Result<Timestamp, Response> {
        let Some(wanted) = request.header("x-timestamp") else {
            return Ok(self.new_timestamp());
        };
        let text = format!("X-Timestamp should be a UNIX timestamp float value; was '{wanted}'");
        wanted.parse().map_err(|_| reply::plain(400, text))
    }

    /// The answer to a client that went away while it sent an object.
    pub(crate) fn client_left(&self) -> Response {
        self.options.statsd.increment("object.client_disconnects");
        reply::status(reply::CLIENT_DISCONNECT)
    }

    /// The answer to one that sends nothing for too long.
    pub(crate) fn client_stalled(&self) -> Response {
        self.options.statsd.increment("object.client_timeouts");
        reply::status(408)
    }

    /// A timestamp for a write, later than all before.
    pub(crate) fn new_timestamp(&self) -> Timestamp {
        let now = self.world.clock.now();
        let next = |last: u64| Some(now.ticks().max(last + 1));
        // The closure never answers `None`, so both arms hold the value before.
        let last = match self
            .last_timestamp
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        {
            Ok(last) | Err(last) => last,
        };
        Timestamp::from_ticks(now.ticks().max(last + 1)).unwrap_or(now)
    }
}

/// What accounts, containers and objects have.
pub(crate) const VERBS: &str = "DELETE, GET, HEAD, OPTIONS, POST, PUT";

/// The answer to a verb that a resource does not have.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = reply::status(405);
    response
        .headers_mut()
        .insert("allow", HeaderValue::from_static(allowed));
    response
}
