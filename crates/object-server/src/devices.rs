//! The devices of this node, found when they are first asked for.
//!
//! Each [`Device`] has its own I/O workers, so a slow or hung drive costs only its own requests. Once
//! open it stays: its engine notices when the drive goes (507) and when it is back.
//! Other nodes' upkeep has workers of its own ([`Lane`]): no client waits behind it for a thread, and enough of its
//! writes are under way for the drive to sync them together.
//! The file that a device's engine notes in what is under way is put away when nothing has been for a moment.
//! A drive that is judged out of service ([`Health`]) answers 507 at once, also to those who wait for it.
//! Always holds: a device is opened once, and a name without a device costs no thread.

use durable_fs::Health;
use object_engine::{EngineError, Found, ObjectEngine, ObjectKey, OpenOptions, UnderWay};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use world::{WorkerError, Workers, World};

/// Opens devices by the names they have in the rings.
pub trait DeviceSource: Send + Sync {
    /// Opens the device; an error when it is missing, not mounted or unusable. May block.
    fn open(&self, name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError>;

    /// The health of the drive, shared with whoever else judges it.
    fn health(&self, name: &str) -> Arc<Health> {
        Health::new(name)
    }
}

/// Why a job on a device has no result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Its queue is full.
    Busy,
    /// A bug on our side; the thread lives on.
    Panicked,
    /// It is out of service, perhaps since the job was begun.
    Out,
    /// The engine's own words.
    Engine(EngineError),
}

/// On whose behalf a device works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// Clients', and that of single requests of upkeep.
    Requests,
    /// That of other nodes' replicators: hashes, exchanges.
    Replication,
}

/// Threads of a device that work for other nodes' replicators, made when the first of them comes. What they write
/// is synced by as many at once, for which a file system needs hardly more time than for one.
pub(crate) const REPLICATION_THREADS: usize = 16;

/// A device with its workers.
pub(crate) struct Device {
    pub(crate) name: String,
    engine: Arc<dyn ObjectEngine>,
    workers: Workers,
    health: Arc<Health>,
    world: World,
    /// Whether somebody sees to it that notes are put away.
    notes_watched: Arc<AtomicBool>,
}

/// How often it is asked whether the file of notes is still needed. Long enough for one file under any load worth speaking of; short enough
/// for a drive to be found at rest by who wants to unmount it.
const NOTES_LOOKED_AT: Duration = Duration::from_millis(50);

impl Device {
    /// Runs `job` on the device's workers; nobody waits for a drive that is out of service.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&dyn ObjectEngine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.health.check().map_err(|_| Trouble::Out)?;
        let device = self.clone();
        let work = self.workers.run(move || {
            let _job = device.health.enter();
            job(&*device.engine)
        });
        let done = tokio::select! {
            biased;
            done = work => done,
            () = self.health.gone() => return Err(Trouble::Out),
        };
        self.watch_notes();
        match done {
            Ok(result) => result.map_err(Trouble::Engine),
            Err(WorkerError::Busy) => Err(Trouble::Busy),
            Err(WorkerError::Panicked) => Err(Trouble::Panicked),
        }
    }

    /// The task keeps nothing: a device that is given up takes its notes along.
    fn watch_notes(self: &Arc<Self>) {
        if self.has_notes() && !self.notes_watched.swap(true, Ordering::AcqRel) {
            let (device, clock) = (Arc::downgrade(self), self.world.clock.clone());
            self.world.spawn(async move {
                loop {
                    clock.sleep(NOTES_LOOKED_AT).await;
                    match device.upgrade() {
                        Some(device) if !device.put_notes_away().await => {}
                        _ => return,
                    }
                }
            });
        }
    }

    fn has_notes(&self) -> bool {
        self.engine.under_way().is_some_and(UnderWay::is_open)
    }

    /// Whether nobody needs to look again.
    async fn put_notes_away(&self) -> bool {
        let engine = self.engine.clone();
        let put_away = move || engine.under_way().map_or((), UnderWay::put_away);
        // When its workers are too busy, then next time. Also when it is out of service: nothing is to keep it.
        let _ = self.workers.run(put_away).await;
        if self.has_notes() {
            return false;
        }
        self.notes_watched.store(false, Ordering::Release);
        !self.has_notes() || self.notes_watched.swap(true, Ordering::AcqRel)
    }

    /// The object, when it is known without the workers. Does not block.
    pub(crate) fn open_hot(&self, key: &ObjectKey, options: OpenOptions) -> Option<Found> {
        self.health.check().ok()?;
        self.engine.open_hot(key, options)
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
        J: FnOnce(&dyn ObjectEngine) -> Result<T, EngineError> + Send + 'static,
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
    world: World,
    source: Arc<dyn DeviceSource>,
    open: RwLock<HashMap<String, Arc<Device>>>,
    replicated: RwLock<HashMap<String, Arc<Device>>>,
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
    pub(crate) fn new(
        world: World,
        source: Arc<dyn DeviceSource>,
        threads: usize,
        queue: usize,
    ) -> std::io::Result<Self> {
        Ok(Self {
            openers: world.workers("open", OPENERS, MAX_OPENING)?,
            world,
            source,
            open: RwLock::default(),
            replicated: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
            threads,
            queue,
        })
    }

    /// The first job of a request: finds the device and runs `job` there.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &str,
        lane: Lane,
        job: impl FnOnce(&dyn ObjectEngine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<(T, Arc<Device>), Trouble> {
        let mut device = self.find(name).await?;
        if lane == Lane::Replication {
            device = self.for_replication(&device)?;
        }
        let result = device.run(job).await?;
        Ok((result, device))
    }

    /// The device, when it is open.
    pub(crate) fn opened(&self, name: &str) -> Option<Arc<Device>> {
        self.open.read().get(name).cloned()
    }

    async fn find(&self, name: &str) -> Result<Arc<Device>, Trouble> {
        if let Some(device) = self.opened(name) {
            return Ok(device);
        }
        let turn = self.opening.lock().await.entry(name.to_owned()).or_default().clone();
        let opened = {
            let _mine = turn.lock().await;
            match self.opened(name) {
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

    /// The same device with the workers for that.
    fn for_replication(&self, device: &Device) -> Result<Arc<Device>, Trouble> {
        if let Some(open) = self.replicated.read().get(&device.name) {
            return Ok(open.clone());
        }
        let mut replicated = self.replicated.write();
        if let Some(open) = replicated.get(&device.name) {
            return Ok(open.clone());
        }
        let name = device.name.clone();
        let opened = Arc::new(Device {
            engine: device.engine.clone(),
            workers: self.workers(&name, REPLICATION_THREADS)?,
            health: device.health.clone(),
            name: name.clone(),
            world: self.world.clone(),
            notes_watched: device.notes_watched.clone(),
        });
        replicated.insert(name, opened.clone());
        Ok(opened)
    }

    fn workers(&self, name: &str, threads: usize) -> Result<Workers, Trouble> {
        self.world.workers(name, threads, self.queue).map_err(|error| {
            tracing::error!("no threads for device {name}: {error}");
            Trouble::Busy
        })
    }

    async fn open(&self, name: &str) -> Result<Arc<Device>, Trouble> {
        let (source, wanted) = (self.source.clone(), name.to_owned());
        let opening = self.openers.run(move || {
            let engine = source.open(&wanted)?;
            engine.check().map(|()| engine)
        });
        let engine = match opening.await {
            Ok(opened) => opened.map_err(Trouble::Engine)?,
            Err(WorkerError::Busy) => return Err(Trouble::Busy),
            Err(WorkerError::Panicked) => return Err(Trouble::Panicked),
        };
        let workers = self.workers(name, self.threads)?;
        let device = Arc::new(Device {
            name: name.to_owned(),
            engine,
            workers,
            health: self.source.health(name),
            world: self.world.clone(),
            notes_watched: Arc::default(),
        });
        tracing::info!("device {name} serves");
        self.open.write().insert(name.to_owned(), device.clone());
        Ok(device)
    }
}
