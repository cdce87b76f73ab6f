//! Container-replicators: now and then while everything goes wrong, and until all is level when all is well.

use super::database_run::DatabaseRun;
use super::names::CONTAINERS;
use super::replicas::{self, ReplicaError};
use crate::cluster::SimCluster;
use crate::disk::MOUNTS;
use crate::history::Violation;
use crate::node::NodeProcess;
use crate::replication::pass;
use crate::topology::{ACCOUNTS, LISTINGS, address};
use listing_engine::Kind;
use peer::Timeouts;
use std::time::Duration;
use upkeep::{DatabaseReplicator, DatabaseReplicatorOptions, Disks, LocalServer, RingClient, RsyncOptions};

/// Passes of all nodes within which all replicas must be equal.
const ROUNDS: usize = 12;
/// Longer than a change needs to run in the times of a file.
const GRAIN: Duration = Duration::from_secs(5);

/// The replicator of a node's databases of a kind in this process of it.
pub(crate) fn replicator(
    cluster: &SimCluster,
    kind: Kind,
    number: usize,
    process: &NodeProcess,
) -> Option<DatabaseReplicator> {
    let config = cluster.config.databases?;
    let (ring, port) = match kind {
        Kind::Container => (&cluster.topology.listings, LISTINGS),
        Kind::Account => (&cluster.topology.accounts, ACCOUNTS),
    };
    let ring_client = RingClient {
        ring: ring.clone(),
        hash: cluster.topology.hash.clone(),
        peers: process.peers.clone(),
        timeouts: Timeouts {
            connect: Duration::from_millis(500),
            response: Duration::from_secs(10),
        },
    };
    let own = LocalServer {
        addresses: address(number).parse().into_iter().collect(),
        port,
    };
    let options = DatabaseReplicatorOptions {
        concurrency: 1 + cluster.dice.up_to(3),
        per_diff: config.per_diff,
        max_diffs: config.max_diffs,
        reclaim_age: cluster.reclaim_age(),
        handoffs_only: false,
        handoff_delete: None,
        trust: config.trust,
        partitions: [].into(),
        rsync: RsyncOptions {
            module: "/nowhere".into(),
            compress: false,
            connect: Duration::from_secs(1),
            stall: Duration::from_secs(1),
        },
    };
    let disks = Disks::new(process.world.clone(), MOUNTS, true);
    Some(DatabaseReplicator::new(kind, disks, ring_client, own, options))
}

/// Passes in the background, as long as the process of a node that has just begun.
pub(crate) fn replicate_now_and_then(cluster: &SimCluster, number: usize) {
    let (Some(every), Some(process)) = (cluster.config.replicates_every, &cluster.nodes[number].process) else {
        return;
    };
    let Some(mut replicator) = replicator(cluster, Kind::Container, number, process) else {
        return;
    };
    let (executor, dice, trace) = (cluster.executor.clone(), cluster.dice.clone(), cluster.trace.clone());
    let passes = async move {
        loop {
            let pause = dice.between(0, 2 * every.as_micros() as u64);
            executor.sleep(Duration::from_micros(pause)).await;
            let (done, failed) = pass(&mut replicator).await;
            trace.note(format!("n{number}: replicated, {done} done, {failed} left"));
        }
    };
    cluster.executor.spawn(process.home, Box::pin(passes));
}

/// All replicators of one round after another.
pub(super) struct Rounds(Vec<DatabaseReplicator>);

impl Rounds {
    pub(super) fn begin(run: &DatabaseRun) -> Self {
        let nodes = run.cluster.nodes.iter().enumerate();
        let of = |(number, node): (usize, &crate::node::SimNode)| {
            replicator(&run.cluster, Kind::Container, number, node.process.as_ref()?)
        };
        Self(nodes.filter_map(of).collect())
    }

    /// A pass on each node; how much was left.
    pub(super) fn round(&mut self, run: &mut DatabaseRun) -> Result<u64, Violation> {
        let mut left = 0;
        for (number, mut replicator) in std::mem::take(&mut self.0).into_iter().enumerate() {
            let passing = async move { (pass(&mut replicator).await, replicator) };
            let ((done, failed), back) = run.on_node(number, passing)?;
            self.0.push(back);
            let line = format!("n{number}: replicated, {done} done, {failed} left");
            run.cluster.trace.note(line);
            left += failed;
        }
        let trust = run
            .cluster
            .config
            .databases
            .map_or(Duration::ZERO, |config| config.trust);
        run.rest(trust + GRAIN)?;
        Ok(left)
    }

    /// Rounds until all is level.
    pub(super) fn level(&mut self, run: &mut DatabaseRun) -> Result<(), Violation> {
        let mut why = String::new();
        for _ in 0..ROUNDS {
            let left = self.round(run)?;
            why = match left {
                0 => String::new(),
                left => format!("{left} databases cannot be brought to others"),
            };
            for container in 0..CONTAINERS {
                match replicas::level(&run.cluster, container) {
                    Ok(_) => {}
                    Err(ReplicaError::NotLevel(difference)) => why = difference,
                    Err(ReplicaError::Broken(violation)) => return Err(violation),
                }
            }
            if why.is_empty() {
                return Ok(());
            }
        }
        Err(Violation(format!("after {ROUNDS} passes {why}")))
    }
}
