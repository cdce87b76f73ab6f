//! Rows of the queue whose tasks are done: taken out by one UPDATE to each server of their container.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as the replicators' `merge_items`).

use super::learnt::ExpirerKnowledge;
use super::tasks::Task;
use super::{NAME, ObjectExpirer};
use crate::ring_client::{NodeResponse, context_of, json_body};
use listing_engine::{DELETED_CONTENT_TYPE, DELETED_ETAG};
use peer::message::{RowChange, UpdateContainer};
use serde_json::{Value, json};
use vocabulary::{PolicyIndex, Timestamp};

impl ObjectExpirer {
    /// Whether at least one server has taken the rows out; replication tells the others.
    pub(super) async fn remove_rows(&self, queue: &str, tasks: &[&Task], known: &ExpirerKnowledge) -> bool {
        let now = self.world.clock.now();
        let rows: Vec<Value> = tasks.iter().map(|task| tombstone(&task.name, now)).collect();
        let path = self.queue(queue);
        let body = Value::Array(rows).to_string();
        let update = |target| UpdateContainer {
            change: RowChange::Batch,
            timestamp: now.into(),
            policy: PolicyIndex::LEGACY.into(),
            headers: json_body(),
            ..UpdateContainer::new(target)
        };
        let responses = self
            .containers
            .send_to_primaries(&context_of(NAME), (&path, path.clone()), body.into(), update)
            .await;
        for response in responses.iter().filter(|response| !response.is_success()) {
            let what = format_args!("rows are to go from {queue}");
            known.failures.note_response(response, what);
        }
        responses.iter().any(NodeResponse::is_success)
    }
}

fn tombstone(name: &str, now: Timestamp) -> Value {
    json!({
        "name": name,
        "created_at": now.internal(),
        "size": 0,
        "content_type": DELETED_CONTENT_TYPE,
        "etag": DELETED_ETAG,
        "deleted": 1,
        "storage_policy_index": 0,
    })
}
