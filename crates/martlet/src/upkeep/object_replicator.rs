//! From configuration to the object-replicator.

use super::{UpkeepContext, load, measured, run};
use crate::addresses;
use crate::cli::ObjectReplicatorLine;
use crate::failure::CommandFailure;
use settings::UpkeepConf;
use settings::object_replicator::ObjectReplicatorSettings;
use std::path::Path;
use std::time::Duration;
use upkeep::{
    Daemon, Disks, LocalServer, ObjectReplicator, ObjectReplicatorOptions, ObjectRingClient, ObjectRsyncOptions,
    SyncMethod, UpkeepPace,
};
use vocabulary::{Partition, PolicyIndex, PolicyKind};

type Conf = UpkeepConf<ObjectReplicatorSettings>;

const SECTION: &str = "object-replicator";
/// Partitions at the same time in a cluster of one process, whose devices are often one disk.
const UP_CONCURRENCY: usize = 4;

/// `martlet object-replicator`.
pub fn object_replicator(line: &ObjectReplicatorLine) -> Result<(), CommandFailure> {
    let conf = Conf::load(&line.upkeep.conf, SECTION)?;
    let once = line.upkeep.once();
    // As with OpenStack's, a choice holds for single passes only.
    let chosen = if once { Chosen::of(line) } else { Chosen::default() };
    let method = method(&conf)?;
    run(conf.beginning(), once, |context| {
        if conf.common.cluster_tls.is_spoken() && matches!(method, SyncMethod::Rsync(_)) {
            tracing::warn!(
                "[{SECTION}] sync_method = rsync: rsync sends objects in the clear, whatever cluster_tls says"
            );
        }
        replicator(context, &conf, chosen)
    })
}

/// The replicator of a cluster in one process. No rsync daemon is there: objects travel by function calls.
pub(super) fn for_up(context: &UpkeepContext<'_>, etc: &Path) -> Result<Daemon, CommandFailure> {
    let mut conf: Conf = load(etc, "object-server.conf", SECTION)?;
    if !conf.says("sync_method") {
        conf.settings.sync_method = "ssync".into();
    }
    if !conf.says("concurrency") {
        conf.settings.concurrency = UP_CONCURRENCY;
    }
    method(&conf)?;
    Ok(replicator(context, &conf, Chosen::default()))
}

/// What the command line chooses; everything when empty.
#[derive(Default)]
struct Chosen {
    devices: Vec<String>,
    partitions: Vec<Partition>,
    policies: Vec<PolicyIndex>,
}

impl Chosen {
    fn of(line: &ObjectReplicatorLine) -> Self {
        Self {
            devices: line.devices.clone(),
            partitions: line.partitions.iter().copied().map(Partition).collect(),
            policies: line.policies.iter().copied().map(PolicyIndex).collect(),
        }
    }
}

fn method(conf: &Conf) -> Result<SyncMethod, CommandFailure> {
    let settings = &conf.settings;
    match settings.sync_method.as_str() {
        "ssync" => Ok(SyncMethod::Ssync),
        "rsync" => Ok(SyncMethod::Rsync(ObjectRsyncOptions {
            module: match settings.rsync_module.as_str() {
                "" => "{replication_ip}::object".into(),
                module => module.to_owned(),
            },
            timeout: settings.rsync_timeout,
            io_timeout: settings.rsync_io_timeout.clone(),
            bwlimit: settings.rsync_bwlimit.clone(),
            compress: settings.rsync_compress,
            error_line: settings.rsync_error_log_line_length,
            log_transfers: settings.log_rsync_transfers,
        })),
        other => Err(CommandFailure::Usage(format!(
            "[{SECTION}] sync_method = {other}: expected rsync or ssync"
        ))),
    }
}

fn replicator(context: &UpkeepContext<'_>, conf: &Conf, chosen: Chosen) -> Daemon {
    let settings = &conf.settings;
    let replicated = context
        .rings
        .policies
        .iter()
        .filter(|policy| policy.kind == PolicyKind::Replication);
    let rings = replicated.filter_map(|policy| Some((policy.index, context.rings.objects.get(&policy.index)?.clone())));
    let ring_client = ObjectRingClient {
        rings: rings.collect(),
        hash: context.rings.hash.clone(),
        peers: context.peers.clone(),
    };
    let disks =
        Disks::new(context.world.clone(), &conf.storage.devices, conf.storage.mount_check).only(&chosen.devices);
    let disks = disks.watched(context.drives.clone());
    let host = match settings.ring_ip.as_str() {
        "" => &conf.common.bind_ip,
        ring_ip => ring_ip,
    };
    let own = LocalServer {
        addresses: addresses::of(host),
        port: if settings.servers_per_port > 0 {
            0
        } else {
            conf.common.bind_port
        },
    };
    let options = ObjectReplicatorOptions {
        // It was looked at before.
        method: method(conf).unwrap_or(SyncMethod::Ssync),
        concurrency: settings.concurrency,
        workers: settings.replicator_workers,
        conn_timeout: settings.conn_timeout,
        node_timeout: settings.node_timeout,
        http_timeout: settings.http_timeout,
        reclaim_age: settings.reclaim_age,
        handoffs_first: settings.handoffs_first,
        handoff_delete: settings.handoff_delete.0,
        partitions: chosen.partitions,
        policies: chosen.policies,
    };
    let pace = UpkeepPace {
        per_second: 0.0,
        interval: interval(conf),
    };
    let job = ObjectReplicator::new(disks, ring_client, own, options);
    measured(
        context.world,
        &conf.statsd,
        Daemon::new(context.world.clone(), job, pace),
    )
    .with_recon(context.recon(&conf.storage))
}

fn interval(conf: &Conf) -> Duration {
    match conf.settings.run_pause {
        Some(pause) if !conf.says("interval") => pause,
        _ => conf.settings.interval,
    }
}
