//! Why an engine could not do as asked: whose failure it is, and what was being done.
//!
//! The caller turns [`EngineError::kind`] into its own language (the object server into status codes).

use durable_fs::Symptom;
use std::io;
use vocabulary::{Fault, FaultKind, Timestamp};

/// Why an engine could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No such object; with the time of its deletion when a tombstone says so.
    #[error("no such object{}", deleted_at.map(|t| format!(" (deleted at {t})")).unwrap_or_default())]
    NotFound {
        /// The tombstone's timestamp.
        deleted_at: Option<Timestamp>,
    },
    /// What was found could not be trusted and has been moved to quarantine; to the client it is absent.
    #[error("quarantined {path}: {why}")]
    Quarantined {
        /// Where it was.
        path: String,
        /// What was wrong with it.
        why: String,
    },
    /// A body turned out not to match its checksum after part of it had been handed out; quarantined.
    #[error("{path} does not match its checksum: {why}")]
    Corrupt {
        /// Where it was.
        path: String,
        /// What was wrong with it.
        why: String,
    },
    /// The hash directory holds another name: two paths with one hash, or a misplaced directory.
    #[error("{path} belongs to {found:?}, not to {wanted:?}")]
    Collision {
        /// The file.
        path: String,
        /// The name in its metadata.
        found: String,
        /// The name asked for.
        wanted: String,
    },
    /// The device is full, or writing would touch its reserve.
    #[error("no space on device {device}: {why}; free space or lower fallocate_reserve")]
    NoSpace {
        /// The device's name.
        device: String,
        /// What ran out.
        why: String,
    },
    /// The device is missing, not mounted, read-only, or was taken out of service.
    #[error("device {device} is unavailable: {why}")]
    DeviceUnavailable {
        /// The device's name.
        device: String,
        /// Why.
        why: String,
    },
    /// The file system refused.
    #[error("could not {doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Objects lie where other secrets than the caller's put them; all of them were left alone.
    #[error(
        "no object in {path} lies where swift_hash_path_prefix and swift_hash_path_suffix put it: the swift.conf that was \
         read has other secrets than the servers of this device; nothing was quarantined, and nothing there is audited"
    )]
    OtherSecrets {
        /// The directory of a policy's objects.
        path: String,
    },
    /// The device has room, but its file system keeps no attributes of this length with a file.
    #[error(
        "metadata too long for {file_system}: it keeps only some 4 KiB with a file where it is ext4; XFS keeps more"
    )]
    MetadataTooLong {
        /// Where it is mounted.
        file_system: String,
    },
    /// The caller's metadata contradict what it wrote.
    #[error("refused: {0}")]
    Contradiction(String),
}

impl EngineError {
    /// Whose failure it is. What was quarantined is absent from now on.
    pub fn kind(&self) -> FaultKind {
        match self {
            EngineError::NotFound { .. } | EngineError::Quarantined { .. } => FaultKind::Absent,
            EngineError::Corrupt { .. } | EngineError::Collision { .. } => FaultKind::Data,
            EngineError::NoSpace { .. } => FaultKind::NoSpace,
            EngineError::DeviceUnavailable { .. } => FaultKind::Device,
            EngineError::Io { source, .. } => match Symptom::of(source).fault_kind() {
                // A part of what was asked for: that says nothing of the whole.
                FaultKind::Absent => FaultKind::Item,
                kind => kind,
            },
            EngineError::Contradiction(_) | EngineError::OtherSecrets { .. } | EngineError::MetadataTooLong { .. } => {
                FaultKind::Caller
            }
        }
    }

    /// When the object was deleted, if that is why it is absent.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        match self {
            EngineError::NotFound { deleted_at } => *deleted_at,
            _ => None,
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Fault::new(error.kind(), error.to_string())
    }
}
