//! Rows of deletions, sent in one UPDATE to the servers of each container instead of a request each.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as the replicators' `merge_items`).
//! Always holds: what [`ListingUpdates::send`] promises; rows that such a request cannot carry exactly travel alone.
//! Deliberately absent: rows of PUTs and POSTs.

use super::container_servers::ContainerServers;
use super::row::user_agent;
use super::{ListingRow, ListingUpdates};
use crate::devices::ObjectDevice;
use bytes::Bytes;
use futures_util::future::join_all;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use peer::message::{RequestContext, RowChange, UpdateContainer, UpdateNode, UpdateTargets};
use peer::{Body, Call, Target};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use storage_shell::Refusal;
use vocabulary::{EntityPath, Partition, PolicyIndex};
use world::BoxFuture;

/// Where rows travel to: the servers, the container and the policy.
type Destination = (Vec<UpdateNode>, Partition, EntityPath, PolicyIndex);

impl ListingUpdates {
    pub(super) async fn send_batch(
        &self,
        batch: (Destination, Vec<ListingRow>),
        device: &Arc<ObjectDevice>,
    ) -> Result<(), Refusal> {
        let (destination, rows) = batch;
        let pending = || rows.iter().map(|row| row.pending(None)).collect();
        let Some(servers) = self.servers() else {
            return self.keep_all(pending(), device).await;
        };
        let some_silent = servers.some_are_silent(&destination.0);
        let mut sending = send(servers, &destination, &rows);
        if some_silent {
            let kept = self.keep_all(pending(), device).await;
            self.finish_later(sending);
            return kept;
        }
        match self.world.timeout(self.patience, &mut sending).await {
            Ok(true) => Ok(()),
            Ok(false) => self.keep_all(pending(), device).await,
            Err(_) => {
                let kept = self.keep_all(pending(), device).await;
                self.finish_later(sending);
                kept
            }
        }
    }
}

/// Rows that travel together, and the others; both in the order in which they came.
pub(super) fn group(rows: Vec<ListingRow>) -> (Vec<(Destination, Vec<ListingRow>)>, Vec<ListingRow>) {
    let (mut batches, mut alone) = (Vec::<(Destination, Vec<ListingRow>)>::new(), vec![]);
    let mut places = HashMap::<Destination, usize>::new();
    for row in rows {
        let is_whole = matches!(row.db_state.as_deref(), None | Some("unsharded")) && row.container_path.is_none();
        match &row.servers {
            UpdateTargets::Nodes {
                partition,
                nodes,
                some_unreadable: false,
            } if is_whole && row.update.change == RowChange::Delete && !nodes.is_empty() => {
                let container = EntityPath {
                    object: None,
                    ..(*row.path).clone()
                };
                let destination = (nodes.clone(), *partition, container, row.policy);
                let place = *places.entry(destination.clone()).or_insert(batches.len());
                match batches.get_mut(place) {
                    None => batches.push((destination, vec![row])),
                    Some((_, rows)) => rows.push(row),
                }
            }
            _ => alone.push(row),
        }
    }
    // A batch of one is a request as any other.
    let (several, single): (Vec<_>, Vec<_>) = batches.into_iter().partition(|(_, rows)| rows.len() > 1);
    alone.extend(single.into_iter().flat_map(|(_, rows)| rows));
    (several, alone)
}

/// Whether all took them.
fn send(servers: ContainerServers, destination: &Destination, rows: &[ListingRow]) -> BoxFuture<'static, bool> {
    let (nodes, partition, container, policy) = destination.clone();
    let newest = rows.iter().map(|row| row.timestamp).max().unwrap_or_default();
    let listed: Vec<Value> = rows.iter().map(json_of).collect();
    let (body, count) = (Bytes::from(Value::Array(listed).to_string()), rows.len());
    let context = RequestContext {
        user_agent: Some(user_agent()),
        ..RequestContext::default()
    };
    let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let headers = Arc::new(HeaderMap::from_iter([json]));
    Box::pin(async move {
        let path = Arc::new(container);
        let calls = nodes.iter().map(|node| {
            let target = Target {
                device: node.device.clone(),
                partition,
                path: path.clone(),
            };
            let update = UpdateContainer {
                change: RowChange::Batch,
                timestamp: newest.into(),
                policy: policy.into(),
                headers: headers.clone(),
                ..UpdateContainer::new(target)
            };
            let call = Call::new(context.clone(), update).with_body(Body::whole(body.clone()));
            servers.ask(node, call)
        });
        let mut all = true;
        for (answer, node) in join_all(calls).await.into_iter().zip(&nodes) {
            let why = match answer {
                Some(Ok(response)) if response.status().is_success() => continue,
                Some(Ok(response)) => response.status().to_string(),
                Some(Err(error)) => error.to_string(),
                None => {
                    all = false;
                    continue;
                }
            };
            all = false;
            let (ip, port, device, path) = (&node.ip, node.port, &node.device, path.path());
            tracing::info!(
                "container server {ip}:{port}/{device} did not take {count} rows of {path}: {why}; the updater will \
                 try again"
            );
        }
        all
    })
}

/// A deleted row, spelled as Swift's databases do.
fn json_of(row: &ListingRow) -> Value {
    json!({
        "name": row.path.object.as_deref().unwrap_or_default(),
        "created_at": row.timestamp.internal(),
        "size": 0,
        "content_type": "application/deleted",
        "etag": "noetag",
        "deleted": 1,
        "storage_policy_index": row.policy.0,
    })
}
