//! The look at all containers when all is well again.
//!
//! | looked at | must be |
//! |---|---|
//! | replicas | equal within a few passes: rows, hash, times, metadata; on each primary and nowhere else |
//! | what they say | what was acknowledged by anybody, or something newer that was tried: rows, deletions, items |
//! | counters | what the rows come to |
//! | the drive | no file in `tmp`, nothing in quarantine; no task left |

use super::history::{ACCOUNT, CONTAINERS, container};
use super::replicas;
use super::replication::Rounds;
use super::run::Show;
use crate::cluster::{Cluster, DRIVE};
use crate::history::Violation;
use http::{HeaderMap, Method};
use peer::{RawCall, Target};
use std::sync::Arc;
use std::time::Duration;
use vocabulary::EntityPath;

/// Long enough for copies that nobody claimed to be given up.
const LONG: Duration = Duration::from_secs(7_500);

pub(super) fn everything(show: &mut Show) -> Result<(), Violation> {
    for node in 0..show.cluster.nodes.len() {
        wake(show, node)?;
    }
    let mut rounds = Rounds::begin(show);
    rounds.level(show)?;
    for container in 0..CONTAINERS {
        let seen = replicas::level(&show.cluster, container)?.map_err(Violation)?;
        show.history.judge(container, seen.as_ref())?;
    }
    // The name that a copy came under may have come back with the power, and lead to the database that it has become since:
    // nobody claims that either once it is left alone.
    for _ in 0..2 {
        show.rest(LONG)?;
        rounds.round(show)?;
        if stray(&show.cluster).is_none() {
            break;
        }
    }
    drop(rounds);
    nothing_left(show)
}

/// A file that means nothing to anybody, and the node that has it.
fn stray(cluster: &Cluster) -> Option<(usize, String)> {
    let is_stray = |file: &String| file.contains("/tmp/") || file.contains("/quarantined/");
    let files = cluster.nodes.iter().map(|node| node.files.all_files());
    let mut strays = files.enumerate().flat_map(|(number, files)| {
        let strays = files.into_iter().filter(is_stray);
        strays.map(move |file| (number, file))
    });
    strays.next()
}

/// A server looks at its drive when it is first asked.
fn wake(show: &mut Show, node: usize) -> Result<(), Violation> {
    let target = Target {
        device: DRIVE.into(),
        partition: vocabulary::Partition(0),
        path: Arc::new(EntityPath::account(ACCOUNT).with_container(container(0))),
    };
    let Some(life) = &show.cluster.nodes[node].life else {
        return Err(Violation(format!("node {node} is dead although all is well")));
    };
    let listings = life.listings.clone();
    let call = RawCall::new(Method::HEAD, target, HeaderMap::new());
    let status = show.on_node(node, async move { listings.call(call.into()).await.status().as_u16() })?;
    match status {
        204 | 404 => Ok(()),
        status => Err(Violation(format!("node {node} answers {status} although all is well"))),
    }
}

fn nothing_left(show: &mut Show) -> Result<(), Violation> {
    let Cluster { nodes, executor, .. } = &show.cluster;
    for (number, node) in nodes.iter().enumerate() {
        let tasks = node.life.as_ref().map_or(0, |life| executor.count(life.home));
        if tasks > 0 {
            return Err(Violation(format!(
                "node {number}: {tasks} tasks are left when all is quiet"
            )));
        }
    }
    if let Some((number, file)) = stray(&show.cluster) {
        return Err(Violation(format!("node {number}: {file} is left")));
    }
    let census = show.cluster.census.lock();
    match (census.panics, census.beyond_limit) {
        (0, 0) => Ok(()),
        (panics, beyond) => Err(Violation(format!(
            "{panics} jobs panicked, {beyond} waited beyond the limit"
        ))),
    }
}
