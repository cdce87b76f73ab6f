//! Which objects CPython's pickler meets twice.
//!
//! The pickler numbers every string, container, global and reduce result as it first writes it and
//! writes only the number when the *same object* comes again. Data that was read from the network
//! or a disk is a fresh object each time, with these exceptions, which CPython keeps as singletons:
//! globals, the `latin1` argument of `_codecs.encode`, the empty `str` and `bytes`, one-byte
//! `bytes`, and one-character `str` up to U+00FF.
//!
//! [`Memo`] is that rule; both writers share it. Found by experiment, held by `tests/golden`.

/// An object that CPython has only one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Singleton {
    /// A global, as `module\nname`.
    Global(&'static str),
    /// The encoding name in `_codecs.encode(text, 'latin1')`.
    Latin1Name,
    /// The empty `str` (`None`) or a one-character `str` up to U+00FF.
    Str(Option<u8>),
    /// The empty `bytes` (`None`) or a one-byte `bytes`.
    Bytes(Option<u8>),
}

impl Singleton {
    /// The singleton a `str` is, if it is one.
    pub(crate) fn of_str(text: &str) -> Option<Singleton> {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (None, _) => Some(Singleton::Str(None)),
            (Some(only), None) => u8::try_from(only).ok().map(|byte| Singleton::Str(Some(byte))),
            _ => None,
        }
    }

    /// The singleton a `bytes` is, if it is one.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Singleton> {
        match bytes {
            [] => Some(Singleton::Bytes(None)),
            [only] => Some(Singleton::Bytes(Some(*only))),
            _ => None,
        }
    }
}

/// The numbers given so far.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    next: u32,
    /// Few: a look at each costs less than a hash.
    seen: Vec<(Singleton, u32)>,
}

impl Memo {
    /// The number of an object already written.
    pub(crate) fn find(&self, object: Singleton) -> Option<u32> {
        let same = self.seen.iter().find(|(seen, _)| *seen == object);
        same.map(|(_, number)| *number)
    }

    /// Gives the next number to an object just written.
    pub(crate) fn put(&mut self, object: Option<Singleton>) -> u32 {
        let number = self.next;
        self.next += 1;
        if let Some(object) = object {
            self.seen.push((object, number));
        }
        number
    }
}

pub(crate) const ENCODE: &str = "_codecs\nencode";
pub(crate) const BYTES: &str = "__builtin__\nbytes";
pub(crate) const SET: &str = "__builtin__\nset";
pub(crate) const DICT: &str = "__builtin__\ndict";
pub(crate) const ARRAY: &str = "array\narray";
pub(crate) const HEADERS: &str = "swift.common.header_key_dict\nHeaderKeyDict";
pub(crate) const RECONSTRUCTOR: &str = "copy_reg\n_reconstructor";
