//! Behind authentication: what S3 asks for becomes requests of Swift's verbs, their answers those of S3.
//!
//! Always holds: an operation or a sub-resource that is not served is refused with `NotImplemented` before anything
//! happens; every request of Swift's verbs is authorised as the client's own, or with `s3_acl` by S3's own lists before
//! anything happens; a signature that no authenticator has verified ends the request.
//!
//! | operations | file |
//! |---|---|
//! | ListBuckets | `service.rs` |
//! | CreateBucket, HeadBucket, DeleteBucket, GetBucketLocation | `bucket.rs` |
//! | ListObjects, ListObjectsV2 | `listing.rs` |
//! | GetObject, HeadObject, PutObject, DeleteObject | `object.rs`, headers in `headers.rs` |
//! | writes on a condition | `conditional.rs` |
//! | CopyObject | `copy.rs` |
//! | DeleteObjects | `multi_delete.rs` |
//! | multipart uploads | `multipart/` |
//! | limits of keys, policies, public access blocks applied | `admission.rs` |
//! | policies, public access blocks, ownership controls stored | `bucket_policy.rs`, `public_access.rs` |
//! | CORS rules | `cors.rs` |
//! | lifecycle rules, and when an object expires by them | `lifecycle/` |
//! | versions | `versions.rs` |
//! | tags | `tagging.rs` |
//! | object lock: retention, legal hold | `object_lock/` |
//! | GetObjectAttributes | `attributes.rs` |
//! | encryption: what asks for it, what says that it is there | `encryption.rs`; keys of clients: `customer_key.rs` |
//! | where a bucket's access log is to go | `logging.rs` |
//! | which events a bucket tells of, and to which target | `notification/` |
//! | requests that an operation sends | `requests.rs` |
//! | Swift's canned ACLs, and what buckets and objects never have here | `access.rs` |
//! | whose buckets the client expects them to be | `expected_owner.rs` |
//! | S3's own ACLs (`s3_acl`), what they allow | `access_checks.rs`, `own_acl.rs` |

mod access;
mod access_checks;
mod admission;
mod attributes;
mod bucket;
mod bucket_policy;
mod conditional;
mod copy;
mod cors;
mod customer_key;
mod encryption;
mod expected_owner;
mod headers;
pub(crate) mod lifecycle;
pub(crate) mod listing;
mod logging;
mod multi_delete;
mod multipart;
pub(crate) mod notification;
mod object;
mod object_lock;
mod own_acl;
mod public_access;
mod requests;
mod service;
mod tag_set;
mod tagging;
mod versions;

use self::access_checks::AllowedBy;
use self::admission::Rights;
pub use self::notification::NotificationTargetNames;
use self::requests::{addressed, is_about, may_bring_document};
use crate::bucket_cors::index::CorsIndex;
use crate::call::S3Call;
use crate::cross_origin;
use crate::error::{
    ACCESS_DENIED, BAD_DIGEST, BROKEN_MPU, ENTITY_TOO_LARGE, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_RANGE,
    KEY_TOO_LONG, METHOD_NOT_ALLOWED, MISSING_CONTENT_LENGTH, NO_SUCH_BUCKET, NO_SUCH_KEY, NOT_IMPLEMENTED,
    NOT_MODIFIED, OPERATION_ABORTED, PRECONDITION_FAILED, REQUEST_HEADERS_TOO_LARGE, REQUEST_TIMEOUT, S3Error,
    SERVICE_UNAVAILABLE, SLOW_DOWN,
};
use crate::front::{FormPosted, InS3sForm};
use crate::payload::{DocumentRoom, SignedBody};
use crate::xml::XmlWriter;
use http::header::{HeaderName, HeaderValue};
use http::{Extensions, Method};
use identity::{KeyHolder, SignedRequest, VerifiedKey};
use request_pipeline::cors::{CorsSettings, origin};
use request_pipeline::reply::BrokenSegments;
use request_pipeline::{ClientRequest, ContainerInfo, Feature, MemoryRoom, Next, Response, reply};
use settings::S3ApiSettings;
use std::sync::Arc;
use vocabulary::{EntityPath, Limits};
use world::World;

/// A second factor.
static MFA: HeaderName = HeaderName::from_static("x-amz-mfa");
/// Of a copy.
static COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

/// Swift's `s3api`, the half behind authentication.
pub struct S3Operations {
    settings: Arc<S3ApiSettings>,
    limits: Limits,
    /// What pages see where a bucket has no rules of its own.
    cors: CorsSettings,
    /// Where preflights look for buckets with rules.
    cors_index: CorsIndex,
    /// What is stored from here is encrypted.
    encrypts: bool,
    /// Lifecycle rules of buckets.
    rules: lifecycle::KnownRules,
    /// For what clients send in documents.
    documents: MemoryRoom,
    /// Where notifications may go; absent where none are served.
    notification_targets: Option<Arc<dyn NotificationTargetNames>>,
    world: World,
}

/// One operation under way: what was asked, and where to send what it takes.
struct Operation<'a> {
    service: &'a S3Operations,
    request: ClientRequest,
    call: Arc<S3Call>,
    next: Next,
    /// The access key that was verified; nothing in requests without a signature.
    verified: Option<VerifiedKey>,
    /// What was signed of the body.
    signed: Option<Arc<SignedBody>>,
    /// The bucket as it was when the operation was admitted.
    known_bucket: Option<Arc<ContainerInfo>>,
    rights: Rights,
    /// By which lists of S3's own the operation is allowed; nothing where the account's own authorisation decides.
    allowed: Option<AllowedBy>,
}

type Done = Result<Response, S3Error>;

impl S3Operations {
    /// As configured; `encrypts` says that features behind this one encrypt all that is stored, `hidden_prefix` is what
    /// accounts begin with that the cluster itself makes.
    pub fn new(
        settings: Arc<S3ApiSettings>,
        limits: Limits,
        cors: CorsSettings,
        encrypts: bool,
        hidden_prefix: &str,
        world: World,
    ) -> Self {
        let cors_index = CorsIndex::new(hidden_prefix);
        Self {
            settings,
            limits,
            cors,
            cors_index,
            encrypts,
            rules: lifecycle::KnownRules::default(),
            documents: MemoryRoom::default(),
            notification_targets: None,
            world,
        }
    }

    /// Has documents share this room with other bodies that are read as a whole.
    pub fn reading_in(self, documents: MemoryRoom) -> Self {
        Self { documents, ..self }
    }

    /// Has buckets notify these targets.
    pub fn notifying(self, targets: Arc<dyn NotificationTargetNames>) -> Self {
        Self {
            notification_targets: Some(targets),
            ..self
        }
    }

    /// Without a target everything about notifications is refused as what is not served, for every user.
    fn refuses_notifications(&self) -> bool {
        self.notification_targets
            .as_ref()
            .is_none_or(|targets| !targets.is_any())
    }
}

#[async_trait::async_trait]
impl Feature for S3Operations {
    fn name(&self) -> &'static str {
        "s3api-operations"
    }

    fn wants(&self, request: &ClientRequest) -> bool {
        request.extensions.get::<Arc<S3Call>>().is_some()
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        let Some(call) = request.extensions.remove::<Arc<S3Call>>() else {
            return next.run(request).await;
        };
        let verified = request.extensions.remove::<VerifiedKey>();
        let mut signed = request.extensions.remove::<SignedBody>();
        if let (Some(signed), Some(verified)) = (&mut signed, &verified) {
            signed.signing_key = verified.signing_key;
        }
        let trans_id = request.trans_id.clone();
        let is_unverified = request.extensions.remove::<Arc<SignedRequest>>().is_some();
        if is_unverified || request.extensions.get::<KeyHolder>().is_some() {
            // No authenticator has looked at the signature, which may be anything, or at the key's user.
            let mut response = S3Error::from(ACCESS_DENIED).answer(&trans_id);
            response.extensions_mut().insert(InS3sForm);
            return response;
        }
        let page = match (origin(&request.headers), &request.entity, &call.bucket) {
            (Some(origin), Some(entity), Some(bucket)) => {
                let container = next.info().container(&entity.account, bucket).await;
                let method = match request.extensions.get::<FormPosted>() {
                    Some(_) => Method::POST,
                    None => request.method.clone(),
                };
                Some((origin.clone(), method, container))
            }
            _ => None,
        };
        if let Some(entity) = request.entity.clone() {
            match is_about(&entity, &call) {
                true => request.notes.set_entity(entity),
                false => request.notes.set_entity(addressed(&entity.account, &call)),
            }
        }
        if may_bring_document(&request.method, &call) {
            let room = DocumentRoom::new(&self.documents, request.from.ip(), verified.as_ref());
            request.extensions.insert(room);
        } else if request.extensions.is_empty() {
            // Each request that is made of this one copies them.
            request.extensions = Extensions::new();
        }
        let mut operation = Operation {
            service: self,
            request,
            call,
            next,
            verified,
            signed: signed.map(Arc::new),
            known_bucket: None,
            rights: Rights::default(),
            allowed: None,
        };
        let done = match operation.admit().await {
            Ok(()) => Box::pin(operation.run()).await,
            Err(refusal) => Err(refusal),
        };
        let mut response = match done {
            Ok(response) => response,
            Err(error) => error.answer(&trans_id),
        };
        if let Some((origin, method, container)) = page {
            cross_origin::show(&mut response, (&origin, &method), &container, &self.cors);
        }
        response.extensions_mut().insert(InS3sForm);
        response
    }
}

impl Operation<'_> {
    async fn run(mut self) -> Done {
        let call = self.call.clone();
        let level = (call.bucket.is_some(), call.key.is_some());
        let subresource = call.subresource();
        let method = self.request.method.clone();
        self.check(level).await?;
        if level.0 && subresource == Some("acl") && self.service.settings.s3_acl {
            return own_acl::run(self).await;
        }
        match (level, &method, subresource) {
            ((false, _), &Method::GET, None) => service::list_buckets(self).await,
            ((true, false), &Method::GET, None) => listing::list(self).await,
            ((true, false), &Method::GET, Some("location")) => bucket::location(self).await,
            ((true, false), &Method::GET, Some("versioning")) => versions::get(self).await,
            ((true, false), &Method::PUT, Some("versioning")) => versions::put(self).await,
            ((true, false), &Method::GET, Some("versions")) => versions::list(self).await,
            ((true, false), &Method::GET, Some("acl")) => access::bucket_acl(self).await,
            ((true, false), &Method::PUT, Some("acl")) => access::put_bucket_acl(self).await,
            ((true, true), &Method::GET, Some("acl")) => access::object_acl(self).await,
            ((true, true), &Method::GET, Some("attributes")) => attributes::get(self).await,
            ((true, _), &Method::GET, Some("tagging")) => tagging::get(self).await,
            ((true, _), &Method::PUT, Some("tagging")) => tagging::put(self).await,
            ((true, _), &Method::DELETE, Some("tagging")) => tagging::delete(self).await,
            ((true, false), _, Some("policy" | "policyStatus" | "publicAccessBlock" | "ownershipControls")) => {
                self.run_rights(&method).await
            }
            ((true, false), _, Some("lifecycle")) => lifecycle::run(self).await,
            ((true, false), _, Some("cors")) => cors::run(self).await,
            ((true, false), _, Some("logging")) => logging::run(self).await,
            ((true, false), _, Some("notification")) => notification::run(self).await,
            ((true, false), &Method::GET, Some("encryption")) => encryption::get(self).await,
            ((true, false), &Method::PUT, Some("encryption")) => encryption::put(self).await,
            ((true, false), &Method::DELETE, Some("encryption")) => encryption::delete(self).await,
            ((true, _), _, Some("object-lock" | "retention" | "legal-hold")) => object_lock::run(self).await,
            ((true, false), &Method::HEAD, None) => bucket::head(self).await,
            ((true, false), &Method::PUT, None) => bucket::create(self).await,
            ((true, false), &Method::DELETE, None) => bucket::delete(self).await,
            ((true, false), &Method::POST, Some("delete")) => multi_delete::delete(self).await,
            ((true, false), &Method::GET, Some("uploads")) => multipart::list::uploads(self).await,
            ((true, true), &Method::POST, Some("uploads")) => multipart::create(self).await,
            ((true, true), &Method::PUT, Some("partNumber")) if call.parameter("uploadId").is_some() => {
                match self.request.headers.contains_key(&COPY_SOURCE) {
                    true => multipart::part::copy(self).await,
                    false => multipart::part::put(self).await,
                }
            }
            ((true, true), &Method::POST, Some("uploadId")) => multipart::complete::complete(self).await,
            ((true, true), &Method::GET, Some("uploadId")) => multipart::list::parts(self).await,
            ((true, true), &Method::DELETE, Some("uploadId")) => multipart::abort::abort(self).await,
            ((true, true), &Method::GET | &Method::HEAD, None | Some("partNumber")) => object::read(self).await,
            ((true, true), &Method::PUT, None) if self.request.headers.contains_key(&COPY_SOURCE) => {
                copy::copy(self).await
            }
            ((true, true), &Method::PUT, None) => object::put(self).await,
            ((true, true), &Method::DELETE, None) => object::delete(self).await,
            (_, _, Some(subresource)) => Err(not_implemented(subresource)),
            _ => {
                let resource = match level {
                    (false, _) => "SERVICE",
                    (true, false) => "BUCKET",
                    (true, true) => "OBJECT",
                };
                self.request.method = method.clone();
                Err(METHOD_NOT_ALLOWED
                    .about("Method", method.as_str())
                    .with("ResourceType", resource))
            }
        }
    }

    /// Policies, public access blocks and ownership controls of buckets.
    async fn run_rights(self, method: &Method) -> Done {
        let subresource = self.call.subresource().unwrap_or_default();
        match (method, subresource) {
            (&Method::GET, "policy") => bucket_policy::get(self).await,
            (&Method::PUT, "policy") => bucket_policy::put(self).await,
            (&Method::DELETE, "policy") => bucket_policy::delete(self).await,
            (&Method::GET, "policyStatus") => bucket_policy::status(self).await,
            (&Method::GET, "publicAccessBlock") => public_access::get_block(self).await,
            (&Method::PUT, "publicAccessBlock") => public_access::put_block(self).await,
            (&Method::DELETE, "publicAccessBlock") => public_access::delete_block(self).await,
            (&Method::GET, "ownershipControls") => public_access::get_ownership(self).await,
            (&Method::PUT, "ownershipControls") => public_access::put_ownership(self).await,
            (&Method::DELETE, "ownershipControls") => public_access::delete_ownership(self).await,
            _ => Err(not_implemented(subresource)),
        }
    }

    /// What is refused of any operation.
    async fn check(&mut self, level: (bool, bool)) -> Result<(), S3Error> {
        if level.1 && self.key().len() > self.service.limits.max_object_name_length {
            return Err(KEY_TOO_LONG.into());
        }
        if self.request.headers.contains_key(&MFA) {
            // No second factor is kept here that it could be held against.
            return Err(NOT_IMPLEMENTED.saying("MFA Delete is not supported."));
        }
        if self.call.subresource() == Some("notification") && self.service.refuses_notifications() {
            return Err(not_implemented("notification"));
        }
        self.check_owners().await?;
        match self.service.settings.s3_acl {
            true => self.check_access().await,
            false => Ok(()),
        }
    }

    /// The user who has signed the request; `anonymous` without a signature.
    fn user(&self) -> String {
        let key = self.verified.as_ref();
        key.map_or_else(|| "anonymous".to_owned(), |key| key.user.clone())
    }

    fn signed_body(&self) -> Option<Arc<SignedBody>> {
        self.signed.clone()
    }

    /// The account whose buckets are meant.
    fn account(&self) -> EntityPath {
        let account = self.request.entity.as_ref().map(|entity| entity.account.clone());
        EntityPath::account(account.unwrap_or_default())
    }

    fn bucket(&self) -> &str {
        self.call.bucket.as_deref().unwrap_or_default()
    }

    fn key(&self) -> &str {
        self.call.key.as_deref().unwrap_or_default()
    }

    /// The bucket's container.
    fn container(&self) -> EntityPath {
        self.account().with_container(self.bucket())
    }

    /// A number among the parameters, between these bounds.
    fn number(&self, name: &'static str, least: u32, most: u32) -> Result<Option<u32>, S3Error> {
        let Some(text) = self.call.parameter(name) else {
            return Ok(None);
        };
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        let refuse = || {
            let message = match name {
                "partNumber" => format!("Part number must be an integer between {least} and {most}, inclusive"),
                _ => format!("Argument {name} must be an integer between {least} and {most}"),
            };
            INVALID_ARGUMENT
                .saying(message)
                .with("ArgumentName", name)
                .with("ArgumentValue", text)
        };
        number.map(Some).ok_or_else(refuse)
    }

    /// A 404 of an object's request: is there no object, or no bucket?
    async fn nothing_there(&self) -> S3Error {
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        match container.exists() {
            true => NO_SUCH_KEY.about("Key", self.key()),
            false => NO_SUCH_BUCKET.about("BucketName", self.bucket()),
        }
    }

    /// What Swift's refusal of an object's request is in S3.
    async fn refusal(&self, response: &Response) -> S3Error {
        match response.status().as_u16() {
            _ if response.extensions().get::<BrokenSegments>().is_some() => BROKEN_MPU.into(),
            404 => self.nothing_there().await,
            status => refusal_of_status(status, self.service.settings.ratelimit_as_client_error),
        }
    }

    /// What Swift's refusal of a bucket's request is in S3.
    fn bucket_refusal(&self, response: &Response) -> S3Error {
        match response.status().as_u16() {
            404 => NO_SUCH_BUCKET.about("BucketName", self.bucket()),
            status => refusal_of_status(status, self.service.settings.ratelimit_as_client_error),
        }
    }
}

fn not_implemented(subresource: &str) -> S3Error {
    NOT_IMPLEMENTED
        .saying("The requested resource is not implemented")
        .with("ResourceType", subresource)
}

fn refusal_of_status(status: u16, rate_limits_are_client_errors: bool) -> S3Error {
    match status {
        304 => NOT_MODIFIED.into(),
        400 => INVALID_ARGUMENT.into(),
        401 | 403 => ACCESS_DENIED.into(),
        405 => METHOD_NOT_ALLOWED.into(),
        408 | 499 => REQUEST_TIMEOUT.into(),
        409 => OPERATION_ABORTED.into(),
        411 => MISSING_CONTENT_LENGTH.into(),
        412 => PRECONDITION_FAILED.into(),
        413 => ENTITY_TOO_LARGE.into(),
        416 => INVALID_RANGE.into(),
        422 => BAD_DIGEST.into(),
        429 | 498 => {
            let mut error = S3Error::from(SLOW_DOWN);
            if rate_limits_are_client_errors {
                error.code.status = 429;
            }
            error
        }
        431 => REQUEST_HEADERS_TOO_LARGE.into(),
        // A sharded bucket's listing.
        501 => NOT_IMPLEMENTED.saying("The requested resource is not implemented"),
        502..=504 => SERVICE_UNAVAILABLE.into(),
        _ => INTERNAL_ERROR.into(),
    }
}

/// 200 with a document.
fn document(xml: XmlWriter) -> Response {
    reply::with_body(200, HeaderValue::from_static("application/xml"), xml.finish())
}

/// `2009-10-12T17:50:30.000Z` of a listing's `2009-10-12T17:50:29.054580`: the second that `Last-Modified` says, too.
fn listed_time(text: &str) -> String {
    let seconds = vocabulary::Timestamp::from_iso(text).map(vocabulary::Timestamp::seconds_ceil);
    format!("{}.000Z", vocabulary::calendar::iso(seconds.unwrap_or_default(), 'T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_listings_are_those_of_heads() {
        assert_eq!(listed_time("2009-10-12T17:50:29.054580"), "2009-10-12T17:50:30.000Z");
        assert_eq!(listed_time("2009-10-12T17:50:29.000000"), "2009-10-12T17:50:29.000Z");
    }
}
