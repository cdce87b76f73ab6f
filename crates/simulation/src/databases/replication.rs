//! Container-replicators: now and then while everything goes wrong, and until all is level when all is well.

use super::history::CONTAINERS;
use super::replicas;
use super::run::Show;
use crate::cluster::{Cluster, LISTINGS, Life, address};
use crate::disk::MOUNTS;
use crate::history::Violation;
use crate::replication::pass;
use listing_engine::Kind;
use peer::Timeouts;
use std::time::Duration;
use upkeep::{DatabaseReplicator, DatabaseReplicatorOptions, Disks, LocalServer, RingClient, RsyncOptions};

/// Passes of all nodes within which all replicas must be equal.
const ROUNDS: usize = 12;
/// Longer than a change needs to show in the times of a file.
const GRAIN: Duration = Duration::from_secs(5);

/// The container-replicator of a node in this life of it.
fn replicator(cluster: &Cluster, number: usize, life: &Life) -> Option<DatabaseReplicator> {
    let manner = cluster.manner.databases?;
    let ring_client = RingClient {
        ring: cluster.atlas.listings.clone(),
        hash: cluster.atlas.hash.clone(),
        peers: life.peers.clone(),
        timeouts: Timeouts {
            connect: Duration::from_millis(500),
            response: Duration::from_secs(10),
        },
    };
    let own = LocalServer {
        addresses: address(number).parse().into_iter().collect(),
        port: LISTINGS,
    };
    let options = DatabaseReplicatorOptions {
        concurrency: 1 + cluster.dice.up_to(3),
        per_diff: manner.per_diff,
        max_diffs: manner.max_diffs,
        reclaim_age: Duration::from_secs(604_800),
        handoffs_only: false,
        handoff_delete: None,
        trust: manner.trust,
        partitions: [].into(),
        rsync: RsyncOptions {
            module: "/nowhere".into(),
            compress: false,
            connect: Duration::from_secs(1),
            stall: Duration::from_secs(1),
        },
    };
    let disks = Disks::new(life.world.clone(), MOUNTS, true);
    Some(DatabaseReplicator::new(
        Kind::Container,
        disks,
        ring_client,
        own,
        options,
    ))
}

/// Passes in the background, as long as the life of a node that has just begun.
pub(crate) fn replicate_now_and_then(cluster: &Cluster, number: usize) {
    let (Some(every), Some(life)) = (cluster.manner.replicates_every, &cluster.nodes[number].life) else {
        return;
    };
    let Some(mut replicator) = replicator(cluster, number, life) else {
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
    cluster.executor.spawn(life.home, Box::pin(passes));
}

/// All replicators of one round after another.
pub(super) struct Rounds(Vec<DatabaseReplicator>);

impl Rounds {
    pub(super) fn begin(show: &Show) -> Self {
        let nodes = show.cluster.nodes.iter().enumerate();
        let of =
            |(number, node): (usize, &crate::cluster::Node)| replicator(&show.cluster, number, node.life.as_ref()?);
        Self(nodes.filter_map(of).collect())
    }

    /// A pass on each node; how much was left.
    pub(super) fn round(&mut self, show: &mut Show) -> Result<u64, Violation> {
        let mut left = 0;
        for (number, mut replicator) in std::mem::take(&mut self.0).into_iter().enumerate() {
            let passing = async move { (pass(&mut replicator).await, replicator) };
            let ((done, failed), back) = show.on_node(number, passing)?;
            self.0.push(back);
            let said = format!("n{number}: replicated, {done} done, {failed} left");
            show.cluster.trace.note(said);
            left += failed;
        }
        let trust = show
            .cluster
            .manner
            .databases
            .map_or(Duration::ZERO, |manner| manner.trust);
        show.rest(trust + GRAIN)?;
        Ok(left)
    }

    /// Rounds until all is level.
    pub(super) fn level(&mut self, show: &mut Show) -> Result<(), Violation> {
        let mut why = String::new();
        for _ in 0..ROUNDS {
            let left = self.round(show)?;
            why = match left {
                0 => String::new(),
                left => format!("{left} databases cannot be brought to others"),
            };
            for container in 0..CONTAINERS {
                if let Err(said) = replicas::level(&show.cluster, container)? {
                    why = said;
                }
            }
            if why.is_empty() {
                return Ok(());
            }
        }
        Err(Violation(format!("after {ROUNDS} passes {why}")))
    }
}
