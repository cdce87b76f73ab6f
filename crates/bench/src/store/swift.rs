//! Swift's API: what a request of each operation looks like, and which answers are good.

use super::StoreRequest;
use crate::figures::Failure;
use crate::workload::OperationKind;
use std::io::Write;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// Containers that a run of this program has made carry it, and no others are written to or deleted.
pub const MARK: &str = "X-Container-Meta-Made-By-Bench";

/// The user that asks.
pub struct Swift {
    token: String,
    policy: Option<String>,
}

impl Swift {
    /// With a token, which may be empty, and the policy of containers that are made; nothing when one of them is no
    /// text for a header.
    pub fn new(token: &str, policy: Option<&str>) -> Option<Self> {
        let is_text = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        (is_text(token) && policy.is_none_or(is_text)).then(|| Self {
            token: token.to_owned(),
            policy: policy.map(str::to_owned),
        })
    }

    /// The header that says who asks.
    pub fn token_header(&self) -> String {
        format!("X-Auth-Token: {}\r\n", self.token)
    }

    /// Request line and headers.
    pub fn head(&self, request: &StoreRequest<'_>, base: &str, host: &str, now: Timestamp, head: &mut Vec<u8>) {
        let verb = match request.kind {
            OperationKind::Read | OperationKind::List => "GET",
            OperationKind::Write | OperationKind::FileWrite | OperationKind::MakeContainer => "PUT",
            OperationKind::Delete | OperationKind::DeleteContainer => "DELETE",
            OperationKind::Head => "HEAD",
            OperationKind::Post => "POST",
            OperationKind::Copy => "COPY",
        };
        head.clear();
        // Writing to memory does not fail.
        let _ = write!(head, "{verb} {base}/{}", quote(request.container));
        if !request.object.is_empty() {
            let _ = write!(head, "/{}", quote(request.object));
        }
        let _ = write!(head, " HTTP/1.1\r\nHost: {host}\r\nX-Auth-Token: {}\r\n", self.token);
        match request.kind {
            kind if kind.sends_body() => {
                let _ = match request.chunked {
                    true => write!(head, "Transfer-Encoding: chunked\r\n"),
                    false => write!(head, "Content-Length: {}\r\n", request.size),
                };
            }
            OperationKind::MakeContainer => {
                let _ = write!(head, "Content-Length: 0\r\n{MARK}: yes\r\n");
                if request.detail.has_versions {
                    head.extend_from_slice(b"X-Versions-Enabled: true\r\n");
                }
                if let Some(policy) = &self.policy {
                    let _ = write!(head, "X-Storage-Policy: {policy}\r\n");
                }
            }
            OperationKind::Post => {
                let _ = write!(head, "Content-Length: 0\r\nX-Object-Meta-Bench: {}\r\n", now.normal());
            }
            OperationKind::Copy => {
                let (container, object) = (quote(request.container), quote(request.detail.copy));
                let _ = write!(head, "Content-Length: 0\r\nDestination: {container}/{object}\r\n");
            }
            _ => {}
        }
        request.detail.write_headers(head);
        head.extend_from_slice(b"\r\n");
    }

    /// Why a status is no success.
    pub fn judge(&self, request: &StoreRequest<'_>, status: u16) -> Option<Failure> {
        let is_good = match (request.kind, status) {
            // What is to be gone is gone.
            (OperationKind::DeleteContainer | OperationKind::Delete, 404) => true,
            (_, status) if request.detail.allows(status) => true,
            (_, status) => (200..300).contains(&status) && request.detail.fits(status),
        };
        (!is_good).then_some(Failure::Status(status))
    }
}
