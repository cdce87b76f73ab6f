//! Whether this node's secrets are those that named the directories of a device.
//!
//! A hash directory is named by its object's name and the two secrets of `swift.conf`. An auditor that was given other
//! secrets would find every object in a wrong place, and quarantine all of them. So it looks at some objects first.
//! Always holds: one object in its place proves the secrets; fewer than [`ENOUGH`] objects prove nothing against them,
//! so that a stray directory on a device that is nearly empty goes to quarantine as ever.
//! Tests: `tests/interop/test_other_secrets.py` (what OpenStack Swift 2.38.3's auditor does), `crates/upkeep/tests`.

use super::audit::{AuditPlace, ObjectAudit};
use super::hash_directory::ObjectFiles;
use super::read::PartFile;
use crate::error::EngineError;
use crate::parts::NAME;
use crate::rules::choose;
use vocabulary::{Partition, PolicyIndex};

/// So many objects in wrong places, and none in its own, are not so many accidents.
const ENOUGH: u32 = 3;
/// So many objects in wrong places, and none in its own, are not looked for more.
const PLENTY: u32 = 100;
/// More directories are not looked at, should they all hold tombstones.
const MOST_PLACES: usize = 1000;

impl ObjectAudit {
    /// Looks at objects of these partitions until one is in its place.
    ///
    /// # Errors
    /// [`EngineError::OtherSecrets`] when none is.
    pub fn check_secrets(&self, policy: PolicyIndex, partitions: &[Partition]) -> Result<(), EngineError> {
        let mut strangers = 0;
        let suffixes = partitions.iter().flat_map(|partition| {
            let listed = self.suffixes(policy, *partition).ok();
            let found = listed.map(|listing| listing.found).unwrap_or_default();
            found.into_iter().map(move |suffix| (*partition, suffix))
        });
        let places = suffixes.flat_map(|(partition, suffix)| {
            let listed = self.places(policy, partition, &suffix).ok();
            listed.map(|listing| listing.found).unwrap_or_default()
        });
        for place in places.take(MOST_PLACES) {
            match self.is_in_its_place(&place) {
                Some(true) => return Ok(()),
                Some(false) => strangers += 1,
                None => {}
            }
            if strangers == PLENTY {
                break;
            }
        }
        match strangers {
            0..ENOUGH => Ok(()),
            _ => Err(EngineError::OtherSecrets {
                path: self.directory(policy).display().to_string(),
            }),
        }
    }

    /// `None` where there is no object, or none that says its name: the audit itself will tell.
    fn is_in_its_place(&self, place: &AuditPlace) -> Option<bool> {
        let directory = self.state.device.files().open_directory(&place.directory).ok()?;
        let listed = ObjectFiles::list(&*directory).ok()?;
        let at = choose(&listed.files).data?;
        let data = PartFile::read(&self.state, &place.directory, &*directory, &listed.names[at]).ok()?;
        let name = std::str::from_utf8(data.metadata.get(NAME)?).ok()?;
        Some(self.path_of(name, place.hash).is_some())
    }
}
