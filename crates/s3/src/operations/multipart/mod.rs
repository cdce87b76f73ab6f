//! Multipart uploads, kept as OpenStack's s3api keeps them.
//!
//! ```text
//! bucket+segments/KEY/UPLOAD         a marker: the upload is open; the object's metadata to be
//! bucket+segments/KEY/UPLOAD/NUMBER  a part
//! bucket/KEY                         when complete: a static large object of the parts
//! ```
//! Always holds: the marker is there before the first part, and goes last: after the object has come and the parts have
//! gone that it does not name, or after all parts of an upload that was aborted. From the begin of that on it says that
//! the upload has ended, so that none but a repeated end finds it. An object that names its parts names only those that
//! were looked at; of all completions and abortions of a key one is under way at a time (its write lock,
//! `conditional.rs`), and the object comes only while its lock is held.
//! Source: what OpenStack's s3api stored when asked.
//!
//! | operations | file |
//! |---|---|
//! | CreateMultipartUpload | here |
//! | AbortMultipartUpload | `abort.rs` |
//! | UploadPart, UploadPartCopy | `part.rs`, of an upload that ends meanwhile `late_parts.rs` |
//! | CompleteMultipartUpload | `complete.rs`, one that comes again `repeated.rs`, checksums `checksums.rs` |
//! | ListParts, ListMultipartUploads | `list.rs` |

pub(super) mod abort;
pub(super) mod checksums;
pub(super) mod complete;
pub(super) mod late_parts;
pub(super) mod list;
pub(super) mod part;
mod repeated;

use self::list::SegmentRow;
use super::access_checks::UPLOADS_LIST;
use super::object_lock::parts;
use super::{Done, Operation, customer_key, document, encryption, headers};
use crate::checksum_of_parts::StoredChecksum;
use crate::checksum_of_parts::WantedChecksum;
use crate::error::{INTERNAL_ERROR, INVALID_ARGUMENT, NO_SUCH_UPLOAD, S3Error};
use crate::xml::XmlWriter;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method, StatusCode};
use request_pipeline::constraints::{PRIVATE_PARAMETER, has_private_parameter};
use request_pipeline::{ClientRequest, Response};
use vocabulary::{EntityPath, PartNumbers, Timestamp};

/// A part that the client names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    number: u32,
    etag: String,
    checksum: Option<StoredChecksum>,
}

/// Behind a bucket's name: the container of its parts.
const SEGMENTS: &str = "+segments";

/// Whether the client named a content type for the object to be, and which; the marker itself is a directory, so that
/// it passes for nothing else.
const HAS_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-has-content-type");
const OBJECTS_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-content-type");
pub(super) const UPLOAD_OF_OBJECT: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-upload-id");
/// Which checksum the object is to have.
const CHECKSUM_OF_PARTS: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-checksum-of-parts");
const MARKERS_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/directory");

/// CreateMultipartUpload.
pub(super) async fn create(operation: Operation<'_>) -> Done {
    let mut stored = headers::stored(&operation.request.headers)?;
    match stored.insert(CONTENT_TYPE, MARKERS_CONTENT_TYPE) {
        Some(wanted) => {
            if wanted.to_str().is_ok_and(has_private_parameter) {
                return Err(INVALID_ARGUMENT.saying(PRIVATE_PARAMETER));
            }
            stored.insert(HAS_CONTENT_TYPE, HeaderValue::from_static("yes"));
            stored.insert(OBJECTS_CONTENT_TYPE, wanted);
        }
        None => {
            stored.insert(HAS_CONTENT_TYPE, HeaderValue::from_static("no"));
        }
    }
    let checksum = WantedChecksum::asked(&operation.request.headers)?;
    if let Some(kept) = checksum.and_then(WantedChecksum::stored) {
        stored.insert(CHECKSUM_OF_PARTS, kept);
    }
    let encrypts = operation.check_encryption().await?;
    encrypts.note(&mut stored);
    operation.prove(encrypts.key(), &mut stored);
    stored.extend(operation.list_of_new(UPLOADS_LIST)?);
    if let Some(lock) = operation.asked_lock().await? {
        parts::note_lock(&mut stored, &lock);
    }
    let bucket = operation
        .send(operation.further(Method::HEAD, operation.container()))
        .await;
    if !bucket.status().is_success() {
        return Err(operation.bucket_refusal(&bucket));
    }
    let upload = operation.new_upload_id();
    let mut response = operation.put_marker(&upload, &stored, bucket.headers()).await?;
    // Of many first uploads at once one may have looked for the container before another made it, and what it saw is
    // believed for a moment: making it again ends that.
    if response.status() == StatusCode::NOT_FOUND {
        response = operation.put_marker(&upload, &stored, bucket.headers()).await?;
    }
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let mut xml = XmlWriter::document("InitiateMultipartUploadResult");
    xml.text("Bucket", operation.bucket());
    xml.text("Key", operation.key());
    xml.text("UploadId", &upload);
    let mut answer = document(xml);
    if operation.service.encrypts {
        encryption::show_of_upload(answer.headers_mut());
    }
    customer_key::show(answer.headers_mut(), encrypts.key());
    if let Some(WantedChecksum { algorithm, kind }) = checksum {
        let headers = answer.headers_mut();
        headers.insert("x-amz-checksum-algorithm", HeaderValue::from_static(algorithm.shown()));
        headers.insert("x-amz-checksum-type", HeaderValue::from_static(kind.name()));
    }
    Ok(answer)
}

/// Of the marker of an upload that is aborted, or has become an object: parts are being deleted.
const HAS_ENDED: HeaderName = HeaderName::from_static("x-object-transient-sysmeta-s3api-aborted");
/// The numbers of an object's parts ([`PartNumbers`]): what else its upload has is to go. Martlet once wrote them only
/// where the upload had others.
pub(super) const NUMBERS_OF_OBJECT: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-part-numbers");

/// An upload that is open.
struct OpenUpload {
    id: String,
    /// The marker's headers.
    headers: HeaderMap,
}

/// What an object was made of.
pub(super) struct MadeOfParts {
    /// The upload.
    pub(super) upload: String,
    /// Number and size of each part, in order.
    pub(super) parts: Vec<(u32, u64)>,
}

/// An entry of the list of a static large object.
#[derive(serde::Deserialize)]
struct Segment {
    name: String,
    bytes: u64,
}

/// The numbers of the parts of the object with these headers, where it says them.
fn numbers_of(object: &HeaderMap) -> Option<PartNumbers> {
    object.get(NUMBERS_OF_OBJECT)?.to_str().ok()?.parse().ok()
}

impl Operation<'_> {
    /// The parts of the object, which is one of parts.
    pub(super) async fn made_of(&self, version: Option<&str>) -> Result<MadeOfParts, S3Error> {
        let mut ask = self.further(Method::GET, self.container().with_object(self.key()));
        ask.query = "multipart-manifest=get".into();
        self.aim_at_version(&mut ask, version);
        let response = self.send(ask).await;
        if !response.status().is_success() {
            return Err(self.refusal(&response).await);
        }
        let segments: Vec<Segment> = super::listing::rows_of(response).await?;
        let mut made_of = MadeOfParts {
            upload: String::new(),
            parts: Vec::with_capacity(segments.len()),
        };
        for segment in segments {
            let mut names = segment.name.rsplit('/');
            let (number, upload) = (names.next(), names.next());
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                made_of.upload = upload.unwrap_or_default().to_owned();
                made_of.parts.push((number, segment.bytes));
            }
        }
        Ok(made_of)
    }

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

    /// Opens an upload by its marker, in the container of parts, which is made where it is not there.
    async fn put_marker(&self, upload: &str, stored: &HeaderMap, bucket: &HeaderMap) -> Result<Response, S3Error> {
        self.make_segments(bucket).await?;
        let mut put = self.further(Method::PUT, self.marker(self.key(), upload));
        put.headers.extend(stored.clone());
        put.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        Ok(self.send(put).await)
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
        self.upload_by(|marker| self.further(Method::HEAD, marker)).await
    }

    /// The same by what is newest of its marker.
    async fn surely_open_upload(&self) -> Result<OpenUpload, S3Error> {
        self.upload_by(|marker| self.newest(marker)).await
    }

    /// The same, where it may be that its end was cut off.
    async fn upload_to_end(&self) -> Result<OpenUpload, S3Error> {
        self.marked_upload(|marker| self.newest(marker)).await
    }

    async fn upload_by(&self, look: impl FnOnce(EntityPath) -> ClientRequest) -> Result<OpenUpload, S3Error> {
        let upload = self.marked_upload(look).await?;
        match upload.headers.contains_key(HAS_ENDED) {
            true => Err(NO_SUCH_UPLOAD.about("UploadId", upload.id)),
            false => Ok(upload),
        }
    }

    async fn marked_upload(&self, look: impl FnOnce(EntityPath) -> ClientRequest) -> Result<OpenUpload, S3Error> {
        let id = self.call.parameter("uploadId").unwrap_or_default().to_owned();
        let unknown = || NO_SUCH_UPLOAD.about("UploadId", id.clone());
        // Parts lie where the markers of other keys' uploads would: `KEY/UPLOAD/NUMBER`.
        if id.contains('/') || id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unknown());
        }
        let response = self.send(look(self.marker(self.key(), &id))).await;
        match response.status().as_u16() {
            200..=299 if !response.headers().contains_key(HAS_CONTENT_TYPE) => Err(unknown()),
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

    /// Deletes all parts of an upload that is not completed any more.
    async fn delete_parts(&self, upload: &str) -> Result<(), S3Error> {
        self.delete_below(&format!("{}/{upload}/", self.key())).await
    }

    /// Ends an upload that has become an object: the parts go that are not among its numbers, then the marker, which
    /// has to say before that the upload has ended. Without numbers all parts are the object's.
    async fn finish(&self, upload: &str, numbers: Option<&PartNumbers>) -> Result<(), S3Error> {
        let Some(numbers) = numbers else {
            return self.close(upload).await;
        };
        self.delete_parts_but(upload, numbers).await?;
        self.close(upload).await?;
        // Parts that came beside the marker's deletion; those that come later go by themselves (`late_parts.rs`).
        self.delete_parts_but(upload, numbers).await
    }

    /// Deletes the parts of an upload that its object does not name.
    async fn delete_parts_but(&self, upload: &str, numbers: &PartNumbers) -> Result<(), S3Error> {
        let mut rows = Vec::new();
        for (number, row) in self.parts(upload).await? {
            if !numbers.contain(number) {
                rows.push(row);
            }
        }
        let statuses = self.delete_rows(rows).await;
        match statuses.iter().all(|status| matches!(status, 200..=299 | 404)) {
            true => Ok(()),
            false => Err(INTERNAL_ERROR.saying("Some parts of the upload could not be deleted; abort it.")),
        }
    }

    /// Deletes objects of the container of parts; the statuses.
    async fn delete_rows(&self, rows: Vec<SegmentRow>) -> Vec<u16> {
        futures_util::stream::iter(rows)
            .map(|row| async move {
                let part = self.segments().with_object(row.name);
                self.send(self.further(Method::DELETE, part)).await.status().as_u16()
            })
            .buffer_unordered(self.service.settings.multi_delete_concurrency.0)
            .collect()
            .await
    }

    /// Deletes what uploads have left in the container of parts of a bucket that was deleted then, and the container if
    /// it holds nothing else: what is newer belongs to a bucket of that name that was made since.
    pub(super) async fn delete_segments(&self, bucket_deleted: Timestamp) -> Result<(), S3Error> {
        let mut marker = String::new();
        let mut is_all = true;
        loop {
            let rows = self.segment_rows("", &marker).await?;
            let Some(last) = rows.last() else { break };
            marker = last.name.clone();
            let (old, new): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_before(bucket_deleted));
            is_all &= new.is_empty();
            let statuses = self.delete_rows(old).await;
            if statuses.iter().any(|status| !matches!(status, 200..=299 | 404)) {
                return Err(INTERNAL_ERROR.saying("Some parts of uploads to the bucket could not be deleted."));
            }
        }
        if !is_all {
            return Ok(());
        }
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
            let statuses = self.delete_rows(rows).await;
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
