//! From configuration to the object-replicator.

use super::{UpkeepContext, load, local_server, pause, preset, run};
use crate::cli::ObjectReplicatorLine;
use crate::failure::CommandFailure;
use settings::UpkeepConf;
use settings::object_replicator::ObjectReplicatorSettings;
use std::path::Path;
use upkeep::{
    Daemon, LocalServer, ObjectReplicator, ObjectReplicatorOptions, ObjectRingClient, ObjectRsyncOptions, SyncMethod,
};
use vocabulary::{Partition, PolicyIndex};

type Conf = UpkeepConf<ObjectReplicatorSettings>;

const SECTION: &str = "object-replicator";
/// Partitions at the same time in a cluster of one process, whose devices are often one disk.
const UP_CONCURRENCY: usize = 4;

/// `martlet object-replicator`.
pub fn object_replicator(line: &ObjectReplicatorLine) -> Result<(), CommandFailure> {
    let conf = Conf::load(&line.replicator.upkeep.conf, SECTION)?;
    let once = line.replicator.upkeep.once();
    // As with OpenStack's, a choice holds for single passes only.
    let chosen = if once { Chosen::of(line) } else { Chosen::default() };
    let method = method(&conf)?;
    run(conf.beginning(), line.replicator.upkeep.passes(), |context| {
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
    preset(&mut conf, "sync_method", |own| own.sync_method = "ssync".into());
    preset(&mut conf, "concurrency", |own| own.concurrency = UP_CONCURRENCY);
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
            devices: line.replicator.devices.clone(),
            partitions: line.replicator.partitions.iter().copied().map(Partition).collect(),
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
    let ring_client = ObjectRingClient {
        rings: context.replicated_rings(),
        hash: context.rings.hash.clone(),
        peers: context.peers.clone(),
    };
    let named = local_server(&conf.common, &settings.ring_ip);
    let own = match settings.servers_per_port {
        0 => named,
        _ => LocalServer { port: 0, ..named },
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
    let disks = context.disks(&conf.storage, &chosen.devices);
    let job = ObjectReplicator::new(disks, ring_client, own, options);
    context.daemon(conf, job, 0.0, pause(conf, settings.run_pause, settings.interval))
}
