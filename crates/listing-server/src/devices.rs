//! The devices of this node: each with its own I/O workers, started when it is first asked for.
//!
//! Every job first looks whether the device is there (and mounted, if it must be): 507 otherwise.
//! The looking happens on the device's own workers too, for a dying drive may hang on it.
//! A drive that is judged out of service ([`Health`]) answers 507 at once, also to those who wait for it.
//! Always holds: one set of workers per device name, and only for names that were once there.

use crate::options::{ListingServerOptions, Reserve};
use crate::reply::Refusal;
use durable_fs::Health;
use listing_engine::DeviceRoot;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world::files::Kind as FileKind;
use world::{Workers, World};

/// Threads that look at devices nobody has asked for yet.
const SCOUTS: usize = 4;
/// Looks that may wait for them.
const MAX_SCOUTING: usize = 256;

/// A device that was there when the job began.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    health: Arc<Health>,
}

/// Who works on a device, and how it is.
type Known = (Arc<Workers>, Arc<Health>);

pub(crate) struct Devices {
    world: World,
    options: Arc<ListingServerOptions>,
    known: RwLock<HashMap<String, Known>>,
    scouts: Workers,
}

impl Devices {
    pub(crate) fn new(world: World, options: Arc<ListingServerOptions>) -> std::io::Result<Self> {
        Ok(Self {
            scouts: world.workers("scout", SCOUTS, MAX_SCOUTING)?,
            world,
            options,
            known: RwLock::default(),
        })
    }

    /// Runs `job` on the workers of the device `name`.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        job: impl FnOnce(&Device) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (workers, health) = self.workers(name).await?;
        health.check().map_err(|_| Refusal::Device(name.to_owned()))?;
        let device = self.device(name, health.clone());
        let (devices, drive) = (self.clone(), health.clone());
        let done = workers.run(move || {
            let _job = drive.enter();
            let done = match devices.is_there(&device.root) {
                true => job(&device),
                false => Err(Refusal::Device(device.name)),
            };
            if matches!(done, Err(Refusal::Device(_))) {
                drive.suspect();
            }
            done
        });
        tokio::select! {
            biased;
            done = done => done.unwrap_or_else(|error| Err(Refusal::from_workers(error, name))),
            () = health.gone() => Err(Refusal::Device(name.to_owned())),
        }
    }

    /// Refuses when the device has no room to spare.
    pub(crate) fn check_room(&self, device: &Device) -> Result<(), Refusal> {
        let Ok(space) = self.world.files.space(&device.root) else {
            return Err(Refusal::Device(device.name.clone()));
        };
        let enough = match self.options.fallocate_reserve {
            Reserve::Bytes(bytes) => bytes == 0 || space.available > bytes,
            Reserve::Percent(percent) => {
                percent <= 0.0 || space.available as f64 > space.total as f64 * percent / 100.0
            }
        };
        match enough {
            true => Ok(()),
            false => Err(Refusal::Device(device.name.clone())),
        }
    }

    /// The device, as databases are found on it.
    pub(crate) fn root(&self, device: &Device) -> DeviceRoot {
        DeviceRoot::new(&device.root, self.options.mount_check)
            .on(&self.world.files)
            .watched(device.health.clone())
    }

    fn device(&self, name: &str, health: Arc<Health>) -> Device {
        Device {
            name: name.to_owned(),
            root: self.options.devices.join(name),
            health,
        }
    }

    fn is_there(&self, root: &Path) -> bool {
        let files = &self.world.files;
        match self.options.mount_check {
            true => files.is_mount_point(root).unwrap_or(false),
            false => files.info(root).is_ok_and(|info| info.kind == FileKind::Directory),
        }
    }

    /// The first look at a device: whether it is there, and what a crash has left on it.
    fn meet(&self, device: &Device) -> bool {
        let there = self.is_there(&device.root);
        if there {
            let swept = listing_engine::sweep(&self.root(device));
            tracing::info!("device {} serves; {swept} unfinished databases removed", device.name);
        }
        there
    }

    async fn workers(self: &Arc<Self>, name: &str) -> Result<(Arc<Workers>, Arc<Health>), Refusal> {
        if let Some(known) = self.known.read().get(name) {
            return Ok(known.clone());
        }
        let health = self.options.drives.health(&self.options.devices.join(name));
        let (devices, device) = (self.clone(), self.device(name, health.clone()));
        let looked = self.scouts.run(move || devices.meet(&device)).await;
        if !looked.map_err(|error| Refusal::from_workers(error, name))? {
            return Err(Refusal::Device(name.to_owned()));
        }
        let mut known = self.known.write();
        if let Some(found) = known.get(name) {
            return Ok(found.clone());
        }
        let started = self
            .world
            .workers(name, self.options.threads_per_disk, self.options.queue_per_disk);
        let workers = Arc::new(started.map_err(|error| {
            tracing::error!("no threads for device {name}: {error}");
            Refusal::Page(http::StatusCode::SERVICE_UNAVAILABLE)
        })?);
        known.insert(name.to_owned(), (workers.clone(), health.clone()));
        Ok((workers, health))
    }
}
