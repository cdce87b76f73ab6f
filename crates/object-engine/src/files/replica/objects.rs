//! One object by the names of its files, and removing what others hold.
//!
//! Always holds: a file is removed only if it was there when the object was what the caller said; what
//! comes meanwhile stays, and with it every directory above.

use super::{HASHES, INVALIDATIONS, LOCK, Partition, REPLICATION_LOCK};
use crate::error::EngineError;
use crate::files::announcements::announce;
use crate::files::hash_directory::{ObjectFiles, is_damaged};
use crate::files::layout::is_suffix;
use crate::files::{strange, xattrs};
use crate::metadata::ObjectMetadata;
use crate::replica::Versions;
use crate::rules::{CONTENT_TYPE, CONTENT_TYPE_TIMESTAMP, Choice, FileName, choose, lone_posts};
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::PathHash;
use world::files::Directory;

impl Partition<'_> {
    fn place(&self, hash: PathHash) -> PathBuf {
        let hex = hash.hex();
        self.path.join(&hex[29..]).join(hex)
    }

    /// An object's directory; `None` when it is not there, or cannot be one.
    fn open(&self, hash: PathHash) -> Result<Option<Box<dyn Directory>>, EngineError> {
        let opened = self.state.device.files().open_directory(&self.place(hash));
        match self.there(hash, opened)? {
            None => self.state.present().map(|()| None),
            there => Ok(there),
        }
    }

    /// What came of opening an object's directory; `None` when it is not there, or cannot be one.
    fn there(
        &self,
        hash: PathHash,
        opened: io::Result<Box<dyn Directory>>,
    ) -> Result<Option<Box<dyn Directory>>, EngineError> {
        match opened {
            Ok(directory) => Ok(Some(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Quarantined when its suffix is hashed.
            Err(error) if is_damaged(&error) => Ok(None),
            Err(error) => Err(self.state.io("open", &self.place(hash), error)),
        }
    }

    pub(super) fn versions(&self, hash: PathHash) -> Result<Option<Versions>, EngineError> {
        let opened = self.state.device.files().open_directory(&self.place(hash));
        match self.found(hash, opened, Versions::of)? {
            None => self.state.present().map(|()| None),
            found => Ok(found),
        }
    }

    /// What cannot be read is asked for again, so that no other server takes it for held here.
    pub(super) fn versions_of(&self, hashes: &[PathHash]) -> Result<Vec<Option<Versions>>, EngineError> {
        let partition = match self.state.device.files().open_directory(&self.path) {
            Ok(partition) => partition,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.state.present().map(|()| vec![None; hashes.len()]);
            }
            // Put aside when the partition is hashed.
            Err(error) if is_damaged(&error) => return Ok(vec![None; hashes.len()]),
            Err(error) => return Err(self.state.io("open", &self.path, error)),
        };
        let below = |hash: &PathHash| {
            let hex = hash.hex();
            let opened = partition.open_directory(&Path::new(&hex[29..]).join(&hex));
            let found = self.unless_unreadable(self.found(*hash, opened, Versions::of));
            found.map(Option::flatten)
        };
        hashes.iter().map(below).collect()
    }

    /// What there is in an object's directory, if it is there and can be one.
    fn found(
        &self,
        hash: PathHash,
        opened: io::Result<Box<dyn Directory>>,
        of: impl Fn(&[FileName], &Choice) -> Option<Versions>,
    ) -> Result<Option<Versions>, EngineError> {
        let Some(directory) = self.there(hash, opened)? else {
            return Ok(None);
        };
        let listed = ObjectFiles::list(&*directory);
        let files = listed
            .map_err(|error| self.state.io("list", &self.place(hash), error))?
            .files;
        Ok(of(&files, &choose(&files)))
    }

    pub(super) fn versions_under(&self, suffix: &str) -> Result<Vec<(PathHash, Versions)>, EngineError> {
        if !is_suffix(suffix) {
            return Ok(vec![]);
        }
        let opened = self.unless_unreadable(self.opened(&self.path.join(suffix)))?;
        let Some((directory, names)) = opened.flatten() else {
            return Ok(vec![]);
        };
        let mut hashes: Vec<PathHash> = names.iter().filter_map(|name| PathHash::from_hex(name)).collect();
        hashes.retain(|hash| hash.suffix() == suffix);
        hashes.sort_unstable();
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let opened = directory.open_directory(Path::new(&hash.hex()));
            let versions = self.unless_unreadable(self.found(hash, opened, Versions::of_whatever))?;
            found.extend(versions.flatten().map(|versions| (hash, versions)));
        }
        Ok(found)
    }

    /// What POSTs say whose body is not here.
    pub(super) fn lone_post(&self, hash: PathHash) -> Result<Option<ObjectMetadata>, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(None);
        };
        let path = self.place(hash);
        let listed = ObjectFiles::list(&*directory).map_err(|error| self.state.io("list", &path, error))?;
        let ObjectFiles { names, files, .. } = listed;
        let (Some(meta), typed) = lone_posts(&files) else {
            return Ok(None);
        };
        let Some(mut posted) = self.metadata_of(&*directory, &names[meta], hash)? else {
            return Ok(None);
        };
        if let Some(typed) = typed {
            let Some(typed) = self.metadata_of(&*directory, &names[typed], hash)? else {
                return Ok(None);
            };
            for name in [CONTENT_TYPE, CONTENT_TYPE_TIMESTAMP] {
                if let Some(value) = typed.get(name) {
                    posted.set(name, value);
                }
            }
        }
        Ok(Some(posted))
    }

    /// `None` when the file has gone, or is not to be trusted and has gone with the object.
    fn metadata_of(
        &self,
        directory: &dyn Directory,
        name: &str,
        hash: PathHash,
    ) -> Result<Option<ObjectMetadata>, EngineError> {
        let path = self.place(hash);
        let file = match directory.open(name) {
            // Something newer came: for the caller it is no longer what it was.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) if strange::is_at(self.state, &path.join(name)) => {
                return self.distrust(&path, hash, &format!("{name} is no file")).map(|()| None);
            }
            other => other.map_err(|error| self.state.io("open", &path, error))?,
        };
        match xattrs::read(&*file) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(xattrs::ReadError::Bad(why)) => self.distrust(&path, hash, &why.to_string()).map(|()| None),
            Err(xattrs::ReadError::Io(error)) => Err(self.state.io("read the metadata of", &path, error)),
        }
    }

    pub(super) fn name_of(&self, hash: PathHash) -> Result<Option<String>, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(None);
        };
        let path = self.place(hash);
        let listed = ObjectFiles::list(&*directory).map_err(|error| self.state.io("list", &path, error))?;
        let ObjectFiles { names, files, .. } = listed;
        let choice = choose(&files);
        let Some(at) = choice.data.or(choice.tombstone) else {
            return Ok(None);
        };
        let metadata = self.metadata_of(&*directory, &names[at], hash)?;
        Ok(metadata.and_then(|metadata| metadata.text("name").map(str::to_owned)))
    }

    pub(super) fn forget(&self, hash: PathHash, versions: &Versions) -> Result<bool, EngineError> {
        let Some(directory) = self.open(hash)? else {
            return Ok(true);
        };
        let path = self.place(hash);
        let listed = ObjectFiles::list(&*directory).map_err(|error| self.state.io("list", &path, error))?;
        if Versions::of_whatever(&listed.files, &choose(&listed.files)).as_ref() != Some(versions) {
            return Ok(false);
        }
        announce(self.state, &path)?;
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
