//! What is in an object's directory, and removing what newer files have made meaningless.

use super::{EngineState, strange};
use crate::key::ObjectKey;
use crate::rules::{Choice, FileName, choose, reclaimable};
use std::io;
use std::path::Path;
use vocabulary::Timestamp;
use world::files::Directory;

/// The file system's own structures are damaged here.
const EUCLEAN: i32 = 117;
const ENODATA: i32 = 61;
/// The same, as ext4 says it.
const EBADMSG: i32 = 74;

/// What is in an object's directory.
#[derive(Default)]
pub(super) struct ObjectFiles {
    /// Files that are understood, as they are spelled.
    pub(super) names: Vec<String>,
    /// The same files, understood.
    pub(super) files: Vec<FileName>,
    /// The names of everything else.
    pub(super) others: Vec<String>,
}

impl ObjectFiles {
    pub(super) fn list(directory: &dyn Directory) -> io::Result<Self> {
        let mut listed = Self::default();
        directory.list(&mut |name| {
            let name = name.to_string_lossy();
            match name.parse() {
                Ok(file) => {
                    listed.names.push(name.into_owned());
                    listed.files.push(file);
                }
                Err(_) => listed.others.push(name.into_owned()),
            }
        })?;
        Ok(listed)
    }

    /// Removes obsolete files and reclaimable tombstones, on the disk and from the two lists; what the others amount
    /// to.
    pub(super) fn clean(&mut self, state: &EngineState, path: &Path, directory: &dyn Directory) -> io::Result<Choice> {
        let choice = choose(&self.files);
        let reclaimed = reclaimable(&self.files, &choice, horizon(state));
        let mut gone: Vec<usize> = choice.obsolete.iter().chain(&reclaimed).copied().collect();
        if gone.is_empty() {
            return Ok(choice);
        }
        gone.sort_unstable();
        for &at in gone.iter().rev() {
            let name = &self.names[at];
            match directory.remove(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A directory, called like a file.
                Err(_) if strange::is_at(state, &path.join(name)) => {
                    strange::make_way(state, &path.join(name)).map_err(io::Error::other)?;
                }
                other => other?,
            }
            self.names.remove(at);
            self.files.remove(at);
        }
        Ok(choose(&self.files))
    }
}

/// Tombstones from before this are reclaimed.
pub(super) fn horizon(state: &EngineState) -> Timestamp {
    let now = state.world.clock.now().seconds();
    Timestamp::from_seconds(now.saturating_sub(state.config.reclaim_age.as_secs()))
}

/// [`remove_obsolete`] in a directory that is not open.
pub(super) fn remove_obsolete_in(state: &EngineState, key: &ObjectKey, path: &Path) {
    match state.device.files().open_directory(path) {
        Ok(directory) => remove_obsolete(state, key, path, &*directory),
        // Moved or cleared away meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(
            device = state.config.name,
            object = key.name,
            %error,
            "could not look for obsolete files"
        ),
    }
}

/// Removes what the newest files made meaningless. The write is durable already: what cannot be
/// removed now is found obsolete again by every reader and goes with the next write.
pub(super) fn remove_obsolete(state: &EngineState, key: &ObjectKey, path: &Path, directory: &dyn Directory) {
    let removed = ObjectFiles::list(directory).and_then(|mut listed| {
        listed.clean(state, path, directory)?;
        Ok(listed.names.is_empty())
    });
    let emptied = match removed {
        Ok(true) => state.device.remove_if_empty(path).map_err(|error| error.to_string()),
        Ok(false) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = emptied {
        tracing::warn!(
            device = state.config.name,
            object = key.name,
            error,
            "could not remove obsolete files"
        );
    }
}

/// Whether an error says that a directory, or what is in its place, cannot be trusted.
pub(super) fn is_damaged(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || matches!(error.raw_os_error(), Some(EUCLEAN | ENODATA | EBADMSG))
}
