//! S3's API: what a request of each operation looks like, signed with signatures of version 4, and which answers are
//! good.
//!
//! Buckets have no metadata that every store keeps, so that an object named [`MARKER`] says that a bucket was made by
//! this program: it is written after the bucket, and deleted before it.
//! Always holds: the secret is in no message.
//! Source: AWS, "Authenticating requests: using the Authorization header (AWS Signature Version 4)".

use super::StoreRequest;
use crate::figures::Failure;
use crate::workload::OperationKind;
use identity::signed_request::{SigningScope, sha256};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::sync::Arc;
use vocabulary::names::quote;
use vocabulary::{Timestamp, hex};

/// The object in buckets that a run of this program has made.
pub const MARKER: &str = ".made-by-bench";
/// Bytes that most requests take in the form that is signed.
const USUAL_CANONICAL: usize = 512;
/// Bodies are not part of the signature: they are as long as they are.
const PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// What all requests of a second are signed with.
struct SecondsSigning {
    second: u64,
    /// `20261124T130507Z`.
    time: String,
    /// `20261124/REGION/s3/aws4_request`.
    scope: String,
    /// Of the day.
    key: [u8; 32],
}

/// The user that signs.
#[derive(Clone)]
pub struct S3 {
    access_key: String,
    secret_key: String,
    region: String,
    signing: Arc<Mutex<Option<Arc<SecondsSigning>>>>,
}

impl S3 {
    /// With the keys of a user; nothing when they, or the region, are no text for a header.
    pub fn new(access_key: &str, secret_key: &str, region: &str) -> Option<Self> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        (is_word(access_key) && is_word(region)).then(|| Self {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            region: region.to_owned(),
            signing: Arc::default(),
        })
    }

    /// Request line and headers, signed for a time.
    pub fn head(&self, request: &StoreRequest<'_>, base: &str, host: &str, now: Timestamp, head: &mut Vec<u8>) {
        let verb = match request.kind {
            OperationKind::Read | OperationKind::List => "GET",
            OperationKind::Write
            | OperationKind::FileWrite
            | OperationKind::MakeContainer
            | OperationKind::Post
            | OperationKind::Copy => "PUT",
            OperationKind::Delete | OperationKind::DeleteContainer => "DELETE",
            OperationKind::Head => "HEAD",
        };
        let named = |object: &str| match object {
            "" => format!("{base}/{}", quote(request.container)),
            object => format!("{base}/{}/{}", quote(request.container), quote(object)),
        };
        let source = match request.kind {
            OperationKind::Copy | OperationKind::Post => {
                format!("/{}/{}", quote(request.container), quote(request.object))
            }
            _ => String::new(),
        };
        let copied = ("x-amz-copy-source", source.as_str());
        let replaced = [
            copied,
            ("x-amz-meta-bench", "yes"),
            ("x-amz-metadata-directive", "REPLACE"),
        ];
        let (path, amz): (String, &[(&str, &str)]) = match request.kind {
            OperationKind::Copy => (named(request.detail.copy), &replaced[..1]),
            // S3 changes metadata by copying an object onto itself.
            OperationKind::Post => (named(request.object), &replaced),
            _ => (named(request.object), &[]),
        };
        let (mark, query) = match (request.kind, request.detail.query) {
            (OperationKind::List, "") => ("?", "list-type=2"),
            (OperationKind::List, query) => ("?", query),
            _ => ("", ""),
        };
        let authorization_and_date = self.sign(verb, &path, query, host, now, amz);
        head.clear();
        // Writing to memory does not fail.
        let _ = write!(
            head,
            "{verb} {path}{mark}{query} HTTP/1.1\r\nHost: {host}\r\n{authorization_and_date}"
        );
        if request.kind.sends_body() {
            let _ = write!(head, "Content-Length: {}\r\n", request.size);
        } else if verb == "PUT" {
            head.extend_from_slice(b"Content-Length: 0\r\n");
        }
        for (name, value) in amz {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        request.detail.write_headers(head);
        head.extend_from_slice(b"\r\n");
    }

    /// Headers that sign a request; `amz` are its further headers that begin with `x-amz-`, sorted.
    pub(super) fn sign(
        &self,
        verb: &str,
        path: &str,
        query: &str,
        host: &str,
        now: Timestamp,
        amz: &[(&str, &str)],
    ) -> String {
        let signing = self.signing(now);
        let (time, scope) = (signing.time.as_str(), signing.scope.as_str());
        let mut headers = Vec::with_capacity(3 + amz.len());
        headers.extend_from_slice(&[("host", host), ("x-amz-content-sha256", PAYLOAD), ("x-amz-date", time)]);
        headers.extend_from_slice(amz);
        headers.sort_unstable();
        // What a request costs here is not the store's: no formatter, few allocations.
        let mut canonical = String::with_capacity(USUAL_CANONICAL);
        let mut signed_headers = String::with_capacity(64);
        for part in [verb, "\n", path, "\n", query, "\n"] {
            canonical += part;
        }
        for (name, value) in headers {
            for part in [name, ":", value, "\n"] {
                canonical += part;
            }
            if !signed_headers.is_empty() {
                signed_headers.push(';');
            }
            signed_headers += name;
        }
        for part in ["\n", &signed_headers, "\n", PAYLOAD] {
            canonical += part;
        }
        let hashed = hex::encode(Sha256::digest(canonical.as_bytes()));
        let string_to_sign = ["AWS4-HMAC-SHA256\n", time, "\n", scope, "\n", &hashed].concat();
        let signature = hex::encode(sha256(&signing.key, string_to_sign.as_bytes()));
        let (of_date, of_payload) = ("x-amz-date: ", "\r\nx-amz-content-sha256: ");
        let (of_key, of_headers) = ("\r\nAuthorization: AWS4-HMAC-SHA256 Credential=", ", SignedHeaders=");
        let parts = [
            of_date,
            time,
            of_payload,
            PAYLOAD,
            of_key,
            &self.access_key,
            "/",
            scope,
            of_headers,
        ];
        let rest = [signed_headers.as_str(), ", Signature=", &signature, "\r\n"];
        parts.concat() + &rest.concat()
    }

    /// What requests at this time are signed with.
    fn signing(&self, now: Timestamp) -> Arc<SecondsSigning> {
        let mut known = self.signing.lock();
        if let Some(signing) = known.as_ref().filter(|signing| signing.second == now.seconds()) {
            return signing.clone();
        }
        // 2026-11-24T13:05:07.000000 as 20261124T130507Z.
        let digits: String = now.iso().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
        let scope = SigningScope {
            date: digits.get(..8).unwrap_or_default().to_owned(),
            region: self.region.clone(),
            service: "s3".to_owned(),
        };
        let signing = SecondsSigning {
            second: now.seconds(),
            time: digits + "Z",
            scope: scope.text(),
            key: scope.signing_key(&self.secret_key),
        };
        known.insert(Arc::new(signing)).clone()
    }

    /// Why a status is no success.
    pub fn judge(&self, request: &StoreRequest<'_>, status: u16) -> Option<Failure> {
        let is_good = match (request.kind, status) {
            // What is to be there is there, and what is to be gone is gone.
            (OperationKind::MakeContainer, 409) => true,
            (OperationKind::DeleteContainer | OperationKind::Delete, 404) => true,
            (_, status) if request.detail.allows(status) => true,
            (_, status) => (200..300).contains(&status) && request.detail.fits(status),
        };
        (!is_good).then_some(Failure::Status(status))
    }
}

#[cfg(test)]
mod tests {
    use super::S3;
    use vocabulary::Timestamp;

    /// Against botocore's S3SigV4Auth, for the same request at the same time.
    #[test]
    fn signatures_are_those_of_others() {
        let s3 = S3::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1").unwrap();
        let signed = s3.sign(
            "GET",
            "/bucket/a%20b",
            "list-type=2",
            "127.0.0.1:8080",
            Timestamp::from_seconds(1_440_938_160),
            &[],
        );
        assert!(signed.starts_with("x-amz-date: 20150830T123600Z\r\n"), "{signed}");
        assert!(
            signed.ends_with("Signature=69894121c63d923e73e2ad58cfac0c4c259a1900cb6f2aeb00c50554effce196\r\n"),
            "{signed}"
        );
        // A second later it is another time, on another day another key.
        for (seconds, time) in [(1, "20150830T123601Z"), (86_400, "20150831T123600Z")] {
            let now = Timestamp::from_seconds(1_440_938_160 + seconds);
            let anew = S3::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1").unwrap();
            let [signed, expected] = [&s3, &anew].map(|s3| s3.sign("GET", "/b/o", "", "h", now, &[]));
            assert!(signed.starts_with(&format!("x-amz-date: {time}\r\n")), "{signed}");
            assert!(signed.contains(&format!(
                "Credential=AKIDEXAMPLE/{}/us-east-1/s3/aws4_request, ",
                &time[..8]
            )));
            assert_eq!(signed, expected);
        }
    }
}
