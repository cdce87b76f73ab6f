//! Manifests as they are stored: a JSON list of segments, in OpenStack Swift's words.
//!
//! `[{"name": "/c/o", "bytes": 5, "hash": …, "content_type": …, "last_modified": …, "range": "0-3",
//! "sub_slo": true}, {"data": "base64"}]`. Sizes may be texts, as old clusters wrote them.
//! Always holds: a [`Segment`]'s `length` is what it adds to the large object; its range lies inside its
//! object; what is no manifest is refused whole.

use crate::large_objects::segments::md5_hex;
use base64::Engine;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use md5::{Digest, Md5};
use serde::Deserialize;
use serde_json::{Map, Value};
use vocabulary::ByteRange;

/// Base64 as Python reads it: it does not look at bits that are left over.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// It is not a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAManifest;

/// One run of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What its bytes are.
    pub content: Content,
    /// How many it adds.
    pub length: u64,
}

/// What a segment's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These.
    Data(Bytes),
    /// Those of an object.
    Object(Object),
}

/// An object in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `/container/object`.
    pub name: String,
    /// Its entity tag.
    pub etag: String,
    /// All of its bytes.
    pub size: u64,
    /// The bytes that count, when not all do.
    pub range: Option<ByteRange>,
    /// It is a large object itself.
    pub is_large: bool,
}

impl Object {
    /// `container`, `object`.
    pub fn names(&self) -> Option<(&str, &str)> {
        names(&self.name)
    }
}

/// `/container/object` → both; `None` when one is missing.
pub fn names(path: &str) -> Option<(&str, &str)> {
    let (container, object) = path.trim_start_matches('/').split_once('/')?;
    (!container.is_empty() && !object.is_empty()).then_some((container, object))
}

#[derive(Deserialize)]
struct Stored {
    name: Option<String>,
    bytes: Option<Number>,
    hash: Option<String>,
    content_type: Option<String>,
    range: Option<String>,
    #[serde(default)]
    sub_slo: bool,
    data: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Text(String),
}

impl Number {
    fn value(&self) -> Option<u64> {
        match self {
            Number::Plain(number) => Some(*number),
            Number::Text(text) => text.trim().parse().ok(),
        }
    }
}

/// Reads a stored manifest.
pub fn read(json: &[u8]) -> Result<Vec<Segment>, NotAManifest> {
    let stored: Vec<Stored> = serde_json::from_slice(json).map_err(|_| NotAManifest)?;
    stored
        .into_iter()
        .map(|stored| segment(stored).ok_or(NotAManifest))
        .collect()
}

fn segment(stored: Stored) -> Option<Segment> {
    if let Some(data) = stored.data {
        let data = Bytes::from(BASE64.decode(data).ok()?);
        let length = data.len() as u64;
        let content = Content::Data(data);
        return Some(Segment { content, length });
    }
    // Before manifests said so by themselves, large segments had their size in the content type.
    let large = stored
        .content_type
        .as_deref()
        .filter(|_| stored.sub_slo)
        .and_then(swift_bytes);
    let size = large.or(stored.bytes?.value())?;
    let range = match stored.range.filter(|range| !range.is_empty()) {
        None => None,
        Some(text) => Some(read_range(&text).filter(|range| range.end <= size)?),
    };
    let length = range.map_or(size, |range| range.len());
    let object = Object {
        name: stored.name?,
        etag: stored.hash.unwrap_or_default(),
        size,
        range,
        is_large: stored.sub_slo,
    };
    names(&object.name)?;
    let content = Content::Object(object);
    Some(Segment { content, length })
}

/// `first-last` as it is stored: both are there, last included.
fn read_range(text: &str) -> Option<ByteRange> {
    let (first, last) = text.split_once('-')?;
    let start: u64 = first.parse().ok()?;
    let end: u64 = last.parse::<u64>().ok()?.checked_add(1)?;
    (start < end).then_some(ByteRange { start, end })
}

fn swift_bytes(content_type: &str) -> Option<u64> {
    let (_, last) = content_type.rsplit_once(';')?;
    last.trim().strip_prefix("swift_bytes=")?.parse().ok()
}

/// Length of the large object; `None` when no object can be so large.
pub fn length(segments: &[Segment]) -> Option<u64> {
    segments
        .iter()
        .try_fold(0u64, |sum, segment| sum.checked_add(segment.length))
}

/// Entity tag of the large object: the MD5 of those of its segments.
pub fn etag(segments: &[Segment]) -> String {
    let mut md5 = Md5::new();
    for segment in segments {
        match &segment.content {
            Content::Data(bytes) => md5.update(md5_hex(bytes)),
            Content::Object(object) => {
                md5.update(&object.etag);
                if let Some(range) = &object.range {
                    md5.update(format!(":{}-{};", range.start, range.end - 1));
                }
            }
        }
    }
    vocabulary::hex::encode(md5.finalize())
}

/// A stored manifest as a client would send it.
pub fn raw(json: &[u8]) -> Result<String, NotAManifest> {
    let stored: Vec<Map<String, Value>> = serde_json::from_slice(json).map_err(|_| NotAManifest)?;
    // In alphabetical order of what they become.
    const NAMES: [(&str, &str); 5] = [
        ("data", "data"),
        ("hash", "etag"),
        ("name", "path"),
        ("range", "range"),
        ("bytes", "size_bytes"),
    ];
    let segments = stored.into_iter().map(|mut stored| {
        let fields = NAMES.iter();
        let kept = fields.filter_map(|(stored_as, sent_as)| Some(((*sent_as).to_owned(), stored.remove(*stored_as)?)));
        Value::Object(kept.collect())
    });
    Ok(pythonic::json(&Value::Array(segments.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STORED: &str = r#"[{"name": "/c/a", "bytes": 5, "hash": "594f803b380a41396ed63dca39503542", "content_type": "application/octet-stream", "last_modified": "2026-11-20T15:17:12.000000"}, {"name": "/c/b", "bytes": 10, "hash": "82136b4240d6ce4ea7d03e51469a393b", "content_type": "application/octet-stream", "last_modified": "2026-11-20T15:17:12.000000", "range": "2-5"}, {"data": "eHl6"}]"#;

    /// Stored, listed and sent by OpenStack Swift for `aaaaa`, `bbbb` of another and `xyz`.
    #[test]
    fn a_manifest_of_openstacks() {
        let segments = read(STORED.as_bytes()).unwrap();
        assert_eq!(length(&segments), Some(12));
        assert_eq!(etag(&segments), "936fa5859bd447386d1c599c71345eaf");
        assert_eq!(
            raw(STORED.as_bytes()).unwrap(),
            "[{\"etag\": \"594f803b380a41396ed63dca39503542\", \"path\": \"/c/a\", \"size_bytes\": 5}, \
             {\"etag\": \"82136b4240d6ce4ea7d03e51469a393b\", \"path\": \"/c/b\", \"range\": \"2-5\", \"size_bytes\": 10}, \
             {\"data\": \"eHl6\"}]"
        );
        assert_eq!(etag(&[]), "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn old_manifests() {
        let old = r#"[{"name": "/c/a", "bytes": "5", "hash": "x"}, {"name": "/c/m", "sub_slo": true, "bytes": 99, "hash": "y", "content_type": "a/b;swift_bytes=7"}]"#;
        let segments = read(old.as_bytes()).unwrap();
        assert_eq!(length(&segments), Some(12));
    }

    #[test]
    fn what_is_no_manifest_is_refused_whole() {
        for wrong in [
            "",
            "{}",
            "[1]",
            "[{}]",
            r#"[{"name": "/c", "bytes": 1, "hash": "x"}]"#,
            r#"[{"name": "/c/o", "hash": "x"}]"#,
            r#"[{"name": "/c/o", "bytes": 5, "hash": "x", "range": "3-5"}]"#,
            r#"[{"name": "/c/o", "bytes": 5, "hash": "x", "range": "3"}]"#,
            r#"[{"data": "!"}]"#,
        ] {
            assert_eq!(read(wrong.as_bytes()), Err(NotAManifest), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text in "\\PC*", bytes in any::<Vec<u8>>()) {
            let _ = (read(&bytes), raw(&bytes), read(text.as_bytes()), raw(text.as_bytes()));
        }

        #[test]
        fn any_segment_is_read_or_refused(name in "[/a-c]{0,6}", bytes in "[0-9]{0,21}", range in "[0-9-]{0,8}", large: bool) {
            let text = format!(r#"[{{"name": "{name}", "bytes": "{bytes}", "hash": "x", "range": "{range}", "sub_slo": {large}}}]"#);
            if let Ok(segments) = read(text.as_bytes()) {
                prop_assert!(length(&segments).is_some());
                let _ = etag(&segments);
            }
        }
    }
}
