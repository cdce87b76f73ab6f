//! PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus.
//!
//! A policy is in the container's system metadata, cut into pieces that fit into a header each. All are written
//! together, so that replicas have one policy or the other.
//! Always holds: a policy that is stored can be read; what of it is applied is in `admission.rs`.

use super::bucket::empty;
use super::{Done, Operation, document, public_access};
use crate::authority::policy::{BucketPolicy, LARGEST_POLICY};
use crate::error::{ACCESS_DENIED, MALFORMED_POLICY, NO_SUCH_BUCKET_POLICY, S3Error};
use crate::payload::collect;
use crate::xml::XmlWriter;
use http::{HeaderMap, HeaderValue, Method};
use request_pipeline::reply;
use std::collections::BTreeMap;

/// Bytes of a piece; OpenStack's servers take lines of 8,192.
const PIECE: usize = 4096;
/// The names of the pieces, as headers and without what says that they are a container's system metadata.
const PIECES: [(&str, &str); LARGEST_POLICY.div_ceil(PIECE)] = [
    ("x-container-sysmeta-s3api-policy-0", "s3api-policy-0"),
    ("x-container-sysmeta-s3api-policy-1", "s3api-policy-1"),
    ("x-container-sysmeta-s3api-policy-2", "s3api-policy-2"),
    ("x-container-sysmeta-s3api-policy-3", "s3api-policy-3"),
    ("x-container-sysmeta-s3api-policy-4", "s3api-policy-4"),
];

/// The text of a policy among a container's system metadata.
pub(super) fn text_of(sysmeta: &BTreeMap<String, String>) -> Option<String> {
    let pieces = PIECES.iter().filter_map(|(_, name)| sysmeta.get(*name));
    Some(pieces.map(String::as_str).collect::<String>()).filter(|text| !text.is_empty())
}

/// PutBucketPolicy.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    let body = collect(&mut operation.request, signed.as_deref(), 2 * LARGEST_POLICY as u64).await?;
    let policy = BucketPolicy::read(&body, operation.bucket());
    let policy = policy.map_err(|problem| MALFORMED_POLICY.saying(problem.to_string()))?;
    let bucket = operation.metadata_of_bucket().await?;
    if policy.is_public() && public_access::of_headers(&bucket).block_policy {
        return Err(ACCESS_DENIED.saying("Public policies are blocked by the bucket's public access block."));
    }
    operation.store_policy(policy.text()).await
}

/// DeleteBucketPolicy.
pub(super) async fn delete(operation: Operation<'_>) -> Done {
    operation.store_policy("").await
}

/// GetBucketPolicy.
pub(super) async fn get(operation: Operation<'_>) -> Done {
    let text = operation.stored_policy().await?;
    Ok(reply::with_body(
        200,
        HeaderValue::from_static("application/json"),
        text,
    ))
}

/// GetBucketPolicyStatus.
pub(super) async fn status(operation: Operation<'_>) -> Done {
    let text = operation.stored_policy().await?;
    let policy = BucketPolicy::read(text.as_bytes(), operation.bucket());
    let is_public = policy.is_ok_and(|policy| policy.is_public());
    let mut xml = XmlWriter::document("PolicyStatus");
    xml.text("IsPublic", if is_public { "true" } else { "false" });
    Ok(document(xml))
}

impl Operation<'_> {
    async fn store_policy(&self, text: &str) -> Done {
        let mut post = self.further(Method::POST, self.container());
        for (number, (header, _)) in PIECES.iter().enumerate() {
            let start = (number * PIECE).min(text.len());
            // A policy's text is ASCII; an empty piece takes away what is stored.
            let piece = text.get(start..(start + PIECE).min(text.len())).unwrap_or_default();
            post.set_header(header, piece);
        }
        let response = self.send(post).await;
        match response.status().is_success() {
            true => Ok(empty(204)),
            false => Err(self.bucket_refusal(&response)),
        }
    }

    async fn stored_policy(&self) -> Result<String, S3Error> {
        let bucket = self.metadata_of_bucket().await?;
        let pieces = PIECES
            .iter()
            .filter_map(|(header, _)| bucket.get(*header)?.to_str().ok());
        let text: String = pieces.collect();
        match text.is_empty() {
            true => Err(NO_SUCH_BUCKET_POLICY.about("BucketName", self.bucket())),
            false => Ok(text),
        }
    }

    pub(super) async fn metadata_of_bucket(&self) -> Result<HeaderMap, S3Error> {
        let response = self.send(self.further(Method::HEAD, self.container())).await;
        match response.status().is_success() {
            true => Ok(response.headers().clone()),
            false => Err(self.bucket_refusal(&response)),
        }
    }
}
