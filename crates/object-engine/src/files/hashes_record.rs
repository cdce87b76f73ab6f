//! [`HashesRecord`]: the content of `hashes.pkl`.
//!
//! A pickled dictionary: suffix → MD5 in hexadecimal, or `None` when that has to be computed again; and
//! `valid` → whether any of it counts, `updated` → when it was written. Files of older versions have
//! neither of the two and count.
//! Always holds: any bytes are read or refused.

use super::layout::HASHES;
use super::{EngineState, strange};
use crate::error::EngineError;
use crate::suffixes::{Hashes, HashesError, Suffix, SuffixHash, write_entry};
use pickle::{DictWriter, Flat, PickleLimits, Value, loads_flat};
use std::collections::BTreeMap;
use std::path::Path;
use vocabulary::{PolicyIndex, Timestamp};

const VALID: &str = "valid";
const UPDATED: &str = "updated";

/// What is known of a partition's suffixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HashesRecord {
    valid: bool,
    suffixes: BTreeMap<Suffix, Option<SuffixHash>>,
}

impl Default for HashesRecord {
    fn default() -> Self {
        Self {
            valid: true,
            suffixes: BTreeMap::new(),
        }
    }
}

impl HashesRecord {
    /// Writes it durably in a partition; the bytes that are there now.
    pub(super) fn write(
        &self,
        state: &EngineState,
        policy: PolicyIndex,
        partition: &Path,
    ) -> Result<Vec<u8>, EngineError> {
        let bytes = self.encode(state.world.clock.now());
        let temporaries = state.layout.temporaries(policy);
        let written = strange::making_way(state, &partition.join(HASHES), || {
            state.device.write_file(partition, HASHES, &temporaries, &bytes)
        });
        written.map(|()| bytes).map_err(|error| state.blame(error))
    }

    /// [`HashesRecord::write`] without making it durable: after a loss of power there may be an earlier record.
    pub(super) fn write_undurably(
        &self,
        state: &EngineState,
        policy: PolicyIndex,
        partition: &Path,
    ) -> Result<(), EngineError> {
        let bytes = self.encode(state.world.clock.now());
        let temporaries = state.layout.temporaries(policy);
        let written = strange::making_way(state, &partition.join(HASHES), || {
            state.device.write_remaking(partition, HASHES, &temporaries, &bytes)
        });
        written.map_err(|error| state.blame(error))
    }

    /// One that says nothing but that.
    pub(super) fn invalid() -> Self {
        Self {
            valid: false,
            ..Self::default()
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HashesError> {
        if let Some(entries) = loads_flat(bytes) {
            return Self::of(entries.into_iter().map(|(name, value)| match value {
                Flat::Text(hash) => Ok((name, false, SuffixHash::parse(hash))),
                other => Ok((name, other == Flat::Bool(true), None)),
            }));
        }
        let value = pickle::loads(bytes, &PickleLimits::default())?;
        let entries = value.entries().ok_or(HashesError::NoDictionary)?;
        Self::of(entries.iter().map(|(name, value)| {
            let Value::Str(name) = name else {
                return Err(HashesError::NoSuffix(format!("{name:?}")));
            };
            let is_true = value.int().is_some_and(|yes| yes != 0);
            Ok((name.as_str(), is_true, value.text().and_then(SuffixHash::parse)))
        }))
    }

    /// Of entries, each with whether it is true, and the hash that it is; a hash that is none has to be computed again.
    fn of<'a>(
        entries: impl Iterator<Item = Result<(&'a str, bool, Option<SuffixHash>), HashesError>>,
    ) -> Result<Self, HashesError> {
        let (mut valid, mut suffixes) = (true, vec![]);
        for entry in entries {
            let (name, is_true, hash) = entry?;
            match Suffix::parse(name) {
                Some(suffix) => suffixes.push((suffix, hash)),
                None if name == VALID => valid = is_true,
                None if name == UPDATED => {}
                None => return Err(HashesError::NoSuffix(format!("{name:?}"))),
            }
        }
        let suffixes = suffixes.into_iter().collect();
        Ok(Self { valid, suffixes })
    }

    pub(super) fn encode(&self, now: Timestamp) -> Vec<u8> {
        let mut writer = DictWriter::new(self.suffixes.len() + 2);
        writer.entry(VALID, Flat::Bool(self.valid));
        for (suffix, hash) in &self.suffixes {
            write_entry(&mut writer, *suffix, *hash);
        }
        writer.entry(UPDATED, Flat::Number(now.as_f64()));
        writer.finish()
    }

    pub(super) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Adds suffixes that may not be known yet; whether any was not.
    pub(super) fn learn(&mut self, suffixes: Vec<Suffix>) -> bool {
        let before = self.suffixes.len();
        for suffix in suffixes {
            self.suffixes.entry(suffix).or_insert(None);
        }
        self.suffixes.len() > before
    }

    /// Takes hashes for unknown from now on; whether any counted before.
    pub(super) fn doubt<'a>(&mut self, suffixes: impl Iterator<Item = &'a str>) -> bool {
        let mut changed = false;
        for suffix in suffixes.filter_map(Suffix::parse) {
            let before = self.suffixes.insert(suffix, None);
            changed |= before != Some(None);
        }
        changed
    }

    /// What is known of a suffix.
    pub(super) fn hash_of(&self, suffix: Suffix) -> Option<SuffixHash> {
        *self.suffixes.get(&suffix)?
    }

    /// Whether its hash has to be computed.
    pub(super) fn is_unknown(&self, suffix: Suffix) -> bool {
        self.suffixes.get(&suffix) == Some(&None)
    }

    /// The suffixes whose hash has to be computed.
    pub(super) fn unknown(&self) -> Vec<Suffix> {
        let unknown = self.suffixes.iter().filter(|(_, hash)| hash.is_none());
        unknown.map(|(suffix, _)| *suffix).collect()
    }

    /// The hash of a suffix, `None` when there is no such suffix.
    pub(super) fn know(&mut self, suffix: Suffix, hash: Option<SuffixHash>) {
        match hash {
            Some(hash) => self.suffixes.insert(suffix, Some(hash)),
            None => self.suffixes.remove(&suffix),
        };
    }

    pub(super) fn into_hashes(self) -> Hashes {
        let known = self.suffixes.into_iter();
        known.filter_map(|(suffix, hash)| Some((suffix, hash?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn suffix(digits: &str) -> Suffix {
        Suffix::parse(digits).unwrap()
    }

    /// Written by OpenStack Swift 2.38.3.
    const WRITTEN: &[u8] = b"\x80\x02}q\x00(X\x05\x00\x00\x00validq\x01\x88X\x03\x00\x00\x00abcq\x02X \x00\x00\x00\
        d41d8cd98f00b204e9800998ecf8427eq\x03X\x07\x00\x00\x00updatedq\x04GA\xda\xc0#Y\x92.\x9fu.";

    #[test]
    fn openstacks_record_is_read_and_ours_is_spelled_alike() {
        let record = HashesRecord::decode(WRITTEN).unwrap();
        assert!(record.is_valid() && record.unknown().is_empty());
        let ours = record.encode(Timestamp::from_seconds(1_795_198_310));
        let (theirs, number) = WRITTEN.split_at(WRITTEN.len() - 9);
        assert_eq!((&ours[..theirs.len()], number.len()), (theirs, 9));
        assert_eq!(
            record.into_hashes()[&suffix("abc")].to_string(),
            "d41d8cd98f00b204e9800998ecf8427e"
        );
    }

    #[test]
    fn what_is_no_record_is_refused_and_odd_hashes_are_unknown() {
        let encode = |entries: Vec<(Value, Value)>| pickle::dumps(&Value::Dict(entries));
        for bad in [
            &b"rubbish"[..],
            b"",
            b"cos\nsystem\n(S'true'\ntR.",
            &pickle::dumps(&Value::List(vec![])),
            &encode(vec![(Value::str("../x"), Value::None)]),
            &encode(vec![(Value::bytes("abc"), Value::None)]),
        ] {
            assert!(HashesRecord::decode(bad).is_err());
        }
        let odd = encode(vec![
            (Value::str("abc"), Value::Int(5)),
            (Value::str("abd"), Value::str("x")),
        ]);
        assert_eq!(
            HashesRecord::decode(&odd).unwrap().unknown(),
            [suffix("abc"), suffix("abd")]
        );
        let old = encode(vec![(Value::str(VALID), Value::Bool(false))]);
        assert!(!HashesRecord::decode(&old).unwrap().is_valid());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..90,
            byte: u8,
        ) {
            let _ = HashesRecord::decode(&bytes);
            let mut spoilt = WRITTEN.to_vec();
            let at = at % spoilt.len();
            spoilt[at] = byte;
            let _ = HashesRecord::decode(&spoilt);
        }
    }
}
