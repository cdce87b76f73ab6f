//! One entry of a client's list, as JSON.
//!
//! Always holds: of what has no meaning nothing is kept but the first [`MOST_EXTRA`] bytes of its keys, so that an
//! entry takes no more memory than its text, whatever is nested in it. Whether the values make sense is not looked at
//! here.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// Bytes of keys without a meaning that are kept.
const MOST_EXTRA: usize = 4 << 10;

/// An entry as it was sent.
pub(super) enum SentEntry {
    /// It is no JSON object.
    Other,
    /// What it says.
    Fields(Box<SentFields>),
}

/// What an entry says.
#[derive(Default)]
pub(super) struct SentFields {
    pub(super) path: Option<SentValue>,
    pub(super) etag: Option<SentValue>,
    pub(super) size_bytes: Option<SentValue>,
    pub(super) range: Option<SentValue>,
    pub(super) data: Option<SentValue>,
    /// Keys without a meaning.
    pub(super) extra: BTreeSet<String>,
}

/// A value, of which texts and numbers have a meaning.
pub(super) enum SentValue {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    /// A list or an object.
    Other,
}

impl<'de> Deserialize<'de> for SentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SentValueVisitor)
    }
}

struct SentValueVisitor;

impl<'de> Visitor<'de> for SentValueVisitor {
    type Value = SentValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<SentValue, E> {
        Ok(SentValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<SentValue, E> {
        Ok(SentValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<SentValue, E> {
        Ok(SentValue::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<SentValue, E> {
        Ok(SentValue::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<SentValue, E> {
        Ok(SentValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<SentValue, E> {
        Ok(SentValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SentValue, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(SentValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<SentValue, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(SentValue::Other)
    }
}

impl<'de> Deserialize<'de> for SentEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SentEntryVisitor)
    }
}

struct SentEntryVisitor;

impl<'de> Visitor<'de> for SentEntryVisitor {
    type Value = SentEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a segment")
    }

    fn visit_unit<E>(self) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<SentEntry, E> {
        Ok(SentEntry::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<SentEntry, A::Error> {
        SentValueVisitor.visit_seq(items).map(|_| SentEntry::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<SentEntry, A::Error> {
        let mut fields = Box::<SentFields>::default();
        let mut listed = 0;
        while let Some(key) = items.next_key::<String>()? {
            let field = match key.as_str() {
                "path" => &mut fields.path,
                "etag" => &mut fields.etag,
                "size_bytes" => &mut fields.size_bytes,
                "range" => &mut fields.range,
                "data" => &mut fields.data,
                _ => {
                    items.next_value::<IgnoredAny>()?;
                    if listed < MOST_EXTRA {
                        listed += key.len() + 1;
                        fields.extra.insert(key);
                    }
                    continue;
                }
            };
            *field = Some(items.next_value()?);
        }
        Ok(SentEntry::Fields(fields))
    }
}
