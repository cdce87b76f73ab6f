//! How many SSYNC exchanges there may be at a time, on this node and on one device.

use crate::options::ReplicationOptions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use world::World;

/// The slots for exchanges.
pub(crate) struct ExchangeSlots {
    all: Arc<Semaphore>,
    per_device: Mutex<HashMap<String, Arc<Semaphore>>>,
    device_limit: usize,
    wait: Duration,
}

/// A slot that is taken until this is dropped.
pub(crate) struct ExchangeSlot {
    _node: OwnedSemaphorePermit,
    _device: OwnedSemaphorePermit,
}

/// Why there is no slot.
#[derive(Debug)]
pub(crate) enum NoSlot {
    /// The node has no more.
    Node,
    /// The device of this name has none, and none became free in this time.
    Device(String, Duration),
}

fn limit(count: usize) -> usize {
    match count {
        0 => Semaphore::MAX_PERMITS,
        count => count.min(Semaphore::MAX_PERMITS),
    }
}

impl ExchangeSlots {
    pub(crate) fn new(options: &ReplicationOptions) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limit(options.concurrency))),
            per_device: Mutex::default(),
            device_limit: limit(options.concurrency_per_device),
            wait: options.lock_timeout,
        }
    }

    /// A slot at once, or soon on a device that is busy.
    pub(crate) async fn take(&self, world: &World, device: &str) -> Result<ExchangeSlot, NoSlot> {
        let node = self.all.clone().try_acquire_owned().map_err(|_| NoSlot::Node)?;
        let semaphore = {
            let mut devices = self.per_device.lock();
            let of_device = devices.entry(device.to_owned());
            of_device
                .or_insert_with(|| Arc::new(Semaphore::new(self.device_limit)))
                .clone()
        };
        match world.timeout(self.wait, semaphore.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(ExchangeSlot {
                _node: node,
                _device: permit,
            }),
            _ => Err(NoSlot::Device(device.to_owned(), self.wait)),
        }
    }
}
