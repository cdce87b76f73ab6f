//! What can be wrong with a pickle. Every message names the fault and, where there is one, the remedy.
//!
//! Reading stops at the first fault; nothing half-read is returned.

use thiserror::Error;

/// Why a pickle was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PickleError {
    /// The bytes end before the pickle does.
    #[error("pickle is truncated at byte {offset}: it ends before its STOP")]
    Truncated {
        /// Where more bytes were expected.
        offset: usize,
    },
    /// The pickle asks for something that is not data.
    #[error("pickle asks for `{name}`, which is not plain data: refused without running it")]
    ForbiddenGlobal {
        /// The global as `module.name`.
        name: String,
    },
    /// An opcode that only makes sense for code, persistent ids or extensions.
    #[error("pickle opcode 0x{opcode:02x} at byte {offset} is not plain data: refused")]
    ForbiddenOpcode {
        /// The opcode.
        opcode: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A byte that is no opcode of any protocol.
    #[error("byte 0x{opcode:02x} at {offset} is no pickle opcode: the data is corrupt or not a pickle")]
    UnknownOpcode {
        /// The byte.
        opcode: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A protocol newer than 5.
    #[error("pickle protocol {protocol} is not known (0 to 5 are)")]
    Protocol {
        /// The protocol named in the header.
        protocol: u8,
    },
    /// The opcodes do not fit together: corrupt data.
    #[error("pickle is corrupt at byte {offset}: {what}")]
    Malformed {
        /// Where the reader stood.
        offset: usize,
        /// What does not fit.
        what: &'static str,
    },
    /// An integer outside 64 bits.
    #[error("pickle holds an integer beyond 64 bits at byte {offset}")]
    IntegerRange {
        /// Where the reader stood.
        offset: usize,
    },
    /// A text value that is not Unicode (for example a lone surrogate).
    #[error("pickle holds text that is not valid Unicode at byte {offset}")]
    NotUnicode {
        /// Where the reader stood.
        offset: usize,
    },
    /// More than the caller's [`PickleLimits`](crate::Limits) allow.
    #[error("pickle exceeds the limit of {limit} {what}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The limit that was passed.
        limit: usize,
    },
}
