//! Checksums of a body: those of S3 (`x-amz-checksum-…`, in headers or behind the body), the SHA-256 that was signed.
//!
//! Source: AWS, "Checking object integrity in Amazon S3".

use crate::error::{BAD_DIGEST, CONTENT_SHA256_MISMATCH, INVALID_DIGEST, INVALID_REQUEST, MALFORMED_TRAILER, S3Error};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use peer::Body;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What names of headers with checksums begin with.
pub const CHECKSUM: &str = "x-amz-checksum-";
static TRAILER: HeaderName = HeaderName::from_static("x-amz-trailer");
static DECLARED: HeaderName = HeaderName::from_static("x-amz-sdk-checksum-algorithm");

/// How a checksum is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CRC-32 of ISO HDLC.
    Crc32,
    /// CRC-32 of Castagnoli.
    Crc32c,
    /// CRC-64 of NVM Express.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl Algorithm {
    /// All, by the name behind `x-amz-checksum-`.
    pub const ALL: [(&'static str, Algorithm); 5] = [
        ("crc32", Algorithm::Crc32),
        ("crc32c", Algorithm::Crc32c),
        ("crc64nvme", Algorithm::Crc64Nvme),
        ("sha1", Algorithm::Sha1),
        ("sha256", Algorithm::Sha256),
    ];

    /// Of a header's name.
    pub fn of_header(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let name = lower.strip_prefix(CHECKSUM)?;
        let mut all = Self::ALL.into_iter();
        all.find(|(known, _)| *known == name).map(|(_, algorithm)| algorithm)
    }

    /// Of a name as in [`Self::ALL`] or S3's `ChecksumAlgorithm`.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, algorithm)| algorithm)
    }

    /// Its name in [`Self::ALL`].
    pub fn name(self) -> &'static str {
        self.header().trim_start_matches("x-amz-checksum-")
    }

    /// S3's `ChecksumAlgorithm`.
    pub fn shown(self) -> &'static str {
        self.element().trim_start_matches("Checksum")
    }

    /// The element of S3's documents with such a checksum.
    pub fn element(self) -> &'static str {
        match self {
            Self::Crc32 => "ChecksumCRC32",
            Self::Crc32c => "ChecksumCRC32C",
            Self::Crc64Nvme => "ChecksumCRC64NVME",
            Self::Sha1 => "ChecksumSHA1",
            Self::Sha256 => "ChecksumSHA256",
        }
    }

    /// The checksum of these bytes.
    pub fn of(self, bytes: &[u8]) -> Vec<u8> {
        let mut running = self.start();
        running.update(bytes);
        running.finish()
    }

    /// The bytes of such a checksum.
    pub fn size(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The header, and how S3's words call the algorithm.
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    fn start(self) -> Running {
        match self {
            Self::Crc32 => Running::Crc32(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
            Self::Crc32c => Running::Crc32(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi)),
            Self::Crc64Nvme => Running::Crc64(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)),
            Self::Sha1 => Running::Sha1(Sha1::new()),
            Self::Sha256 => Running::Sha256(Sha256::new()),
        }
    }
}

enum Running {
    Crc32(crc_fast::Digest),
    Crc64(crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Running {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32(digest) | Self::Crc64(digest) => digest.update(bytes),
            Self::Sha1(digest) => digest.update(bytes),
            Self::Sha256(digest) => digest.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            // A CRC of 32 bits is the lower half of what is returned.
            Self::Crc32(digest) => (digest.finalize() as u32).to_be_bytes().to_vec(),
            Self::Crc64(digest) => digest.finalize().to_be_bytes().to_vec(),
            Self::Sha1(digest) => digest.finalize().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
        }
    }
}

/// The checksum of a body that passes by.
#[derive(Clone)]
pub struct PassingChecksum(Arc<Mutex<Passing>>);

enum Passing {
    Running(Box<Running>),
    Over(String),
}

impl PassingChecksum {
    /// Of these bytes, which come out as they go in.
    pub fn of(body: Body, algorithm: Algorithm) -> (Body, Self) {
        let running = Passing::Running(Box::new(algorithm.start()));
        let checksum = Self(Arc::new(Mutex::new(running)));
        let (length, passing) = (body.length(), checksum.clone());
        let bytes = unfold(body, move |mut body| {
            let passing = passing.clone();
            async move {
                let chunk = body.next().await?;
                if let (Ok(bytes), Passing::Running(running)) = (&chunk, &mut *passing.0.lock()) {
                    running.update(bytes);
                }
                Some((chunk, body))
            }
        });
        (Body::stream(bytes, length), checksum)
    }

    /// Of what has passed until it is first asked for.
    pub fn value(&self) -> String {
        let mut state = self.0.lock();
        let value = match std::mem::replace(&mut *state, Passing::Over(String::new())) {
            Passing::Running(running) => STANDARD.encode(running.finish()),
            Passing::Over(value) => value,
        };
        *state = Passing::Over(value.clone());
        value
    }
}

/// What a header behind the body says, once it has been read.
#[derive(Clone, Default)]
pub struct Trailer(Arc<Mutex<Option<(String, String)>>>);

impl Trailer {
    /// Notes a header that came behind the body.
    pub fn note(&self, name: &str, value: &str) {
        *self.0.lock() = Some((name.to_ascii_lowercase(), value.to_owned()));
    }

    /// The checksum in it.
    pub fn checksum(&self) -> Option<(Algorithm, String)> {
        let noted = self.0.lock();
        let (name, value) = noted.as_ref()?;
        Some((Algorithm::of_header(name)?, value.trim().to_owned()))
    }
}

/// One checksum that the body must have.
pub struct Checksum {
    algorithm: Algorithm,
    running: Running,
    claim: Claim,
}

enum Claim {
    /// Of `x-amz-checksum-…`: these bytes.
    Header(Vec<u8>),
    /// Of the signature: these digits.
    Payload(String),
    /// Known when the body ends.
    Trailer,
}

impl Checksum {
    /// The SHA-256 that was signed: hexadecimal digits.
    pub fn payload(digest: &str) -> Self {
        Self::claimed(Algorithm::Sha256, Claim::Payload(digest.to_owned()))
    }

    fn claimed(algorithm: Algorithm, claim: Claim) -> Self {
        Self {
            algorithm,
            running: algorithm.start(),
            claim,
        }
    }
}

/// All that a body must have.
#[derive(Default)]
pub struct Checksums {
    wanted: Vec<Checksum>,
    trailer: Trailer,
}

impl Checksums {
    /// One more.
    pub fn add(&mut self, checksum: Checksum) {
        self.wanted.push(checksum);
    }

    /// Those that the headers of a request name: in a header, or behind the body (`x-amz-trailer`); at most one is
    /// allowed. Returns whether headers come behind the body.
    pub fn read(&mut self, headers: &HeaderMap, is_streaming: bool) -> Result<bool, S3Error> {
        let text = |name: &HeaderName| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut sent = Vec::new();
        for (name, value) in headers {
            let Some(rest) = name.as_str().strip_prefix(CHECKSUM) else {
                continue;
            };
            match Algorithm::of_header(name.as_str()) {
                Some(algorithm) => sent.push((algorithm, value)),
                None if ["type", "algorithm", "mode"].contains(&rest) => {}
                None => {
                    return Err(INVALID_REQUEST
                        .saying("The algorithm type you specified in x-amz-checksum- header is invalid."));
                }
            }
        }
        let trailers = trailers(&text(&TRAILER).unwrap_or_default())?;
        if sent.len() > 1 || trailers.len() > 1 {
            return Err(INVALID_REQUEST
                .saying("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."));
        }
        let (sent, trailer) = (sent.first(), trailers.first());
        if let Some(declared) = text(&DECLARED) {
            check_declared(&declared, sent.map(|(algorithm, _)| *algorithm).or(trailer.copied()))?;
        }
        if sent.is_some() && trailer.is_some() {
            return Err(INVALID_REQUEST.saying("Expecting a single x-amz-checksum- header"));
        }
        if trailer.is_some() && !is_streaming {
            return Err(MALFORMED_TRAILER.into());
        }
        if let Some((algorithm, value)) = sent {
            let claimed = decode(*algorithm, value.as_bytes(), "header")?;
            self.add(Checksum::claimed(*algorithm, Claim::Header(claimed)));
        }
        if let Some(algorithm) = trailer {
            self.add(Checksum::claimed(*algorithm, Claim::Trailer));
        }
        Ok(trailer.is_some())
    }

    /// Where the reader of the body leaves what comes behind it.
    pub fn trailer(&self) -> Trailer {
        self.trailer.clone()
    }

    /// Whether nothing is to be checked.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// These bytes have passed.
    pub fn update(&mut self, bytes: &[u8]) {
        for checksum in &mut self.wanted {
            checksum.running.update(bytes);
        }
    }

    /// The body is over: whether it is what it should be.
    pub fn check(&mut self) -> Result<(), S3Error> {
        for checksum in self.wanted.drain(..) {
            let computed = checksum.running.finish();
            match checksum.claim {
                Claim::Payload(claimed) => {
                    let computed = vocabulary::hex::encode(&computed);
                    if !computed.eq_ignore_ascii_case(&claimed) {
                        return Err(CONTENT_SHA256_MISMATCH
                            .about("ClientComputedContentSHA256", claimed)
                            .with("S3ComputedContentSHA256", computed));
                    }
                }
                Claim::Header(claimed) => agree(checksum.algorithm, &claimed, &computed)?,
                Claim::Trailer => {
                    let sent = self.trailer.0.lock().clone();
                    let (name, value) = sent.unwrap_or_default();
                    if name != checksum.algorithm.header() {
                        return Err(MALFORMED_TRAILER.into());
                    }
                    let claimed = decode(checksum.algorithm, value.trim().as_bytes(), "trailing header")?;
                    agree(checksum.algorithm, &claimed, &computed)?;
                }
            }
        }
        Ok(())
    }
}

fn agree(algorithm: Algorithm, claimed: &[u8], computed: &[u8]) -> Result<(), S3Error> {
    if claimed == computed {
        return Ok(());
    }
    Err(BAD_DIGEST.saying(format!(
        "The {} you specified did not match the calculated checksum.",
        algorithm.shown()
    )))
}

/// The algorithms of the headers that come behind the body.
fn trailers(names: &str) -> Result<Vec<Algorithm>, S3Error> {
    let names = names.trim().trim_end_matches(',');
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let algorithm = |name: &str| {
        Algorithm::of_header(name.trim())
            .ok_or_else(|| INVALID_REQUEST.saying("The value specified in the x-amz-trailer header is not supported"))
    };
    names.split(',').map(algorithm).collect()
}

/// What `x-amz-sdk-checksum-algorithm` announces must be there.
fn check_declared(declared: &str, sent: Option<Algorithm>) -> Result<(), S3Error> {
    let Some(sent) = sent else {
        return Err(INVALID_REQUEST.saying(
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were \
             found.",
        ));
    };
    let name = sent.header().trim_start_matches("x-amz-checksum-");
    match name.eq_ignore_ascii_case(declared) {
        true => Ok(()),
        false => Err(INVALID_REQUEST.saying("Value for x-amz-sdk-checksum-algorithm header is invalid.")),
    }
}

fn decode(algorithm: Algorithm, text: &[u8], place: &str) -> Result<Vec<u8>, S3Error> {
    let bytes = STANDARD
        .decode(text)
        .ok()
        .filter(|bytes| bytes.len() == algorithm.size());
    bytes.ok_or_else(|| INVALID_REQUEST.saying(format!("Value for {} {place} is invalid.", algorithm.header())))
}

/// The SHA-256 of these bytes, in digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    vocabulary::hex::encode(Sha256::digest(bytes))
}

/// `Content-MD5`: the 16 bytes.
pub fn md5_of_header(text: &str) -> Result<[u8; 16], S3Error> {
    let bytes = STANDARD
        .decode(text.trim())
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| INVALID_DIGEST.about("Content-MD5", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of "123456789" (catalogue of parametrised CRC algorithms).
    #[test]
    fn check_values() {
        for (algorithm, expected) in [
            (Algorithm::Crc32, "cbf43926"),
            (Algorithm::Crc32c, "e3069283"),
            (Algorithm::Crc64Nvme, "ae8b14860a799888"),
            (Algorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        ] {
            let mut running = algorithm.start();
            running.update(b"12345");
            running.update(b"6789");
            let found = running.finish();
            assert_eq!(
                (vocabulary::hex::encode(&found).as_str(), found.len()),
                (expected, algorithm.size())
            );
        }
    }

    #[test]
    fn one_checksum_of_the_right_size() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)));
            let mut found = Checksums::default();
            found.read(&pairs.collect(), false).map(|_| found.wanted.len())
        };
        assert_eq!(
            headers(&[("x-amz-checksum-crc32", "y/Q5Jg=="), ("x-amz-checksum-type", "x")]),
            Ok(1)
        );
        assert!(headers(&[("x-amz-checksum-crc32", "y/Q5")]).is_err());
        assert!(
            headers(&[
                ("x-amz-checksum-crc32", "y/Q5Jg=="),
                ("x-amz-checksum-crc32c", "y/Q5Jg==")
            ])
            .is_err()
        );
        assert!(md5_of_header("YmFk").is_err());
    }
}
