//! From configuration to the replicators of account and container databases.

use super::{UpkeepContext, load, local_server, pause, preset, run};
use crate::cli::ReplicatorLine;
use crate::failure::CommandFailure;
use listing_server::Kind;
use peer::Timeouts;
use settings::UpkeepConf;
use settings::database_replicators::DatabaseReplicatorSettings;
use std::path::Path;
use std::time::Duration;
use upkeep::{Daemon, DatabaseReplicator, DatabaseReplicatorOptions, RsyncOptions};
use vocabulary::Partition;

type Conf = UpkeepConf<DatabaseReplicatorSettings>;

/// Both kinds, and where their options are.
const FILES: [(Kind, &str); 2] = [
    (Kind::Account, "account-server.conf"),
    (Kind::Container, "container-server.conf"),
];

/// A database that is level with its replicas and does not change need not be compared in each pass: all
/// devices of a cluster in one process are under its eyes.
const UP_TRUST: Duration = Duration::from_secs(600);

/// `martlet account-replicator` and `martlet container-replicator`.
pub fn database_replicator(kind: Kind, line: &ReplicatorLine) -> Result<(), CommandFailure> {
    let conf = Conf::load(&line.upkeep.conf, section(kind))?;
    let once = line.upkeep.once();
    // As with OpenStack's, a choice holds for single passes only.
    let chosen = Chosen {
        devices: if once { &line.devices } else { &[] },
        partitions: if once { &line.partitions } else { &[] },
    };
    run(conf.beginning(), line.upkeep.passes(), |context| {
        replicator(context, kind, &conf, &chosen, Duration::ZERO)
    })
}

/// The replicators of a cluster in one process.
pub(super) fn for_up(context: &UpkeepContext<'_>, etc: &Path) -> Result<Vec<Daemon>, CommandFailure> {
    let all = Chosen {
        devices: &[],
        partitions: &[],
    };
    let one = |(kind, file): (Kind, &str)| {
        let mut conf: Conf = load(etc, file, section(kind))?;
        preset(&mut conf, "databases_per_second", |own| {
            own.databases_per_second = super::UP_PER_SECOND
        });
        Ok(replicator(context, kind, &conf, &all, UP_TRUST))
    };
    FILES.into_iter().map(one).collect()
}

fn section(kind: Kind) -> &'static str {
    match kind {
        Kind::Account => "account-replicator",
        Kind::Container => "container-replicator",
    }
}

/// What the command line chooses; everything when empty.
struct Chosen<'c> {
    devices: &'c [String],
    partitions: &'c [u32],
}

fn replicator(context: &UpkeepContext<'_>, kind: Kind, conf: &Conf, chosen: &Chosen<'_>, trust: Duration) -> Daemon {
    let settings = &conf.settings;
    let (connect, response) = (settings.conn_timeout, settings.node_timeout);
    let ring_client = match kind {
        Kind::Account => context.account_servers(connect, response),
        Kind::Container => context.container_servers(connect, response),
    };
    let options = DatabaseReplicatorOptions {
        trust,
        ..options(kind, settings, ring_client.timeouts, chosen)
    };
    let disks = context.disks(&conf.storage, chosen.devices);
    let own = local_server(&conf.common, &settings.ring_ip);
    let job = DatabaseReplicator::new(kind, disks, ring_client, own, options);
    let interval = pause(conf, settings.run_pause, settings.interval);
    context.daemon(conf, job, settings.databases_per_second, interval)
}

fn options(
    kind: Kind,
    settings: &DatabaseReplicatorSettings,
    timeouts: Timeouts,
    chosen: &Chosen<'_>,
) -> DatabaseReplicatorOptions {
    let module = match settings.rsync_module.trim_end_matches('/') {
        "" => format!("{{replication_ip}}::{}", kind.word()),
        chosen => chosen.to_owned(),
    };
    DatabaseReplicatorOptions {
        concurrency: settings.concurrency,
        per_diff: settings.per_diff,
        max_diffs: settings.max_diffs,
        reclaim_age: settings.reclaim_age,
        handoffs_only: settings.handoffs_only,
        handoff_delete: settings.handoff_delete.0,
        trust: Duration::ZERO,
        partitions: chosen.partitions.iter().copied().map(Partition).collect(),
        rsync: RsyncOptions {
            module,
            compress: settings.rsync_compress,
            connect: timeouts.connect,
            stall: timeouts.response,
        },
    }
}
