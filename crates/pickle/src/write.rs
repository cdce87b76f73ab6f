//! [`dumps`]: protocol 2 exactly as CPython 3.11's C pickler writes it.
//!
//! What always holds: the same data gives the same bytes as `pickle.dumps(data, protocol=2)` for
//! data whose strings came from outside the program (see [`crate::memo`]), including the batches
//! of a thousand and the empty batch that CPython leaves behind a dict of exactly n thousand.

use crate::memo::HEADERS;
use crate::opcode as op;
use crate::protocol::{Output, Protocol};
use crate::value::Value;

/// CPython's own batch size for APPENDS and SETITEMS.
const BATCH: usize = 1000;

/// Writes a value at protocol 2, byte for byte as CPython does.
pub fn dumps(value: &Value) -> Vec<u8> {
    let mut writer = PickleWriter::new();
    writer.value(value);
    writer.finish()
}

pub(crate) struct PickleWriter(Output);

impl PickleWriter {
    pub(crate) fn new() -> Self {
        let mut output = Output::default();
        output.bytes.extend([op::PROTO, 2]);
        Self(output)
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finish()
    }

    /// LONG1: the fewest little-endian bytes that keep the sign.
    fn long(&mut self, number: i128) {
        let bytes = number.to_le_bytes();
        let fits = |len: usize| {
            let shift = 128 - 8 * len as u32;
            (number << shift) >> shift == number
        };
        let len = (1..16).find(|&len| fits(len)).unwrap_or(16);
        self.0.bytes.extend([op::LONG1, len as u8]);
        self.0.bytes.extend(&bytes[..len]);
    }

    /// A dict of `count` entries follows: its keys and values, and after each [`PickleWriter::after_entry`].
    pub(crate) fn begin_dict(&mut self, count: usize) {
        self.0.push(op::EMPTY_DICT);
        self.put(None);
        if count > 1 {
            self.0.push(op::MARK);
        }
    }

    /// `written` of `count` entries are written. One batch more begins than there are full ones: after n thousand
    /// entries it stays empty.
    pub(crate) fn after_entry(&mut self, written: usize, count: usize) {
        if count == 1 {
            return self.0.push(op::SETITEM);
        }
        if written.is_multiple_of(BATCH) {
            self.0.bytes.extend([op::SETITEMS, op::MARK]);
        }
        if written == count {
            self.0.push(op::SETITEMS);
        }
    }

    fn numbered(&mut self, short: u8, long: u8, number: u32) {
        match u8::try_from(number) {
            Ok(byte) => self.0.bytes.extend([short, byte]),
            Err(_) => {
                self.0.push(long);
                self.0.bytes.extend(number.to_le_bytes());
            }
        }
    }
}

impl Protocol for PickleWriter {
    fn output(&mut self) -> &mut Output {
        &mut self.0
    }

    fn bool(&mut self, yes: bool) {
        self.0.push(if yes { op::NEWTRUE } else { op::NEWFALSE });
    }

    fn int(&mut self, number: i128) {
        if let Ok(byte) = u8::try_from(number) {
            self.0.bytes.extend([op::BININT1, byte]);
        } else if let Ok(short) = u16::try_from(number) {
            self.0.push(op::BININT2);
            self.0.bytes.extend(short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(number) {
            self.0.push(op::BININT);
            self.0.bytes.extend(word.to_le_bytes());
        } else {
            self.long(number);
        }
    }

    fn float(&mut self, number: f64) {
        self.0.push(op::BINFLOAT);
        self.0.bytes.extend(number.to_be_bytes());
    }

    fn characters(&mut self, text: &str) {
        // A str of 4 GiB or more cannot be written at protocol 2; nothing Swift stores comes near.
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.0.push(op::BINUNICODE);
        self.0.bytes.extend(len.to_le_bytes());
        self.0.bytes.extend(text.as_bytes());
    }

    fn get(&mut self, number: u32) {
        self.numbered(op::BINGET, op::LONG_BINGET, number);
    }

    fn number(&mut self, number: u32) {
        self.numbered(op::BINPUT, op::LONG_BINPUT, number);
    }

    fn begin_tuple(&mut self, count: usize) {
        if count > 3 {
            self.0.push(op::MARK);
        }
    }

    fn end_tuple(&mut self, count: usize) {
        self.0.push(match count {
            0 => op::EMPTY_TUPLE,
            1 => op::TUPLE1,
            2 => op::TUPLE2,
            3 => op::TUPLE3,
            _ => op::TUPLE,
        });
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.0.push(op::EMPTY_LIST);
        self.put(None);
        if let [only] = items {
            write(self, only);
            return self.0.push(op::APPEND);
        }
        for batch in items.chunks(BATCH) {
            self.0.push(op::MARK);
            batch.iter().for_each(|item| write(self, item));
            self.0.push(op::APPENDS);
        }
    }

    fn dict(&mut self, entries: &[(Value, Value)]) {
        self.begin_dict(entries.len());
        for (written, (key, value)) in (1..).zip(entries) {
            self.value(key);
            self.value(value);
            self.after_entry(written, entries.len());
        }
    }

    /// A dict subclass is built empty and filled in batches, here without an empty one at the end.
    fn headers(&mut self, entries: &[(Value, Value)]) {
        self.global(HEADERS);
        self.0.bytes.extend([op::EMPTY_TUPLE, op::NEWOBJ]);
        self.put(None);
        for batch in entries.chunks(BATCH) {
            let several = batch.len() > 1;
            if several {
                self.0.push(op::MARK);
            }
            for (key, value) in batch {
                self.value(key);
                self.value(value);
            }
            self.0.push(if several { op::SETITEMS } else { op::SETITEM });
        }
    }
}
