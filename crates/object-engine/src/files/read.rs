//! Finding an object: list, choose, read, check.
//!
//! Files come and go while this happens; a chosen file that vanished means that something newer
//! came, so the directory is looked at again. What cannot be trusted is quarantined on the spot.

use super::hash_directory::{ObjectFiles, is_damaged};
use super::hot::SeenFiles;
use super::quarantine::distrust;
use super::reader::{FileReader, ObjectBody};
use super::{EngineState, strange, xattrs};
use crate::engine::{FoundObject, ObjectReader, OpenOptions, Timestamps};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use crate::parts::{check_name, describe};
use crate::rules::{self, Choice, FileName, choose};
use bytes::Bytes;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use vocabulary::Timestamp;
use world::files::{Directory, File, FileInfo, Purpose, own_names, read_bytes_at};

/// Each retry means that another writer finished in between.
const RETRIES: usize = 50;

/// Why one look at the directory did not succeed.
pub(super) enum ReadFailure {
    /// A file vanished: look again.
    Changed,
    /// This cannot be trusted.
    Bad(String),
    Engine(EngineError),
}

impl From<EngineError> for ReadFailure {
    fn from(error: EngineError) -> Self {
        ReadFailure::Engine(error)
    }
}

pub(super) fn open(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    options: OpenOptions,
) -> Result<FoundObject, EngineError> {
    state.ready()?;
    let path = state.layout.hash_directory(key);
    for _ in 0..RETRIES {
        let began = state.world.clock.now();
        let Some(directory) = open_directory(state, key, &path)? else {
            let deleted_at = None;
            return Err(EngineError::NotFound { deleted_at });
        };
        match look(state, key, &path, &*directory, options) {
            Ok((found, files)) => {
                let seen = SeenFiles {
                    began,
                    path,
                    directory,
                    files,
                };
                if options.again {
                    state.remember(key, &found, seen);
                }
                return Ok(found);
            }
            Err(ReadFailure::Changed) => {}
            Err(ReadFailure::Engine(error)) => return Err(error),
            Err(ReadFailure::Bad(why)) => return Err(distrust(state, key, &path, why)),
        }
    }
    let source = io::Error::other("its files keep changing");
    Err(state.io("find a stable state of", &path, source))
}

/// [`open`] for objects of one partition, below whose directory they are opened. Whatever is wrong there is looked at
/// in full.
pub(super) fn open_all(
    state: &Arc<EngineState>,
    keys: &[ObjectKey],
    options: OpenOptions,
) -> Vec<Result<FoundObject, EngineError>> {
    let one = |key: &ObjectKey| open(state, key, options);
    if let [key] = keys {
        return vec![one(key)];
    }
    let place = keys
        .first()
        .map(|key| state.layout.partition(key.policy, key.partition));
    let opened = place.as_ref().filter(|_| state.ready().is_ok());
    let opened = opened.map(|place| state.device.files().open_directory(place));
    let (place, opened) = match (place, opened) {
        (Some(place), Some(Ok(opened))) => (place, opened),
        (_, Some(Err(error))) if error.kind() == io::ErrorKind::NotFound && state.present().is_ok() => {
            let place = keys.first().map(|key| (key.policy, key.partition));
            let absent = |key: &ObjectKey| match place == Some((key.policy, key.partition)) {
                true => Err(EngineError::NotFound { deleted_at: None }),
                false => one(key),
            };
            return keys.iter().map(absent).collect();
        }
        _ => return keys.iter().map(one).collect(),
    };
    let found = |key: &ObjectKey| {
        let path = state.layout.hash_directory(key);
        let Ok(below) = path.strip_prefix(&place) else {
            return one(key);
        };
        match opened
            .open_directory(below)
            .map(|directory| look(state, key, &path, &*directory, options))
        {
            Ok(Ok((found, _))) => Ok(found),
            Ok(Err(ReadFailure::Engine(EngineError::NotFound { deleted_at }))) => {
                Err(EngineError::NotFound { deleted_at })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(EngineError::NotFound { deleted_at: None }),
            _ => one(key),
        }
    };
    keys.iter().map(found).collect()
}

/// [`OpenOptions::listed`]: by the body's usual name, without a list. Whatever is wrong
/// there is looked at in full.
pub(super) fn open_listed(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    timestamp: Timestamp,
    options: OpenOptions,
) -> Result<FoundObject, EngineError> {
    state.ready()?;
    let (path, part) = (state.layout.hash_directory(key), rules::FilePart::Data);
    let file = FileName { timestamp, part };
    match look_listed(state, key, &path, file, options) {
        Ok(found) => Ok(found),
        Err(_) => open(state, key, options),
    }
}

fn look_listed(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    path: &Path,
    file: FileName,
    options: OpenOptions,
) -> Result<FoundObject, ReadFailure> {
    let name = file.to_string();
    let opened = state.device.files().open(&path.join(&name), Purpose::ReadHere);
    let data = PartFile::of(state, path, &name, opened.map_err(|_| ReadFailure::Changed)?)?;
    let info = data.checked(state, key, path, &name)?;
    let described = describe((file, &data.metadata), None, None);
    bring(state, key, (path, &name), (data, &info), described, options)
}

pub(super) fn open_directory(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    path: &Path,
) -> Result<Option<Box<dyn Directory>>, EngineError> {
    match state.device.files().open_directory(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => state.present().map(|()| None),
        Err(error) if is_damaged(&error) => Err(distrust(state, key, path, format!("it cannot be listed: {error}"))),
        Err(error) => Err(state.io("open", path, error)),
    }
}

/// The names of directories in a directory that are UTF-8; none when it does not exist.
pub(super) fn list(state: &EngineState, path: &Path) -> Result<Vec<String>, EngineError> {
    let names = list_all(state, path)?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

/// All names of directories in a directory; none when it does not exist. What lies elsewhere is passed over.
pub(super) fn list_all(state: &EngineState, path: &Path) -> Result<Vec<OsString>, EngineError> {
    state.ready()?;
    let directory = match state.device.files().open_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return state.present().map(|()| vec![]),
        other => other.map_err(|error| state.io("open", path, error))?,
    };
    own_names(&*directory, path).map_err(|error| state.io("list", path, error))
}

fn look(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    path: &Path,
    directory: &dyn Directory,
    options: OpenOptions,
) -> Result<(FoundObject, Vec<(String, FileInfo)>), ReadFailure> {
    let ObjectFiles { names, files, .. } = match ObjectFiles::list(directory) {
        Ok(listed) => listed,
        Err(error) if is_damaged(&error) => return Err(ReadFailure::Bad(format!("it cannot be listed: {error}"))),
        Err(error) => return Err(state.io("list", path, error).into()),
    };
    let choice = choose(&files);
    let Some(data_at) = choice.data else {
        let deleted_at = choice.tombstone.map(|at| files[at].timestamp);
        return Err(EngineError::NotFound { deleted_at }.into());
    };
    let data = PartFile::read(state, path, directory, &names[data_at])?;
    let (meta, typed) = read_posts(state, path, directory, &names, &choice)?;
    let info = data.checked(state, key, path, &names[data_at])?;
    let mut seen = vec![(names[data_at].clone(), info)];
    for (at, part) in [(choice.meta, &meta), (choice.content_type, &typed)] {
        if let (Some(at), Some(part)) = (at, part) {
            seen.push((names[at].clone(), part.info(state, path)?));
        }
    }
    let described = describe_parts(&files, data_at, &data, (&choice, &meta, &typed));
    let found = bring(state, key, (path, &names[data_at]), (data, &info), described, options)?;
    Ok((found, seen))
}

/// The object, as the caller asked for it.
fn bring(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    (path, name): (&Path, &str),
    (data, info): (PartFile, &FileInfo),
    (metadata, timestamps): (ObjectMetadata, Timestamps),
    options: OpenOptions,
) -> Result<FoundObject, ReadFailure> {
    let PartFile {
        file,
        metadata: data_metadata,
    } = data;
    let (first, reader) = match options {
        OpenOptions { first: 0, .. } => (Bytes::new(), None),
        _ => begin(state, key, (path, name), (file, info, &data_metadata), options)?,
    };
    Ok(FoundObject {
        metadata,
        data_metadata,
        timestamps,
        size: info.size,
        first,
        reader,
    })
}

pub(super) struct PartFile {
    pub(super) file: Box<dyn File>,
    pub(super) metadata: ObjectMetadata,
}

impl PartFile {
    pub(super) fn read(
        state: &EngineState,
        path: &Path,
        directory: &dyn Directory,
        name: &str,
    ) -> Result<Self, ReadFailure> {
        let file = match directory.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ReadFailure::Changed),
            Err(_) if strange::is_at(state, &path.join(name)) => {
                return Err(ReadFailure::Bad(format!("{name} is no file")));
            }
            Err(error) => return Err(state.io("open", &path.join(name), error).into()),
        };
        Self::of(state, path, name, file)
    }

    fn of(state: &EngineState, path: &Path, name: &str, file: Box<dyn File>) -> Result<Self, ReadFailure> {
        match xattrs::read(&*file) {
            Ok(metadata) => Ok(Self { file, metadata }),
            Err(xattrs::ReadError::Bad(why)) => Err(ReadFailure::Bad(format!("{name}: {why}"))),
            Err(xattrs::ReadError::Io(error)) => Err(state.io("read the metadata of", &path.join(name), error).into()),
        }
    }

    fn info(&self, state: &EngineState, path: &Path) -> Result<FileInfo, ReadFailure> {
        let info = self.file.info();
        info.map_err(|error| state.io("look at", path, error).into())
    }

    /// What the file system says of a body, if it is this object's and as long as it should be.
    fn checked(&self, state: &EngineState, key: &ObjectKey, path: &Path, name: &str) -> Result<FileInfo, ReadFailure> {
        check_name(key, &self.metadata, || path.join(name).display().to_string())?;
        let info = self.info(state, path)?;
        check_length(&self.metadata, &info)?;
        Ok(info)
    }
}

/// The POSTs that count; the second only when it is not the first.
pub(super) fn read_posts(
    state: &EngineState,
    path: &Path,
    directory: &dyn Directory,
    names: &[String],
    choice: &Choice,
) -> Result<(Option<PartFile>, Option<PartFile>), ReadFailure> {
    let read = |at: Option<usize>| {
        at.map(|at| PartFile::read(state, path, directory, &names[at]))
            .transpose()
    };
    let meta = read(choice.meta)?;
    let typed = read(choice.content_type.filter(|_| choice.content_type != choice.meta))?;
    Ok((meta, typed))
}

/// What body and POSTs mean together.
pub(super) fn describe_parts(
    files: &[FileName],
    data_at: usize,
    data: &PartFile,
    (choice, meta, typed): (&Choice, &Option<PartFile>, &Option<PartFile>),
) -> (ObjectMetadata, Timestamps) {
    let kept = |at: Option<usize>, part: &Option<PartFile>| {
        at.zip(part.as_ref())
            .map(|(at, part)| (files[at], part.metadata.clone()))
    };
    let meta_kept = kept(choice.meta, meta);
    let typed_kept = match choice.content_type == choice.meta {
        true => meta_kept.clone(),
        false => kept(choice.content_type, typed),
    };
    describe(
        (files[data_at], &data.metadata),
        meta_kept.as_ref().map(|(file, kept)| (*file, kept)),
        typed_kept.as_ref().map(|(file, kept)| (*file, kept)),
    )
}

pub(super) fn check_length(metadata: &ObjectMetadata, info: &FileInfo) -> Result<(), ReadFailure> {
    let stated = metadata
        .text("Content-Length")
        .and_then(|text| text.parse::<u64>().ok());
    match stated {
        Some(length) if length == info.size => Ok(()),
        Some(length) => Err(ReadFailure::Bad(format!(
            "its metadata say {length} bytes but there are {}",
            info.size
        ))),
        None => Err(ReadFailure::Bad("its metadata give no length".into())),
    }
}

/// What the caller asked to have of the body at once, and a reader for the rest.
fn begin(
    state: &Arc<EngineState>,
    key: &ObjectKey,
    (path, name): (&Path, &str),
    (file, info, metadata): (Box<dyn File>, &FileInfo, &ObjectMetadata),
    options: OpenOptions,
) -> Result<(Bytes, Option<Box<dyn ObjectReader>>), ReadFailure> {
    let wanted = usize::try_from(info.size).unwrap_or(usize::MAX).min(options.first);
    let first = read_bytes_at(&*file, wanted, 0).map_err(|error| state.io("read", path, error))?;
    if first.len() < wanted {
        return Err(ReadFailure::Bad(format!("it ends after {} bytes", first.len())));
    }
    if wanted as u64 == info.size {
        let verified = state.verify_whole(info, metadata, &first);
        verified.map_err(|mismatch| ReadFailure::Bad(mismatch.to_string()))?;
        if info.size > state.config.keep_cache_size {
            // Only advice: a kernel that does not take it costs cache, nothing else.
            let _ = file.forget_cached(0, info.size);
        }
        return Ok((first.into(), None));
    }
    let body = ObjectBody::new(state, key, (path, name), info, metadata);
    let first = Bytes::from(first);
    let reader = FileReader::begin(body, file, first.clone());
    Ok((first, Some(Box::new(reader))))
}
