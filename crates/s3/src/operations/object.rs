//! Objects: read, written, deleted.

use super::bucket::empty;
use super::{Done, Operation, headers, versions};
use crate::checksum::{Algorithm, md5_of_header};
use crate::error::{
    BAD_DIGEST, ENTITY_TOO_LARGE, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_PART_NUMBER, INVALID_RANGE,
    INVALID_REQUEST, S3Error,
};
use crate::payload::check_body;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, Method, StatusCode};
use peer::Body;
use request_pipeline::{ClientRequest, Response};
use vocabulary::EntityPath;
use vocabulary::range::{ByteRange, RangeSet};

/// The content type of an object whose client names none.
const DEFAULT_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("binary/octet-stream");

/// Metadata of ours with the checksum that a client sent with an object.
const STORED_CHECKSUM: &str = "x-object-sysmeta-s3api-checksum";

/// GetObject and HeadObject.
pub(super) async fn read(operation: Operation<'_>) -> Done {
    let method = operation.request.method.clone();
    let call = operation.call.clone();
    let mut ask = operation.further(method.clone(), operation.container().with_object(operation.key()));
    ask.headers.extend(headers::conditions(&operation.request.headers));
    let range = operation.request.headers.get(RANGE).cloned();
    if call.parameter("partNumber").is_some() && range.is_some() {
        return Err(INVALID_REQUEST.saying("Cannot specify both Range header and partNumber query parameter"));
    }
    let part = operation.number("partNumber", 1, operation.service.settings.max_upload_part_num)?;
    if method == Method::GET
        && let Some(range) = &range
    {
        ask.headers.insert(RANGE, range.clone());
    }
    if let Some(number) = part {
        ask.query = format!("part-number={number}");
    }
    let version = call.parameter("versionId");
    operation.aim_at_version(&mut ask, version);
    let wants_checksum = operation.request.header("x-amz-checksum-mode") == Some("ENABLED");
    let response = operation.send(ask).await;
    if let Some(number) = part
        && (response.status() == 416 || (number > 1 && response.status() == 200))
    {
        let count = response
            .headers()
            .get("x-parts-count")
            .and_then(|count| count.to_str().ok());
        return Err(INVALID_PART_NUMBER
            .about("ActualPartCount", count.unwrap_or("1"))
            .with("PartNumberRequested", number.to_string()));
    }
    if response.status() == 304 {
        return Ok(not_modified(response));
    }
    if !response.status().is_success() {
        return match version {
            Some(version) => Err(operation.version_refusal(&response, version).await),
            None => Err(operation.refusal(&response).await),
        };
    }
    let (mut head, body) = response.into_parts();
    if head.status == 200 {
        narrow(&mut head, part, range.as_ref().filter(|_| method == Method::HEAD))?;
    }
    let mut shown = headers::shown(&head.headers);
    versions::show(&mut shown, &head.headers);
    if wants_checksum
        && head.status == 200
        && let Some((name, value)) = stored_checksum(&head.headers)
    {
        shown.insert(name, value);
        shown.insert("x-amz-checksum-type", HeaderValue::from_static("FULL_OBJECT"));
    }
    if let Some(count) = head.headers.get("x-parts-count") {
        shown.insert("x-amz-mp-parts-count", count.clone());
    }
    headers::override_with(&mut shown, |name| call.parameter(name).map(str::to_owned));
    head.headers = shown;
    Ok(Response::from_parts(head, body))
}

/// 304 with what it says of the object.
fn not_modified(response: Response) -> Response {
    let mut shown = headers::shown(response.headers());
    for name in [CONTENT_LENGTH, CONTENT_TYPE] {
        shown.remove(name);
    }
    let mut answer = empty(304);
    answer.headers_mut().extend(shown);
    answer
}

/// Says of a whole object what was asked of it: the only part of what was not made of parts, or the range that a HEAD
/// names, which Swift's does not look at.
fn narrow(head: &mut http::response::Parts, part: Option<u32>, range: Option<&HeaderValue>) -> Result<(), S3Error> {
    let length = head.headers.get(CONTENT_LENGTH);
    let Some(length) = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok()) else {
        return Ok(());
    };
    let range = match (part, range.and_then(|range| range.to_str().ok())) {
        (Some(_), _) if length > 0 => ByteRange { start: 0, end: length },
        (None, Some(text)) => match RangeSet::parse(text).map(|ranges| ranges.resolve(length)).as_deref() {
            Some([]) => return Err(INVALID_RANGE.into()),
            Some([only]) => *only,
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    head.status = StatusCode::PARTIAL_CONTENT;
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(range.len()));
    if let Ok(value) = HeaderValue::from_str(&range.content_range(length)) {
        head.headers.insert(CONTENT_RANGE, value);
    }
    Ok(())
}

/// PutObject.
pub(super) async fn put(mut operation: Operation<'_>) -> Done {
    let mut stored = headers::stored(&operation.request.headers)?;
    stored.extend(headers::conditions_of_write(&operation.request.headers)?);
    if !stored.contains_key(CONTENT_TYPE) {
        stored.insert(CONTENT_TYPE, DEFAULT_CONTENT_TYPE);
    }
    let entity = operation.container().with_object(operation.key());
    upload(&mut operation, entity, stored).await
}

/// Stores the body of the request as this object (of the bucket or a part), with these headers.
pub(super) async fn upload(operation: &mut Operation<'_>, entity: EntityPath, mut stored: HeaderMap) -> Done {
    let digest = match operation.request.header("content-md5") {
        Some(md5) => Some(vocabulary::hex::encode(md5_of_header(md5)?)),
        None => None,
    };
    if let Some(digest) = &digest {
        stored.insert(ETAG, HeaderValue::from_str(digest).map_err(|_| INTERNAL_ERROR)?);
    }
    let checksum = sent_checksum(&operation.request.headers);
    if let Some((_, name, value)) = &checksum
        && let Ok(kept) = HeaderValue::from_str(&format!("{name}={value}"))
    {
        stored.insert(STORED_CHECKSUM, kept);
    }
    let signed = operation.signed_body();
    let verdict = check_body(&mut operation.request, signed.as_ref())?;
    // `aws-chunked` was taken off.
    if stored.remove(CONTENT_ENCODING).is_some()
        && let Some(encoding) = operation.request.headers.get(CONTENT_ENCODING)
    {
        stored.insert(CONTENT_ENCODING, encoding.clone());
    }
    let length = operation.request.body.length();
    if length.is_some_and(|length| length > operation.service.limits.max_file_size) {
        return Err(ENTITY_TOO_LARGE
            .about("MaxSizeAllowed", operation.service.limits.max_file_size.to_string())
            .with("ProposedSize", length.unwrap_or_default().to_string()));
    }
    if let Some(length) = length {
        stored.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let body = std::mem::replace(&mut operation.request.body, Body::empty());
    let mut put = operation.further(Method::PUT, entity);
    put.headers.extend(stored);
    put.body = body;
    let response = operation.send(put).await;
    if let Some(refusal) = verdict.refusal() {
        return Err(refusal);
    }
    if response.status() == 422
        && let Some(digest) = digest
    {
        return Err(BAD_DIGEST.about("ExpectedDigest", digest));
    }
    if response.status() == 400 {
        return Err(INVALID_ARGUMENT.saying(words(response).await));
    }
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let mut answer = empty(200);
    if let Some(etag) = headers::etag(response.headers()) {
        answer.headers_mut().insert(ETAG, etag);
    }
    if let Some(written) = response.headers().get(LAST_MODIFIED) {
        answer.headers_mut().insert(LAST_MODIFIED, written.clone());
    }
    versions::show(answer.headers_mut(), response.headers());
    if let Some((algorithm, _, value)) = checksum
        && let Ok(value) = HeaderValue::from_str(&value)
    {
        let name = HeaderName::from_static(algorithm.header());
        answer.headers_mut().insert(name, value);
        answer
            .headers_mut()
            .insert("x-amz-checksum-type", HeaderValue::from_static("FULL_OBJECT"));
    }
    Ok(answer)
}

/// What Swift says of a request that it finds wrong: a line about one of its headers.
async fn words(response: Response) -> String {
    let text = response.into_body().collect(1 << 10).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.is_empty() || text.starts_with('<') {
        true => INVALID_ARGUMENT.message.to_owned(),
        false => text,
    }
}

/// DeleteObject: what is not there is deleted already.
pub(super) async fn delete(operation: Operation<'_>) -> Done {
    let shown = delete_key(&operation, operation.key(), operation.call.parameter("versionId")).await?;
    let mut answer = empty(204);
    answer.headers_mut().extend(shown);
    Ok(answer)
}

/// Deletes the object of a key, or one version of it; a large object with its segments. Returns what the answer says of
/// versions.
pub(super) async fn delete_key(
    operation: &Operation<'_>,
    key: &str,
    version: Option<&str>,
) -> Result<HeaderMap, S3Error> {
    let entity = operation.container().with_object(key);
    let mut head = operation.further(Method::HEAD, entity.clone());
    operation.aim_at_version(&mut head, version);
    let head = operation.send(head).await;
    let mut delete = operation.further(Method::DELETE, entity);
    let is_large = head.headers().get("x-static-large-object");
    let is_large = is_large.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    // Where versions are kept, a deletion keeps the object and so its segments.
    if is_large && (version.is_some() || !head.headers().contains_key("x-object-version-id")) {
        delete.query = "multipart-manifest=delete".into();
        operation.aim_at_version(&mut delete, version);
        delete
            .headers
            .insert("accept", HeaderValue::from_static("application/json"));
        delete_segments(operation, delete).await?;
        return Ok(HeaderMap::new());
    }
    operation.aim_at_version(&mut delete, version);
    let response = operation.send(delete).await;
    match (response.status().as_u16(), version) {
        (200..=299, version) => {
            if version.is_some() {
                operation.uncover(key, response.headers()).await?;
            }
            Ok(versions::show_deletion(response.headers(), head.headers(), version))
        }
        (404, _) => match operation.nothing_there().await {
            error if error.code == crate::error::NO_SUCH_KEY => Ok(HeaderMap::new()),
            error => Err(error),
        },
        (_, Some(version)) => Err(operation.version_refusal(&response, version).await),
        (_, None) => Err(operation.refusal(&response).await),
    }
}

/// A bulk delete answers 200, and in its report what became of it.
async fn delete_segments(operation: &Operation<'_>, delete: ClientRequest) -> Result<(), S3Error> {
    let response = operation.send(delete).await;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let report = response
        .into_body()
        .collect(1 << 20)
        .await
        .map_err(|_| INTERNAL_ERROR)?;
    let report: serde_json::Value = serde_json::from_slice(&report).map_err(|_| INTERNAL_ERROR)?;
    let status = report["Response Status"].as_str().unwrap_or_default();
    match status.starts_with("200") || status.starts_with("404") {
        true => Ok(()),
        false => Err(INTERNAL_ERROR.saying(format!("Segments could not all be deleted: {status}"))),
    }
}

/// The checksum in the head of a request: how it is made, its name and its value.
fn sent_checksum(headers: &HeaderMap) -> Option<(Algorithm, &'static str, String)> {
    Algorithm::ALL.into_iter().find_map(|(name, algorithm)| {
        let value = headers.get(algorithm.header())?.to_str().ok()?;
        Some((algorithm, name, value.to_owned()))
    })
}

/// The checksum that was stored with an object, as a header.
fn stored_checksum(headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = headers.get(STORED_CHECKSUM)?.to_str().ok()?.split_once('=')?;
    let (_, algorithm) = Algorithm::ALL.into_iter().find(|(known, _)| *known == name)?;
    Some((
        HeaderName::from_static(algorithm.header()),
        HeaderValue::from_str(value).ok()?,
    ))
}
