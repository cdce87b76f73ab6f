//! Manifests as clients send them.
//!
//! Comes in: the body of a PUT. Goes out: segments to be looked up, or the words in which OpenStack Swift
//! refuses them, one line per segment that is wrong.
//! Always holds: every entry is either data or names an object by container and name; nothing here asks
//! storage. The caller bounds the size of the body; what is kept of it is one entry and as many segments as a manifest
//! may have, whatever it says.
//! OpenStack Swift counts objects alone; here segments of data have a limit as well ([`MOST_DATA`]).

mod fields;

use self::fields::{SentEntry, SentFields, SentValue};
use super::json_list::{JsonDocument, JsonList, NotJson};
use super::manifest::{BASE64, names};
use base64::Engine;
use bytes::Bytes;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::BTreeSet;
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

/// Why a manifest is refused, in words for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestRefusal {
    /// It is no list at all: 400. Swift calls this one HTML.
    Whole(&'static str),
    /// A line per problem: 400.
    Lines(String),
    /// It has too many segments: 413.
    TooMany(String),
}

impl From<NotJson> for ManifestRefusal {
    fn from(_: NotJson) -> Self {
        Self::Whole("Manifest must be valid JSON.\n")
    }
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
/// Segments of data that a manifest may have, or as many as objects where those may be more: enough for several between
/// any two objects, and no more memory than the objects take.
const MOST_DATA: usize = 10_000;

const TOO_SMALL: &str = "too small; each segment must be at least 1 byte.";

/// How many entries the manifest has that a client sends for `/container/object`, or the refusal's text.
pub fn check_manifest(json: &[u8], own_name: &str, most: usize) -> Result<usize, Fault> {
    match read(json, own_name, most) {
        Ok(entries) => Ok(entries.len()),
        Err(ManifestRefusal::Whole(text)) => Err(Fault::caller(text)),
        Err(ManifestRefusal::Lines(text)) => Err(Fault::caller(text)),
        Err(ManifestRefusal::TooMany(text)) => Err(Fault::caller(format!("{text}\n"))),
    }
}

fn read(json: &[u8], own_name: &str, most: usize) -> Result<Vec<ManifestEntry>, ManifestRefusal> {
    let mut input = ManifestInput::new(own_name.to_owned(), most);
    input.push(json)?;
    input.finish()
}

/// A client's list on its way.
pub(super) struct ManifestInput {
    list: JsonList,
    /// `/container/object` of the manifest itself.
    own_name: String,
    most_objects: usize,
    most_data: usize,
    /// The entry that came last: what may be in it depends on whether another follows.
    last: Option<SentEntry>,
    index: usize,
    entries: Vec<ManifestEntry>,
    /// Bytes of what the entries say.
    texts: usize,
    objects: usize,
    data: usize,
    problems: String,
    /// Problems so far, whether or not they were written down.
    wrong: usize,
}

impl ManifestInput {
    /// The list that is to be stored as `own_name`, with at most `most` objects.
    pub(super) fn new(own_name: String, most: usize) -> Self {
        Self {
            list: JsonList::default(),
            own_name,
            most_objects: most,
            most_data: most.max(MOST_DATA),
            last: None,
            index: 0,
            entries: Vec::new(),
            texts: 0,
            objects: 0,
            data: 0,
            problems: String::new(),
            wrong: 0,
        }
    }

    /// Reads on.
    pub(super) fn push(&mut self, json: &[u8]) -> Result<(), NotJson> {
        let mut list = std::mem::take(&mut self.list);
        let read = list.push(json, |entry| self.add(entry));
        self.list = list;
        read
    }

    /// Bytes of memory that it takes so far.
    pub(super) fn weight(&self) -> u64 {
        let entries = self.entries.capacity() * size_of::<ManifestEntry>() + self.texts;
        (self.list.kept() + entries + self.problems.capacity()) as u64
    }

    /// What is to be looked up, when all has come.
    pub(super) fn finish(mut self) -> Result<Vec<ManifestEntry>, ManifestRefusal> {
        if let JsonDocument::Other(json) = std::mem::take(&mut self.list).finish()? {
            serde_json::from_slice::<IgnoredAny>(&json).map_err(|_| NotJson)?;
            return Err(ManifestRefusal::Whole("Manifest must be a list.\n"));
        }
        if let Some(last) = self.last.take().filter(|_| self.wrong <= MOST_PROBLEMS) {
            self.take(last, true);
        }
        if self.data > 0 && self.objects == 0 {
            self.problems
                .push_str("Inline data segments require at least one object-backed segment.\n");
        }
        if !self.problems.is_empty() {
            return Err(ManifestRefusal::Lines(self.problems));
        }
        for (count, most, what) in [
            (self.objects, self.most_objects, "object-backed"),
            (self.data, self.most_data, "inline data"),
        ] {
            if count > most {
                let text = format!("Number of {what} segments must be <= {most}");
                return Err(ManifestRefusal::TooMany(text));
            }
        }
        Ok(self.entries)
    }

    fn add(&mut self, entry: &[u8]) -> Result<(), NotJson> {
        if self.wrong > MOST_PROBLEMS {
            return serde_json::from_slice(entry).map(|IgnoredAny| ()).map_err(|_| NotJson);
        }
        let entry = serde_json::from_slice(entry).map_err(|_| NotJson)?;
        if let Some(before) = self.last.replace(entry) {
            self.take(before, false);
        }
        Ok(())
    }

    fn take(&mut self, entry: SentEntry, is_last: bool) {
        let index = self.index;
        self.index += 1;
        let SentEntry::Fields(fields) = entry else {
            return self.refuse(index, "not a JSON object");
        };
        let read = match fields.data.is_some() {
            true => {
                self.data += 1;
                read_data(*fields)
            }
            false => {
                self.objects += 1;
                read_object(*fields, &self.own_name, is_last)
            }
        };
        match read {
            // What is too much is counted, and not kept.
            Ok(entry) if self.objects <= self.most_objects && self.data <= self.most_data => {
                self.texts += entry.texts();
                self.entries.push(entry);
            }
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
}

impl ManifestEntry {
    /// Bytes that it has elsewhere.
    fn texts(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len(),
            Self::Object(wish) => wish.path.capacity() + wish.etag.as_ref().map_or(0, String::capacity),
        }
    }
}

impl SentFields {
    /// Refuses keys besides those that an entry of its kind may have, of which `others` are not.
    fn check_keys(&self, others: &[(&str, &Option<SentValue>)]) -> Result<(), EntryProblem> {
        let others = others.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| *key);
        let extra: BTreeSet<&str> = self.extra.iter().map(String::as_str).chain(others).collect();
        if extra.is_empty() {
            return Ok(());
        }
        let listed: Vec<&str> = extra.into_iter().collect();
        Err(format!("extraneous keys \"{}\"", listed.join("\", \"")).into())
    }
}

fn read_data(fields: SentFields) -> Result<ManifestEntry, EntryProblem> {
    fields.check_keys(&[
        ("path", &fields.path),
        ("etag", &fields.etag),
        ("size_bytes", &fields.size_bytes),
        ("range", &fields.range),
    ])?;
    let data = match &fields.data {
        Some(SentValue::Text(text)) => decode(text),
        _ => None,
    };
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

fn read_object(fields: SentFields, own_name: &str, is_last: bool) -> Result<ManifestEntry, EntryProblem> {
    fields.check_keys(&[])?;
    let path = match fields.path {
        Some(SentValue::Text(path)) => path,
        Some(_) => return Err("\"path\" must be a string".into()),
        None => return Err("missing keys \"path\"".into()),
    };
    if names(&path).is_none() {
        return Err("path does not refer to an object. Path must be of the form /container/object.".into());
    }
    let etag = match fields.etag {
        None | Some(SentValue::Null) => None,
        Some(SentValue::Text(etag)) => Some(etag),
        Some(_) => return Err("\"etag\" must be a string or null (if provided)".into()),
    };
    let size = match fields.size_bytes {
        None | Some(SentValue::Null) => None,
        Some(value) => Some(read_size(&value).ok_or("invalid size_bytes")?),
    };
    if path.trim_start_matches('/') == own_name.trim_start_matches('/') {
        return Err("manifest must not include itself as a segment".into());
    }
    if size == Some(0) && !is_last {
        return Err(TOO_SMALL.into());
    }
    let range = match fields.range {
        None | Some(SentValue::Null) => None,
        Some(SentValue::Text(text)) if text.is_empty() => None,
        Some(SentValue::Text(text)) => Some(read_range(&text, size)?),
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
fn read_size(value: &SentValue) -> Option<i128> {
    match value {
        SentValue::Bool(value) => Some(i128::from(*value)),
        SentValue::Integer(number) => Some(*number),
        // Cut off after the point; what is not finite is no number.
        SentValue::Float(number) => number.is_finite().then(|| number.trunc() as i128),
        SentValue::Text(text) => text.trim().parse().ok(),
        SentValue::Null | SentValue::Other => None,
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
            Err(ManifestRefusal::Lines(text) | ManifestRefusal::TooMany(text)) => text,
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
        assert_eq!(refused(&objects), "Number of object-backed segments must be <= 3");
        let many = |data| format!(r#"[{{"path": "/c/o"}}{}]"#, r#",{"data":"YQ=="}"#.repeat(data));
        assert_eq!(refused(&many(MOST_DATA)), "taken");
        assert_eq!(
            refused(&many(MOST_DATA + 1)),
            "Number of inline data segments must be <= 10000"
        );
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

    /// Two million bytes each, of which nothing is to be kept.
    #[test]
    fn what_is_no_segment_takes_no_memory() {
        let data = r#"{"data":"YQ=="},"#.repeat(130_000);
        let keys: String = (0..170_000).map(|key| format!("\"{key:06}\":0,")).collect();
        for (json, kept) in [
            (format!("[{}0]", "0,".repeat(1_000_000)), 200_000),
            (format!("[{}{{}}]", "{},".repeat(700_000)), 200_000),
            (format!("[{data}{{}}]"), 2_000_000),
            // One entry, which is in memory as it came.
            (format!("[[{}0]]", "0,".repeat(1_000_000)), 5_000_000),
            (format!("[{{{keys}\"\":0}}]"), 5_000_000),
        ] {
            let mut input = ManifestInput::new("/c/m".into(), 1000);
            let mut most = 0;
            for piece in json.as_bytes().chunks(1 << 16) {
                input.push(piece).unwrap();
                most = most.max(input.weight());
            }
            assert!(most < kept, "{most} for {}", &json[..20]);
            assert!(matches!(input.finish(), Err(ManifestRefusal::Lines(text)) if text.len() < 100_000));
        }
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
