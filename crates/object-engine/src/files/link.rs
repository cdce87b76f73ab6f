//! Links: the files of an object under their names in another partition as well.
//!
//! While the partition power of a ring is increased an object is looked for in its partition and, from one moment on,
//! in the one that it has by the next power. What is written until then is to be found in both.
//! Always holds: the files that make up the object are all linked, those of earlier writes too; the suffix is announced
//! in the other partition as it is for a write there; what the new files make obsolete there goes.
//! Deliberately absent: objects that nothing is written to. `swift-object-relinker` links those.

use super::EngineState;
use super::announcements::{announce, confirm};
use super::hash_directory::{ObjectFiles, remove_obsolete};
use crate::error::EngineError;
use crate::key::ObjectKey;
use crate::rules::choose;
use std::io;
use vocabulary::Partition;

pub(super) fn link(state: &EngineState, key: &ObjectKey, partition: Partition) -> Result<(), EngineError> {
    state.ready()?;
    let other = ObjectKey {
        partition,
        ..key.clone()
    };
    let (from, to) = (state.layout.hash_directory(key), state.layout.hash_directory(&other));
    let listed = match state.device.files().open_directory(&from) {
        // A tombstone that was reclaimed at once.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|directory| ObjectFiles::list(&*directory)),
    };
    let ObjectFiles { names, files, .. } = listed.map_err(|error| state.io("list", &from, error))?;
    let obsolete = choose(&files).obsolete;
    let wanted = names.into_iter().enumerate();
    let names: Vec<String> = wanted
        .filter(|(at, _)| !obsolete.contains(at))
        .map(|(_, name)| name)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let blame = |error| state.blame(error);
    state.device.make_directories(&to).map_err(blame)?;
    let announced = announce(state, &to)?;
    let opened = state.device.link_files(&from, &to, &names).map_err(blame)?;
    confirm(state, &to, announced);
    state.hot.forget(&other);
    remove_obsolete(state, &other, &to, &*opened);
    Ok(())
}
