//! What all requests share: [`Shared`].

use crate::info_cache::InfoCache;
use crate::nodes::Node;
use crate::options::GatewayOptions;
use crate::rings::Rings;
use crate::server_clocks::ServerClocks;
use crate::suppression::Suppression;
use crate::timings::Timings;
use crate::write_clock::{WriteClock, WriteTime};
use http::HeaderValue;
use peer::{Peers, Silence};
use request_pipeline::{ClientRequest, MemoryRoom, Response, SharedCache, reply};
use settings::SortingMethod;
use std::sync::Arc;
use world::World;

/// Bytes of all listings that are being read from servers.
const MOST_OF_LISTINGS: u64 = 256 << 20;

/// What all requests share.
pub struct Shared {
    pub(crate) world: World,
    pub(crate) options: GatewayOptions,
    pub(crate) rings: Rings,
    pub(crate) peers: Arc<Peers>,
    pub(crate) suppression: Arc<Suppression>,
    pub(crate) silence: Arc<Silence<Node>>,
    pub(crate) timings: Timings,
    /// Whether any policy asks by timing.
    pub(crate) measures: bool,
    pub(crate) cache: InfoCache,
    pub(crate) write_clock: WriteClock,
    pub(crate) server_clocks: ServerClocks,
    /// What is read of listings at a time.
    pub(crate) listings: MemoryRoom,
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
        let suppression = Arc::new(Suppression::new(world.clone(), limit, interval, options.statsd.clone()));
        let silence = Silence::new(&world, options.silence_timeout);
        let timings = Timings::new(world.clone(), options.timing_expiry);
        let measures = options.routing.any(SortingMethod::Timing);
        let cache = InfoCache::new(world.clone(), memcached, &options);
        let server_clocks = ServerClocks::new(&world, options.max_clock_skew);
        let write_clock = WriteClock::new(&world, options.max_clock_skew, options.statsd.clone());
        Arc::new(Self {
            world,
            options,
            rings,
            peers,
            suppression,
            silence,
            timings,
            measures,
            cache,
            write_clock,
            server_clocks,
            listings: MemoryRoom::of(MOST_OF_LISTINGS),
        })
    }

    /// The time of a write: the one that a feature has set, else a new one. (Clients' own are set aside by the
    /// gatekeeper.)
    pub(crate) fn write_time_of(&self, request: &ClientRequest) -> Result<WriteTime, Response> {
        let Some(wanted) = request.header("x-timestamp") else {
            return Ok(self.new_write_time());
        };
        let text = format!("X-Timestamp should be a UNIX timestamp float value; was '{wanted}'");
        let given = wanted.parse().map_err(|_| reply::plain(400, text))?;
        Ok(WriteTime::given(given))
    }

    /// A new time for a write.
    pub(crate) fn new_write_time(&self) -> WriteTime {
        WriteTime::own(self.write_clock.next_of_a_write())
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
