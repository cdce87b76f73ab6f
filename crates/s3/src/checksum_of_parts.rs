//! Checksums of objects that are made of parts: one of the parts' checksums (composite), or that of the whole (full
//! object), which for a CRC follows from the parts' and their sizes.
//!
//! Source: AWS, "Checking object integrity in Amazon S3", "Using part-level checksums for multipart uploads".

use crate::checksum::Algorithm;
use crate::error::{INVALID_REQUEST, S3Error};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, checksum_combine};
use http::{HeaderMap, HeaderValue};

/// Metadata of ours with the checksum of an object or a part.
pub const STORED_CHECKSUM: &str = "x-object-sysmeta-s3api-checksum";

/// A checksum that is stored, in S3's form: base64, of parts' checksums with a hyphen and how many they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChecksum {
    /// How it was made.
    pub algorithm: Algorithm,
    /// Its text.
    pub value: String,
}

impl StoredChecksum {
    /// Of an object's headers.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let (name, value) = headers.get(STORED_CHECKSUM)?.to_str().ok()?.split_once('=')?;
        Some(Self {
            algorithm: Algorithm::of_name(name)?,
            value: value.to_owned(),
        })
    }

    /// As it is stored.
    pub fn stored(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{}={}", self.algorithm.name(), self.value)).ok()
    }

    /// `x-amz-checksum-type`.
    pub fn kind(&self) -> ChecksumKind {
        match self.value.contains('-') {
            true => ChecksumKind::Composite,
            false => ChecksumKind::FullObject,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.value).ok()
    }
}

/// What a checksum of an object made of parts is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumKind {
    /// Of the parts' checksums.
    Composite,
    /// Of the object's bytes.
    FullObject,
}

impl ChecksumKind {
    /// S3's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Composite => "COMPOSITE",
            Self::FullObject => "FULL_OBJECT",
        }
    }

    /// Of S3's word.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Composite, Self::FullObject]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// What an upload is to have of checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedChecksum {
    /// Of the parts and the object.
    pub algorithm: Algorithm,
    /// Of the object.
    pub kind: ChecksumKind,
}

impl WantedChecksum {
    /// What the headers of CreateMultipartUpload ask for.
    pub fn asked(headers: &HeaderMap) -> Result<Option<Self>, S3Error> {
        let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let kind = match text("x-amz-checksum-type") {
            None => None,
            Some(kind) => Some(
                ChecksumKind::of_name(&kind)
                    .ok_or_else(|| INVALID_REQUEST.saying("Value for x-amz-checksum-type header is invalid."))?,
            ),
        };
        let Some(name) = text("x-amz-checksum-algorithm") else {
            return match kind {
                None => Ok(None),
                Some(_) => Err(INVALID_REQUEST.saying(
                    "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
                )),
            };
        };
        let algorithm = Algorithm::of_name(&name).ok_or_else(|| {
            INVALID_REQUEST.saying(
                "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, \
                 CRC32C, CRC64NVME, SHA1, SHA256]",
            )
        })?;
        let (only, otherwise) = match algorithm {
            Algorithm::Crc64Nvme => (Some(ChecksumKind::FullObject), ChecksumKind::FullObject),
            Algorithm::Sha1 | Algorithm::Sha256 => (Some(ChecksumKind::Composite), ChecksumKind::Composite),
            Algorithm::Crc32 | Algorithm::Crc32c => (None, ChecksumKind::Composite),
        };
        let kind = kind.unwrap_or(otherwise);
        if only.is_some_and(|only| only != kind) {
            return Err(INVALID_REQUEST.saying(format!(
                "The {} checksum type cannot be used with the {} checksum algorithm.",
                kind.name(),
                algorithm.shown()
            )));
        }
        Ok(Some(Self { algorithm, kind }))
    }

    /// Of the metadata of an upload.
    pub fn read(text: &str) -> Option<Self> {
        let (algorithm, kind) = text.split_once(' ')?;
        Some(Self {
            algorithm: Algorithm::of_name(algorithm)?,
            kind: ChecksumKind::of_name(kind)?,
        })
    }

    /// As it is stored.
    pub fn stored(self) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{} {}", self.algorithm.name(), self.kind.name())).ok()
    }

    /// The object's checksum, from those of all its parts with their sizes; nothing where a part has none of this
    /// algorithm.
    pub fn of_parts(self, parts: &[(Option<StoredChecksum>, u64)]) -> Option<StoredChecksum> {
        let of_part = |(checksum, size): &(Option<StoredChecksum>, u64)| {
            let checksum = checksum
                .as_ref()
                .filter(|checksum| checksum.algorithm == self.algorithm)?;
            Some((checksum.bytes()?, *size))
        };
        let parts: Vec<(Vec<u8>, u64)> = parts.iter().map(of_part).collect::<Option<_>>()?;
        let value = match self.kind {
            ChecksumKind::Composite => {
                let all: Vec<u8> = parts.iter().flat_map(|(checksum, _)| checksum).copied().collect();
                format!("{}-{}", STANDARD.encode(self.algorithm.of(&all)), parts.len())
            }
            ChecksumKind::FullObject => STANDARD.encode(self.whole(&parts)?),
        };
        Some(StoredChecksum {
            algorithm: self.algorithm,
            value,
        })
    }

    fn whole(self, parts: &[(Vec<u8>, u64)]) -> Option<Vec<u8>> {
        let algorithm = match self.algorithm {
            Algorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
            Algorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
            Algorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
            Algorithm::Sha1 | Algorithm::Sha256 => return None,
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let ((first, _), others) = parts.split_first()?;
        let combine = |before, (checksum, size): &(Vec<u8>, u64)| match size {
            0 => before,
            size => checksum_combine(algorithm, before, number(checksum), *size),
        };
        let whole = others.iter().fold(number(first), combine);
        let bytes = whole.to_be_bytes();
        Some(bytes[bytes.len() - self.algorithm.size()..].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pairs: &[(&'static str, &'static str)]) -> Result<Option<WantedChecksum>, &'static str> {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        WantedChecksum::asked(&pairs.collect()).map_err(|error| error.code.name)
    }

    #[test]
    fn algorithms_have_their_kinds() {
        const ALGORITHM: &str = "x-amz-checksum-algorithm";
        const KIND: &str = "x-amz-checksum-type";
        let kind = |pairs: &[_]| asked(pairs).map(|wanted| wanted.map(|wanted| wanted.kind.name()));
        assert_eq!(kind(&[]), Ok(None));
        assert_eq!(kind(&[(ALGORITHM, "CRC32")]), Ok(Some("COMPOSITE")));
        assert_eq!(
            kind(&[(ALGORITHM, "CRC32C"), (KIND, "FULL_OBJECT")]),
            Ok(Some("FULL_OBJECT"))
        );
        assert_eq!(kind(&[(ALGORITHM, "CRC64NVME")]), Ok(Some("FULL_OBJECT")));
        assert_eq!(kind(&[(ALGORITHM, "SHA256")]), Ok(Some("COMPOSITE")));
        for bad in [
            &[(ALGORITHM, "CRC64NVME"), (KIND, "COMPOSITE")][..],
            &[(ALGORITHM, "SHA1"), (KIND, "FULL_OBJECT")],
            &[(ALGORITHM, "MD5")],
            &[(ALGORITHM, "CRC32"), (KIND, "WHOLE")],
            &[(KIND, "COMPOSITE")],
        ] {
            assert_eq!(kind(bad), Err("InvalidRequest"), "{bad:?}");
        }
    }

    #[test]
    fn the_whole_follows_from_its_parts() {
        let pieces: [&[u8]; 4] = [b"1234", b"", b"56", b"789"];
        for (_, algorithm) in Algorithm::ALL {
            let parts = pieces.map(|piece| {
                let value = STANDARD.encode(algorithm.of(piece));
                (Some(StoredChecksum { algorithm, value }), piece.len() as u64)
            });
            let wanted = |kind| WantedChecksum { algorithm, kind };
            let whole = wanted(ChecksumKind::FullObject).of_parts(&parts);
            match algorithm {
                Algorithm::Sha1 | Algorithm::Sha256 => assert_eq!(whole, None),
                _ => assert_eq!(whole.unwrap().value, STANDARD.encode(algorithm.of(b"123456789"))),
            }
            let composite = wanted(ChecksumKind::Composite).of_parts(&parts).unwrap();
            let all: Vec<u8> = pieces.iter().flat_map(|piece| algorithm.of(piece)).collect();
            assert_eq!(composite.value, format!("{}-4", STANDARD.encode(algorithm.of(&all))));
            assert_eq!(composite.kind(), ChecksumKind::Composite);
            let mut lacking = parts;
            lacking[2].0 = None;
            assert_eq!(wanted(ChecksumKind::Composite).of_parts(&lacking), None);
        }
    }

    #[test]
    fn what_is_stored_is_read() {
        let wanted = WantedChecksum {
            algorithm: Algorithm::Crc64Nvme,
            kind: ChecksumKind::FullObject,
        };
        assert_eq!(
            WantedChecksum::read(wanted.stored().unwrap().to_str().unwrap()),
            Some(wanted)
        );
        let checksum = StoredChecksum {
            algorithm: Algorithm::Sha1,
            value: "abc=-3".into(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(STORED_CHECKSUM, checksum.stored().unwrap());
        assert_eq!(StoredChecksum::read(&headers), Some(checksum));
    }
}
