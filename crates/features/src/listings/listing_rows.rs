//! The rows of a listing, and how they look as plain text, JSON and XML.
//!
//! Comes in: the JSON that listing servers print. Goes out: the text a client asked for.
//! Always holds: rows are read without copying where JSON allows it and written straight into one
//! string; what has a NUL in its name belongs to Swift itself and is left out unless `reserved` says
//! otherwise; JSON that is not the rows it should be is [`NotRows`], never half a listing.
//! Deliberately absent: which form, which headers (`listing_formats.rs`).

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use vocabulary::markup::{push_attribute, push_text};

/// The JSON is not a list of rows with the fields that the form needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRows;

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
/// A NUL in JSON; a false alarm when the backslash is itself escaped.
const ESCAPED_NUL: &[u8] = b"\\u0000";

/// What plain listings need of a row.
#[derive(serde::Deserialize)]
struct NameRow<'a> {
    #[serde(borrow)]
    name: Option<Scalar<'a>>,
    #[serde(borrow)]
    subdir: Option<Scalar<'a>>,
}

/// What XML listings need of a row, of an account or a container.
#[derive(serde::Deserialize)]
struct FullRow<'a> {
    #[serde(borrow)]
    name: Option<Scalar<'a>>,
    #[serde(borrow)]
    subdir: Option<Scalar<'a>>,
    #[serde(borrow)]
    hash: Option<Scalar<'a>>,
    #[serde(borrow)]
    count: Option<Scalar<'a>>,
    #[serde(borrow)]
    bytes: Option<Scalar<'a>>,
    #[serde(borrow)]
    content_type: Option<Scalar<'a>>,
    #[serde(borrow)]
    last_modified: Option<Scalar<'a>>,
    #[serde(borrow)]
    storage_policy: Option<Scalar<'a>>,
}

/// One name per line, directories like all others; empty when there is none.
pub fn plain(json: &[u8], reserved: bool) -> Result<String, NotRows> {
    let rows: Vec<NameRow> = serde_json::from_slice(json).map_err(|_| NotRows)?;
    let mut out = String::with_capacity(json.len() / 4);
    for row in rows {
        let name = row.name.or(row.subdir).ok_or(NotRows)?;
        if reserved || !name.is_reserved() {
            out.push_str(&name.0);
            out.push('\n');
        }
    }
    Ok(out)
}

/// The rows without those that are Swift's own; `None` when all may be seen, as nearly always.
pub fn json_without_reserved(json: &[u8]) -> Result<Option<String>, NotRows> {
    if memchr::memmem::find(json, ESCAPED_NUL).is_none() {
        return Ok(None);
    }
    let mut rows: Vec<Value> = serde_json::from_slice(json).map_err(|_| NotRows)?;
    rows.retain(|row| {
        let name = row.get("name").or_else(|| row.get("subdir")).and_then(Value::as_str);
        !name.is_some_and(|name| name.contains('\0'))
    });
    Ok(Some(pythonic::json(&Value::Array(rows))))
}

/// The containers of an account.
pub fn account_xml(json: &[u8], account: &str, reserved: bool) -> Result<String, NotRows> {
    let mut out = start(json);
    out.push_str("<account name=\"");
    push_attribute(&mut out, account);
    out.push_str("\">\n");
    for_each_row(json, reserved, |row| {
        if let Some(subdir) = &row.subdir {
            out.push_str("<subdir name=\"");
            push_attribute(&mut out, &subdir.0);
            out.push_str("\" />\n");
            return Ok(());
        }
        out.push_str("<container>");
        element(&mut out, "name", &row.name)?;
        element(&mut out, "count", &row.count)?;
        element(&mut out, "bytes", &row.bytes)?;
        element(&mut out, "last_modified", &row.last_modified)?;
        if row.storage_policy.is_some() {
            element(&mut out, "storage_policy", &row.storage_policy)?;
        }
        out.push_str("</container>\n");
        Ok(())
    })?;
    out.push_str("</account>");
    Ok(out)
}

/// The objects of a container.
pub fn container_xml(json: &[u8], container: &str, reserved: bool) -> Result<String, NotRows> {
    let mut out = start(json);
    out.push_str("<container name=\"");
    push_attribute(&mut out, container);
    let head_ends = out.len();
    out.push_str("\">");
    let rows_begin = out.len();
    for_each_row(json, reserved, |row| {
        if let Some(subdir) = &row.subdir {
            out.push_str("<subdir name=\"");
            push_attribute(&mut out, &subdir.0);
            out.push_str("\">");
            element(&mut out, "name", &row.subdir)?;
            out.push_str("</subdir>");
            return Ok(());
        }
        out.push_str("<object>");
        element(&mut out, "name", &row.name)?;
        element(&mut out, "hash", &row.hash)?;
        element(&mut out, "bytes", &row.bytes)?;
        element(&mut out, "content_type", &row.content_type)?;
        element(&mut out, "last_modified", &row.last_modified)?;
        out.push_str("</object>");
        Ok(())
    })?;
    if out.len() == rows_begin {
        out.truncate(head_ends);
        out.push_str("\" />");
    } else {
        out.push_str("</container>");
    }
    Ok(out)
}

fn start(json: &[u8]) -> String {
    // XML's names of fields are some longer than JSON's.
    let mut out = String::with_capacity(json.len() + json.len() / 2 + 256);
    out.push_str(XML);
    out
}

fn for_each_row(
    json: &[u8],
    reserved: bool,
    mut write: impl FnMut(&FullRow) -> Result<(), NotRows>,
) -> Result<(), NotRows> {
    let rows: Vec<FullRow> = serde_json::from_slice(json).map_err(|_| NotRows)?;
    for row in &rows {
        let name = row.subdir.as_ref().or(row.name.as_ref()).ok_or(NotRows)?;
        if reserved || !name.is_reserved() {
            write(row)?;
        }
    }
    Ok(())
}

/// `<tag>text</tag>`, or `<tag />` when there is no text.
fn element(out: &mut String, tag: &str, value: &Option<Scalar>) -> Result<(), NotRows> {
    let text = &*value.as_ref().ok_or(NotRows)?.0;
    out.push('<');
    out.push_str(tag);
    if text.is_empty() {
        out.push_str(" />");
        return Ok(());
    }
    out.push('>');
    push_text(out, text);
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
    Ok(())
}

/// A JSON value that is no list and no object, as Python's `str` shows it.
struct Scalar<'a>(Cow<'a, str>);

impl Scalar<'_> {
    fn is_reserved(&self) -> bool {
        memchr::memchr(0, self.0.as_bytes()).is_some()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsText).map(Scalar)
    }
}

struct AsText;

impl<'de> Visitor<'de> for AsText {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(if value { "True" } else { "False" }))
    }
}

#[cfg(test)]
mod tests;
