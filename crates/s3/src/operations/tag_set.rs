//! A set of tags: read, checked, stored, printed.

use crate::error::{BAD_REQUEST, ErrorCode, INVALID_ARGUMENT, INVALID_TAG, MALFORMED_XML, S3Error};
use crate::xml::{Element, XmlWriter};
use http::HeaderMap;
use http::header::HeaderValue;
use peer::message::header_names::X_OBJECT_TAGS;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::collections::BTreeSet;

/// Tags of an object (AWS, "Object tagging").
pub(super) const MOST_OF_OBJECT: usize = 10;
/// Characters of a key, of a value.
const LONGEST_KEY: usize = 128;
const LONGEST_VALUE: usize = 256;
/// Bytes of the stored text: what a header between servers may have, with room for its name.
const LARGEST_SET: usize = 7 * 1024;
/// What stands encoded in a stored text.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b'&').add(b'=').add(b'+').add(b' ');

/// A set of tags, in the order sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TagSet(pub(super) Vec<(String, String)>);

impl TagSet {
    /// Of the text of `x-amz-tagging`, or of a stored one.
    pub(super) fn read(text: &str) -> Option<Self> {
        ::lifecycle::read_tags(text).map(Self)
    }

    /// Of a `Tagging` document.
    pub(super) fn of_document(document: &[u8]) -> Result<Self, S3Error> {
        let document = Element::parse(document).map_err(|_| MALFORMED_XML)?;
        let set = document.child("TagSet").filter(|_| document.name == "Tagging");
        let tags = set.ok_or(MALFORMED_XML)?.all("Tag").map(|tag| {
            let text = |name| tag.child(name).map(|child| child.text.clone());
            text("Key").zip(text("Value")).ok_or_else(|| MALFORMED_XML.into())
        });
        tags.collect::<Result<_, S3Error>>().map(Self)
    }

    /// Refuses what is no set of at most so many tags.
    pub(super) fn check(&self, most: usize, too_many: &str) -> Result<(), S3Error> {
        if self.0.len() > most {
            return Err(BAD_REQUEST.saying(too_many));
        }
        let mut before = BTreeSet::new();
        for (key, value) in &self.0 {
            let invalid = |message: &str| INVALID_TAG.saying(message).with("TagKey", key).with("TagValue", value);
            if key.is_empty() || key.chars().count() > LONGEST_KEY || !key.chars().all(is_allowed) {
                return Err(invalid("The TagKey you have provided is invalid"));
            }
            if value.chars().count() > LONGEST_VALUE || !value.chars().all(is_allowed) {
                return Err(invalid("The TagValue you have provided is invalid"));
            }
            if key.to_ascii_lowercase().starts_with("aws:") {
                return Err(invalid("System tags cannot be added/updated by requester"));
            }
            if !before.insert(key) {
                return Err(invalid("Cannot provide multiple Tags with the same key"));
            }
        }
        Ok(())
    }

    /// As it is stored.
    pub(super) fn stored(&self) -> Result<HeaderValue, S3Error> {
        let encode = |text| utf8_percent_encode(text, ENCODED).to_string();
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| format!("{}={}", encode(key), encode(value)))
            .collect();
        let text = pairs.join("&");
        let value = HeaderValue::from_bytes(text.as_bytes()).ok();
        value
            .filter(|_| text.len() <= LARGEST_SET)
            .ok_or_else(|| BAD_REQUEST.saying(format!("The tags have more than {LARGEST_SET} bytes together.")))
    }

    pub(super) fn print(&self) -> XmlWriter {
        let mut xml = XmlWriter::document("Tagging");
        xml.open("TagSet");
        for (key, value) in &self.0 {
            xml.open("Tag");
            xml.text("Key", key);
            xml.text("Value", value);
            xml.close();
        }
        xml
    }
}

/// Letters, digits, spaces and `+ - = . _ : / @` (AWS, "Object tagging"), letters of every language.
fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || character == ' ' || "+-=._:/@".contains(character)
}

/// The tags that stand in this header of a stored thing.
pub(super) fn of_stored(headers: &HeaderMap, name: &str) -> TagSet {
    let text = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    text.and_then(|text| TagSet::read(&text)).unwrap_or_default()
}

/// How many tags an object has, for the answer to a read; nothing where it has none.
pub(super) fn count(swift: &HeaderMap) -> Option<HeaderValue> {
    swift.get(X_OBJECT_TAGS)?;
    let set = of_stored(swift, X_OBJECT_TAGS.as_str());
    (!set.0.is_empty()).then(|| HeaderValue::from(set.0.len()))
}

/// What is to be stored of `x-amz-tagging`; nothing where there is none.
pub(super) fn of_header(request: &HeaderMap) -> Result<Option<HeaderValue>, S3Error> {
    const NAME: &str = "x-amz-tagging";
    let Some(value) = request.get(NAME) else {
        return Ok(None);
    };
    let refuse = |code: ErrorCode| {
        code.saying(
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag \
             name duplicates.",
        )
        .with("ArgumentName", NAME)
    };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| refuse(INVALID_ARGUMENT))?;
    let set = TagSet::read(text).ok_or_else(|| refuse(INVALID_ARGUMENT))?;
    set.check(MOST_OF_OBJECT, "Object tags cannot be greater than 10")?;
    set.stored().map(Some)
}
