//! How many exchanges there may be at a time, on this node and on one device.

use super::End;
use crate::options::ReplicationOptions;
use crate::service::Shared;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room for exchanges.
pub(crate) struct Room {
    all: Arc<Semaphore>,
    per_device: Mutex<HashMap<String, Arc<Semaphore>>>,
    device_limit: usize,
}

/// A place in it.
pub(super) struct Seat {
    _all: OwnedSemaphorePermit,
    _device: OwnedSemaphorePermit,
}

fn limit(count: usize) -> usize {
    match count {
        0 => Semaphore::MAX_PERMITS,
        count => count.min(Semaphore::MAX_PERMITS),
    }
}

impl Room {
    pub(crate) fn new(options: &ReplicationOptions) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limit(options.concurrency))),
            per_device: Mutex::default(),
            device_limit: limit(options.concurrency_per_device),
        }
    }

    /// A place at once, or soon on a device that is busy; the sender is told when there is none.
    pub(super) async fn enter(&self, shared: &Shared, device: &str) -> Result<Seat, End> {
        let Ok(all) = self.all.clone().try_acquire_owned() else {
            return Err(End::Say(503, "this node takes part in enough exchanges".into()));
        };
        let semaphore = {
            let mut devices = self.per_device.lock();
            let of_device = devices.entry(device.to_owned());
            of_device
                .or_insert_with(|| Arc::new(Semaphore::new(self.device_limit)))
                .clone()
        };
        let wait = shared.options.replication.lock_timeout;
        match shared.world.timeout(wait, semaphore.acquire_owned()).await {
            Ok(Ok(place)) => Ok(Seat {
                _all: all,
                _device: place,
            }),
            _ => Err(End::Say(
                0,
                format!("{wait:?}: device {device} takes part in enough exchanges"),
            )),
        }
    }
}
