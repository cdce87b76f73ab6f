//! The watch of a process over its drives, which nothing may be wrong with: a drive that it judges otherwise is noted.

use crate::executor::{Executor, TaskOwner};
use crate::pool::{Census, WatchedDrives};
use durable_fs::DriveService;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{DriveWatch, UpkeepJob};
use world::World;

/// Looks once a second for as long as the process of a node.
pub(crate) fn begin(
    executor: &Executor,
    (number, home, world): (usize, TaskOwner, &World),
    watched: &WatchedDrives,
    census: Arc<Mutex<Census>>,
) {
    let (drives, clock) = (watched.drives.clone(), world.clock.clone());
    let mut watch = DriveWatch::new(world.clone(), drives.clone(), true, vec![]);
    let looks = async move {
        loop {
            clock.sleep(Duration::from_secs(1)).await;
            watch.step().await;
            for health in drives.all() {
                let (service, why) = health.service();
                if service != DriveService::Full {
                    let finding = format!("node {number}: a drive that works is {}: {why}", service.word());
                    census.lock().fallen.push(finding);
                }
            }
        }
    };
    executor.spawn(home, Box::pin(looks));
}
