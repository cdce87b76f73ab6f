//! Why a body failed.

/// Why a body has no proper end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The producer went away without finishing.
    #[error("the sender went away before the end of the body")]
    Abandoned,
    /// The connection broke, or what came over it was not HTTP.
    #[error("the connection broke in the middle of the body: {0}")]
    Broken(String),
    /// No bytes, or too few, for too long.
    #[error("no bytes, or too few, came for too long")]
    TimedOut,
    /// The bytes do not have the checksum they should have; they must not be used.
    #[error("the bytes do not match their checksum")]
    Corrupt,
    /// Reading them from the disk failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// More bytes than the receiver is willing to take.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
}
