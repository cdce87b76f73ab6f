//! Which times gateways give to clients' writes, as seen where the writes leave them.
//!
//! A client does not learn the time of its write. Each write says its number in its metadata, so that what a gateway
//! sends to object servers tells the times of each: more than one where it was sent again.

use crate::bugs::Bug;
use http::HeaderMap;
use parking_lot::Mutex;
use peer::message::header_names::X_BACKEND_TIMESTAMP;
use peer::message::{HeaderField, Message, ServerKind};
use peer::{Call, Response, Service};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocabulary::Timestamp;

/// Where a write says its number.
pub(crate) const NUMBER: &str = "x-object-meta-number";

/// The times of writes by their numbers; clones are the same ones.
#[derive(Clone, Default)]
pub struct SentTimes(Arc<Mutex<BTreeMap<usize, Vec<Timestamp>>>>);

impl SentTimes {
    /// All times with which a write was sent, in their order.
    pub(crate) fn of(&self, number: usize) -> Vec<Timestamp> {
        self.0.lock().get(&number).cloned().unwrap_or_default()
    }

    fn note(&self, headers: &HeaderMap, at: &HeaderField<Timestamp>) {
        let number = headers
            .get(NUMBER)
            .and_then(|number| number.to_str().ok()?.parse().ok());
        if let (Some(number), Some(at)) = (number, at.value()) {
            let mut all = self.0.lock();
            let times: &mut Vec<Timestamp> = all.entry(number).or_default();
            if !times.contains(at) {
                times.push(*at);
            }
        }
    }
}

/// The object server of a node: as a gateway reaches it, or, where nodes speak HTTP, what it is reached by.
pub(crate) struct NotedWrites {
    pub(crate) inner: Arc<dyn Service>,
    pub(crate) sent: SentTimes,
    pub(crate) bug: Option<Bug>,
}

#[async_trait::async_trait]
impl Service for NotedWrites {
    async fn call(&self, call: Call) -> Response {
        let call = call.decoded(ServerKind::Object);
        let is_write = match &call.message {
            Message::PutObject(put) => {
                self.sent.note(&put.headers, &put.timestamp);
                true
            }
            Message::PostObject(post) => {
                self.sent.note(&post.headers, &post.timestamp);
                true
            }
            Message::DeleteObject(delete) => {
                self.sent.note(&delete.headers, &delete.timestamp);
                true
            }
            _ => false,
        };
        let mut response = self.inner.call(call).await;
        if is_write && self.bug == Some(Bug::TrustsOwnClock) {
            response.headers_mut().remove(X_BACKEND_TIMESTAMP);
        }
        response
    }
}
