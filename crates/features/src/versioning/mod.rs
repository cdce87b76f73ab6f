//! Older versions of objects: three features behind one name in the pipeline.
//!
//! `egg:swift#versioned_writes` is `legacy/` (X-Versions-Location, X-History-Location), and behind it
//! `object_versioning/`, the versioning that X-Versions-Enabled turns on, and `object_lock.rs`, which keeps the
//! versions that S3's object lock holds. Each is a row of `registry.rs`,
//! outermost first, and reads its own switch of [`settings::VersionedWritesSettings`].
//! Always holds: a feature that is switched off leaves requests alone.

mod legacy;
mod object_lock;
mod object_versioning;

pub use legacy::LegacyVersions;
pub use object_lock::ObjectLockGuard;
pub use object_versioning::ObjectVersioning;
