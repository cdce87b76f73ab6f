//! An engine whose reads hang while a test holds its lock.

use bytes::Bytes;
use object_engine::{
    Commit, EngineError, FoundObject, ListingUpdate, MetadataUpdate, ObjectEngine, ObjectKey, ObjectWriter,
    OpenOptions, Replica,
};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use vocabulary::{Partition, PathHash, PolicyIndex, Timestamp};

/// An engine whose reads wait for a lock that the test may hold.
pub struct HangingEngine<E> {
    pub engine: E,
    pub hang: Arc<RwLock<()>>,
    /// Reads that have begun.
    pub begun: AtomicU32,
}

impl<E> HangingEngine<E> {
    pub fn new(engine: E, hang: Arc<RwLock<()>>) -> Self {
        let begun = AtomicU32::new(0);
        Self { engine, hang, begun }
    }
}

impl<E: ObjectEngine> ObjectEngine for HangingEngine<E> {
    fn replica(&self) -> &dyn Replica {
        self.engine.replica()
    }

    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _wait = self.hang.read();
        self.engine.open(key, options)
    }

    fn open_hot(&self, key: &ObjectKey, options: OpenOptions) -> Option<FoundObject> {
        self.engine.open_hot(key, options)
    }

    fn create(&self, key: &ObjectKey, expected_size: Option<u64>) -> Result<Box<dyn ObjectWriter>, EngineError> {
        self.engine.create(key, expected_size)
    }

    fn put_all(&self, puts: Vec<(ObjectKey, Bytes, Commit)>) -> Vec<Result<(), EngineError>> {
        self.engine.put_all(puts)
    }

    fn write_metadata(&self, key: &ObjectKey, update: MetadataUpdate) -> Result<(), EngineError> {
        self.engine.write_metadata(key, update)
    }

    fn delete_all(&self, deletions: Vec<(ObjectKey, Timestamp)>) -> Vec<Result<(), EngineError>> {
        self.engine.delete_all(deletions)
    }

    fn link(&self, key: &ObjectKey, partition: Partition) -> Result<(), EngineError> {
        self.engine.link(key, partition)
    }

    fn quarantine(&self, key: &ObjectKey, why: &str) -> Result<(), EngineError> {
        self.engine.quarantine(key, why)
    }

    fn save_listing_update(&self, update: &ListingUpdate) -> Result<(), EngineError> {
        self.engine.save_listing_update(update)
    }

    fn check(&self) -> Result<(), EngineError> {
        self.engine.check()
    }

    fn partitions(&self, policy: PolicyIndex) -> Result<Vec<Partition>, EngineError> {
        self.engine.partitions(policy)
    }

    fn suffixes(&self, policy: PolicyIndex, partition: Partition) -> Result<Vec<String>, EngineError> {
        self.engine.suffixes(policy, partition)
    }

    fn hashes(&self, policy: PolicyIndex, partition: Partition, suffix: &str) -> Result<Vec<PathHash>, EngineError> {
        self.engine.hashes(policy, partition, suffix)
    }
}
