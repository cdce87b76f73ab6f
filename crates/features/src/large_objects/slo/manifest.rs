//! Manifests as they are stored: a JSON list of segments, in OpenStack Swift's words.
//!
//! `[{"name": "/c/o", "bytes": 5, "hash": …, "content_type": …, "last_modified": …, "range": "0-3",
//! "sub_slo": true}, {"data": "base64"}]`. Sizes may be texts, as old clusters wrote them.
//! Read as it comes, entry by entry: a [`SegmentList`] takes no more memory than its text, and less where that has
//! content types and times. Always holds: a [`Segment`]'s `length` is what it adds to the large object; its range lies
//! inside its object; what is no manifest is refused whole.

use super::json_list::{JsonDocument, JsonList, NotJson};
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

impl From<NotJson> for NotAManifest {
    fn from(_: NotJson) -> Self {
        Self
    }
}

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

/// The segments of a large object, as small as they can be: there may be half a million of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SegmentList {
    rows: Vec<Row>,
    objects: Vec<Object>,
    /// The bytes of all data segments, one behind the other.
    data: Bytes,
    /// It is longer than an object can be.
    is_endless: bool,
}

/// A segment in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    /// Where it ends in the large object.
    end: u64,
    /// Where its bytes begin in `data`, or which of `objects` it is.
    at: u32,
    is_data: bool,
}

impl SegmentList {
    /// How many segments it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Length of the large object; `None` when no object can be so large.
    pub fn length(&self) -> Option<u64> {
        (!self.is_endless).then(|| self.begins(self.rows.len()))
    }

    /// Its segments in their order.
    pub fn iter(&self) -> impl Iterator<Item = Segment> {
        (0..self.rows.len()).filter_map(|index| self.segment(index))
    }

    /// A segment by its number, from 0.
    pub fn segment(&self, index: usize) -> Option<Segment> {
        let row = self.rows.get(index)?;
        let length = row.end - self.begins(index);
        let content = match row.is_data {
            true => Content::Data(
                self.data
                    .slice(row.at as usize..row.at as usize + usize::try_from(length).ok()?),
            ),
            false => Content::Object(self.objects.get(row.at as usize)?.clone()),
        };
        Some(Segment { content, length })
    }

    /// Where a segment begins in the large object.
    pub(super) fn begins(&self, index: usize) -> u64 {
        index
            .checked_sub(1)
            .and_then(|before| self.rows.get(before))
            .map_or(0, |before| before.end)
    }

    /// Which segment has this byte of the large object, if one does.
    pub(super) fn at(&self, byte: u64) -> usize {
        self.rows.partition_point(|row| row.end <= byte)
    }

    /// The bytes from `wanted.start` on, if data has them: as many as are wanted and stand in this and the data
    /// segments that follow it.
    pub(super) fn data_at(&self, index: usize, wanted: ByteRange) -> Option<Bytes> {
        let first = self.rows.get(index).filter(|row| row.is_data)?;
        let mut end = wanted.start;
        for row in self.rows[index..].iter().take_while(|row| row.is_data) {
            end = row.end.min(wanted.end);
            if end == wanted.end {
                break;
            }
        }
        let start = first.at as usize + usize::try_from(wanted.start - self.begins(index)).ok()?;
        let length = usize::try_from(end - wanted.start).ok()?;
        let bytes = self.data.slice(start..start + length);
        // A few bytes do not keep all others in memory until they are sent.
        Some(match length < self.data.len() / 2 {
            true => Bytes::copy_from_slice(&bytes),
            false => bytes,
        })
    }

    /// Entity tag of the large object: the MD5 of those of its segments.
    pub fn etag(&self) -> String {
        let mut md5 = Md5::new();
        for segment in self.iter() {
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

    /// Bytes of memory that it takes.
    pub(super) fn weight(&self) -> u64 {
        let texts = self
            .objects
            .iter()
            .map(|object| object.name.capacity() + object.etag.capacity());
        weight(
            self.rows.len(),
            self.objects.len(),
            self.data.len() + texts.sum::<usize>(),
        )
    }

    fn add(&mut self, length: u64, at: usize, is_data: bool) -> Result<(), NotAManifest> {
        let end = self.begins(self.rows.len()).checked_add(length);
        self.is_endless |= end.is_none();
        self.rows.push(Row {
            end: end.unwrap_or(u64::MAX),
            at: u32::try_from(at).map_err(|_| NotAManifest)?,
            is_data,
        });
        Ok(())
    }
}

fn weight(rows: usize, objects: usize, texts: usize) -> u64 {
    (rows * size_of::<Row>() + objects * size_of::<Object>() + texts) as u64
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

/// A stored manifest on its way.
#[derive(Default)]
pub(super) struct ManifestReader {
    list: JsonList,
    manifest: SegmentList,
    data: Vec<u8>,
    texts: usize,
}

impl ManifestReader {
    /// Reads on.
    pub(super) fn push(&mut self, json: &[u8]) -> Result<(), NotAManifest> {
        let Self {
            list,
            manifest,
            data,
            texts,
        } = self;
        list.push(json, |entry| {
            let stored: Stored = serde_json::from_slice(entry).map_err(|_| NotAManifest)?;
            if let Some(text) = &stored.data {
                let begins = data.len();
                BASE64.decode_vec(text, data).map_err(|_| NotAManifest)?;
                return manifest.add((data.len() - begins) as u64, begins, true);
            }
            let (object, length) = object(stored).ok_or(NotAManifest)?;
            *texts += object.name.len() + object.etag.len();
            manifest.objects.push(object);
            manifest.add(length, manifest.objects.len() - 1, false)
        })
    }

    /// Bytes of memory that it takes so far.
    pub(super) fn weight(&self) -> u64 {
        let SegmentList { rows, objects, .. } = &self.manifest;
        weight(
            rows.capacity(),
            objects.capacity(),
            self.data.capacity() + self.texts + self.list.kept(),
        )
    }

    /// The manifest, when all has come.
    pub(super) fn finish(self) -> Result<SegmentList, NotAManifest> {
        let JsonDocument::List = self.list.finish()? else {
            return Err(NotAManifest);
        };
        let mut manifest = self.manifest;
        manifest.rows.shrink_to_fit();
        manifest.objects.shrink_to_fit();
        manifest.data = self.data.into_boxed_slice().into();
        Ok(manifest)
    }
}

/// Reads a stored manifest.
pub fn read(json: &[u8]) -> Result<SegmentList, NotAManifest> {
    let mut reader = ManifestReader::default();
    reader.push(json)?;
    reader.finish()
}

fn object(stored: Stored) -> Option<(Object, u64)> {
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
    Some((object, length))
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

/// A stored manifest on its way to be as a client would send it.
#[derive(Default)]
pub(super) struct RawManifest {
    list: JsonList,
    text: String,
}

impl RawManifest {
    /// Reads on.
    pub(super) fn push(&mut self, json: &[u8]) -> Result<(), NotAManifest> {
        // In alphabetical order of what they become.
        const NAMES: [(&str, &str); 5] = [
            ("data", "data"),
            ("hash", "etag"),
            ("name", "path"),
            ("range", "range"),
            ("bytes", "size_bytes"),
        ];
        let Self { list, text } = self;
        list.push(json, |entry| {
            let mut stored: Map<String, Value> = serde_json::from_slice(entry).map_err(|_| NotAManifest)?;
            let fields = NAMES.iter();
            let kept =
                fields.filter_map(|(stored_as, sent_as)| Some(((*sent_as).to_owned(), stored.remove(*stored_as)?)));
            text.push_str(if text.is_empty() { "[" } else { ", " });
            text.push_str(&pythonic::json(&Value::Object(kept.collect())));
            Ok(())
        })
    }

    /// The text, when all has come.
    pub(super) fn finish(mut self) -> Result<String, NotAManifest> {
        let JsonDocument::List = self.list.finish()? else {
            return Err(NotAManifest);
        };
        self.text.push_str(if self.text.is_empty() { "[]" } else { "]" });
        Ok(self.text)
    }
}

/// A stored manifest as a client would send it.
pub fn raw(json: &[u8]) -> Result<String, NotAManifest> {
    let mut raw = RawManifest::default();
    raw.push(json)?;
    raw.finish()
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
        assert_eq!(segments.length(), Some(12));
        assert_eq!(segments.etag(), "936fa5859bd447386d1c599c71345eaf");
        assert_eq!(
            raw(STORED.as_bytes()).unwrap(),
            "[{\"etag\": \"594f803b380a41396ed63dca39503542\", \"path\": \"/c/a\", \"size_bytes\": 5}, \
             {\"etag\": \"82136b4240d6ce4ea7d03e51469a393b\", \"path\": \"/c/b\", \"range\": \"2-5\", \"size_bytes\": 10}, \
             {\"data\": \"eHl6\"}]"
        );
        assert_eq!(read(b"[]").unwrap().etag(), "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn old_manifests() {
        let old = r#"[{"name": "/c/a", "bytes": "5", "hash": "x"}, {"name": "/c/m", "sub_slo": true, "bytes": 99, "hash": "y", "content_type": "a/b;swift_bytes=7"}]"#;
        let segments = read(old.as_bytes()).unwrap();
        assert_eq!(segments.length(), Some(12));
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

    #[test]
    fn half_a_million_entries_take_no_more_than_their_text() {
        let text = format!("[{}]", vec![r#"{"data": "YQ=="}"#; 460_000].join(", "));
        let mut reader = ManifestReader::default();
        let mut most = 0;
        for piece in text.as_bytes().chunks(1 << 16) {
            reader.push(piece).unwrap();
            most = most.max(reader.weight());
        }
        let manifest = reader.finish().unwrap();
        assert_eq!(manifest.length(), Some(460_000));
        assert!(
            most < 2 * text.len() as u64 && manifest.weight() < text.len() as u64,
            "{most}"
        );
        let run = ByteRange { start: 3, end: 400_000 };
        assert_eq!(manifest.data_at(manifest.at(3), run).unwrap().len(), 399_997);
    }

    #[test]
    fn bytes_of_data_and_of_objects() {
        let text = r#"[{"data": "YWI="}, {"data": "Y2Rl"}, {"name": "/c/o", "bytes": 0}, {"name": "/c/o", "bytes": 4}, {"data": "Zg=="}]"#;
        let manifest = read(text.as_bytes()).unwrap();
        assert_eq!((manifest.len(), manifest.length()), (5, Some(10)));
        let data = |start, end| manifest.data_at(manifest.at(start), ByteRange { start, end });
        assert_eq!(data(1, 4).as_deref(), Some(&b"bcd"[..]));
        assert_eq!(data(3, 10).as_deref(), Some(&b"de"[..]));
        assert_eq!((data(5, 6), manifest.at(5), manifest.at(10)), (None, 3, 5));
        assert_eq!(data(9, 10).as_deref(), Some(&b"f"[..]));
        let is_part = |bytes: Bytes| manifest.data.as_ptr_range().contains(&bytes.as_ptr());
        assert!(is_part(data(0, 5).unwrap()) && !is_part(data(0, 2).unwrap()));
        let lengths: Vec<_> = manifest.iter().map(|segment| segment.length).collect();
        assert_eq!(lengths, [2, 3, 0, 4, 1]);
        let endless = format!(
            "[{}]",
            [r#"{"name": "/c/o", "bytes": 18446744073709551615}"#; 2].join(",")
        );
        assert_eq!(read(endless.as_bytes()).unwrap().length(), None);
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
                prop_assert!(segments.length().is_some());
                let _ = segments.etag();
            }
        }
    }
}
