//! Access control lists, as far as Swift's own express them.
//!
//! Always holds: what an answer says of readers and writers is what `X-Container-Read` and `X-Container-Write` say.

use super::bucket::{READABLE, WRITABLE, canned_acl, empty};
use super::{Done, Operation, document};
use crate::acl::{AccessControl, AclGrantee, AclGroup, AclPermission};
use crate::error::{NOT_IMPLEMENTED, S3Error};
use crate::xml::XmlWriter;
use http::{HeaderMap, Method};

const EVERYBODY: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
const GRANTEE: &str = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type";

/// GetBucketAcl.
pub(super) async fn bucket_acl(operation: Operation<'_>) -> Done {
    let bucket = operation.head_of_bucket().await?;
    let (is_readable, is_writable) = (
        is_open(&bucket, "x-container-read"),
        is_open(&bucket, "x-container-write"),
    );
    Ok(document(policy(&operation.user(), is_readable, is_writable)))
}

/// GetObjectAcl: an object is readable as its bucket is.
pub(super) async fn object_acl(operation: Operation<'_>) -> Done {
    let object = operation.further(Method::HEAD, operation.container().with_object(operation.key()));
    let response = operation.send(object).await;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let bucket = operation.head_of_bucket().await?;
    Ok(document(policy(
        &operation.user(),
        is_open(&bucket, "x-container-read"),
        false,
    )))
}

/// PutBucketAcl with a list that Swift can express: a canned one, or grants, in headers or as a document.
pub(super) async fn put_bucket_acl(mut operation: Operation<'_>) -> Done {
    let (read, write) = match operation.request.header("x-amz-acl") {
        Some(acl) => canned_acl(acl)?,
        None => {
            let owner = operation.user();
            let list = operation.wanted(&AccessControl::private(&owner), None).await?;
            expressed(&list)?
        }
    };
    let mut post = operation.further(Method::POST, operation.container());
    post.set_header("x-container-read", read);
    post.set_header("x-container-write", write);
    let response = operation.send(post).await;
    match response.status().is_success() {
        true => Ok(empty(200)),
        false => Err(operation.bucket_refusal(&response)),
    }
}

/// The list as `X-Container-Read` and `X-Container-Write`, which know the owner and everybody.
fn expressed(list: &AccessControl) -> Result<(&'static str, &'static str), S3Error> {
    let (mut read, mut write) = ("", "");
    for (permission, grantee) in &list.grants {
        match (permission, grantee) {
            (_, AclGrantee::User(user)) if Some(user) == list.owner.as_ref() => {}
            (AclPermission::Read, AclGrantee::Group(AclGroup::AllUsers)) => read = READABLE,
            (AclPermission::Write, AclGrantee::Group(AclGroup::AllUsers)) => write = WRITABLE,
            _ => {
                let text = "Without s3_acl a list grants READ and WRITE to all users, and else nothing.";
                return Err(NOT_IMPLEMENTED.saying(text));
            }
        }
    }
    Ok((read, write))
}

impl Operation<'_> {
    async fn head_of_bucket(&self) -> Result<HeaderMap, S3Error> {
        let response = self.send(self.further(Method::HEAD, self.container())).await;
        match response.status().is_success() {
            true => Ok(response.headers().clone()),
            false => Err(self.bucket_refusal(&response)),
        }
    }
}

/// Whether a list of Swift's opens the container to all.
fn is_open(bucket: &HeaderMap, name: &str) -> bool {
    let list = bucket
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    list.split(',').any(|entry| entry.trim() == ".r:*")
}

fn policy(owner: &str, is_readable: bool, is_writable: bool) -> XmlWriter {
    let mut xml = XmlWriter::document("AccessControlPolicy");
    xml.open("Owner");
    xml.text("ID", owner);
    xml.text("DisplayName", owner);
    xml.close();
    xml.open("AccessControlList");
    xml.open("Grant");
    xml.open_with("Grantee", &format!("{GRANTEE}=\"CanonicalUser\""));
    xml.text("ID", owner);
    xml.text("DisplayName", owner);
    xml.close();
    xml.text("Permission", "FULL_CONTROL");
    xml.close();
    for (is_granted, permission) in [(is_readable, "READ"), (is_writable, "WRITE")] {
        if is_granted {
            xml.open("Grant");
            xml.open_with("Grantee", &format!("{GRANTEE}=\"Group\""));
            xml.text("URI", EVERYBODY);
            xml.close();
            xml.text("Permission", permission);
            xml.close();
        }
    }
    xml
}
