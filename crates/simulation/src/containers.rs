//! Accounts and containers for a simulation: all exist, and rows of objects are merged by timestamp.
//!
//! The real ones keep SQLite files, which know no seam; here only what objects need of them is played. What
//! they were told survives everything.

use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use peer::{Address, Body, Call, Response, Service};
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
    /// The newest row of an object of which this node was told.
    pub fn row(&self, path: &str) -> Option<PlayedRow> {
        self.rows.lock().get(path).copied()
    }
}

#[async_trait::async_trait]
impl Service for Containers {
    async fn call(&self, call: Call) -> Response {
        let call = call.into_raw();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let policy = HeaderName::from_static("x-backend-storage-policy-index");
        response.headers_mut().insert(policy, HeaderValue::from_static("0"));
        let Address::Entity(target) = &call.address else {
            return response;
        };
        let at: Option<Timestamp> = call
            .headers
            .get("x-timestamp")
            .and_then(|at| at.to_str().ok()?.parse().ok());
        if let (Some(at), Some(_)) = (at, &target.path.object) {
            let row = (at, call.method == Method::DELETE);
            let mut rows = self.rows.lock();
            let known = rows.entry(target.path.path()).or_insert(row);
            *known = (*known).max(row);
            *response.status_mut() = StatusCode::CREATED;
        }
        response
    }
}
