//! Objects that are listed under another policy than their container's: queued for the reconciler.
//!
//! The queue is the account `.misplaced_objects`: a container per hour, a row `1:/a/c/o` per object,
//! whose content type says what was done to it (observed in OpenStack Swift).
//! Always holds: a container database remembers how far it has queued only when a majority of the
//! queue's replicas has the rows, and a majority of its own replicas is level with it.

use super::context::{Context, FoundDatabase};
use crate::open_device::OpenDevice;
use crate::ring_client::{context_of, json_body, target};
use listing_engine::wire::object_json;
use listing_engine::{Info, ObjectRow};
use peer::message::{RowChange, UpdateContainer};
use peer::{Body, Call};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::{EntityPath, PolicyIndex};

/// The account of the queue.
pub(super) const QUEUE: &str = ".misplaced_objects";
/// Seconds per container of the queue.
const SPAN: u64 = 3_600;

/// Queues what is misplaced in a container; `level` says that a majority of its replicas has all its rows.
pub(super) async fn enqueue(context: &Context, device: &OpenDevice, found: &FoundDatabase, level: bool) {
    let Some(container) = found.info.info.container.clone() else {
        return;
    };
    if found.info.info.account == QUEUE {
        return;
    }
    let broker = found.broker.clone();
    let looked = device.run(move || {
        let several = broker.has_several_policies()?;
        Ok::<_, listing_engine::Error>((several, broker.reconciler_point()?))
    });
    let Some((several, begin)) = looked.await else { return };
    let end = found.info.summary.max_row;
    if end <= begin {
        return;
    }
    let queued = !several || queue_all(context, device, found, &container, begin).await;
    if queued && (level || !several) {
        let broker = found.broker.clone();
        // What fails has been logged; the rows are queued again then, which changes nothing.
        let _ = device.run(move || broker.set_reconciler_point(end)).await;
    }
}

async fn queue_all(context: &Context, device: &OpenDevice, found: &FoundDatabase, container: &str, begin: i64) -> bool {
    let mut point = begin;
    loop {
        let (broker, count) = (found.broker.clone(), context.options.per_diff);
        let Some(rows) = device.run(move || broker.misplaced_since(point, count)).await else {
            return false;
        };
        let Some((last, _)) = rows.last() else { return true };
        point = *last;
        for (hour, items) in by_hour(&found.info.info, container, rows) {
            if !send(context, hour, &items).await {
                return false;
            }
        }
    }
}

/// Rows of the queue by the container that they belong in.
fn by_hour(info: &Info, container: &str, rows: Vec<(i64, ObjectRow)>) -> BTreeMap<u64, Vec<Value>> {
    let mut hours: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for (_, row) in rows {
        let hour = row.timestamp.seconds() / SPAN * SPAN;
        hours.entry(hour).or_default().push(entry(info, container, row));
    }
    hours
}

fn entry(info: &Info, container: &str, row: ObjectRow) -> Value {
    let name = format!("{}:/{}/{container}/{}", row.policy, info.account, row.name);
    let operation = match row.deleted {
        true => "application/x-delete",
        false => "application/x-put",
    };
    let queued = ObjectRow {
        name,
        size: 0,
        content_type: operation.into(),
        deleted: false,
        policy: PolicyIndex::LEGACY,
        ..row
    };
    let mut item = object_json(&queued);
    item["etag"] = item["created_at"].clone();
    item
}

/// Whether a majority of the replicas of the queue's container has the rows now.
async fn send(context: &Context, hour: u64, items: &[Value]) -> bool {
    let ring_client = &context.ring_client;
    let ring = ring_client.ring.load_full();
    let path = EntityPath::account(QUEUE).with_container(hour.to_string());
    let partition = ring_client.partition_of(&ring, &path);
    let path = Arc::new(path);
    let body = json!(items).to_string();
    let now = context.world.clock.now();
    let primaries = ring.primaries(partition);
    let mut took = 0;
    for node in &primaries {
        let update = UpdateContainer {
            change: RowChange::Batch,
            timestamp: now.into(),
            policy: PolicyIndex::LEGACY.into(),
            headers: json_body(),
            ..UpdateContainer::new(target(node, partition, &path))
        };
        let call = Call::new(context_of(context.name), update).with_body(Body::whole(body.clone()));
        let response = ring_client.send_one(node, call).await;
        match response.is_success() {
            true => took += 1,
            false => {
                let (place, why) = (&response.place, response.why());
                tracing::warn!("{}: {place} did not take misplaced objects: {why}", context.name);
            }
        }
    }
    took > primaries.len() / 2
}
