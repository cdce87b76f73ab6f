//! What must be granted for an operation.
//!
//! Always holds: an operation that is not named here is left to the account's own authorisation, which gives its
//! buckets to the account's administrators alone.
//! Source: AWS, "Mapping of ACL permissions and access policy permissions"; what OpenStack's s3api answered when asked.

use super::AclPermission::{self, Read, ReadAcp, Write, WriteAcp};
use http::Method;

/// What must be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// To be a user whose own account it is.
    OwnAccount,
    /// This on the bucket.
    OnBucket(AclPermission),
    /// The bucket itself.
    OwnBucket,
    /// The bucket must be there; what its list grants is looked at for each key.
    BucketThere,
    /// This on the object.
    OnObject(AclPermission),
    /// The object itself.
    OwnObject,
    /// To read the object, by the list that comes with it.
    ObjectsOwnWord,
}

/// What an operation needs, on the service, on a bucket (`level.0`) or on an object (`level.1`).
pub(crate) fn needed(level: (bool, bool), method: &Method, subresource: Option<&str>) -> Option<Needed> {
    use Needed::{BucketThere, ObjectsOwnWord, OnBucket, OnObject, OwnAccount, OwnBucket, OwnObject};
    let method = method.as_str();
    Some(match (level, method, subresource) {
        ((false, _), "GET", None) => OwnAccount,
        ((true, false), "GET" | "HEAD", None) => OnBucket(Read),
        ((true, false), "GET", Some("versions" | "versioning" | "uploads" | "object-lock")) => OnBucket(Read),
        ((true, false), "PUT", Some("versioning")) => OnBucket(Write),
        ((true, false), "GET", Some("acl")) => OnBucket(ReadAcp),
        ((true, false), "PUT", Some("acl")) => OnBucket(WriteAcp),
        ((true, false), "GET", Some("location" | "logging" | "tagging")) => OwnBucket,
        ((true, false), "PUT" | "DELETE", Some("tagging")) => OwnBucket,
        ((true, false), "GET" | "PUT" | "DELETE", Some("cors" | "lifecycle" | "encryption")) => OwnBucket,
        ((true, false), "PUT", Some("logging")) | ((true, false), "GET" | "PUT", Some("notification")) => OwnBucket,
        ((true, false), _, Some("policy" | "policyStatus" | "publicAccessBlock" | "ownershipControls")) => OwnBucket,
        ((true, false), "DELETE", None) | ((true, false), "PUT", Some("object-lock")) => OwnBucket,
        ((true, false), "POST", Some("delete")) => BucketThere,
        ((true, true), "GET" | "HEAD", None | Some("partNumber")) => ObjectsOwnWord,
        ((true, true), "GET", Some("attributes" | "retention" | "legal-hold")) => OnObject(Read),
        ((true, true), "GET", Some("acl")) => OnObject(ReadAcp),
        ((true, true), "PUT", Some("acl")) => OnObject(WriteAcp),
        ((true, true), "GET" | "PUT" | "DELETE", Some("tagging")) => OwnObject,
        ((true, true), "PUT", Some("retention" | "legal-hold")) => OwnObject,
        ((true, true), "PUT", None | Some("partNumber")) => OnBucket(Write),
        ((true, true), "DELETE", None | Some("uploadId")) => OnBucket(Write),
        ((true, true), "POST", Some("uploads" | "uploadId")) => OnBucket(Write),
        ((true, true), "GET", Some("uploadId")) => OnBucket(Read),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_left_to_the_account() {
        for (level, method, subresource, expected) in [
            ((true, false), Method::PUT, None, None),
            ((true, false), Method::DELETE, Some("website"), None),
            ((true, false), Method::PUT, Some("policy"), Some(Needed::OwnBucket)),
            (
                (true, false),
                Method::DELETE,
                Some("publicAccessBlock"),
                Some(Needed::OwnBucket),
            ),
            ((true, true), Method::PUT, Some("restore"), None),
            ((true, true), Method::PUT, Some("legal-hold"), Some(Needed::OwnObject)),
            ((true, false), Method::DELETE, None, Some(Needed::OwnBucket)),
            ((true, false), Method::PUT, Some("lifecycle"), Some(Needed::OwnBucket)),
            ((true, false), Method::DELETE, Some("cors"), Some(Needed::OwnBucket)),
            (
                (true, false),
                Method::DELETE,
                Some("encryption"),
                Some(Needed::OwnBucket),
            ),
            ((true, false), Method::PUT, Some("logging"), Some(Needed::OwnBucket)),
            (
                (true, false),
                Method::GET,
                Some("notification"),
                Some(Needed::OwnBucket),
            ),
            (
                (true, false),
                Method::PUT,
                Some("notification"),
                Some(Needed::OwnBucket),
            ),
            ((true, true), Method::DELETE, None, Some(Needed::OnBucket(Write))),
            (
                (true, true),
                Method::HEAD,
                Some("partNumber"),
                Some(Needed::ObjectsOwnWord),
            ),
        ] {
            assert_eq!(
                needed(level, &method, subresource),
                expected,
                "{method} {subresource:?}"
            );
        }
    }
}
