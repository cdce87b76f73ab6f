//! [`dumps`]: protocol 2 exactly as CPython 3.11's C pickler writes it.
//!
//! What always holds: the same data gives the same bytes as `pickle.dumps(data, protocol=2)` for
//! data whose strings came from outside the program (see [`crate::memo`]), including the batches
//! of a thousand and the empty batch that CPython leaves behind a dict of exactly n thousand.

use crate::memo::{ARRAY, BYTES, ENCODE, HEADERS, Memo, SET, Singleton};
use crate::opcode as op;
use crate::value::{ArrayCode, Value};
use std::borrow::Cow;

/// CPython's own batch size for APPENDS and SETITEMS.
const BATCH: usize = 1000;

/// Writes a value at protocol 2, byte for byte as CPython does.
pub fn dumps(value: &Value) -> Vec<u8> {
    let mut writer = PickleWriter::new();
    writer.value(value);
    writer.finish()
}

pub(crate) struct PickleWriter {
    out: Vec<u8>,
    memo: Memo,
}

impl PickleWriter {
    pub(crate) fn new() -> Self {
        Self {
            out: vec![op::PROTO, 2],
            memo: Memo::default(),
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.out.push(op::STOP);
        self.out
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::None => self.none(),
            Value::Bool(yes) => self.bool(*yes),
            Value::Int(number) => self.int(*number),
            Value::Float(number) => self.float(*number),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Str(text) => self.str(text),
            Value::List(items) => self.list(items),
            Value::Tuple(items) => self.tuple(items),
            Value::Dict(entries) => self.dict(entries),
            Value::Set(items) => self.set(items),
            Value::Headers(entries) => self.headers(entries),
            Value::Array(code, items) => self.array(*code, items),
        }
    }

    pub(crate) fn none(&mut self) {
        self.out.push(op::NONE);
    }

    pub(crate) fn bool(&mut self, yes: bool) {
        self.out.push(if yes { op::NEWTRUE } else { op::NEWFALSE });
    }

    pub(crate) fn str(&mut self, text: &str) {
        self.text(text, Singleton::of_str(text));
    }

    fn int(&mut self, number: i64) {
        if let Ok(byte) = u8::try_from(number) {
            self.out.extend([op::BININT1, byte]);
        } else if let Ok(short) = u16::try_from(number) {
            self.out.push(op::BININT2);
            self.out.extend(short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(number) {
            self.out.push(op::BININT);
            self.out.extend(word.to_le_bytes());
        } else {
            self.long(i128::from(number));
        }
    }

    /// LONG1: the fewest little-endian bytes that keep the sign.
    fn long(&mut self, number: i128) {
        let bytes = number.to_le_bytes();
        let fits = |len: usize| {
            let shift = 128 - 8 * len as u32;
            (number << shift) >> shift == number
        };
        let len = (1..16).find(|&len| fits(len)).unwrap_or(16);
        self.out.extend([op::LONG1, len as u8]);
        self.out.extend(&bytes[..len]);
    }

    pub(crate) fn float(&mut self, number: f64) {
        self.out.push(op::BINFLOAT);
        self.out.extend(number.to_be_bytes());
    }

    fn text(&mut self, text: &str, singleton: Option<Singleton>) {
        if self.known(singleton) {
            return;
        }
        // A str of 4 GiB or more cannot be written at protocol 2; nothing Swift stores comes near.
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.out.push(op::BINUNICODE);
        self.out.extend(len.to_le_bytes());
        self.out.extend(text.as_bytes());
        self.put(singleton);
    }

    /// Protocol 2 has no bytes: they are `_codecs.encode(text, 'latin1')`, or `bytes()` if empty.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let singleton = Singleton::of_bytes(bytes);
        if self.known(singleton) {
            return;
        }
        if bytes.is_empty() {
            self.global(BYTES);
            self.out.push(op::EMPTY_TUPLE);
        } else {
            self.global(ENCODE);
            let text: Cow<'_, str> = match std::str::from_utf8(bytes).ok().filter(|_| bytes.is_ascii()) {
                Some(text) => text.into(),
                None => bytes.iter().map(|&byte| char::from(byte)).collect(),
            };
            self.text(&text, Singleton::of_str(&text));
            self.text("latin1", Some(Singleton::Latin1Name));
            self.out.push(op::TUPLE2);
            self.put(None);
        }
        self.out.push(op::REDUCE);
        self.put(singleton);
    }

    fn list(&mut self, items: &[Value]) {
        self.out.push(op::EMPTY_LIST);
        self.put(None);
        self.appends(items.len(), items.iter(), |writer, item| writer.value(item));
    }

    fn appends<T>(&mut self, count: usize, mut items: impl Iterator<Item = T>, write: impl Fn(&mut Self, T)) {
        if count == 1 {
            items.by_ref().for_each(|item| write(self, item));
            self.out.push(op::APPEND);
            return;
        }
        for _ in 0..count.div_ceil(BATCH) {
            self.out.push(op::MARK);
            items.by_ref().take(BATCH).for_each(|item| write(self, item));
            self.out.push(op::APPENDS);
        }
    }

    fn tuple(&mut self, items: &[Value]) {
        let short = match items.len() {
            0 => return self.out.push(op::EMPTY_TUPLE),
            1 => Some(op::TUPLE1),
            2 => Some(op::TUPLE2),
            3 => Some(op::TUPLE3),
            _ => None,
        };
        if short.is_none() {
            self.out.push(op::MARK);
        }
        items.iter().for_each(|item| self.value(item));
        self.out.push(short.unwrap_or(op::TUPLE));
        self.put(None);
    }

    fn dict(&mut self, entries: &[(Value, Value)]) {
        self.begin_dict(entries.len());
        for (written, (key, value)) in (1..).zip(entries) {
            self.value(key);
            self.value(value);
            self.after_entry(written, entries.len());
        }
    }

    /// A dict of `count` entries follows: its keys and values, and after each [`PickleWriter::after_entry`].
    pub(crate) fn begin_dict(&mut self, count: usize) {
        self.out.push(op::EMPTY_DICT);
        self.put(None);
        if count > 1 {
            self.out.push(op::MARK);
        }
    }

    /// `written` of `count` entries are written. One batch more begins than there are full ones: after n thousand
    /// entries it stays empty.
    pub(crate) fn after_entry(&mut self, written: usize, count: usize) {
        if count == 1 {
            return self.out.push(op::SETITEM);
        }
        if written.is_multiple_of(BATCH) {
            self.out.extend([op::SETITEMS, op::MARK]);
        }
        if written == count {
            self.out.push(op::SETITEMS);
        }
    }

    fn single(&mut self, (key, value): &(Value, Value)) {
        self.value(key);
        self.value(value);
        self.out.push(op::SETITEM);
    }

    fn batch(&mut self, entries: &[(Value, Value)]) {
        self.out.push(op::MARK);
        for (key, value) in entries {
            self.value(key);
            self.value(value);
        }
        self.out.push(op::SETITEMS);
    }

    fn set(&mut self, items: &[Value]) {
        self.global(SET);
        self.list(items);
        self.out.push(op::TUPLE1);
        self.put(None);
        self.out.push(op::REDUCE);
        self.put(None);
    }

    /// A dict subclass is built empty and filled in batches, here without an empty one at the end.
    fn headers(&mut self, entries: &[(Value, Value)]) {
        self.global(HEADERS);
        self.out.extend([op::EMPTY_TUPLE, op::NEWOBJ]);
        self.put(None);
        for chunk in entries.chunks(BATCH) {
            match chunk {
                [only] => self.single(only),
                _ => self.batch(chunk),
            }
        }
    }

    fn array(&mut self, code: ArrayCode, items: &[u64]) {
        self.global(ARRAY);
        let letter = code.letter().to_string();
        self.text(&letter, Singleton::of_str(&letter));
        self.out.push(op::EMPTY_LIST);
        self.put(None);
        self.appends(items.len(), items.iter(), |writer, &item| match i64::try_from(item) {
            Ok(number) => writer.int(number),
            Err(_) => writer.long(i128::from(item)),
        });
        self.out.push(op::TUPLE2);
        self.put(None);
        self.out.push(op::REDUCE);
        self.put(None);
    }

    fn global(&mut self, name: &'static str) {
        let singleton = Some(Singleton::Global(name));
        if !self.known(singleton) {
            self.out.push(op::GLOBAL);
            self.out.extend(name.as_bytes());
            self.out.push(b'\n');
            self.put(singleton);
        }
    }

    /// Writes the number of an object that was written before; says whether it did.
    fn known(&mut self, singleton: Option<Singleton>) -> bool {
        let Some(number) = singleton.and_then(|object| self.memo.find(object)) else {
            return false;
        };
        self.numbered(op::BINGET, op::LONG_BINGET, number);
        true
    }

    fn put(&mut self, singleton: Option<Singleton>) {
        let number = self.memo.put(singleton);
        self.numbered(op::BINPUT, op::LONG_BINPUT, number);
    }

    fn numbered(&mut self, short: u8, long: u8, number: u32) {
        match u8::try_from(number) {
            Ok(byte) => self.out.extend([short, byte]),
            Err(_) => {
                self.out.push(long);
                self.out.extend(number.to_le_bytes());
            }
        }
    }
}
