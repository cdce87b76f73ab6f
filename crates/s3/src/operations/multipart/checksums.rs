//! Checksums of parts, and of the object that they become.
//!
//! Always holds: the object has a checksum only where each of its parts was stored with one; one that the client names,
//! of a part or of the whole, is compared.

use super::super::Operation;
use super::{CHECKSUM_OF_PARTS, Named, OpenUpload};
use crate::checksum::Algorithm;
use crate::checksum_of_parts::{ChecksumKind, StoredChecksum, WantedChecksum};
use crate::error::{BAD_DIGEST, INVALID_PART, INVALID_REQUEST, S3Error, SERVICE_UNAVAILABLE};
use futures_util::StreamExt;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method};

/// Parts that are looked at at the same time.
const CONCURRENCY: usize = 10;

/// What CompleteMultipartUpload says of the whole.
#[derive(Debug, Default)]
pub(super) struct Claims {
    checksum: Option<StoredChecksum>,
    kind: Option<ChecksumKind>,
    size: Option<u64>,
}

impl Claims {
    /// Takes them out of the request's headers, where they would be taken for those of the document.
    pub(super) fn take(headers: &mut HeaderMap) -> Result<Self, S3Error> {
        let mut claims = Self::default();
        let invalid = |name: &str| INVALID_REQUEST.saying(format!("Value for {name} header is invalid."));
        for (_, algorithm) in Algorithm::ALL {
            if let Some(value) = headers.remove(algorithm.header()) {
                let value = value.to_str().map_err(|_| invalid(algorithm.header()))?.to_owned();
                claims.checksum = Some(StoredChecksum { algorithm, value });
            }
        }
        const KIND: &str = "x-amz-checksum-type";
        if let Some(kind) = headers.remove(KIND) {
            let kind = kind.to_str().ok().and_then(ChecksumKind::of_name);
            claims.kind = Some(kind.ok_or_else(|| invalid(KIND))?);
        }
        const SIZE: &str = "x-amz-mp-object-size";
        if let Some(size) = headers.get(SIZE) {
            let size = size.to_str().ok().and_then(|size| size.parse().ok());
            claims.size = Some(size.ok_or_else(|| invalid(SIZE))?);
        }
        Ok(claims)
    }
}

impl OpenUpload {
    /// What was asked for when it was begun.
    pub(super) fn wanted_checksum(&self) -> Option<WantedChecksum> {
        WantedChecksum::read(self.headers.get(CHECKSUM_OF_PARTS)?.to_str().ok()?)
    }

    /// Refuses a part with a checksum of another algorithm than the upload has; `sent` is that of the request.
    pub(super) fn check_algorithm(&self, sent: Option<Algorithm>) -> Result<(), S3Error> {
        match (self.wanted_checksum(), sent) {
            (Some(wanted), Some(sent)) if wanted.algorithm != sent => Err(INVALID_REQUEST.saying(format!(
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                wanted.algorithm.name(),
                sent.name()
            ))),
            _ => Ok(()),
        }
    }
}

impl Operation<'_> {
    /// The checksum and the size of each of these parts, in order; of one that is not there nothing and 0.
    pub(in super::super) async fn part_checksums(
        &self,
        upload: &str,
        numbers: Vec<u32>,
    ) -> Result<Vec<(Option<StoredChecksum>, u64)>, S3Error> {
        let looks = futures_util::stream::iter(numbers).map(|number| async move {
            let head = self.further(Method::HEAD, self.part(upload, number));
            let response = self.send(head).await;
            match response.status().as_u16() {
                200..=299 => Ok((StoredChecksum::read(response.headers()), length(response.headers()))),
                404 => Ok((None, 0)),
                _ => Err(S3Error::from(SERVICE_UNAVAILABLE)),
            }
        });
        let found: Vec<Result<_, S3Error>> = looks.buffered(CONCURRENCY).collect().await;
        found.into_iter().collect()
    }

    /// The checksum of the object to be, compared with what the client says; nothing where the upload has none.
    pub(super) async fn checksum_of_whole(
        &self,
        open: &OpenUpload,
        named: &[Named],
        claims: &Claims,
    ) -> Result<Option<StoredChecksum>, S3Error> {
        let wanted = open.wanted_checksum();
        let names_any = named.iter().any(|part| part.checksum.is_some());
        if wanted.is_none() && claims.checksum.is_none() && claims.size.is_none() && !names_any {
            return Ok(None);
        }
        if let (Some(wanted), Some(kind)) = (wanted, claims.kind)
            && wanted.kind != kind
        {
            return Err(INVALID_REQUEST.saying(format!(
                "The upload was created using the {} checksum mode. The complete request must use the same \
                 checksum mode.",
                wanted.kind.name()
            )));
        }
        let numbers = named.iter().map(|part| part.number).collect();
        let parts = self.part_checksums(&open.id, numbers).await?;
        for (part, (stored, _)) in named.iter().zip(&parts) {
            if part.checksum.is_some() && part.checksum != *stored {
                return Err(INVALID_PART
                    .about("UploadId", open.id.clone())
                    .with("PartNumber", part.number.to_string())
                    .with("ETag", part.etag.clone()));
            }
        }
        let size: u64 = parts.iter().map(|(_, size)| size).sum();
        if let Some(claimed) = claims.size.filter(|claimed| *claimed != size) {
            return Err(INVALID_REQUEST.saying(format!(
                "The provided 'x-amz-mp-object-size' header value {claimed} does not match what was computed: {size}"
            )));
        }
        // A client that names the checksum of the whole without having said so before.
        let of_claim = claims.checksum.as_ref().map(|claim| WantedChecksum {
            algorithm: claim.algorithm,
            kind: claims.kind.unwrap_or(claim.kind()),
        });
        let computed = wanted.or(of_claim).and_then(|wanted| wanted.of_parts(&parts));
        match &claims.checksum {
            // Of an upload that was begun without checksums it may be the document's, as OpenStack's tests have it.
            Some(claim) if wanted.is_none() && claims.kind.is_none() && computed.as_ref() != Some(claim) => Ok(None),
            Some(claim) if computed.as_ref() != Some(claim) => Err(BAD_DIGEST.saying(format!(
                "The {} you specified did not match the calculated checksum.",
                claim.algorithm.shown()
            ))),
            _ => Ok(computed),
        }
    }
}

fn length(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or_default()
}
