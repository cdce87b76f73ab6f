//! Messages between replicators.

use super::field::{HeaderField, messages};
use super::header_names as names;
use crate::address::PartitionTarget;
use http::HeaderValue;
use vocabulary::PolicyIndex;

messages! {
    /// Compare a partition of objects: its suffixes' hashes, or, with suffixes in the path, look at those again.
    ReplicateSuffixes {
        target: PartitionTarget,
        =>
        /// The objects' policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
    }

    /// Compare, merge or complete the database whose hash is in the path. The body is a JSON list that begins with the
    /// operation, or a database.
    ReplicateDatabase {
        target: PartitionTarget,
        =>
        /// The body is a database, to be called so until a second message says what becomes of it.
        database: Option<HeaderValue> = names::X_MARTLET_DATABASE,
    }

    /// Exchange objects of a partition in both directions of one connection (`crate::ssync`).
    Ssync {
        target: PartitionTarget,
        =>
        /// The objects' policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The fragment that is exchanged.
        fragment_index: Option<HeaderValue> = names::X_SSYNC_FRAGMENT_INDEX,
        /// The place of the sender in the partition.
        node_index: Option<HeaderValue> = names::X_SSYNC_NODE_INDEX,
    }

    /// Delete many objects of a device (`crate::deletes`).
    DeleteObjects {
        target: PartitionTarget,
        =>
        /// The objects' policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
    }
}
