//! `s3_acl`: GetBucketAcl, PutBucketAcl, GetObjectAcl, PutObjectAcl.
//!
//! An object's list lies with its data, as OpenStack's s3api has it, so that PutObjectAcl writes the object anew. It
//! does so with a time right behind that of the object whose list it replaces: a client's own write that comes
//! meanwhile is later and stays. What is encrypted with a client's key is written as it is stored, as it needs no key
//! here.

use super::access_checks::{BUCKETS_LIST, OBJECTS_LIST, header};
use super::bucket::empty;
use super::versions::VERSION_ID;
use super::{Done, Operation, document, public_access};
use crate::acl::{self, AccessControl};
use crate::error::{
    ACCESS_DENIED, METHOD_NOT_ALLOWED, MISSING_SECURITY_HEADER, NOT_IMPLEMENTED, OPERATION_ABORTED, S3Error,
    UNEXPECTED_CONTENT,
};
use crate::payload::collect;
use http::header::HeaderValue;
use http::{HeaderMap, Method};
use peer::message::header_names::X_TIMESTAMP;
use vocabulary::Timestamp;

/// An operation on a list.
pub(super) async fn run(operation: Operation<'_>) -> Done {
    match operation.request.method.as_str() {
        "GET" => get(operation),
        "PUT" => put(operation).await,
        method => Err(METHOD_NOT_ALLOWED.about("Method", method).with("ResourceType", "ACL")),
    }
}

/// GetBucketAcl, GetObjectAcl.
fn get(operation: Operation<'_>) -> Done {
    let allowed = operation.allowed.unwrap_or_default();
    let list = allowed.object.map_or(allowed.bucket, |(_, list)| list);
    Ok(document(acl::print(&list)))
}

/// PutBucketAcl, PutObjectAcl.
async fn put(mut operation: Operation<'_>) -> Done {
    let allowed = operation.allowed.clone().unwrap_or_default();
    let bucket_owner = allowed.bucket.owner.clone();
    let (found, old) = match allowed.object {
        Some((headers, list)) => (Some(headers), list),
        None => (None, allowed.bucket),
    };
    let list = operation.wanted(&old, bucket_owner.as_deref()).await?;
    match found {
        Some(found) => operation.replace_list_of_object(&list, &found).await?,
        None => {
            let mut post = operation.further(Method::POST, operation.container());
            post.headers.insert(BUCKETS_LIST, header(&list)?);
            let response = operation.send(post).await;
            if !response.status().is_success() {
                return Err(operation.bucket_refusal(&response));
            }
        }
    }
    Ok(empty(200))
}

impl Operation<'_> {
    /// The list that the request wants in place of the old one, whose owner stays. What has no owner becomes the
    /// user's.
    pub(super) async fn wanted(
        &mut self,
        old: &AccessControl,
        bucket_owner: Option<&str>,
    ) -> Result<AccessControl, S3Error> {
        let owner = old.owner.clone().unwrap_or_else(|| self.user());
        let signed = self.signed_body();
        let asked = acl::asked(&self.request.headers, &owner, bucket_owner)?;
        let body = collect(&mut self.request, signed.as_deref(), acl::LARGEST_DOCUMENT).await?;
        match asked {
            Some(_) if !body.is_empty() => Err(UNEXPECTED_CONTENT.into()),
            Some(list) => Ok(list),
            None if body.is_empty() => Err(MISSING_SECURITY_HEADER.about("MissingHeaderName", "x-amz-acl")),
            None => {
                let list = acl::read(&body)?;
                if list.is_public() && self.blocks_public_acls().await {
                    return Err(public_access::blocked());
                }
                match list.owner.as_ref() == Some(&owner) {
                    true => Ok(list),
                    false => Err(ACCESS_DENIED.into()),
                }
            }
        }
    }

    /// Whether the bucket's public access block refuses public lists. Those in headers are refused before.
    async fn blocks_public_acls(&self) -> bool {
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        public_access::of_metadata(&container.sysmeta).block_acls
    }

    /// Writes the object whose headers these are with another list.
    async fn replace_list_of_object(&self, list: &AccessControl, found: &HeaderMap) -> Result<(), S3Error> {
        let entity = self.container().with_object(self.key());
        if let Some(version) = self.call.parameter("versionId") {
            let head = self.send(self.further(Method::HEAD, entity.clone())).await;
            if head
                .headers()
                .get(VERSION_ID)
                .map_or("null".as_bytes(), HeaderValue::as_bytes)
                != version.as_bytes()
            {
                return Err(NOT_IMPLEMENTED.saying("Only the list of the current version can be changed."));
            }
        }
        let mut put = self.onto_itself(found);
        put.headers.insert(OBJECTS_LIST, header(list)?);
        let text = |name: &str| found.get(name).and_then(|value| value.to_str().ok());
        // A version has a time of its own.
        let written: Option<Timestamp> = text(X_TIMESTAMP.as_str()).and_then(|time| time.parse().ok());
        if let Some(written) = written.filter(|_| !found.contains_key(VERSION_ID)) {
            put.set_header("x-timestamp", &written.next_tick().internal());
        }
        let response = self.send(put).await;
        match response.status().as_u16() {
            202 | 412 => Err(OPERATION_ABORTED.into()),
            200..=299 => Ok(()),
            _ => Err(self.refusal(&response).await),
        }
    }
}
