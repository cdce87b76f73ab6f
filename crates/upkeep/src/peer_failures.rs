//! What a pass did not get done, one line for each peer and reason: a node that is down fails every partition, and a
//! server that answers 507 every object. Each single failure is a line at DEBUG.
//!
//! Always holds: nothing is lost without a line; the reasons that are kept are bounded.

use crate::ring_client::NodeResponse;
use parking_lot::Mutex;
use placement::Device;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Reasons kept at a time; further ones get a line each.
const MOST: usize = 100;

/// Failures of a daemon's pass, by address and reason.
pub(crate) struct PeerFailures {
    daemon: &'static str,
    kept: Mutex<BTreeMap<(String, String), Failed>>,
}

struct Failed {
    times: u64,
    /// What failed first.
    first: String,
}

impl PeerFailures {
    /// None yet.
    pub(crate) fn new(daemon: &'static str) -> Self {
        let kept = Mutex::default();
        Self { daemon, kept }
    }

    /// `what` could not be done with `node`.
    pub(crate) fn note(&self, node: &Device, what: impl Display, why: impl Display) {
        let address = format!("{}:{}", node.replication_ip, node.replication_port);
        self.note_at(address, format!("{what} to {}", node.device), why.to_string());
    }

    /// The same with a peer's address, or its place (`ip:port/device`).
    pub(crate) fn note_at(&self, place: String, what: String, why: String) {
        let address = place.split('/').next().unwrap_or_default().to_owned();
        self.keep(address, what, why);
    }

    /// `response` is no success: a status counts as silence does.
    pub(crate) fn note_response(&self, response: &NodeResponse, what: impl Display) {
        self.note_at(response.place.clone(), what.to_string(), response.why());
    }

    /// It is of no server's making, or not known of which.
    pub(crate) fn note_item(&self, what: impl Display, why: impl Display) {
        self.keep(String::new(), what.to_string(), why.to_string());
    }

    fn keep(&self, address: String, what: String, why: String) {
        let daemon = self.daemon;
        let from = if address.is_empty() {
            String::new()
        } else {
            format!("{address}: ")
        };
        let mut kept = self.kept.lock();
        let is_full = kept.len() >= MOST;
        match kept.get_mut(&(address.clone(), why.clone())) {
            Some(failed) => failed.times += 1,
            None if is_full => return tracing::warn!("{daemon}: {from}{why} ({what})"),
            None => {
                let first = what.clone();
                kept.insert((address, why.clone()), Failed { times: 1, first });
            }
        }
        drop(kept);
        tracing::debug!("{daemon}: {from}{why} ({what})");
    }

    /// The pass is over.
    pub(crate) fn report(&self) {
        let daemon = self.daemon;
        for ((address, why), Failed { times, first }) in std::mem::take(&mut *self.kept.lock()) {
            let from = if address.is_empty() {
                address
            } else {
                format!("{address}: ")
            };
            match times {
                1 => tracing::warn!("{daemon}: {from}{why} ({first})"),
                _ => tracing::warn!("{daemon}: {from}{why}, {times} times in this pass (first: {first})"),
            }
        }
    }
}

impl Drop for PeerFailures {
    fn drop(&mut self) {
        self.report();
    }
}
