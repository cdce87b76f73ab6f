//! Replicators and auditors: now and then while everything goes wrong, and until nothing is left to do when all
//! is well.

use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::disk::MOUNTS;
use crate::history::Violation;
use crate::node::NodeProcess;
use crate::sim_run::SimRun;
use crate::topology::{OBJECTS, address};
use crate::watch::{HandoffWatch, has_remains};
use std::time::Duration;
use upkeep::{
    Disks, LocalServer, ObjectAuditor, ObjectAuditorOptions, ObjectReplicator, ObjectReplicatorOptions,
    ObjectRingClient, ReconWriter, SyncMethod, UpkeepJob, UpkeepStep,
};
use vocabulary::Policies;

/// Passes of all nodes within which everything must have come to rest. A partition is listed in every tenth.
const ROUNDS: usize = 30;

/// The object-replicator of a node in this process of it.
pub(crate) fn replicator(cluster: &SimCluster, number: usize, process: &NodeProcess) -> ObjectReplicator {
    let ring_client = ObjectRingClient {
        rings: cluster.topology.object_rings(cluster.config.whole),
        hash: cluster.topology.hash.clone(),
        peers: process.peers.clone(),
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
        reclaim_age: cluster.reclaim_age(),
        handoffs_first: cluster.dice.chance(50),
        handoff_delete: (cluster.config.bug == Some(Bug::RemovesHandoffsEarly)).then_some(1),
        partitions: vec![],
        policies: vec![],
    };
    ObjectReplicator::new(
        Disks::new(process.world.clone(), MOUNTS, true),
        ring_client,
        own,
        options,
    )
}

/// One pass: what was done, and what was left for later.
pub(crate) async fn pass(job: &mut impl UpkeepJob) -> (u64, u64) {
    let mut sum = (0, 0);
    while let UpkeepStep::Did { done, failed } = job.step().await {
        sum = (sum.0 + done, sum.1 + failed);
    }
    sum
}

/// Passes in the background, as long as the process of a node that has just begun.
pub(crate) fn replicate_now_and_then(cluster: &SimCluster, number: usize) {
    let (Some(every), Some(process)) = (cluster.config.replicates_every, &cluster.nodes[number].process) else {
        return;
    };
    let mut replicator = replicator(cluster, number, process);
    let watch = HandoffWatch::new(cluster, number);
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
    cluster.executor.spawn(process.home, Box::pin(passes));
}

/// A pass of the object-auditor on each node: it finds what rotted, and what a loss of power took of the notes
/// that replication goes by.
pub(crate) fn audit_all(run: &mut SimRun) -> Result<(), Violation> {
    for number in 0..run.plan.nodes {
        let Some(process) = &run.cluster.nodes[number].process else {
            return Err(Violation(format!("node {number} is dead")));
        };
        let world = process.world.clone();
        let mut auditor = ObjectAuditor::new(
            Disks::new(world.clone(), MOUNTS, true),
            run.cluster.topology.hash.clone(),
            Policies::default(),
            ObjectAuditorOptions::default(),
            None,
            ReconWriter::new(world, MOUNTS),
        );
        run.on_node(number, async move { pass(&mut auditor).await })?;
        run.cluster.trace.note(format!("n{number}: audited"));
    }
    Ok(())
}

/// Passes on all nodes, until in a whole round there was nothing to do.
pub(crate) fn replicate_all(run: &mut SimRun) -> Result<(), Violation> {
    let mut replicators = vec![];
    for (number, node) in run.cluster.nodes.iter().enumerate() {
        let process = node
            .process
            .as_ref()
            .ok_or_else(|| Violation(format!("node {number} is dead")))?;
        replicators.push(replicator(&run.cluster, number, process));
    }
    let mut left = vec![];
    for _ in 0..ROUNDS {
        left.clear();
        for (number, mut replicator) in std::mem::take(&mut replicators).into_iter().enumerate() {
            let watch = HandoffWatch::new(&run.cluster, number);
            let before = watch.handoffs();
            let passing = async move { (pass(&mut replicator).await, replicator) };
            let ((done, failed), back) = run.on_node(number, passing)?;
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
