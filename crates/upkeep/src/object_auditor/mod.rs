//! Object-auditor: bytes that rot are found before anybody asks for them.
//!
//! Two scans: one reads every object of every device and compares it with its checksum, the other looks
//! only at names, metadata and lengths, which finds what a crashed file system leaves empty in a fraction
//! of the time. What cannot be trusted is quarantined by the engine; replication brings a good copy.
//! The first also compares the suffix hashes that replication goes by with what lies there.
//! Always holds: a step reads at most [`PIECE`] bytes; a pass that was interrupted goes on with the
//! partitions that were left; foreign things are named once and left alone.
//! Deliberately absent: fragments of erasure-coded policies, other watchers than dark data.
//! Tests: `tests/object_auditor.rs`, `tests/interop/test_auditors.py` (verdicts of OpenStack Swift 2.38.3).

mod dark_data;
mod position;
mod tally;

pub use dark_data::{DarkData, DarkDataAction};

use crate::logged_paths::LoggedPaths;
use crate::{Disks, ReconWriter, UpkeepJob, UpkeepStep};
use object_engine::{Audit, Audited, EngineError, Examined, FilesConfig, Listing, Place};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tally::{Fate, Tally};
use telemetry::Statsd;
use vocabulary::{HashPrefix, Policies, PolicyIndex};
use world::Workers;

const NAME: &str = "object-auditor";
/// Read in one step.
const PIECE: usize = 1 << 20;
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
        }
    }
}

/// Goes over the objects of all devices.
pub struct ObjectAuditor {
    disks: Disks,
    secrets: HashPrefix,
    policies: Policies,
    options: ObjectAuditorOptions,
    dark_data: Option<DarkData>,
    recon: ReconWriter,
    statsd: Statsd,
    logged: LoggedPaths,
    /// Bytes read since the frame asked.
    unpaid: u64,
    /// `None` between passes.
    pass: Option<Pass>,
}

/// What is left of a pass.
struct Pass {
    tally: Tally,
    /// All of this lane, for recon.
    names: Vec<String>,
    devices: VecDeque<String>,
    device: Option<OpenDevice>,
    policies: VecDeque<PolicyIndex>,
    policy: PolicyIndex,
    partitions: VecDeque<u32>,
    partition: u32,
    suffixes: VecDeque<String>,
    places: VecDeque<Place>,
    body: Option<(Place, Box<Audited>)>,
    /// When the object under way was begun with.
    object_began: Duration,
    position_kept: Duration,
    /// Directories with a position in them.
    positions: Vec<(OpenDevice, PathBuf)>,
}

#[derive(Clone)]
struct OpenDevice {
    thread: Arc<Workers>,
    audit: Arc<Audit>,
}

impl OpenDevice {
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Audit) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let audit = self.audit.clone();
        match self.thread.run(move || job(&audit)).await {
            Ok(done) => done.map_err(Trouble::Engine),
            Err(error) => Err(Trouble::Thread(error.to_string())),
        }
    }
}

enum Trouble {
    Engine(EngineError),
    Thread(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Engine(error) => error.fmt(f),
            Trouble::Thread(error) => error.fmt(f),
        }
    }
}

/// How far an object has been read.
enum Progress {
    Absent,
    /// To its end.
    Whole(Box<Audited>, u64),
    Part(Box<Audited>, u64),
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
        Self {
            disks,
            secrets,
            policies,
            options,
            dark_data,
            recon,
            statsd: Statsd::default(),
            logged: LoggedPaths::default(),
            unpaid: 0,
            pass: None,
        }
    }

    async fn begin(&mut self) -> Pass {
        let mut names = self.disks.names().await;
        names.sort_unstable();
        let (lane, lanes) = self.options.lane;
        let mut at = 0..;
        names.retain(|_| at.next().is_some_and(|at: usize| at % lanes.max(1) == lane));
        Pass {
            tally: Tally::new(self.disks.world(), &self.options.sizes),
            devices: names.clone().into(),
            names,
            device: None,
            policies: VecDeque::new(),
            policy: PolicyIndex(0),
            partitions: VecDeque::new(),
            partition: 0,
            suffixes: VecDeque::new(),
            places: VecDeque::new(),
            body: None,
            object_began: Duration::ZERO,
            position_kept: Duration::ZERO,
            positions: vec![],
        }
    }

    async fn advance(&mut self, pass: &mut Pass) -> UpkeepStep {
        let Some(device) = pass.device.clone() else {
            return self.next_device(pass);
        };
        if let Some((place, object)) = pass.body.take() {
            let chunk = self.options.chunk;
            let read = device.run(move |_| read_on(object, chunk)).await;
            return self.judge(&device, pass, place, read).await;
        }
        if let Some(place) = pass.places.pop_front() {
            let (scan, chunk, looked_at) = (self.options.scan, self.options.chunk, place.clone());
            pass.object_began = self.disks.world().clock.elapsed();
            let read = device.run(move |audit| examine(audit, &looked_at, scan, chunk)).await;
            return self.judge(&device, pass, place, read).await;
        }
        let (policy, partition) = (pass.policy, pass.partition);
        if let Some(suffix) = pass.suffixes.pop_front() {
            let thorough = self.options.scan == Scan::All;
            let listed = device.run(move |audit| {
                if thorough && let Err(error) = audit.recheck(policy, partition, &suffix) {
                    tracing::warn!("{NAME}: the recorded hash of {partition}/{suffix} is not compared: {error}");
                }
                audit.places(policy, partition, &suffix)
            });
            let listed = listed.await;
            return self.listed(pass, listed, |pass, found| pass.places = found.into());
        }
        if !pass.partitions.is_empty() {
            self.keep_position(&device, pass).await;
            pass.partition = pass.partitions.pop_front().unwrap_or_default();
            let partition = pass.partition;
            let listed = device.run(move |audit| audit.suffixes(policy, partition)).await;
            return self.listed(pass, listed, |pass, found| pass.suffixes = found.into());
        }
        let all: Vec<PolicyIndex> = self.policies.iter().map(|policy| policy.index).collect();
        let is_first = pass.policies.len() == all.len();
        let Some(policy) = pass.policies.pop_front() else {
            return self.next_device(pass);
        };
        pass.policy = policy;
        let (world, scan) = (self.disks.world().clone(), self.options.scan);
        let listed = device.run(move |audit| {
            let mut listing = audit.partitions(policy)?;
            if is_first {
                listing.foreign.extend(audit.of_no_policy(&all)?);
            }
            listing.found = position::resume(&world, &audit.directory(policy), scan, listing.found);
            Ok(listing)
        });
        let listed = listed.await;
        pass.position_kept = Duration::ZERO;
        self.listed(pass, listed, |pass, found| pass.partitions = found.into())
    }

    fn next_device(&mut self, pass: &mut Pass) -> UpkeepStep {
        pass.device = None;
        let Some(name) = pass.devices.pop_front() else {
            return UpkeepStep::PassOver;
        };
        match self.disks.thread(&name) {
            Ok(thread) => {
                let config = FilesConfig {
                    mount_check: self.disks.must_be_mounted(),
                    reclaim_age: self.options.reclaim_age,
                    ..FilesConfig::new(&name, self.disks.path(&name))
                };
                let world = self.disks.world().clone();
                let health = self.disks.health(&name);
                let patience = self.options.rsync_patience;
                let audit = Audit::watched(config, self.secrets.clone(), patience, world, health);
                pass.policies = self.policies.iter().map(|policy| policy.index).collect();
                pass.device = Some(OpenDevice {
                    thread,
                    audit: Arc::new(audit),
                });
            }
            Err(error) => tracing::error!("{NAME}: device {name}: no thread: {error}"),
        }
        UpkeepStep::LOOKED
    }

    fn listed<T>(
        &mut self,
        pass: &mut Pass,
        listed: Result<Listing<T>, Trouble>,
        keep: impl FnOnce(&mut Pass, Vec<T>),
    ) -> UpkeepStep {
        match listed {
            Ok(listing) => {
                self.logged.log_foreign(NAME, &listing.foreign);
                keep(pass, listing.found);
                UpkeepStep::LOOKED
            }
            Err(trouble) => {
                tracing::error!("{NAME}: {trouble}");
                pass.tally.note(Fate::Unknown);
                self.give_up_if_gone(pass, &trouble);
                UpkeepStep::Did { done: 0, failed: 1 }
            }
        }
    }

    /// A device that is gone has nothing left to audit.
    fn give_up_if_gone(&self, pass: &mut Pass, trouble: &Trouble) {
        if matches!(trouble, Trouble::Engine(EngineError::DeviceUnavailable { .. })) {
            pass.policies.clear();
            pass.partitions.clear();
            pass.suffixes.clear();
            pass.places.clear();
        }
    }

    /// Before a partition: it and those after it are what is left.
    async fn keep_position(&self, device: &OpenDevice, pass: &mut Pass) {
        let now = self.disks.world().clock.elapsed();
        let first = pass.position_kept == Duration::ZERO;
        if !first && now.saturating_sub(pass.position_kept) < KEEP_POSITION {
            return;
        }
        pass.position_kept = now.max(Duration::from_nanos(1));
        let (world, scan, left) = (self.disks.world().clone(), self.options.scan, pass.partitions.clone());
        let directory = device.audit.directory(pass.policy);
        if first {
            pass.positions.push((device.clone(), directory.clone()));
        }
        let kept = device.run(move |_| {
            position::save(&world, &directory, scan, left.into_iter());
            Ok(())
        });
        // It has said so itself.
        let _ = kept.await;
    }

    async fn judge(
        &mut self,
        device: &OpenDevice,
        pass: &mut Pass,
        place: Place,
        read: Result<Progress, Trouble>,
    ) -> UpkeepStep {
        let path = place.directory.display();
        let fate = match read {
            Ok(Progress::Part(object, bytes)) => {
                self.count_bytes(pass, bytes);
                pass.body = Some((place, object));
                return UpkeepStep::LOOKED;
            }
            Ok(Progress::Absent) => Fate::Fine,
            Ok(Progress::Whole(object, bytes)) => {
                self.count_bytes(pass, bytes);
                self.logged.log_foreign(NAME, &object.foreign);
                pass.tally.sized(object.size);
                self.watch(device, &place, &object).await
            }
            Err(Trouble::Engine(EngineError::Quarantined { why, .. } | EngineError::Corrupt { why, .. })) => {
                tracing::error!("ERROR Object {path} failed audit and was quarantined: {why}");
                Fate::Quarantined
            }
            Err(trouble) => {
                tracing::error!("ERROR Trying to audit {path}: {trouble}");
                self.give_up_if_gone(pass, &trouble);
                Fate::Unknown
            }
        };
        pass.tally.note(fate);
        self.count(pass, fate);
        match fate {
            Fate::Unknown => UpkeepStep::Did { done: 0, failed: 1 },
            _ => UpkeepStep::Did { done: 1, failed: 0 },
        }
    }

    fn count(&self, pass: &Pass, fate: Fate) {
        let took = self.disks.world().clock.elapsed().saturating_sub(pass.object_began);
        match fate {
            Fate::Fine => {}
            Fate::Quarantined => self.statsd.increment("quarantines"),
            Fate::Unknown => self.statsd.increment("errors"),
        }
        self.statsd.timing(format_args!("timing"), took);
    }

    fn count_bytes(&mut self, pass: &mut Pass, bytes: u64) {
        pass.tally.read(bytes);
        self.unpaid += bytes;
    }

    /// Shows a sound object to the watchers, and does what they ask for.
    async fn watch(&mut self, device: &OpenDevice, place: &Place, object: &Audited) -> Fate {
        let Some(watcher) = self.dark_data.as_mut().filter(|_| self.options.scan == Scan::All) else {
            return Fate::Fine;
        };
        let Some(action) = watcher.see(&object.name, object.newest).await else {
            return Fate::Fine;
        };
        let (name, at) = (object.name.clone(), place.clone());
        let (done, fate) = match action {
            DarkDataAction::Log => {
                tracing::info!("reporting dark data {name}");
                return Fate::Fine;
            }
            DarkDataAction::Delete => {
                tracing::info!("deleting dark data {} ({name})", place.directory.display());
                (device.run(move |audit| audit.remove(&at)).await, Fate::Fine)
            }
            DarkDataAction::Quarantine => {
                tracing::info!("quarantining dark data {name}");
                let moved = device.run(move |audit| audit.quarantine(&at, &name, "no container lists it"));
                (moved.await, Fate::Quarantined)
            }
        };
        match done {
            Ok(()) => fate,
            Err(trouble) => {
                tracing::error!("{NAME}: {}: {trouble}", place.directory.display());
                Fate::Unknown
            }
        }
    }

    async fn end(&mut self, mut pass: Pass) {
        let world = self.disks.world().clone();
        pass.tally.conclude(&world, self.options.scan);
        self.report(&mut pass).await;
        if let Some(watcher) = self.dark_data.as_mut().filter(|_| self.options.scan == Scan::All) {
            watcher.conclude();
        }
        let scan = self.options.scan;
        for (device, directory) in pass.positions {
            let world = world.clone();
            let cleared = device.run(move |_| {
                position::clear(&world, &directory, scan);
                Ok(())
            });
            // It has said so itself; and a device that is gone keeps its position.
            let _ = cleared.await;
        }
    }

    async fn report(&self, pass: &mut Pass) {
        let lane = (self.options.lane.1 > 1).then(|| pass.names.concat());
        let world = self.disks.world();
        pass.tally
            .report(world, self.options.scan, lane.as_deref(), &self.recon)
            .await;
    }
}

#[async_trait::async_trait]
impl UpkeepJob for ObjectAuditor {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn step(&mut self) -> UpkeepStep {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin().await,
        };
        let clock = self.disks.world().clock.clone();
        let began = clock.elapsed();
        let step = self.advance(&mut pass).await;
        pass.tally.worked(clock.elapsed().saturating_sub(began));
        if step == UpkeepStep::PassOver {
            self.end(pass).await;
            return step;
        }
        if pass.tally.is_due(self.disks.world(), self.options.log_time) {
            self.report(&mut pass).await;
        }
        self.pass = Some(pass);
        step
    }

    fn set_statsd(&mut self, statsd: Statsd) {
        self.statsd = statsd;
    }

    fn due(&mut self) -> Duration {
        let bytes = std::mem::take(&mut self.unpaid) as f64;
        match self.options.bytes_per_second > 0.0 {
            true => Duration::try_from_secs_f64(bytes / self.options.bytes_per_second).unwrap_or(Duration::MAX),
            false => Duration::ZERO,
        }
    }
}

fn examine(audit: &Audit, place: &Place, scan: Scan, chunk: usize) -> Result<Progress, EngineError> {
    match audit.examine(place, scan == Scan::All)? {
        Examined::Absent => Ok(Progress::Absent),
        Examined::Object(object) => read_on(object, chunk),
    }
}

fn read_on(mut object: Box<Audited>, chunk: usize) -> Result<Progress, EngineError> {
    let mut sum = 0;
    while sum < PIECE {
        match object.read(chunk.clamp(1, PIECE))? {
            0 => return Ok(Progress::Whole(object, sum as u64)),
            bytes => sum += bytes,
        }
    }
    Ok(Progress::Part(object, sum as u64))
}
