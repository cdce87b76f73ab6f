//! Accounts and containers for a simulation: all exist, and rows of objects are merged by timestamp.
//!
//! The real ones keep SQLite files, which know no seam; here only what objects need of them is played. The rows
//! that they were sent survive everything.

use http::StatusCode;
use http::header::HeaderValue;
use parking_lot::Mutex;
use peer::message::header_names::X_POLICY_INDEX;
use peer::message::{Message, RowChange, ServerKind};
use peer::{Body, Call, Response, Service};
use std::collections::BTreeMap;
use vocabulary::Timestamp;

/// The newest row of an object: when, and whether it is a deletion.
pub type PlayedRow = (Timestamp, bool);

/// Account and container server of one node.
#[derive(Default)]
pub struct Containers {
    rows: Mutex<BTreeMap<String, PlayedRow>>,
}

impl Containers {
    /// The newest row of an object that this node was sent.
    pub fn row(&self, path: &str) -> Option<PlayedRow> {
        self.rows.lock().get(path).copied()
    }
}

#[async_trait::async_trait]
impl Service for Containers {
    async fn call(&self, call: Call) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
            .headers_mut()
            .insert(X_POLICY_INDEX, HeaderValue::from_static("0"));
        if let Message::UpdateContainer(update) = call.decoded(ServerKind::Container).message
            && let Some(at) = update.timestamp.value()
        {
            let row = (*at, update.change == RowChange::Delete);
            let mut rows = self.rows.lock();
            let known = rows.entry(update.target.path.path()).or_insert(row);
            *known = (*known).max(row);
            *response.status_mut() = StatusCode::CREATED;
        }
        response
    }
}
