//! One object server, asked directly as a proxy asks it: what its storage costs without a proxy in front.
//!
//! Always holds: device and partition are a function of the object's name, so that it is found again; containers
//! are neither made nor updated.

use super::StoreRequest;
use crate::figures::Failure;
use crate::workload::OperationKind;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// Partitions that objects are spread over. A server takes any number, whatever its ring says.
const PARTITIONS: u64 = 3000;

/// Where on the server objects are.
#[derive(Clone)]
pub struct DirectObjectServer {
    devices: Vec<String>,
    account: String,
}

impl DirectObjectServer {
    /// With the devices of the server; nothing when there are none.
    pub fn new(devices: &[&str], account: &str) -> Option<Self> {
        (!devices.is_empty()).then(|| Self {
            devices: devices.iter().map(|device| quote(device)).collect(),
            account: quote(account),
        })
    }

    /// Request line and headers, at a time.
    pub fn head(&self, request: &StoreRequest<'_>, host: &str, now: Timestamp, head: &mut Vec<u8>) {
        let verb = match request.kind {
            OperationKind::Write | OperationKind::FileWrite => "PUT",
            OperationKind::Delete => "DELETE",
            OperationKind::Head => "HEAD",
            _ => "GET",
        };
        let mut hasher = DefaultHasher::new();
        (request.container, request.object).hash(&mut hasher);
        let place = hasher.finish();
        let device = &self.devices[(place >> 32) as usize % self.devices.len()];
        head.clear();
        // Writing to memory does not fail.
        let _ = write!(
            head,
            "{verb} /{device}/{}/{}/{}/{} HTTP/1.1\r\nHost: {host}\r\nX-Timestamp: {}\r\n",
            place % PARTITIONS,
            self.account,
            quote(request.container),
            quote(request.object),
            now.normal()
        );
        if request.kind.sends_body() {
            let _ = write!(
                head,
                "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n",
                request.size
            );
        }
        head.extend_from_slice(b"\r\n");
    }

    /// Why a status is no success.
    pub fn judge(&self, status: u16) -> Option<Failure> {
        (!(200..300).contains(&status)).then_some(Failure::Status(status))
    }
}
