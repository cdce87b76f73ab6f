//! [`Suffix`], [`SuffixHash`] and the [`Hashes`] of a partition, as they are kept and as servers send them.
//!
//! A partition may have 4096 suffixes, and replication compares all of them each time; here they take no text.
//! Always holds: a suffix is three lower-case hexadecimal digits and a hash 32 of them wherever they are spelled.

use pickle::{DictWriter, Flat, PickleError, PickleLimits, loads_flat};
use std::collections::BTreeMap;
use std::fmt;
use vocabulary::{PathHash, hex};

/// The last three digits of a path's hash, after which a directory is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Suffix(u16);

/// MD5 of what is below a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SuffixHash(pub(crate) [u8; 16]);

/// The hash of each suffix that holds anything.
pub type Hashes = BTreeMap<Suffix, SuffixHash>;

impl Suffix {
    /// Where an object of this hash belongs.
    pub fn of(hash: PathHash) -> Self {
        Self(u16::from_be_bytes([hash.0[14], hash.0[15]]) & 0xfff)
    }

    /// Reads three digits; `None` if it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 3] = text.as_bytes().try_into().ok()?;
        let digit = |byte: u8| hex::lower_digit(byte).map(u16::from);
        Some(Self(
            digit(digits[0])? << 8 | digit(digits[1])? << 4 | digit(digits[2])?,
        ))
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

impl SuffixHash {
    /// Reads 32 digits; `None` if it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        PathHash::from_hex(text).map(|hash| Self(hash.0))
    }
}

impl fmt::Display for SuffixHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PathHash(self.0).fmt(f)
    }
}

impl Suffix {
    pub(crate) fn digits(self) -> [u8; 3] {
        let [first, rest] = self.0.to_be_bytes();
        let ([_, first], [second, third]) = (hex::pair(first), hex::pair(rest));
        [first, second, third]
    }
}

impl SuffixHash {
    pub(crate) fn digits(self) -> [u8; 32] {
        hex::digits(self.0)
    }
}

/// An entry of what is written; digits are text.
pub(crate) fn write_entry(writer: &mut DictWriter, suffix: Suffix, hash: Option<SuffixHash>) {
    let (suffix, hash) = (suffix.digits(), hash.map(SuffixHash::digits));
    let hash = hash.as_ref().and_then(|digits| std::str::from_utf8(digits).ok());
    writer.entry(
        std::str::from_utf8(&suffix).unwrap_or_default(),
        hash.map_or(Flat::None, Flat::Text),
    );
}

/// The hashes as a server sends them: a pickled dictionary.
pub fn encode_hashes(hashes: &Hashes) -> Vec<u8> {
    let mut writer = DictWriter::new(hashes.len());
    for (suffix, hash) in hashes {
        write_entry(&mut writer, *suffix, Some(*hash));
    }
    writer.finish()
}

/// Why bytes are not the hashes of suffixes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashesError {
    /// They are no pickle.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// They are a pickle of something else.
    #[error("the hashes are not a dictionary")]
    NoDictionary,
    /// A record has an entry of another name.
    #[error("{0} is no suffix")]
    NoSuffix(String),
}

/// Reads what a server sent. What is no hash, or not of a suffix, is passed over, as if nothing were there.
///
/// # Errors
/// For anything but a dictionary.
pub fn decode_hashes(sent: &[u8]) -> Result<Hashes, HashesError> {
    let entry = |suffix: &str, hash: &str| Some((Suffix::parse(suffix)?, SuffixHash::parse(hash)?));
    if let Some(entries) = loads_flat(sent) {
        let read = entries.into_iter().filter_map(|(suffix, hash)| match hash {
            Flat::Text(hash) => entry(suffix, hash),
            _ => None,
        });
        return Ok(read.collect());
    }
    let value = pickle::loads(sent, &PickleLimits::default())?;
    let entries = value.entries().ok_or(HashesError::NoDictionary)?;
    let read = entries
        .iter()
        .filter_map(|(suffix, hash)| entry(suffix.text()?, hash.text()?));
    Ok(read.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickle::Value;

    fn some() -> Hashes {
        let of = |number: u16| (Suffix(number), SuffixHash([number as u8; 16]));
        [0, 0xabc, 0xfff].map(of).into()
    }

    #[test]
    fn suffixes_and_hashes_are_spelled_and_read() {
        let path = PathHash::from_hex("0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(Suffix::of(path).to_string(), path.suffix());
        for text in ["000", "abc", "fff", "0a1"] {
            assert_eq!(Suffix::parse(text).unwrap().to_string(), text);
            assert_eq!(Suffix::parse(text).unwrap().digits(), text.as_bytes());
        }
        for text in ["", "ab", "abcd", "ABC", "xyz", "é0"] {
            assert_eq!(Suffix::parse(text), None);
        }
        let hash = SuffixHash(path.0);
        assert_eq!(
            (hash.to_string().as_bytes(), SuffixHash::parse(&path.hex())),
            (&hash.digits()[..], Some(hash))
        );
    }

    #[test]
    fn what_is_sent_is_read_and_odd_entries_are_passed_over() {
        let sent = encode_hashes(&some());
        assert_eq!(decode_hashes(&sent), Ok(some()));
        let text = |entries: &[(&str, Value)]| {
            let entries = entries.iter().map(|(key, value)| (Value::str(*key), value.clone()));
            pickle::dumps(&Value::Dict(entries.collect()))
        };
        let hash = || Value::from(SuffixHash([7; 16]).to_string());
        let odd = text(&[
            ("abc", hash()),
            ("xyz", hash()),
            ("abd", Value::None),
            ("abe", Value::str("x")),
            ("abf", Value::Int(1)),
        ]);
        assert_eq!(loads_flat(&odd), None);
        assert_eq!(decode_hashes(&odd).unwrap().len(), 1);
        assert!(decode_hashes(&pickle::dumps(&Value::List(vec![]))).is_err());
        assert!(decode_hashes(b"rubbish").is_err());
    }
}
