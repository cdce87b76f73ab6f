//! Dictionaries of text to text, numbers and the like, without a [`Value`](crate::Value) for each.
//!
//! Suffix hashes are such dictionaries, of thousands of entries, and replication reads and writes them all day.
//! Always holds: what [`DictWriter`] writes is what [`crate::dumps`] writes for the same entries; what [`loads_flat`] reads,
//! [`crate::loads`] reads alike; everything that is not spelled as CPython spells it at protocol 2 is left to that.

use crate::opcode as op;
use crate::write::Writer;

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

/// The entries of a flat dictionary in their order, a key perhaps twice (the last counts); `None` for anything else, which
/// may still be a pickle.
pub fn loads_flat(input: &[u8]) -> Option<Vec<(&str, Flat<'_>)>> {
    let mut reader = Reader {
        rest: input,
        memo: vec![None],
    };
    reader.expect(&[op::PROTO, 2, op::EMPTY_DICT, op::BINPUT, 0])?;
    let mut entries = vec![];
    loop {
        match reader.byte()? {
            op::STOP => return Some(entries),
            op::MARK => {
                while reader.rest.first() != Some(&op::SETITEMS) {
                    entries.push(reader.entry()?);
                }
                reader.byte()?;
            }
            first => {
                let key = reader.text(first)?;
                let value = reader.value()?;
                reader.expect(&[op::SETITEM])?;
                entries.push((key, value));
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    /// What has been numbered; `None` is the dictionary.
    memo: Vec<Option<&'a str>>,
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

    fn entry(&mut self) -> Option<(&'a str, Flat<'a>)> {
        let first = self.byte()?;
        Some((self.text(first)?, self.value()?))
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
                self.put()?;
                self.memo.push(Some(text));
                return Some(text);
            }
            op::BINGET => self.byte()?.into(),
            op::LONG_BINGET => self.word()?,
            _ => return None,
        };
        *self.memo.get(usize::try_from(known).ok()?)?
    }

    /// The number of what follows in the memo, which has to be the next.
    fn put(&mut self) -> Option<()> {
        let number = match self.byte()? {
            op::BINPUT => self.byte()?.into(),
            op::LONG_BINPUT => self.word()?,
            _ => return None,
        };
        (usize::try_from(number).ok()? == self.memo.len()).then_some(())
    }
}

/// Writes a flat dictionary entry by entry.
pub struct DictWriter {
    writer: Writer,
    count: usize,
    written: usize,
}

impl DictWriter {
    /// Begins a dictionary of `count` entries.
    pub fn new(count: usize) -> Self {
        let mut writer = Writer::new();
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
    use crate::{Limits, Value, dumps, loads};
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

    proptest! {
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
                let whole = loads(&bytes, &Limits::default()).unwrap();
                for (key, _) in &read {
                    let last = read.iter().rev().find(|(other, _)| other == key).unwrap().1;
                    prop_assert_eq!(flat(whole.get(key).unwrap()), last);
                }
            }
        }
    }
}
