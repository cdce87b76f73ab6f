//! Completions that come again: the object is there already, and the answer is what it was the first time.
//!
//! The gateway that made the object may have died behind it, before it could end the upload: that is done here. Or it
//! died amid its writes, when one server had the object: that is stored once more, with the time that it has.
//! Always holds: a completion is answered with success no sooner than most of the object's servers have what it names;
//! an object is not made twice of one upload, as parts would go with either.

use super::super::conditional::WriteGate;
use super::super::headers::{self, size as size_of};
use super::super::versions::VERSION_ID;
use super::super::{Operation, document, encryption};
use super::{OpenUpload, UPLOAD_OF_OBJECT};
use crate::checksum_of_parts::StoredChecksum;
use crate::error::{S3Error, SERVICE_UNAVAILABLE};
use crate::xml::XmlWriter;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use peer::message::header_names::{X_DATA_TIMESTAMP, X_TIMESTAMP, X_UPLOAD_REOPENED};
use request_pipeline::{Response, StoredAgain};
use vocabulary::Timestamp;

/// Seconds by which clocks of gateways are apart at most.
const CLOCKS_APART: u64 = 60;

/// The entity tag that an object has in S3.
pub(super) const S3_ETAG: HeaderName = HeaderName::from_static(headers::S3_ETAG);

/// The answer to a completion that came again; nothing where the object was made of other parts.
pub(super) async fn repeated(
    operation: &Operation<'_>,
    etag: &str,
    object: &HeaderMap,
    gate: Option<&WriteGate>,
) -> Result<Option<Response>, S3Error> {
    if !is_of_parts(object, etag) {
        return Ok(None);
    }
    operation.store_again(object, gate).await?;
    operation.end_cut_off(object).await;
    Ok(Some(made_before(operation, etag, object).await))
}

/// Whether the object was made of the parts with this tag.
pub(super) fn is_of_parts(object: &HeaderMap, etag: &str) -> bool {
    object.get(S3_ETAG).is_some_and(|made| *made == etag)
}

/// The answer about an object that was made by a completion before this.
pub(super) async fn made_before(operation: &Operation<'_>, etag: &str, object: &HeaderMap) -> Response {
    let mut answer = result(operation, etag, StoredChecksum::read(object).as_ref());
    operation
        .show_expiry(answer.headers_mut(), object, size_of(object))
        .await;
    encryption::show(answer.headers_mut(), object);
    answer
}

/// What a completion is answered with.
pub(super) fn result(operation: &Operation<'_>, etag: &str, checksum: Option<&StoredChecksum>) -> Response {
    let host = operation.request.header("host").unwrap_or_default();
    let path = vocabulary::names::quote(&format!("/{}/{}", operation.bucket(), operation.key()));
    let mut xml = XmlWriter::document("CompleteMultipartUploadResult");
    xml.text("Location", &format!("{}://{host}{path}", operation.request.scheme));
    xml.text("Bucket", operation.bucket());
    xml.text("Key", operation.key());
    xml.text("ETag", &format!("\"{etag}\""));
    if let Some(checksum) = checksum {
        xml.text(checksum.algorithm.element(), &checksum.value);
        xml.text("ChecksumType", checksum.kind().name());
    }
    document(xml)
}

impl Operation<'_> {
    /// The headers of the object, if it was made by this upload.
    pub(super) async fn complete_already(&self, upload: &str) -> Option<HeaderMap> {
        let head = self.newest(self.container().with_object(self.key()));
        let response = self.send(head).await;
        let made_by = response.headers().get(UPLOAD_OF_OBJECT);
        let is_it = response.status().is_success() && made_by.is_some_and(|made_by| made_by == upload);
        is_it.then(|| response.headers().clone())
    }

    /// The headers of what an upload has made that is open still: its gateway died before it could say that the upload
    /// has ended. Made again it would be another version of the same parts, which go with either.
    pub(super) async fn made_by_open(&self, open: &OpenUpload, is_there: bool) -> Result<Option<HeaderMap>, S3Error> {
        let container = self.next.info().container(&self.account().account, self.bucket()).await;
        let keeps_versions = container.sysmeta.keys().any(|name| name.starts_with("versions-"));
        if !is_there && !keeps_versions {
            return Ok(None);
        }
        let began = open
            .headers
            .get(X_TIMESTAMP)
            // That of a marker which upkeep has left anew is no begin.
            .filter(|_| !open.headers.contains_key(X_UPLOAD_REOPENED))
            .and_then(|time| time.to_str().ok()?.parse::<Timestamp>().ok());
        let since = began.map(|began| Timestamp::from_seconds(began.seconds().saturating_sub(CLOCKS_APART)));
        self.object_made_since(&open.id, since).await
    }

    /// Stores what an earlier completion has made once more, with the same time: its gateway may have died when one
    /// server had it, and before any client was answered. What is newer stays.
    pub(super) async fn store_again(&self, object: &HeaderMap, gate: Option<&WriteGate>) -> Result<(), S3Error> {
        let text = |name: &HeaderName| object.get(name).and_then(|value| value.to_str().ok());
        let mut put = match text(&VERSION_ID).filter(|version| *version != "null") {
            Some(version) => {
                let mut again = self.further(Method::PUT, self.container().with_object(self.key()));
                again.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                self.aim_at_version(&mut again, Some(version));
                again.extensions.insert(match self.has_newer_version(version).await? {
                    true => StoredAgain::Hidden,
                    false => StoredAgain::Shown,
                });
                again
            }
            None => {
                let mut copy = self.onto_itself(object);
                // That of its data: new metadata that a server has missed are not in what the copy may have read.
                let written = text(&X_DATA_TIMESTAMP).or(text(&X_TIMESTAMP));
                copy.set_header("x-timestamp", written.unwrap_or_default());
                copy.extensions.insert(StoredAgain::Shown);
                copy
            }
        };
        if let Some(gate) = gate {
            gate.mark(&mut put.headers);
        }
        let response = self.send(put).await;
        match response.status().as_u16() {
            // What has been deleted meanwhile is not to come back.
            200..=299 | 404 | 409 => Ok(()),
            500.. => Err(SERVICE_UNAVAILABLE.into()),
            _ => Err(self.refusal(&response).await),
        }
    }

    /// Whether the key has a version that is newer, or a delete marker, whose tombstone may have been reclaimed.
    async fn has_newer_version(&self, version: &str) -> Result<bool, S3Error> {
        let time = |version: &str| version.parse::<Timestamp>().ok();
        let versions = self.versions_of_key().await?;
        Ok(versions.iter().any(|other| time(other) > time(version)))
    }

    /// Does the rest where the gateway died that has completed the upload of this object. What cannot be done is left.
    async fn end_cut_off(&self, object: &HeaderMap) {
        if let Ok(upload) = self.upload_to_end().await {
            drop(self.end_of_object(&upload.id, object).await);
        }
    }
}
