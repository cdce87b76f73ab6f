//! What the protocols share: by which steps a value is written, and which objects are named by their number when they
//! come again. `write.rs` and `write_text.rs` are the two; each says how the steps look.

use crate::memo::{ARRAY, BYTES, ENCODE, Memo, SET, Singleton};
use crate::opcode as op;
use crate::value::Value;
use std::borrow::Cow;

/// A pickle that is being written.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    memo: Memo,
}

impl Output {
    /// The finished pickle.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(op::STOP);
        self.bytes
    }

    pub(crate) fn push(&mut self, opcode: u8) {
        self.bytes.push(opcode);
    }

    /// An opcode with text up to the end of the line.
    pub(crate) fn line(&mut self, opcode: u8, text: &str) {
        self.push(opcode);
        self.bytes.extend(text.as_bytes());
        self.push(b'\n');
    }
}

/// How one protocol writes.
pub(crate) trait Protocol: Sized {
    fn output(&mut self) -> &mut Output;
    fn bool(&mut self, yes: bool);
    fn int(&mut self, number: i128);
    fn float(&mut self, number: f64);
    /// A text itself.
    fn characters(&mut self, text: &str);
    /// Names an object that was written before.
    fn get(&mut self, number: u32);
    /// Gives an object just written its number.
    fn number(&mut self, number: u32);
    /// Before the items of a tuple.
    fn begin_tuple(&mut self, count: usize);
    /// Behind them.
    fn end_tuple(&mut self, count: usize);
    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T));
    fn dict(&mut self, entries: &[(Value, Value)]);
    fn headers(&mut self, entries: &[(Value, Value)]);

    fn value(&mut self, value: &Value) {
        match value {
            Value::None => self.none(),
            Value::Bool(yes) => self.bool(*yes),
            Value::Int(number) => self.int(i128::from(*number)),
            Value::Float(number) => self.float(*number),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Str(text) => self.str(text),
            Value::List(items) => self.list(items, Self::value),
            Value::Tuple(items) => self.tuple(items),
            Value::Dict(entries) => self.dict(entries),
            Value::Set(items) => {
                self.global(SET);
                self.begin_tuple(1);
                self.list(items, Self::value);
                self.reduce(1, None);
            }
            Value::Headers(entries) => self.headers(entries),
            Value::Array(code, items) => {
                self.global(ARRAY);
                self.begin_tuple(2);
                self.str(&code.letter().to_string());
                self.list(items, |writer, &item| writer.int(i128::from(item)));
                self.reduce(2, None);
            }
        }
    }

    fn none(&mut self) {
        self.output().push(op::NONE);
    }

    fn str(&mut self, text: &str) {
        self.text(text, Singleton::of_str(text));
    }

    fn text(&mut self, text: &str, singleton: Option<Singleton>) {
        if !self.known(singleton) {
            self.characters(text);
            self.put(singleton);
        }
    }

    /// Neither protocol has bytes: they are `_codecs.encode(text, 'latin1')`, or `bytes()` if empty.
    fn bytes(&mut self, bytes: &[u8]) {
        let singleton = Singleton::of_bytes(bytes);
        if self.known(singleton) {
            return;
        }
        if bytes.is_empty() {
            self.global(BYTES);
            self.begin_tuple(0);
            return self.reduce(0, singleton);
        }
        self.global(ENCODE);
        self.begin_tuple(2);
        let text: Cow<'_, str> = match std::str::from_utf8(bytes).ok().filter(|_| bytes.is_ascii()) {
            Some(text) => text.into(),
            None => bytes.iter().map(|&byte| char::from(byte)).collect(),
        };
        self.str(&text);
        self.text("latin1", Some(Singleton::Latin1Name));
        self.reduce(2, singleton);
    }

    fn tuple(&mut self, items: &[Value]) {
        self.begin_tuple(items.len());
        items.iter().for_each(|item| self.value(item));
        self.close_tuple(items.len());
    }

    fn close_tuple(&mut self, count: usize) {
        self.end_tuple(count);
        if count > 0 {
            self.put(None);
        }
    }

    /// Closes the tuple of arguments and applies the global before it.
    fn reduce(&mut self, arguments: usize, singleton: Option<Singleton>) {
        self.close_tuple(arguments);
        self.output().push(op::REDUCE);
        self.put(singleton);
    }

    fn global(&mut self, name: &'static str) {
        let singleton = Some(Singleton::Global(name));
        if !self.known(singleton) {
            self.output().line(op::GLOBAL, name);
            self.put(singleton);
        }
    }

    /// Writes the number of an object that was written before; says whether it did.
    fn known(&mut self, singleton: Option<Singleton>) -> bool {
        let number = singleton.and_then(|object| self.output().memo.find(object));
        number.inspect(|&number| self.get(number)).is_some()
    }

    fn put(&mut self, singleton: Option<Singleton>) {
        let number = self.output().memo.put(singleton);
        self.number(number);
    }
}
