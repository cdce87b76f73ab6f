//! Messages about accounts and their rows.

use super::field::{HeaderField, messages};
use super::header_names as names;
use crate::address::Target;
use http::HeaderValue;
use vocabulary::{PolicyIndex, Timestamp};

messages! {
    /// Create an account. Its metadata are among the headers.
    PutAccount {
        target: Target,
        =>
        /// The time of the change.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
    }

    /// Change an account's metadata.
    PostAccount {
        target: Target,
        =>
        /// The time of the change.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
    }

    /// Mark an account as deleted.
    DeleteAccount {
        target: Target,
        =>
        /// The time of the deletion.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
    }

    /// GET or HEAD of an account.
    ReadAccount {
        target: Target,
        /// HEAD: without the listing.
        head_only: bool,
        /// The query string, encoded: which part of the listing, in which form.
        query: String,
        =>
        /// The time of the request.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
    }

    /// Change the row of a container in its account.
    UpdateAccount {
        target: Target,
        =>
        /// The time at which a missing account is made.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// When the container was made.
        put_timestamp: HeaderField<Timestamp> = names::X_PUT_TIMESTAMP,
        /// When it was deleted.
        delete_timestamp: HeaderField<Timestamp> = names::X_DELETE_TIMESTAMP,
        /// Objects in it.
        object_count: HeaderField<u64> = names::X_OBJECT_COUNT,
        /// Bytes in it.
        bytes_used: HeaderField<u64> = names::X_BYTES_USED,
        /// Its policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// `yes`: the row is taken by a deleted account, too.
        overrides_deleted: Option<HeaderValue> = names::X_ACCOUNT_OVERRIDE_DELETED,
    }
}
