//! Objects: read, written, deleted.

use super::access_checks::OBJECTS_LIST;
use super::bucket::empty;
use super::conditional::WriteGate;
use super::customer_key::{self, SentKey};
use super::multipart::late_parts::PartPlace;
use super::object_lock::headers as lock_headers;
use super::{Done, Operation, encryption, headers, versions};
use crate::checksum::{Algorithm, CHECKSUM, md5_of_header};
use crate::checksum_of_parts::{STORED_CHECKSUM, StoredChecksum};
use crate::error::{
    ACCESS_DENIED, BAD_DIGEST, CONDITIONAL_REQUEST_CONFLICT, ENTITY_TOO_LARGE, INTERNAL_ERROR, INVALID_ARGUMENT,
    INVALID_PART_NUMBER, INVALID_RANGE, INVALID_REQUEST, S3Error,
};
use crate::payload::{Verdict, check_body};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, RANGE,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, Method, StatusCode};
use peer::Body;
use request_pipeline::{
    BypassesGovernance, ClientRequest, Response, customer_key_proof, object_lock_in, set_object_lock,
};
use std::sync::Arc;
use vocabulary::range::{ByteRange, RangeSet};

static CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");
static PARTS_COUNT: HeaderName = HeaderName::from_static("x-parts-count");
static TRAILER: HeaderName = HeaderName::from_static("x-amz-trailer");

/// The content type of an object whose client names none.
const DEFAULT_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("binary/octet-stream");

/// GetObject and HeadObject.
pub(super) async fn read(operation: Operation<'_>) -> Done {
    let method = operation.request.method.clone();
    let call = operation.call.clone();
    let mut ask = operation.further_of_key(method.clone());
    let key = operation.customer_key()?;
    if let Some(key) = &key {
        key.open(&mut ask);
    }
    headers::put_conditions(&operation.request.headers, &mut ask.headers);
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
    let mode = operation.request.headers.get(&CHECKSUM_MODE);
    let wants_checksum = mode.is_some_and(|mode| mode == "ENABLED");
    let response = operation.send(ask).await;
    let object = || operation.container().with_object(operation.key());
    operation.may_read(&response, object, version).await?;
    customer_key::check_answer(&response)?;
    let is_about_it = matches!(response.status().as_u16(), 304 | 416);
    let says_proof = is_about_it && customer_key_proof(response.headers()).is_some();
    if response.status().is_success() || says_proof {
        customer_key::check(response.headers(), key.as_ref())?;
    }
    check_part_number(part, &response)?;
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
    let size = headers::size(&head.headers);
    if head.status == 200 {
        narrow(&mut head, part, range.as_ref().filter(|_| method == Method::HEAD))?;
    }
    let mut shown = headers::shown(&head.headers);
    customer_key::show(&mut shown, key.as_ref());
    versions::show(&mut shown, &head.headers);
    lock_headers::show(&mut shown, &head.headers);
    if wants_checksum
        && head.status == 200
        && let Some(checksum) = StoredChecksum::read(&head.headers)
    {
        show_checksum(&mut shown, &checksum);
    }
    if let Some(count) = head.headers.get(&PARTS_COUNT) {
        shown.insert("x-amz-mp-parts-count", count.clone());
    }
    if version.is_none() {
        operation.show_expiry(&mut shown, &head.headers, size).await;
    }
    headers::override_with(&mut shown, &call.parameters);
    head.headers = shown;
    Ok(Response::from_parts(head, body))
}

/// Refuses a part that the object does not have.
fn check_part_number(part: Option<u32>, response: &Response) -> Result<(), S3Error> {
    let Some(number) = part.filter(|number| response.status() == 416 || (*number > 1 && response.status() == 200))
    else {
        return Ok(());
    };
    let count = response.headers().get("x-parts-count");
    let count = count.and_then(|count| count.to_str().ok());
    Err(INVALID_PART_NUMBER
        .about("ActualPartCount", count.unwrap_or("1"))
        .with("PartNumberRequested", number.to_string()))
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
    let encrypts = operation.check_encryption().await?;
    operation.prove(encrypts.key(), &mut stored);
    stored.extend(operation.list_of_new(OBJECTS_LIST)?);
    if let Some(lock) = operation.asked_lock_of_body().await? {
        set_object_lock(&mut stored, &lock);
    }
    let gate = operation.condition().await?;
    if !stored.contains_key(CONTENT_TYPE) {
        stored.insert(CONTENT_TYPE, DEFAULT_CONTENT_TYPE);
    }
    upload(&mut operation, None, stored, (gate, encrypts.key())).await
}

/// Stores the body of the request as this part, or as the object of its key, with these headers, once the gate lets it;
/// encrypted with the key of a client where there is one, whose proof is among the headers.
pub(super) async fn upload(
    operation: &mut Operation<'_>,
    part: Option<&PartPlace>,
    mut stored: HeaderMap,
    (gate, key): (Option<Arc<WriteGate>>, Option<&SentKey>),
) -> Done {
    let digest = promised_md5(operation)?;
    if let Some(digest) = &digest {
        stored.insert(ETAG, HeaderValue::from_str(digest).map_err(|_| INTERNAL_ERROR)?);
    }
    let checksum = sent_checksum(&operation.request.headers);
    if let Some(kept) = checksum.as_ref().and_then(StoredChecksum::stored) {
        stored.insert(STORED_CHECKSUM, kept);
    }
    let comes_behind = operation.request.headers.contains_key(&TRAILER);
    let verdict = check_body(&mut operation.request, operation.signed.as_deref())?;
    // `aws-chunked` was taken off.
    if stored.remove(CONTENT_ENCODING).is_some()
        && let Some(encoding) = operation.request.headers.get(CONTENT_ENCODING)
    {
        stored.insert(CONTENT_ENCODING, encoding.clone());
    }
    frame(operation, &mut stored)?;
    let mut body = std::mem::replace(&mut operation.request.body, Body::empty());
    if let Some(gate) = &gate {
        gate.mark(&mut stored);
        body = gate.guard(body, &verdict).await?;
    }
    let (mut put, body) = put_of(operation, part, body, &verdict);
    put.headers.extend(stored);
    let sent = match part.is_none() && operation.may_expire().await {
        true => Some((put.headers.clone(), body.length())),
        false => None,
    };
    put.body = body;
    if let Some(key) = key {
        key.open(&mut put);
    }
    if comes_behind {
        let verdict = verdict.clone();
        put.footers = Some(Box::new(move || Ok(checksum_behind(&verdict))));
    }
    let response = operation.send(put).await;
    if let Some(refusal) = verdict.refusal() {
        return Err(refusal);
    }
    if !response.status().is_success() {
        return Err(refusal_of_put(operation, response, digest).await);
    }
    if gate.is_some() && response.status() == 202 {
        // Something newer came by a writer without a condition.
        return Err(CONDITIONAL_REQUEST_CONFLICT.into());
    }
    let mut answer = stored_answer(&response);
    customer_key::show(answer.headers_mut(), key);
    if let Some((sent, size)) = sent {
        operation
            .show_expiry_of_new(answer.headers_mut(), sent, response.headers(), size)
            .await;
    }
    let behind = || StoredChecksum::read(&checksum_behind(&verdict));
    if let Some(checksum) = checksum.or_else(behind) {
        show_checksum(answer.headers_mut(), &checksum);
    }
    Ok(answer)
}

/// The PUT of this part, or of the object of the request's key, and the body that it may have.
fn put_of(operation: &Operation<'_>, part: Option<&PartPlace>, body: Body, verdict: &Verdict) -> (ClientRequest, Body) {
    match part {
        Some(part) => {
            let put = operation.further(Method::PUT, part.path.clone());
            (put, operation.held_while_open(part, body, verdict))
        }
        None => (operation.further_of_key(Method::PUT), body),
    }
}

/// What Swift's refusal of an object's PUT is in S3; `digest` is what the client has promised of it.
async fn refusal_of_put(operation: &Operation<'_>, response: Response, digest: Option<String>) -> S3Error {
    match (response.status().as_u16(), digest) {
        (422, Some(digest)) => BAD_DIGEST.about("ExpectedDigest", digest),
        (400, _) => INVALID_ARGUMENT.saying(words(response).await),
        _ => operation.refusal(&response).await,
    }
}

/// The MD5 that the client says the body has, in hexadecimal.
fn promised_md5(operation: &Operation<'_>) -> Result<Option<String>, S3Error> {
    let md5 = operation.request.header("content-md5").map(md5_of_header);
    Ok(md5.transpose()?.map(vocabulary::hex::encode))
}

/// 200 with what the store says of the object that was written.
fn stored_answer(response: &Response) -> Response {
    let mut answer = empty(200);
    if let Some(etag) = headers::etag(response.headers()) {
        answer.headers_mut().insert(ETAG, etag);
    }
    if let Some(written) = response.headers().get(LAST_MODIFIED) {
        answer.headers_mut().insert(LAST_MODIFIED, written.clone());
    }
    versions::show(answer.headers_mut(), response.headers());
    encryption::show(answer.headers_mut(), response.headers());
    answer
}

/// Says in the headers how long the body is; one that is too long is refused.
fn frame(operation: &Operation<'_>, stored: &mut HeaderMap) -> Result<(), S3Error> {
    let (length, most) = (operation.request.body.length(), operation.service.limits.max_file_size);
    match length {
        Some(length) if length > most => {
            return Err(ENTITY_TOO_LARGE
                .about("MaxSizeAllowed", most.to_string())
                .with("ProposedSize", length.to_string()));
        }
        Some(length) => stored.insert(CONTENT_LENGTH, HeaderValue::from(length)),
        None => stored.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
    };
    Ok(())
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
    let (key, version) = (operation.key(), operation.call.parameter("versionId"));
    let gate = operation
        .pass_to_delete(key, version, operation.request.header("if-match"))
        .await?;
    let deleted = delete_key(&operation, key, version).await?;
    drop(gate);
    if deleted.is_vacant {
        operation.uncover(key).await?;
    }
    let mut answer = empty(204);
    answer.headers_mut().extend(deleted.shown);
    Ok(answer)
}

/// What the deletion of a key, or of one version of it, has done.
#[derive(Default)]
pub(super) struct DeletedKey {
    /// What the answer says of versions.
    pub(super) shown: HeaderMap,
    /// Whether the version that clients saw went, so that the one before is to be uncovered.
    pub(super) is_vacant: bool,
}

/// Deletes the object of a key, or one version of it; a large object with its segments.
pub(super) async fn delete_key(
    operation: &Operation<'_>,
    key: &str,
    version: Option<&str>,
) -> Result<DeletedKey, S3Error> {
    let entity = operation.container().with_object(key);
    let mut head = operation.further(Method::HEAD, entity.clone());
    // A link goes itself, not what it leads to.
    head.query = "symlink=get".into();
    operation.aim_at_version(&mut head, version);
    let head = operation.send(head).await;
    let mut delete = operation.further(Method::DELETE, entity);
    if version.is_some() {
        let bypasses = operation.bypasses_governance(key).await;
        let now = operation.service.world.clock.now();
        if object_lock_in(head.headers()).is_held(now, bypasses) {
            return Err(ACCESS_DENIED.saying("Access Denied because object protected by object lock."));
        }
        if bypasses {
            delete.extensions.insert(BypassesGovernance);
        }
    }
    let is_large = head.headers().get("x-static-large-object");
    let is_large = is_large.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    // Where versions are kept, a deletion keeps the object and so its segments.
    let has_no_version = !head.headers().contains_key("x-object-version-id");
    let goes_with_parts = is_large
        && match version {
            Some(version) => !operation.has_twin(key, version, head.headers()).await?,
            None => has_no_version,
        };
    if goes_with_parts {
        delete.query = "multipart-manifest=delete".into();
        operation.aim_at_version(&mut delete, version);
        delete
            .headers
            .insert("accept", HeaderValue::from_static("application/json"));
        let Some(version) = version else {
            delete_segments(operation, delete).await?;
            return Ok(DeletedKey::default());
        };
        // The report of a bulk deletion says nothing of versions.
        let is_vacant = operation.is_current(key, version).await?;
        delete_segments(operation, delete).await?;
        let shown = versions::show_deletion(head.headers(), head.headers(), Some(version));
        return Ok(DeletedKey { shown, is_vacant });
    }
    operation.aim_at_version(&mut delete, version);
    let response = operation.send(delete).await;
    match (response.status().as_u16(), version) {
        (200..=299, version) => Ok(DeletedKey {
            shown: versions::show_deletion(response.headers(), head.headers(), version),
            is_vacant: version.is_some() && versions::leaves_nothing(response.headers()),
        }),
        (404, _) => match operation.nothing_there().await {
            error if error.code == crate::error::NO_SUCH_KEY => Ok(DeletedKey::default()),
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

/// The checksum in the head of a request.
fn sent_checksum(headers: &HeaderMap) -> Option<StoredChecksum> {
    let mut sent = headers.iter().filter(|(name, _)| name.as_str().starts_with(CHECKSUM));
    // Several are refused with the body.
    sent.find_map(|(name, value)| {
        let algorithm = Algorithm::of_header(name.as_str())?;
        let value = value.to_str().ok()?.to_owned();
        Some(StoredChecksum { algorithm, value })
    })
}

/// What is stored of a checksum that came behind the body.
fn checksum_behind(verdict: &Verdict) -> HeaderMap {
    let sent = verdict.checksum_behind();
    let sent = sent.map(|(algorithm, value)| StoredChecksum { algorithm, value });
    let kept = sent.and_then(|checksum| checksum.stored());
    kept.map(|kept| (HeaderName::from_static(STORED_CHECKSUM), kept))
        .into_iter()
        .collect()
}

fn show_checksum(answer: &mut HeaderMap, checksum: &StoredChecksum) {
    if let Ok(value) = HeaderValue::from_str(&checksum.value) {
        answer.insert(HeaderName::from_static(checksum.algorithm.header()), value);
        answer.insert("x-amz-checksum-type", HeaderValue::from_static(checksum.kind().name()));
    }
}
