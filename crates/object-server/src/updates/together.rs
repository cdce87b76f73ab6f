//! Rows of many deletions, told in one UPDATE to the servers of each container instead of a request each.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as the replicators' `merge_items`).
//! Always holds: what [`ListingUpdates::tell`] promises; rows that such a request cannot carry exactly travel as ever.
//! Deliberately absent: rows of PUTs and POSTs.

use super::{ListingUpdates, Node, Noted, Operation, Row, user_agent};
use crate::devices::Device;
use crate::updates::Delivery;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{StreamExt, iter};
use http::{HeaderMap, HeaderValue, Method};
use peer::{Body, Peers, RawCall, Target, Timeouts};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};
use world::BoxFuture;

/// Rows told at once by themselves: no more than a device has room for.
const ALONE_AT_ONCE: usize = 8;

/// Who is told, what of, and in which policy.
type Key = (Vec<Node>, EntityPath, PolicyIndex);

impl ListingUpdates {
    /// [`ListingUpdates::tell`] for many rows.
    pub(crate) async fn tell_together(&self, noted: Noted, device: &Arc<Device>) {
        let (rows, _until_told) = noted.into_parts();
        let (together, alone) = group(rows);
        let batches = together
            .into_iter()
            .map(|(key, rows)| self.tell_batch(key, rows, device));
        let each = alone.into_iter().map(|row| self.tell_one(row, device));
        let each = iter(each).buffer_unordered(ALONE_AT_ONCE).collect::<()>();
        futures_util::future::join(join_all(batches), each).await;
    }

    async fn tell_batch(&self, key: Key, rows: Vec<Row>, device: &Arc<Device>) {
        let Some(peers) = self.peers.get() else {
            return self.keep_all(rows, device).await;
        };
        let mut sending = send(peers.clone(), &key, &rows, self.timeouts);
        match self.world.timeout(self.patience, &mut sending).await {
            Ok(true) => {}
            Ok(false) => self.keep_all(rows, device).await,
            Err(_) => {
                self.keep_all(rows, device).await;
                self.world.spawn(async move {
                    // It has been kept, whatever comes of it.
                    let _ = sending.await;
                });
            }
        }
    }

    async fn keep_all(&self, rows: Vec<Row>, device: &Arc<Device>) {
        let count = rows.len();
        let updates: Vec<_> = rows.into_iter().map(|row| row.pending(None)).collect();
        let job = move |engine: &dyn object_engine::ObjectEngine| {
            let lost = updates
                .iter()
                .filter_map(|update| engine.save_listing_update(update).err());
            Ok(lost.map(|error| error.to_string()).collect::<Vec<_>>())
        };
        let (lost, trouble) = match device.run(job).await {
            Ok(lost) => (lost.len(), lost.join("; ")),
            Err(trouble) => (count, format!("{trouble:?}")),
        };
        if count > lost {
            self.statsd.count(format_args!("async_pendings"), (count - lost) as u64);
        }
        if !trouble.is_empty() {
            tracing::error!("device {} lost some of {count} listing updates: {trouble}", device.name);
        }
    }
}

/// Rows that travel together, and the others.
fn group(rows: Vec<Row>) -> (HashMap<Key, Vec<Row>>, Vec<Row>) {
    let (mut together, mut alone) = (HashMap::<Key, Vec<Row>>::new(), vec![]);
    for row in rows {
        let is_whole = matches!(row.db_state.as_deref(), None | Some("unsharded")) && row.container_path.is_none();
        match &row.delivery {
            Delivery::Now(nodes, false) if is_whole && row.operation == Operation::Delete && !nodes.is_empty() => {
                let container = EntityPath {
                    object: None,
                    ..row.path.clone()
                };
                let key = (nodes.clone(), container, row.policy);
                together.entry(key).or_default().push(row);
            }
            _ => alone.push(row),
        }
    }
    (together, alone)
}

/// Whether all took them.
fn send(peers: Arc<Peers>, key: &Key, rows: &[Row], timeouts: Timeouts) -> BoxFuture<'static, bool> {
    let (nodes, container, policy) = key.clone();
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
fn json_of(row: &Row) -> Value {
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
