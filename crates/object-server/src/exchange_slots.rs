//! How many SSYNC exchanges there may be at a time, on this node and on one device, and how much they may wish for.

use crate::options::ReplicationOptions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use world::World;

/// So many exchanges may have all the wishes that one may have: `replication_concurrency` may be large, or without
/// limit.
const FULL_EXCHANGES: usize = 4;

/// The slots for exchanges.
pub(crate) struct ExchangeSlots {
    all: Arc<Semaphore>,
    wishes: Arc<Semaphore>,
    /// Of one exchange.
    most_wishes: usize,
    per_device: Mutex<HashMap<String, Arc<Semaphore>>>,
    device_limit: usize,
    wait: Duration,
}

/// A slot that is taken until this is dropped.
pub(crate) struct ExchangeSlot {
    _node: OwnedSemaphorePermit,
    _device: OwnedSemaphorePermit,
}

/// Room for the wishes of one exchange, until this is dropped.
pub(crate) struct WishRoom {
    all: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    left: usize,
}

impl WishRoom {
    /// Takes room for so many more, or for as many as there is room for; how many that is.
    pub(crate) fn take(&mut self, count: usize) -> usize {
        let count = count.min(self.left).min(self.all.available_permits());
        let permits = u32::try_from(count).unwrap_or(u32::MAX);
        // Another exchange may have been quicker.
        let Ok(more) = self.all.clone().try_acquire_many_owned(permits) else {
            return 0;
        };
        self.left -= count;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            taken => *taken = Some(more),
        }
        count
    }
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
            wishes: Arc::new(Semaphore::new(limit(
                options.most_wishes.saturating_mul(FULL_EXCHANGES),
            ))),
            most_wishes: options.most_wishes,
            per_device: Mutex::default(),
            device_limit: limit(options.concurrency_per_device),
            wait: options.lock_timeout,
        }
    }

    /// Room for the wishes of an exchange; none is taken yet.
    pub(crate) fn room_for_wishes(&self) -> WishRoom {
        WishRoom {
            all: self.wishes.clone(),
            taken: None,
            left: self.most_wishes,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_bounded_for_one_exchange_and_for_all() {
        let options = ReplicationOptions::default();
        let (slots, most) = (ExchangeSlots::new(&options), options.most_wishes);
        let mut rooms: Vec<WishRoom> = (0..=FULL_EXCHANGES).map(|_| slots.room_for_wishes()).collect();
        for room in &mut rooms[..FULL_EXCHANGES] {
            assert_eq!([most - 1, 5, 1].map(|count| room.take(count)), [most - 1, 1, 0]);
        }
        assert_eq!(rooms[FULL_EXCHANGES].take(1), 0, "no room is left for another exchange");
        drop(rooms.swap_remove(0));
        assert_eq!(rooms[0].take(most + 1), most);
    }
}
