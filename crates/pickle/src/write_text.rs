//! [`dumps_protocol0`]: the text protocol exactly as CPython 3.11's C pickler writes it.
//!
//! Swift's object server writes its `async_pending` files so. The memo rule is the one of
//! protocol 2 ([`crate::memo`]); everything else is lines of text.

use crate::memo::{ARRAY, BYTES, DICT, ENCODE, HEADERS, Memo, RECONSTRUCTOR, SET, Singleton};
use crate::opcode as op;
use crate::value::Value;

/// Writes a value at protocol 0, byte for byte as CPython does.
pub fn dumps_protocol0(value: &Value) -> Vec<u8> {
    let mut writer = Writer {
        out: Vec::new(),
        memo: Memo::default(),
    };
    writer.value(value);
    writer.out.push(op::STOP);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    memo: Memo,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::None => self.out.push(op::NONE),
            Value::Bool(flag) => self.line(op::INT, if *flag { "01" } else { "00" }),
            Value::Int(number) => self.int(i128::from(*number)),
            Value::Float(number) => self.line(op::FLOAT, &pythonic::float(*number)),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Str(text) => self.text(text, Singleton::of_str(text)),
            Value::List(items) => self.list(items),
            Value::Tuple(items) => self.tuple(items),
            Value::Dict(entries) => self.dict(entries),
            Value::Set(items) => self.set(items),
            Value::Headers(entries) => self.headers(entries),
            Value::Array(code, items) => self.array(code.letter(), items),
        }
    }

    fn int(&mut self, number: i128) {
        match i32::try_from(number) {
            Ok(word) => self.line(op::INT, &word.to_string()),
            Err(_) => self.line(op::LONG, &format!("{number}L")),
        }
    }

    /// Raw-unicode-escape: Latin-1 as it is, the rest and what would end the line escaped.
    fn text(&mut self, text: &str, singleton: Option<Singleton>) {
        if self.known(singleton) {
            return;
        }
        self.out.push(op::UNICODE);
        for character in text.chars() {
            let code = u32::from(character);
            match (character, u8::try_from(character)) {
                ('\\' | '\n' | '\r' | '\0' | '\x1a', _) => {
                    self.out.extend(format!("\\u{code:04x}").bytes());
                }
                (_, Ok(byte)) => self.out.push(byte),
                _ if code <= 0xffff => self.out.extend(format!("\\u{code:04x}").bytes()),
                _ => self.out.extend(format!("\\U{code:08x}").bytes()),
            }
        }
        self.out.push(b'\n');
        self.put(singleton);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let singleton = Singleton::of_bytes(bytes);
        if self.known(singleton) {
            return;
        }
        if bytes.is_empty() {
            self.global(BYTES);
            self.out.extend([op::MARK, op::TUPLE]);
        } else {
            self.global(ENCODE);
            self.out.push(op::MARK);
            let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            self.text(&text, Singleton::of_str(&text));
            self.text("latin1", Some(Singleton::Latin1Name));
            self.out.push(op::TUPLE);
            self.put(None);
        }
        self.out.push(op::REDUCE);
        self.put(singleton);
    }

    fn list(&mut self, items: &[Value]) {
        self.out.extend([op::MARK, op::LIST]);
        self.put(None);
        for item in items {
            self.value(item);
            self.out.push(op::APPEND);
        }
    }

    fn tuple(&mut self, items: &[Value]) {
        self.out.push(op::MARK);
        items.iter().for_each(|item| self.value(item));
        self.out.push(op::TUPLE);
        if !items.is_empty() {
            self.put(None);
        }
    }

    fn dict(&mut self, entries: &[(Value, Value)]) {
        self.out.extend([op::MARK, op::DICT]);
        self.put(None);
        for (key, value) in entries {
            self.value(key);
            self.value(value);
            self.out.push(op::SETITEM);
        }
    }

    fn set(&mut self, items: &[Value]) {
        self.global(SET);
        self.out.push(op::MARK);
        self.list(items);
        self.reduce();
    }

    fn headers(&mut self, entries: &[(Value, Value)]) {
        self.global(RECONSTRUCTOR);
        self.out.push(op::MARK);
        self.global(HEADERS);
        self.global(DICT);
        self.dict(entries);
        self.reduce();
    }

    fn array(&mut self, letter: char, items: &[u64]) {
        self.global(ARRAY);
        self.out.push(op::MARK);
        let letter = letter.to_string();
        self.text(&letter, Singleton::of_str(&letter));
        self.out.extend([op::MARK, op::LIST]);
        self.put(None);
        for &item in items {
            self.int(i128::from(item));
            self.out.push(op::APPEND);
        }
        self.reduce();
    }

    /// Closes the argument tuple and applies the global to it.
    fn reduce(&mut self) {
        self.out.push(op::TUPLE);
        self.put(None);
        self.out.push(op::REDUCE);
        self.put(None);
    }

    fn global(&mut self, name: &'static str) {
        let singleton = Some(Singleton::Global(name));
        if !self.known(singleton) {
            self.line(op::GLOBAL, name);
            self.put(singleton);
        }
    }

    fn known(&mut self, singleton: Option<Singleton>) -> bool {
        let Some(number) = singleton.and_then(|object| self.memo.find(object)) else {
            return false;
        };
        self.line(op::GET, &number.to_string());
        true
    }

    fn put(&mut self, singleton: Option<Singleton>) {
        let number = self.memo.put(singleton);
        self.line(op::PUT, &number.to_string());
    }

    fn line(&mut self, opcode: u8, text: &str) {
        self.out.push(opcode);
        self.out.extend(text.as_bytes());
        self.out.push(b'\n');
    }
}
