//! What this process reports to Prometheus: the sources of its figures, and where they are served.
//!
//! A storage server has its page at `/metrics` of its port, beside `/recon`; so has the gateway, for the addresses of
//! `metrics_clients` alone; `metrics_port` gives any process, daemons included, a port with nothing else on it.
//! Always holds: no page holds a name of a client's; a page is put together on a thread of its own, so that a file or a
//! drive that hangs costs the scraper its answer and delays no other request.
//!
//! | question | file |
//! |---|---|
//! | requests, counted | `metrics/measured.rs` |
//! | who may see the page, and where | `metrics/door.rs` |
//! | devices: their room, what was put aside | `metrics/devices.rs` |
//! | devices: what their drives have to do | `metrics/drive_work.rs` |
//! | files of the node: rings, certificates | `metrics/files.rs` |
//! | pools, upkeep, what daemons left in recon | `metrics/sources.rs` |

mod devices;
mod door;
mod drive_work;
mod files;
mod measured;
mod sources;

pub use devices::Devices;
pub use door::{MetricsAccess, MetricsDoor, own_port};
pub use files::NodeFiles;
pub use measured::{MeasuredGateway, MeasuredService};
pub use sources::{ConnectionMetrics, Daemons, MemcacheMetrics, ReconFigures, SilenceMetrics};

use crate::failure::{CommandFailure, no_threads};
use sources::PoolMetrics;
use std::sync::Arc;
use std::time::Duration;
use telemetry::Statsd;
use telemetry::metrics::process::ProcessMetrics;
use telemetry::metrics::{Metrics, MetricsFormat, MetricsSource, Requests, Role};
use vocabulary::{Fault, FaultKind};
use world::{WatchedThreads, Workers, World};

/// As long as Prometheus waits by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// All sources of figures in this process, and the thread that puts the page together.
pub struct ProcessMetricsPage {
    metrics: Metrics,
    thread: Workers,
    world: World,
    devices: Option<Devices>,
}

/// A world whose threads for blocking work are watched, and the figures of its process.
pub struct MetricsSetup {
    /// To be used from here on.
    pub world: World,
    page: ProcessMetricsPage,
}

impl MetricsSetup {
    /// Of this process.
    pub fn new() -> Result<Self, CommandFailure> {
        let pools = Arc::new(WatchedThreads::default());
        let world = World {
            pools: pools.clone(),
            ..World::real()
        };
        let page = ProcessMetricsPage {
            metrics: Metrics::default(),
            thread: Workers::start("metrics", 1, 8).map_err(no_threads)?,
            world: world.clone(),
            devices: None,
        };
        page.add(Arc::new(ProcessMetrics::new(&world, env!("CARGO_PKG_VERSION"))));
        page.add(Arc::new(PoolMetrics(pools)));
        Ok(Self { world, page })
    }

    /// With what is known of drives.
    #[must_use]
    pub fn with_devices(mut self, devices: Devices) -> Self {
        self.page.add(devices.source());
        self.page.devices = Some(devices);
        self
    }

    /// The page, once every source known at the start is added.
    pub fn ready(self) -> Arc<ProcessMetricsPage> {
        Arc::new(self.page)
    }

    /// See [`ProcessMetricsPage::requests`].
    pub fn requests(&self, role: Role, statsd: Statsd) -> Arc<Requests> {
        self.page.requests(role, statsd)
    }

    /// See [`ProcessMetricsPage::add`].
    pub fn add(&self, source: Arc<dyn MetricsSource>) {
        self.page.add(source);
    }
}

impl ProcessMetricsPage {
    /// Adds `source` to the page from now on.
    pub fn add(&self, source: Arc<dyn MetricsSource>) {
        self.metrics.add(source);
    }

    /// Requests of a role, on the page from now on; see [`Requests::new`].
    pub fn requests(&self, role: Role, statsd: Statsd) -> Arc<Requests> {
        let requests = Requests::new(role, statsd);
        self.add(requests.clone());
        requests
    }

    /// The page as of now; why there is none.
    async fn page(self: &Arc<Self>, format: MetricsFormat) -> Result<String, Fault> {
        if let Some(devices) = &self.devices {
            devices.survey(&self.world).await;
        }
        let its = self.clone();
        let writing = self.thread.run(move || its.metrics.page(format));
        match self.world.timeout(PATIENCE, writing).await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(error)) => Err(Fault::caller(error.to_string())),
            Err(late) => Err(Fault::new(FaultKind::Contention, late.to_string())),
        }
    }
}
