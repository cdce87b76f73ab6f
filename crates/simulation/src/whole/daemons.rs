//! The daemons of a node: now and then while everything goes wrong, and in rounds when all is well.

use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::config::RECLAIM_AGE;
use crate::databases::replication::replicator as database_replicator;
use crate::disk::MOUNTS;
use crate::node::NodeProcess;
use crate::replication::{pass, replicator};
use listing_engine::Kind;
use peer::{HttpService, Timeouts};
use std::sync::Arc;
use std::time::Duration;
use upkeep::{
    ContainerReconciler, ContainerUpdater, DatabaseReplicator, Delays, Disks, ExpirerOptions, InternalClient,
    MISPLACED_OBJECTS, ObjectAuditor, ObjectAuditorOptions, ObjectExpirer, ObjectReplicator, ObjectServers,
    ObjectUpdater, ReconWriter, ReconcilerOptions, RingClient,
};

/// The queue of the expirer.
pub(super) const QUEUE: &str = ".expiring_objects";
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(500),
    response: Duration::from_secs(15),
};

/// All daemons of a node in one process of it.
pub(super) struct NodeDaemons {
    objects: ObjectReplicator,
    databases: Vec<DatabaseReplicator>,
    rows: ObjectUpdater,
    auditor: ObjectAuditor,
    figures: ContainerUpdater,
    expirer: ObjectExpirer,
    /// None with the bug that leaves objects where they are.
    reconciler: Option<ContainerReconciler>,
}

impl NodeDaemons {
    pub(super) fn new(cluster: &SimCluster, number: usize, process: &NodeProcess) -> Self {
        let (world, topology) = (process.world.clone(), &cluster.topology);
        let disks = || Disks::new(world.clone(), MOUNTS, true);
        let ring_client = |ring: &Arc<_>| RingClient {
            ring: Arc::clone(ring),
            hash: topology.hash.clone(),
            peers: process.peers.clone(),
            timeouts: TIMEOUTS,
        };
        let gateway: Arc<dyn HttpService> = process.gateway.clone();
        let client = |agent| InternalClient::new(world.clone(), gateway.clone(), agent, 2);
        let containers = ring_client(&topology.listings);
        let kinds = [Kind::Container, Kind::Account];
        let databases = kinds.map(|kind| database_replicator(cluster, kind, number, process));
        let servers = ObjectServers {
            rings: topology.object_rings(true),
            containers: topology.listings.clone(),
            hash: topology.hash.clone(),
            peers: process.peers.clone(),
            timeouts: TIMEOUTS,
        };
        let expirer = ObjectExpirer::new(world.clone(), client("expirer"), containers.clone(), expirer_options());
        let reconciler = ContainerReconciler::new(
            world.clone(),
            client("reconciler"),
            containers.clone(),
            ReconcilerOptions {
                account: format!(".{MISPLACED_OBJECTS}"),
                reclaim_age: RECLAIM_AGE,
                concurrency: 2,
                processes: 0,
                process: 0,
                policies: cluster.policies(),
            },
        );
        Self {
            objects: replicator(cluster, number, process),
            databases: databases.into_iter().flatten().collect(),
            rows: ObjectUpdater::new(disks(), containers, cluster.policies(), 4, 2),
            auditor: auditor(cluster, number, process),
            figures: ContainerUpdater::new(
                disks(),
                ring_client(&topology.accounts),
                2,
                Duration::from_secs(1),
                Duration::from_secs(900),
            ),
            expirer: match cluster.dice.chance(80) {
                true => expirer.in_batches(servers),
                false => expirer,
            },
            reconciler: (cluster.config.bug != Some(Bug::MovesNothing)).then_some(reconciler),
        }
    }

    /// A pass of each.
    pub(super) async fn round(&mut self) -> (u64, u64) {
        let mut sum = (0, 0);
        let mut add = |(done, failed): (u64, u64)| sum = (sum.0 + done, sum.1 + failed);
        add((0, pass(&mut self.auditor).await.1));
        add(pass(&mut self.rows).await);
        add(pass(&mut self.objects).await);
        for databases in &mut self.databases {
            add(pass(databases).await);
        }
        add(pass(&mut self.figures).await);
        add(pass(&mut self.expirer).await);
        if let Some(reconciler) = &mut self.reconciler {
            add(pass(reconciler).await);
        }
        sum
    }
}

fn auditor(cluster: &SimCluster, number: usize, process: &NodeProcess) -> ObjectAuditor {
    let looks = cluster.config.bug != Some(Bug::ForgetsLateRows);
    let options = ObjectAuditorOptions {
        reclaim_age: RECLAIM_AGE,
        boot: looks.then(|| cluster.nodes[number].switched_on.boot()),
        ..ObjectAuditorOptions::default()
    };
    let world = process.world.clone();
    ObjectAuditor::new(
        Disks::new(world.clone(), MOUNTS, true),
        cluster.topology.hash.clone(),
        cluster.policies(),
        options,
        None,
        ReconWriter::new(world, MOUNTS),
    )
}

fn expirer_options() -> ExpirerOptions {
    ExpirerOptions {
        account: QUEUE.into(),
        concurrency: 2,
        per_second: 0.0,
        processes: 0,
        process: 0,
        reclaim_age: RECLAIM_AGE,
        report_interval: Duration::from_secs(300),
        listing_limit: 1_000,
        delays: Delays::default(),
        idle: false,
    }
}

/// Rounds in the background, as long as the process of a node that has just begun.
pub(super) fn work_now_and_then(cluster: &SimCluster, number: usize) {
    let (Some(every), Some(process)) = (cluster.config.replicates_every, &cluster.nodes[number].process) else {
        return;
    };
    let mut daemons = NodeDaemons::new(cluster, number, process);
    let (executor, dice, trace) = (cluster.executor.clone(), cluster.dice.clone(), cluster.trace.clone());
    let rounds = async move {
        loop {
            let pause = dice.between(0, 2 * every.as_micros() as u64);
            executor.sleep(Duration::from_micros(pause)).await;
            let (done, failed) = daemons.round().await;
            trace.note(format!("n{number}: worked, {done} done, {failed} left"));
        }
    };
    cluster.executor.spawn(process.home, Box::pin(rounds));
}
