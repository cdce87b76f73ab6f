//! Why a step failed, and what that says about the device.

use std::io;
use std::path::{Path, PathBuf};

/// What an error says about the device it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The file or directory is not there; the device may well be fine.
    Absent,
    /// No room (disk or quota).
    Full,
    /// Missing, not mounted, read-only, or out of service.
    Unavailable,
    /// Something else went wrong, an I/O error for example.
    Failing,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The device's directory does not exist.
    #[error("{} does not exist; mount the device or remove it from the ring", .0.display())]
    Missing(PathBuf),
    /// The device's directory is not a mount point, and it should be.
    #[error("{} is not mounted; mount the device or set mount_check = false", .0.display())]
    NotMounted(PathBuf),
    /// The drive has shown that it cannot be relied on.
    #[error("{} is {service}: {why}", path.display())]
    OutOfService {
        /// The drive.
        path: PathBuf,
        /// What is left of its service.
        service: &'static str,
        /// What was seen of it.
        why: String,
    },
    /// The file system refused.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FsError {
    /// For `map_err`: what was being done, to what.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FsError {
        let path = path.to_owned();
        move |source| FsError::Io { doing, path, source }
    }

    /// What it says about the device.
    pub fn condition(&self) -> Condition {
        match self {
            FsError::Missing(_) | FsError::NotMounted(_) | FsError::OutOfService { .. } => Condition::Unavailable,
            FsError::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Condition::Absent,
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Condition::Full,
                io::ErrorKind::ReadOnlyFilesystem => Condition::Unavailable,
                _ => Condition::Failing,
            },
        }
    }

    /// Whether the file or directory is simply not there.
    pub fn is_absent(&self) -> bool {
        self.condition() == Condition::Absent
    }
}
