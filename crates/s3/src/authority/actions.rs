//! Which of S3's actions a request takes, and of what: the words of limits of keys and of bucket policies.
//!
//! Always holds: every request that can reach an operation has at least one action; what a copy reads is named besides
//! what it writes.
//! Source: AWS, "Actions, resources, and condition keys for Amazon S3".

use crate::call::S3Call;
use http::{HeaderMap, HeaderName, Method};
use vocabulary::names::unquote;

/// An action: its name, and the word for all of its kind that limits of keys have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// `s3:GetObject`.
    pub name: &'static str,
    /// `read`, `write`, `list`, `delete`; nothing for what changes who may do what, or what becomes of others' data.
    pub kind: Option<&'static str>,
}

/// An action on something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What is to be done.
    pub action: Action,
    /// The bucket; nothing where it is all of them.
    pub bucket: Option<String>,
    /// The key; nothing where it is the bucket.
    pub key: Option<String>,
}

macro_rules! actions {
    ($($constant:ident = $name:literal, $kind:expr;)+) => {
        $(pub(crate) const $constant: Action = Action { name: concat!("s3:", $name), kind: $kind };)+
        /// All of them.
        pub const ALL: &[Action] = &[$($constant),+];
    };
}

const READ: Option<&str> = Some("read");
const WRITE: Option<&str> = Some("write");
const LIST: Option<&str> = Some("list");
const DELETE: Option<&str> = Some("delete");

actions! {
    ABORT_UPLOAD = "AbortMultipartUpload", WRITE;
    BYPASS_GOVERNANCE = "BypassGovernanceRetention", None;
    CREATE_BUCKET = "CreateBucket", WRITE;
    DELETE_BUCKET = "DeleteBucket", DELETE;
    DELETE_BUCKET_POLICY = "DeleteBucketPolicy", None;
    DELETE_OBJECT = "DeleteObject", DELETE;
    DELETE_OBJECT_TAGGING = "DeleteObjectTagging", WRITE;
    DELETE_VERSION = "DeleteObjectVersion", DELETE;
    GET_BUCKET_ACL = "GetBucketAcl", READ;
    GET_BUCKET_CORS = "GetBucketCORS", READ;
    GET_BUCKET_LOCATION = "GetBucketLocation", LIST;
    GET_BUCKET_LOGGING = "GetBucketLogging", READ;
    GET_ENCRYPTION = "GetEncryptionConfiguration", READ;
    GET_LIFECYCLE = "GetLifecycleConfiguration", READ;
    GET_LOCK_CONFIGURATION = "GetBucketObjectLockConfiguration", READ;
    GET_NOTIFICATION = "GetBucketNotification", READ;
    GET_OWNERSHIP = "GetBucketOwnershipControls", READ;
    GET_BUCKET_POLICY = "GetBucketPolicy", READ;
    GET_BUCKET_POLICY_STATUS = "GetBucketPolicyStatus", READ;
    GET_PUBLIC_ACCESS_BLOCK = "GetBucketPublicAccessBlock", READ;
    GET_BUCKET_TAGGING = "GetBucketTagging", READ;
    GET_VERSIONING = "GetBucketVersioning", READ;
    GET_OBJECT = "GetObject", READ;
    GET_OBJECT_ACL = "GetObjectAcl", READ;
    GET_ATTRIBUTES = "GetObjectAttributes", READ;
    GET_LEGAL_HOLD = "GetObjectLegalHold", READ;
    GET_RETENTION = "GetObjectRetention", READ;
    GET_OBJECT_TAGGING = "GetObjectTagging", READ;
    GET_VERSION = "GetObjectVersion", READ;
    GET_VERSION_ACL = "GetObjectVersionAcl", READ;
    GET_VERSION_ATTRIBUTES = "GetObjectVersionAttributes", READ;
    GET_VERSION_TAGGING = "GetObjectVersionTagging", READ;
    LIST_ALL_BUCKETS = "ListAllMyBuckets", LIST;
    LIST_BUCKET = "ListBucket", LIST;
    LIST_UPLOADS = "ListBucketMultipartUploads", LIST;
    LIST_VERSIONS = "ListBucketVersions", LIST;
    LIST_PARTS = "ListMultipartUploadParts", LIST;
    PUT_BUCKET_ACL = "PutBucketAcl", None;
    PUT_BUCKET_CORS = "PutBucketCORS", None;
    PUT_BUCKET_LOGGING = "PutBucketLogging", None;
    PUT_ENCRYPTION = "PutEncryptionConfiguration", None;
    PUT_LIFECYCLE = "PutLifecycleConfiguration", None;
    PUT_LOCK_CONFIGURATION = "PutBucketObjectLockConfiguration", None;
    PUT_NOTIFICATION = "PutBucketNotification", None;
    PUT_OWNERSHIP = "PutBucketOwnershipControls", None;
    PUT_BUCKET_POLICY = "PutBucketPolicy", None;
    PUT_PUBLIC_ACCESS_BLOCK = "PutBucketPublicAccessBlock", None;
    PUT_BUCKET_TAGGING = "PutBucketTagging", WRITE;
    PUT_VERSIONING = "PutBucketVersioning", None;
    PUT_OBJECT = "PutObject", WRITE;
    PUT_OBJECT_ACL = "PutObjectAcl", None;
    PUT_LEGAL_HOLD = "PutObjectLegalHold", None;
    PUT_RETENTION = "PutObjectRetention", WRITE;
    PUT_OBJECT_TAGGING = "PutObjectTagging", WRITE;
    PUT_VERSION_ACL = "PutObjectVersionAcl", None;
    PUT_VERSION_TAGGING = "PutObjectVersionTagging", WRITE;
}

/// What is served under no name of S3's; only what allows everything allows it.
const UNNAMED: Action = Action {
    name: "s3:",
    kind: None,
};

/// Whether a word (`s3:Get*`) fits at least one action, so that it is no slip of the pen.
pub fn is_known(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ALL.iter()
        .any(|action| identity::wildcard::fits(&word, &action.name.to_ascii_lowercase()))
}

/// The deletion of a key among many, or of one version of it.
pub(crate) fn deletion(bucket: &str, key: &str, version: Option<&str>) -> Need {
    Need {
        action: if version.is_some() {
            DELETE_VERSION
        } else {
            DELETE_OBJECT
        },
        bucket: Some(bucket.to_owned()),
        key: Some(key.to_owned()),
    }
}

/// That a key be read.
pub(crate) fn reading(bucket: &str, key: &str) -> Need {
    Need {
        action: GET_OBJECT,
        bucket: Some(bucket.to_owned()),
        key: Some(key.to_owned()),
    }
}

/// That a GOVERNANCE retention of a key be bypassed.
pub(crate) fn bypass(bucket: &str, key: &str) -> Need {
    Need {
        action: BYPASS_GOVERNANCE,
        bucket: Some(bucket.to_owned()),
        key: Some(key.to_owned()),
    }
}

/// Whether a request asks for that.
pub(crate) fn wants_bypass(headers: &HeaderMap) -> bool {
    let wanted = headers.get("x-amz-bypass-governance-retention");
    wanted.is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// Whether an action is about the policy itself, which an account's owner can always see, replace and delete.
pub(crate) fn is_about_policy(action: Action) -> bool {
    [PUT_BUCKET_POLICY, GET_BUCKET_POLICY, DELETE_BUCKET_POLICY].contains(&action)
}

/// Whether an action deletes the bucket itself.
pub(crate) fn deletes_bucket(action: Action) -> bool {
    action == DELETE_BUCKET
}

/// All that a request does, the first being what it is called for.
pub(crate) fn needs(method: &Method, call: &S3Call, headers: &HeaderMap) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |action| {
        needs.push(Need {
            action,
            bucket: call.bucket.clone(),
            key: call.key.clone(),
        });
    };
    let sub = call.subresource();
    match (&call.bucket, &call.key) {
        (None, _) => need(if *method == Method::GET {
            LIST_ALL_BUCKETS
        } else {
            UNNAMED
        }),
        (Some(_), None) => {
            need(of_bucket(method, sub));
            if *method == Method::PUT && sub.is_none() && opens(headers) {
                need(PUT_BUCKET_ACL);
            }
            if *method == Method::PUT && sub.is_none() && headers.contains_key("x-amz-bucket-object-lock-enabled") {
                need(PUT_LOCK_CONFIGURATION);
            }
        }
        (Some(_), Some(_)) => {
            let is_version = call.parameter("versionId").is_some_and(|version| !version.is_empty());
            need(of_object(method, sub, is_version));
            let writes = *method == Method::PUT && sub.is_none() || *method == Method::POST && sub == Some("uploads");
            if writes && headers.contains_key(&TAGGING) {
                need(PUT_OBJECT_TAGGING);
            }
            if writes && opens(headers) {
                need(PUT_OBJECT_ACL);
            }
            for (_, action) in LOCK_HEADERS
                .iter()
                .filter(|(name, _)| writes && headers.contains_key(name))
            {
                need(*action);
            }
            let frees = (*method == Method::DELETE && sub.is_none() && is_version)
                || (*method == Method::PUT && sub == Some("retention"));
            if frees && wants_bypass(headers) {
                need(BYPASS_GOVERNANCE);
            }
            if *method == Method::GET && sub == Some("attributes") {
                need(if is_version { GET_VERSION } else { GET_OBJECT });
            }
            if *method == Method::PUT && matches!(sub, None | Some("partNumber")) {
                needs.extend(source(headers));
            }
        }
    }
    needs
}

/// Headers of writes that lock what is written, and what they take.
static LOCK_HEADERS: [(HeaderName, Action); 2] = [
    (HeaderName::from_static("x-amz-object-lock-mode"), PUT_RETENTION),
    (HeaderName::from_static("x-amz-object-lock-legal-hold"), PUT_LEGAL_HOLD),
];
static TAGGING: HeaderName = HeaderName::from_static("x-amz-tagging");
static ACL: HeaderName = HeaderName::from_static("x-amz-acl");
static COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

/// Whether headers ask for an ACL other than the owner's own.
fn opens(headers: &HeaderMap) -> bool {
    let canned = headers.get(&ACL).map(|value| value.as_bytes());
    canned.is_some_and(|canned| canned != b"private")
        || headers.keys().any(|name| name.as_str().starts_with("x-amz-grant-"))
}

/// What a copy reads. A source that cannot be read is refused by the operation.
fn source(headers: &HeaderMap) -> Option<Need> {
    let sent = std::str::from_utf8(headers.get(&COPY_SOURCE)?.as_bytes()).ok()?;
    let (path, version) = sent
        .split_once('?')
        .map_or((sent, None), |(path, query)| (path, Some(query)));
    let path = unquote(path).ok()?;
    let (bucket, key) = path.strip_prefix('/').unwrap_or(&path).split_once('/')?;
    // Parts of an upload are read as what is in their bucket.
    let bucket = bucket.strip_suffix("+segments").unwrap_or(bucket);
    Some(Need {
        action: if version.is_some() { GET_VERSION } else { GET_OBJECT },
        bucket: Some(bucket.to_owned()),
        key: Some(key.to_owned()),
    })
}

fn of_bucket(method: &Method, sub: Option<&str>) -> Action {
    let (get, put, delete) = match sub {
        None => (LIST_BUCKET, CREATE_BUCKET, DELETE_BUCKET),
        Some("acl") => (GET_BUCKET_ACL, PUT_BUCKET_ACL, UNNAMED),
        Some("cors") => (GET_BUCKET_CORS, PUT_BUCKET_CORS, PUT_BUCKET_CORS),
        Some("delete") if *method == Method::POST => return DELETE_OBJECT,
        Some("encryption") => (GET_ENCRYPTION, PUT_ENCRYPTION, PUT_ENCRYPTION),
        Some("lifecycle") => (GET_LIFECYCLE, PUT_LIFECYCLE, PUT_LIFECYCLE),
        Some("location") => (GET_BUCKET_LOCATION, UNNAMED, UNNAMED),
        Some("logging") => (GET_BUCKET_LOGGING, PUT_BUCKET_LOGGING, UNNAMED),
        Some("notification") => (GET_NOTIFICATION, PUT_NOTIFICATION, UNNAMED),
        Some("object-lock") => (GET_LOCK_CONFIGURATION, PUT_LOCK_CONFIGURATION, UNNAMED),
        Some("ownershipControls") => (GET_OWNERSHIP, PUT_OWNERSHIP, PUT_OWNERSHIP),
        Some("policy") => (GET_BUCKET_POLICY, PUT_BUCKET_POLICY, DELETE_BUCKET_POLICY),
        Some("policyStatus") => (GET_BUCKET_POLICY_STATUS, UNNAMED, UNNAMED),
        Some("publicAccessBlock") => (
            GET_PUBLIC_ACCESS_BLOCK,
            PUT_PUBLIC_ACCESS_BLOCK,
            PUT_PUBLIC_ACCESS_BLOCK,
        ),
        Some("tagging") => (GET_BUCKET_TAGGING, PUT_BUCKET_TAGGING, PUT_BUCKET_TAGGING),
        Some("uploads") => (LIST_UPLOADS, UNNAMED, UNNAMED),
        Some("versioning") => (GET_VERSIONING, PUT_VERSIONING, UNNAMED),
        Some("versions") => (LIST_VERSIONS, UNNAMED, UNNAMED),
        Some(_) => return UNNAMED,
    };
    match *method {
        Method::GET => get,
        Method::HEAD if sub.is_none() => get,
        Method::PUT => put,
        Method::DELETE => delete,
        _ => UNNAMED,
    }
}

fn of_object(method: &Method, sub: Option<&str>, is_version: bool) -> Action {
    let either = |plain, version| if is_version { version } else { plain };
    match (method, sub) {
        (&Method::GET | &Method::HEAD, None | Some("partNumber")) => either(GET_OBJECT, GET_VERSION),
        (&Method::GET, Some("acl")) => either(GET_OBJECT_ACL, GET_VERSION_ACL),
        (&Method::GET, Some("attributes")) => either(GET_ATTRIBUTES, GET_VERSION_ATTRIBUTES),
        (&Method::GET, Some("tagging")) => either(GET_OBJECT_TAGGING, GET_VERSION_TAGGING),
        (&Method::GET, Some("retention")) => GET_RETENTION,
        (&Method::GET, Some("legal-hold")) => GET_LEGAL_HOLD,
        (&Method::GET, Some("uploadId")) => LIST_PARTS,
        (&Method::PUT, None | Some("partNumber")) => PUT_OBJECT,
        (&Method::POST, Some("uploads" | "uploadId")) => PUT_OBJECT,
        (&Method::PUT, Some("retention")) => PUT_RETENTION,
        (&Method::PUT, Some("legal-hold")) => PUT_LEGAL_HOLD,
        (&Method::PUT, Some("acl")) => either(PUT_OBJECT_ACL, PUT_VERSION_ACL),
        (&Method::PUT, Some("tagging")) => either(PUT_OBJECT_TAGGING, PUT_VERSION_TAGGING),
        (&Method::DELETE, Some("uploadId")) => ABORT_UPLOAD,
        (&Method::DELETE, Some("tagging")) => DELETE_OBJECT_TAGGING,
        (&Method::DELETE, None) => either(DELETE_OBJECT, DELETE_VERSION),
        _ => UNNAMED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use request_pipeline::Request;

    fn names(method: Method, target: &str, headers: &[(&'static str, &str)]) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request::new(method.clone(), path.into(), path.into());
        request.query = query.into();
        let call = S3Call::read(&request, &[]).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let shown = needs(&method, &call, &map).into_iter().map(|need| {
            let place = [need.bucket, need.key].into_iter().flatten().collect::<Vec<_>>();
            format!("{} {}", need.action.name, place.join("/"))
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn requests_have_the_actions_of_aws_table() {
        let bypass = [("x-amz-bypass-governance-retention", "true")];
        let copy = [("x-amz-copy-source", "/other/a%20b?versionId=1")];
        for (method, target, headers, expected) in [
            (Method::GET, "/", &[][..], "s3:ListAllMyBuckets "),
            (Method::POST, "/", &[], "s3: "),
            (Method::GET, "/b?list-type=2", &[], "s3:ListBucket b"),
            (Method::HEAD, "/b", &[], "s3:ListBucket b"),
            (Method::POST, "/b?delete", &[], "s3:DeleteObject b"),
            (Method::DELETE, "/b?policy", &[], "s3:DeleteBucketPolicy b"),
            (Method::DELETE, "/b?lifecycle", &[], "s3:PutLifecycleConfiguration b"),
            (Method::GET, "/b?cors", &[], "s3:GetBucketCORS b"),
            (Method::DELETE, "/b?cors", &[], "s3:PutBucketCORS b"),
            (Method::DELETE, "/b?encryption", &[], "s3:PutEncryptionConfiguration b"),
            (Method::PUT, "/b?logging", &[], "s3:PutBucketLogging b"),
            (Method::PUT, "/b?notification", &[], "s3:PutBucketNotification b"),
            (Method::DELETE, "/b?logging", &[], "s3: b"),
            (Method::DELETE, "/b?replication", &[], "s3: b"),
            (Method::HEAD, "/b/k?versionId=1", &[], "s3:GetObjectVersion b/k"),
            (
                Method::PUT,
                "/b/k?uploadId=1&partNumber=1",
                &copy,
                "s3:PutObject b/k, s3:GetObjectVersion other/a b",
            ),
            (
                Method::PUT,
                "/b/k",
                &[("x-amz-tagging", "a=b"), ("x-amz-acl", "public-read")],
                "s3:PutObject b/k, s3:PutObjectTagging b/k, s3:PutObjectAcl b/k",
            ),
            (
                Method::PUT,
                "/b",
                &[("x-amz-acl", "public-read")],
                "s3:CreateBucket b, s3:PutBucketAcl b",
            ),
            (Method::PUT, "/b", &[("x-amz-acl", "private")], "s3:CreateBucket b"),
            (
                Method::PUT,
                "/b",
                &[("x-amz-bucket-object-lock-enabled", "true")],
                "s3:CreateBucket b, s3:PutBucketObjectLockConfiguration b",
            ),
            (
                Method::PUT,
                "/b/k",
                &[
                    ("x-amz-object-lock-mode", "GOVERNANCE"),
                    ("x-amz-object-lock-legal-hold", "ON"),
                ],
                "s3:PutObject b/k, s3:PutObjectRetention b/k, s3:PutObjectLegalHold b/k",
            ),
            (Method::PUT, "/b/k?legal-hold", &bypass, "s3:PutObjectLegalHold b/k"),
            (
                Method::PUT,
                "/b/k?retention",
                &bypass,
                "s3:PutObjectRetention b/k, s3:BypassGovernanceRetention b/k",
            ),
            (
                Method::DELETE,
                "/b/k?versionId=1",
                &bypass,
                "s3:DeleteObjectVersion b/k, s3:BypassGovernanceRetention b/k",
            ),
            (Method::DELETE, "/b/k", &bypass, "s3:DeleteObject b/k"),
            (
                Method::GET,
                "/b/k?attributes",
                &[],
                "s3:GetObjectAttributes b/k, s3:GetObject b/k",
            ),
            (Method::DELETE, "/b/k?uploadId=1", &[], "s3:AbortMultipartUpload b/k"),
            (Method::POST, "/b/k?restore", &[], "s3: b/k"),
        ] {
            assert_eq!(names(method, target, headers), expected, "{target}");
        }
    }

    #[test]
    fn words_of_limits_fit_something() {
        for (word, expected) in [
            ("s3:*", true),
            ("s3:get*", true),
            ("s3:GetObjekt", false),
            ("s3:", false),
            ("*", true),
        ] {
            assert_eq!(is_known(word), expected, "{word}");
        }
    }
}
