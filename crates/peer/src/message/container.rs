//! Messages about containers and their rows.

use super::field::{HeaderField, messages};
use super::header_names as names;
use super::targets::{ACCOUNT, UpdateTargets};
use crate::address::Target;
use http::HeaderValue;
use vocabulary::{PolicyIndex, Timestamp};

/// What becomes of rows of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowChange {
    /// The object in the path is there (PUT).
    #[default]
    Put,
    /// The object in the path is gone (DELETE).
    Delete,
    /// The rows are in the body, a JSON list as of the replicators' `merge_items` (UPDATE).
    Batch,
}

messages! {
    /// Create or recreate a container. Its metadata are among the headers.
    PutContainer {
        target: Target,
        =>
        /// The time of the change.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The policy that the container is to have.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The policy of a new container that asks for none.
        default_policy: HeaderField<PolicyIndex> = names::X_DEFAULT_POLICY,
        /// The account's servers that are to be sent the container's row.
        accounts: UpdateTargets = ACCOUNT,
        /// The row is taken by a deleted account, too.
        overrides_deleted: Option<HeaderValue> = names::X_ACCOUNT_OVERRIDE_DELETED,
        /// What is put: `shard` where it is no container.
        record_type: Option<HeaderValue> = names::X_RECORD_TYPE,
    }

    /// Change a container's metadata.
    PostContainer {
        target: Target,
        =>
        /// The time of the change.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The change is not one of the container's users.
        keeps_timestamp: bool = (names::X_NO_TIMESTAMP_UPDATE, "true"),
    }

    /// Delete an empty container.
    DeleteContainer {
        target: Target,
        =>
        /// The time of the deletion.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The policy, which is checked by servers alone.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The account's servers that are to be sent the container's row.
        accounts: UpdateTargets = ACCOUNT,
        /// The row is taken by a deleted account, too.
        overrides_deleted: Option<HeaderValue> = names::X_ACCOUNT_OVERRIDE_DELETED,
    }

    /// GET or HEAD of a container.
    ReadContainer {
        target: Target,
        /// HEAD: without the listing.
        head_only: bool,
        /// The query string, encoded: which part of the listing, in which form.
        query: String,
        =>
        /// The time of the request.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The policy of the rows that are listed; the container's own when there is none.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// What is listed: `shard` or `object`.
        record_type: Option<HeaderValue> = names::X_RECORD_TYPE,
        /// In which form shards are listed.
        record_shard_format: Option<HeaderValue> = names::X_RECORD_SHARD_FORMAT,
    }

    /// Change rows of a container.
    UpdateContainer {
        target: Target,
        /// What becomes of which rows.
        change: RowChange,
        =>
        /// The row's time; of many, the newest.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The objects' policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The object's size.
        size: HeaderField<u64> = names::X_SIZE,
        /// Its content type.
        content_type: Option<HeaderValue> = names::X_CONTENT_TYPE,
        /// Its entity tag.
        etag: Option<HeaderValue> = names::X_ETAG,
        /// When its content type was set.
        content_type_timestamp: HeaderField<Timestamp> = names::X_CONTENT_TYPE_TIMESTAMP,
        /// When its metadata were set.
        meta_timestamp: HeaderField<Timestamp> = names::X_META_TIMESTAMP,
        /// A missing container is to be made.
        creates: bool = (names::X_AUTO_CREATE, "True"),
        /// The sender follows redirects to shards.
        accepts_redirect: Option<HeaderValue> = names::X_ACCEPT_REDIRECT,
        /// The sender reads quoted locations.
        accepts_quoted_location: Option<HeaderValue> = names::X_ACCEPT_QUOTED_LOCATION,
    }
}
