//! A list in JSON that comes in pieces, entry by entry.
//!
//! Comes in: bytes, cut anywhere. Goes out: the bytes of one entry after the other.
//! Always holds: of a list no more than one entry is in memory. Only brackets, quotes and commas are looked at: the
//! whole is JSON if each entry is, which the one who reads them finds out. What is no list is kept as a whole.

/// Some editors begin a file with it; Python's JSON passes over it, too.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A list on its way.
#[derive(Default)]
pub(super) struct JsonList {
    place: Place,
    /// Bytes of the byte order mark that have come.
    mark: usize,
    /// Bytes of an entry that is not complete, or of what is no list.
    kept: Vec<u8>,
    /// Brackets that are open within the entry.
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    entries: u64,
}

/// Where in the document the next byte is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// In front of it.
    #[default]
    Before,
    /// In an entry, or in front of the first.
    Within,
    /// Behind the bracket that ends the list.
    Behind,
    /// It is no list.
    Other,
}

/// It is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotJson;

/// What a document was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonDocument {
    /// A list, all of whose entries were handed over.
    List,
    /// Something else: all of it.
    Other(Vec<u8>),
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

impl JsonList {
    /// Reads on, and hands each entry that is complete to `take`.
    pub(super) fn push<E: From<NotJson>>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut begins = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            let place = self.place;
            match place {
                Place::Within if !self.ends_entry(byte) => {}
                Place::Within => {
                    self.end_entry(&bytes[begins..at], byte == b']', &mut take)?;
                    begins = at + 1;
                }
                Place::Before => {
                    self.begin(byte);
                    begins = at + usize::from(self.place != Place::Other);
                }
                Place::Behind if is_space(byte) => begins = at + 1,
                Place::Behind => return Err(NotJson.into()),
                Place::Other => break,
            }
        }
        if matches!(self.place, Place::Within | Place::Other) {
            self.kept.extend_from_slice(&bytes[begins..]);
        }
        Ok(())
    }

    /// Bytes that it takes.
    pub(super) fn kept(&self) -> usize {
        self.kept.capacity()
    }

    /// What it was, when all has come.
    pub(super) fn finish(self) -> Result<JsonDocument, NotJson> {
        match self.place {
            Place::Behind => Ok(JsonDocument::List),
            Place::Other => Ok(JsonDocument::Other(self.kept)),
            Place::Before | Place::Within => Err(NotJson),
        }
    }

    fn begin(&mut self, byte: u8) {
        let is_marked = self.mark == 0 || self.mark == BYTE_ORDER_MARK.len();
        match byte {
            byte if BYTE_ORDER_MARK.get(self.mark) == Some(&byte) => self.mark += 1,
            b'[' if is_marked => self.place = Place::Within,
            byte if is_marked && is_space(byte) => self.mark = BYTE_ORDER_MARK.len(),
            _ => {
                self.place = Place::Other;
                if !is_marked {
                    self.kept.extend_from_slice(&BYTE_ORDER_MARK[..self.mark]);
                }
            }
        }
    }

    /// Whether `byte` stands between two entries, or ends the list.
    fn ends_entry(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth = self.depth.saturating_add(1),
            b',' | b']' if self.depth == 0 => return true,
            // One too many is in an entry that is no JSON.
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }

    fn end_entry<E: From<NotJson>>(
        &mut self,
        rest: &[u8],
        is_last: bool,
        take: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if is_last {
            self.place = Place::Behind;
        }
        let mut kept = std::mem::take(&mut self.kept);
        let entry = match kept.is_empty() {
            true => rest,
            false => {
                kept.extend_from_slice(rest);
                &kept
            }
        };
        let is_empty_list = is_last && self.entries == 0 && entry.iter().copied().all(is_space);
        self.entries += 1;
        match is_empty_list {
            true => Ok(()),
            false => take(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The document read in pieces, and what is wrong with it.
    fn read(text: &[u8], piece: usize) -> Option<Value> {
        let (mut list, mut entries) = (JsonList::default(), Vec::new());
        for piece in text.chunks(piece) {
            let pushed = list.push(piece, |entry| {
                entries.push(serde_json::from_slice(entry).map_err(|_| NotJson)?);
                Ok::<_, NotJson>(())
            });
            pushed.ok()?;
        }
        match list.finish().ok()? {
            JsonDocument::List => Some(Value::Array(entries)),
            JsonDocument::Other(bytes) => serde_json::from_slice(&bytes).ok(),
        }
    }

    proptest! {
        #[test]
        fn read_as_json_is(text in "([\\[\\]{},:\"\\\\ 1]|\\[1, |\\{\"a\": |\"x\"|\\\\\"|null){0,12}", piece in 1_usize..9) {
            for text in [text.clone(), format!("[{text}]"), format!("[[{text}], {{\"a\": [{text}]}}]")] {
                prop_assert_eq!(read(text.as_bytes(), piece), serde_json::from_str(&text).ok(), "{}", text);
            }
        }
    }

    #[test]
    fn one_entry_at_a_time_is_kept() {
        assert_eq!(read(b"\xef\xbb\xbf [] ", 1), Some(Value::Array(Vec::new())));
        assert_eq!(read(b"\xef\xbb [] ", 1), None);
        let mut list = JsonList::default();
        let mut count = 0;
        list.push(b"[", |_| Ok::<_, NotJson>(())).unwrap();
        for _ in 0..10_000 {
            list.push(b"{\"data\": \"YQ==\"}, ", |_| {
                count += 1;
                Ok::<_, NotJson>(())
            })
            .unwrap();
            assert!(list.kept.capacity() < 100);
        }
        assert_eq!(count, 10_000);
    }
}
