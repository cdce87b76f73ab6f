//! Dictionaries of text to text, numbers and the like, and of bytes to bytes, without a [`Value`](crate::Value) for
//! each.
//!
//! Suffix hashes are such dictionaries, of thousands of entries, and replication reads and writes them all day; an
//! object's metadata are one of bytes, read for every GET.
//! Always holds: what [`DictWriter`] writes is what [`crate::dumps`] writes for the same entries; what [`loads_flat`]
//! and [`loads_bytes`] read, [`crate::loads`] reads alike; everything that is not spelled as CPython spells it at
//! protocol 2 is left to that; bytes that are read are together no longer than the input.

use crate::memo::ENCODE;
use crate::opcode as op;
use crate::protocol::Protocol as _;
use crate::write::PickleWriter;
use std::borrow::Cow;

/// What an entry can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flat<'a> {
    /// `str`.
    Text(&'a str),
    /// `None`.
    None,
    /// `bool`.
    Bool(bool),
    /// `float`.
    Number(f64),
}

/// The entries of a flat dictionary in their order, a key perhaps twice (the last counts); `None` for anything else,
/// which may still be a pickle.
pub fn loads_flat(input: &[u8]) -> Option<Vec<(&str, Flat<'_>)>> {
    Reader::new(input).entries(|reader, first| Some((reader.text(first)?, reader.value()?)))
}

/// A key and its value, of bytes.
pub type BytesEntry<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The entries of a dictionary of bytes in their order, a key perhaps twice (the last counts); `None` for anything
/// else, which may still be a pickle: among that the empty `bytes`, and bytes named again that are longer than one.
pub fn loads_bytes(input: &[u8]) -> Option<Vec<BytesEntry<'_>>> {
    Reader::new(input).entries(|reader, first| {
        let key = reader.bytes(first)?;
        let first = reader.byte()?;
        Some((key, reader.bytes(first)?))
    })
}

/// Each byte, to be lent.
static SINGLE: [u8; 256] = {
    let (mut bytes, mut at) = ([0; 256], 0);
    while at < bytes.len() {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};

/// What has been numbered.
#[derive(Clone, Copy)]
enum Known<'a> {
    Text(&'a str),
    /// A single byte; longer ones are not met twice.
    Byte(u8),
    /// The global that makes bytes of text.
    Encode,
    Other,
}

struct Reader<'a> {
    rest: &'a [u8],
    memo: Vec<Known<'a>>,
}

impl<'a> Reader<'a> {
    fn new(input: &'a [u8]) -> Self {
        let memo = vec![Known::Other];
        Self { rest: input, memo }
    }

    /// A whole dictionary; `entry` reads one, which begins with the opcode that it is given.
    fn entries<T>(mut self, entry: impl Fn(&mut Self, u8) -> Option<T>) -> Option<Vec<T>> {
        self.expect(&[op::PROTO, 2, op::EMPTY_DICT, op::BINPUT, 0])?;
        let mut entries = vec![];
        loop {
            match self.byte()? {
                op::STOP => return Some(entries),
                op::MARK => {
                    while self.rest.first() != Some(&op::SETITEMS) {
                        let first = self.byte()?;
                        entries.push(entry(&mut self, first)?);
                    }
                    self.byte()?;
                }
                first => {
                    entries.push(entry(&mut self, first)?);
                    self.expect(&[op::SETITEM])?;
                }
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(bytes)?;
        Some(())
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn value(&mut self) -> Option<Flat<'a>> {
        Some(match self.byte()? {
            op::NONE => Flat::None,
            op::NEWTRUE => Flat::Bool(true),
            op::NEWFALSE => Flat::Bool(false),
            op::BINFLOAT => Flat::Number(f64::from_be_bytes(self.take(8)?.try_into().ok()?)),
            first => Flat::Text(self.text(first)?),
        })
    }

    /// Text that begins with this opcode.
    fn text(&mut self, first: u8) -> Option<&'a str> {
        let known = match first {
            op::BINUNICODE => {
                let length = self.word()?.try_into().ok()?;
                let text = std::str::from_utf8(self.take(length)?).ok()?;
                self.put(Known::Text(text))?;
                return Some(text);
            }
            first => self.known(first)?,
        };
        match known {
            Known::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes that begin with this opcode: `_codecs.encode(text, 'latin1')`.
    fn bytes(&mut self, first: u8) -> Option<Cow<'a, [u8]>> {
        match first {
            op::GLOBAL => {
                self.expect(ENCODE.as_bytes())?;
                self.expect(b"\n")?;
                self.put(Known::Encode)?;
            }
            first => match self.known(first)? {
                Known::Encode => {}
                Known::Byte(byte) => return Some(SINGLE.get(usize::from(byte)..=usize::from(byte))?.into()),
                _ => return None,
            },
        }
        let first = self.byte()?;
        let text = self.text(first)?;
        // Text named again could make of a short pickle what is very long.
        if first != op::BINUNICODE && text.chars().nth(1).is_some() {
            return None;
        }
        let first = self.byte()?;
        if self.text(first)? != "latin1" {
            return None;
        }
        self.expect(&[op::TUPLE2])?;
        self.put(Known::Other)?;
        self.expect(&[op::REDUCE])?;
        let bytes = match text.is_ascii() {
            true => Cow::Borrowed(text.as_bytes()),
            false => Cow::Owned(
                text.chars()
                    .map(|char| u8::try_from(char).ok())
                    .collect::<Option<_>>()?,
            ),
        };
        self.put(match *bytes {
            [only] => Known::Byte(only),
            _ => Known::Other,
        })?;
        Some(bytes)
    }

    /// What has the number that follows this opcode.
    fn known(&mut self, first: u8) -> Option<Known<'a>> {
        let number = match first {
            op::BINGET => self.byte()?.into(),
            op::LONG_BINGET => self.word()?,
            _ => return None,
        };
        self.memo.get(usize::try_from(number).ok()?).copied()
    }

    /// Reads the number of `what` in the memo, which has to be the next.
    fn put(&mut self, what: Known<'a>) -> Option<()> {
        let number = match self.byte()? {
            op::BINPUT => self.byte()?.into(),
            op::LONG_BINPUT => self.word()?,
            _ => return None,
        };
        let next = usize::try_from(number).ok()? == self.memo.len();
        self.memo.push(what);
        next.then_some(())
    }
}

/// Writes a flat dictionary entry by entry.
pub struct DictWriter {
    writer: PickleWriter,
    count: usize,
    written: usize,
}

impl DictWriter {
    /// Begins a dictionary of `count` entries.
    pub fn new(count: usize) -> Self {
        let mut writer = PickleWriter::new();
        writer.begin_dict(count);
        Self {
            writer,
            count,
            written: 0,
        }
    }

    /// Writes the next entry.
    pub fn entry(&mut self, key: &str, value: Flat<'_>) {
        self.writer.str(key);
        match value {
            Flat::Text(text) => self.writer.str(text),
            Flat::None => self.writer.none(),
            Flat::Bool(yes) => self.writer.bool(yes),
            Flat::Number(number) => self.writer.float(number),
        }
        self.after_entry();
    }

    /// Writes the next entry, of bytes.
    pub fn bytes(&mut self, key: &[u8], value: &[u8]) {
        self.writer.bytes(key);
        self.writer.bytes(value);
        self.after_entry();
    }

    fn after_entry(&mut self) {
        self.written += 1;
        self.writer.after_entry(self.written, self.count);
    }

    /// The pickle. There must have been as many entries as were said.
    pub fn finish(self) -> Vec<u8> {
        debug_assert_eq!(self.written, self.count, "a dictionary of another length");
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PickleLimits, Value, dumps, loads};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[a-f0-9]{0,5}".prop_map(Value::str),
            Just(Value::None),
            any::<bool>().prop_map(Value::Bool),
            (-9.0..9.0_f64).prop_map(Value::Float),
        ]
    }

    fn flat(value: &Value) -> Flat<'_> {
        match value {
            Value::Str(text) => Flat::Text(text),
            Value::Bool(yes) => Flat::Bool(*yes),
            Value::Float(number) => Flat::Number(*number),
            _ => Flat::None,
        }
    }

    fn written(entries: &[(Value, Value)]) -> Vec<u8> {
        let mut writer = DictWriter::new(entries.len());
        for (key, value) in entries {
            writer.entry(key.text().unwrap(), flat(value));
        }
        writer.finish()
    }

    #[test]
    fn batches_are_cpythons() {
        for count in [0, 1, 2, 999, 1000, 1001, 2000, 2001] {
            let entries: Vec<_> = (0..count)
                .map(|at| (Value::from(format!("{at:03x}")), Value::from(format!("{at:032x}"))))
                .collect();
            let bytes = dumps(&Value::Dict(entries.clone()));
            assert_eq!(written(&entries), bytes, "{count}");
            let read = loads_flat(&bytes).unwrap();
            assert!(
                read.iter()
                    .copied()
                    .eq(entries.iter().map(|(key, value)| (key.text().unwrap(), flat(value))))
            );
        }
    }

    #[test]
    fn what_is_not_flat_is_left_to_others() {
        let one = |value| dumps(&Value::Dict(vec![(Value::str("abc"), value)]));
        for other in [
            one(Value::Int(1)),
            one(Value::List(vec![])),
            one(Value::bytes("x")),
            dumps(&Value::None),
            vec![],
        ] {
            assert_eq!(loads_flat(&other), None);
        }
        // Its own number instead of text.
        assert_eq!(loads_flat(b"\x80\x02}q\x00h\x00Ns."), None);
    }

    /// Bytes as they are common, and as they are not.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[ -~]{1,20}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..4)
        ]
    }

    /// What [`loads_bytes`] is to read.
    fn read_of_bytes(pickled: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let read = loads_bytes(pickled)?;
        Some(
            read.into_iter()
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    #[test]
    fn bytes_are_read_as_cpython_writes_them() {
        let one = |key: &[u8], value: &[u8]| (Value::Bytes(key.to_vec()), Value::Bytes(value.to_vec()));
        // Single bytes, which come again, and those that are none of ASCII.
        let entries = vec![
            one(b"a", b"a"),
            one(b"X-Name", b"a"),
            one(b"\xc3\xbc", b"\xff"),
            one(b"b", b"\xff"),
        ];
        let read = read_of_bytes(&dumps(&Value::Dict(entries.clone()))).unwrap();
        assert_eq!(read.len(), 4);
        assert!(
            read.iter()
                .zip(entries)
                .all(|(read, entry)| one(&read.0, &read.1) == entry)
        );
        // An empty one, text, and bytes that are named again and again.
        assert_eq!(loads_bytes(&dumps(&Value::Dict(vec![one(b"a", b"")]))), None);
        assert_eq!(
            loads_bytes(&dumps(&Value::Dict(vec![(Value::str("a"), Value::str("b"))]))),
            None
        );
        let twice = b"\x80\x02}q\x00c_codecs\nencode\nq\x01X\x02\x00\x00\x00abq\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05h\x05s.";
        assert!(loads(twice, &PickleLimits::default()).is_ok());
        assert_eq!(loads_bytes(twice), None);
        let text = b"\x80\x02}q\x00c_codecs\nencode\nq\x01X\x02\x00\x00\x00abq\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05h\x01h\x02h\x03\x86q\x06Rq\x07s.";
        assert!(loads(text, &PickleLimits::default()).is_ok());
        assert_eq!(loads_bytes(text), None);
    }

    proptest! {
        #[test]
        fn bytes_are_written_and_read_as_by_the_others(
            entries in proptest::collection::vec((bytes(), bytes()), 0..40)
        ) {
            let pair = |(key, value): &(Vec<u8>, Vec<u8>)| (Value::Bytes(key.clone()), Value::Bytes(value.clone()));
            let values = entries.iter().map(pair).collect();
            let pickled = dumps(&Value::Dict(values));
            let mut writer = DictWriter::new(entries.len());
            entries.iter().for_each(|(key, value)| writer.bytes(key, value));
            prop_assert_eq!(writer.finish(), &pickled[..]);
            let any_empty = entries.iter().any(|(key, value)| key.is_empty() || value.is_empty());
            prop_assert_eq!(read_of_bytes(&pickled), (!any_empty).then_some(entries));
        }

        #[test]
        fn spoilt_bytes_of_bytes_are_read_alike_or_not(at in 0_usize..300, byte: u8) {
            let entries = (0..4).map(|at| (Value::Bytes(vec![at]), Value::bytes(format!("value {at}")))).collect();
            let mut pickled = dumps(&Value::Dict(entries));
            let at = at % pickled.len();
            pickled[at] = byte;
            if let Some(read) = read_of_bytes(&pickled) {
                let whole = loads(&pickled, &PickleLimits::default()).unwrap();
                let whole = whole.entries().unwrap();
                for (key, _) in &read {
                    let last = &read.iter().rev().find(|(other, _)| other == key).unwrap().1;
                    prop_assert!(whole.contains(&(Value::Bytes(key.clone()), Value::Bytes(last.clone()))));
                }
            }
        }

        #[test]
        fn it_is_written_and_read_as_by_the_others(entries in proptest::collection::vec(("[a-f0-9]{0,4}".prop_map(Value::str), value()), 0..40)) {
            let bytes = dumps(&Value::Dict(entries.clone()));
            prop_assert_eq!(written(&entries), &bytes[..]);
            let read = loads_flat(&bytes).unwrap();
            let expected: Vec<_> = entries.iter().map(|(key, value)| (key.text().unwrap(), flat(value))).collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn spoilt_bytes_are_read_alike_or_not(at in 0_usize..200, byte: u8) {
            let entries: Vec<_> = (0..4).map(|at| (Value::from(format!("{at:03x}")), Value::from(format!("{at:032x}")))).collect();
            let mut bytes = dumps(&Value::Dict(entries));
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Some(read) = loads_flat(&bytes) {
                let whole = loads(&bytes, &PickleLimits::default()).unwrap();
                for (key, _) in &read {
                    let last = read.iter().rev().find(|(other, _)| other == key).unwrap().1;
                    prop_assert_eq!(flat(whole.get(key).unwrap()), last);
                }
            }
        }
    }
}
