//! The look at all containers when all is well again.
//!
//! | looked at | must be |
//! |---|---|
//! | replicas | equal within a few passes: rows, hash, times, metadata; on each primary and nowhere else |
//! | what they say | what was acknowledged by anybody, or something newer that was tried: rows, deletions, items |
//! | counters | what the rows come to |
//! | the drive | no file in `tmp`, nothing in quarantine; no task left |

use super::database_run::DatabaseRun;
use super::names::{ACCOUNT, CONTAINERS, container};
use super::replicas::{self, ReplicaError};
use super::replication::Rounds;
use crate::cluster::SimCluster;
use crate::history::Violation;
use crate::topology::DRIVE;
use peer::message::{ReadContainer, RequestContext};
use peer::{Call, Target};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::{EntityPath, Partition};

/// Long enough for unclaimed copies to be given up.
const LONG: Duration = Duration::from_secs(7_500);

pub(super) fn everything(run: &mut DatabaseRun) -> Result<(), Violation> {
    for node in 0..run.cluster.nodes.len() {
        wake(run, node)?;
    }
    let mut rounds = Rounds::begin(run);
    rounds.level(run)?;
    for container in 0..CONTAINERS {
        let seen = replicas::level(&run.cluster, container).map_err(ReplicaError::into_violation)?;
        run.history.judge(container, seen.as_ref())?;
    }
    // The name that a copy came under may have come back with the power, and lead to the database that it has become
    // since: no request claims that either once it is left alone.
    for _ in 0..2 {
        run.rest(LONG)?;
        rounds.round(run)?;
        if stray(&run.cluster).is_none() {
            break;
        }
    }
    drop(rounds);
    nothing_left(run)
}

/// A file that means nothing to anybody, and the node that has it. Databases on a drive that could not be read may have
/// gone to quarantine.
fn stray(cluster: &SimCluster) -> Option<(usize, String)> {
    let nodes = cluster.nodes.iter().enumerate();
    let mut strays = nodes.flat_map(|(number, node)| {
        let has_erred = node.files.has_erred();
        let is_stray = move |file: &String| file.contains("/tmp/") || !has_erred && file.contains("/quarantined/");
        let strays = node.files.all_files().into_iter().filter(is_stray);
        strays.map(move |file| (number, file))
    });
    strays.next()
}

/// A server looks at its drive when it is first asked.
fn wake(run: &mut DatabaseRun, node: usize) -> Result<(), Violation> {
    let target = Target {
        device: DRIVE.into(),
        partition: Partition(0),
        path: Arc::new(EntityPath::account(ACCOUNT).with_container(container(0))),
    };
    let Some(process) = &run.cluster.nodes[node].process else {
        return Err(Violation(format!("node {node} is dead although all is well")));
    };
    let listings = process.listings.clone();
    let head = ReadContainer {
        head_only: true,
        ..ReadContainer::new(target)
    };
    let call = Call::new(RequestContext::default(), head);
    let status = run.on_node(node, async move { listings.call(call).await.status().as_u16() })?;
    match status {
        204 | 404 => Ok(()),
        status => Err(Violation(format!("node {node} answers {status} although all is well"))),
    }
}

fn nothing_left(run: &mut DatabaseRun) -> Result<(), Violation> {
    let SimCluster { nodes, executor, .. } = &run.cluster;
    for (number, node) in nodes.iter().enumerate() {
        let tasks = node.process.as_ref().map_or(0, |process| executor.count(process.home));
        if tasks > 0 {
            return Err(Violation(format!(
                "node {number}: {tasks} tasks are left when all is quiet"
            )));
        }
    }
    if let Some((number, file)) = stray(&run.cluster) {
        return Err(Violation(format!("node {number}: {file} is left")));
    }
    let census = run.cluster.census.lock();
    match (census.panics, census.beyond_limit) {
        (0, 0) => Ok(()),
        (panics, beyond) => Err(Violation(format!(
            "{panics} jobs panicked, {beyond} waited beyond the limit"
        ))),
    }
}
