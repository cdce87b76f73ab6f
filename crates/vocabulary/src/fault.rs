//! [`Fault`]: what a failure means to the code that must react to it.
//!
//! Every error type of the workspace answers one question the same way: its kind ([`FaultKind`]), which says whose
//! failure it is and whether the same call may succeed later. Code that only passes failures on (upkeep, tools) carries
//! them as a [`Fault`]; code that decides (a status code, a quarantine) matches on the kind.
//! Always holds: the text of a fault names the thing that failed and, where there is one, the remedy.
//! Deliberately absent: status codes (`storage-shell`, `gateway`), logging.

use std::fmt;

/// Whose failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The thing that was asked for does not exist. Nothing failed.
    Absent,
    /// The state of the thing forbids the change: it exists already, or a newer version does.
    Conflict,
    /// A lock, a queue or a limit is taken at the moment.
    Contention,
    /// The stored bytes are damaged; the device that holds them works.
    Data,
    /// One file or directory cannot be read or written; others on its device may well be fine.
    Item,
    /// The device has no room for the change; reading works.
    NoSpace,
    /// The device is missing, not mounted, read-only or out of service.
    Device,
    /// Another server, or the network on the way to it.
    Peer,
    /// The caller: bad input, or a bug in this program.
    Caller,
}

impl FaultKind {
    /// Whether the same call may succeed a moment later without any repair.
    pub fn may_retry(self) -> bool {
        matches!(self, Self::Contention | Self::Peer)
    }

    /// Whether other devices may take the request (status 507).
    pub fn is_device(self) -> bool {
        matches!(self, Self::NoSpace | Self::Device)
    }
}

/// A failure with its kind and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Whose failure it is.
    pub kind: FaultKind,
    /// What was being done, to what, and why it failed.
    pub what: String,
}

impl Fault {
    /// A fault of any kind.
    pub fn new(kind: FaultKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
        }
    }

    /// A failure of another server, or of the network on the way to it.
    pub fn peer(what: impl Into<String>) -> Self {
        Self::new(FaultKind::Peer, what)
    }

    /// A failure of a device.
    pub fn device(what: impl Into<String>) -> Self {
        Self::new(FaultKind::Device, what)
    }

    /// Damaged bytes on a device that works.
    pub fn data(what: impl Into<String>) -> Self {
        Self::new(FaultKind::Data, what)
    }

    /// Bad input, or a bug in this program.
    pub fn caller(what: impl Into<String>) -> Self {
        Self::new(FaultKind::Caller, what)
    }

    /// The same fault with its circumstances in front: `context: what`.
    #[must_use]
    pub fn within(mut self, context: impl fmt::Display) -> Self {
        self.what = format!("{context}: {}", self.what);
        self
    }

    /// Whether the same call may succeed a moment later without any repair.
    pub fn may_retry(&self) -> bool {
        self.kind.may_retry()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circumstances_stand_in_front_and_the_kind_stays() {
        let fault = Fault::peer("connection refused").within("10.0.0.1:6200");
        assert_eq!(fault.to_string(), "10.0.0.1:6200: connection refused");
        assert!(fault.may_retry());
        assert!(!Fault::data("torn").may_retry());
        assert!(FaultKind::NoSpace.is_device());
    }
}
