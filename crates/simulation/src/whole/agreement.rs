//! Whether everything agrees when all is well again.
//!
//! | looked at | must be |
//! |---|---|
//! | objects | in their container's policy only, on each primary and nowhere else; what was acknowledged, or newer |
//! | containers | on each primary and nowhere else; their rows are the objects, their counters what the rows come to |
//! | the account | its rows are the containers with their counters, its counters what those come to |
//! | the expirer's queue | empty, a day later; what was there then is still there, and nothing else |

use super::daemons::{NodeDaemons, QUEUE};
use super::look::{self, ListedRows, SeenListing};
use super::names::{ACCOUNT, ObjectState, body, container, object};
use super::plan::{CONTAINERS, FLEETING, NAMES};
use super::whole_run::WholeRun;
use crate::client::LONGEST;
use crate::config::RECLAIM_AGE;
use crate::history::Violation;
use crate::topology::address;
use peer::{Body, HttpService};
use placement::Ring;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use vocabulary::Partition;

/// Rounds of all daemons within which everything must agree.
const ROUNDS: usize = 14;
/// Longer than a change needs to run in the times of a file, and than caches of containers are believed.
const GRAIN: Duration = Duration::from_secs(70);

/// Why there is no agreement.
enum Disagreement {
    /// NodeDaemons may still bring it about.
    Unfinished(String),
    /// None can.
    Broken(Violation),
}

impl From<Violation> for Disagreement {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

fn unfinished<T>(what: String) -> Result<T, Disagreement> {
    Err(Disagreement::Unfinished(what))
}

/// What is there of all objects, by container and name.
type Objects = BTreeMap<(usize, usize), ObjectState>;

pub(super) fn everything(run: &mut WholeRun) -> Result<(), Violation> {
    let mut daemons = vec![];
    for (number, node) in run.cluster.nodes.iter().enumerate() {
        let process = node.process.as_ref();
        let process = process.ok_or_else(|| Violation(format!("node {number} is dead although all is well")))?;
        daemons.push(NodeDaemons::new(&run.cluster, number, process));
    }
    let before = agree(run, &mut daemons)?;
    for ((of, name), state) in &before {
        run.history.judge(*of, *name, *state)?;
    }
    run.rest(RECLAIM_AGE + RECLAIM_AGE)?;
    for _ in 0..2 {
        round(run, &mut daemons)?;
    }
    let after = agree(run, &mut daemons)?;
    for (path, state) in before {
        let now = after.get(&path).copied().unwrap_or_default();
        let is_kept = match state {
            // The expirer may have come to it only since.
            ObjectState::Body { number, .. } if run.history.writes[number].expires() => {
                now == state || !matches!(now, ObjectState::Body { .. })
            }
            ObjectState::Body { .. } => now == state,
            // What was deleted may be forgotten by now.
            _ => !matches!(now, ObjectState::Body { .. }),
        };
        if !is_kept {
            return Err(Violation(format!("a day later {path:?} is {now:?}, and was {state:?}")));
        }
    }
    queue_is_empty(run)?;
    drop(daemons);
    nothing_left(run)
}

/// A round of all daemons on each node; how much they have left for the next one.
fn round(run: &mut WholeRun, daemons: &mut Vec<NodeDaemons>) -> Result<u64, Violation> {
    let mut left = 0;
    for (number, mut of_node) in std::mem::take(daemons).into_iter().enumerate() {
        let working = async move { (of_node.round().await, of_node) };
        let ((done, failed), back) = run.on_node(number, working)?;
        daemons.push(back);
        left += failed;
        let line = format!("n{number}: worked, {done} done, {failed} left");
        run.cluster.trace.note(line);
    }
    run.rest(GRAIN)?;
    Ok(left)
}

/// Rounds until everything agrees and the daemons leave no less than in the round before; what is then there. What they
/// could still do would come after the days that pass without them, when deletions newer than it are forgotten.
fn agree(run: &mut WholeRun, daemons: &mut Vec<NodeDaemons>) -> Result<Objects, Violation> {
    let (mut why, mut left_before) = (String::new(), u64::MAX);
    for _ in 0..ROUNDS {
        let left = round(run, daemons)?;
        match agreement(run) {
            Ok(objects) if left == 0 || left >= left_before => return Ok(objects),
            Ok(_) => why = format!("{left} things are left to do"),
            Err(Disagreement::Unfinished(what)) => why = what,
            Err(Disagreement::Broken(violation)) => return Err(violation),
        }
        left_before = left;
        run.cluster.trace.note(format!("no agreement: {why}"));
    }
    Err(Violation(format!("after {ROUNDS} rounds {why}")))
}

fn agreement(run: &mut WholeRun) -> Result<Objects, Disagreement> {
    let mut objects = Objects::new();
    let mut listed = ListedRows::new();
    let mut sums = (0, 0);
    for of in 0..=FLEETING {
        let Some(listing) = container_listing(run, of)? else {
            continue;
        };
        if of < CONTAINERS {
            let rows = objects_of(run, of, listing.policy.unwrap_or_default(), &mut objects)?;
            if rows != listing.rows {
                return unfinished(format!(
                    "container {of} lists {:?}, and there are {rows:?}",
                    listing.rows
                ));
            }
        }
        sums = (sums.0 + listing.entries, sums.1 + listing.bytes);
        listed.insert(container(of), (listing.bytes, listing.entries.to_string()));
    }
    let account = on_primaries(run, None)?.unwrap_or_default();
    if account.rows != listed {
        return unfinished(format!(
            "the account lists {:?}, and there are {listed:?}",
            account.rows
        ));
    }
    if (account.entries, account.bytes) != sums {
        return unfinished(format!("the account has counted {account:?}, and there are {sums:?}"));
    }
    Ok(objects)
}

/// What all of a listing's primaries have, if that is the same; of a container, or of the account.
fn on_primaries(run: &mut WholeRun, of: Option<(usize, Option<usize>)>) -> Result<Option<SeenListing>, Disagreement> {
    let topology = &run.cluster.topology;
    let (ring, partition) = match of {
        Some((of, _)) => (
            topology.listings.load_full(),
            topology.container_partition(ACCOUNT, &container(of)),
        ),
        None => (topology.accounts.load_full(), topology.account_partition(ACCOUNT)),
    };
    let mut all = vec![];
    for node in 0..run.cluster.nodes.len() {
        let found = match of {
            Some((of, policy)) => look::container_on(run, node, of, policy)?,
            None => look::account_on(run, node)?,
        };
        match (is_primary(&ring, partition, node), found) {
            (true, found) => all.push(found),
            (false, Some(_)) => return unfinished(format!("node {node} still has {of:?}")),
            (false, None) => {}
        }
    }
    match all.iter().all(|found| *found == all[0]) {
        true => Ok(all.pop().flatten()),
        false => unfinished(format!("{of:?} is not the same everywhere: {all:?}")),
    }
}

fn is_primary(ring: &Ring, partition: Partition, node: usize) -> bool {
    let here = address(node);
    ring.primaries(partition).iter().any(|device| device.ip == here)
}

/// A container as all its primaries have it, when nothing is listed that belongs to another policy.
fn container_listing(run: &mut WholeRun, of: usize) -> Result<Option<SeenListing>, Disagreement> {
    let Some(listing) = on_primaries(run, Some((of, None)))? else {
        return Ok(None);
    };
    let other = 1 - listing.policy.unwrap_or_default().min(1);
    let misplaced = on_primaries(run, Some((of, Some(other))))?.unwrap_or_default();
    if !misplaced.rows.is_empty() {
        return unfinished(format!("container {of} lists {:?} in policy {other}", misplaced.rows));
    }
    let bytes: u64 = listing.rows.values().map(|(bytes, _)| bytes).sum();
    if (listing.entries, listing.bytes) != (listing.rows.len() as u64, bytes) {
        return unfinished(format!("container {of} has counted wrongly: {listing:?}"));
    }
    Ok(Some(listing))
}

/// The rows that the objects of a container come to.
fn objects_of(run: &mut WholeRun, of: usize, policy: usize, objects: &mut Objects) -> Result<ListedRows, Disagreement> {
    let mut rows = ListedRows::new();
    for name in 0..NAMES {
        let state = one_object(run, (of, name), policy)?;
        let elsewhere = one_object(run, (of, name), 1 - policy)?;
        if let (ObjectState::Body { .. }, _) = elsewhere {
            return unfinished(format!("object {name} of container {of} is in the wrong policy"));
        }
        if let (ObjectState::Body { number, .. }, Some(etag)) = &state {
            rows.insert(object(name), (body(*number).len() as u64, etag.clone()));
        }
        let newest = match elsewhere.0.at() > state.0.at() {
            true => elsewhere.0,
            false => state.0,
        };
        objects.insert((of, name), newest);
    }
    Ok(rows)
}

/// What all primaries of an object have, if that is the same, and its entity tag.
fn one_object(
    run: &mut WholeRun,
    path: (usize, usize),
    policy: usize,
) -> Result<(ObjectState, Option<String>), Disagreement> {
    let topology = &run.cluster.topology;
    let ring = topology.ring_of(policy).load_full();
    let names = (container(path.0), object(path.1));
    let partition = topology.object_partition(policy, ACCOUNT, &names.0, &names.1);
    let mut all = vec![];
    for node in 0..run.cluster.nodes.len() {
        let found = look::object_on(run, node, path, policy)?;
        match (is_primary(&ring, partition, node), found.0) {
            (true, _) => all.push(found),
            (false, ObjectState::Nothing) => {}
            (false, state) => return unfinished(format!("node {node} still has {state:?} of {path:?}")),
        }
    }
    match all.iter().all(|found| *found == all[0]) {
        true => Ok(all.pop().unwrap_or_default()),
        false => unfinished(format!(
            "{path:?} is not the same everywhere in policy {policy}: {all:?}"
        )),
    }
}

/// What a gateway lists of the expirer's queue: its containers, or the tasks in one.
fn queue(run: &mut WholeRun, container: &str) -> Result<Vec<String>, Violation> {
    let mut request = http::Request::new(Body::empty());
    // Digits only in the names of its containers: always a path.
    let path = format!("/v1/{QUEUE}{container}?format=json");
    *request.uri_mut() = path.parse().unwrap_or_default();
    let gateway = run.cluster.nodes[0]
        .process
        .as_ref()
        .map(|process| process.gateway.clone());
    let gateway = gateway.ok_or_else(|| Violation("node 0 is dead although all is well".into()))?;
    let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (status, body) = run.on_node(0, async move {
        let (head, body) = gateway.serve(request, from).await.into_parts();
        (head.status.as_u16(), body.collect(LONGEST).await.unwrap_or_default())
    })?;
    match status {
        200 | 204 => Ok(look::names(&body)),
        404 => Ok(vec![]),
        status => Err(Violation(format!("the queue is answered with {status}"))),
    }
}

fn queue_is_empty(run: &mut WholeRun) -> Result<(), Violation> {
    for container in queue(run, "")? {
        let tasks = queue(run, &format!("/{container}"))?;
        if !tasks.is_empty() {
            return Err(Violation(format!("a day later the expirer still has {tasks:?}")));
        }
    }
    Ok(())
}

/// Neither files nor tasks are left that mean nothing any more.
fn nothing_left(run: &mut WholeRun) -> Result<(), Violation> {
    run.rest(RECLAIM_AGE)?;
    for (number, node) in run.cluster.nodes.iter().enumerate() {
        let tasks = (node.process.as_ref()).map_or(0, |process| run.cluster.executor.count(process.home));
        if tasks > 0 {
            return Err(Violation(format!(
                "node {number}: {tasks} tasks are left when all is quiet"
            )));
        }
        let is_stray = |file: &String| {
            ["/async_pending", "/quarantined/"]
                .iter()
                .any(|place| file.contains(place))
                && !file.ends_with("/.lock")
        };
        if let Some(file) = node.files.all_files().into_iter().find(is_stray) {
            return Err(Violation(format!("node {number}: {file} is left")));
        }
    }
    let census = run.cluster.census.lock();
    match (census.panics, census.beyond_limit) {
        (0, 0) => Ok(()),
        (panics, beyond) => Err(Violation(format!(
            "{panics} jobs panicked, {beyond} waited beyond the limit"
        ))),
    }
}
