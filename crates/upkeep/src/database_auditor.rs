//! Container-auditor and account-auditor: databases that are damaged before anybody asks them.
//!
//! Each database of each device is opened and looked over; what is damaged is quarantined by the engine,
//! for replication to bring a good copy. One that contradicts itself or is in the wrong place is named.
//! Always holds: one database is looked at a time, and nothing else waits for it but its device's thread.
//! Deliberately absent: positions; a pass over databases is short.
//! Tests: `tests/database_auditor.rs`, `tests/interop/test_auditors.py`.

use crate::logged_paths::LoggedPaths;
use crate::{Disks, PassProgress, ReconFile, UpkeepJob, UpkeepStep};
use listing_engine::{Audit, Broker, DeviceRoot, Error, Info, Kind, Location};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use telemetry::Statsd;
use vocabulary::{HashPrefix, PathHash, Timestamp};
use world::Workers;

/// Goes over the databases of one kind on all devices.
pub struct DatabaseAuditor {
    disks: Disks,
    kind: Kind,
    secrets: HashPrefix,
    logged: LoggedPaths,
    /// `None` between passes.
    pass: Option<Pass>,
    began: Timestamp,
    statsd: Statsd,
}

/// What is left of a pass.
#[derive(Default)]
struct Pass {
    devices: VecDeque<String>,
    device: Option<OpenDevice>,
    partitions: VecDeque<u32>,
    databases: VecDeque<Location>,
}

#[derive(Clone)]
struct OpenDevice {
    name: String,
    root: DeviceRoot,
    thread: Arc<Workers>,
}

impl OpenDevice {
    async fn run<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        job: impl FnOnce(DeviceRoot) -> Result<T, E> + Send + 'static,
    ) -> Result<T, String> {
        let root = self.root.clone();
        match self.thread.run(move || job(root)).await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl DatabaseAuditor {
    /// Audits the databases of `kind` on `disks`.
    pub fn new(disks: Disks, kind: Kind, secrets: HashPrefix) -> Self {
        let began = disks.world().clock.now();
        Self {
            disks,
            kind,
            secrets,
            logged: LoggedPaths::default(),
            pass: None,
            began,
            statsd: Statsd::default(),
        }
    }

    async fn advance(&mut self, pass: &mut Pass) -> UpkeepStep {
        let kind = self.kind;
        match pass.device.clone() {
            Some(device) if !pass.databases.is_empty() => match pass.databases.pop_front() {
                Some(location) => self.audit_one(&device, location).await,
                None => UpkeepStep::LOOKED,
            },
            Some(device) if !pass.partitions.is_empty() => {
                let partition = pass.partitions.pop_front().unwrap_or_default();
                let surveyed = device.run(move |root| Location::survey(&root, kind, partition)).await;
                self.listed(&device, surveyed).map_or(FAILED, |databases| {
                    pass.databases = databases.into();
                    UpkeepStep::LOOKED
                })
            }
            _ => {
                pass.device = None;
                let Some(name) = pass.devices.pop_front() else {
                    return UpkeepStep::PassOver;
                };
                self.open(name, pass).await
            }
        }
    }

    async fn open(&mut self, name: String, pass: &mut Pass) -> UpkeepStep {
        let (who, kind, root) = (self.name(), self.kind, self.disks.root(&name));
        let thread = match self.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => {
                tracing::error!("{who}: device {name}: no thread: {error}");
                return FAILED;
            }
        };
        let device = OpenDevice { name, root, thread };
        let surveyed = device.run(move |root| Location::survey_partitions(&root, kind)).await;
        let partitions = self.listed(&device, surveyed);
        pass.device = Some(device);
        partitions.map_or(FAILED, |partitions| {
            pass.partitions = partitions.into();
            UpkeepStep::LOOKED
        })
    }

    fn listed<T>(&mut self, device: &OpenDevice, surveyed: Result<(Vec<T>, Vec<PathBuf>), String>) -> Option<Vec<T>> {
        let who = self.name();
        match surveyed {
            Ok((found, strays)) => {
                self.logged.log_foreign(who, &strays);
                Some(found)
            }
            Err(error) => {
                tracing::error!("{who}: device {}: {error}", device.name);
                None
            }
        }
    }

    async fn audit_one(&mut self, device: &OpenDevice, location: Location) -> UpkeepStep {
        let clock = self.disks.world().clock.clone();
        let began = clock.elapsed();
        let step = self.audit(device, location).await;
        let UpkeepStep::Did { done, failed } = step else {
            return step;
        };
        let passed = if failed > 0 { "failures" } else { "passes" };
        if done + failed > 0 {
            self.statsd.increment(passed);
        }
        self.statsd
            .timing(format_args!("timing"), clock.elapsed().saturating_sub(began));
        step
    }

    async fn audit(&mut self, device: &OpenDevice, location: Location) -> UpkeepStep {
        let (path, hash, kind) = (location.hash_dir(), location.hash(), self.kind.word());
        match device.run(move |_| look(location)).await {
            Ok(None | Some(Audit::Deleted)) => UpkeepStep::LOOKED,
            Ok(Some(Audit::Sound(info))) => {
                if self.hash(&info) != hash && self.logged.is_first(&path) {
                    let name = info.container.as_deref().unwrap_or_default();
                    let owner = format!("/{}/{name}", info.account);
                    let who = self.name();
                    tracing::warn!("{who}: {} is not the place of {owner:?}; left alone", path.display());
                }
                UpkeepStep::Did { done: 1, failed: 0 }
            }
            Ok(Some(Audit::Contradicts(why))) => {
                tracing::error!("Audit Failed for {}: {why}", path.display());
                FAILED
            }
            Err(error) => {
                tracing::error!("ERROR Could not get {kind} info {}: {error}", path.display());
                FAILED
            }
        }
    }

    /// Where the database says that it belongs.
    fn hash(&self, info: &Info) -> PathHash {
        match &info.container {
            Some(container) => self.secrets.container(&info.account, container),
            None => self.secrets.account(&info.account),
        }
    }
}

const FAILED: UpkeepStep = UpkeepStep::Did { done: 0, failed: 1 };

/// `None` where there is nothing (any more).
fn look(location: Location) -> Result<Option<Audit>, Error> {
    match Broker::open(location).and_then(|broker| broker.audit()) {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

#[async_trait::async_trait]
impl UpkeepJob for DatabaseAuditor {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Account => "account-auditor",
            Kind::Container => "container-auditor",
        }
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => {
                self.began = self.disks.world().clock.now();
                Pass {
                    devices: self.disks.names().await.into(),
                    ..Pass::default()
                }
            }
        };
        let step = self.advance(&mut pass).await;
        if step != UpkeepStep::PassOver {
            self.pass = Some(pass);
        }
        step
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let cache = match self.kind {
            Kind::Account => ReconFile::Account,
            Kind::Container => ReconFile::Container,
        };
        let kind = self.kind.word();
        let figures = json!({
            format!("{kind}_auditor_pass_completed"): pass.seconds(),
            format!("{kind}_audits_since"): self.began.as_f64(),
            format!("{kind}_audits_passed"): pass.done,
            format!("{kind}_audits_failed"): pass.failed,
        });
        Some((cache, figures))
    }
}
