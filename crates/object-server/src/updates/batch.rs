//! Rows of deletions, sent in one UPDATE to the servers of each container instead of a request each.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as the replicators' `merge_items`).
//! Always holds: what [`ListingUpdates::send`] promises; rows that such a request cannot carry exactly travel alone.
//! Deliberately absent: rows of PUTs and POSTs.

use super::{ListingNode, ListingRow, ListingUpdates, RowDelivery, RowOperation, user_agent};
use crate::devices::ObjectDevice;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method};
use peer::{Body, Peers, RawCall, Target, Timeouts};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};
use world::BoxFuture;

/// Where rows travel to: the servers, the container and the policy.
type Destination = (Vec<ListingNode>, EntityPath, PolicyIndex);

impl ListingUpdates {
    pub(super) async fn send_batch(&self, batch: (Destination, Vec<ListingRow>), device: &Arc<ObjectDevice>) {
        let (destination, rows) = batch;
        let pending = || rows.iter().map(|row| row.pending(None)).collect();
        let Some(peers) = self.peers.get() else {
            return self.keep_all(pending(), device).await;
        };
        let mut sending = send(peers.clone(), &destination, &rows, self.timeouts);
        match self.world.timeout(self.patience, &mut sending).await {
            Ok(true) => {}
            Ok(false) => self.keep_all(pending(), device).await,
            Err(_) => {
                self.keep_all(pending(), device).await;
                self.world.spawn(async move {
                    // The rows have been kept, whatever comes of it.
                    let _ = sending.await;
                });
            }
        }
    }
}

/// Rows that travel together, and the others.
pub(super) fn group(rows: Vec<ListingRow>) -> (HashMap<Destination, Vec<ListingRow>>, Vec<ListingRow>) {
    let (mut batches, mut alone) = (HashMap::<Destination, Vec<ListingRow>>::new(), vec![]);
    for row in rows {
        let is_whole = matches!(row.db_state.as_deref(), None | Some("unsharded")) && row.container_path.is_none();
        match &row.delivery {
            RowDelivery::Now(nodes, false)
                if is_whole && row.operation == RowOperation::Delete && !nodes.is_empty() =>
            {
                let container = EntityPath {
                    object: None,
                    ..row.path.clone()
                };
                let destination = (nodes.clone(), container, row.policy);
                batches.entry(destination).or_default().push(row);
            }
            _ => alone.push(row),
        }
    }
    (batches, alone)
}

/// Whether all took them.
fn send(
    peers: Arc<Peers>,
    destination: &Destination,
    rows: &[ListingRow],
    timeouts: Timeouts,
) -> BoxFuture<'static, bool> {
    let (nodes, container, policy) = destination.clone();
    let newest = rows.iter().map(|row| row.timestamp).max().unwrap_or_default();
    let listed: Vec<Value> = rows.iter().map(json_of).collect();
    let (body, headers, count) = (Value::Array(listed).to_string(), headers(newest, policy), rows.len());
    Box::pin(async move {
        let (body, path) = (Bytes::from(body), Arc::new(container));
        let calls = nodes.iter().map(|node| {
            let target = Target {
                device: node.device.as_str().into(),
                partition: vocabulary::Partition(node.partition),
                path: path.clone(),
            };
            let update = Method::from_bytes(b"UPDATE").unwrap_or_default();
            let call = RawCall::new(update, target, headers.clone()).with_body(Body::whole(body.clone()));
            peers.send(&node.ip, node.port, call, timeouts)
        });
        let mut all = true;
        for (answer, node) in join_all(calls).await.into_iter().zip(&nodes) {
            let why = match answer {
                Ok(response) if response.status().is_success() => continue,
                Ok(response) => response.status().to_string(),
                Err(error) => error.to_string(),
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

fn headers(newest: Timestamp, policy: PolicyIndex) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(5);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("x-backend-storage-policy-index", HeaderValue::from(policy.0));
    headers.insert("user-agent", user_agent());
    super::set(&mut headers, "x-timestamp", &newest.internal());
    headers
}
