//! Object-auditor: bytes that rot are found before anybody asks for them.
//!
//! Two scans: one reads every object of every device and compares it with its checksum, the other looks
//! only at names, metadata and lengths, which finds what a crashed file system leaves empty in a fraction
//! of the time. What cannot be trusted is quarantined by the engine; replication brings a good copy.
//! The first also compares the suffix hashes that replication goes by with what lies there. After a boot both keep
//! listing rows that may have been lost with the power (`late_rows.rs`).
//! Always holds: a step reads at most [`object::PIECE`] bytes; a pass that was interrupted goes on with the
//! partitions that were left; foreign things are named once and left alone; a device whose directories other secrets
//! have named is left alone altogether.
//! Deliberately absent: fragments of erasure-coded policies, other watchers than dark data.
//! Tests: `tests/object_auditor.rs`, `tests/interop/test_auditors.py` (verdicts of OpenStack Swift 2.38.3).

mod dark_data;
mod figures;
mod late_checks;
mod late_rows;
mod object;
mod position;

pub use dark_data::{DarkData, DarkDataAction};
pub use late_rows::Boot;

use crate::logged_paths::LoggedPaths;
use crate::walk::{DirectoryContents, ItemCount, OpenedDevice, WalkJob, WalkState, WorkedItem, keeps_walk};
use crate::{Disks, ReconWriter};
use figures::{AuditVerdict, ScanFigures};
use late_checks::LateChecks;
use late_rows::LateRows;
use object::{ObjectItem, ObjectOutcome};
use object_engine::{AuditListing, EngineError, FilesConfig, ObjectAudit, PartitionKey};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{HashPrefix, Partition, Policies, PolicyIndex};
use world::{WorkerError, Workers};

const NAME: &str = "object-auditor";
/// How often a position is kept.
const KEEP_POSITION: Duration = Duration::from_secs(60);

/// How thoroughly to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// Bytes and all.
    All,
    /// Names, metadata and lengths.
    ZeroByte,
}

impl Scan {
    /// As OpenStack Swift calls it.
    pub fn word(self) -> &'static str {
        match self {
            Scan::All => "ALL",
            Scan::ZeroByte => "ZBF",
        }
    }
}

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct ObjectAuditorOptions {
    /// How thoroughly to look.
    pub scan: Scan,
    /// Bytes read per second at most; 0 for no limit.
    pub bytes_per_second: f64,
    /// Bytes read from a disk at a time.
    pub chunk: usize,
    /// Of several auditors working side by side this is number `lane.0` of `lane.1`.
    pub lane: (usize, usize),
    /// How old an unfinished file of rsync is when it goes.
    pub rsync_patience: Duration,
    /// How old a tombstone is when it may go.
    pub reclaim_age: Duration,
    /// How often figures are logged and written.
    pub log_time: Duration,
    /// Objects are counted up to each of these sizes.
    pub sizes: Vec<u64>,
    /// The machine's last boot, before which listing rows may have been lost; `None` for not looking for them.
    pub boot: Option<Boot>,
}

impl Default for ObjectAuditorOptions {
    fn default() -> Self {
        Self {
            scan: Scan::All,
            bytes_per_second: 0.0,
            chunk: 64 << 10,
            lane: (0, 1),
            rsync_patience: Duration::from_secs(24 * 3600),
            reclaim_age: Duration::from_secs(7 * 24 * 3600),
            log_time: Duration::from_secs(3600),
            sizes: vec![],
            boot: None,
        }
    }
}

/// Goes over the objects of all devices.
pub struct ObjectAuditor {
    secrets: HashPrefix,
    policies: Policies,
    options: ObjectAuditorOptions,
    dark_data: Option<DarkData>,
    recon: ReconWriter,
    logged: LoggedPaths,
    state: WalkState<Self>,
    /// `None` before the first pass.
    pass: Option<Pass>,
}

/// What a pass keeps besides its walk.
struct Pass {
    figures: ScanFigures,
    /// All devices of this lane, for recon.
    names: Vec<String>,
    /// When the position was last written to the device; zero when it has not been, of this policy.
    position_kept: Duration,
    /// Partitions of the policy that have not been audited.
    left: VecDeque<Partition>,
    /// Directories with a position in them.
    positions: Vec<(AuditedDevice, PathBuf)>,
    late_checks: LateChecks,
}

/// A device that is being audited.
#[derive(Clone)]
pub(crate) struct AuditedDevice {
    thread: Arc<Workers>,
    audit: Arc<ObjectAudit>,
}

/// What is listed on a device.
pub(crate) enum AuditedDirectory {
    Policy(PolicyIndex),
    Partition(PartitionKey),
    Suffix(PartitionKey, String),
}

impl AuditedDevice {
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ObjectAudit) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let audit = self.audit.clone();
        match self.thread.run(move || work(&audit)).await {
            Ok(done) => done.map_err(AuditError::Engine),
            Err(error) => Err(AuditError::Thread(error)),
        }
    }
}

/// Why something could not be audited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The engine says so.
    #[error("{0}")]
    Engine(EngineError),
    /// The device's thread did not take the work.
    #[error("{0}")]
    Thread(WorkerError),
}

impl AuditError {
    /// A device that is gone has nothing left to audit.
    fn is_device_gone(&self) -> bool {
        matches!(self, Self::Engine(EngineError::DeviceUnavailable { .. }))
    }
}

impl ObjectAuditor {
    /// Audits the objects of `policies` on `disks`.
    pub fn new(
        disks: Disks,
        secrets: HashPrefix,
        policies: Policies,
        options: ObjectAuditorOptions,
        dark_data: Option<DarkData>,
        recon: ReconWriter,
    ) -> Self {
        let scan = options.scan;
        Self {
            secrets,
            policies,
            options,
            dark_data: dark_data.filter(|_| scan == Scan::All),
            recon,
            logged: LoggedPaths::default(),
            state: WalkState::new(NAME, disks),
            pass: None,
        }
    }

    /// The partitions of a policy that this pass still has to audit.
    async fn list_policy(&mut self, device: &AuditedDevice, policy: PolicyIndex) -> DirectoryContents<Self> {
        let all: Vec<PolicyIndex> = self.policies.iter().map(|policy| policy.index).collect();
        let is_first = all.first() == Some(&policy);
        let (world, scan) = (self.state.world().clone(), self.options.scan);
        let boot = self.options.boot.clone();
        let listed = device.run(move |audit| {
            let directory = audit.directory(policy);
            let boot = boot.filter(|boot| !boot.is_recorded(&world, &directory));
            let mut listing = audit.partitions(policy)?;
            audit.check_secrets(policy, &listing.found)?;
            if is_first {
                listing.foreign.extend(audit.of_no_policy(&all)?);
            }
            listing.found = position::resume(&world, &directory, scan, boot.as_ref(), listing.found);
            Ok((listing, boot))
        });
        let (listed, boot) = match listed.await {
            Ok((listing, boot)) => (Ok(listing), boot),
            Err(error) => (Err(error), None),
        };
        let boot = boot.filter(|_| listed.as_ref().is_ok_and(|listing| !listing.found.is_empty()));
        let rows = boot.map(|boot| LateRows::new(boot, self.secrets.clone()));
        if let Some(pass) = &mut self.pass {
            pass.late_checks.begin(device, device.audit.directory(policy), rows);
            pass.position_kept = Duration::ZERO;
            pass.left = listed.iter().flat_map(|listing| &listing.found).copied().collect();
        }
        self.listed(listed, |found| {
            let keys = found.into_iter().map(|partition| PartitionKey { policy, partition });
            DirectoryContents::Directories(keys.map(AuditedDirectory::Partition).collect())
        })
    }

    async fn list_partition(&mut self, device: &AuditedDevice, key: PartitionKey) -> DirectoryContents<Self> {
        let listed = device.run(move |audit| audit.suffixes(key.policy, key.partition)).await;
        self.listed(listed, |found| {
            let suffixes = found.into_iter().map(|suffix| AuditedDirectory::Suffix(key, suffix));
            DirectoryContents::Directories(suffixes.collect())
        })
    }

    async fn list_suffix(
        &mut self,
        device: &AuditedDevice,
        key: PartitionKey,
        suffix: String,
    ) -> DirectoryContents<Self> {
        let thorough = self.options.scan == Scan::All;
        let PartitionKey { policy, partition } = key;
        let listed = device.run(move |audit| {
            if thorough && let Err(error) = audit.recheck(policy, partition, &suffix) {
                tracing::warn!("{NAME}: the recorded hash of {partition}/{suffix} is not compared: {error}");
            }
            audit.places(policy, partition, &suffix)
        });
        let listed = listed.await;
        self.listed(listed, |found| {
            DirectoryContents::Items(found.into_iter().map(ObjectItem::new).collect())
        })
    }

    fn listed<T>(
        &mut self,
        listed: Result<AuditListing<T>, AuditError>,
        contents: impl FnOnce(Vec<T>) -> DirectoryContents<Self>,
    ) -> DirectoryContents<Self> {
        match listed {
            Ok(listing) => {
                self.logged.log_foreign(NAME, &listing.foreign);
                contents(listing.found)
            }
            Err(error) => {
                tracing::error!("{NAME}: {error}");
                if let Some(pass) = &mut self.pass {
                    pass.figures.add(AuditVerdict::Unknown);
                    pass.late_checks.miss();
                }
                match error.is_device_gone() {
                    true => DirectoryContents::DeviceGone,
                    false => DirectoryContents::Failed,
                }
            }
        }
    }

    /// Before a partition: it and those after it are what is left.
    async fn keep_position(&mut self, device: &AuditedDevice, key: PartitionKey) {
        let (now, scan) = (self.state.world().clock.elapsed(), self.options.scan);
        let Some(pass) = &mut self.pass else { return };
        let first = pass.position_kept == Duration::ZERO;
        if !first && now.saturating_sub(pass.position_kept) < KEEP_POSITION {
            return;
        }
        pass.position_kept = now.max(Duration::from_nanos(1));
        let directory = device.audit.directory(key.policy);
        if first {
            pass.positions.push((device.clone(), directory.clone()));
        }
        let (world, left, boot) = (self.state.world().clone(), pass.left.clone(), self.options.boot.clone());
        let kept = device.run(move |_| {
            position::save(&world, &directory, scan, boot.as_ref(), left.into_iter());
            Ok(())
        });
        // What fails has been logged.
        let _ = kept.await;
    }

    async fn report(&mut self) {
        let Some(pass) = &mut self.pass else { return };
        let lane = (self.options.lane.1 > 1).then(|| pass.names.concat());
        let (world, scan) = (self.state.world(), self.options.scan);
        pass.figures.report(world, scan, lane.as_deref(), &self.recon).await;
    }

    async fn end_pass(&mut self) {
        let (world, scan) = (self.state.world().clone(), self.options.scan);
        if let Some(pass) = &self.pass {
            pass.figures.conclude(&world, scan);
        }
        self.report().await;
        if let Some(watcher) = &mut self.dark_data {
            watcher.conclude();
        }
        let Some(pass) = self.pass.take() else { return };
        for (device, directory) in pass.positions {
            let world = world.clone();
            let cleared = device.run(move |_| {
                position::clear(&world, &directory, scan);
                Ok(())
            });
            // What fails has been logged; a device that is gone keeps its position.
            let _ = cleared.await;
        }
        pass.late_checks.conclude(&world).await;
    }
}

keeps_walk!(ObjectAuditor);

#[async_trait::async_trait]
impl WalkJob for ObjectAuditor {
    type Device = AuditedDevice;
    type Directory = AuditedDirectory;
    type Item = ObjectItem;
    type Outcome = ObjectOutcome;

    async fn begin(&mut self) -> Vec<String> {
        let mut names = self.state.disks.names().await;
        names.sort_unstable();
        let (lane, lanes) = self.options.lane;
        let mut at = 0..;
        names.retain(|_| at.next().is_some_and(|at: usize| at % lanes.max(1) == lane));
        self.pass = Some(Pass {
            figures: ScanFigures::new(self.state.world(), &self.options.sizes),
            names: names.clone(),
            position_kept: Duration::ZERO,
            left: VecDeque::new(),
            positions: vec![],
            late_checks: LateChecks::default(),
        });
        names
    }

    async fn open(&mut self, name: String) -> OpenedDevice<Self> {
        let thread = match self.state.disks.thread(&name) {
            Ok(thread) => thread,
            Err(error) => {
                tracing::error!("{NAME}: device {name}: no thread: {error}");
                return OpenedDevice::LeftOut;
            }
        };
        let config = FilesConfig {
            mount_check: self.state.disks.must_be_mounted(),
            reclaim_age: self.options.reclaim_age,
            ..FilesConfig::new(&name, self.state.disks.path(&name))
        };
        let world = self.state.world().clone();
        let audit = ObjectAudit::new(config, self.secrets.clone(), self.options.rsync_patience, world);
        let audit = Arc::new(audit);
        let policies = self
            .policies
            .iter()
            .map(|policy| AuditedDirectory::Policy(policy.index));
        OpenedDevice::Here(AuditedDevice { thread, audit }, policies.collect())
    }

    async fn list(&mut self, device: &AuditedDevice, directories: Vec<AuditedDirectory>) -> DirectoryContents<Self> {
        // One at a time, as `listed_at_once` says.
        match directories.into_iter().next() {
            Some(AuditedDirectory::Policy(policy)) => self.list_policy(device, policy).await,
            Some(AuditedDirectory::Partition(key)) => {
                self.keep_position(device, key).await;
                if let Some(pass) = &mut self.pass {
                    pass.left.pop_front();
                }
                self.list_partition(device, key).await
            }
            Some(AuditedDirectory::Suffix(key, suffix)) => self.list_suffix(device, key, suffix).await,
            None => DirectoryContents::Items(vec![]),
        }
    }

    async fn work(&self, device: &AuditedDevice, item: ObjectItem) -> WorkedItem<Self> {
        object::audit(self, device, item).await
    }

    fn count(&mut self, _: &AuditedDevice, outcome: ObjectOutcome) -> ItemCount {
        if self.options.bytes_per_second > 0.0 {
            let due = Duration::try_from_secs_f64(outcome.bytes as f64 / self.options.bytes_per_second);
            self.state.due = self.state.due.saturating_add(due.unwrap_or(Duration::MAX));
        }
        self.logged.log_foreign(NAME, &outcome.foreign);
        let Some(pass) = &mut self.pass else {
            return ItemCount::default();
        };
        pass.figures.read(outcome.bytes);
        outcome.size.into_iter().for_each(|size| pass.figures.sized(size));
        if let Some((dark, listed)) = self.dark_data.as_mut().zip(outcome.listed) {
            dark.add(listed);
        }
        let Some((verdict, took)) = outcome.verdict else {
            return ItemCount::default();
        };
        pass.figures.add(verdict);
        if verdict == AuditVerdict::Unknown {
            pass.late_checks.miss();
        }
        match verdict {
            AuditVerdict::Fine => {}
            AuditVerdict::Quarantined => self.state.statsd.increment("quarantines"),
            AuditVerdict::Unknown => self.state.statsd.increment("errors"),
        }
        self.state.statsd.timing(format_args!("timing"), took);
        let counted = match verdict {
            AuditVerdict::Unknown => ItemCount::FAILED,
            AuditVerdict::Fine | AuditVerdict::Quarantined => ItemCount::DONE,
        };
        ItemCount {
            device_gone: outcome.device_gone,
            ..counted
        }
    }

    async fn stepped(&mut self, took: Duration, is_last: bool) {
        if let Some(pass) = &mut self.pass {
            pass.figures.worked(took);
        }
        if is_last {
            self.end_pass().await;
        } else if let Some(pass) = &self.pass
            && pass.figures.is_due(self.state.world(), self.options.log_time)
        {
            self.report().await;
        }
    }
}
