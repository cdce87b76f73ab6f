//! Parts: UploadPart, UploadPartCopy. `late_parts.rs` has what becomes of one whose upload ends meanwhile.

use super::super::copy::{copied, look_at_source, source};
use super::super::customer_key::{self, SentKey};
use super::super::object::upload;
use super::super::{Done, Operation};
use super::OpenUpload;
use super::late_parts::PartPlace;
use crate::checksum::{Algorithm, PassingChecksum};
use crate::checksum_of_parts::{STORED_CHECKSUM, StoredChecksum, WantedChecksum};
use crate::error::{ENTITY_TOO_LARGE, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_RANGE};
use crate::payload::Verdict;
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RANGE};
use request_pipeline::ClientRequest;

const RANGE_OF_SOURCE: &str = "x-amz-copy-source-range";

/// UploadPart.
pub(in super::super) async fn put(mut operation: Operation<'_>) -> Done {
    let number = number_of(&operation)?;
    let open = operation.open_upload().await?;
    open.check_algorithm(algorithm_sent(&operation))?;
    let key = operation.check_encryption_of(&open.headers).await?;
    let mut stored = HeaderMap::new();
    customer_key::carry_proof(&open.headers, &mut stored);
    stored.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let place = operation.place_of_part(&open.id, number);
    let done = upload(&mut operation, Some(&place), stored, (None, key.as_ref())).await;
    operation.resolve(&place, done).await
}

/// UploadPartCopy: of a whole object or of a range of it. The bytes come through here.
pub(in super::super) async fn copy(operation: Operation<'_>) -> Done {
    let number = number_of(&operation)?;
    let open = operation.open_upload().await?;
    let key = operation.check_encryption_of(&open.headers).await?;
    let source_key = operation.source_key()?;
    let source = source(&operation)?;
    let found = look_at_source(&operation, &source, source_key.as_ref()).await?;
    let range = operation.request.headers.get(RANGE_OF_SOURCE).cloned();
    if let Some(range) = &range {
        check_range(range.to_str().unwrap_or_default(), &found)?;
    }
    let mut get = source.read(&operation, source_key.as_ref());
    get.headers.extend(range.map(|range| (RANGE, range)));
    let place = operation.place_of_part(&open.id, number);
    let done = put_copy(&operation, (&open, &place), get, key.as_ref()).await;
    operation.resolve(&place, done).await
}

/// Stores what the request reads as a part, encrypted with the key of the client where there is one, with the checksum
/// that its upload has, if any.
async fn put_copy(
    operation: &Operation<'_>,
    (open, place): (&OpenUpload, &PartPlace),
    get: ClientRequest,
    key: Option<&SentKey>,
) -> Done {
    let response = operation.send(get).await;
    customer_key::check_answer(&response)?;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let length = response.body().length();
    let length = length.ok_or_else(|| INTERNAL_ERROR.saying("The length of the source is not known."))?;
    let most = operation.service.limits.max_file_size;
    if length > most {
        return Err(ENTITY_TOO_LARGE.about("MaxSizeAllowed", most.to_string()));
    }
    let mut put = operation.further(Method::PUT, place.path.clone());
    customer_key::carry_proof(&open.headers, &mut put.headers);
    if let Some(key) = key {
        key.open(&mut put);
    }
    put.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    put.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let (mut body, mut checksum) = (response.into_body(), None);
    if let Some(WantedChecksum { algorithm, .. }) = open.wanted_checksum() {
        let (passing_body, passing) = PassingChecksum::of(body, algorithm);
        body = passing_body;
        let made = move || StoredChecksum {
            algorithm,
            value: passing.value(),
        };
        checksum = Some(made.clone());
        put.footers = Some(Box::new(move || {
            let kept = made().stored();
            let kept = kept.map(|kept| (HeaderName::from_static(STORED_CHECKSUM), kept));
            Ok(kept.into_iter().collect())
        }));
    }
    let verdict = Verdict::default();
    put.body = operation.held_while_open(place, body, &verdict);
    let response = operation.send(put).await;
    if let Some(refusal) = verdict.refusal() {
        return Err(refusal);
    }
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    let checksum = checksum.map(|made| made());
    Ok(copied(
        operation,
        response.headers(),
        "CopyPartResult",
        (checksum.as_ref(), key),
    ))
}

/// How the checksum is made that the request has in its head or behind its body; nothing where there are several, which
/// are refused with the body.
fn algorithm_sent(operation: &Operation<'_>) -> Option<Algorithm> {
    let names = operation.request.headers.keys().map(HeaderName::as_str);
    let sent: Vec<Algorithm> = names.filter_map(Algorithm::of_header).collect();
    match sent.as_slice() {
        [] => Algorithm::of_header(operation.request.header("x-amz-trailer")?.trim()),
        [only] => Some(*only),
        _ => None,
    }
}

fn number_of(operation: &Operation<'_>) -> Result<u32, crate::error::S3Error> {
    let most = operation.service.settings.max_upload_part_num;
    let number = operation.number("partNumber", 1, most)?;
    number.ok_or_else(|| INVALID_ARGUMENT.about("ArgumentName", "partNumber"))
}

/// `bytes=5-9`, within the source.
fn check_range(range: &str, source: &HeaderMap) -> Result<(), crate::error::S3Error> {
    let ends = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let ends = ends.and_then(|(first, last)| Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?)));
    let Some((_, last)) = ends.filter(|(first, last)| first <= last) else {
        return Err(INVALID_ARGUMENT
            .saying(
                "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
                 zero-based offsets of the first and last bytes to copy",
            )
            .with("ArgumentName", "x-amz-copy-source-range")
            .with("ArgumentValue", range));
    };
    let length = source
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match length.filter(|length| last >= *length) {
        Some(length) => Err(INVALID_RANGE.saying(format!(
            "Range specified is not valid for source object of size: {length}"
        ))),
        None => Ok(()),
    }
}
