//! What single servers say of objects, containers and accounts.

use super::names::{ACCOUNT, ObjectState, body, container, object};
use super::whole_run::WholeRun;
use crate::client::LONGEST;
use crate::history::Violation;
use crate::sent_times::NUMBER;
use crate::topology::DRIVE;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ETAG, HeaderName};
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_POLICY_INDEX};
use peer::message::{Message, ReadAccount, ReadContainer, ReadObject, RequestContext};
use peer::{Call, Service, Target};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{EntityPath, Partition, PolicyIndex, Timestamp};

/// A row of a listing: bytes, and the entity tag, or the objects of a container.
pub(super) type ListedRows = BTreeMap<String, (u64, String)>;

/// A listing as one server has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SeenListing {
    pub(super) policy: Option<usize>,
    pub(super) rows: ListedRows,
    /// As its counters say: entries, and bytes.
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// An answer that was read to its end.
struct Part {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

/// Sends a message to a service in the process of its own node.
fn ask(run: &mut WholeRun, node: usize, service: Arc<dyn Service>, message: Message) -> Result<Part, Violation> {
    let call = Call::new(RequestContext::default(), message);
    run.on_node(node, async move {
        let (head, body) = service.call(call).await.into_parts();
        Part {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect(LONGEST).await.unwrap_or_default(),
        }
    })
}

fn target(partition: Partition, path: EntityPath) -> Target {
    Target {
        device: DRIVE.into(),
        partition,
        path: Arc::new(path),
    }
}

fn time(headers: &HeaderMap, name: &HeaderName) -> Timestamp {
    let at = headers.get(name).and_then(|at| at.to_str().ok()?.parse().ok());
    at.unwrap_or(Timestamp::ZERO)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// What a node has of an object in a policy, and its entity tag.
pub(super) fn object_on(
    run: &mut WholeRun,
    node: usize,
    (of, name): (usize, usize),
    policy: usize,
) -> Result<(ObjectState, Option<String>), Violation> {
    let partition = run
        .cluster
        .topology
        .object_partition(policy, ACCOUNT, &container(of), &object(name));
    let path = EntityPath::account(ACCOUNT)
        .with_container(container(of))
        .with_object(object(name));
    let read = ReadObject {
        policy: PolicyIndex(policy as u32).into(),
        opens_expired: true,
        ..ReadObject::new(target(partition, path))
    };
    let service = run.cluster.objects_of(node)?;
    let part = ask(run, node, service, read.into())?;
    match part.status {
        200 => {
            let written = number(&part.headers, NUMBER).unwrap_or_default() as usize;
            if part.body != body(written) {
                let what = format!("node {node}: object {name} of container {of} is not as write {written} had it");
                return Err(Violation(what));
            }
            let at = time(&part.headers, &X_DATA_TIMESTAMP);
            let etag = part.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
            let state = ObjectState::Body { at, number: written };
            Ok((state, etag.map(|etag| etag.trim_matches('"').to_owned())))
        }
        404 => Ok(match time(&part.headers, &X_BACKEND_TIMESTAMP) {
            Timestamp::ZERO => (ObjectState::Nothing, None),
            at => (ObjectState::Deleted { at }, None),
        }),
        status => Err(Violation(format!("node {node} answers {status} although all is well"))),
    }
}

/// A container as a node has it, listed by `policy`, or by its own; `None` when it is not there, or deleted.
pub(super) fn container_on(
    run: &mut WholeRun,
    node: usize,
    of: usize,
    policy: Option<usize>,
) -> Result<Option<SeenListing>, Violation> {
    let partition = run.cluster.topology.container_partition(ACCOUNT, &container(of));
    let mut read = ReadContainer {
        query: "format=json".into(),
        ..ReadContainer::new(target(
            partition,
            EntityPath::account(ACCOUNT).with_container(container(of)),
        ))
    };
    if let Some(policy) = policy {
        read.policy = PolicyIndex(policy as u32).into();
    }
    let service = run.cluster.containers_of(node)?;
    let part = ask(run, node, service, read.into())?;
    listing(
        node,
        part,
        ("x-container-object-count", "x-container-bytes-used"),
        "hash",
    )
}

/// The account as a node has it.
pub(super) fn account_on(run: &mut WholeRun, node: usize) -> Result<Option<SeenListing>, Violation> {
    let partition = run.cluster.topology.account_partition(ACCOUNT);
    let read = ReadAccount {
        query: "format=json".into(),
        ..ReadAccount::new(target(partition, EntityPath::account(ACCOUNT)))
    };
    let service = run.cluster.accounts_of(node)?;
    let part = ask(run, node, service, read.into())?;
    listing(node, part, ("x-account-object-count", "x-account-bytes-used"), "count")
}

fn listing(
    node: usize,
    part: Part,
    (entries, bytes): (&str, &str),
    tag: &str,
) -> Result<Option<SeenListing>, Violation> {
    match part.status {
        200 | 204 => {}
        404 => return Ok(None),
        status => return Err(Violation(format!("node {node} answers {status} although all is well"))),
    }
    Ok(Some(SeenListing {
        policy: number(&part.headers, X_POLICY_INDEX.as_str()).map(|policy| policy as usize),
        rows: rows(&part.body, tag),
        entries: number(&part.headers, entries).unwrap_or_default(),
        bytes: number(&part.headers, bytes).unwrap_or_default(),
    }))
}

/// The rows of a listing in JSON, with what `tag` is in them.
pub(super) fn rows(body: &Bytes, tag: &str) -> ListedRows {
    let listed: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    let row = |row: &Value| {
        let tag = match &row[tag] {
            Value::String(tag) => tag.clone(),
            other => other.to_string(),
        };
        Some((row["name"].as_str()?.to_owned(), (row["bytes"].as_u64()?, tag)))
    };
    listed.iter().filter_map(row).collect()
}

/// The names in a listing in JSON.
pub(super) fn names(body: &Bytes) -> Vec<String> {
    let listed: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    let name = |row: &Value| row["name"].as_str().map(str::to_owned);
    listed.iter().filter_map(name).collect()
}
