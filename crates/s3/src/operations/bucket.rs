//! Buckets: made, looked at, deleted; where they are, whether they keep versions.

use super::access_checks::{BUCKETS_LIST, header, list_in};
use super::object_lock::headers as lock;
use super::{Done, Operation, document};
use crate::acl::{self, AccessControl};
use crate::error::{
    BUCKET_ALREADY_EXISTS, BUCKET_ALREADY_OWNED, BUCKET_NOT_EMPTY, INVALID_LOCATION, MALFORMED_XML, NO_SUCH_BUCKET,
    S3Error,
};
use crate::payload::collect;
use crate::xml::{Element, XmlWriter};
use http::{HeaderValue, Method};
use peer::Body;
use request_pipeline::{Response, reply, set_header};
use vocabulary::object_lock::BucketLock;

/// Bytes of a `CreateBucketConfiguration`.
const LARGEST_CONFIGURATION: u64 = 8 * 1024;

/// CreateBucket. A canned ACL becomes Swift's.
pub(super) async fn create(mut operation: Operation<'_>) -> Done {
    let signed = operation.signed_body();
    if operation.request.body.length() != Some(0) {
        let body = collect(&mut operation.request, signed.as_deref(), LARGEST_CONFIGURATION).await?;
        check_location(&operation, &body)?;
    }
    let mut put = operation.further(Method::PUT, operation.container());
    if operation.service.settings.s3_acl {
        put.headers.insert(BUCKETS_LIST, operation.list_of_new_bucket().await?);
    } else if let Some(acl) = operation.request.header("x-amz-acl") {
        let (read, write) = canned_acl(acl)?;
        put.set_header("x-container-read", read);
        put.set_header("x-container-write", write);
    }
    let has_lock = lock::is_wanted(&operation.request.headers);
    if has_lock {
        lock::enable(&mut put, &BucketLock::default());
        // A PUT of a bucket that is there would give it a lock.
        operation.is_new_bucket().await?;
    }
    let response = operation.send(put).await;
    match response.status().as_u16() {
        201 if has_lock => operation.check_new_lock().await?,
        201 => {}
        202 => return Err(BUCKET_ALREADY_OWNED.about("BucketName", operation.bucket())),
        409 => return Err(BUCKET_ALREADY_EXISTS.about("BucketName", operation.bucket())),
        _ => return Err(operation.bucket_refusal(&response)),
    }
    let mut response = empty(200);
    set_header(response.headers_mut(), "location", &format!("/{}", operation.bucket()));
    Ok(response)
}

impl Operation<'_> {
    /// Refuses what would make a bucket that is there.
    async fn is_new_bucket(&self) -> Result<(), S3Error> {
        let head = self.send(self.further(Method::HEAD, self.container())).await;
        match head.status().as_u16() {
            404 => Ok(()),
            200..=299 => Err(BUCKET_ALREADY_OWNED.about("BucketName", self.bucket())),
            _ => Err(self.bucket_refusal(&head)),
        }
    }

    /// The list of a bucket that this request makes; refused where it is there already.
    async fn list_of_new_bucket(&self) -> Result<HeaderValue, S3Error> {
        let user = self.user();
        let head = self.send(self.further(Method::HEAD, self.container())).await;
        match head.status().as_u16() {
            404 => {}
            200..=299 => {
                let owner = list_in(head.headers(), &BUCKETS_LIST).owner;
                return Err(match owner.is_none_or(|owner| owner == user) {
                    true => BUCKET_ALREADY_OWNED.about("BucketName", self.bucket()),
                    false => BUCKET_ALREADY_EXISTS.about("BucketName", self.bucket()),
                });
            }
            _ => return Err(self.bucket_refusal(&head)),
        }
        let asked = acl::asked(&self.request.headers, &user, Some(&user))?;
        header(&asked.unwrap_or_else(|| AccessControl::private(&user)))
    }
}

fn check_location(operation: &Operation<'_>, body: &[u8]) -> Result<(), S3Error> {
    if body.is_empty() {
        return Ok(());
    }
    let document = Element::parse(body).map_err(|_| MALFORMED_XML)?;
    if document.name != "CreateBucketConfiguration" {
        return Err(MALFORMED_XML.into());
    }
    let wanted = document.text_of("LocationConstraint").unwrap_or_default();
    let ours = &operation.service.settings.location;
    if !wanted.is_empty() && wanted != ours {
        return Err(INVALID_LOCATION.about("LocationConstraint", wanted));
    }
    Ok(())
}

/// `X-Container-Read` and `X-Container-Write` of buckets that are everybody's.
pub(super) const READABLE: &str = ".r:*,.rlistings";
pub(super) const WRITABLE: &str = ".r:*";

/// Readers and writers, as `X-Container-Read` and `X-Container-Write` have them.
pub(super) fn canned_acl(name: &str) -> Result<(&'static str, &'static str), S3Error> {
    match name {
        "private" | "bucket-owner-read" | "bucket-owner-full-control" => Ok(("", "")),
        "public-read" => Ok((READABLE, "")),
        "public-read-write" => Ok((READABLE, WRITABLE)),
        "authenticated-read" | "log-delivery-write" => Err(crate::error::NOT_IMPLEMENTED.about("Acl", name)),
        _ => Err(crate::error::INVALID_ARGUMENT
            .about("ArgumentName", "x-amz-acl")
            .with("ArgumentValue", name)),
    }
}

/// HeadBucket.
pub(super) async fn head(operation: Operation<'_>) -> Done {
    let response = operation
        .send(operation.further(Method::HEAD, operation.container()))
        .await;
    if !response.status().is_success() {
        return Err(operation.bucket_refusal(&response));
    }
    let mut answer = empty(200);
    set_header(
        answer.headers_mut(),
        "x-amz-bucket-region",
        &operation.service.settings.location,
    );
    Ok(answer)
}

/// DeleteBucket, with what uploads that were never completed have left.
pub(super) async fn delete(operation: Operation<'_>) -> Done {
    // Before the bucket goes: it can be made again only later.
    let begun = operation.service.world.clock.now();
    let response = operation
        .send(operation.further(Method::DELETE, operation.container()))
        .await;
    match response.status().as_u16() {
        200..=299 => {
            operation.delete_segments(begun).await?;
            Ok(empty(204))
        }
        409 => Err(BUCKET_NOT_EMPTY.about("BucketName", operation.bucket())),
        _ => Err(operation.bucket_refusal(&response)),
    }
}

/// GetBucketLocation. The region that was the first one has no name.
pub(super) async fn location(operation: Operation<'_>) -> Done {
    exists(&operation).await?;
    let location = operation.service.settings.location.as_str();
    let location = if location == "us-east-1" { "" } else { location };
    let mut xml = XmlWriter::document("LocationConstraint");
    xml.content(location);
    Ok(document(xml))
}

async fn exists(operation: &Operation<'_>) -> Result<(), S3Error> {
    let response = operation
        .send(operation.further(Method::HEAD, operation.container()))
        .await;
    match response.status().as_u16() {
        200..=299 => Ok(()),
        404 => Err(NO_SUCH_BUCKET.about("BucketName", operation.bucket())),
        _ => Err(operation.bucket_refusal(&response)),
    }
}

/// A status without a body.
pub(super) fn empty(status: u16) -> Response {
    reply::html(status, String::new()).map(|_| Body::empty())
}
