//! This server's own devices, as replication works on them.

use crate::Disks;
use crate::faults::run_on_drive;
use durable_fs::Health;
use object_engine::{EngineError, FilesConfig, FilesEngine, Notice, ObjectEngine};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use world::Workers;

use super::NAME;
use vocabulary::Fault;

/// A device, and the threads that work on it; cheap to clone.
#[derive(Clone)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) root: std::path::PathBuf,
    engine: Arc<dyn ObjectEngine>,
    threads: Arc<Workers>,
    health: Arc<Health>,
}

impl Local {
    /// Runs `task` on one of the device's threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&dyn ObjectEngine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Fault> {
        let engine = self.engine.clone();
        run_on_drive(&self.health, &self.threads, move || task(&*engine)).await
    }
}

/// Devices that were opened; each once.
pub(super) struct Locals {
    must_be_mounted: bool,
    reclaim_age: Duration,
    /// Of each device.
    threads: usize,
    /// Counts objects that go to quarantine.
    pub(super) quarantined: Notice,
    open: HashMap<String, Local>,
}

impl Locals {
    pub(super) fn new(must_be_mounted: bool, reclaim_age: Duration, threads: usize) -> Self {
        Self {
            must_be_mounted,
            reclaim_age,
            threads,
            quarantined: Notice::default(),
            open: HashMap::new(),
        }
    }

    pub(super) async fn open(&mut self, disks: &mut Disks, name: &str) -> Option<Local> {
        if let Some(local) = self.open.get(name) {
            return Some(local.clone());
        }
        let threads = match disks.threads(name, self.threads) {
            Ok(threads) => threads,
            Err(error) => {
                tracing::error!("{NAME}: device {name}: no threads: {error}");
                return None;
            }
        };
        let root = disks.path(name);
        let config = FilesConfig {
            mount_check: self.must_be_mounted,
            reclaim_age: self.reclaim_age,
            hot_objects: 0,
            quarantined: self.quarantined.clone(),
            ..FilesConfig::new(name, &root)
        };
        let (world, health) = (disks.world().clone(), disks.health(name));
        let watched = health.clone();
        let start = move || Ok::<_, Fault>(FilesEngine::watched(config, world, watched));
        let started = run_on_drive(&health, &threads, start).await;
        let engine: Arc<dyn ObjectEngine> = match started {
            Ok(engine) => Arc::new(engine),
            Err(error) => {
                tracing::error!("{NAME}: device {name}: {error}");
                return None;
            }
        };
        let local = Local {
            name: name.to_owned(),
            root,
            engine,
            threads,
            health,
        };
        self.open.insert(name.to_owned(), local.clone());
        Some(local)
    }
}
