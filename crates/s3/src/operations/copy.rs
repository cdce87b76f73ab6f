//! CopyObject: a copy inside the cluster, by Swift's own.

use super::access_checks::OBJECTS_LIST;
use super::conditional::LEASE;
use super::customer_key::{self, SentKey};
use super::encryption::{self, AskedEncryption};
use super::headers::DELETE_AT;
use super::{Done, Operation, document, headers, tag_set, versions};
use crate::call::is_bucket_name;
use crate::checksum_of_parts::StoredChecksum;
use crate::error::{
    CONDITIONAL_REQUEST_CONFLICT, INVALID_ARGUMENT, INVALID_REQUEST, NO_SUCH_BUCKET, PRECONDITION_FAILED, S3Error,
};
use crate::xml::XmlWriter;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use peer::message::header_names::X_OBJECT_TAGS;
use request_pipeline::{ClientRequest, Response, WriteOrigin, set_object_lock};
use vocabulary::calendar;
use vocabulary::names::{quote, unquote};

/// Conditions on the source, and what they are called when the source is read.
const CONDITIONS: [(&str, &str); 4] = [
    ("x-amz-copy-source-if-match", "if-match"),
    ("x-amz-copy-source-if-none-match", "if-none-match"),
    ("x-amz-copy-source-if-modified-since", "if-modified-since"),
    ("x-amz-copy-source-if-unmodified-since", "if-unmodified-since"),
];

/// What is to be copied.
pub(super) struct CopySource {
    bucket: String,
    key: String,
    version: Option<String>,
}

impl CopySource {
    pub(super) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The source itself, opened with this key.
    pub(super) fn read(&self, operation: &Operation<'_>, key: Option<&SentKey>) -> ClientRequest {
        let entity = operation.account().with_container(&self.bucket).with_object(&self.key);
        let mut get = operation.further(Method::GET, entity);
        get.set_header("x-newest", "true");
        if let Some(key) = key {
            key.open(&mut get);
        }
        operation.aim_at_version(&mut get, self.version.as_deref());
        get
    }

    /// Makes a PUT of the destination a copy of it, opened with this key; the version stands in the query, as
    /// Swift's `copy` wants it.
    pub(super) fn ask(&self, operation: &Operation<'_>, key: Option<&SentKey>, put: &mut ClientRequest) {
        put.set_header("x-copy-from", &quote(&format!("/{}/{}", self.bucket, self.key)));
        operation.aim_at_version(put, self.version.as_deref());
        put.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        headers::forget_parts(&mut put.headers);
        customer_key::without_proof(&mut put.headers);
        if let Some(key) = key {
            key.open_source(put);
        }
    }
}

/// CopyObject.
pub(super) async fn copy(operation: Operation<'_>) -> Done {
    let source = source(&operation)?;
    let replaces = directive(&operation, "x-amz-metadata-directive")?;
    let replaces_tags = directive(&operation, "x-amz-tagging-directive")?;
    let encrypts = operation.check_encryption().await?;
    let source_key = operation.source_key()?;
    let asks = matches!(encrypts, AskedEncryption::Request | AskedEncryption::Customer(_));
    let is_same = !asks && source_key.is_none() && !replaces;
    if is_same && source.version.is_none() && source.bucket == operation.bucket() && source.key == operation.key() {
        return Err(INVALID_REQUEST.saying(
            "This copy request is illegal because it is trying to copy an object to itself without changing the \
             object's metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    let found = look_at_source(&operation, &source, source_key.as_ref()).await?;
    let mut put = operation.further(Method::PUT, operation.container().with_object(operation.key()));
    source.ask(&operation, source_key.as_ref(), &mut put);
    if let Some(key) = encrypts.key() {
        key.open(&mut put);
        operation.prove(Some(key), &mut put.headers);
    }
    put.extensions.insert(WriteOrigin::Copy);
    if replaces {
        put.headers.extend(headers::stored(&operation.request.headers)?);
        put.set_header("x-fresh-metadata", "true");
        if !put.headers.contains_key(CONTENT_TYPE) {
            put.set_header("content-type", "binary/octet-stream");
        }
    }
    let tags = tags_of_copy(&operation, replaces_tags, &found)?;
    put.headers.insert(X_OBJECT_TAGS, tags);
    put.headers.extend(operation.list_of_new(OBJECTS_LIST)?);
    if let Some(lock) = operation.asked_lock().await? {
        set_object_lock(&mut put.headers, &lock);
    }
    let gate = operation.condition().await?;
    if let Some(gate) = &gate {
        gate.mark(&mut put.headers);
        gate.pass(LEASE).await?;
    }
    let mut sent = put.headers.clone();
    let response = operation.send(put).await;
    customer_key::check_answer(&response)?;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    if gate.is_some() && response.status() == 202 {
        return Err(CONDITIONAL_REQUEST_CONFLICT.into());
    }
    let mut answer = copied(
        &operation,
        response.headers(),
        "CopyObjectResult",
        (None, encrypts.key()),
    );
    let (size, delete_at) = (headers::size(&found), found.get(&DELETE_AT).filter(|_| !replaces));
    if let Some(at) = delete_at {
        sent.entry(&DELETE_AT).or_insert(at.clone());
    }
    operation
        .show_expiry_of_new(answer.headers_mut(), sent, response.headers(), size)
        .await;
    versions::show(answer.headers_mut(), response.headers());
    if let Some(version) = response.headers().get("x-copied-from-version-id") {
        answer
            .headers_mut()
            .insert("x-amz-copy-source-version-id", version.clone());
    }
    Ok(answer)
}

/// The tags that the request asks for, or those of the source that was found.
fn tags_of_copy(operation: &Operation<'_>, replaces: bool, found: &HeaderMap) -> Result<HeaderValue, S3Error> {
    let tags = match replaces {
        true => tag_set::of_header(&operation.request.headers)?,
        false => found.get(X_OBJECT_TAGS).cloned(),
    };
    Ok(tags.unwrap_or(HeaderValue::from_static("")))
}

/// The document about a copy that was made, from the headers of the answer to its PUT, with its checksum and its key.
pub(super) fn copied(
    operation: &Operation<'_>,
    swift: &HeaderMap,
    root: &'static str,
    (checksum, key): (Option<&StoredChecksum>, Option<&SentKey>),
) -> Response {
    let written = swift.get("last-modified").and_then(|value| value.to_str().ok());
    let written = written.and_then(calendar::parse_http);
    let written = written.unwrap_or_else(|| operation.service.world.clock.now().seconds_ceil());
    let etag = headers::etag_of_copy(swift);
    let mut xml = XmlWriter::document(root);
    xml.text("LastModified", &format!("{}.000Z", calendar::iso(written, 'T')));
    xml.text(
        "ETag",
        etag.as_ref().and_then(|etag| etag.to_str().ok()).unwrap_or_default(),
    );
    if let Some(checksum) = checksum {
        xml.text(checksum.algorithm.element(), &checksum.value);
    }
    let mut answer = document(xml);
    encryption::show(answer.headers_mut(), swift);
    customer_key::show(answer.headers_mut(), key);
    answer
}

/// `x-amz-copy-source`: `/bucket/key`, percent-encoded, perhaps with a version.
pub(super) fn source(operation: &Operation<'_>) -> Result<CopySource, S3Error> {
    let sent = operation.request.header("x-amz-copy-source").unwrap_or_default();
    let refuse = || {
        INVALID_ARGUMENT
            .saying("Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
            .with("ArgumentName", "x-amz-copy-source")
            .with("ArgumentValue", sent)
    };
    let (path, version) = match sent.split_once('?') {
        Some((path, query)) => {
            let version = query
                .strip_prefix("versionId=")
                .filter(|version| !version.contains('&'));
            let version = version.ok_or_else(|| {
                INVALID_ARGUMENT
                    .saying("Unsupported copy source parameter.")
                    .with("ArgumentName", "x-amz-copy-source")
                    .with("ArgumentValue", sent)
            })?;
            (path, Some(unquote(version).map_err(|_| refuse())?))
        }
        None => (sent, None),
    };
    let decoded = unquote(path).map_err(|_| refuse())?;
    let path = decoded.strip_prefix('/').unwrap_or(&decoded);
    let (bucket, key) = path.split_once('/').ok_or_else(refuse)?;
    if bucket.is_empty() || key.is_empty() {
        return Err(refuse());
    }
    Ok(CopySource {
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        version,
    })
}

/// Whether the header says REPLACE rather than COPY.
fn directive(operation: &Operation<'_>, name: &'static str) -> Result<bool, S3Error> {
    match operation.request.header(name) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("COPY") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("REPLACE") => Ok(true),
        Some(text) => Err(INVALID_ARGUMENT
            .saying("Unknown metadata directive.")
            .with("ArgumentName", name)
            .with("ArgumentValue", text)),
    }
}

/// The source's headers, if it is there and as the client wants it, and this is its key.
pub(super) async fn look_at_source(
    operation: &Operation<'_>,
    source: &CopySource,
    opened_by: Option<&SentKey>,
) -> Result<HeaderMap, S3Error> {
    let CopySource { bucket, key, version } = source;
    let settings = &operation.service.settings;
    if settings.s3_acl && !is_bucket_name(bucket, settings.dns_compliant_bucket_names) {
        // A container of parts or versions, which has no list.
        return Err(NO_SUCH_BUCKET.about("BucketName", bucket));
    }
    let entity = || operation.account().with_container(bucket).with_object(key);
    let mut head = operation.further(Method::HEAD, entity());
    if settings.s3_acl && operation.allowed.is_some() {
        // Its list, or a policy, is asked next.
        head = head.preauthorised();
    }
    operation.aim_at_version(&mut head, version.as_deref());
    let mut conditions = HeaderMap::new();
    for (sent, meant) in CONDITIONS {
        if let Some(value) = operation.request.headers.get(sent) {
            conditions.insert(HeaderName::from_static(meant), value.clone());
        }
    }
    headers::put_conditions(&conditions, &mut head.headers);
    let response = operation.send(head).await;
    operation.may_read(&response, entity, version.as_deref()).await?;
    if response.status().is_success() && operation.allowed.as_ref().is_some_and(|allowed| allowed.by_policy) {
        operation.open_source(bucket, key);
    }
    match response.status().as_u16() {
        200..=299 => {
            customer_key::check(response.headers(), opened_by)?;
            Ok(response.headers().clone())
        }
        304 | 412 => Err(PRECONDITION_FAILED.into()),
        404 => {
            let container = operation
                .next
                .info()
                .container(&operation.account().account, bucket)
                .await;
            Err(match container.exists() {
                true => crate::error::NO_SUCH_KEY.about("Key", key),
                false => NO_SUCH_BUCKET.about("BucketName", bucket),
            })
        }
        _ => Err(operation.refusal(&response).await),
    }
}
