//! Keeping what is about to be overwritten, and bringing it back.
//!
//! Always holds: what is kept is the object as it is stored: its bytes, metadata and type, its time in its new name;
//! a copy that breaks off is none, and then nothing is overwritten.

use super::{Kept, SOURCE};
use crate::access::authorised;
use crate::encryption;
use http::Method;
use http::header::{CONTENT_LENGTH, ETAG, HeaderName, HeaderValue};
use http::response::Parts;
use peer::message::header_names::BACKEND_PREFIX;
use request_pipeline::{ClientRequest, Response, reply};
use vocabulary::conditional::bare_etag;
use vocabulary::{EntityPath, Timestamp};

/// Headers of an answer that are not the object's.
const NOT_KEPT: [&str; 13] = [
    "x-timestamp",
    "content-length",
    "content-range",
    "content-location",
    "last-modified",
    "accept-ranges",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "date",
    "server",
    "x-trans-id",
    "x-openstack-request-id",
];

impl Kept<'_> {
    /// Answers the PUT of an object.
    pub(super) async fn put(self, request: ClientRequest) -> Response {
        match self.keep_current(&request).await {
            Ok(()) => self.next.run(request).await,
            Err(refusal) => refusal,
        }
    }

    /// Whether the client may write to the versioned container; the rest is done on its behalf.
    pub(super) async fn authorise(&self, request: &ClientRequest) -> Result<(), Response> {
        authorised::check(request, self.next.info(), self.container.write_acl.clone()).await
    }

    /// Copies what is there now to the versions, if there is anything.
    pub(super) async fn keep_current(&self, request: &ClientRequest) -> Result<(), Response> {
        self.authorise(request).await?;
        let Some((head, body)) = self.fetch(request, &self.entity).await? else {
            return Ok(());
        };
        let written = head
            .headers
            .get("x-timestamp")
            .and_then(|time| time.to_str().ok()?.parse().ok());
        let version = self.version_at(written.unwrap_or_default());
        self.store(request, version, &head, body).await
    }

    /// Copies a version over the current object. `false` when it has gone meanwhile.
    pub(super) async fn restore(&self, request: &ClientRequest, version: &EntityPath) -> Result<bool, Response> {
        let Some((head, body)) = self.fetch(request, version).await? else {
            return Ok(false);
        };
        self.store(request, EntityPath::clone(&self.entity), &head, body)
            .await?;
        Ok(true)
    }

    /// An object as it is stored: a link or manifest as what it is.
    async fn fetch(
        &self,
        request: &ClientRequest,
        entity: &EntityPath,
    ) -> Result<Option<(Parts, peer::Body)>, Response> {
        let mut get = request.subrequest(Method::GET, entity.clone(), SOURCE).preauthorised();
        get.set_header("x-newest", "true");
        get.query = "symlink=get".into();
        encryption::read_sealed(&mut get);
        let found = self.next.clone().run(get).await;
        if found.status() == http::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        check(&found)?;
        let declared: Option<u64> = found
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let Some(length) = declared.filter(|length| *length <= self.owner.max_file_size) else {
            return Err(reply::status(413));
        };
        let (mut head, body) = found.into_parts();
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(Some((head, body)))
    }

    async fn store(
        &self,
        request: &ClientRequest,
        entity: EntityPath,
        head: &Parts,
        body: peer::Body,
    ) -> Result<(), Response> {
        let found = &head.headers;
        let mut put = request.subrequest(Method::PUT, entity, SOURCE).preauthorised();
        let wanted =
            |name: &&HeaderName| !NOT_KEPT.contains(&name.as_str()) && !name.as_str().starts_with(BACKEND_PREFIX);
        for name in found.keys().filter(wanted) {
            put.headers.insert(name.clone(), found[name].clone());
        }
        if let Some(etag) = found.get(ETAG).and_then(|etag| etag.to_str().ok()) {
            put.set_header("etag", bare_etag(etag));
        }
        put.headers.insert(CONTENT_LENGTH, found[CONTENT_LENGTH].clone());
        put.own_content_type = true;
        encryption::carry(&head.extensions, &mut put);
        put.body = body;
        check(&self.next.clone().run(put).await)
    }

    /// The prefix of the names of this object's versions.
    pub(super) fn prefix(&self) -> String {
        let object = self.entity.object.as_deref().unwrap_or_default();
        format!("{:03x}{object}/", object.len())
    }

    /// The version of a moment.
    pub(super) fn version_at(&self, moment: Timestamp) -> EntityPath {
        self.versions
            .with_object(format!("{}{}", self.prefix(), moment.internal()))
    }
}

/// `Err` is the answer when a step in between fails: 412 where the place for versions is missing or
/// refuses them, 503 where it did not answer.
pub(super) fn check(response: &Response) -> Result<(), Response> {
    match response.status() {
        status if status.is_success() => Ok(()),
        status if status.is_client_error() => Err(reply::status(412)),
        _ => Err(reply::status(503)),
    }
}
