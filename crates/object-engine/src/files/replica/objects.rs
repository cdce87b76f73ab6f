//! One object by the names of its files, and removing what others hold.
//!
//! Always holds: a file is removed only if it was there when the object was what the caller said; what
//! comes meanwhile stays, and with it every directory above.

use super::suffix::list;
use super::{HASHES, Partition, REPLICATION_LOCK};
use crate::error::EngineError;
use crate::files::layout::is_suffix;
use crate::files::write::INVALIDATIONS;
use crate::files::{read, write, xattrs};
use crate::replica::Versions;
use crate::rules::choose;
use std::io;
use std::path::PathBuf;
use vocabulary::PathHash;
use world::files::Directory;

const LOCK: &str = ".lock";

impl Partition<'_> {
    fn place(&self, hash: PathHash) -> PathBuf {
        let hex = hash.hex();
        self.path.join(&hex[29..]).join(hex)
    }

    /// An object's directory; `None` when it is not there, or cannot be one.
    fn open(&self, hash: PathHash) -> Result<Option<Box<dyn Directory>>, EngineError> {
        let path = self.place(hash);
        match self.state.device.files().open_directory(&path) {
            Ok(directory) => Ok(Some(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.state.present().map(|()| None),
            // Quarantined when its suffix is hashed.
            Err(error) if read::is_damaged(&error) => Ok(None),
            Err(error) => Err(self.state.io("open", &path, error)),
        }
    }

    pub(super) fn versions(&self, hash: PathHash) -> Result<Option<Versions>, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(None);
        };
        let (_, files) =
            read::object_files(&*directory).map_err(|error| self.state.io("list", &self.place(hash), error))?;
        Ok(Versions::of(&files, &choose(&files)))
    }

    pub(super) fn versions_under(&self, suffix: &str) -> Result<Vec<(PathHash, Versions)>, EngineError> {
        if !is_suffix(suffix) {
            return Ok(vec![]);
        }
        let names = self.names(&self.path.join(suffix))?.unwrap_or_default();
        let mut hashes: Vec<PathHash> = names.iter().filter_map(|name| PathHash::from_hex(name)).collect();
        hashes.retain(|hash| hash.suffix() == suffix);
        hashes.sort_unstable();
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            found.extend(self.versions(hash)?.map(|versions| (hash, versions)));
        }
        Ok(found)
    }

    pub(super) fn name_of(&self, hash: PathHash) -> Result<Option<String>, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(None);
        };
        let path = self.place(hash);
        let (names, files) = read::object_files(&*directory).map_err(|error| self.state.io("list", &path, error))?;
        let choice = choose(&files);
        let Some(at) = choice.data.or(choice.tombstone) else {
            return Ok(None);
        };
        let file = match directory.open(&names[at]) {
            // Something newer came: for the caller it is no longer what it was.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| self.state.io("open", &path, error))?,
        };
        match xattrs::read(&*file) {
            Ok(metadata) => Ok(metadata.text("name").map(str::to_owned)),
            Err(xattrs::ReadError::Bad(why)) => self.distrust(&path, hash, &why).map(|()| None),
            Err(xattrs::ReadError::Io(error)) => Err(self.state.io("read the metadata of", &path, error)),
        }
    }

    pub(super) fn forget(&self, hash: PathHash, versions: &Versions) -> Result<bool, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(true);
        };
        let path = self.place(hash);
        let listed = list(&*directory).map_err(|error| self.state.io("list", &path, error))?;
        if Versions::of(&listed.files, &choose(&listed.files)).as_ref() != Some(versions) {
            return Ok(false);
        }
        write::announce(self.state, &path)?;
        for name in &listed.names {
            match directory.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.state.io("remove a file from", &path, error));
                }
                _ => {}
            }
        }
        self.is_gone(&path)
    }

    pub(super) fn forget_all(&self) -> Result<bool, EngineError> {
        let Some(names) = self.names(&self.path)? else {
            return Ok(true);
        };
        let mut all = true;
        for name in names.iter().filter(|name| is_suffix(name)) {
            let path = self.path.join(name);
            match self.is_gone(&path) {
                Ok(gone) => all &= gone,
                // A file of that name: foreign, and not ours to remove.
                Err(_) => all = false,
            }
        }
        let ours = |name: &str| [LOCK, REPLICATION_LOCK, HASHES, INVALIDATIONS].contains(&name) || is_suffix(name);
        if !all || names.iter().any(|name| !ours(name)) {
            return Ok(false);
        }
        let _locked = self.lock()?;
        for name in [HASHES, INVALIDATIONS, REPLICATION_LOCK, LOCK] {
            let path = self.path.join(name);
            match self.state.device.files().remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.state.io("remove", &path, error));
                }
                _ => {}
            }
        }
        self.is_gone(&self.path)
    }
}
