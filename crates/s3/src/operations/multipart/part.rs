//! Parts: UploadPart, UploadPartCopy.

use super::super::copy::{copied, look_at_source, source};
use super::super::customer_key::{self, SentKey};
use super::super::object::upload;
use super::super::{Done, Operation};
use super::OpenUpload;
use crate::checksum::{Algorithm, PassingChecksum};
use crate::checksum_of_parts::{STORED_CHECKSUM, StoredChecksum};
use crate::error::{ENTITY_TOO_LARGE, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_RANGE};
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
    let part = operation.part(&open.id, number);
    upload(&mut operation, Some(part), stored, (None, key.as_ref())).await
}

/// UploadPartCopy: of a whole object or of a range of it.
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
    if let Some(wanted) = open.wanted_checksum() {
        let mut get = source.read(&operation, source_key.as_ref());
        get.headers.extend(range.map(|range| (RANGE, range)));
        let put = put_of_copy(&operation, &open, number, key.as_ref());
        return copy_with_checksum(&operation, get, put, (wanted.algorithm, key.as_ref())).await;
    }
    let mut put = put_of_copy(&operation, &open, number, key.as_ref());
    source.ask(&operation, source_key.as_ref(), &mut put);
    customer_key::carry_proof(&open.headers, &mut put.headers);
    put.set_header("x-fresh-metadata", "true");
    put.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    put.headers.extend(range.map(|range| (RANGE, range)));
    let response = operation.send(put).await;
    customer_key::check_answer(&response)?;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    Ok(copied(
        &operation,
        response.headers(),
        "CopyPartResult",
        (None, key.as_ref()),
    ))
}

/// The PUT of a part that becomes a copy, encrypted with the key of the client where there is one.
fn put_of_copy(operation: &Operation<'_>, open: &OpenUpload, number: u32, key: Option<&SentKey>) -> ClientRequest {
    let mut put = operation.further(Method::PUT, operation.part(&open.id, number));
    customer_key::carry_proof(&open.headers, &mut put.headers);
    if let Some(key) = key {
        key.open(&mut put);
    }
    put
}

/// Copies what the request reads, of an upload with checksums: the bytes come through here.
async fn copy_with_checksum(
    operation: &Operation<'_>,
    get: ClientRequest,
    mut put: ClientRequest,
    (algorithm, key): (Algorithm, Option<&SentKey>),
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
    let (body, passing) = PassingChecksum::of(response.into_body(), algorithm);
    put.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    put.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    put.body = body;
    let checksum = move || StoredChecksum {
        algorithm,
        value: passing.value(),
    };
    let behind = checksum.clone();
    put.footers = Some(Box::new(move || {
        let kept = behind().stored();
        let kept = kept.map(|kept| (HeaderName::from_static(STORED_CHECKSUM), kept));
        Ok(kept.into_iter().collect())
    }));
    let response = operation.send(put).await;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    Ok(copied(
        operation,
        response.headers(),
        "CopyPartResult",
        (Some(&checksum()), key),
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
