//! What an audit asks to find listing rows that may have been lost with the machine's power: when an object's files
//! last changed, and what its row says.
//!
//! Intents (`listing_intents.rs`) are not synced. What is known after a loss of power is when a file got its name and
//! when it was written, as the file system says, whatever the timestamp in that name.
//! Deliberately absent: which changes are late, and what their rows say (`upkeep`, `object_auditor/late_rows.rs`).

use super::audit::{AuditPlace, ObjectAudit};
use super::hash_directory::ObjectFiles;
use super::{read, replica};
use crate::engine::{FoundObject, OpenOptions};
use crate::error::EngineError;
use crate::key::{ObjectKey, PartitionKey};
use crate::listing_intents::save_new;
use crate::listing_update::ListingUpdate;
use crate::rules::choose;
use std::io;
use vocabulary::{EntityPath, Timestamp};

/// What a listing is to say of an object.
pub struct ListedState {
    /// The object.
    pub path: EntityPath,
    /// Whether it is there.
    pub presence: Presence,
}

/// Whether an object is there.
pub enum Presence {
    /// It is, without its body.
    Stored(Box<FoundObject>),
    /// It was deleted at this time.
    Deleted(Timestamp),
}

/// When the files of an object changed, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTimes {
    /// A name, an attribute, an owner or the content did (`ctime`).
    pub changed: Option<i64>,
    /// The content did (`mtime`).
    pub written: Option<i64>,
}

impl ObjectAudit {
    /// When the files that count in a place last changed and were last written before `limit`, all in seconds since
    /// 1970; `None` for those that were since. A change of owner, or the end of a second name, moves only the first.
    pub fn times_before(&self, place: &AuditPlace, limit: i64) -> Result<FileTimes, EngineError> {
        self.state.ready()?;
        let path = &place.directory;
        let Some(directory) = read::open_directory(&self.state, &key_of(place), path)? else {
            return Ok(FileTimes::default());
        };
        let listed = ObjectFiles::list(&*directory).map_err(|error| self.state.io("list", path, error))?;
        let choice = choose(&listed.files);
        let mut newest = FileTimes::default();
        for at in [choice.data, choice.meta, choice.content_type, choice.tombstone]
            .into_iter()
            .flatten()
        {
            let file = path.join(&listed.names[at]);
            match self.state.device.files().info_of_name(&file) {
                Ok(info) => {
                    let before = |at| Some(at).filter(|at| *at < limit);
                    newest.changed = newest.changed.max(before(info.changed.0));
                    newest.written = newest.written.max(before(info.modified.0));
                }
                // Something newer came, with a row of its own.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.state.io("look at", &file, error)),
            }
        }
        Ok(newest)
    }

    /// What the row of the object in a place says; `None` when there is neither an object nor a deletion.
    pub fn listed_state(&self, place: &AuditPlace) -> Result<Option<ListedState>, EngineError> {
        let presence = match read::open(&self.state, &key_of(place), OpenOptions::BEFORE_WRITE) {
            Ok(found) => Presence::Stored(Box::new(found)),
            Err(EngineError::NotFound { deleted_at: Some(at) }) => Presence::Deleted(at),
            Err(EngineError::NotFound { deleted_at: None }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let partition = PartitionKey {
            policy: place.policy,
            partition: place.partition,
        };
        let name = replica::name_of(&self.state, partition, place.hash)?;
        let path = name.and_then(|name| self.path_of(&name, place.hash));
        Ok(path.map(|path| ListedState { path, presence }))
    }

    /// Makes a pending record of a row, unless there is one; whether it did.
    pub fn keep_listing_update(&self, update: &ListingUpdate) -> Result<bool, EngineError> {
        let kept = save_new(&self.state.device, &self.state.layout, update);
        kept.map_err(|error| self.state.blame(error))
    }
}

fn key_of(place: &AuditPlace) -> ObjectKey {
    ObjectKey {
        policy: place.policy,
        partition: place.partition,
        hash: place.hash,
        name: String::new(),
    }
}
