//! [`ObjectKey`] and [`PartitionKey`]: which object, which partition. Everything that a place on a device depends on.

use vocabulary::{Partition, PathHash, PolicyIndex};

/// Which object: everything the disk layout depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// The storage policy: chooses `objects` or `objects-N`.
    pub policy: PolicyIndex,
    /// The partition of the object's ring.
    pub partition: Partition,
    /// The hash of its path.
    pub hash: PathHash,
    /// `/account/container/object`, kept in the metadata and checked on every read. Empty where an object is known by
    /// its hash only, as in replication: the metadata then say what it is called, and the caller checks that.
    pub name: String,
}

/// One partition of a policy on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    /// The storage policy: chooses `objects` or `objects-N`.
    pub policy: PolicyIndex,
    /// The partition.
    pub partition: Partition,
}
