//! What may be injected into a running cluster.

use crate::disk::DriveFault;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// A node loses its power now.
    PowerLoss(usize),
    /// A node loses its power after so many steps of its drive.
    PowerLossAt(usize, u32),
    /// All nodes lose their power at once.
    Blackout,
    /// A node's process is killed.
    Kill(usize),
    /// All processes are killed at once, and begin again.
    KillAll,
    /// All processes are killed at once when a file of an object has got its name, or with them all machines lose their
    /// power; then they begin again.
    EndAllAtChange {
        /// With their power.
        with_power: bool,
    },
    /// A node begins again.
    Boot(usize),
    /// The link from one node to another is cut, or mended.
    Cut(usize, usize, bool),
    /// So many of 100 answers get lost.
    Loss(u64),
    /// So many of 100 calls come twice.
    Repeats(u64),
    /// So many of 100 pieces of bodies are the last that comes.
    Breaks(u64),
    /// Something about a node's drive.
    Drive(usize, DriveFault),
    /// Objects belong elsewhere from now on.
    NewRing,
    /// A client that asks for nothing keeps connections from a node to all others.
    IdleConnections(usize),
    /// A node's clock is off by so many microseconds.
    Skew(usize, i64),
}
