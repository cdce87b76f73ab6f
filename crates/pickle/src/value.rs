//! [`Value`]: the plain data a pickle can hold.
//!
//! Dictionaries keep the order of their entries. Python's `str` and `bytes` stay apart; the
//! accessors that callers use for files from the Python 2 era ([`Value::text`], [`Value::get`])
//! accept either.

/// Plain data as Python knows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// `int`, within 64 bits.
    Int(i64),
    /// `float`.
    Float(f64),
    /// `bytes`; also a Python 2 `str`.
    Bytes(Vec<u8>),
    /// `str`; also a Python 2 `unicode`.
    Str(String),
    /// `list`.
    List(Vec<Value>),
    /// `tuple`.
    Tuple(Vec<Value>),
    /// `dict`, in insertion order, each key once.
    Dict(Vec<(Value, Value)>),
    /// `set` or `frozenset`, in the order written.
    Set(Vec<Value>),
    /// Swift's `HeaderKeyDict`, found in `async_pending` files.
    Headers(Vec<(Value, Value)>),
    /// `array.array` of unsigned integers, found in `.builder` files.
    Array(ArrayCode, Vec<u64>),
}

/// The item type of a Python `array.array`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayCode {
    /// `B`, one byte.
    U8,
    /// `H`, two bytes.
    U16,
    /// `I`, four bytes.
    U32,
    /// `L`, eight bytes where Swift runs.
    ULong,
    /// `Q`, eight bytes.
    U64,
}

impl ArrayCode {
    /// The letter Python uses.
    pub fn letter(self) -> char {
        match self {
            ArrayCode::U8 => 'B',
            ArrayCode::U16 => 'H',
            ArrayCode::U32 => 'I',
            ArrayCode::ULong => 'L',
            ArrayCode::U64 => 'Q',
        }
    }

    /// The code for a letter, if it is one of the unsigned integer codes.
    pub fn from_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "B" => ArrayCode::U8,
            "H" => ArrayCode::U16,
            "I" => ArrayCode::U32,
            "L" => ArrayCode::ULong,
            "Q" => ArrayCode::U64,
            _ => return None,
        })
    }

    /// The largest item the code can hold.
    pub fn max(self) -> u64 {
        match self {
            ArrayCode::U8 => u64::from(u8::MAX),
            ArrayCode::U16 => u64::from(u16::MAX),
            ArrayCode::U32 => u64::from(u32::MAX),
            ArrayCode::ULong | ArrayCode::U64 => u64::MAX,
        }
    }
}

impl Value {
    /// A `str`.
    pub fn str(text: impl Into<String>) -> Value {
        Value::Str(text.into())
    }

    /// A `bytes`.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Value {
        Value::Bytes(bytes.into())
    }

    /// The text of a `str`, or of `bytes` that are UTF-8 (what a Python 2 service wrote).
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The bytes of `bytes`, or the UTF-8 of a `str`.
    pub fn raw(&self) -> Option<&[u8]> {
        match self {
            Value::Str(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The integer, also of a `bool`.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(flag) => Some(i64::from(*flag)),
            _ => None,
        }
    }

    /// The number as a float.
    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The entries of a dictionary.
    pub fn entries(&self) -> Option<&[(Value, Value)]> {
        match self {
            Value::Dict(entries) | Value::Headers(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a list, tuple or set.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) | Value::Tuple(items) | Value::Set(items) => Some(items),
            _ => None,
        }
    }

    /// The entry of a dictionary under a text key, written as `str` or as `bytes`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let is_key = |found: &Value| found.raw() == Some(key.as_bytes());
        self.entries()?
            .iter()
            .find(|(found, _)| is_key(found))
            .map(|(_, value)| value)
    }

    /// Whether this is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Float(number)
    }
}
