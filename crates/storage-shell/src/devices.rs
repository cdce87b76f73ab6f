//! [`DevicePool`]: the devices of this node, opened when they are first asked for, each with its own I/O workers.
//!
//! A slow or hung drive costs only its own requests. Once open a device stays in the pool: its engine notices when the
//! drive goes (507) and when it is back.
//! The upkeep of other nodes has workers of its own ([`Lane`]): no client waits behind it for a thread, and enough of
//! its writes run at a time for the drive to sync them together.
//! What an engine leaves to be put away after its jobs ([`DeviceEngine::has_leftovers`]) is put away once it rests.
//! A drive that is judged out of service ([`Health`]) answers 507 at once, also to the jobs that wait for it.
//! Always holds: a device is opened once, and a name without a device costs no thread.
//! Tests: beside the code, and `object-server/tests/drive_out.rs`.

use durable_fs::Health;
use parking_lot::RwLock;
use peer::BodyError;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vocabulary::{Fault, FaultKind};
use world::{WorkerError, Workers, World};

/// What a device opens to.
pub trait DeviceEngine: Send + Sync + 'static {
    /// Looks whether the device is still there; called on its workers before each job.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether earlier jobs left something to be put away once the device rests. Does not block.
    fn has_leftovers(&self) -> bool {
        false
    }

    /// Puts away what earlier jobs left, if the device rests. Blocks.
    fn clear_leftovers(&self) {}
}

/// Opens devices by the names they have in the rings.
pub trait DeviceOpener: Send + Sync + 'static {
    /// What a device opens to.
    type Engine: DeviceEngine;

    /// Opens the device; a fault when it is missing, not mounted or unusable. Blocks.
    fn open(&self, name: &str) -> Result<Self::Engine, Fault>;

    /// The health of the drive, shared with everything else that works on it.
    fn health(&self, name: &str) -> Arc<Health>;
}

/// A device did not do a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFault {
    /// The name of the device.
    pub device: String,
    /// Why: [`FaultKind::Contention`] when its queue is full, [`FaultKind::Caller`] when the job panicked, else what is
    /// wrong with the device.
    pub fault: Fault,
}

impl DeviceFault {
    /// A fault of the device of this name.
    pub fn new(device: impl Into<String>, fault: Fault) -> Self {
        let device = device.into();
        Self { device, fault }
    }
}

impl From<DeviceFault> for Fault {
    fn from(DeviceFault { device, fault }: DeviceFault) -> Self {
        fault.within(format_args!("device {device}"))
    }
}

impl From<DeviceFault> for BodyError {
    fn from(fault: DeviceFault) -> Self {
        Self::Device(fault.fault.what)
    }
}

/// The queue in which a job on a device waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Of requests, those of upkeep among them.
    Requests,
    /// Of what other nodes' replicators ask: hashes, exchanges.
    Replication,
}

/// Which jobs of a lane come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Of short requests, and what ends a long one.
    First,
    /// Of long transfers.
    Behind,
}

/// Threads of a device for [`Lane::Replication`], started when it is first used. What they write is synced by as many
/// at once, for which a file system needs hardly more time than for one.
pub const REPLICATION_THREADS: usize = 16;

/// How often leftovers are looked at. Long enough for one file of an intent log under any load that matters; short
/// enough for a drive to be found at rest when it is to be unmounted.
const LEFTOVERS_PERIOD: Duration = Duration::from_millis(50);
/// How long a job in the middle of a body waits between two attempts to enter a full queue, and how often it tries.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
const MAX_BUSY_PAUSES: usize = 2_000;
/// Threads that open devices; a device that hangs while it is opened holds one of them.
const OPENERS: usize = 4;
/// Devices that may wait to be opened.
const MAX_OPENING: usize = 256;

/// A device with the workers of one lane.
pub struct PooledDevice<E> {
    name: Arc<str>,
    engine: Arc<E>,
    workers: Workers,
    health: Arc<Health>,
    world: World,
    /// Whether a task watches for leftovers.
    is_watched: Arc<AtomicBool>,
}

/// How a job ended.
enum JobEnd<T, R> {
    Ran(Result<T, R>),
    NotRun(DeviceFault),
}

impl<E: DeviceEngine> PooledDevice<E> {
    /// The name in the rings.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the device opened to.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The health of the drive.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Whether anything may be asked of the drive.
    pub fn is_in_service(&self) -> bool {
        self.health.check().is_ok()
    }

    /// Runs `job` on the device's workers. Fails at once when the queue is full, and as soon as the drive is judged out
    /// of service; the job goes on in that case.
    pub async fn run<T, R>(self: &Arc<Self>, job: impl FnOnce(&Self) -> Result<T, R> + Send + 'static) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<DeviceFault> + Send + 'static,
    {
        match self.attempt(Turn::First, job).await {
            JobEnd::Ran(done) => done,
            JobEnd::NotRun(fault) => Err(fault.into()),
        }
    }

    /// [`PooledDevice::run`] for the beginning of a long transfer: jobs of short requests come first.
    pub async fn run_behind<T, R>(
        self: &Arc<Self>,
        job: impl FnOnce(&Self) -> Result<T, R> + Send + 'static,
    ) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<DeviceFault> + Send + 'static,
    {
        match self.attempt(Turn::Behind, job).await {
            JobEnd::Ran(done) => done,
            JobEnd::NotRun(fault) => Err(fault.into()),
        }
    }

    /// [`PooledDevice::run`] for the middle of a body, where giving up would waste what went before: when the queue is
    /// full it waits for its turn, ten seconds at most. With [`Turn::Behind`] jobs of short requests come first.
    pub async fn run_patiently<T, R, J>(self: &Arc<Self>, turn: Turn, job: impl Fn() -> J) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<DeviceFault> + Send + 'static,
        J: FnOnce(&Self) -> Result<T, R> + Send + 'static,
    {
        for _ in 0..MAX_BUSY_PAUSES {
            match self.attempt(turn, job()).await {
                JobEnd::Ran(done) => return done,
                JobEnd::NotRun(busy) if busy.fault.kind == FaultKind::Contention => {
                    self.world.clock.sleep(BUSY_PAUSE).await;
                }
                JobEnd::NotRun(fault) => return Err(fault.into()),
            }
        }
        Err(busy(&self.name).into())
    }

    async fn attempt<T, R>(
        self: &Arc<Self>,
        turn: Turn,
        job: impl FnOnce(&Self) -> Result<T, R> + Send + 'static,
    ) -> JobEnd<T, R>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        if !self.is_in_service() {
            return JobEnd::NotRun(self.out_of_service());
        }
        let device = self.clone();
        let work = move || {
            let _job = device.health.enter();
            match device.engine.check() {
                Ok(()) => JobEnd::Ran(job(&device)),
                Err(fault) => {
                    device.health.suspect();
                    JobEnd::NotRun(DeviceFault::new(&*device.name, fault))
                }
            }
        };
        let work = async {
            match turn {
                Turn::First => self.workers.run(work).await,
                Turn::Behind => self.workers.run_behind(work).await,
            }
        };
        let done = tokio::select! {
            biased;
            done = work => done,
            () = self.health.gone() => return JobEnd::NotRun(self.out_of_service()),
        };
        self.watch_leftovers();
        done.unwrap_or_else(|error| JobEnd::NotRun(not_run(error, &self.name)))
    }

    fn out_of_service(&self) -> DeviceFault {
        DeviceFault::new(&*self.name, Fault::device("the device is out of service"))
    }

    /// The task keeps no device: one that is given up takes its leftovers along.
    fn watch_leftovers(self: &Arc<Self>) {
        if !self.engine.has_leftovers() || self.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let (device, clock) = (Arc::downgrade(self), self.world.clock.clone());
        self.world.spawn(async move {
            loop {
                clock.sleep(LEFTOVERS_PERIOD).await;
                match device.upgrade() {
                    Some(device) if !device.clear_leftovers().await => {}
                    _ => return,
                }
            }
        });
    }

    /// Whether nothing is left to be looked at again.
    async fn clear_leftovers(&self) -> bool {
        let engine = self.engine.clone();
        // When the workers are too busy, then next time. Also on a drive out of service: nothing is to keep it busy.
        let _ = self.workers.run(move || engine.clear_leftovers()).await;
        if self.engine.has_leftovers() {
            return false;
        }
        self.is_watched.store(false, Ordering::Release);
        !self.engine.has_leftovers() || self.is_watched.swap(true, Ordering::AcqRel)
    }
}

fn busy(device: &str) -> DeviceFault {
    let fault = Fault::new(FaultKind::Contention, "the device has more requests than it can take");
    DeviceFault::new(device, fault)
}

fn not_run(error: WorkerError, device: &str) -> DeviceFault {
    match error {
        WorkerError::Busy => busy(device),
        WorkerError::Panicked => DeviceFault::new(device, Fault::caller("a job failed unexpectedly")),
    }
}

/// How the workers of a pool are started.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// The threads that open devices are named so.
    pub openers: &'static str,
    /// I/O threads per device for [`Lane::Requests`].
    pub threads: usize,
    /// Jobs that may wait for those threads before the device counts as overloaded (503).
    pub queue: usize,
}

/// A device with the workers of its lanes.
struct DeviceLanes<E> {
    requests: Arc<PooledDevice<E>>,
    replication: Option<Arc<PooledDevice<E>>>,
}

/// The devices of this node.
pub struct DevicePool<O: DeviceOpener> {
    world: World,
    opener: Arc<O>,
    options: PoolOptions,
    open: RwLock<HashMap<String, DeviceLanes<O::Engine>>>,
    opening: tokio::sync::Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    openers: Workers,
}

impl<O: DeviceOpener> DevicePool<O> {
    /// A pool of the devices that `opener` finds; an error when the system has no threads left.
    pub fn new(world: World, opener: O, options: PoolOptions) -> std::io::Result<Self> {
        Ok(Self {
            openers: world.workers(options.openers, OPENERS, MAX_OPENING)?,
            world,
            opener: Arc::new(opener),
            options,
            open: RwLock::default(),
            opening: tokio::sync::Mutex::default(),
        })
    }

    /// What opens the devices.
    pub fn opener(&self) -> &O {
        &self.opener
    }

    /// Finds the device, opens it if need be, and runs `job` there.
    pub async fn run<T, R>(
        &self,
        name: &str,
        lane: Lane,
        job: impl FnOnce(&PooledDevice<O::Engine>) -> Result<T, R> + Send + 'static,
    ) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<DeviceFault> + Send + 'static,
    {
        self.device(name, lane).await?.run(job).await
    }

    /// The device, when it is open already.
    pub fn opened(&self, name: &str) -> Option<Arc<PooledDevice<O::Engine>>> {
        self.open.read().get(name).map(|lanes| lanes.requests.clone())
    }

    /// The device with the workers of this lane, opened if need be.
    pub async fn device(&self, name: &str, lane: Lane) -> Result<Arc<PooledDevice<O::Engine>>, DeviceFault> {
        let device = match self.opened(name) {
            Some(device) => device,
            None => self.open_in_turn(name).await?,
        };
        match lane {
            Lane::Requests => Ok(device),
            Lane::Replication => self.replication_lane(device),
        }
    }

    /// Requests for one device wait for the one that opens it.
    async fn open_in_turn(&self, name: &str) -> Result<Arc<PooledDevice<O::Engine>>, DeviceFault> {
        let turn = {
            let mut opening = self.opening.lock().await;
            if opening.len() >= MAX_OPENING {
                // Requests that were given up while they waited have left their names; these are any client's.
                opening.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            opening.entry(name.to_owned()).or_default().clone()
        };
        let opened = {
            let _turn = turn.lock().await;
            match self.opened(name) {
                Some(device) => Ok(device),
                None => self.open(name).await,
            }
        };
        let mut opening = self.opening.lock().await;
        // This request's and the map's: no other request waits for its turn.
        if Arc::strong_count(&turn) == 2 {
            opening.remove(name);
        }
        opened
    }

    async fn open(&self, name: &str) -> Result<Arc<PooledDevice<O::Engine>>, DeviceFault> {
        let (opener, wanted) = (self.opener.clone(), name.to_owned());
        let opening = self.openers.run(move || opener.open(&wanted)).await;
        let engine = match opening {
            Ok(opened) => opened.map_err(|fault| DeviceFault::new(name, fault))?,
            Err(error) => return Err(not_run(error, name)),
        };
        let device = Arc::new(PooledDevice {
            name: name.into(),
            engine: Arc::new(engine),
            workers: self.workers(name, self.options.threads)?,
            health: self.opener.health(name),
            world: self.world.clone(),
            is_watched: Arc::default(),
        });
        let lanes = DeviceLanes {
            requests: device.clone(),
            replication: None,
        };
        self.open.write().insert(name.to_owned(), lanes);
        Ok(device)
    }

    fn replication_lane(
        &self,
        device: Arc<PooledDevice<O::Engine>>,
    ) -> Result<Arc<PooledDevice<O::Engine>>, DeviceFault> {
        let known = |lanes: &DeviceLanes<O::Engine>| lanes.replication.clone();
        if let Some(known) = self.open.read().get(&*device.name).and_then(known) {
            return Ok(known);
        }
        let mut open = self.open.write();
        let Some(lanes) = open.get_mut(&*device.name) else {
            return Ok(device);
        };
        if let Some(known) = &lanes.replication {
            return Ok(known.clone());
        }
        let opened = Arc::new(PooledDevice {
            name: device.name.clone(),
            engine: device.engine.clone(),
            workers: self.workers(&device.name, REPLICATION_THREADS)?,
            health: device.health.clone(),
            world: self.world.clone(),
            is_watched: device.is_watched.clone(),
        });
        lanes.replication = Some(opened.clone());
        Ok(opened)
    }

    fn workers(&self, name: &str, threads: usize) -> Result<Workers, DeviceFault> {
        let started = self.world.workers(name, threads, self.options.queue);
        started.map_err(|error| {
            tracing::error!("no threads for device {name}: {error}");
            busy(name)
        })
    }
}

#[cfg(test)]
mod tests;
