//! A device that is being worked on: its name, and the thread that does it.

use crate::Disks;
use crate::faults::ToFault;
use listing_engine::{DeviceRoot, Kind, Location};
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

    /// Runs `work` on the device's thread.
    pub(crate) async fn try_run<T: Send + 'static, E: ToFault + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, Fault> {
        match self.thread.run(work).await {
            Ok(done) => done.map_err(|error| error.to_fault()),
            Err(error) => Err(error.to_fault()),
        }
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
}

/// The databases in these partitions. What cannot be listed is logged.
pub(crate) async fn databases_in(device: &OpenDevice, kind: Kind, partitions: Vec<Partition>) -> Vec<Location> {
    let mut databases = vec![];
    for partition in partitions {
        let root = device.root.clone();
        let found = device.run(move || Location::in_partition(&root, kind, partition)).await;
        databases.extend(found.unwrap_or_default());
    }
    databases
}
