//! What this process tells Prometheus: who has figures, and where they may be asked for.
//!
//! A storage server has its page at `/metrics` of its port, beside `/recon`; so has the gateway, for the addresses of
//! `metrics_clients` alone; `metrics_port` gives any process, daemons included, a port with nothing else on it.
//! Always holds: no page holds a name of a client's; a page is put together on a thread of its own, so that a file or a
//! drive that hangs costs whoever scrapes his answer and nobody else anything.
//!
//! | question | file |
//! |---|---|
//! | requests, counted | `metrics/measured.rs` |
//! | who may see the page, and where | `metrics/door.rs` |
//! | devices: their room, what was put aside | `metrics/devices.rs` |
//! | pools, upkeep, what daemons left in recon | `metrics/sources.rs` |

mod devices;
mod door;
mod measured;
mod sources;

pub use devices::Devices;
pub use door::{MetricsDoor, Who, own_port};
pub use measured::{MeasuredGateway, MeasuredService};
pub use sources::{Connections, Daemons, ReconFigures};

use crate::failure::Failure;
use crate::storage::no_threads;
use sources::Pools;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use telemetry::metrics::process::ProcessMetrics;
use telemetry::metrics::{Metrics, MetricsFormat, MetricsSource, Requests, Role};
use world::{WatchedThreads, Workers, World};

/// As long as Prometheus waits by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// Everything there is to tell of this process, and the thread it is put together on.
pub struct Telling {
    metrics: Metrics,
    thread: Workers,
    world: World,
    devices: Option<Devices>,
}

/// A world whose threads for blocking work are watched, and what is told of its process.
pub struct Beginning {
    /// To be used from here on.
    pub world: World,
    telling: Telling,
}

impl Beginning {
    /// Of this process.
    pub fn new() -> Result<Self, Failure> {
        let pools = Arc::new(WatchedThreads::default());
        let world = World {
            pools: pools.clone(),
            ..World::real()
        };
        let telling = Telling {
            metrics: Metrics::default(),
            thread: Workers::start("metrics", 1, 8).map_err(no_threads)?,
            world: world.clone(),
            devices: None,
        };
        telling.add(Arc::new(ProcessMetrics::new(&world, env!("CARGO_PKG_VERSION"))));
        telling.add(Arc::new(Pools(pools)));
        Ok(Self { world, telling })
    }

    /// With what is known of drives.
    #[must_use]
    pub fn with_devices(mut self, devices: Devices) -> Self {
        self.telling.add(devices.source());
        self.telling.devices = Some(devices);
        self
    }

    /// Nothing more is known before anybody asks.
    pub fn ready(self) -> Arc<Telling> {
        Arc::new(self.telling)
    }

    /// See [`Telling::requests`].
    pub fn requests(&self, role: Role, statsd: Statsd) -> Arc<Requests> {
        self.telling.requests(role, statsd)
    }

    /// See [`Telling::add`].
    pub fn add(&self, source: Arc<dyn MetricsSource>) {
        self.telling.add(source);
    }
}

impl Telling {
    /// From now on `source` is asked, too.
    pub fn add(&self, source: Arc<dyn MetricsSource>) {
        self.metrics.add(source);
    }

    /// Requests of a role, told from now on; see [`Requests::new`].
    pub fn requests(&self, role: Role, statsd: Statsd) -> Arc<Requests> {
        let requests = Requests::new(role, statsd);
        self.add(requests.clone());
        requests
    }

    /// The page as of now; why there is none.
    async fn page(self: &Arc<Self>, format: MetricsFormat) -> Result<String, String> {
        if let Some(devices) = &self.devices {
            devices.survey(&self.world).await;
        }
        let its = self.clone();
        let writing = self.thread.run(move || its.metrics.page(format));
        match self.world.timeout(PATIENCE, writing).await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(error)) => Err(error.to_string()),
            Err(late) => Err(late.to_string()),
        }
    }
}
