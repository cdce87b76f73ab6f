//! Rows of the queue whose tasks are settled: taken out by one UPDATE to each server of their container.
//!
//! UPDATE is Swift's verb for many rows at once (JSON, as the replicators' `merge_items`).

use super::tasks::Task;
use super::{NAME, ObjectExpirer};
use crate::ring_client::user_agent;
use http::{HeaderMap, HeaderValue, Method};
use listing_engine::{DELETED_CONTENT_TYPE, DELETED_ETAG};
use serde_json::{Value, json};
use vocabulary::Timestamp;

impl ObjectExpirer {
    /// Whether at least one server has taken the rows out; replication tells the others.
    pub(super) async fn remove_rows(&self, queue: &str, tasks: &[&Task]) -> bool {
        let now = self.world.clock.now();
        let rows: Vec<Value> = tasks.iter().map(|task| tombstone(&task.name, now)).collect();
        let ring = self.containers.ring.load_full();
        let path = self.queue(queue);
        let hash = self.containers.hash.container(&path.account, queue);
        let partition = ring.partition_of(&hash.0);
        let update = Method::from_bytes(b"UPDATE").unwrap_or(Method::POST);
        let body = Value::Array(rows).to_string();
        let headers = update_headers(now);
        let devices = ring.primaries(partition);
        let answers = self
            .containers
            .tell_with(&devices, partition, &update, path, &headers, body.into())
            .await;
        for answer in answers.iter().filter(|answer| !answer.is_success()) {
            let (place, why) = (&answer.place, answer.why());
            tracing::warn!("{NAME}: {place} did not take rows out of {queue}: {why}");
        }
        answers.iter().any(crate::ring_client::Answer::is_success)
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

fn update_headers(now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(6);
    let time = HeaderValue::from_str(&now.internal()).unwrap_or(HeaderValue::from_static("0"));
    headers.insert("x-timestamp", time);
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("x-backend-storage-policy-index", HeaderValue::from_static("0"));
    headers.insert("user-agent", user_agent(NAME));
    headers
}
