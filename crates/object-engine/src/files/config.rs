//! What an operator can set about a device; defaults are OpenStack Swift's.

use durable_fs::Reserve;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What an operator can set about a device.
#[derive(Debug, Clone)]
pub struct FilesConfig {
    /// The device's name in the ring, for messages.
    pub name: String,
    /// `<devices>/<name>`.
    pub root: PathBuf,
    /// Whether the root must be a mount point (`mount_check`).
    pub mount_check: bool,
    /// Whether room is reserved before a body of known size arrives (not `disable_fallocate`).
    pub fallocate: bool,
    /// The room that clients may not use up (`fallocate_reserve`).
    pub reserve: Reserve,
    /// A long body is pushed to the disk each time that many bytes have come (`mb_per_sync`).
    pub sync_every: u64,
    /// Longer bodies are dropped from the page cache once written or read (`keep_cache_size`).
    pub keep_cache_size: u64,
    /// How long tombstones are kept (`reclaim_age`).
    pub reclaim_age: Duration,
    /// The share of whole reads that verify the body's checksum, 0 to 100 (`etag_validate_pct`).
    pub etag_validate_percent: f64,
    /// How many files are remembered as verified; 0 verifies on every read.
    pub verified_marks: usize,
    /// How long a file counts as verified.
    pub verified_for: Duration,
    /// How many objects are kept in memory to answer without a worker; 0 for none.
    pub hot_objects: usize,
    /// Bytes they may take together.
    pub hot_bytes: usize,
    /// Called for each object that goes to quarantine.
    pub quarantined: Notice,
}

/// What is called when something happened, if anything is.
#[derive(Clone, Default)]
pub struct Notice(Option<Arc<dyn Fn() + Send + Sync>>);

impl Notice {
    /// Calls `receiver` each time, on the thread where it happened.
    pub fn to(receiver: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receiver)))
    }

    pub(crate) fn send(&self) {
        if let Some(receiver) = &self.0 {
            receiver();
        }
    }
}

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Notice({})", self.0.is_some())
    }
}

impl FilesConfig {
    /// The defaults for a device.
    pub fn new(name: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            root: root.into(),
            mount_check: true,
            fallocate: true,
            reserve: Reserve::Percent(1.0),
            sync_every: 512 << 20,
            keep_cache_size: 5 << 20,
            reclaim_age: Duration::from_secs(7 * 24 * 3600),
            etag_validate_percent: 100.0,
            // About 100 bytes each.
            verified_marks: 100_000,
            verified_for: Duration::from_secs(3600),
            hot_objects: 16_384,
            hot_bytes: 64 << 20,
            quarantined: Notice::default(),
        }
    }
}
