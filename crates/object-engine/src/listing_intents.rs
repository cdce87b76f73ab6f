//! Listing updates under way: recorded on the object's device before the object changes, until they are sent or kept as
//! pending.
//!
//! A server that is killed between the change and its listing update would leave an object that no listing knows of. So
//! it records ([`durable_fs::intent_log`], in `tmp/` of the device) what the change entails, and which file the change
//! is. The next server of the device at its start, or the object-updater in its next pass, makes ordinary pending
//! records (`async_pending`) of what was left behind: [`recover`].
//! Always holds: a pending record is made only of an update whose file is there: of a change that never came about, or
//! that a newer one has replaced, nothing is sent. An update that had been sent already may be sent again, which
//! changes nothing. An orphaned log goes once all its pending records are durable.
//! Deliberately absent: power. Intents are not synced; after a boot the auditor makes pending records of what changed
//! in the minute before the machine went down (`files/late_changes.rs`, and `upkeep`, `object_auditor/late_rows.rs`).
//! Page: `docs/formats/object-files.md`. Tests: `tests/listing_intents.rs`.
//!
//! ```text
//! record   changes, one after another
//! change   policy u32, partition u32, hash 16 bytes, text file, u32 updates, each:
//! update   policy u32, hash 16 bytes, texts timestamp, op, account, container, object,
//!          maybe db_state, maybe container_path, u32 headers, each: text name, bytes value
//! text     length u32, UTF-8; maybe: 0, or 1 and a text; numbers little-endian
//! ```

use crate::files::layout::Layout;
use crate::key::ObjectKey;
use crate::listing_update::{ListingUpdate, ListingUpdateRef};
use crate::rules::FileName;
use durable_fs::intent_log::OrphanedLog;
use durable_fs::{FsError, Intent, IntentLog, StorageDevice, intent_log};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use vocabulary::{Partition, PathHash, PolicyIndex};

/// Nearly all records are shorter.
const USUAL_LENGTH: usize = 1024;

/// A change of an object that entails listing updates.
pub struct IntendedChange<'a> {
    /// The object.
    pub key: &'a ObjectKey,
    /// The file that is to be made.
    pub file: FileName,
    /// What is to be sent.
    pub updates: Vec<ListingUpdateRef<'a>>,
}

/// The updates of one process that are under way on a device.
pub struct ListingIntents {
    log: IntentLog,
}

impl ListingIntents {
    pub(crate) fn new(device: Arc<StorageDevice>, layout: &Layout) -> Self {
        let place = layout.temporaries(PolicyIndex(0));
        Self {
            log: IntentLog::new(device, place),
        }
    }

    /// Records changes that are about to be made, until what is returned is dropped. `None` when there is nothing to
    /// send, or when nothing can be recorded now.
    pub fn record(&self, changes: &[IntendedChange<'_>]) -> Option<Intent> {
        let mut record = Vec::with_capacity(USUAL_LENGTH);
        for change in changes.iter().filter(|change| !change.updates.is_empty()) {
            encode(change, &mut record);
        }
        (!record.is_empty()).then(|| self.log.take(&record)).flatten()
    }

    /// Whether a file is open for records. Does not block.
    pub fn is_open(&self) -> bool {
        self.log.is_open()
    }

    /// Closes and removes what has had no records lately; to be called now and then while [open](Self::is_open).
    pub fn close_idle(&self) {
        self.log.close_idle();
    }
}

/// Makes pending records of what processes that are gone have left behind; how many. A file that cannot be worked off
/// stays, and holds up no other.
pub(crate) fn recover(device: &Arc<StorageDevice>, layout: &Layout) -> Result<usize, FsError> {
    let (mut made, mut first_error) = (0, None);
    for left in intent_log::orphaned_logs(device, &layout.temporaries(PolicyIndex(0)))? {
        first_error = first_error.or(recover_log(left, device, layout, &mut made).err());
    }
    first_error.map_or(Ok(made), Err)
}

fn recover_log(
    left: OrphanedLog,
    device: &Arc<StorageDevice>,
    layout: &Layout,
    made: &mut usize,
) -> Result<(), FsError> {
    for record in left.records()? {
        let Some(changes) = decode(&record) else {
            tracing::warn!("{}: holds a record that cannot be read", left.path().display());
            continue;
        };
        for change in &changes {
            *made += change.keep(device, layout)?;
        }
    }
    left.remove()
}

/// Writes a pending record.
pub(crate) fn save(device: &Arc<StorageDevice>, layout: &Layout, update: &ListingUpdate) -> Result<(), FsError> {
    let (place, name) = update.place(device.root());
    device.write_file(&place, &name, &layout.temporaries(update.policy), &update.encode())
}

/// [`save`] unless there is such a record; whether it was written.
pub(crate) fn save_new(device: &Arc<StorageDevice>, layout: &Layout, update: &ListingUpdate) -> Result<bool, FsError> {
    let (place, name) = update.place(device.root());
    if is_there(device, &place.join(name))? {
        return Ok(false);
    }
    save(device, layout, update).map(|()| true)
}

/// A change as it was recorded.
struct FoundChange {
    key: ObjectKey,
    file: FileName,
    updates: Vec<ListingUpdate>,
}

impl FoundChange {
    /// Makes pending records of it if it has come about; how many.
    fn keep(&self, device: &Arc<StorageDevice>, layout: &Layout) -> Result<usize, FsError> {
        let file = layout.hash_directory(&self.key).join(self.file.to_string());
        if !is_there(device, &file)? {
            return Ok(0);
        }
        let mut made = 0;
        for update in &self.updates {
            made += usize::from(save_new(device, layout, update)?);
        }
        Ok(made)
    }
}

fn is_there(device: &StorageDevice, path: &std::path::Path) -> Result<bool, FsError> {
    match device.files().info(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(FsError::io("look at", path)(error)),
    }
}

fn encode(change: &IntendedChange<'_>, to: &mut Vec<u8>) {
    let key = change.key;
    to.extend(key.policy.0.to_le_bytes());
    to.extend(key.partition.0.to_le_bytes());
    to.extend(key.hash.0);
    put_printed(to, change.file);
    to.extend((change.updates.len() as u32).to_le_bytes());
    for update in &change.updates {
        to.extend(update.policy.0.to_le_bytes());
        to.extend(update.hash.0);
        put_printed(to, update.timestamp);
        for text in [update.op, update.account, update.container, update.object] {
            put(to, text.as_bytes());
        }
        for maybe in [update.db_state, update.container_path] {
            to.push(u8::from(maybe.is_some()));
            maybe.iter().for_each(|text| put(to, text.as_bytes()));
        }
        to.extend((update.headers.len() as u32).to_le_bytes());
        for (name, value) in &update.headers {
            put(to, name.as_bytes());
            put(to, value);
        }
    }
}

/// [`put`] of what is printed, without a string of its own.
fn put_printed(to: &mut Vec<u8>, value: impl Display) {
    let length_at = to.len();
    to.extend([0; size_of::<u32>()]);
    let begin = to.len();
    // Writing to memory succeeds.
    let _ = write!(to, "{value}");
    let length = (to.len() - begin) as u32;
    to[length_at..begin].copy_from_slice(&length.to_le_bytes());
}

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn decode(record: &[u8]) -> Option<Vec<FoundChange>> {
    let mut rest = RecordReader(record);
    let mut changes = vec![];
    while !rest.0.is_empty() {
        changes.push(rest.change()?);
    }
    Some(changes)
}

/// What has not been read yet.
struct RecordReader<'a>(&'a [u8]);

impl<'a> RecordReader<'a> {
    fn change(&mut self) -> Option<FoundChange> {
        let key = ObjectKey {
            policy: PolicyIndex(self.number()?),
            partition: Partition(self.number()?),
            hash: PathHash(self.fixed()?),
            name: String::new(),
        };
        let file = self.text()?.parse().ok()?;
        let updates = (0..self.number()?).map(|_| self.update()).collect::<Option<_>>()?;
        Some(FoundChange { key, file, updates })
    }

    fn update(&mut self) -> Option<ListingUpdate> {
        Some(ListingUpdate {
            policy: PolicyIndex(self.number()?),
            hash: PathHash(self.fixed()?),
            timestamp: self.text()?.parse().ok()?,
            op: self.text()?,
            account: self.text()?,
            container: self.text()?,
            object: self.text()?,
            db_state: self.maybe()?,
            container_path: self.maybe()?,
            headers: (0..self.number()?)
                .map(|_| Some((self.text()?, self.bytes()?.to_vec())))
                .collect::<Option<_>>()?,
        })
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (fixed, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*fixed)
    }

    fn number(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn maybe(&mut self) -> Option<Option<String>> {
        match self.fixed::<1>()? {
            [0] => Some(None),
            [1] => self.text().map(Some),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::FilePart;
    use proptest::prelude::*;

    fn update(object: &str) -> ListingUpdate {
        ListingUpdate {
            policy: PolicyIndex(1),
            hash: PathHash([7; 16]),
            timestamp: "1700000000.12345".parse().unwrap(),
            op: "PUT".into(),
            account: "a".into(),
            container: "c".into(),
            object: object.into(),
            headers: vec![("X-Size".into(), b"5".to_vec()), ("X-Content-Type".into(), vec![0xe9])],
            db_state: Some("unsharded".into()),
            container_path: None,
        }
    }

    fn recorded(objects: &[&str]) -> Vec<u8> {
        let mut record = vec![];
        for object in objects {
            let updates = [update(object), update("another")];
            let change = IntendedChange {
                key: &ObjectKey {
                    policy: PolicyIndex(1),
                    partition: Partition(9),
                    hash: PathHash([3; 16]),
                    name: String::new(),
                },
                file: FileName {
                    timestamp: "1700000000.12345".parse().unwrap(),
                    part: FilePart::Data,
                },
                updates: updates.iter().map(ListingUpdate::borrowed).collect(),
            };
            encode(&change, &mut record);
        }
        record
    }

    #[test]
    fn what_is_recorded_is_read() {
        let found = decode(&recorded(&["o", "ö"])).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].updates, [update("ö"), update("another")]);
        assert_eq!(found[0].file.to_string(), "1700000000.12345.data");
        assert_eq!(
            (found[0].key.partition, found[0].key.policy),
            (Partition(9), PolicyIndex(1))
        );
    }

    proptest! {
        #[test]
        fn any_record_is_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in 0_usize..300,
            byte: u8,
        ) {
            let _ = decode(&bytes);
            let mut spoilt = recorded(&["o"]);
            let at = at % spoilt.len();
            spoilt[at] = byte;
            let _ = decode(&spoilt);
            spoilt.truncate(at);
            prop_assert!(at == 0 || decode(&spoilt).is_none());
        }
    }
}
