//! Which connection may read or write a file: SQLite's five states of a lock, kept for the connections of one process.
//!
//! Always holds: one writer at most; while it writes, no connection reads; a writer that waits for readers to end lets
//! no new ones begin.

use rsqlite_vfs::LockLevel;
use std::collections::BTreeMap;

/// What tells files apart: device and inode.
pub(crate) type FileKey = (u64, u64);

/// The locks of all files.
#[derive(Default)]
pub(crate) struct FileLocks(BTreeMap<FileKey, BTreeMap<u64, LockLevel>>);

impl FileLocks {
    /// Gives the handle `own` the lock `wanted`, or a higher one that it has; whether it could be had.
    pub(crate) fn lock(&mut self, file: FileKey, own: u64, wanted: LockLevel) -> bool {
        let holders = self.0.entry(file).or_default();
        let others = holders.iter().filter(|(holder, _)| **holder != own);
        let highest = others.map(|(_, level)| *level).max().unwrap_or(LockLevel::None);
        let bound = match wanted {
            LockLevel::None | LockLevel::Shared => LockLevel::Pending,
            LockLevel::Reserved | LockLevel::Pending | LockLevel::Exclusive => LockLevel::Reserved,
        };
        if highest >= bound {
            return false;
        }
        let waits = wanted == LockLevel::Exclusive && highest >= LockLevel::Shared;
        let gets = if waits { LockLevel::Pending } else { wanted };
        let held = holders.entry(own).or_insert(LockLevel::None);
        *held = gets.max(*held);
        !waits
    }

    /// Leaves the handle `own` no more than `level`.
    pub(crate) fn unlock(&mut self, file: FileKey, own: u64, level: LockLevel) {
        let Some(holders) = self.0.get_mut(&file) else { return };
        match holders.get_mut(&own) {
            Some(held) if level > LockLevel::None => *held = level.min(*held),
            _ => drop(holders.remove(&own)),
        }
        if holders.is_empty() {
            self.0.remove(&file);
        }
    }

    /// Whether any handle is about to write.
    pub(crate) fn is_reserved(&self, file: FileKey) -> bool {
        let holders = self.0.get(&file);
        holders.is_some_and(|holders| holders.values().any(|level| *level >= LockLevel::Reserved))
    }
}
