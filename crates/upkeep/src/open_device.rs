//! A device that is being worked on: its name, and the thread that does it.

use crate::Disks;
use crate::faults::{ToFault, run_on};
use crate::walk::{OpenedDevice, WalkJob};
use listing_engine::{DeviceRoot, Location};
use std::io;
use std::sync::Arc;
use vocabulary::{Fault, Partition};
use world::Workers;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct OpenDevice {
    /// The daemon that works on it, for the log.
    pub(crate) daemon: &'static str,
    /// The device's directory name.
    pub(crate) name: String,
    /// The device, as databases are found on it.
    pub(crate) root: DeviceRoot,
    /// Where all that touches it is done.
    pub(crate) thread: Arc<Workers>,
}

impl OpenDevice {
    /// The device `name` of `disks`. That it cannot have a thread is logged.
    pub(crate) fn open(disks: &mut Disks, daemon: &'static str, name: String) -> Option<Self> {
        let thread = disks.thread(&name);
        let thread = thread
            .inspect_err(|error| tracing::error!("{daemon}: device {name}: no thread: {error}"))
            .ok()?;
        Some(Self {
            daemon,
            root: disks.root(&name),
            name,
            thread,
        })
    }

    /// The device `name` of `disks`, to be walked over from the partitions that `list` finds. What fails is logged.
    pub(crate) async fn open_with<J: WalkJob<Device = Self, Directory = Partition>>(
        disks: &mut Disks,
        daemon: &'static str,
        name: String,
        list: impl FnOnce(&DeviceRoot) -> io::Result<Vec<Partition>> + Send + 'static,
    ) -> OpenedDevice<J> {
        let Some(device) = Self::open(disks, daemon, name) else {
            return OpenedDevice::LeftOut;
        };
        let root = device.root.clone();
        let partitions = device.run(move || list(&root)).await;
        OpenedDevice::Here(device, partitions.unwrap_or_default())
    }

    /// Runs `work` on the device's thread.
    pub(crate) async fn try_run<T: Send + 'static, E: ToFault + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, Fault> {
        run_on(&self.thread, work).await
    }

    /// Runs `work` on the device's thread. What fails is logged.
    pub(crate) async fn run<T: Send + 'static, E: ToFault + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Option<T> {
        let done = self.try_run(work).await;
        done.inspect_err(|fault| tracing::error!("{}: device {}: {fault}", self.daemon, self.name))
            .ok()
    }

    /// The databases that `list` finds in these partitions. What cannot be listed is logged.
    pub(crate) async fn databases_in(
        &self,
        partitions: impl IntoIterator<Item = Partition>,
        list: impl Fn(&DeviceRoot, Partition) -> io::Result<Vec<Location>> + Copy + Send + 'static,
    ) -> Vec<Location> {
        let mut databases = vec![];
        for partition in partitions {
            let root = self.root.clone();
            let found = self.run(move || list(&root, partition)).await;
            databases.extend(found.unwrap_or_default());
        }
        databases
    }
}
