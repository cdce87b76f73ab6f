//! Multipart uploads, kept as OpenStack's s3api keeps them.
//!
//! ```text
//! bucket+segments/KEY/UPLOAD         a marker: the upload is open; the object's metadata to be
//! bucket+segments/KEY/UPLOAD/NUMBER  a part
//! bucket/KEY                         when complete: a static large object of the parts
//! ```
//! Always holds: the marker is there before the first part, and goes after the object has come or before the parts go;
//! an object that names its parts names only those that were looked at.
//! Source: what OpenStack's s3api stored when asked.
//!
//! | operations | file |
//! |---|---|
//! | CreateMultipartUpload, AbortMultipartUpload | here |
//! | UploadPart, UploadPartCopy | `part.rs` |
//! | CompleteMultipartUpload | `complete.rs` |
//! | ListParts, ListMultipartUploads | `list.rs` |

pub(super) mod complete;
pub(super) mod list;
pub(super) mod part;

use super::bucket::empty;
use super::{Done, Operation, document, headers};
use crate::error::{INTERNAL_ERROR, NO_SUCH_UPLOAD, S3Error};
use crate::xml::XmlWriter;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method};
use vocabulary::EntityPath;

/// Behind a bucket's name: the container of its parts.
const SEGMENTS: &str = "+segments";

/// Whether the client named a content type for the object to be, and which; the marker itself is a directory, so that
/// it passes for nothing else.
const HAS_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-has-content-type");
const OBJECTS_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-content-type");
const UPLOAD_OF_OBJECT: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-upload-id");
const MARKERS_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/directory");

/// CreateMultipartUpload.
pub(super) async fn create(operation: Operation<'_>) -> Done {
    let mut stored = headers::stored(&operation.request.headers)?;
    match stored.insert(CONTENT_TYPE, MARKERS_CONTENT_TYPE) {
        Some(wanted) => {
            stored.insert(HAS_CONTENT_TYPE, HeaderValue::from_static("yes"));
            stored.insert(OBJECTS_CONTENT_TYPE, wanted);
        }
        None => {
            stored.insert(HAS_CONTENT_TYPE, HeaderValue::from_static("no"));
        }
    }
    let bucket = operation
        .send(operation.further(Method::HEAD, operation.container()))
        .await;
    if !bucket.status().is_success() {
        return Err(operation.bucket_refusal(&bucket));
    }
    operation.make_segments(bucket.headers()).await?;
    let upload = operation.new_upload_id();
    let mut put = operation.further(Method::PUT, operation.marker(operation.key(), &upload));
    put.headers.extend(stored);
    put.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    let response = operation.send(put).await;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let mut xml = XmlWriter::document("InitiateMultipartUploadResult");
    xml.text("Bucket", operation.bucket());
    xml.text("Key", operation.key());
    xml.text("UploadId", &upload);
    Ok(document(xml))
}

/// AbortMultipartUpload.
pub(super) async fn abort(operation: Operation<'_>) -> Done {
    let upload = operation.open_upload().await?;
    let marker = operation.marker(operation.key(), &upload.id);
    let response = operation.send(operation.further(Method::DELETE, marker)).await;
    if !matches!(response.status().as_u16(), 200..=299 | 404) {
        return Err(operation.refusal(&response).await);
    }
    operation.delete_parts(&upload.id).await?;
    Ok(empty(204))
}

/// An upload that is open.
struct OpenUpload {
    id: String,
    /// The marker's headers.
    headers: HeaderMap,
}

impl Operation<'_> {
    /// The container of the bucket's parts.
    fn segments(&self) -> EntityPath {
        self.account().with_container(format!("{}{SEGMENTS}", self.bucket()))
    }

    fn marker(&self, key: &str, upload: &str) -> EntityPath {
        self.segments().with_object(format!("{key}/{upload}"))
    }

    fn part(&self, upload: &str, number: u32) -> EntityPath {
        self.segments().with_object(format!("{}/{upload}/{number}", self.key()))
    }

    /// A new id: 128 random bits in the form of OpenStack's.
    fn new_upload_id(&self) -> String {
        let mut bytes = [0; 16];
        self.service.world.random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(vocabulary::hex::encode(bytes))
    }

    /// Makes the container of parts, unless it is there, in the policy of the bucket, whose headers these are.
    async fn make_segments(&self, bucket: &HeaderMap) -> Result<(), S3Error> {
        let segments = self.segments();
        let name = segments.container.clone().unwrap_or_default();
        if self.next.info().container(&segments.account, &name).await.exists() {
            return Ok(());
        }
        let mut put = self.further(Method::PUT, segments);
        if let Some(policy) = bucket.get("x-storage-policy") {
            put.headers.insert("x-storage-policy", policy.clone());
        }
        let response = self.send(put).await;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.bucket_refusal(&response)),
        }
    }

    /// The upload that the request names, which must be open.
    async fn open_upload(&self) -> Result<OpenUpload, S3Error> {
        let id = self.call.parameter("uploadId").unwrap_or_default().to_owned();
        let unknown = || NO_SUCH_UPLOAD.about("UploadId", id.clone());
        if id.is_empty() || id.contains('/') {
            return Err(unknown());
        }
        let head = self.further(Method::HEAD, self.marker(self.key(), &id));
        let response = self.send(head).await;
        match response.status().as_u16() {
            200..=299 => Ok(OpenUpload {
                headers: response.headers().clone(),
                id,
            }),
            404 => match self
                .next
                .info()
                .container(&self.account().account, self.bucket())
                .await
                .exists()
            {
                true => Err(unknown()),
                false => Err(crate::error::NO_SUCH_BUCKET.about("BucketName", self.bucket())),
            },
            _ => Err(self.refusal(&response).await),
        }
    }

    /// Deletes all parts of an upload whose marker is gone.
    async fn delete_parts(&self, upload: &str) -> Result<(), S3Error> {
        self.delete_below(&format!("{}/{upload}/", self.key())).await
    }

    /// Deletes the container of parts of a bucket that is gone.
    pub(super) async fn delete_segments(&self) -> Result<(), S3Error> {
        self.delete_below("").await?;
        let response = self.send(self.further(Method::DELETE, self.segments())).await;
        match response.status().as_u16() {
            // Rows of parts that are gone may be in its listing still.
            200..=299 | 404 | 409 => Ok(()),
            _ => Err(self.bucket_refusal(&response)),
        }
    }

    /// Deletes the objects in the container of parts whose names begin so.
    async fn delete_below(&self, prefix: &str) -> Result<(), S3Error> {
        loop {
            let rows = self.segment_rows(prefix, "").await?;
            if rows.is_empty() {
                return Ok(());
            }
            let concurrency = self.service.settings.multi_delete_concurrency.0;
            let statuses: Vec<u16> = futures_util::stream::iter(rows)
                .map(|row| async move {
                    let part = self.segments().with_object(row.name);
                    self.send(self.further(Method::DELETE, part)).await.status().as_u16()
                })
                .buffer_unordered(concurrency)
                .collect()
                .await;
            if statuses.iter().any(|status| !matches!(status, 200..=299 | 404)) {
                return Err(INTERNAL_ERROR.saying("Some parts of the upload could not be deleted; abort it again."));
            }
            if statuses.iter().all(|status| *status == 404) {
                // Rows of parts that are gone already, which updaters have not taken away yet.
                return Ok(());
            }
        }
    }
}
