//! From configuration to the auditors.

use super::{UpkeepContext, daemon, disks, load, preset, recon, run_alone, run_over};
use crate::cli::{ObjectAuditorLine, Passes, Upkeep};
use crate::failure::CommandFailure;
use crate::{logging, priority};
use listing_engine::Kind;
use settings::auditors::{AccountAuditorSettings, ContainerAuditorSettings, DarkDataSettings, ObjectAuditorSettings};
use settings::declare::Scope;
use settings::{DaemonConf, Document, StatsdSettings, StorageCommon, UpkeepConf};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upkeep::{
    Boot, Daemon, DarkData, DarkDataAction, DatabaseAuditor, Disks, ObjectAuditor, ObjectAuditorOptions, ReconWriter,
    Scan, UpkeepPace,
};
use vocabulary::{HashPrefix, Policies};
use world::{NiceThreads, World};

const OBJECT_AUDITOR: &str = "object-auditor";
const CONTAINER_AUDITOR: &str = "container-auditor";
const ACCOUNT_AUDITOR: &str = "account-auditor";
const DARK_DATA: &str = "swift#dark_data";
/// Reading everything again is not worth more: a damaged object is noticed by its next reader anyway.
const UP_INTERVAL: Duration = Duration::from_secs(60);
/// When the object-replicator's options say nothing, as OpenStack Swift has it.
const RSYNC_PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// How much longer than rsync may take its files are left alone.
const RSYNC_GRACE: Duration = Duration::from_secs(900);

/// `martlet object-auditor`.
pub fn object_auditor(line: &ObjectAuditorLine) -> Result<(), CommandFailure> {
    let conf = ObjectAuditorConf::load(&line.upkeep.conf)?;
    priority::make_room(&conf.own.common, priority::AUDITOR);
    let passes = line.upkeep.passes();
    let make = |ground: &Ground| match line.zero_byte_fps {
        Some(rate) => vec![ground.object_auditor(&conf, Scan::ZeroByte, (0, 1), rate)],
        None => ground.object_auditors(&conf),
    };
    let devices = &line.devices;
    match conf.dark_data {
        // Only this watcher asks others.
        Some(_) => run_over(conf.own.beginning(), passes, |context| {
            Ok(make(&Ground::of(context, devices)))
        }),
        None => run_alone(conf.own.beginning(), passes, |world, swift| {
            Ok(make(&Ground {
                world,
                hash: &swift.hash,
                policies: &swift.policies,
                devices,
                context: None,
            }))
        }),
    }
}

/// `martlet container-auditor`.
pub fn container_auditor(line: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<ContainerAuditorSettings>::load(&line.conf, CONTAINER_AUDITOR)?;
    let pace = containers(&conf);
    let its = (&conf.storage, &conf.statsd);
    database_auditor(conf.beginning(), its, line.passes(), Kind::Container, pace)
}

/// `martlet account-auditor`.
pub fn account_auditor(line: &Upkeep) -> Result<(), CommandFailure> {
    let conf = UpkeepConf::<AccountAuditorSettings>::load(&line.conf, ACCOUNT_AUDITOR)?;
    let pace = accounts(&conf);
    let its = (&conf.storage, &conf.statsd);
    database_auditor(conf.beginning(), its, line.passes(), Kind::Account, pace)
}

fn containers(conf: &UpkeepConf<ContainerAuditorSettings>) -> UpkeepPace {
    UpkeepPace {
        per_second: conf.settings.containers_per_second,
        interval: conf.settings.interval,
    }
}

fn accounts(conf: &UpkeepConf<AccountAuditorSettings>) -> UpkeepPace {
    UpkeepPace {
        per_second: conf.settings.accounts_per_second,
        interval: conf.settings.interval,
    }
}

fn database_auditor(
    beginning: DaemonConf<'_>,
    (storage, statsd): (&StorageCommon, &StatsdSettings),
    passes: Passes,
    kind: Kind,
    pace: UpkeepPace,
) -> Result<(), CommandFailure> {
    run_alone(beginning, passes, |world, swift| {
        let ground = Ground {
            world,
            hash: &swift.hash,
            policies: &swift.policies,
            devices: &[],
            context: None,
        };
        Ok(vec![ground.database_auditor(storage, statsd, kind, pace)])
    })
}

/// What auditors stand on; they need no other server, except for dark data.
struct Ground<'a> {
    world: &'a World,
    hash: &'a HashPrefix,
    policies: &'a Policies,
    /// Of these devices; of all when empty.
    devices: &'a [String],
    context: Option<&'a UpkeepContext<'a>>,
}

impl<'a> Ground<'a> {
    fn of(context: &'a UpkeepContext<'a>, devices: &'a [String]) -> Self {
        Self {
            world: context.world,
            hash: &context.rings.hash,
            policies: &context.rings.policies,
            devices,
            context: Some(context),
        }
    }

    fn disks(&self, storage: &StorageCommon) -> Disks {
        let drives = self
            .context
            .and_then(|context| context.drives.clone())
            .unwrap_or_default();
        disks(self.world, storage, self.devices, drives)
    }

    fn recon(&self, storage: &StorageCommon) -> ReconWriter {
        recon(
            self.world,
            storage,
            self.context.and_then(|context| context.recon.as_deref()),
        )
    }
}

/// What the object-auditor finds in a file.
pub(super) struct ObjectAuditorConf {
    own: UpkeepConf<ObjectAuditorSettings>,
    dark_data: Option<DarkDataConf>,
    rsync_patience: Duration,
}

/// What the watcher for dark data finds in its section of that file.
struct DarkDataConf {
    settings: DarkDataSettings,
    action: DarkDataAction,
}

impl ObjectAuditorConf {
    pub(super) fn load(path: &Path) -> Result<Self, CommandFailure> {
        let mut own: UpkeepConf<ObjectAuditorSettings> = UpkeepConf::load(path, OBJECT_AUDITOR)?;
        let mut watched = None;
        for watcher in own.settings.watchers.clone() {
            match watcher == DARK_DATA {
                true => watched = Some(DarkDataConf::load(path, &mut own)?),
                false => own.warn(
                    "watchers",
                    format!("watcher {watcher:?} is not supported, only {DARK_DATA:?} is; left out"),
                ),
            }
        }
        let rsync_patience = match own.settings.rsync_tempfile_timeout.0 {
            Some(patience) => patience,
            None => rsync_patience(&Document::load(path)?)?,
        };
        Ok(Self {
            own,
            dark_data: watched,
            rsync_patience,
        })
    }
}

impl DarkDataConf {
    /// Its warnings are logged with the rest of the auditor's.
    fn load(path: &Path, auditor: &mut UpkeepConf<ObjectAuditorSettings>) -> Result<Self, CommandFailure> {
        let section = format!("{OBJECT_AUDITOR}:watcher:{DARK_DATA}");
        let conf = UpkeepConf::<DarkDataSettings>::load(path, &section)?;
        auditor.warnings.extend(conf.warnings);
        let settings = conf.settings;
        let action = match settings.action.as_str() {
            "log" => DarkDataAction::Log,
            "delete" => DarkDataAction::Delete,
            "quarantine" => DarkDataAction::Quarantine,
            other => {
                let message = format!("dark data action {other:?} is unknown: log is done");
                auditor.warn("action", message);
                DarkDataAction::Log
            }
        };
        Ok(Self { settings, action })
    }
}

fn rsync_patience(document: &Document) -> Result<Duration, CommandFailure> {
    const REPLICATOR: &str = "object-replicator";
    if document.section(REPLICATOR).is_none() {
        return Ok(RSYNC_PATIENCE);
    }
    let timeout: Duration = Scope::plain(document, REPLICATOR)?.value("rsync_timeout", "900")?;
    Ok(timeout.saturating_add(RSYNC_GRACE))
}

impl Ground<'_> {
    fn database_auditor(
        &self,
        storage: &StorageCommon,
        statsd: &StatsdSettings,
        kind: Kind,
        pace: UpkeepPace,
    ) -> Daemon {
        let job = DatabaseAuditor::new(self.disks(storage), kind, self.hash.clone());
        daemon(self.world, statsd, job, pace).with_recon(self.recon(storage))
    }

    /// The full scans, side by side, and the one that reads no bytes.
    fn object_auditors(&self, conf: &ObjectAuditorConf) -> Vec<Daemon> {
        let settings = &conf.own.settings;
        let lanes = settings.concurrency.max(1);
        let full = |lane| self.object_auditor(conf, Scan::All, (lane, lanes), settings.files_per_second);
        let mut daemons: Vec<Daemon> = (0..lanes).map(full).collect();
        let rate = settings.zero_byte_files_per_second;
        if rate > 0.0 {
            daemons.push(self.object_auditor(conf, Scan::ZeroByte, (0, 1), rate));
        }
        daemons
    }

    fn object_auditor(&self, conf: &ObjectAuditorConf, scan: Scan, lane: (usize, usize), per_second: f64) -> Daemon {
        let settings = &conf.own.settings;
        let options = ObjectAuditorOptions {
            scan,
            bytes_per_second: settings.bytes_per_second,
            chunk: settings.disk_chunk_size,
            lane,
            rsync_patience: conf.rsync_patience,
            reclaim_age: settings.reclaim_age,
            log_time: settings.log_time,
            sizes: settings.object_size_stats.clone(),
            boot: Boot::last(self.world),
        };
        let watched = conf.dark_data.as_ref().zip(self.context);
        let job = ObjectAuditor::new(
            self.disks(&conf.own.storage),
            self.hash.clone(),
            self.policies.clone(),
            options,
            watched.map(|(conf, context)| dark_data(context, conf)),
            self.recon(&conf.own.storage),
        );
        let pace = UpkeepPace {
            per_second,
            interval: settings.interval,
        };
        daemon(self.world, &conf.own.statsd, job, pace)
    }
}

fn dark_data(context: &UpkeepContext, conf: &DarkDataConf) -> DarkData {
    let settings = &conf.settings;
    let containers = context.container_servers(settings.conn_timeout, settings.node_timeout);
    DarkData::new(context.world.clone(), containers, conf.action, settings.grace_age)
}

/// What `martlet up` audits with.
pub(super) fn for_up(context: &UpkeepContext, etc: &Path) -> Result<Vec<Daemon>, CommandFailure> {
    let mut objects = ObjectAuditorConf::load(&etc.join("object-server.conf"))?;
    logging::warn_of(&objects.own.warnings)?;
    preset(&mut objects.own, "interval", |own| own.interval = UP_INTERVAL);
    let mut container = load::<ContainerAuditorSettings>(etc, "container-server.conf", CONTAINER_AUDITOR)?;
    preset(&mut container, "interval", |own| own.interval = UP_INTERVAL);
    let mut account = load::<AccountAuditorSettings>(etc, "account-server.conf", ACCOUNT_AUDITOR)?;
    preset(&mut account, "interval", |own| own.interval = UP_INTERVAL);
    let ground = Ground::of(context, &[]);
    let niceness = objects.own.common.nice_priority.unwrap_or(priority::AUDITOR);
    let nice = World {
        pools: Arc::new(NiceThreads(niceness.0)),
        ..context.world.clone()
    };
    let reading = Ground {
        world: &nice,
        ..Ground::of(context, &[])
    };
    let mut daemons = reading.object_auditors(&objects);
    let pace = containers(&container);
    daemons.push(ground.database_auditor(&container.storage, &container.statsd, Kind::Container, pace));
    let pace = accounts(&account);
    daemons.push(ground.database_auditor(&account.storage, &account.statsd, Kind::Account, pace));
    Ok(daemons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_watchers_in_vain_is_logged_with_the_rest() {
        let text = "[object-auditor]\nwatchers = foo, swift#dark_data\n\
                    [object-auditor:watcher:swift#dark_data]\naction = burn\ngrace_aeg = 3\n";
        let path = std::env::temp_dir().join(format!("martlet-watchers-{}.conf", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let conf = ObjectAuditorConf::load(&path);
        std::fs::remove_file(&path).unwrap();
        let conf = conf.unwrap();
        let measured: Vec<String> = conf.own.beginning().warnings.iter().map(ToString::to_string).collect();
        for words in [
            "watcher \"foo\" is not supported",
            "action \"burn\" is unknown",
            "grace_aeg",
        ] {
            assert!(
                measured.iter().any(|line| line.contains(words)),
                "{words}: {measured:?}"
            );
        }
        assert_eq!(conf.dark_data.unwrap().action, DarkDataAction::Log);
    }
}
