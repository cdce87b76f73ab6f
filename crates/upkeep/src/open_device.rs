//! A device that is being worked on: its name, and the thread that does it.

use crate::Disks;
use crate::faults::{ToFault, run_on_drive};
use crate::walk::{OpenedDevice, WalkJob};
use durable_fs::Health;
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
    health: Arc<Health>,
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
            health: disks.health(&name),
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
        run_on_drive(&self.health, &self.thread, work).await
    }

    /// Runs `work` on the device's thread. What fails is logged, once for a drive that is out of service.
    pub(crate) async fn run<T: Send + 'static, E: ToFault + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Option<T> {
        if self.health.check().is_err() {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::time::Duration;
    use world::World;

    impl ToFault for Infallible {
        fn to_fault(&self) -> Fault {
            match *self {}
        }
    }

    #[tokio::test]
    async fn a_job_on_a_drive_that_hangs_is_waited_for_until_the_drive_is_out() {
        let place = tempfile::tempdir().unwrap();
        let mut disks = Disks::new(World::real(), place.path(), false);
        let device = OpenDevice::open(&mut disks, "test", "sda".into()).unwrap();
        assert_eq!(device.run(|| Ok::<_, Infallible>(1)).await, Some(1));
        let (end, hanging) = std::sync::mpsc::channel::<()>();
        let job = device.run(move || {
            let _ = hanging.recv();
            Ok::<_, Infallible>(2)
        });
        let seconds = async {
            // Another job is what shows that the drive hangs, if this one has not begun yet.
            let _job = device.health.enter();
            tokio::time::sleep(Duration::from_millis(50)).await;
            while device.health.check().is_ok() {
                device.health.tick();
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(job, seconds).0 }).await;
        assert_eq!(waited, Ok(None));
        assert_eq!(
            device.run(|| Ok::<_, Infallible>(3)).await,
            None,
            "it is out of service"
        );
        drop(end);
    }
}
