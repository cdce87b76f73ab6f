//! Container-auditor and account-auditor: databases that are damaged before anybody asks them.
//!
//! Each database of each device is opened and looked over; what is damaged is quarantined by the engine,
//! for replication to bring a good copy. One that contradicts itself or is in the wrong place is named.
//! Always holds: one database is looked at a time, and nothing else waits for it but its device's thread.
//! Deliberately absent: positions; a pass over databases is short.
//! Tests: `tests/database_auditor.rs`, `tests/interop/test_auditors.py`.

use crate::logged_paths::LoggedPaths;
use crate::open_device::OpenDevice;
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::{Disks, PassProgress, ReconFile};
use listing_engine::{Audit, Broker, Error, Info, Kind, Location};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use vocabulary::{Fault, HashPrefix, Partition, PathHash, Timestamp};

/// Goes over the databases of one kind on all devices.
pub struct DatabaseAuditor {
    kind: Kind,
    secrets: HashPrefix,
    logged: LoggedPaths,
    began: Timestamp,
    state: WalkState<Self>,
}

impl DatabaseAuditor {
    /// Audits the databases of `kind` on `disks`.
    pub fn new(disks: Disks, kind: Kind, secrets: HashPrefix) -> Self {
        let began = disks.world().clock.now();
        let daemon = match kind {
            Kind::Account => "account-auditor",
            Kind::Container => "container-auditor",
        };
        Self {
            kind,
            secrets,
            logged: LoggedPaths::default(),
            began,
            state: WalkState::new(daemon, disks),
        }
    }

    /// What was found on the device. Foreign things and failures are logged.
    fn found<T>(&mut self, device: &OpenDevice, surveyed: Result<(Vec<T>, Vec<PathBuf>), Fault>) -> Option<Vec<T>> {
        match surveyed {
            Ok((found, strays)) => {
                self.logged.log_foreign(device.daemon, &strays);
                Some(found)
            }
            Err(fault) => {
                tracing::error!("{}: device {}: {fault}", device.daemon, device.name);
                None
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

/// `None` where there is nothing (any more).
fn look(location: Location, now: Timestamp) -> Result<Option<Audit>, Error> {
    match Broker::open(location).and_then(|broker| broker.audit(now)) {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// What the audit of a database gave.
pub(crate) struct AuditedDatabase {
    location: Location,
    audited: Result<Option<Audit>, Fault>,
    took: Duration,
}

keeps_walk!(DatabaseAuditor);

#[async_trait::async_trait]
impl WalkJob for DatabaseAuditor {
    type Device = OpenDevice;
    /// A partition.
    type Directory = Partition;
    type Item = Location;
    type Outcome = AuditedDatabase;

    async fn begin(&mut self) -> Vec<String> {
        self.began = self.state.world().clock.now();
        self.state.disks.names().await
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let (daemon, kind) = (self.state.daemon, self.kind);
        let Some(device) = OpenDevice::open(&mut self.state.disks, daemon, name) else {
            return OpenedDevice::Failed;
        };
        let root = device.root.clone();
        let surveyed = device.try_run(move || Location::survey_partitions(&root, kind)).await;
        match self.found(&device, surveyed) {
            Some(partitions) => OpenedDevice::Here(device, partitions),
            None => OpenedDevice::Failed,
        }
    }

    async fn list(&mut self, device: &OpenDevice, partitions: Vec<Partition>) -> DirectoryContents<Self> {
        let (root, kind) = (device.root.clone(), self.kind);
        let mut found = vec![];
        for partition in partitions {
            let root = root.clone();
            let surveyed = device.try_run(move || Location::survey(&root, kind, partition)).await;
            match self.found(device, surveyed) {
                Some(databases) => found.extend(databases),
                None => return DirectoryContents::Failed,
            }
        }
        DirectoryContents::Items(found)
    }

    async fn work(&self, device: &OpenDevice, location: Location) -> WorkedItem<Self> {
        let clock = &self.state.world().clock;
        let (began, now, place) = (clock.elapsed(), clock.now(), location.clone());
        let audited = device.try_run(move || look(place, now)).await;
        let outcome = AuditedDatabase {
            location,
            audited,
            took: clock.elapsed().saturating_sub(began),
        };
        WorkedItem { outcome, rest: None }
    }

    fn count(&mut self, device: &OpenDevice, outcome: AuditedDatabase) -> ItemCount {
        let AuditedDatabase {
            location,
            audited,
            took,
        } = outcome;
        let (path, kind) = (location.hash_dir(), self.kind.word());
        let counted = match audited {
            Ok(None | Some(Audit::Deleted)) => ItemCount::default(),
            Ok(Some(Audit::Sound(info))) => {
                if self.hash(&info) != location.hash() && self.logged.is_first(&path) {
                    let name = info.container.as_deref().unwrap_or_default();
                    let owner = format!("/{}/{name}", info.account);
                    let daemon = device.daemon;
                    tracing::warn!("{daemon}: {} is not the place of {owner:?}; left alone", path.display());
                }
                ItemCount::DONE
            }
            Ok(Some(Audit::Contradicts(why))) => {
                tracing::error!("Audit Failed for {}: {why}", path.display());
                ItemCount::FAILED
            }
            Err(fault) => {
                tracing::error!("ERROR Could not get {kind} info {}: {fault}", path.display());
                ItemCount::FAILED
            }
        };
        if counted != ItemCount::default() {
            self.state
                .statsd
                .increment(if counted.failed > 0 { "failures" } else { "passes" });
        }
        self.state.statsd.timing(format_args!("timing"), took);
        counted
    }

    fn pass_figures(&self, pass: &PassProgress) -> Option<(ReconFile, Value)> {
        let kind = self.kind.word();
        let figures = json!({
            format!("{kind}_auditor_pass_completed"): pass.seconds(),
            format!("{kind}_audits_since"): self.began.as_f64(),
            format!("{kind}_audits_passed"): pass.done,
            format!("{kind}_audits_failed"): pass.failed,
        });
        Some((ReconFile::of(self.kind), figures))
    }
}
