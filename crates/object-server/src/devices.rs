//! The devices of this node: found when first asked for, forgotten when they go, found again.
//!
//! Each open [`Device`] has its own I/O workers, so a slow or hung drive costs only its own requests.
//! Every request's first job asks the engine whether the device still serves; one that does not is
//! forgotten at once (507) and the next request tries to open it anew.
//! Always holds: at most one [`OpenDevice`] per name is in the map, and a device is never opened twice
//! at the same time.

use object_engine::{EngineError, ObjectEngine};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{PathHash, PolicyIndex, Timestamp};
use world::{WorkerError, Workers, World};

/// Opens devices by the names they have in the rings.
pub trait DeviceSource: Send + Sync {
    /// Opens the device; an error when it is missing, not mounted or unusable. May block.
    fn open(&self, name: &str) -> Result<OpenDevice, EngineError>;
}

/// A device that can serve.
#[derive(Clone)]
pub struct OpenDevice {
    /// Its objects.
    pub engine: Arc<dyn ObjectEngine>,
    /// Where listing rows wait that no container server took.
    pub pending: Arc<dyn PendingLog>,
}

/// Keeps listing rows that could not be delivered, for the updater (`async_pending`).
pub trait PendingLog: Send + Sync {
    /// Keeps one row durably. May block.
    fn save(&self, update: &PendingUpdate) -> Result<(), EngineError>;
}

/// A listing row that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpdate {
    /// Chooses `async_pending` or `async_pending-N`.
    pub policy: PolicyIndex,
    /// The hash of the row's own path: suffix directory and file name.
    pub hash: PathHash,
    /// When it happened: the second half of the file name.
    pub timestamp: Timestamp,
    /// `PUT` or `DELETE`.
    pub operation: &'static str,
    /// The row's account.
    pub account: String,
    /// The row's container.
    pub container: String,
    /// The row's object.
    pub object: String,
    /// The headers to send, in Title-Case.
    pub headers: Vec<(String, String)>,
    /// Where the row belongs when the container is sharded (`account/container`).
    pub container_path: Option<String>,
    /// What the sender knew of the container's sharding.
    pub db_state: Option<String>,
}

/// Why a job on a device has no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The device cannot serve now.
    Unavailable,
    /// Its queue is full.
    Busy,
    /// A bug on our side; the thread lives on.
    Panicked,
    /// The engine's own words.
    Engine(EngineError),
}

/// A device with its workers.
pub(crate) struct Device {
    pub(crate) name: String,
    open: OpenDevice,
    workers: Workers,
}

impl Device {
    /// Runs `job` on the device's workers.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&OpenDevice) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let device = self.clone();
        match self.workers.run(move || job(&device.open)).await {
            Ok(result) => result.map_err(Trouble::Engine),
            Err(WorkerError::Busy) => Err(Trouble::Busy),
            Err(WorkerError::Panicked) => Err(Trouble::Panicked),
        }
    }
}

/// How long to stand in the queue of an overloaded device in the middle of a body.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
const MAX_BUSY_PAUSES: usize = 2_000;

impl Device {
    /// [`Device::run`] for the middle of a body, where giving up would waste what went before: when the
    /// queue is full it waits for its turn, ten seconds at most.
    pub(crate) async fn run_patiently<T: Send + 'static, J>(
        self: &Arc<Self>,
        world: &World,
        job: impl Fn() -> J,
    ) -> Result<T, Trouble>
    where
        J: FnOnce(&OpenDevice) -> Result<T, EngineError> + Send + 'static,
    {
        for _ in 0..MAX_BUSY_PAUSES {
            match self.run(job()).await {
                Err(Trouble::Busy) => world.clock.sleep(BUSY_PAUSE).await,
                done => return done,
            }
        }
        Err(Trouble::Busy)
    }
}

/// All devices of this node.
pub(crate) struct Devices {
    source: Arc<dyn DeviceSource>,
    open: RwLock<HashMap<String, Arc<Device>>>,
    opening: tokio::sync::Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    openers: Workers,
    threads: usize,
    queue: usize,
}

/// Threads that open devices; a device that hangs while it is opened holds one of them.
const OPENERS: usize = 4;
/// Devices that may wait to be opened.
const MAX_OPENING: usize = 256;

impl Devices {
    pub(crate) fn new(source: Arc<dyn DeviceSource>, threads: usize, queue: usize) -> std::io::Result<Self> {
        Ok(Self {
            source,
            open: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
            openers: Workers::start("open", OPENERS, MAX_OPENING)?,
            threads,
            queue,
        })
    }

    /// The first job of a request: finds the device, makes sure that it serves, and runs `job` there.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce(&OpenDevice) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<(T, Arc<Device>), Trouble> {
        let device = self.find(name).await?;
        let result = device
            .run(move |open| open.engine.check().and_then(|()| job(open)))
            .await;
        match result {
            Ok(value) => Ok((value, device)),
            Err(Trouble::Engine(EngineError::DeviceUnavailable { why, .. })) => {
                tracing::warn!("device {name} went away: {why}");
                self.forget(&device);
                Err(Trouble::Unavailable)
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn find(&self, name: &str) -> Result<Arc<Device>, Trouble> {
        if let Some(device) = self.open.read().get(name) {
            return Ok(device.clone());
        }
        let turn = self.opening.lock().await.entry(name.to_owned()).or_default().clone();
        let opened = {
            let _mine = turn.lock().await;
            let already = self.open.read().get(name).cloned();
            match already {
                Some(device) => Ok(device),
                None => self.open(name).await,
            }
        };
        let mut opening = self.opening.lock().await;
        // Ours and the map's: nobody else waits for this turn.
        if Arc::strong_count(&turn) == 2 {
            opening.remove(name);
        }
        opened
    }

    async fn open(&self, name: &str) -> Result<Arc<Device>, Trouble> {
        let (source, wanted) = (self.source.clone(), name.to_owned());
        let open = match self.openers.run(move || source.open(&wanted)).await {
            Ok(Ok(open)) => open,
            Ok(Err(error)) => {
                tracing::debug!("device {name} cannot be opened: {error}");
                return Err(Trouble::Unavailable);
            }
            Err(WorkerError::Busy) => return Err(Trouble::Busy),
            Err(WorkerError::Panicked) => return Err(Trouble::Panicked),
        };
        let workers = Workers::start(name, self.threads, self.queue).map_err(|error| {
            tracing::error!("no threads for device {name}: {error}");
            Trouble::Busy
        })?;
        let device = Arc::new(Device {
            name: name.to_owned(),
            open,
            workers,
        });
        tracing::info!("device {name} serves");
        self.open.write().insert(name.to_owned(), device.clone());
        Ok(device)
    }

    /// Unless another has taken its place already.
    fn forget(&self, device: &Arc<Device>) {
        let mut open = self.open.write();
        if open.get(&device.name).is_some_and(|known| Arc::ptr_eq(known, device)) {
            open.remove(&device.name);
        }
    }
}
