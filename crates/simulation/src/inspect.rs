//! The look at everything when all is well again: what promises were kept?
//!
//! Every node is asked for every path itself, and what they have is merged as replication would merge it:
//! the newest of all. Upkeep's pending rows are sent first. Then replication does so, and everything is
//! looked at once more: it must be the same, on every primary and nowhere else.

use crate::client::{LONGEST, set};
use crate::cluster::SimCluster;
use crate::containers::PlayedRow;
use crate::disk::MOUNTS;
use crate::history::{ClientWrite, SeenState, Violation, WriteHistory, WriteOutcome, WriteVerb};
use crate::sent_times::NUMBER;
use crate::sim_run::{SOON, SimRun};
use crate::topology::DRIVE;
use crate::{replicas, replication};
use bytes::Bytes;
use http::HeaderMap;
use http::header::HeaderName;
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_NEWEST};
use peer::message::{ReadObject, RequestContext};
use peer::{Call, HttpService, Target, Timeouts};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use upkeep::{Disks, ObjectUpdater, RingClient, UpkeepJob, UpkeepStep};
use vocabulary::{EntityPath, Policies, PolicyIndex, Timestamp};

/// Long enough for everything that goes on in the background to end.
const QUIET: Duration = Duration::from_secs(3600);

/// From one pass of the object-updater to the next, as its `interval` is.
const BETWEEN_UPDATERS: Duration = Duration::from_secs(300);

/// All promises.
pub(crate) fn everything(run: &mut SimRun) -> Result<(), Violation> {
    for _ in 0..2 {
        for node in 0..run.plan.nodes {
            update_rows(run, node)?;
        }
        // What a server still recovers meanwhile is for the next pass.
        let next_pass = run.cluster.executor.now() + BETWEEN_UPDATERS;
        run.advance(next_pass, |_| false)?;
    }
    let mut before = vec![];
    for path in 0..run.history.paths.len() {
        let seen = merged(run, path)?;
        run.history.judge(path, &seen)?;
        if run.plan.only_clocks {
            run.history.judge_order(path, &seen)?;
        }
        through_gateway(run, path)?;
        if !run.plan.interrupts {
            rows_are_there(run, path)?;
        }
        before.push(seen);
    }
    replication::audit_all(run)?;
    if run.cluster.bit_flipped {
        // It may have flipped in the only tombstone of an unacknowledged deletion, which readers do not notice and the
        // auditor does: then the older body is what replication is to spread.
        for (path, seen) in before.iter_mut().enumerate() {
            *seen = merged(run, path)?;
            run.history.judge(path, seen)?;
        }
    }
    replication::replicate_all(run)?;
    for (path, before) in before.into_iter().enumerate() {
        let after = merged(run, path)?;
        if after.state() != before.state() && !run.history.has_gained_metadata(path, &before, &after) {
            let name = &run.history.paths[path];
            return Err(Violation(format!("{name:?}: replication made {after:?} of {before:?}")));
        }
    }
    replicas::are_equal(run)?;
    nothing_left(run)?;
    let census = run.cluster.census.lock();
    if let Some(finding) = census.given_up.iter().chain(&census.fallen).next() {
        return Err(Violation(finding.clone()));
    }
    match (census.panics, census.beyond_limit) {
        (0, 0) => Ok(()),
        (0, count) => Err(Violation(format!("{count} jobs waited beyond the limit"))),
        (count, _) => Err(Violation(format!("{count} jobs panicked"))),
    }
}

/// A pass of the object-updater.
fn update_rows(run: &mut SimRun, node: usize) -> Result<(), Violation> {
    let Some(process) = &run.cluster.nodes[node].process else {
        return Ok(());
    };
    let ring_client = RingClient {
        ring: run.cluster.topology.listings.clone(),
        hash: run.cluster.topology.hash.clone(),
        peers: process.peers.clone(),
        timeouts: Timeouts {
            connect: SOON,
            response: SOON,
        },
    };
    let disks = Disks::new(process.world.clone(), MOUNTS, true);
    let mut updater = ObjectUpdater::new(disks, ring_client, Policies::default(), 4, 1);
    run.on_node(
        node,
        async move { while updater.step().await != UpkeepStep::PassOver {} },
    )
}

struct Part {
    status: u16,
    headers: HeaderMap,
    body: Option<Bytes>,
}

fn ask_node(run: &mut SimRun, node: usize, path: usize) -> Result<Part, Violation> {
    let (account, container, object) = run.history.paths[path].clone();
    let hash = run.cluster.topology.hash.object(&account, &container, &object);
    let partition = run.cluster.topology.objects.load().partition_of(&hash.0);
    let target = Target {
        device: DRIVE.into(),
        partition,
        path: Arc::new(EntityPath {
            account,
            container: Some(container),
            object: Some(object),
        }),
    };
    let read = ReadObject {
        policy: PolicyIndex(0).into(),
        ..ReadObject::new(target)
    };
    let call = Call::new(RequestContext::default(), read);
    let Some(process) = &run.cluster.nodes[node].process else {
        return Err(Violation(format!("node {node} is dead although all is well")));
    };
    let objects = process.objects.clone();
    run.on_node(node, async move {
        let response = objects.call(call).await;
        let (head, body) = response.into_parts();
        Part {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect(LONGEST).await.ok(),
        }
    })
}

fn time(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// What all nodes have of a path together.
fn merged(run: &mut SimRun, path: usize) -> Result<SeenState, Violation> {
    let mut seen = SeenState::default();
    for node in 0..run.plan.nodes {
        let part = ask_node(run, node, path)?;
        let newest = time(&part.headers, &X_BACKEND_TIMESTAMP);
        run.cluster
            .trace
            .note(format!("n{node} has of {path}: {} {newest:?}", part.status));
        match (part.status, part.body) {
            (200, Some(body)) => {
                let number = run.history.recognise(path, &body)?;
                let written = time(&part.headers, &X_DATA_TIMESTAMP);
                let times = &run.history.writes[number].times;
                let Some(written) = written.filter(|at| times.contains(at)) else {
                    let shown = written.map(|at| at.internal());
                    return Err(Violation(format!(
                        "node {node}: body {number} of path {path} is shown as of {shown:?}"
                    )));
                };
                if seen.body.is_none_or(|(_, known)| known < written) {
                    seen.body = Some((number, written));
                }
                metadata_belong(&run.history, &part.headers, newest)?;
            }
            (200, None) if node != run.plan.config.unlucky => {
                return Err(Violation(format!(
                    "node {node}: path {path} breaks off although the drive is well"
                )));
            }
            (404, _) => seen.deleted = seen.deleted.max(newest),
            (200, None) => {}
            (status, _) => return Err(Violation(format!("node {node} answers {status} although all is well"))),
        }
        seen.newest = seen.newest.max(newest);
    }
    Ok(seen)
}

/// The metadata shown are those of the write whose timestamp is shown.
fn metadata_belong(history: &WriteHistory, headers: &HeaderMap, newest: Option<Timestamp>) -> Result<(), Violation> {
    let number = headers.get(NUMBER).and_then(|n| n.to_str().ok()?.parse::<usize>().ok());
    let write = number.and_then(|number| history.writes.get(number));
    let is_of = |newest| write.is_some_and(|write| write.times.contains(&newest));
    match newest.is_some_and(is_of) {
        true => Ok(()),
        false => Err(Violation(format!(
            "metadata of write {number:?} are shown as of {newest:?}"
        ))),
    }
}

fn through_gateway(run: &mut SimRun, path: usize) -> Result<(), Violation> {
    let node = run.cluster.dice.up_to(run.plan.nodes);
    let (account, container, object) = run.history.paths[path].clone();
    let mut request = http::Request::new(peer::Body::empty());
    *request.uri_mut() = format!("/v1/{account}/{container}/{object}")
        .parse()
        .unwrap_or_default();
    set(request.headers_mut(), X_NEWEST, "true");
    let Some(process) = &run.cluster.nodes[node].process else {
        return Ok(());
    };
    let gateway = process.gateway.clone();
    let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    // A gateway waits for a connection for less long than a message may take: two late ones of three leave no answer.
    let hurried = run.cluster.net.hurry(true);
    let answered = run.on_node(node, async move {
        let response = gateway.serve(request, from).await;
        (
            response.status().as_u16(),
            response.into_body().collect(LONGEST).await.ok(),
        )
    });
    run.cluster.net.hurry(hurried);
    let (status, body) = answered?;
    match (status, body) {
        (200, Some(body)) => run.history.recognise(path, &body).map(drop),
        // Its only whole copy there may have been found spoilt just now.
        (200, None) | (404, _) => Ok(()),
        (status, _) => Err(Violation(format!("a gateway answers {status} although all is well"))),
    }
}

/// Where nothing was interrupted, every acknowledged write is in the listing, or a newer one.
fn rows_are_there(run: &SimRun, path: usize) -> Result<(), Violation> {
    let (account, container, object) = &run.history.paths[path];
    let name = format!("/{account}/{container}/{object}");
    let rows: Vec<PlayedRow> = run
        .cluster
        .nodes
        .iter()
        .filter_map(|node| node.containers.row(&name))
        .collect();
    let listed = rows.iter().max().map(|(at, _)| *at);
    let binding = run.history.writes.iter().filter(|write| {
        write.path == path && write.fate == WriteOutcome::Acknowledged && write.verb != WriteVerb::Post
    });
    match binding.map(ClientWrite::at).max() {
        Some(at) if listed.is_none_or(|listed| listed < at) => {
            Err(Violation(format!("{name}: no listing knows of the write of {at}")))
        }
        _ => Ok(()),
    }
}

/// Neither files nor tasks are left that mean nothing to anybody.
fn nothing_left(run: &mut SimRun) -> Result<(), Violation> {
    run.cluster.close_doors();
    let quiet = run.cluster.executor.now() + QUIET;
    run.advance(quiet, |_| false)?;
    let SimCluster { nodes, executor, .. } = &run.cluster;
    for (number, node) in nodes.iter().enumerate() {
        let tasks = node.process.as_ref().map_or(0, |process| executor.count(process.home));
        if tasks > 0 {
            return Err(Violation(format!(
                "node {number}: {tasks} tasks are left when all is quiet"
            )));
        }
        for file in node.files.all_files() {
            let is_stray =
                ["/tmp", "/async_pending"].iter().any(|place| file.contains(place)) && !file.ends_with("/.lock");
            let spoilt = file.contains("/quarantined/") && number != run.plan.config.unlucky;
            if is_stray || spoilt {
                return Err(Violation(format!("node {number}: {file} is left")));
            }
        }
    }
    Ok(())
}
