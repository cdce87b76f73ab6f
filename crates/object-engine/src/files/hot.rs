//! Objects read lately, kept in memory to be answered without a hop to the device's workers.
//!
//! The hop costs more than everything else about a small read. An answer from memory may be given
//! on an async thread only when it cannot wait for the drive, which may hang: so the body is kept
//! too (a read from the page cache could turn into one from the drive), and all that is asked of the
//! file system is [`world::files::FileSystem::glance`]. Nothing is kept open: a drive can be
//! unmounted at any time.
//!
//! Always holds: an answer is given only when
//! - the hash directory is the one that was listed, device, inode and both times alike: so the same
//!   files are in it, whatever works on the drive; and the files that counted are the same by the same
//!   signs: so metadata and body are;
//! - none of these had changed within the second before they were read ([`is_stable`]): the clock of
//!   the file system ticks too coarsely to show a second change in one tick. (The rule git has for its
//!   index. A clock set back by exactly as much as hides a change to the nanosecond defeats it.)
//! - the mark that the body matched its checksum still holds ([`super::verified`]); without marks
//!   nothing is kept;
//! - the body is not longer than `keep_cache_size`;
//! - with `mount_check`, the directory is on another file system than what is above the device's root.
//!
//! Anything else is left to the ordinary way, which finds out and keeps what it found. Our own writes
//! drop what they replace, for the room: freshness does not depend on it.
//! Page: `docs/formats/object-files.md`, "Reading". Tests: `tests/files_hot.rs`.

use super::EngineState;
use super::verified::is_stable;
use crate::engine::{FoundObject, OpenOptions, Timestamps};
use crate::key::ObjectKey;
use crate::metadata::ObjectMetadata;
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vocabulary::Timestamp;
use world::files::{Directory, FileInfo, Glance};

/// What an object takes beside its name, metadata and body, roughly.
const OVERHEAD: usize = 1_024;
/// An object with more than that share of the room is not kept.
const LARGEST_SHARE: usize = 16;

pub(crate) struct HotObjects {
    kept: Option<Mutex<HotCache>>,
    room: usize,
}

struct HotCache {
    objects: LruCache<ObjectKey, Arc<HotObject>>,
    bytes: usize,
}

struct HotObject {
    since: Duration,
    path: PathBuf,
    /// The files that count, the body's first.
    names: Vec<String>,
    /// What directory and files must look like.
    state: Glance,
    metadata: ObjectMetadata,
    data_metadata: ObjectMetadata,
    timestamps: Timestamps,
    /// `None` when only HEAD can be answered.
    body: Option<Bytes>,
    weight: usize,
}

/// What the ordinary way looked at to find an object.
pub(super) struct SeenFiles {
    /// When it began.
    pub(super) began: Timestamp,
    pub(super) path: PathBuf,
    pub(super) directory: Box<dyn Directory>,
    /// The files that count, the body's first.
    pub(super) files: Vec<(String, FileInfo)>,
}

impl HotObjects {
    pub(crate) fn new(objects: usize, room: usize) -> Self {
        let kept = NonZeroUsize::new(objects).map(|objects| {
            let objects = LruCache::new(objects);
            Mutex::new(HotCache { objects, bytes: 0 })
        });
        Self { kept, room }
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        if let Some(kept) = &self.kept {
            kept.lock().remove(key);
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<HotObject>> {
        self.kept.as_ref()?.lock().objects.get(key).cloned()
    }

    fn put(&self, key: &ObjectKey, object: HotObject) {
        if let Some(kept) = &self.kept
            && object.weight <= self.room / LARGEST_SHARE
        {
            kept.lock().put(key, Arc::new(object), self.room);
        }
    }
}

impl HotCache {
    fn remove(&mut self, key: &ObjectKey) {
        if let Some(removed) = self.objects.pop(key) {
            self.bytes -= removed.weight;
        }
    }

    fn put(&mut self, key: &ObjectKey, object: Arc<HotObject>, room: usize) {
        let knows_less =
            |known: &HotObject| known.state == object.state && known.body.is_some() && object.body.is_none();
        if self.objects.peek(key).is_some_and(|known| knows_less(known)) {
            return;
        }
        self.bytes += object.weight;
        if let Some((_, evicted)) = self.objects.push(key.clone(), object) {
            self.bytes -= evicted.weight;
        }
        while self.bytes > room
            && let Some((_, evicted)) = self.objects.pop_lru()
        {
            self.bytes -= evicted.weight;
        }
    }
}

impl HotObject {
    /// `None` when it lacks what is asked for.
    fn found(&self, options: OpenOptions) -> Option<FoundObject> {
        let size = self.state.files.first()?.size;
        let first = match options {
            OpenOptions { first: 0, .. } => Bytes::new(),
            _ => self.body.clone().filter(|body| body.len() <= options.first)?,
        };
        Some(FoundObject {
            metadata: self.metadata.clone(),
            data_metadata: self.data_metadata.clone(),
            timestamps: self.timestamps,
            size,
            first,
            reader: None,
        })
    }
}

impl EngineState {
    /// Answers from memory. Never blocks.
    pub(super) fn open_hot(&self, key: &ObjectKey, options: OpenOptions) -> Option<FoundObject> {
        let object = self.hot.get(key)?;
        let found = object.found(options)?;
        let elapsed = self.world.clock.elapsed();
        let is_lasting = match options {
            OpenOptions { first: 0, .. } => elapsed.saturating_sub(object.since) < self.config.verified_for,
            _ => self.verified.holds(object.state.files.first()?, elapsed),
        };
        let looks_alike = || self.device.files().glance(&object.path, &object.names).as_ref() == Some(&object.state);
        (is_lasting && looks_alike()).then_some(found)
    }

    /// Keeps an object in mind that was just found, if its state can be recognised again.
    pub(super) fn remember(&self, key: &ObjectKey, found: &FoundObject, seen: SeenFiles) {
        if self.hot.kept.is_none() || self.config.verified_marks == 0 {
            return;
        }
        let Ok(directory) = seen.directory.info() else { return };
        let is_stable = |info: &FileInfo| is_stable(info, seen.began);
        if !is_stable(&directory) || !seen.files.iter().all(|(_, info)| is_stable(info)) {
            return;
        }
        if !self.device.files().can_glance(&seen.path) || !self.is_below_mount(&directory) {
            return;
        }
        let elapsed = self.world.clock.elapsed();
        let is_whole = found.first.len() as u64 == found.size && self.verified.holds(&seen.files[0].1, elapsed);
        // What is to leave the page cache is not to stay here instead.
        let may_stay = found.size <= self.config.keep_cache_size;
        let body = (is_whole && may_stay).then(|| found.first.clone());
        let (names, files) = seen.files.into_iter().unzip();
        let lengths = |metadata: &ObjectMetadata| {
            metadata
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>()
        };
        self.hot.put(
            key,
            HotObject {
                since: elapsed,
                path: seen.path,
                names,
                state: Glance { directory, files },
                weight: OVERHEAD
                    + 2 * key.name.len()
                    + body.as_ref().map_or(0, Bytes::len)
                    + lengths(&found.metadata)
                    + lengths(&found.data_metadata),
                metadata: found.metadata.clone(),
                data_metadata: found.data_metadata.clone(),
                timestamps: found.timestamps,
                body,
            },
        );
    }

    /// Where the device must be mounted: whether a directory is on another file system than what is above
    /// the device's root. The number of its file system is part of what is recognised again.
    fn is_below_mount(&self, directory: &FileInfo) -> bool {
        let above = || self.device.files().info(&self.device.root().join(".."));
        !self.config.mount_check || above().is_ok_and(|above| above.device != directory.device)
    }
}
