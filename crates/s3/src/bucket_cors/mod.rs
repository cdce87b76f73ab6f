//! CORS rules of buckets: what pages of other origins may ask of a bucket, and see of its answers.
//!
//! The rules are in the container's system metadata; the first that fits an origin, a method and headers decides.
//! A preflight names no account: which accounts have a bucket of its name with rules is in `index.rs`.
//! Always holds: rules that are stored are read back as the same; no text unpacks to more than [`MOST_UNPACKED`] bytes;
//! an origin that no rule names is shown nothing.
//! Deliberately absent: Swift's own CORS of containers (`request_pipeline::cors`), which counts where there are no
//! rules.
//! Source: AWS, "Using cross-origin resource sharing (CORS)" and "PutBucketCors".

pub(crate) mod document;
pub(crate) mod index;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN,
};
use http::{HeaderMap, header};
use request_pipeline::reply::vary_on;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Bytes of a piece; OpenStack's servers take lines of 8,192.
const PIECE: usize = 4096;
/// The headers of a container that hold the pieces of the text, and what the gateway knows them as.
const PIECES: [(&str, &str); 4] = [
    ("x-container-sysmeta-s3api-cors-0", "s3api-cors-0"),
    ("x-container-sysmeta-s3api-cors-1", "s3api-cors-1"),
    ("x-container-sysmeta-s3api-cors-2", "s3api-cors-2"),
    ("x-container-sysmeta-s3api-cors-3", "s3api-cors-3"),
];
/// Bytes as they are stored: all of a container's metadata travel with every look at it.
const LARGEST_STORED: usize = PIECE * PIECES.len();
/// Bytes of JSON: that of the largest document with room for what JSON escapes.
const MOST_UNPACKED: u64 = 256 << 10;
/// Headers that a preflight may name, each of which is held against each pattern: browsers name a few.
const MOST_ASKED: usize = 100;
/// In front of what is packed; JSON begins with `[`.
const PACKED: char = 'z';

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CorsRule {
    /// Empty where the client gave none.
    #[serde(rename = "id", default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    /// Patterns with at most one `*`.
    #[serde(rename = "o")]
    pub(crate) origins: Vec<String>,
    #[serde(rename = "m")]
    pub(crate) methods: Vec<String>,
    /// Headers that pages may send: patterns with at most one `*`, in which case does not count.
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) headers: Vec<String>,
    /// Headers that pages may see.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) exposed: Vec<String>,
    /// Seconds for which a browser may remember the answer to a preflight.
    #[serde(rename = "age", default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_age: Option<u32>,
}

/// The rules of a bucket, in the order in which they count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CorsRules {
    pub(crate) rules: Vec<CorsRule>,
}

/// Rules that cannot be stored, or stored text that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoredCorsError {
    #[error("the rules take more than {LARGEST_STORED} bytes as they are stored")]
    TooLong,
    #[error("the stored CORS rules cannot be read")]
    Damaged,
}

impl CorsRules {
    /// As a container keeps them: JSON, packed where that is longer than a piece.
    pub(crate) fn to_text(&self) -> Result<String, StoredCorsError> {
        let json = serde_json::to_string(self).map_err(|_| StoredCorsError::Damaged)?;
        if json.len() as u64 > MOST_UNPACKED {
            return Err(StoredCorsError::TooLong);
        }
        let text = match json.len() <= PIECE && json.is_ascii() {
            true => json,
            false => packed(&json)?,
        };
        match text.len() <= LARGEST_STORED {
            true => Ok(text),
            false => Err(StoredCorsError::TooLong),
        }
    }

    /// Of stored text.
    pub(crate) fn of_text(text: &str) -> Result<Self, StoredCorsError> {
        let read = match text.strip_prefix(PACKED) {
            Some(packed) => serde_json::from_str(&unpacked(packed)?),
            None => serde_json::from_str(text),
        };
        read.map_err(|_| StoredCorsError::Damaged)
    }

    /// The rule that counts for a request with this method of a page of this origin, that sends these headers (in lower
    /// case).
    pub(crate) fn find(&self, origin: &str, method: &str, headers: &[String]) -> Option<&CorsRule> {
        let mut rules = self.rules.iter().filter(|_| headers.len() <= MOST_ASKED);
        rules.find(|rule| {
            rule.pattern_of(origin).is_some()
                && rule.methods.iter().any(|allowed| allowed == method)
                && headers.iter().all(|name| rule.allows_header(name))
        })
    }
}

impl CorsRule {
    /// The first pattern that this origin fits.
    fn pattern_of(&self, origin: &str) -> Option<&str> {
        let mut patterns = self.origins.iter().map(String::as_str);
        patterns.find(|pattern| fits(pattern, origin))
    }

    fn allows_header(&self, name: &str) -> bool {
        let mut patterns = self.headers.iter().map(|pattern| pattern.to_ascii_lowercase());
        patterns.any(|pattern| fits(&pattern, name))
    }

    /// Says in the headers of an answer what the rule allows a page of this origin, which it fits; `asked` are the
    /// headers that a preflight named.
    pub(crate) fn show(&self, answer: &mut HeaderMap, origin: &HeaderValue, asked: &[String]) {
        let is_for_all = self.pattern_of(&String::from_utf8_lossy(origin.as_bytes())) == Some("*");
        match is_for_all {
            true => answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
            false => {
                answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())
            }
        };
        for (name, words) in [
            (ACCESS_CONTROL_ALLOW_METHODS, self.methods.as_slice()),
            (ACCESS_CONTROL_ALLOW_HEADERS, asked),
            (ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.as_slice()),
        ] {
            if let Ok(value) = HeaderValue::try_from(words.join(", "))
                && !words.is_empty()
            {
                answer.insert(name, value);
            }
        }
        if let Some(seconds) = self.max_age {
            answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(seconds));
        }
    }
}

/// Says that an answer depends on who asks from where: every answer of a bucket with rules to a page.
pub(crate) fn vary(answer: &mut HeaderMap) {
    for name in [ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD] {
        vary_on(answer, &name);
    }
}

/// Copies what an answer says to pages into the answer that takes its place.
pub(crate) fn carry(from: &HeaderMap, into: &mut HeaderMap) {
    let is_for_pages = |name: &HeaderName| name.as_str().starts_with("access-control-") || *name == header::VARY;
    for (name, value) in from.iter().filter(|(name, _)| is_for_pages(name)) {
        into.insert(name.clone(), value.clone());
    }
}

/// The text that is stored, in pieces, each with its header; empty ones take away what was there.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = (&'static str, &str)> {
    PIECES.into_iter().enumerate().map(move |(number, (header, _))| {
        let start = (number * PIECE).min(text.len());
        // The text is ASCII.
        let piece = text.get(start..(start + PIECE).min(text.len()));
        (header, piece.unwrap_or_default())
    })
}

/// The text among the headers of a container; nothing where there are no rules.
pub(crate) fn text_in_headers(bucket: &HeaderMap) -> Option<String> {
    let piece = |(header, _): &(&str, &str)| bucket.get(*header)?.to_str().ok();
    let text: String = PIECES.iter().filter_map(piece).collect();
    Some(text).filter(|text| !text.is_empty())
}

/// The text among what the gateway knows of a container; nothing where there are no rules.
pub(crate) fn text_in_info(info: &request_pipeline::ContainerInfo) -> Option<String> {
    let pieces = PIECES.iter().filter_map(|(_, name)| info.sysmeta.get(*name));
    Some(pieces.map(String::as_str).collect::<String>()).filter(|text| !text.is_empty())
}

fn packed(json: &str) -> Result<String, StoredCorsError> {
    let mut bytes = Vec::new();
    let mut encoder = ZlibEncoder::new(json.as_bytes(), Compression::best());
    encoder.read_to_end(&mut bytes).map_err(|_| StoredCorsError::Damaged)?;
    Ok(format!("{PACKED}{}", STANDARD_NO_PAD.encode(bytes)))
}

fn unpacked(packed: &str) -> Result<String, StoredCorsError> {
    let bytes = STANDARD_NO_PAD.decode(packed).map_err(|_| StoredCorsError::Damaged)?;
    let mut json = String::new();
    let mut decoder = ZlibDecoder::new(&*bytes).take(MOST_UNPACKED);
    decoder
        .read_to_string(&mut json)
        .map_err(|_| StoredCorsError::Damaged)?;
    Ok(json)
}

/// Whether a text fits a pattern, in which one `*` stands for any text, or none.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((front, back)) => {
            text.len() >= front.len() + back.len() && text.starts_with(front) && text.ends_with(back)
        }
    }
}
