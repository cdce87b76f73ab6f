//! One object on one device: how it is kept, found, replaced and forgotten.
//!
//! The object server calls an [`ObjectEngine`] from the device's I/O workers; every call blocks and
//! every call that returns `Ok` after writing has made it durable. Two engines exist: `files`
//! (OpenStack Swift's layout, byte for byte) and `memory` (for tests); `conformance` proves both.
//! Always holds: a reader never gets a torn object, nor bytes known not to match their checksum;
//! the newest timestamp wins whatever the order of calls.
//! Deliberately absent: HTTP, async, who asks and why, replicas elsewhere, expiry (`X-Delete-At` is
//! plain metadata here).
//! Layout and rules: `docs/formats/object-files.md`.

pub mod conformance;
mod engine;
mod error;
pub mod files;
mod key;
mod listing_intents;
mod listing_update;
pub mod memory;
mod metadata;
mod parts;
mod pending_updates;
mod replica;
pub mod rules;
mod suffixes;

pub use durable_fs::Reserve;
pub use engine::{
    Commit, FoundObject, MetadataUpdate, ObjectEngine, ObjectReader, ObjectWriter, OpenOptions, Timestamps,
    WriteLocksOwned,
};
pub use error::EngineError;
pub use files::{
    AuditListing, AuditPlace, Audited, Examined, FileTimes, FilesConfig, FilesEngine, ListedState, Notice, ObjectAudit,
    Presence,
};
pub use key::{ObjectKey, PartitionKey};
pub use listing_intents::{IntendedChange, ListingIntents};
pub use listing_update::{ListingUpdate, ListingUpdateRef};
pub use memory::MemoryEngine;
pub use metadata::ObjectMetadata;
pub use pending_updates::{PendingError, PendingRecord, PendingSuffix, PendingUpdate, PendingUpdates};
pub use replica::{MOST_SEEN, PartitionLock, Rehash, Replica, SeenVersions, SuffixHashes, Versions, suffix_hash};
pub use suffixes::{Hashes, HashesError, Suffix, SuffixHash, decode_hashes, encode_hashes};
