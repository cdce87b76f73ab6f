//! Manifests as clients send them.
//!
//! Comes in: the body of a PUT. Goes out: segments to be looked up, or the words in which OpenStack Swift
//! refuses them, one line per segment that is wrong.
//! Always holds: every entry is either data or names an object by container and name; nothing here asks
//! storage. The caller, who has read the body, bounds its size; memory is then bounded by the number of
//! segments that a manifest may have, whatever it says.

use super::manifest::{BASE64, names};
use base64::Engine;
use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use vocabulary::{Fault, RangeSet};

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ManifestEntry {
    /// These bytes.
    Data(Bytes),
    /// An object, to be looked up.
    Object(WantedObject),
}

/// What a client says of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedObject {
    /// As it was sent, for messages.
    pub(crate) path: String,
    pub(crate) etag: Option<String>,
    pub(crate) size: Option<i128>,
    pub(crate) range: Option<RangeSet>,
}

impl WantedObject {
    /// `/container/object`.
    pub(crate) fn name(&self) -> String {
        format!("/{}", self.path.trim_start_matches('/'))
    }
}

/// Why a manifest is refused: 400 with this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestRefusal {
    /// It is no list at all. Swift calls this one HTML.
    Whole(&'static str),
    /// A line per problem.
    Lines(String),
}

/// What is wrong with one entry, for the client.
struct EntryProblem(Cow<'static, str>);

impl From<&'static str> for EntryProblem {
    fn from(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl From<String> for EntryProblem {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// Problems that are reported one by one: a manifest of millions of empty entries is not worth millions of lines.
const MOST_PROBLEMS: usize = 1000;
/// Some editors begin a file with it; Python's JSON passes over it, too.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const TOO_SMALL: &str = "too small; each segment must be at least 1 byte.";

/// Reads the manifest that is to be stored as `/container/object`; of one with more than `most` objects no more
/// than are needed to see that.
pub(crate) fn read(json: &[u8], own_name: &str, most: usize) -> Result<Vec<ManifestEntry>, ManifestRefusal> {
    let json = json.strip_prefix(BYTE_ORDER_MARK).unwrap_or(json);
    let not_json = |_| ManifestRefusal::Whole("Manifest must be valid JSON.\n");
    // Once to see what it is, which needs no memory, however many entries there are.
    serde_json::from_slice::<IgnoredAny>(json).map_err(not_json)?;
    if !json.trim_ascii_start().starts_with(b"[") {
        return Err(ManifestRefusal::Whole("Manifest must be a list.\n"));
    }
    let mut reading = Reading {
        own_name,
        most,
        entries: Vec::new(),
        objects: 0,
        has_data: false,
        problems: String::new(),
        wrong: 0,
    };
    serde_json::Deserializer::from_slice(json)
        .deserialize_seq(&mut reading)
        .map_err(not_json)?;
    reading.finish()
}

/// How many entries the manifest has that a client sends for `/container/object`, or the refusal's text.
pub fn check_manifest(json: &[u8], own_name: &str, most: usize) -> Result<usize, Fault> {
    match read(json, own_name, most) {
        Ok(entries) => Ok(entries.len()),
        Err(ManifestRefusal::Whole(text)) => Err(Fault::caller(text)),
        Err(ManifestRefusal::Lines(text)) => Err(Fault::caller(text)),
    }
}

/// A list on its way through: one entry at a time is in memory as JSON.
struct Reading<'a> {
    own_name: &'a str,
    most: usize,
    entries: Vec<ManifestEntry>,
    objects: usize,
    has_data: bool,
    problems: String,
    /// Problems so far, whether or not they were written down.
    wrong: usize,
}

impl<'de> Visitor<'de> for &mut Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of segments")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut next = items.next_element::<Value>()?;
        for index in 0.. {
            let Some(item) = next.take() else { break };
            if self.wrong > MOST_PROBLEMS {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
            next = items.next_element()?;
            self.take(index, item, next.is_none());
        }
        Ok(())
    }
}

impl Reading<'_> {
    fn take(&mut self, index: usize, item: Value, is_last: bool) {
        let Value::Object(fields) = item else {
            return self.refuse(index, "not a JSON object");
        };
        let is_data = fields.contains_key("data");
        self.has_data |= is_data;
        self.objects += usize::from(!is_data);
        let read = match is_data {
            true => read_data(&fields),
            false => read_object(fields, self.own_name, is_last),
        };
        match read {
            // One too many tells that there are.
            Ok(entry) if self.objects <= self.most.saturating_add(1) => self.entries.push(entry),
            Ok(_) => {}
            Err(problem) => self.refuse(index, &problem.0),
        }
    }

    fn refuse(&mut self, index: usize, problem: &str) {
        self.wrong += 1;
        match self.wrong {
            ..=MOST_PROBLEMS => self.problems.push_str(&format!("Index {index}: {problem}\n")),
            _ => self.problems.push_str("What else is wrong is not listed.\n"),
        }
    }

    fn finish(mut self) -> Result<Vec<ManifestEntry>, ManifestRefusal> {
        if self.has_data && self.objects == 0 {
            self.problems
                .push_str("Inline data segments require at least one object-backed segment.\n");
        }
        match self.problems.is_empty() {
            true => Ok(self.entries),
            false => Err(ManifestRefusal::Lines(self.problems)),
        }
    }
}

fn check_keys(fields: &Map<String, Value>, known: &[&str]) -> Result<(), EntryProblem> {
    let mut extra: Vec<&str> = fields
        .keys()
        .map(String::as_str)
        .filter(|key| !known.contains(key))
        .collect();
    if extra.is_empty() {
        return Ok(());
    }
    extra.sort_unstable();
    Err(format!("extraneous keys \"{}\"", extra.join("\", \"")).into())
}

fn read_data(fields: &Map<String, Value>) -> Result<ManifestEntry, EntryProblem> {
    check_keys(fields, &["data"])?;
    let data = fields.get("data").and_then(Value::as_str).and_then(decode);
    let data = data.ok_or("data must be valid base64")?;
    match data.is_empty() {
        true => Err(TOO_SMALL.into()),
        false => Ok(ManifestEntry::Data(data.into())),
    }
}

/// Base64 with as much padding as it needs, or more.
fn decode(text: &str) -> Option<Vec<u8>> {
    let bare = text.trim_end_matches('=');
    let needed = (4 - bare.len() % 4) % 4;
    if text.len() - bare.len() < needed {
        return None;
    }
    BASE64.decode(format!("{bare}{}", &"==="[..needed])).ok()
}

fn read_object(fields: Map<String, Value>, own_name: &str, is_last: bool) -> Result<ManifestEntry, EntryProblem> {
    check_keys(&fields, &["path", "etag", "size_bytes", "range"])?;
    let path = match fields.get("path") {
        Some(Value::String(path)) => path.clone(),
        Some(_) => return Err("\"path\" must be a string".into()),
        None => return Err("missing keys \"path\"".into()),
    };
    if names(&path).is_none() {
        return Err("path does not refer to an object. Path must be of the form /container/object.".into());
    }
    let etag = match fields.get("etag") {
        None | Some(Value::Null) => None,
        Some(Value::String(etag)) => Some(etag.clone()),
        Some(_) => return Err("\"etag\" must be a string or null (if provided)".into()),
    };
    let size = match fields.get("size_bytes") {
        None | Some(Value::Null) => None,
        Some(value) => Some(read_size(value).ok_or("invalid size_bytes")?),
    };
    if path.trim_start_matches('/') == own_name.trim_start_matches('/') {
        return Err("manifest must not include itself as a segment".into());
    }
    if size == Some(0) && !is_last {
        return Err(TOO_SMALL.into());
    }
    let range = match fields.get("range") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => Some(read_range(text, size)?),
        Some(_) => return Err("invalid range".into()),
    };
    let wish = WantedObject {
        path,
        etag,
        size,
        range,
    };
    Ok(ManifestEntry::Object(wish))
}

/// As Python's `int` reads it.
fn read_size(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Number(number) => match number.as_i128() {
            Some(number) => Some(number),
            // Cut off after the point; what is not finite is no number.
            None => number.as_f64().filter(|n| n.is_finite()).map(|n| n.trunc() as i128),
        },
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn read_range(text: &str, size: Option<i128>) -> Result<RangeSet, EntryProblem> {
    let range = RangeSet::parse(&format!("bytes={text}")).ok_or("invalid range")?;
    if text.contains(',') {
        return Err("multiple ranges (only one allowed)".into());
    }
    let unsatisfiable = |size: u64| range.resolve(size).is_empty();
    match size.map(|size| u64::try_from(size).unwrap_or(0)) {
        Some(size) if unsatisfiable(size) => Err("unsatisfiable range".into()),
        _ => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(json: &str) -> String {
        match read(json.as_bytes(), "/c2/m", 3) {
            Ok(_) => "taken".into(),
            Err(ManifestRefusal::Whole(text)) => text.into(),
            Err(ManifestRefusal::Lines(text)) => text,
        }
    }

    /// What OpenStack Swift answered.
    #[test]
    fn one_line_per_problem() {
        let no_object = "path does not refer to an object. Path must be of the form /container/object.";
        for (json, expected) in [
            ("x", "Manifest must be valid JSON.\n".to_owned()),
            ("{}", "Manifest must be a list.\n".into()),
            ("[]", "taken".into()),
            ("[\"a\"]", "Index 0: not a JSON object\n".into()),
            (
                r#"[{"path": "/c2/a", "foo": 1, "bar": 2}]"#,
                "Index 0: extraneous keys \"bar\", \"foo\"\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "etag": 5}]"#,
                "Index 0: \"etag\" must be a string or null (if provided)\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "size_bytes": "x"}]"#,
                "Index 0: invalid size_bytes\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "size_bytes": []}]"#,
                "Index 0: invalid size_bytes\n".into(),
            ),
            (r#"[{"path": "/c2/a", "size_bytes": 5.5}]"#, "taken".into()),
            (r#"[{"path": 5}]"#, "Index 0: \"path\" must be a string\n".into()),
            (r#"[{"path": "/c2"}]"#, format!("Index 0: {no_object}\n")),
            (r#"[{"path": "/c2/"}]"#, format!("Index 0: {no_object}\n")),
            (r#"[{"path": "//c2/a"}]"#, "taken".into()),
            (
                r#"[{"path": "c2/m"}]"#,
                "Index 0: manifest must not include itself as a segment\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "range": "0-1,3-4"}]"#,
                "Index 0: multiple ranges (only one allowed)\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "range": "3-2"}]"#,
                "Index 0: invalid range\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "range": 5}, null]"#,
                "Index 0: invalid range\nIndex 1: not a JSON object\n".into(),
            ),
            (
                r#"[{"path": "/c2/a", "size_bytes": 5, "range": "9-"}]"#,
                "Index 0: unsatisfiable range\n".into(),
            ),
            (r#"[{"path": "/c2/a", "range": "9-"}]"#, "taken".into()),
            (r#"[{"path": "/c2/a", "range": " 1 - 2 "}]"#, "taken".into()),
            (
                r#"[{"data": ""}]"#,
                format!("Index 0: {TOO_SMALL}\nInline data segments require at least one object-backed segment.\n"),
            ),
            (
                r#"[{"path": "/c2/a"}, {"data": "eA"}]"#,
                "Index 1: data must be valid base64\n".into(),
            ),
            (r#"[{"path": "/c2/a"}, {"data": "eHk====="}]"#, "taken".into()),
            (
                r#"[{"path": "/c2/a", "size_bytes": 0}, {"path": "/c2/a", "size_bytes": 0}]"#,
                format!("Index 0: {TOO_SMALL}\n"),
            ),
        ] {
            assert_eq!(refused(json), expected, "{json}");
        }
    }

    #[test]
    fn what_is_too_much_is_neither_kept_nor_reported() {
        let objects = format!("[{}]", [r#"{"path": "/c/o"}"#; 9].join(","));
        assert_eq!(read(objects.as_bytes(), "/c/m", 3).map(|entries| entries.len()), Ok(4));
        let text = refused(&format!("[{}]", vec!["{}"; 5000].join(",")));
        assert_eq!(text.lines().count(), MOST_PROBLEMS + 1);
        assert!(
            text.ends_with("Index 999: missing keys \"path\"\nWhat else is wrong is not listed.\n"),
            "{text}"
        );
        assert_eq!(
            refused(&format!("[{}, x]", vec!["{}"; 5000].join(","))),
            "Manifest must be valid JSON.\n"
        );
        assert_eq!(refused("\u{feff}[]"), "taken");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", data in "[a-zA-Z0-9+/=]{0,12}") {
            let _ = refused(&text);
            let _ = refused(&format!(r#"[{{"path": "/c/o", "range": {text:?}}}]"#));
            if let Some(bytes) = decode(&data) {
                prop_assert!(bytes.len() <= data.len());
            }
        }
    }
}
