//! Bugs of database replication: done to the operations of REPLICATE as they pass.

use super::{Bug, Bugged, status};
use crate::dice::Dice;
use crate::disk::MOUNTS;
use crate::topology::DRIVE;
use bytes::Bytes;
use http::StatusCode;
use peer::message::Message;
use peer::{Body, Call, PartitionTarget, Response, Service};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The most bytes of an operation.
const MOST: u64 = 1 << 24;
/// Where `sync` says when the other was last deleted, and its metadata.
const DELETED_AT: usize = 6;
const METADATA: usize = 7;

impl Bugged {
    /// Does what a replicator asks, with the bug.
    pub(super) async fn level(&self, call: Call) -> Response {
        let directory = match &call.message {
            // Databases that travel are no operations.
            Message::ReplicateDatabase(replicate) if replicate.database.is_none() => hash_directory(&replicate.target),
            _ => None,
        };
        let Some(directory) = directory else {
            return self.inner.call(call).await;
        };
        let Some(mut operation) = call.body.collect(MOST).await.ok().and_then(|bytes| read(&bytes)) else {
            return status(StatusCode::BAD_REQUEST);
        };
        let name = operation[0].as_str().unwrap_or_default().to_owned();
        match (self.bug, name.as_str()) {
            (Bug::TakesOlderRows, "merge_items") => {
                let now = json!(self.world.clock.now().internal());
                rows(&mut operation)
                    .iter_mut()
                    .for_each(|row| row["created_at"] = now.clone());
            }
            (Bug::ForgetsDeletedRows, "merge_items") => {
                rows(&mut operation).retain(|row| row["deleted"] != json!(1));
            }
            (Bug::TakesOlderMetadata, "sync") => {
                operation[METADATA] = renewed(&operation[METADATA], &self.world.clock.now().internal());
            }
            (Bug::ForgetsDeletedContainers, "sync") => operation[DELETED_AT] = json!("0"),
            (Bug::ReplacesDatabases, "rsync_then_merge") => {
                self.files.empty(&directory);
                operation[0] = json!("complete_rsync");
            }
            _ => {}
        }
        let body = Body::whole(Value::Array(operation).to_string());
        let response = self
            .inner
            .call(Call::new(call.context, call.message).with_body(body))
            .await;
        match (self.bug, name.as_str(), response.body().as_whole()) {
            (Bug::ForgetsDeletedContainers, "sync", Some(answer)) => {
                response.map(|_| Body::whole(never_deleted(&answer)))
            }
            _ => response,
        }
    }
}

fn read(bytes: &Bytes) -> Option<Vec<Value>> {
    let operation: Vec<Value> = serde_json::from_slice(bytes).ok()?;
    (!operation.is_empty()).then_some(operation)
}

/// Where the database lies that a call is about.
fn hash_directory(target: &PartitionTarget) -> Option<PathBuf> {
    let PartitionTarget { partition, rest, .. } = target;
    let suffix = rest.get(rest.len().checked_sub(3)?..)?;
    let directory = format!("{MOUNTS}/{DRIVE}/containers/{partition}/{suffix}/{rest}");
    Some(directory.into())
}

fn rows(operation: &mut [Value]) -> &mut Vec<Value> {
    match operation.get_mut(1).and_then(Value::as_array_mut) {
        Some(rows) => rows,
        None => panic!("planted: rows were expected"),
    }
}

/// All items are of now.
fn renewed(metadata: &Value, now: &str) -> Value {
    let text = metadata.as_str().unwrap_or_default();
    let Ok(Value::Object(mut items)) = serde_json::from_str(text) else {
        return metadata.clone();
    };
    items.values_mut().for_each(|item| item[1] = json!(now));
    json!(Value::Object(items).to_string())
}

fn never_deleted(answered: &Bytes) -> Bytes {
    let Ok(mut answer) = serde_json::from_slice::<Value>(answered) else {
        return answered.clone();
    };
    if !answer["delete_timestamp"].is_null() {
        answer["delete_timestamp"] = json!("0");
    }
    answer.to_string().into()
}

/// A link on which rows count as brought when they are sent: half of them get lost.
pub(crate) struct Hopeful<S> {
    pub(crate) link: S,
    pub(crate) dice: Dice,
}

#[async_trait::async_trait]
impl<S: Service> Service for Hopeful<S> {
    async fn call(&self, call: Call) -> Response {
        let is_operation = matches!(call.message, Message::ReplicateDatabase(_));
        let brings_rows =
            (call.body.as_whole()).is_some_and(|bytes| is_operation && bytes.starts_with(b"[\"merge_items\""));
        match brings_rows && self.dice.chance(50) {
            true => status(StatusCode::ACCEPTED),
            false => self.link.call(call).await,
        }
    }
}
