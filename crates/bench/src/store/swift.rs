//! Swift's API: what a request of each operation looks like, and which answers are good.

use super::StoreRequest;
use super::digest::DigestLogin;
use crate::figures::Failure;
use crate::workload::OperationKind;
use base64::Engine;
use std::io::Write;
use std::sync::Arc;
use vocabulary::Timestamp;
use vocabulary::names::quote;

/// Containers that a run of this program has made carry it, and no others are written to or deleted.
pub const MARK: &str = "X-Container-Meta-Made-By-Bench";

/// The user that asks.
#[derive(Clone)]
pub struct Swift {
    /// The header that says who asks.
    header: String,
    policy: Option<String>,
    /// In place of a header.
    digest: Option<Arc<DigestLogin>>,
}

impl Swift {
    /// With a token, which may be empty, and the policy of containers that are made; nothing when one of them is no
    /// text for a header.
    pub fn new(token: &str, policy: Option<&str>) -> Option<Self> {
        let is_text = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        (is_text(token) && policy.is_none_or(is_text)).then(|| Self {
            header: format!("X-Auth-Token: {token}\r\n"),
            policy: policy.map(str::to_owned),
            digest: None,
        })
    }

    /// With user and password, which every request carries (HTTP's Basic authentication, RFC 7617).
    pub fn with_password(user: &str, password: &str, policy: Option<&str>) -> Option<Self> {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        Some(Self {
            header: format!("Authorization: Basic {encoded}\r\n"),
            ..Self::new("", policy)?
        })
    }

    /// With user and password, which each request proves to have (RFC 7616).
    pub(super) fn with_digest(login: Arc<DigestLogin>, policy: Option<&str>) -> Option<Self> {
        Some(Self {
            header: String::new(),
            digest: Some(login),
            ..Self::new("", policy)?
        })
    }

    pub(super) fn digest_login(&self) -> Option<&DigestLogin> {
        self.digest.as_deref()
    }

    /// The header that says who asks; empty where that is said in another way.
    pub fn user_header(&self) -> String {
        self.header.clone()
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
        if !request.detail.query.is_empty() {
            let _ = write!(head, "?{}", request.detail.query);
        }
        let _ = write!(head, " HTTP/1.1\r\nHost: {host}\r\n{}", self.header);
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

#[cfg(test)]
mod tests {
    use super::Swift;

    /// The example of RFC 7617.
    #[test]
    fn passwords_go_with_each_request() {
        let swift = Swift::with_password("Aladdin", "open sesame", None).unwrap();
        assert_eq!(
            swift.user_header(),
            "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
        );
        assert!(Swift::with_password("a", "b", Some("gold\r\nx: y")).is_none());
    }
}
