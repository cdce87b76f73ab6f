//! Rows that wait for the same container, sent in one UPDATE instead of a request each.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as `merge_items`); a container server that refuses it gets
//! the rows one by one. Always holds: in a batch are only rows that no server has yet and that belong to the container
//! itself as far as is known; a row that a batch cannot carry exactly is left to a request of its own; what several
//! devices say alike, as those of an object's replicas do, is in it once.
//! Deliberately absent: sending, and what becomes of the records.

use super::device::LoadedRecord;
use super::request::recorded;
use crate::ring_client::json_body;
use http::HeaderValue;
use listing_engine::ObjectRow;
use listing_engine::wire::object_json;
use object_engine::PendingUpdate;
use peer::Target;
use peer::message::{RowChange, UpdateContainer};
use std::collections::BTreeMap;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};

/// Rows of one policy for one container.
pub(crate) struct RowBatch {
    /// The container.
    pub(crate) container: EntityPath,
    /// The rows' policy.
    pub(crate) policy: PolicyIndex,
    /// The newest row's time.
    pub(crate) timestamp: Timestamp,
    /// Where the rows come from.
    pub(crate) records: Vec<LoadedRecord>,
    /// As JSON.
    rows: Vec<String>,
}

impl RowBatch {
    /// The UPDATE that sends the batch to a device.
    pub(crate) fn update(&self, target: Target) -> UpdateContainer {
        UpdateContainer {
            change: RowChange::Batch,
            timestamp: self.timestamp.into(),
            policy: self.policy.into(),
            headers: json_body(),
            ..UpdateContainer::new(target)
        }
    }

    /// The body of the UPDATE.
    pub(crate) fn body(&mut self) -> String {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable();
        rows.dedup();
        format!("[{}]", rows.join(","))
    }
}

/// Batches of two rows and more, and what goes by itself.
pub(crate) fn group(loaded: Vec<LoadedRecord>) -> (Vec<RowBatch>, Vec<LoadedRecord>) {
    let mut batches: BTreeMap<(String, String, PolicyIndex), RowBatch> = BTreeMap::new();
    let mut single = vec![];
    for loaded in loaded {
        let Some(row) = row(&loaded.pending) else {
            single.push(loaded);
            continue;
        };
        let update = &loaded.pending.update;
        let key = (update.account.clone(), update.container.clone(), row.policy);
        let batch = batches.entry(key).or_insert_with(|| RowBatch {
            container: EntityPath::account(update.account.clone()).with_container(update.container.clone()),
            policy: row.policy,
            timestamp: Timestamp::ZERO,
            records: vec![],
            rows: vec![],
        });
        batch.timestamp = batch.timestamp.max(row.timestamp);
        batch.rows.push(object_json(&row).to_string());
        batch.records.push(loaded);
    }
    let (several, alone): (Vec<_>, Vec<_>) = batches.into_values().partition(|batch| batch.records.len() > 1);
    single.extend(alone.into_iter().flat_map(|batch| batch.records));
    (several, single)
}

/// The row of a record that may travel in a batch.
fn row(pending: &PendingUpdate) -> Option<ObjectRow> {
    let update = &pending.update;
    let is_whole = matches!(update.db_state.as_deref(), None | Some("unsharded"));
    if !pending.successes.is_empty() || update.container_path.is_some() || !is_whole {
        return None;
    }
    let (_, message) = recorded(update);
    let timestamp = *message.timestamp.value()?;
    let policy = *message.policy.optional(|_| ()).ok()?.unwrap_or(&update.policy);
    if message.change == RowChange::Delete {
        return Some(ObjectRow::deleted(&update.object, timestamp, policy));
    }
    let text = |value: Option<HeaderValue>| Some(std::str::from_utf8(value?.as_bytes()).ok()?.to_owned());
    Some(ObjectRow {
        name: update.object.clone(),
        timestamp,
        size: *message.size.value()?,
        content_type_timestamp: message.content_type_timestamp.optional(|_| ()).ok()?.copied(),
        meta_timestamp: message.meta_timestamp.optional(|_| ()).ok()?.copied(),
        content_type: text(message.content_type)?,
        etag: text(message.etag)?,
        deleted: false,
        policy,
    })
}
