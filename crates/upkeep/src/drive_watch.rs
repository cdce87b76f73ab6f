//! Drive watch: looks every second whether the drives still serve, and tries out those that may not.
//!
//! What a drive is judged by, and when it leaves service and comes back, is [`durable_fs::health`]; this
//! gives it its seconds, runs trials where they may hang, and tells recon of every change.
//! Always holds: a trial hangs a thread of its own, one per drive; nothing here waits for a drive.
//! Deliberately absent: devices that this process has not worked on.
//! Tests: `tests/drive_watch.rs`.

use crate::{ReconFile, ReconWriter, UpkeepJob, UpkeepPace, UpkeepStep};
use durable_fs::{DriveService, Drives, Health, TrialOutcome, try_out};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use world::{Workers, World};

/// Watches the drives of a process.
pub struct DriveWatch {
    world: World,
    drives: Arc<Drives>,
    must_be_mounted: bool,
    recon: Vec<(ReconWriter, ReconFile)>,
    threads: HashMap<PathBuf, Arc<Workers>>,
    reported: HashMap<PathBuf, DriveService>,
}

impl DriveWatch {
    /// Watches `drives`, which `must_be_mounted` (`mount_check`), and tells `recon`.
    pub fn new(world: World, drives: Arc<Drives>, must_be_mounted: bool, recon: Vec<(ReconWriter, ReconFile)>) -> Self {
        Self {
            world,
            drives,
            must_be_mounted,
            recon,
            threads: HashMap::new(),
            reported: HashMap::new(),
        }
    }

    /// A pass is a look at all drives, once a second.
    pub fn pace() -> UpkeepPace {
        UpkeepPace {
            per_second: 0.0,
            interval: Duration::from_secs(1),
        }
    }

    fn try_out(&mut self, health: Arc<Health>) {
        let thread = match self.thread(health.root()) {
            Ok(thread) => thread,
            Err(error) => return health.tried(TrialOutcome::Unclear(format!("no thread to try it out on: {error}"))),
        };
        let (world, must_be_mounted) = (self.world.clone(), self.must_be_mounted);
        self.world.spawn(async move {
            let root = health.root().to_owned();
            let trial = thread.run(move || try_out(&world, &root, must_be_mounted)).await;
            health.tried(trial.unwrap_or_else(|error| TrialOutcome::Unclear(error.to_string())));
        });
    }

    fn thread(&mut self, root: &Path) -> std::io::Result<Arc<Workers>> {
        if let Some(thread) = self.threads.get(root) {
            return Ok(thread.clone());
        }
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let thread = Arc::new(self.world.workers(&format!("try-{name}"), 1, 1)?);
        self.threads.insert(root.to_owned(), thread.clone());
        Ok(thread)
    }

    /// Forgets drives that nothing works on any longer, but for those that recon has as out of service.
    fn forget(&mut self, drives: &[Arc<Health>]) {
        let known: HashSet<&Path> = drives.iter().map(|health| health.root()).collect();
        self.reported
            .retain(|root, service| known.contains(&**root) || *service != DriveService::Full);
        self.threads.retain(|root, _| known.contains(&**root));
    }

    /// What has changed since the last report.
    fn changes(&mut self, drives: &[Arc<Health>]) -> Option<Value> {
        let mut changed = Map::new();
        for health in drives {
            let (service, why) = health.service();
            let before = self
                .reported
                .insert(health.root().to_owned(), service)
                .unwrap_or(DriveService::Full);
            if before != service {
                let name = health
                    .root()
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                let since = self.world.clock.now().as_f64();
                changed.insert(name, json!({ "state": service.word(), "why": why, "since": since }));
            }
        }
        self.forget(drives);
        (!changed.is_empty()).then(|| json!({ "device_health": changed }))
    }
}

#[async_trait::async_trait]
impl UpkeepJob for DriveWatch {
    fn name(&self) -> &'static str {
        "drive-watch"
    }

    async fn step(&mut self) -> UpkeepStep {
        let drives = self.drives.all();
        for health in &drives {
            if health.tick() {
                self.try_out(health.clone());
            }
        }
        if let Some(changes) = self.changes(&drives) {
            for (recon, cache) in &self.recon {
                recon.note(*cache, changes.clone()).await;
            }
        }
        UpkeepStep::PassOver
    }
}
