//! Public access block and ownership controls of buckets.
//!
//! Both are in the container's system metadata. What the block forbids is refused in `admission.rs` (ACLs in headers),
//! `own_acl.rs` (ACLs in bodies) and `bucket_policy.rs` (policies), and left out of the rights in `admission.rs`
//! (ignored and restricted ones).
//! Always holds: requests of Swift's API see neither.

use super::bucket::empty;
use super::{Done, Operation, document};
use crate::error::{ACCESS_DENIED, MALFORMED_XML, NO_SUCH_OWNERSHIP, NO_SUCH_PUBLIC_ACCESS_BLOCK, S3Error};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use http::{HeaderMap, Method};
use std::collections::BTreeMap;

/// Bytes of a document.
const LARGEST_DOCUMENT: u64 = 8 * 1024;
/// The block: a digit for each of the four, in the order of the struct.
const BLOCK: &str = "x-container-sysmeta-s3api-public-access-block";
const BLOCK_KEY: &str = "s3api-public-access-block";
const OWNERSHIP: &str = "x-container-sysmeta-s3api-ownership";
/// What the block's fields are called.
const NAMES: [&str; 4] = [
    "BlockPublicAcls",
    "IgnorePublicAcls",
    "BlockPublicPolicy",
    "RestrictPublicBuckets",
];
const OWNERSHIPS: [&str; 3] = ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"];

/// What is public no longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PublicAccessBlock {
    /// ACLs for everybody cannot be set.
    pub(super) block_acls: bool,
    /// ACLs for everybody count for nothing.
    pub(super) ignore_acls: bool,
    /// Policies for everybody cannot be set.
    pub(super) block_policy: bool,
    /// What policies allow everybody counts for nothing.
    pub(super) restrict: bool,
}

impl PublicAccessBlock {
    fn read(text: &str) -> Self {
        let flag = |at: usize| text.as_bytes().get(at) == Some(&b'1');
        Self {
            block_acls: flag(0),
            ignore_acls: flag(1),
            block_policy: flag(2),
            restrict: flag(3),
        }
    }
}

/// The block among a container's system metadata.
pub(super) fn of_metadata(sysmeta: &BTreeMap<String, String>) -> PublicAccessBlock {
    sysmeta
        .get(BLOCK_KEY)
        .map(|text| PublicAccessBlock::read(text))
        .unwrap_or_default()
}

/// The block among the headers of a container.
pub(super) fn of_headers(bucket: &HeaderMap) -> PublicAccessBlock {
    PublicAccessBlock::read(text_of(bucket, BLOCK))
}

/// A header's text; nothing where it is not there.
pub(super) fn text_of<'a>(bucket: &'a HeaderMap, name: &str) -> &'a str {
    bucket
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The refusal of a public ACL.
pub(super) fn blocked() -> S3Error {
    ACCESS_DENIED.saying("Public ACLs are blocked by the bucket's public access block.")
}

/// PutPublicAccessBlock.
pub(super) async fn put_block(mut operation: Operation<'_>) -> Done {
    let document = operation.document_named("PublicAccessBlockConfiguration").await?;
    if document
        .children
        .iter()
        .any(|child| !NAMES.contains(&child.name.as_str()))
    {
        return Err(MALFORMED_XML.into());
    }
    let mut stored = String::new();
    for name in NAMES {
        match document.text_of(name).map(str::to_ascii_lowercase).as_deref() {
            Some("true") => stored.push('1'),
            None | Some("false") => stored.push('0'),
            Some(_) => return Err(MALFORMED_XML.into()),
        }
    }
    operation.store(BLOCK, &stored, 200).await
}

/// GetPublicAccessBlock.
pub(super) async fn get_block(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let stored = text_of(&bucket, BLOCK);
    if stored.is_empty() {
        return Err(NO_SUCH_PUBLIC_ACCESS_BLOCK.about("BucketName", operation.bucket()));
    }
    let mut xml = XmlWriter::document("PublicAccessBlockConfiguration");
    for (name, flag) in NAMES.into_iter().zip(stored.bytes()) {
        xml.text(name, if flag == b'1' { "true" } else { "false" });
    }
    Ok(document(xml))
}

/// DeletePublicAccessBlock.
pub(super) async fn delete_block(operation: Operation<'_>) -> Done {
    operation.store(BLOCK, "", 204).await
}

/// PutBucketOwnershipControls.
pub(super) async fn put_ownership(mut operation: Operation<'_>) -> Done {
    let document = operation.document_named("OwnershipControls").await?;
    let rule = document.child("Rule").and_then(|rule| rule.text_of("ObjectOwnership"));
    let known = OWNERSHIPS.into_iter().find(|known| Some(*known) == rule);
    let ownership = known.filter(|_| document.children.len() == 1).ok_or(MALFORMED_XML)?;
    operation.store(OWNERSHIP, ownership, 200).await
}

/// GetBucketOwnershipControls.
pub(super) async fn get_ownership(operation: Operation<'_>) -> Done {
    let bucket = operation.metadata_of_bucket().await?;
    let stored = text_of(&bucket, OWNERSHIP);
    if stored.is_empty() {
        return Err(NO_SUCH_OWNERSHIP.about("BucketName", operation.bucket()));
    }
    let mut xml = XmlWriter::document("OwnershipControls");
    xml.open("Rule");
    xml.text("ObjectOwnership", stored);
    Ok(document(xml))
}

/// DeleteBucketOwnershipControls.
pub(super) async fn delete_ownership(operation: Operation<'_>) -> Done {
    operation.store(OWNERSHIP, "", 204).await
}

impl Operation<'_> {
    /// The document in the body, which has this root.
    pub(super) async fn document_named(&mut self, root: &str) -> Result<Element, S3Error> {
        let signed = self.signed_body();
        let body = collect(&mut self.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
        let document = Element::parse(&body).map_err(|_| MALFORMED_XML)?;
        match document.name == root {
            true => Ok(document),
            false => Err(MALFORMED_XML.into()),
        }
    }

    /// Stores system metadata of the bucket; an empty text takes away what is stored.
    pub(super) async fn store(&self, header: &'static str, text: &str, status: u16) -> Done {
        let mut post = self.further(Method::POST, self.container());
        post.set_header(header, text);
        let response = self.send(post).await;
        match response.status().is_success() {
            true => Ok(empty(status)),
            false => Err(self.bucket_refusal(&response)),
        }
    }
}
