//! How a change becomes durable: stage → sync → publish → sync the directories.
//!
//! A [`Staged`] file becomes [`Synced`] and only that can be published under its name; publishing
//! returns after the directory entry, and every directory made on the way, is on stable storage. The
//! types leave no way to publish what was not synced or to acknowledge what was not published.
//! Always holds: a crash at any line leaves the old state or the new one; after a failed fsync the
//! device takes no more writes until a trial shows that it keeps them, where something tries it out (`health.rs`; the
//! kernel has dropped what it could not write, and nothing of that was acknowledged); a device that vanished is never
//! re-created as a directory.
//! What may be lost with the power, but not with the process, is recorded first (`intent_log.rs`).
//! Deliberately absent: what files mean, where they live, who asks.
//! No other crate renames or syncs. Tests sit beside the code; a fault-injecting disk is in `tests/`.

mod aligned;
mod batch;
mod device;
mod drives;
mod error;
mod fresh;
pub mod health;
pub mod intent_log;
mod lock;
mod reserve;
mod staged;
mod symptom;
mod trial;

pub use batch::Batch;
pub use device::StorageDevice;
pub use drives::Drives;
pub use error::FsError;
pub use health::{DriveService, Health, TrialOutcome};
pub use intent_log::{Intent, IntentLog};
pub use lock::{Hint, Locked};
pub use reserve::Reserve;
pub use staged::{Staged, Synced, write_file_atomically, write_private_file_atomically};
pub use symptom::Symptom;
pub use trial::try_out;
