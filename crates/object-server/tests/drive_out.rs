//! A drive that hangs or fails: its requests are answered, also those that wait for it, and it comes back.

#![allow(clippy::unwrap_used, reason = "a failed expectation is what a test is for")]

use bytes::Bytes;
use durable_fs::health::{HUNG, MANY_ERRORS};
use durable_fs::{Health, TrialOutcome};
use http::{HeaderMap, Method, StatusCode};
use object_engine::{
    Commit, EngineError, FoundObject, ListingUpdate, MemoryEngine, MetadataUpdate, ObjectEngine, ObjectKey,
    ObjectWriter, OpenOptions, Replica,
};
use object_server::{DeviceSource, ObjectServer, ObjectServerOptions};
use parking_lot::RwLock;
use peer::{RawCall, Service, Target};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vocabulary::{EntityPath, HashPrefix, Partition, PathHash, Policies, Policy, PolicyIndex, Timestamp};
use world::World;

/// A device whose reads wait for a lock that the test may hold.
struct Hanging {
    engine: MemoryEngine,
    hang: Arc<RwLock<()>>,
}

impl ObjectEngine for Hanging {
    fn replica(&self) -> &dyn Replica {
        self.engine.replica()
    }

    fn open(&self, key: &ObjectKey, options: OpenOptions) -> Result<FoundObject, EngineError> {
        let _wait = self.hang.read();
        self.engine.open(key, options)
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

struct Source {
    hang: Arc<RwLock<()>>,
    health: Arc<Health>,
}

impl DeviceSource for Source {
    fn open(&self, _name: &str) -> Result<Arc<dyn ObjectEngine>, EngineError> {
        Ok(Arc::new(Hanging {
            engine: MemoryEngine::new(),
            hang: self.hang.clone(),
        }))
    }

    fn health(&self, _name: &str) -> Arc<Health> {
        self.health.clone()
    }
}

struct Site {
    server: Arc<ObjectServer>,
    hang: Arc<RwLock<()>>,
    health: Arc<Health>,
    trial_hangs: AtomicBool,
}

impl Site {
    fn new() -> Self {
        let (hang, health) = (Arc::new(RwLock::new(())), Health::new("/srv/node/sda"));
        let source = Source {
            hang: hang.clone(),
            health: health.clone(),
        };
        let policies = Policies::new(vec![Policy::replication(0, "gold")], None).unwrap();
        let options = ObjectServerOptions::new(HashPrefix::new("a", "b").unwrap(), Arc::new(policies));
        let server = ObjectServer::new(World::real(), options, Arc::new(source)).unwrap();
        let trial_hangs = AtomicBool::new(false);
        Self {
            server,
            hang,
            health,
            trial_hangs,
        }
    }

    async fn head(&self) -> StatusCode {
        let target = Target {
            device: "sda".into(),
            partition: Partition(1),
            path: Arc::new(EntityPath::split("a/c/o").unwrap()),
        };
        let call = RawCall::new(Method::HEAD, target, HeaderMap::new());
        self.server.call(call.into()).await.status()
    }

    /// Seconds pass, and trials succeed unless the drive hangs.
    fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            let is_due = self.health.tick() || self.trial_hangs.swap(false, Ordering::Relaxed);
            if is_due && self.hang.try_read().is_some() {
                self.health.tried(TrialOutcome::Well);
            } else if is_due {
                self.trial_hangs.store(true, Ordering::Relaxed);
            }
        }
    }
}

const GONE: StatusCode = StatusCode::INSUFFICIENT_STORAGE;

#[tokio::test(flavor = "multi_thread")]
#[allow(
    clippy::await_holding_lock,
    reason = "as long as it is held, the drive hangs: that is what is waited out"
)]
async fn nobody_waits_for_a_hung_drive() {
    let site = Arc::new(Site::new());
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    let hold = site.hang.clone();
    let held = hold.write();
    let waiting = tokio::spawn({
        let site = site.clone();
        async move { site.head().await }
    });
    // The job is under way when no second has passed in which one ended.
    while site.health.check().is_ok() {
        site.pass(1);
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.await.unwrap(), GONE);
    assert_eq!(site.head().await, GONE);
    site.pass(HUNG * 3);
    assert_eq!(site.head().await, GONE);
    drop(held);
    while site.health.check().is_err() {
        site.pass(1);
        tokio::task::yield_now().await;
    }
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_drive_with_many_errors_is_left_alone_for_a_while() {
    let site = Site::new();
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    site.pass(1);
    for _ in 0..MANY_ERRORS {
        site.health.saw(&std::io::Error::from_raw_os_error(5));
    }
    assert_eq!(site.head().await, GONE);
    site.pass(60);
    assert_eq!(site.head().await, StatusCode::NOT_FOUND);
    // So does one that says it is no longer there; its writes, too.
    site.health.saw(&std::io::Error::from_raw_os_error(19));
    assert!(
        site.health
            .check_writable()
            .unwrap_err()
            .to_string()
            .contains(&Path::new("/srv/node/sda").display().to_string())
    );
    assert_eq!(site.head().await, GONE);
}
