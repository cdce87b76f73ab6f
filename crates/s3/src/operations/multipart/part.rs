//! Parts: UploadPart, UploadPartCopy.

use super::super::copy::{copied, look_at_source, source};
use super::super::object::upload;
use super::super::{Done, Operation};
use crate::checksum::Algorithm;
use crate::error::{INVALID_ARGUMENT, INVALID_RANGE};
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// UploadPart.
pub(in super::super) async fn put(mut operation: Operation<'_>) -> Done {
    let number = number_of(&operation)?;
    let open = operation.open_upload().await?;
    open.check_algorithm(algorithm_sent(&operation))?;
    let mut stored = HeaderMap::new();
    stored.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let part = operation.part(&open.id, number);
    upload(&mut operation, part, stored, None).await
}

/// UploadPartCopy: of a whole object or of a range of it.
pub(in super::super) async fn copy(operation: Operation<'_>) -> Done {
    let number = number_of(&operation)?;
    let open = operation.open_upload().await?;
    let source = source(&operation)?;
    let found = look_at_source(&operation, &source).await?;
    let mut put = operation.further(Method::PUT, operation.part(&open.id, number));
    source.ask(&operation, &mut put);
    put.set_header("x-fresh-metadata", "true");
    put.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Some(range) = operation.request.header("x-amz-copy-source-range") {
        check_range(range, &found)?;
        put.set_header("range", range);
    }
    let response = operation.send(put).await;
    if !response.status().is_success() {
        return Err(operation.refusal(&response).await);
    }
    Ok(copied(&operation, response.headers(), "CopyPartResult"))
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
