//! Why a step failed, and what that says about the device.

use crate::symptom::Symptom;
use std::io;
use std::path::{Path, PathBuf};
use vocabulary::{Fault, FaultKind};

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
        move |source| FsError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Whose failure it is.
    pub fn kind(&self) -> FaultKind {
        match self {
            FsError::Missing(_) | FsError::NotMounted(_) | FsError::OutOfService { .. } => FaultKind::Device,
            FsError::Io { source, .. } => Symptom::of(source).fault_kind(),
        }
    }

    /// Whether the file or directory does not exist; the device may well be fine.
    pub fn is_absent(&self) -> bool {
        self.kind() == FaultKind::Absent
    }

    /// Whether the whole device is missing, gone, not mounted, read-only or out of service.
    pub fn is_unavailable(&self) -> bool {
        match self {
            FsError::Missing(_) | FsError::NotMounted(_) | FsError::OutOfService { .. } => true,
            FsError::Io { source, .. } => Symptom::of(source).is_drive(),
        }
    }
}

impl From<FsError> for Fault {
    fn from(error: FsError) -> Self {
        Fault::new(error.kind(), error.to_string())
    }
}
