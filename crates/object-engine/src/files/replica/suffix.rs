//! The hash of one suffix: MD5 over what the names of its objects' files say, in ascending order.
//!
//! Obsolete files, tombstones past `reclaim_age` and empty directories go on the way. A directory that
//! was not cleaned earlier is therefore hashed as if it had been. What does not belong there is left
//! alone, with one line; a file in a directory's place is quarantined.

use super::Partition;
use crate::error::EngineError;
use crate::files::hash_directory::{ObjectFiles, horizon, is_damaged};
use crate::files::quarantine::quarantine;
use crate::key::ObjectKey;
use crate::replica::Versions;
use crate::rules::{choose, reclaimable};
use crate::suffixes::{Suffix, SuffixHash};
use md5::{Digest, Md5};
use std::io;
use std::path::Path;
use vocabulary::PathHash;
use world::files::Directory;

/// A suffix that was hashed.
pub(super) struct Hashed {
    pub(super) hash: SuffixHash,
    /// The objects in their own places, in ascending order.
    pub(super) objects: Vec<(PathHash, Versions)>,
}

/// What was found in the place of an object.
enum SuffixPlace {
    /// Nothing, or nothing any more.
    Nothing,
    /// Files; with what they amount to, if anything, be it POSTs only.
    Files(Option<Versions>),
}

impl Partition<'_> {
    /// The hash of a suffix, and the objects in it; `None` when there is nothing in it.
    pub(super) fn hash_suffix(&self, suffix: Suffix) -> Result<Option<Hashed>, EngineError> {
        let path = self.path.join(suffix.to_string());
        let Some((directory, mut names)) = self.opened(&path)? else {
            return Ok(None);
        };
        names.sort_unstable();
        let (mut digest, mut objects) = (Md5::new(), vec![]);
        let mut occupied = false;
        for name in names {
            let place = path.join(&name);
            let Some(hash) = PathHash::from_hex(&name) else {
                tracing::warn!("{}: is no object's directory; left alone", place.display());
                occupied = true;
                continue;
            };
            if let SuffixPlace::Files(versions) = self.look(&*directory, &place, hash)? {
                occupied = true;
                let counted = versions.iter().filter(|versions| !versions.is_lone());
                counted.for_each(|versions| versions.digest(&mut digest));
                objects.extend(
                    versions
                        .filter(|_| Suffix::of(hash) == suffix)
                        .map(|versions| (hash, versions)),
                );
            }
        }
        if !occupied && self.is_gone(&path)? {
            return Ok(None);
        }
        let hash = SuffixHash(digest.finalize().into());
        Ok(Some(Hashed { hash, objects }))
    }

    /// Whether the hash of a suffix is not what its files amount to; nothing is changed.
    pub(super) fn differs(&self, suffix: Suffix, known: Option<SuffixHash>) -> Result<bool, EngineError> {
        let path = self.path.join(suffix.to_string());
        let Some((directory, mut names)) = self.opened(&path)? else {
            return Ok(known.is_some());
        };
        names.sort_unstable();
        let horizon = horizon(self.state);
        let (mut digest, mut occupied) = (Md5::new(), false);
        for name in names {
            let place = path.join(&name);
            let object = match PathHash::from_hex(&name).map(|_| directory.open_directory(Path::new(&name))) {
                Some(Ok(object)) => object,
                // Gone meanwhile: it was announced.
                Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Some(Err(error)) => return Err(self.state.io("open", &place, error)),
                None => {
                    occupied = true;
                    continue;
                }
            };
            let listed = ObjectFiles::list(&*object).map_err(|error| self.state.io("list", &place, error))?;
            let choice = choose(&listed.files);
            if !reclaimable(&listed.files, &choice, horizon).is_empty() {
                return Ok(true);
            }
            occupied |= !listed.files.is_empty() || !listed.others.is_empty();
            if let Some(versions) = Versions::of(&listed.files, &choice) {
                versions.digest(&mut digest);
            }
        }
        let hash = occupied.then(|| SuffixHash(digest.finalize().into()));
        Ok(hash != known)
    }

    fn look(&self, suffix: &dyn Directory, path: &Path, hash: PathHash) -> Result<SuffixPlace, EngineError> {
        let directory = match suffix.open_directory(Path::new(path.file_name().unwrap_or_default())) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SuffixPlace::Nothing),
            Err(error) if is_damaged(&error) => return self.replaced(path, hash, &error),
            Err(error) => return Err(self.state.io("open", path, error)),
        };
        let mut listed = match ObjectFiles::list(&*directory) {
            Ok(listed) => listed,
            Err(error) if is_damaged(&error) => return self.replaced(path, hash, &error),
            Err(error) => return Err(self.state.io("list", path, error)),
        };
        let cleaned = listed.clean(self.state, path, &*directory);
        let choice = cleaned.map_err(|error| self.state.io("remove obsolete files from", path, error))?;
        if listed.names.is_empty() && listed.others.is_empty() && self.is_gone(path)? {
            return Ok(SuffixPlace::Nothing);
        }
        Ok(SuffixPlace::Files(Versions::of_whatever(&listed.files, &choice)))
    }

    /// Removes a directory unless there is something in it after all; whether it is gone.
    pub(super) fn is_gone(&self, path: &Path) -> Result<bool, EngineError> {
        match self.state.device.files().remove_directory(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(self.state.io("remove", path, error)),
        }
    }

    fn replaced(&self, path: &Path, hash: PathHash, error: &io::Error) -> Result<SuffixPlace, EngineError> {
        self.distrust(path, hash, &format!("it cannot be listed: {error}"))?;
        Ok(SuffixPlace::Nothing)
    }

    /// Takes an object out of sight.
    pub(super) fn distrust(&self, path: &Path, hash: PathHash, why: &str) -> Result<(), EngineError> {
        let key = ObjectKey {
            policy: self.key.policy,
            partition: self.key.partition,
            hash,
            name: String::new(),
        };
        quarantine(self.state, &key, path, why).map(drop)
    }
}
