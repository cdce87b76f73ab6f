//! [`dumps_protocol0`]: the text protocol exactly as CPython 3.11's C pickler writes it.
//!
//! Swift's object server writes its `async_pending` files so. The memo rule is the one of
//! protocol 2 ([`crate::memo`]); everything else is lines of text.

use crate::memo::{DICT, HEADERS, RECONSTRUCTOR};
use crate::opcode as op;
use crate::protocol::{Output, Protocol};
use crate::value::Value;

/// Writes a value at protocol 0, byte for byte as CPython does.
pub fn dumps_protocol0(value: &Value) -> Vec<u8> {
    let mut writer = TextWriter(Output::default());
    writer.value(value);
    writer.0.finish()
}

struct TextWriter(Output);

impl Protocol for TextWriter {
    fn output(&mut self) -> &mut Output {
        &mut self.0
    }

    fn bool(&mut self, yes: bool) {
        self.0.line(op::INT, if yes { "01" } else { "00" });
    }

    fn int(&mut self, number: i128) {
        match i32::try_from(number) {
            Ok(word) => self.0.line(op::INT, &word.to_string()),
            Err(_) => self.0.line(op::LONG, &format!("{number}L")),
        }
    }

    fn float(&mut self, number: f64) {
        self.0.line(op::FLOAT, &pythonic::float(number));
    }

    /// Raw-unicode-escape: Latin-1 as it is, the rest and what would end the line escaped.
    fn characters(&mut self, text: &str) {
        self.0.push(op::UNICODE);
        let out = &mut self.0.bytes;
        for character in text.chars() {
            let code = u32::from(character);
            match (character, u8::try_from(character)) {
                ('\\' | '\n' | '\r' | '\0' | '\x1a', _) => out.extend(format!("\\u{code:04x}").bytes()),
                (_, Ok(byte)) => out.push(byte),
                _ if code <= 0xffff => out.extend(format!("\\u{code:04x}").bytes()),
                _ => out.extend(format!("\\U{code:08x}").bytes()),
            }
        }
        out.push(b'\n');
    }

    fn get(&mut self, number: u32) {
        self.0.line(op::GET, &number.to_string());
    }

    fn number(&mut self, number: u32) {
        self.0.line(op::PUT, &number.to_string());
    }

    fn begin_tuple(&mut self, _: usize) {
        self.0.push(op::MARK);
    }

    fn end_tuple(&mut self, _: usize) {
        self.0.push(op::TUPLE);
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.0.bytes.extend([op::MARK, op::LIST]);
        self.put(None);
        for item in items {
            write(self, item);
            self.0.push(op::APPEND);
        }
    }

    fn dict(&mut self, entries: &[(Value, Value)]) {
        self.0.bytes.extend([op::MARK, op::DICT]);
        self.put(None);
        for (key, value) in entries {
            self.value(key);
            self.value(value);
            self.0.push(op::SETITEM);
        }
    }

    fn headers(&mut self, entries: &[(Value, Value)]) {
        self.global(RECONSTRUCTOR);
        self.begin_tuple(3);
        self.global(HEADERS);
        self.global(DICT);
        self.dict(entries);
        self.reduce(3, None);
    }
}
