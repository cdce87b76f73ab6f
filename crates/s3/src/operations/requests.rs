//! The requests of Swift's verbs that an operation sends besides the client's own, which is not sent on.
//!
//! Always holds: each is authorised as the client's own, or allowed by what S3's own lists grant; what is noted of it
//! stands in the client's line in the access log, where there is one.

use super::Operation;
use super::headers::S3_ETAG;
use crate::call::S3Call;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, IF_MATCH};
use peer::message::header_names::X_POLICY_INDEX;
use request_pipeline::{ClientRequest, ContainerInfo, KeepsSealed, Response};
use std::sync::Arc;
use vocabulary::names::quote;
use vocabulary::{EntityPath, PolicyIndex};

/// In the access log, of requests that an operation sends besides the client's own.
const SOURCE: &str = "S3";

/// The entity tag that listings show.
pub(super) const LISTED_ETAG: &str = "x-object-sysmeta-container-update-override-etag";

impl Operation<'_> {
    /// A request besides the client's own, authorised like it, or allowed by what S3's own lists grant.
    pub(super) fn further(&self, method: Method, entity: EntityPath) -> ClientRequest {
        // The line of the client's request is that of all that S3 does for it.
        let further = match self.request.notes.is_line_claimed() {
            true => {
                let mut part = self.request.part_of_same(method);
                part.aim_at(entity);
                part
            }
            false => self.request.subrequest(method, entity, SOURCE),
        };
        self.allowed(further)
    }

    /// The same about the key that the client's own is about.
    pub(super) fn further_of_key(&self, method: Method) -> ClientRequest {
        let is_same = self
            .request
            .entity
            .as_deref()
            .is_some_and(|entity| is_about(entity, &self.call));
        match is_same && self.request.notes.is_line_claimed() {
            true => self.allowed(self.request.part_of_same(method)),
            false => self.further(method, self.container().with_object(self.key())),
        }
    }

    /// The PUT that writes the key's object with these headers as it is stored, a manifest as a manifest.
    pub(super) fn onto_itself(&self, found: &HeaderMap) -> ClientRequest {
        let mut put = self.further(Method::PUT, self.container().with_object(self.key()));
        put.query = "multipart-manifest=get".into();
        put.set_header("x-copy-from", &quote(&format!("/{}/{}", self.bucket(), self.key())));
        put.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        put.extensions.insert(KeepsSealed);
        let text = |name: &str| found.get(name).and_then(|value| value.to_str().ok());
        match text(S3_ETAG).filter(|etag| !etag.is_empty()) {
            Some(etag) => put.set_header(LISTED_ETAG, &format!("; s3_etag={etag}")),
            None => {
                if let Some(etag) = found
                    .get("etag")
                    .filter(|_| !found.contains_key("x-static-large-object"))
                {
                    put.headers.insert(IF_MATCH, etag.clone());
                }
            }
        }
        put
    }

    fn allowed(&self, further: ClientRequest) -> ClientRequest {
        match &self.allowed {
            Some(allowed) if !allowed.by_policy => further.preauthorised(),
            _ => further,
        }
    }

    /// The bucket, as it was when the operation was admitted.
    pub(super) async fn bucket_info(&self) -> Arc<ContainerInfo> {
        match &self.known_bucket {
            Some(known) => known.clone(),
            None => self.next.info().container(&self.account().account, self.bucket()).await,
        }
    }

    pub(super) async fn send(&self, request: ClientRequest) -> Response {
        let response = self.next.clone().run(request).await;
        let policy = response
            .headers()
            .get(X_POLICY_INDEX)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(policy) = policy {
            self.request.notes.set_policy(PolicyIndex(policy));
        }
        response
    }
}

/// Whether a request may have a document for its body: not one that reads, nor one whose body is an object or a part.
pub(super) fn may_bring_document(method: &Method, call: &S3Call) -> bool {
    let reads = *method == Method::GET || *method == Method::HEAD;
    let is_data =
        *method == Method::PUT && call.key.is_some() && matches!(call.subresource(), None | Some("partNumber"));
    !reads && !is_data
}

/// Whether this is what a call is about.
pub(super) fn is_about(entity: &EntityPath, call: &S3Call) -> bool {
    entity.container == call.bucket && entity.object == call.key
}

/// What a call is about, in an account.
pub(super) fn addressed(account: &str, call: &S3Call) -> EntityPath {
    let account = EntityPath::account(account);
    match (&call.bucket, &call.key) {
        (None, _) => account,
        (Some(bucket), None) => account.with_container(bucket.as_str()),
        (Some(bucket), Some(key)) => account.with_container(bucket.as_str()).with_object(key.as_str()),
    }
}
