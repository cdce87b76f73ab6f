//! How metadata are kept: a pickled dictionary, in extended attributes of the file.
//!
//! `user.swift.metadata`, continued in `user.swift.metadata1`, `…2` when longer than 64 KiB, and
//! `user.swift.metadata_checksum`: the MD5 of the pickle in hexadecimal. Keys and values are byte
//! strings. OpenStack Swift on Python 3 takes header bytes for Latin-1 and keeps them as UTF-8, so
//! each byte above 0x7f becomes two; `name` is kept as it is. Pickles from Python 2 keep header
//! bytes as they were; which of the two wrote a pickle shows at its beginning.
//! Names that HTTP libraries refuse are encoded in [`ObjectMetadata`] (`vocabulary::header_name`) and kept as
//! what they are.
//! Always holds: any bytes are read or refused, within the pickle reader's limits.

use crate::metadata::ObjectMetadata;
use durable_fs::{FsError, Staged};
use errors::{is_missing, is_too_small};
use md5::{Digest, Md5};
use pickle::{BytesEntry, DictWriter, PickleError, PickleLimits, Value};
use std::borrow::Cow;
use std::io::{self, Write};
use vocabulary::{PathHash, header_name};
use world::files::File;

const KEY: &str = "user.swift.metadata";
const CHECKSUM_KEY: &str = "user.swift.metadata_checksum";
/// The longest value the kernel takes; OpenStack Swift splits there.
const VALUE_LIMIT: usize = 65_536;
/// What file systems take that limit values to a part of a block (btrfs).
const SMALL_VALUE_LIMIT: usize = 3_900;
/// Nearly all metadata fit, so that one call on the stack reads them.
const USUAL_LENGTH: usize = 4_096;
/// More entries than nearly any object has.
const USUAL_ENTRIES: usize = 128;
/// More than any OpenStack Swift writes.
const LONGEST: usize = 1 << 20;
/// How a pickle begins that Python 3 wrote.
const PYTHON3_MARK: &[u8] = b"_codecs\nencode";
const PYTHON3_MARK_WITHIN: usize = 32;
const NAME: &[u8] = b"name";

/// Why metadata cannot be had from a file.
#[derive(Debug)]
pub enum ReadError {
    /// They are not what was written, or not metadata at all: the file cannot be trusted.
    Bad(MetadataError),
    /// The file system refused.
    Io(io::Error),
}

/// What is wrong with the metadata of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// There are none.
    #[error("it has no metadata")]
    Missing,
    /// They are longer than any that OpenStack Swift writes.
    #[error("its metadata are too long")]
    TooLong,
    /// The attribute of their checksum holds more than a checksum.
    #[error("its metadata checksum is too long")]
    ChecksumTooLong,
    /// They are not what was written.
    #[error("its metadata do not match their checksum")]
    ChecksumMismatch,
    /// They are no pickle.
    #[error("its metadata cannot be read: {0}")]
    Pickle(#[from] PickleError),
    /// They are a pickle of something else.
    #[error("its metadata are not a dictionary")]
    NoDictionary,
    /// A name is something else than text.
    #[error("a name in its metadata is not text")]
    Name,
    /// A value is something else than text or a number.
    #[error("a value in its metadata is neither text nor number")]
    Value,
}

/// Metadata as the bytes that OpenStack Swift would keep.
pub fn encode(metadata: &ObjectMetadata) -> Vec<u8> {
    let mut writer = DictWriter::new(metadata.len());
    for (name, value) in metadata.iter() {
        let kept = match name.as_bytes() == NAME {
            true => Cow::Borrowed(value),
            false => latin1_to_utf8(value),
        };
        writer.bytes(&latin1_to_utf8(&header_name::decode(name)), &kept);
    }
    writer.finish()
}

/// The inverse of [`encode`], also for what Python 2 wrote.
pub fn decode(bytes: &[u8]) -> Result<ObjectMetadata, MetadataError> {
    let start = &bytes[..bytes.len().min(PYTHON3_MARK_WITHIN)];
    let python3 = start.windows(PYTHON3_MARK.len()).any(|window| window == PYTHON3_MARK);
    if python3 && let Some(entries) = usual(bytes) {
        return Ok(entries.iter().map(|(name, value)| item(name, value, true)).collect());
    }
    let limits = PickleLimits {
        max_bytes: LONGEST,
        ..PickleLimits::default()
    };
    let value = pickle::loads(bytes, &limits)?;
    let entries = value.entries().ok_or(MetadataError::NoDictionary)?;
    entries
        .iter()
        .map(|(name, value)| entry(name, value, python3))
        .collect()
}

/// The entries of metadata as nearly all are: spelled as CPython spells them, few, and none twice.
fn usual(bytes: &[u8]) -> Option<Vec<BytesEntry<'_>>> {
    let entries = (bytes.len() <= LONGEST).then(|| pickle::loads_bytes(bytes))??;
    let is_first = |(at, (name, _)): (usize, &BytesEntry<'_>)| entries[..at].iter().all(|(other, _)| other != name);
    let is_usual = entries.len() <= USUAL_ENTRIES && entries.iter().enumerate().all(is_first);
    is_usual.then_some(entries)
}

fn entry(name: &Value, value: &Value, python3: bool) -> Result<(String, Vec<u8>), MetadataError> {
    let name = name.raw().ok_or(MetadataError::Name)?;
    match (value.raw(), value.int()) {
        (Some(raw), _) => Ok(item(name, raw, python3)),
        (None, Some(number)) => Ok(item(name, number.to_string().as_bytes(), python3)),
        (None, None) => Err(MetadataError::Value),
    }
}

fn item(name: &[u8], value: &[u8], python3: bool) -> (String, Vec<u8>) {
    let value = match python3 && name != NAME {
        true => utf8_to_latin1(value),
        false => value.to_vec(),
    };
    let name = match python3 && !name.is_ascii() {
        true => Cow::Owned(utf8_to_latin1(name)),
        false => Cow::Borrowed(name),
    };
    // All of it is ASCII now.
    let name = String::from_utf8_lossy(&header_name::encode(&name)).into_owned();
    (name, value)
}

pub(crate) fn latin1_to_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes.is_ascii() {
        true => bytes.into(),
        false => bytes
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
            .into_bytes()
            .into(),
    }
}

/// What is not Latin-1 in UTF-8 stays as it is: it was not written through a header.
pub(crate) fn utf8_to_latin1(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_vec();
    }
    let narrow = |text: &str| text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Vec<u8>>>();
    std::str::from_utf8(bytes)
        .ok()
        .and_then(narrow)
        .unwrap_or_else(|| bytes.to_vec())
}

/// The MD5 in hexadecimal, without a string of its own.
fn checksum(pickled: &[u8]) -> [u8; 32] {
    let mut digits = [0; 32];
    // The buffer is as long as what is written.
    let _ = write!(&mut digits[..], "{}", PathHash(Md5::digest(pickled).into()));
    digits
}

/// Keeps metadata with a staged file.
pub(crate) fn write(file: &Staged, metadata: &ObjectMetadata) -> Result<(), FsError> {
    let pickled = encode(metadata);
    // First, because it is short: file systems keep it with the inode, and make room elsewhere only once.
    file.set_attribute(CHECKSUM_KEY, &checksum(&pickled))?;
    write_split(file, &pickled, VALUE_LIMIT).or_else(|error| match error {
        FsError::Io { .. } if pickled.len() > SMALL_VALUE_LIMIT => write_split(file, &pickled, SMALL_VALUE_LIMIT),
        other => Err(other),
    })
}

fn write_split(file: &Staged, pickled: &[u8], limit: usize) -> Result<(), FsError> {
    for (number, part) in pickled.chunks(limit).enumerate() {
        file.set_attribute(&key(number), part)?;
    }
    Ok(())
}

fn key(number: usize) -> Cow<'static, str> {
    match number {
        0 => KEY.into(),
        n => format!("{KEY}{n}").into(),
    }
}

/// Reads the metadata of a file and checks them against their checksum.
pub fn read(file: &dyn File) -> Result<ObjectMetadata, ReadError> {
    let mut checksum_buffer = [0; 32];
    let stored = match file.get_attribute(CHECKSUM_KEY, &mut checksum_buffer) {
        Ok(length) => Some(&checksum_buffer[..length]),
        Err(error) if is_missing(&error) => None,
        Err(error) if is_too_small(&error) => return Err(ReadError::Bad(MetadataError::ChecksumTooLong)),
        Err(error) => return Err(ReadError::Io(error)),
    };
    let matches = |pickled: &[u8]| stored.is_none_or(|stored| stored == checksum(pickled));
    let mut pickled = Vec::with_capacity(USUAL_LENGTH);
    for number in 0.. {
        let grown = append_attribute(file, &key(number), &mut pickled)?;
        // The checksum tells when all parts are there; without one only the absence of the next does.
        if !grown || (stored.is_some() && matches(&pickled)) {
            break;
        }
    }
    if pickled.is_empty() {
        return Err(ReadError::Bad(MetadataError::Missing));
    }
    if !matches(&pickled) {
        return Err(ReadError::Bad(MetadataError::ChecksumMismatch));
    }
    decode(&pickled).map_err(ReadError::Bad)
}

/// Appends an attribute; whether there was one.
fn append_attribute(file: &dyn File, key: &str, pickled: &mut Vec<u8>) -> Result<bool, ReadError> {
    let mut buffer = [0; USUAL_LENGTH];
    match file.get_attribute(key, &mut buffer) {
        Ok(length) => pickled.extend_from_slice(&buffer[..length]),
        Err(error) if is_missing(&error) => return Ok(false),
        Err(error) if is_too_small(&error) => {
            let mut long = vec![0; file.attribute_length(key).map_err(ReadError::Io)?];
            let length = file.get_attribute(key, &mut long).map_err(ReadError::Io)?;
            pickled.extend_from_slice(&long[..length]);
        }
        Err(error) => return Err(ReadError::Io(error)),
    }
    match pickled.len() <= LONGEST {
        true => Ok(true),
        false => Err(ReadError::Bad(MetadataError::TooLong)),
    }
}

/// Error numbers that `io::ErrorKind` has no name for.
mod errors {
    use std::io;

    const ENODATA: i32 = 61;
    const ERANGE: i32 = 34;

    pub(super) fn is_missing(error: &io::Error) -> bool {
        error.raw_os_error() == Some(ENODATA)
    }

    pub(super) fn is_too_small(error: &io::Error) -> bool {
        error.raw_os_error() == Some(ERANGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn metadata_are_kept_as_they_are(
            items in proptest::collection::vec(
                ("[A-Z][a-z]{1,8}-[a-z0-9]{1,8}", proptest::collection::vec(any::<u8>(), 0..40)),
                0..12,
            ),
            name in "/a/c/\\PC{1,20}",
        ) {
            let metadata = items.into_iter().collect::<ObjectMetadata>().with("name", name);
            prop_assert_eq!(decode(&encode(&metadata)), Ok(metadata));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        /// Spelled otherwise, they are read by another way, and alike.
        #[test]
        fn metadata_are_read_alike_however_they_are_spelled(
            entries in proptest::collection::vec(
                ("[a-c]{1,2}|name|\\xfc|\\xc3\\xbc", proptest::collection::vec(any::<u8>(), 0..3)),
                1..8,
            ),
        ) {
            let values = entries.iter().map(|(name, value)| (Value::bytes(name.clone()), Value::Bytes(value.clone())));
            // A number, which no metadata have, is for the other way.
            let pickled = pickle::dumps(&Value::Dict(values.clone().collect()));
            let odd = pickle::dumps(&Value::Dict(values.chain([(Value::bytes("zz"), Value::Int(7))]).collect()));
            let read = decode(&odd).map(|mut read| { read.remove("zz"); read });
            prop_assert_eq!(decode(&pickled), read);
        }

        #[test]
        fn a_spoilt_pickle_is_read_or_refused(at in 0_usize..200, byte: u8) {
            let mut bytes = encode(&ObjectMetadata::new().with("X-Timestamp", "1").with("name", "/a/c/\u{fc}"));
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = decode(&bytes);
        }
    }
}
