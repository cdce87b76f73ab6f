//! File-system seam.

/// Disks.
pub trait FileSystem: Send + Sync {}
