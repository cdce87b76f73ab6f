//! SQLite's files on any [`FileSystem`]: a VFS, as SQLite calls its own seam to the system.
//!
//! A [`SqliteMount`] gives a file system a name by which SQLite opens files there. All that SQLite does to them then
//! passes [`FileSystem`] call by call: databases, their journals, and the directories that journals are named in.
//! Simulated drives are reached this way, so that they lose what SQLite did not sync. Servers never do: they keep the
//! VFS of SQLite itself, whose behaviour on Linux is repeated here.
//! Always holds: what the VFS of SQLite makes of the system's errors is made of them here; a sync reaches the file, and
//! the first one of a new journal its directory as well.
//! Deliberately absent: locks between processes, shared memory and so WAL, mapped memory, the check whether an open
//! file was moved, links.
//!
//! | question | file |
//! |---|---|
//! | what SQLite asks of one file | `file.rs` |
//! | … of names, time and randomness | `vfs.rs` |
//! | which connection may read or write | `locks.rs` |
//!
//! # The `unsafe` block
//!
//! A VFS is a table of C functions that SQLite gets by pointer. `rsqlite_vfs`, which `rusqlite` itself builds on for
//! WebAssembly, has these functions and turns them into safe traits; to register the table is `unsafe`, and left to its
//! user. What was registered is never taken away again, so that no pointer to it can outlive it: a VFS that is not in
//! use any more waits for the next file system (`VfsSlot`). That list belongs to the process, as SQLite's own does.

mod file;
mod locks;
mod vfs;

#[cfg(test)]
mod tests;

// Links SQLite, which `rsqlite_vfs` only declares.
use rusqlite as _;

use locks::FileLocks;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::{MountMethods, MountVfs};
use world::clock::Clock;
use world::files::FileSystem;

/// What SQLite reaches by one name.
pub(crate) struct MountedFiles {
    files: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    locks: Mutex<FileLocks>,
    handles: AtomicU64,
}

/// A VFS that is registered with SQLite for good, and what it leads to now.
pub(crate) struct VfsSlot {
    name: String,
    mounted: Mutex<Option<Arc<MountedFiles>>>,
}

/// All that were ever made and are not in use.
static UNUSED: Mutex<Vec<&'static VfsSlot>> = Mutex::new(vec![]);
/// How many were made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A file system that SQLite opens files on, for as long as this lives. Connections must not outlive it: files that
/// they open afterwards are not there, or another file system's.
pub struct SqliteMount(&'static VfsSlot);

impl SqliteMount {
    /// Makes SQLite see `files`, with the time of `clock`.
    pub fn new(files: Arc<dyn FileSystem>, clock: Arc<dyn Clock>) -> Self {
        // Taken out before one is registered: SQLite has locks of its own.
        let unused = UNUSED.lock().pop();
        let slot = unused.unwrap_or_else(register);
        *slot.mounted.lock() = Some(Arc::new(MountedFiles {
            files,
            clock,
            locks: Mutex::default(),
            handles: AtomicU64::new(0),
        }));
        Self(slot)
    }

    /// The VFS by which connections reach it.
    pub fn vfs(&self) -> &'static str {
        &self.0.name
    }
}

impl Drop for SqliteMount {
    fn drop(&mut self) {
        drop(self.0.mounted.lock().take());
        UNUSED.lock().push(self.0);
    }
}

/// Another VFS. Where SQLite refuses it, which takes a lack of memory, connections fail for want of a VFS of that name.
fn register() -> &'static VfsSlot {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let slot: &'static VfsSlot = Box::leak(Box::new(VfsSlot {
        name: format!("martlet-files-{number}"),
        mounted: Mutex::new(None),
    }));
    #[expect(unsafe_code, reason = "SQLite gets a table of functions, see the head of this file")]
    // SAFETY: `MountVfs` and `MountMethods` leave all functions, versions and layouts to the defaults of the crate,
    // which belong together. The application data is a `&'static VfsSlot`, which is `Sync` (see `is_shared`), so that
    // SQLite may call from any thread; what calls change of a file is in the file's own handle, which SQLite uses from
    // one thread at a time. The name is used once, for `MADE` never gives a number twice, and nothing else registers
    // such a name. What is registered stays so, and nothing that it needs is ever freed.
    let registered = unsafe { rsqlite_vfs::register_vfs::<MountMethods, MountVfs>(&slot.name, slot, false) };
    // Dropping it leaves the VFS with SQLite.
    drop(registered);
    slot
}

const fn is_shared<T: Sync + 'static>() {}
const _: () = is_shared::<VfsSlot>();
