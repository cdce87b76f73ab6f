//! One node: what stays of it, what runs of it, and what its servers see of the outside.

use crate::clock::SimClock;
use crate::containers::Containers;
use crate::disk::{MOUNTS, SimFiles};
use crate::executor::TaskOwner;
use crate::pool::WatchedDrives;
use durable_fs::Health;
use gateway::Gateway;
use http::StatusCode;
use object_engine::{EngineError, FilesConfig, FilesEngine, ObjectEngine};
use object_server::DeviceSource;
use peer::http_server::Shutdown;
use peer::{Body, Call, Peers, Response, Service};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use upkeep::Boot;
use vocabulary::Timestamp;
use world::World;

/// One node.
pub struct SimNode {
    /// Its clock; the next process has the same.
    pub clock: SimClock,
    /// Its drive.
    pub files: SimFiles,
    /// Its accounts and containers, where they are played.
    pub containers: Arc<Containers>,
    /// What runs of it, if it is up.
    pub process: Option<NodeProcess>,
    /// When the machine was switched on last, and how often it was.
    pub(crate) switched_on: SwitchedOn,
}

/// The last boot of a machine. It lasts when the process ends, and not when the power does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SwitchedOn {
    pub(crate) times: u64,
    at: u64,
    /// It is on.
    is_on: bool,
}

impl SwitchedOn {
    /// The power goes.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
    }

    /// A process begins at this time.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        if !self.is_on {
            // Whole seconds, and no machine is that quick.
            (self.is_on, self.at) = (true, now.seconds_ceil());
            self.times += 1;
        }
    }

    /// The boot as daemons see it.
    pub(crate) fn boot(&self) -> Boot {
        Boot {
            id: format!("boot {}", self.times),
            at: i64::try_from(self.at).unwrap_or(i64::MAX),
        }
    }
}

/// What runs of a node from one start to its end.
pub struct NodeProcess {
    /// Whose tasks they are.
    pub home: TaskOwner,
    /// The outside as this process sees it.
    pub world: World,
    /// For clients.
    pub gateway: Arc<Gateway>,
    /// For everything else.
    pub peers: Arc<Peers>,
    /// Its own objects.
    pub objects: Arc<dyn Service>,
    /// Its own containers.
    pub listings: Arc<dyn Service>,
    /// Its own accounts.
    pub accounts: Arc<dyn Service>,
    /// Ends its servers.
    pub doors: Shutdown,
}

/// A service of the process that calls it. Services hold the peers that they call, which must not hold them in turn:
/// else nothing of a run would ever be freed.
pub(crate) struct OwnService(pub(crate) Weak<dyn Service>);

#[async_trait::async_trait]
impl Service for OwnService {
    async fn call(&self, call: Call) -> Response {
        match self.0.upgrade() {
            Some(service) => service.call(call).await,
            None => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            }
        }
    }
}

/// Opens a node's drive.
pub(crate) struct SimDevices {
    pub(crate) world: World,
    /// Bodies are compared with their checksums.
    pub(crate) checks: bool,
    /// Bodies that were verified are believed for a while.
    pub(crate) marks: bool,
    /// How long tombstones stay.
    pub(crate) reclaim_age: Duration,
    /// Where drives are watched.
    pub(crate) watched: Option<WatchedDrives>,
}

impl DeviceSource for SimDevices {
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        let mut config = FilesConfig::new(name, Path::new(MOUNTS).join(name));
        if !self.checks {
            config.etag_validate_percent = 0.0;
        }
        if !self.marks {
            config.verified_marks = 0;
        }
        config.reclaim_age = self.reclaim_age;
        // Short, for the simulation's hours to see marks end.
        config.verified_for = Duration::from_secs(5);
        Ok(Arc::new(match &self.watched {
            Some(watched) => FilesEngine::watched(config, self.world.clone(), watched.health(name)),
            None => FilesEngine::start(config, self.world.clone()),
        }))
    }

    fn health(&self, name: &str) -> Arc<Health> {
        match &self.watched {
            Some(watched) => watched.health(name),
            None => Health::new(name),
        }
    }
}
