//! CompleteMultipartUpload: the parts become one object.
//!
//! Parts that the object does not name go after it has come, and the upload's marker after them; the object says by
//! their numbers which are its own, so that another request, or container-lifecycle, can do the rest where the gateway
//! dies. Parts are listed once more when the marker has gone: one that came after the first look was answered with 200
//! while the upload was open.
//! Always holds: the object is a static large object, so that every part is looked at before it is stored; one that is
//! complete already answers as it did the first time (`repeated.rs`).

use super::super::access_checks::{OBJECTS_LIST, UPLOADS_LIST};
use super::super::conditional::{LONG_LEASE, WriteGate};
use super::super::object_lock::parts::noted_lock;
use super::super::requests::LISTED_ETAG;
use super::super::{Done, Operation, customer_key, encryption, versions};
use super::checksums::Claims;
use super::list::SegmentRow;
use super::repeated::{S3_ETAG, is_of_parts, made_before, repeated, result};
use super::{HAS_CONTENT_TYPE, NUMBERS_OF_OBJECT, Named, OBJECTS_CONTENT_TYPE, OpenUpload, UPLOAD_OF_OBJECT};
use crate::checksum::Algorithm;
use crate::checksum_of_parts::{STORED_CHECKSUM, StoredChecksum};
use crate::error::{
    CONDITIONAL_REQUEST_CONFLICT, ENTITY_TOO_SMALL, INTERNAL_ERROR, INVALID_PART, INVALID_PART_ORDER, MALFORMED_XML,
    NO_SUCH_KEY, NO_SUCH_UPLOAD, NOT_IMPLEMENTED, PRECONDITION_FAILED, S3Error,
};
use crate::payload::collect;
use crate::xml::Element;
use http::Method;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use md5::{Digest, Md5};
use peer::Body;
use peer::message::header_names::{X_OBJECT_TAGS, X_SEGMENTS_LOCKED};
use request_pipeline::{ClientRequest, ObjectStanding, Response, customer_key_proof, set_object_lock};
use std::collections::HashMap;
use vocabulary::object_lock::ObjectLock;
use vocabulary::{EntityPath, PartNumbers};

/// Bytes of the document: ten thousand parts of some 150 bytes, and checksums.
const LARGEST_DOCUMENT: u64 = 8 << 20;
/// Bytes of the numbers of parts that an object keeps, whatever else it has to keep.
const SHORT_NUMBERS: usize = 64;
/// Bytes of longer ones (ten thousand scattered numbers take 1,673) and of all else that the object is sent with: ext4
/// has room for 4 KiB, which the servers' own names need too.
const ROOM_WITH_NUMBERS: usize = 3 << 10;
/// Bytes that encryption adds to an object's system metadata: keys, vectors, entity tags.
const SEALED_OBJECT: usize = 900;
/// The same to each of the user's.
const SEALED_HEADER: usize = 150;
/// Bytes of the report about parts that are not as they should be.
const LARGEST_REPORT: u64 = 8 << 20;

const CONTAINER_TAG: HeaderName = HeaderName::from_static(LISTED_ETAG);

/// CompleteMultipartUpload.
pub(in super::super) async fn complete(mut operation: Operation<'_>) -> Done {
    let id = operation.call.parameter("uploadId").unwrap_or_default().to_owned();
    let signed = operation.signed_body();
    let claims = Claims::take(&mut operation.request.headers)?;
    // An upload that is not there, and has made no object, is refused whatever the document says.
    let made = match operation.open_upload().await {
        Ok(_) => None,
        Err(error) if error.code == NO_SUCH_UPLOAD => Some(operation.complete_already(&id).await.ok_or(error)?),
        Err(error) => return Err(error),
    };
    let body = collect(&mut operation.request, signed.as_deref(), LARGEST_DOCUMENT).await?;
    let named = read(&body).map_err(|error| error.with("UploadId", id.clone()))?;
    let etag = etag_of_parts(&named).map_err(|error| error.with("UploadId", id.clone()))?;
    if let Some(object) = made {
        let repeated = repeated(&operation, &etag, &object, None).await?;
        return repeated.ok_or_else(|| NO_SUCH_UPLOAD.about("UploadId", id));
    }
    let gate = operation.write_gate().await?;
    let mut standing = ObjectStanding::default();
    let open = match gate.pass(LONG_LEASE).await {
        Ok(found) => {
            standing = found;
            operation.surely_open_upload().await
        }
        Err(error) => Err(error),
    };
    let open = match open {
        Ok(open) => open,
        // As OpenStack's s3api, which knows no such condition here.
        Err(error) if error.code == NO_SUCH_KEY => {
            return Err(NOT_IMPLEMENTED.saying("If-Match of an upload needs an object that is there."));
        }
        // Of an upload that is complete already the object itself is in the way of its condition.
        Err(error) if [NO_SUCH_UPLOAD, PRECONDITION_FAILED].contains(&error.code) => {
            let object = operation.complete_already(&id).await.ok_or(error.clone())?;
            return repeated(&operation, &etag, &object, Some(&gate)).await?.ok_or(error);
        }
        Err(error) => return Err(error),
    };
    if let Some(object) = operation.made_by_open(&open, standing.is_there).await? {
        if !is_of_parts(&object, &etag) {
            return Err(NO_SUCH_UPLOAD.about("UploadId", id));
        }
        operation.store_again(&object, Some(&gate)).await?;
        operation.end_of_object(&open.id, &object).await?;
        return Ok(made_before(&operation, &etag, &object).await);
    }
    make(&operation, &open, (&named, &etag, claims), gate).await
}

/// Makes the object of an upload that is open, whose key is locked, of the parts that are named, and ends the upload.
async fn make(
    operation: &Operation<'_>,
    open: &OpenUpload,
    (named, etag, claims): (&[Named], &str, Claims),
    gate: WriteGate,
) -> Done {
    operation.check_encryption_of_whole(&open.headers).await?;
    let parts = operation.parts(&open.id).await?;
    operation.check_sizes(open, &parts, named)?;
    let checksum = operation.checksum_of_whole(open, named, &claims).await?;
    let mut put = manifest(operation, open, named, etag);
    let numbers = PartNumbers::of_ascending(named.iter().map(|part| part.number));
    if let Some(kept) = checksum.as_ref().and_then(StoredChecksum::stored) {
        put.headers.insert(STORED_CHECKSUM, kept);
    }
    // An upload that was begun without `s3_acl` has no list.
    put.headers.extend(match open.headers.get(UPLOADS_LIST) {
        Some(list) => Some((OBJECTS_LIST, list.clone())),
        None => operation.list_of_new(OBJECTS_LIST)?,
    });
    operation.lock_whole(open, named, &mut put).await?;
    let others = operation.key().len() + operation.bytes_of(&put.headers);
    put.headers.extend(kept_numbers(&numbers, others));
    gate.mark(&mut put.headers);
    let sent = put.headers.clone();
    let response = operation.send(put).await;
    if !response.status().is_success() {
        return Err(refusal(operation, response, open, named).await);
    }
    if response.status() == 202 {
        // Something newer came by a writer without a condition.
        return Err(CONDITIONAL_REQUEST_CONFLICT.into());
    }
    // The object is there: an upload that stays open could be completed again, over what comes later.
    let has_others = parts.iter().any(|(number, _)| !numbers.contain(*number));
    if operation
        .end_made(&open.id, (&numbers, has_others), gate)
        .await
        .is_err()
    {
        return Err(INTERNAL_ERROR.saying("The object is complete, its upload could not be closed: complete it again."));
    }
    let answer = result(operation, etag, checksum.as_ref());
    let size = size_of_whole(&parts, named);
    Ok(shown(operation, answer, (sent, response.headers(), size)).await)
}

/// The answer with what is to be said of the object as it was sent and stored, and its size.
async fn shown(
    operation: &Operation<'_>,
    mut answer: Response,
    (sent, stored, size): (HeaderMap, &HeaderMap, Option<u64>),
) -> Response {
    let is_customers = customer_key_proof(&sent).is_some();
    operation
        .show_expiry_of_new(answer.headers_mut(), sent, stored, size)
        .await;
    versions::show(answer.headers_mut(), stored);
    if !is_customers {
        encryption::show_of_parts(answer.headers_mut(), stored);
    }
    answer
}

/// Bytes of the object; nothing where listings do not show all of its parts yet.
fn size_of_whole(parts: &[(u32, SegmentRow)], named: &[Named]) -> Option<u64> {
    let sizes: HashMap<u32, u64> = parts.iter().map(|(number, row)| (*number, row.bytes)).collect();
    named.iter().map(|part| sizes.get(&part.number)).sum()
}

impl Operation<'_> {
    /// About how much an object keeps that is sent with these headers, as they are stored.
    fn bytes_of(&self, headers: &HeaderMap) -> usize {
        let is_encrypted = self.service.encrypts || customer_key_proof(headers).is_some();
        bytes_of(headers, is_encrypted)
    }

    /// Every part but the last must be so large. A part that listings do not show yet is not checked.
    fn check_sizes(&self, open: &OpenUpload, parts: &[(u32, SegmentRow)], named: &[Named]) -> Result<(), S3Error> {
        let least = self.service.settings.min_segment_size;
        let sizes: HashMap<u32, u64> = parts.iter().map(|(number, row)| (*number, row.bytes)).collect();
        let Some((_, all_but_last)) = named.split_last() else {
            return Ok(());
        };
        for part in all_but_last {
            if let Some(size) = sizes.get(&part.number).filter(|size| **size < least) {
                return Err(ENTITY_TOO_SMALL
                    .about("UploadId", open.id.clone())
                    .with("ETag", part.etag.clone())
                    .with("MinSizeAllowed", least.to_string())
                    .with("PartNumber", part.number.to_string())
                    .with("ProposedSize", size.to_string()));
            }
        }
        Ok(())
    }

    /// In a bucket with a lock: gives the object what its upload was begun with, or the default, its parts first.
    async fn lock_whole(&self, open: &OpenUpload, named: &[Named], put: &mut ClientRequest) -> Result<(), S3Error> {
        if let Some(bucket) = self.bucket_lock().await? {
            let lock = noted_lock(&open.headers, &bucket, self.service.world.clock.now());
            self.lock_named(open, named, &lock).await?;
            set_object_lock(&mut put.headers, &lock);
            put.headers.insert(X_SEGMENTS_LOCKED, HeaderValue::from_static("true"));
        }
        Ok(())
    }

    /// Locks the parts of the object as it is going to be; none is locked where one is not as the client says.
    async fn lock_named(&self, open: &OpenUpload, named: &[Named], lock: &ObjectLock) -> Result<(), S3Error> {
        if lock.is_empty() {
            return Ok(());
        }
        let parts: Vec<EntityPath> = named.iter().map(|part| self.part(&open.id, part.number)).collect();
        for (part, path) in named.iter().zip(&parts) {
            let found = self.send(self.newest(path.clone())).await;
            let etag = found.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
            let is_it = found.status().is_success() && etag.is_some_and(|etag| etag.trim_matches('"') == part.etag);
            match found.status().as_u16() {
                200..=299 | 404 if !is_it => {
                    return Err(INVALID_PART
                        .about("UploadId", open.id.clone())
                        .with("PartNumber", part.number.to_string())
                        .with("ETag", part.etag.clone()));
                }
                200..=299 => {}
                _ => return Err(self.refusal(&found).await),
            }
        }
        self.lock_parts(&parts, lock, false).await
    }

    /// Ends the upload that has become an object of the parts with these numbers, before the lock of the key is given
    /// back: its marker goes, or says that it has ended where others are to go before it. What cannot be deleted now is
    /// left.
    async fn end_made(
        &self,
        upload: &str,
        (numbers, has_others): (&PartNumbers, bool),
        gate: WriteGate,
    ) -> Result<(), S3Error> {
        let ended = match has_others {
            true => self.begin_end(upload).await,
            false => self.close(upload).await,
        };
        match ended {
            Ok(()) => {}
            // Another request has done the rest.
            Err(error) if error.code == NO_SUCH_UPLOAD => return Ok(()),
            Err(error) => return Err(error),
        }
        drop(gate);
        let (key, segments) = (self.key(), self.segments().path());
        if has_others && self.finish(upload, Some(numbers)).await.is_err() {
            tracing::warn!("parts of upload {upload} of {key} that it was completed without are left: abort it");
        }
        if !has_others && self.delete_parts_but(upload, numbers).await.is_err() {
            tracing::warn!("parts that came while upload {upload} of {key} was completed may be left in {segments}");
        }
        Ok(())
    }
}

/// What the object keeps of them beside so many other bytes; nothing where there is no room. Without them the parts
/// that it does not name stay where the gateway dies before it has deleted them.
fn kept_numbers(numbers: &PartNumbers, others: usize) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(numbers.to_string()).ok()?;
    let has_room = value.len() <= SHORT_NUMBERS || value.len() + others <= ROOM_WITH_NUMBERS;
    has_room.then_some((NUMBERS_OF_OBJECT, value))
}

fn bytes_of(headers: &HeaderMap, is_encrypted: bool) -> usize {
    let sealed = |name: &HeaderName| is_encrypted && name.as_str().starts_with("x-object-meta-");
    let bytes = headers.iter().map(|(name, value)| match sealed(name) {
        true => name.as_str().len() + value.len().div_ceil(3) * 4 + SEALED_HEADER,
        false => name.as_str().len() + value.len(),
    });
    bytes.sum::<usize>() + if is_encrypted { SEALED_OBJECT } else { 0 }
}

/// The parts, in ascending order.
fn read(body: &[u8]) -> Result<Vec<Named>, S3Error> {
    let document = Element::parse(body).map_err(|_| MALFORMED_XML)?;
    if document.name != "CompleteMultipartUpload" {
        return Err(MALFORMED_XML.into());
    }
    let mut named: Vec<Named> = Vec::new();
    for part in document.all("Part") {
        let number = part.text_of("PartNumber").and_then(|number| number.parse::<u32>().ok());
        let etag = part
            .text_of("ETag")
            .map(|etag| etag.trim_matches('"').to_ascii_lowercase());
        let (Some(number), Some(etag)) = (number, etag) else {
            return Err(MALFORMED_XML.into());
        };
        if named.last().is_some_and(|last| last.number >= number) {
            return Err(INVALID_PART_ORDER.into());
        }
        let checksum = Algorithm::ALL.into_iter().find_map(|(_, algorithm)| {
            let value = part.text_of(algorithm.element())?.to_owned();
            Some(StoredChecksum { algorithm, value })
        });
        named.push(Named { number, etag, checksum });
    }
    match named.is_empty() {
        true => Err(MALFORMED_XML.into()),
        false => Ok(named),
    }
}

/// The MD5 of the parts' MD5s, and how many they are.
fn etag_of_parts(named: &[Named]) -> Result<String, S3Error> {
    let mut md5 = Md5::new();
    for part in named {
        let digest = vocabulary::hex::decode_digits(&part.etag).ok_or_else(|| {
            INVALID_PART
                .about("PartNumber", part.number.to_string())
                .with("ETag", part.etag.clone())
        })?;
        md5.update(digest);
    }
    Ok(format!("{}-{}", vocabulary::hex::encode(md5.finalize()), named.len()))
}

/// The PUT of the object, with what was said of it when the upload was begun.
fn manifest(operation: &Operation<'_>, open: &OpenUpload, named: &[Named], etag: &str) -> ClientRequest {
    let segments = operation.segments();
    let container = segments.container.as_deref().unwrap_or_default();
    let list: Vec<serde_json::Value> = named
        .iter()
        .map(|part| {
            serde_json::json!({
                "path": format!("/{container}/{}/{}/{}", operation.key(), open.id, part.number),
                "etag": part.etag,
            })
        })
        .collect();
    let list = serde_json::Value::Array(list).to_string();
    let mut put = operation.further(Method::PUT, operation.container().with_object(operation.key()));
    put.query = "multipart-manifest=put".into();
    put.headers.extend(kept(&open.headers));
    customer_key::carry_proof(&open.headers, &mut put.headers);
    put.headers.insert(CONTENT_LENGTH, HeaderValue::from(list.len()));
    put.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    for (name, text) in [
        (S3_ETAG, etag.to_owned()),
        (UPLOAD_OF_OBJECT, open.id.clone()),
        (CONTAINER_TAG, format!("; s3_etag={etag}")),
    ] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            put.headers.insert(name, value);
        }
    }
    put.body = Body::whole(list);
    put
}

/// What the marker keeps for the object.
fn kept(marker: &HeaderMap) -> HeaderMap {
    let is_kept = |name: &HeaderName| {
        name.as_str().starts_with("x-object-meta-")
            || *name == X_OBJECT_TAGS
            || [
                "cache-control",
                "content-disposition",
                "content-encoding",
                "content-language",
                "expires",
            ]
            .contains(&name.as_str())
    };
    let found = marker.iter().filter(|(name, _)| is_kept(name));
    let mut out: HeaderMap = found.map(|(name, value)| (name.clone(), value.clone())).collect();
    let has_type = marker.get(HAS_CONTENT_TYPE).is_some_and(|value| value == "yes");
    let content_type = marker.get(OBJECTS_CONTENT_TYPE).filter(|_| has_type);
    let default = HeaderValue::from_static("binary/octet-stream");
    out.insert(CONTENT_TYPE, content_type.cloned().unwrap_or(default));
    out
}

/// A refusal of the manifest names the parts that are not as the client says.
async fn refusal(operation: &Operation<'_>, response: Response, open: &OpenUpload, named: &[Named]) -> S3Error {
    if response.status() != 400 {
        return operation.refusal(&response).await;
    }
    let report = response.into_body().collect(LARGEST_REPORT).await.unwrap_or_default();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
    let problems = report["Errors"].as_array().cloned().unwrap_or_default();
    let Some(first) = problems.first() else {
        return INTERNAL_ERROR.into();
    };
    let path = first[0].as_str().unwrap_or_default();
    let number = path.rsplit('/').next().and_then(|number| number.parse::<u32>().ok());
    let part = named.iter().find(|part| Some(part.number) == number);
    let mut error = S3Error::from(INVALID_PART).with("UploadId", open.id.clone());
    if let Some(part) = part {
        error = error
            .with("PartNumber", part.number.to_string())
            .with("ETag", part.etag.clone());
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(list: &[(&str, &str)]) -> Result<Vec<u32>, &'static str> {
        let parts: String = list
            .iter()
            .map(|(number, etag)| format!("<Part><ETag>{etag}</ETag><PartNumber>{number}</PartNumber></Part>"))
            .collect();
        let read = read(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").as_bytes());
        read.map(|named| named.iter().map(|part| part.number).collect())
            .map_err(|error| error.code.name)
    }

    #[test]
    fn parts_ascend() {
        assert_eq!(parts(&[("1", "a"), ("10", "b")]), Ok(vec![1, 10]));
        assert_eq!(parts(&[("2", "a"), ("1", "b")]), Err("InvalidPartOrder"));
        assert_eq!(parts(&[("1", "a"), ("1", "b")]), Err("InvalidPartOrder"));
        assert_eq!(parts(&[("x", "a")]), Err("MalformedXML"));
        assert_eq!(parts(&[]), Err("MalformedXML"));
    }

    #[test]
    fn an_object_keeps_the_numbers_of_its_parts_where_there_is_room() {
        let kept = |numbers: &PartNumbers, others| {
            let (_, value) = kept_numbers(numbers, others)?;
            value.to_str().ok()?.parse().ok()
        };
        let scattered = PartNumbers::of_ascending((1..=10_000).step_by(2));
        assert_eq!(kept(&scattered, 700), Some(scattered.clone()));
        assert_eq!(kept(&scattered, 2_400), None);
        let whole = PartNumbers::of_ascending(1..=10_000);
        assert_eq!(kept(&whole, 2_400), Some(whole));
        let mut few = HeaderMap::new();
        few.insert("x-object-meta-a", HeaderValue::from_static("123456"));
        assert_eq!((bytes_of(&few, false), bytes_of(&few, true)), (21, 21 + 2 + 900 + 150));
        let too_many = PartNumbers::of_ascending((1..=100_000).step_by(2));
        assert_eq!(kept(&too_many, 0), None);
    }

    /// As OpenStack's s3api has it of parts with 5 MiB of "B" and of "C".
    #[test]
    fn the_tag_of_the_whole() {
        let named = |etag: &str| Named {
            number: 1,
            etag: etag.into(),
            checksum: None,
        };
        let parts = [
            named("ba8c3fac0e224c9b79a8e74bebd54654"),
            named("99167c91c1541375b4f9df4b5e051387"),
        ];
        assert_eq!(etag_of_parts(&parts).unwrap(), "48fc6427dd6af19b835eaf9734719341-2");
        assert_eq!(etag_of_parts(&[named("x")]).unwrap_err().code, INVALID_PART);
    }
}
