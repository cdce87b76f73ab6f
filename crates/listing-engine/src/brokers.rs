//! Open brokers, kept for reuse: opening a database costs far more than asking it.
//!
//! Always holds: at most `capacity` are kept; two callers with the same location share one broker,
//! so their rows share one sync.

use crate::{Broker, Error, Location, NewDatabase};
use lru::LruCache;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A bounded cache of brokers by location.
pub struct Brokers {
    open: Mutex<LruCache<Location, Arc<Broker>>>,
}

impl Brokers {
    /// Keeps the `capacity` most recently used (at least one).
    pub fn new(capacity: usize) -> Self {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        Self {
            open: Mutex::new(LruCache::new(capacity)),
        }
    }

    /// The broker of an existing database.
    pub fn open(&self, location: &Location) -> Result<Arc<Broker>, Error> {
        // Nothing under the lock that everybody needs may touch a disk.
        let kept = self.open.lock().get(location).cloned();
        if let Some(broker) = kept {
            return match broker.exists()? {
                true => Ok(broker),
                false => Err(Error::NotFound {
                    path: location.db_file(),
                }),
            };
        }
        let broker = Broker::open(location.clone())?;
        Ok(self.keep(location, broker))
    }

    /// A new database's broker.
    pub fn create(&self, location: &Location, new: &NewDatabase) -> Result<Arc<Broker>, Error> {
        let broker = Broker::create(location.clone(), new)?;
        Ok(self.keep(location, broker))
    }

    fn keep(&self, location: &Location, broker: Broker) -> Arc<Broker> {
        let mut open = self.open.lock();
        open.get_or_insert(location.clone(), || Arc::new(broker)).clone()
    }

    /// Closes whatever is open below a device, for one that is being unmounted.
    pub fn forget_device(&self, device: &std::path::Path) {
        let mut open = self.open.lock();
        let gone: Vec<Location> = open
            .iter()
            .filter(|(location, _)| location.device() == device)
            .map(|(location, _)| location.clone())
            .collect();
        for location in gone {
            open.pop(&location);
        }
    }
}
