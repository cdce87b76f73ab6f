//! [`ObjectMetadata`]: an object's headers as they are kept, in order.
//!
//! Names are spelled as OpenStack stores them (`X-Timestamp`, `Content-Length`, `ETag`, user headers
//! in Title-Case) and looked up without regard to ASCII case; what HTTP libraries refuse in a name is
//! encoded (`vocabulary::header_name`). Values are the raw bytes of the header.
//! Always holds: no two items share a name. A clone costs nothing until one of the two is changed.

use std::sync::Arc;

/// An object's headers as they are kept, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectMetadata {
    items: Arc<Vec<(String, Vec<u8>)>>,
}

impl ObjectMetadata {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet, with room for so many items and the object's name, which the engine adds.
    pub fn with_capacity(items: usize) -> Self {
        Self {
            items: Arc::new(Vec::with_capacity(items + 1)),
        }
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.items
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// The value under a name, when it is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get(name)?).ok()
    }

    /// Sets a value, in place when the name exists, else at the end.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        let (name, value) = (name.into(), value.into());
        let items = Arc::make_mut(&mut self.items);
        match items.iter_mut().find(|(found, _)| found.eq_ignore_ascii_case(&name)) {
            Some(item) => item.1 = value,
            None => items.push((name, value)),
        }
    }

    /// [`ObjectMetadata::set`], for building in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.set(name, value);
        self
    }

    /// Removes a name; its value if it was there.
    pub fn remove(&mut self, name: &str) -> Option<Vec<u8>> {
        let at = self
            .items
            .iter()
            .position(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(Arc::make_mut(&mut self.items).remove(at).1)
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.items.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<N: Into<String>, V: Into<Vec<u8>>> FromIterator<(N, V)> for ObjectMetadata {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(items: I) -> Self {
        let items = items.into_iter();
        let mut metadata = ObjectMetadata::with_capacity(items.size_hint().0);
        for (name, value) in items {
            metadata.set(name, value);
        }
        metadata
    }
}
