//! How a field of a message stands in a header: [`HeaderField`] and what it may hold.
//!
//! A field that came over a connection may be text that means nothing. The field keeps that text, so that the
//! server refuses it in its own words, at the place among its checks where OpenStack's server does.
//! Always holds: what is encoded is decoded to the same value; headers that no field takes keep their order, in which
//! servers store metadata.

use http::{HeaderMap, HeaderName, HeaderValue};
use vocabulary::{ByteCount, Partition, PolicyIndex, Timestamp};

/// A value that a header carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeaderField<T> {
    /// There is no such header.
    #[default]
    Absent,
    /// There is one, of which no value can be made.
    Malformed(Box<HeaderValue>),
    /// The value.
    Value(T),
}

impl<T> HeaderField<T> {
    /// A header with this value, or none.
    pub fn from_option(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Malformed(_) => None,
        }
    }

    /// The value, which must be there: `missing` makes the refusal without one, `malformed` that of a text that is
    /// none.
    pub fn required<E>(&self, missing: impl FnOnce() -> E, malformed: impl FnOnce(&HeaderValue) -> E) -> Result<&T, E> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Absent => Err(missing()),
            Self::Malformed(text) => Err(malformed(text)),
        }
    }

    /// The value, which may be absent but not malformed.
    pub fn optional<E>(&self, malformed: impl FnOnce(&HeaderValue) -> E) -> Result<Option<&T>, E> {
        match self {
            Self::Value(value) => Ok(Some(value)),
            Self::Absent => Ok(None),
            Self::Malformed(text) => Err(malformed(text)),
        }
    }
}

impl<T> From<T> for HeaderField<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

/// A value as the text of a header.
pub trait HeaderText: Sized {
    /// `None` for a text that means no such value.
    fn parse(text: &str) -> Option<Self>;
    /// The header's value.
    fn print(&self) -> HeaderValue;
}

impl HeaderText for Timestamp {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The beginning of time is `0`, as OpenStack's databases have it.
    fn print(&self) -> HeaderValue {
        match *self == Self::ZERO {
            true => HeaderValue::from_static("0"),
            false => HeaderValue::try_from(self.internal()).unwrap_or(HeaderValue::from_static("0")),
        }
    }
}

impl HeaderText for PolicyIndex {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    fn print(&self) -> HeaderValue {
        HeaderValue::from(self.0)
    }
}

impl HeaderText for Partition {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> HeaderValue {
        HeaderValue::from(self.0)
    }
}

impl HeaderText for ByteCount {
    fn parse(text: &str) -> Option<Self> {
        count(text).map(Self)
    }

    fn print(&self) -> HeaderValue {
        HeaderValue::from(self.0)
    }
}

impl HeaderText for u64 {
    fn parse(text: &str) -> Option<Self> {
        count(text)
    }

    fn print(&self) -> HeaderValue {
        HeaderValue::from(*self)
    }
}

/// A count; OpenStack's containers can come to one below zero, which counts as nothing.
fn count(text: &str) -> Option<u64> {
    let number: i128 = text.trim().parse().ok()?;
    u64::try_from(number.max(0)).ok()
}

/// Headers out of which fields are taken one by one.
pub(super) struct FieldReader {
    headers: HeaderMap,
    taken: Vec<HeaderName>,
}

impl FieldReader {
    pub(super) fn new(headers: HeaderMap) -> Self {
        Self {
            headers,
            taken: Vec::new(),
        }
    }

    /// The header's value, which is not among the [`rest`](Self::rest) any more.
    pub(super) fn take(&mut self, name: &HeaderName) -> Option<HeaderValue> {
        let value = self.headers.get(name)?.clone();
        self.taken.push(name.clone());
        Some(value)
    }

    /// What was not taken, in its order ([`HeaderMap::remove`] does not keep it).
    pub(super) fn rest(self) -> HeaderMap {
        if self.taken.is_empty() {
            return self.headers;
        }
        let mut rest = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            if !self.taken.contains(name) {
                rest.append(name, value.clone());
            }
        }
        rest
    }
}

/// A field of a message: how it is taken out of headers, and put into them.
pub(super) trait WireField: Sized {
    /// Where it stands.
    type Name;

    fn take(headers: &mut FieldReader, name: &Self::Name) -> Self;
    fn put(self, headers: &mut HeaderMap, name: Self::Name);
}

impl<T: HeaderText> WireField for HeaderField<T> {
    type Name = HeaderName;

    fn take(headers: &mut FieldReader, name: &HeaderName) -> Self {
        let Some(value) = headers.take(name) else {
            return Self::Absent;
        };
        let parsed = std::str::from_utf8(value.as_bytes()).ok().and_then(T::parse);
        parsed.map_or_else(|| Self::Malformed(Box::new(value)), Self::Value)
    }

    fn put(self, headers: &mut HeaderMap, name: HeaderName) {
        match self {
            Self::Absent => {}
            Self::Malformed(text) => drop(headers.insert(name, *text)),
            Self::Value(value) => drop(headers.insert(name, value.print())),
        }
    }
}

/// Text that is passed on as it is.
impl WireField for Option<HeaderValue> {
    type Name = HeaderName;

    fn take(headers: &mut FieldReader, name: &HeaderName) -> Self {
        headers.take(name)
    }

    fn put(self, headers: &mut HeaderMap, name: HeaderName) {
        if let Some(value) = self {
            headers.insert(name, value);
        }
    }
}

/// A switch that is off unless a header says yes, and how a yes is spelled.
impl WireField for bool {
    type Name = (HeaderName, &'static str);

    fn take(headers: &mut FieldReader, (name, _): &Self::Name) -> Self {
        headers.take(name).is_some_and(|value| is_yes(&value))
    }

    fn put(self, headers: &mut HeaderMap, (name, yes): Self::Name) {
        if self {
            headers.insert(name, HeaderValue::from_static(yes));
        }
    }
}

/// A switch with a default that depends on the receiver.
impl WireField for Option<bool> {
    type Name = HeaderName;

    fn take(headers: &mut FieldReader, name: &HeaderName) -> Self {
        headers.take(name).map(|value| is_yes(&value))
    }

    fn put(self, headers: &mut HeaderMap, name: HeaderName) {
        if let Some(yes) = self {
            headers.insert(name, HeaderValue::from_static(if yes { "yes" } else { "no" }));
        }
    }
}

/// Swift's spellings of yes.
pub(crate) fn is_yes(value: &HeaderValue) -> bool {
    let yes = [b"true".as_slice(), b"1", b"yes", b"on", b"t", b"y"];
    yes.iter().any(|yes| value.as_bytes().eq_ignore_ascii_case(yes))
}

/// Declares messages: `target` and plain fields come from the request line, the others stand in headers.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        target: $target:ty,
        $($(#[$plain_doc:meta])* $plain:ident: $plain_type:ty,)*
        => $($(#[$field_doc:meta])* $field:ident: $type:ty = $header:expr,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            /// What it is about.
            pub target: $target,
            $($(#[$plain_doc])* pub $plain: $plain_type,)*
            $($(#[$field_doc])* pub $field: $type,)*
            /// All other headers: those of the entity itself, which replicas share.
            pub headers: std::sync::Arc<http::HeaderMap>,
        }

        impl $name {
            /// About `target`, with empty fields.
            pub fn new(target: $target) -> Self {
                Self {
                    target,
                    $($plain: Default::default(),)*
                    $($field: Default::default(),)*
                    headers: std::sync::Arc::default(),
                }
            }

            /// The message that `headers` make.
            pub fn decode(target: $target, headers: http::HeaderMap) -> Self {
                let mut headers = $crate::message::field::FieldReader::new(headers);
                Self {
                    target,
                    $($plain: Default::default(),)*
                    $($field: $crate::message::field::WireField::take(&mut headers, &$header),)*
                    headers: std::sync::Arc::new(headers.rest()),
                }
            }

            /// All its headers.
            pub fn encode(self) -> http::HeaderMap {
                let mut headers = std::sync::Arc::unwrap_or_clone(self.headers);
                headers.reserve([$(stringify!($field)),*].len());
                $($crate::message::field::WireField::put(self.$field, &mut headers, $header);)*
                headers
            }
        }
    )*};
}
pub(super) use messages;
