//! A partition in which a little has changed: hashed first and noted afterwards, with one write.
//!
//! The long way (`Partition::hashes`) notes what was announced before it hashes anything, durably, and records the
//! hashes later; that is right whatever others do meanwhile, and waits twice for the drive. Here the announcements are
//! read and put into a new file, their suffixes hashed, and the result recorded durably in their place.
//! Always holds: announcements go only if the record, on stable storage, has hashes of listings that began after they
//! were read; what was announced since is noted there as unknown; and no other process took note of anything
//! meanwhile. Who announced a change and makes it only after it was listed here finds that the announcement does not
//! stand any more, as its file is another one, and announces it again (`announcements::confirm`).
//! The last shows in the record's bytes: it is read before the announcements, and knew one of their suffixes, so that a
//! process that takes note of them must have changed it.

use super::{HASHES, HashesRecord, INVALIDATIONS, LONGEST_HASHES, LONGEST_INVALIDATIONS, Partition, is_announcement};
use crate::error::EngineError;
use crate::replica::{Rehash, SeenVersions, SuffixHashes};
use crate::suffixes::Suffix;

/// Bytes of announcements, four for each suffix. More are hashed in portions that others can follow, the long way.
const FEW: usize = 1024;

/// What was read.
struct Announced {
    /// What the record was read from.
    bytes: Vec<u8>,
    lines: Vec<u8>,
}

impl Partition<'_> {
    /// The hashes of all suffixes; `None` when the long way has to be taken.
    pub(super) fn hashes_of_few(&self, rehash: Rehash<'_>) -> Result<Option<SuffixHashes>, EngineError> {
        let Some((mut record, before)) = self.few_announced() else {
            return Ok(None);
        };
        record.doubt(names(&before.lines));
        record.doubt(rehash.suffixes.iter().map(String::as_str));
        let mut seen = rehash.seen.then(SeenVersions::new);
        let computed = self.hash_unknown(&mut record, seen.as_mut())?;
        if !self.take_place_of(&before, &record)? {
            return Ok(None);
        }
        Ok(Some(SuffixHashes {
            unreadable: record.unknown().len(),
            hashes: record.into_hashes(),
            computed,
            seen: seen.unwrap_or_default(),
        }))
    }

    /// A failure is left to the long way, which reports it.
    fn few_announced(&self) -> Option<(HashesRecord, Announced)> {
        let files = self.state.device.files();
        let locked = self.lock().ok()?;
        let bytes = files.read_here(&self.path.join(HASHES), LONGEST_HASHES).ok()?;
        let record = HashesRecord::decode(&bytes).ok().filter(HashesRecord::is_valid)?;
        let lines = files
            .read_here(&self.path.join(INVALIDATIONS), LONGEST_INVALIDATIONS)
            .ok()?;
        let whole = lines.len() <= FEW && are_whole(&lines);
        let was_known = |name| Suffix::parse(name).is_some_and(|suffix| record.hash_of(suffix).is_some());
        if !whole || !names(&lines).any(was_known) {
            return None;
        }
        let temporaries = self.state.layout.temporaries(self.key.policy);
        locked.renew_hints(INVALIDATIONS, &temporaries, &lines).ok()?;
        Some((record, Announced { bytes, lines }))
    }

    /// Records what was computed in place of what was announced; not if another process took note of it meanwhile.
    fn take_place_of(&self, before: &Announced, record: &HashesRecord) -> Result<bool, EngineError> {
        let locked = self.lock()?;
        let path = self.path.join(INVALIDATIONS);
        let Ok(lines) = self.state.device.files().read_here(&path, LONGEST_INVALIDATIONS) else {
            return Ok(false);
        };
        let later = lines.strip_prefix(&before.lines[..]);
        let Some(later) = later.filter(|later| later.is_empty() || are_whole(later)) else {
            return Ok(false);
        };
        if self.bytes().as_ref() != Some(&before.bytes) {
            return Ok(false);
        }
        match later.is_empty() {
            true => self.write(record)?,
            false => {
                let mut record = record.clone();
                record.doubt(names(later));
                self.write(&record)?
            }
        };
        let cleared = locked.clear_hints(INVALIDATIONS);
        cleared.map(|()| true).map_err(|error| self.state.blame(error))
    }
}

/// Whether all lines name a suffix, and the last one ends.
fn are_whole(lines: &[u8]) -> bool {
    lines.ends_with(b"\n") && std::str::from_utf8(lines).is_ok_and(|lines| lines.lines().all(is_announcement))
}

/// The lines that are text.
fn names(lines: &[u8]) -> impl Iterator<Item = &str> {
    let lines = lines.split(|byte| *byte == b'\n');
    lines.filter_map(|line| std::str::from_utf8(line).ok()).map(str::trim)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test says so by failing

    use super::*;
    use crate::conformance::{at, commit, key};
    use crate::files::announcements::{announce, confirm};
    use crate::files::{FilesConfig, FilesEngine};
    use crate::{ObjectEngine, PartitionKey};
    use vocabulary::PolicyIndex;
    use world::World;

    /// A writer announces, the suffix is listed, the writer publishes, and all that before the announcement is cleared.
    #[test]
    fn what_is_published_after_the_listing_is_announced_again() {
        let place = tempfile::tempdir().unwrap();
        let mut config = FilesConfig::new("sda", place.path().to_owned());
        config.mount_check = false;
        let engine = FilesEngine::start(config, World::real());
        let object = key("/a/c/o");
        let whole = PartitionKey {
            policy: PolicyIndex::LEGACY,
            partition: object.partition,
        };
        let partition = Partition::new(&engine.state, whole);
        engine.put(&object, b"old", commit(at(1), b"old")).unwrap();
        partition.hashes(Rehash::default()).unwrap();

        let directory = engine.state.layout.hash_directory(&object);
        let announced = announce(&engine.state, &directory).unwrap();
        let (mut record, before) = partition.few_announced().unwrap();
        record.doubt(names(&before.lines));
        partition.hash_unknown(&mut record, None).unwrap();
        std::fs::write(directory.join(format!("{}.ts", at(2))), b"").unwrap();
        confirm(&engine.state, &directory, announced);
        assert!(partition.take_place_of(&before, &record).unwrap());

        let found = partition.hashes(Rehash::default()).unwrap().hashes;
        let suffixes = &[object.hash.suffix()];
        let afresh = Rehash {
            suffixes,
            ..Rehash::default()
        };
        assert_eq!(found, partition.hashes(afresh).unwrap().hashes);
    }
}
