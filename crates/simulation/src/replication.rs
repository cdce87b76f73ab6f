//! Replicators and auditors: now and then while everything goes wrong, and until nothing is left to do when all
//! is well.

use crate::bugs::Bug;
use crate::cluster::{Cluster, Life, OBJECTS, address};
use crate::disk::MOUNTS;
use crate::history::Violation;
use crate::inspect::on_node;
use crate::run::Run;
use crate::watch::{Watch, has_remains};
use std::collections::BTreeMap;
use std::time::Duration;
use upkeep::{
    Disks, LocalServer, ObjectAuditor, ObjectAuditorOptions, ObjectReplicator, ObjectReplicatorOptions,
    ObjectRingClient, ReconWriter, SyncMethod, UpkeepJob, UpkeepStep,
};
use vocabulary::{Policies, PolicyIndex};

/// Passes of all nodes within which everything must have come to rest. A partition is listed in every tenth.
const ROUNDS: usize = 30;

/// The object-replicator of a node in this life of it.
fn replicator(cluster: &Cluster, number: usize, life: &Life) -> ObjectReplicator {
    let ring_client = ObjectRingClient {
        rings: BTreeMap::from([(PolicyIndex(0), cluster.atlas.objects.clone())]),
        hash: cluster.atlas.hash.clone(),
        peers: life.peers.clone(),
    };
    let own = LocalServer {
        addresses: address(number).parse().into_iter().collect(),
        port: OBJECTS,
    };
    let options = ObjectReplicatorOptions {
        method: SyncMethod::Ssync,
        concurrency: 1 + cluster.dice.up_to(4),
        workers: 0,
        conn_timeout: Duration::from_millis(500),
        node_timeout: Duration::from_secs(10),
        http_timeout: Duration::from_secs(60),
        reclaim_age: Duration::from_secs(604_800),
        handoffs_first: cluster.dice.chance(50),
        handoff_delete: (cluster.manner.bug == Some(Bug::RemovesHandoffsEarly)).then_some(1),
        partitions: vec![],
        policies: vec![],
    };
    ObjectReplicator::new(Disks::new(life.world.clone(), MOUNTS, true), ring_client, own, options)
}

/// One pass: what was done, and what was left for later.
pub(crate) async fn pass(job: &mut impl UpkeepJob) -> (u64, u64) {
    let mut sum = (0, 0);
    while let UpkeepStep::Did { done, failed } = job.step().await {
        sum = (sum.0 + done, sum.1 + failed);
    }
    sum
}

/// Passes in the background, as long as the life of a node that has just begun.
pub(crate) fn replicate_now_and_then(cluster: &Cluster, number: usize) {
    let (Some(every), Some(life)) = (cluster.manner.replicates_every, &cluster.nodes[number].life) else {
        return;
    };
    let mut replicator = replicator(cluster, number, life);
    let watch = Watch::new(cluster, number);
    let (executor, dice, trace) = (cluster.executor.clone(), cluster.dice.clone(), cluster.trace.clone());
    let passes = async move {
        loop {
            let pause = dice.between(0, 2 * every.as_micros() as u64);
            executor.sleep(Duration::from_micros(pause)).await;
            let before = watch.handoffs();
            let (done, failed) = pass(&mut replicator).await;
            watch.compare(before);
            trace.note(format!("n{number}: replicated, {done} done, {failed} left"));
        }
    };
    cluster.executor.spawn(life.home, Box::pin(passes));
}

/// A pass of the object-auditor on each node: it finds what rotted, and what a loss of power took of the notes
/// that replication goes by.
pub(crate) fn audit_all(run: &mut Run) -> Result<(), Violation> {
    for number in 0..run.plan.nodes {
        let Some(life) = &run.cluster.nodes[number].life else {
            return Err(Violation(format!("node {number} is dead")));
        };
        let world = life.world.clone();
        let mut auditor = ObjectAuditor::new(
            Disks::new(world.clone(), MOUNTS, true),
            run.cluster.atlas.hash.clone(),
            Policies::default(),
            ObjectAuditorOptions::default(),
            None,
            ReconWriter::new(world, MOUNTS),
        );
        on_node(run, number, async move { pass(&mut auditor).await })?;
        run.cluster.trace.note(format!("n{number}: audited"));
    }
    Ok(())
}

/// Passes on all nodes, until in a whole round there was nothing to do.
pub(crate) fn replicate_all(run: &mut Run) -> Result<(), Violation> {
    let mut replicators = vec![];
    for (number, node) in run.cluster.nodes.iter().enumerate() {
        let life = node
            .life
            .as_ref()
            .ok_or_else(|| Violation(format!("node {number} is dead")))?;
        replicators.push(replicator(&run.cluster, number, life));
    }
    let mut left = vec![];
    for _ in 0..ROUNDS {
        left.clear();
        for (number, mut replicator) in std::mem::take(&mut replicators).into_iter().enumerate() {
            let watch = Watch::new(&run.cluster, number);
            let before = watch.handoffs();
            let passing = async move { (pass(&mut replicator).await, replicator) };
            let ((done, failed), back) = on_node(run, number, passing)?;
            watch.compare(before);
            replicators.push(back);
            run.cluster
                .trace
                .note(format!("n{number}: replicated, {done} done, {failed} left"));
            if done + failed > 0 && !has_remains(&run.cluster.nodes[number].files) {
                left.push(number);
            }
        }
        if left.is_empty() {
            return Ok(());
        }
    }
    Err(Violation(format!(
        "after {ROUNDS} passes the replicators of {left:?} still find something to do"
    )))
}
