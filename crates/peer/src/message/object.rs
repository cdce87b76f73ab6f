//! Messages about objects.

use super::field::{HeaderField, messages};
use super::header_names as names;
use super::row_targets::{RowHeaders, RowTargets};
use crate::address::Target;
use http::HeaderValue;
use http::header::{CONTENT_LENGTH, ETAG, EXPECT, IF_NONE_MATCH, TRANSFER_ENCODING};
use vocabulary::{PolicyIndex, Timestamp};

messages! {
    /// Write an object; its bytes are the body. Its content type and metadata are among the headers.
    PutObject {
        target: Target,
        =>
        /// The time of the write.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The object's policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The partition power that the ring is to have next, while it is being increased: what is written is to be
        /// found in the object's partition by that, too.
        next_part_power: HeaderField<u64> = names::X_NEXT_PART_POWER,
        /// The MD5 that the bytes must have.
        etag: Option<HeaderValue> = ETAG,
        /// `*`: only where there is none yet.
        if_none_match: Option<HeaderValue> = IF_NONE_MATCH,
        /// `100-continue`: the body is held back until the write is accepted.
        expect: Option<HeaderValue> = EXPECT,
        /// The body's length as its sender says it. A sender in this process leaves it to the body.
        content_length: Option<HeaderValue> = CONTENT_LENGTH,
        /// `chunked`, of a body whose length is not known. A sender in this process leaves it to the body.
        transfer_encoding: Option<HeaderValue> = TRANSFER_ENCODING,
        /// Where its listing rows go.
        rows: RowTargets = RowHeaders::ContainerAndQueue,
        /// Upkeep brings the object.
        is_replication: bool = (names::X_REPLICATION, "True"),
        /// What is overwritten is seen as if it had not expired.
        opens_expired: bool = (names::X_OPEN_EXPIRED, "true"),
        /// Names of headers that are kept with the object.
        replication_headers: Option<HeaderValue> = names::X_REPLICATION_HEADERS,
        /// The body is MIME and ends in a footer.
        has_footer: bool = (names::X_WANTS_METADATA_FOOTER, "yes"),
        /// The body is MIME and a commit follows.
        has_commit: bool = (names::X_WANTS_MULTIPHASE_COMMIT, "yes"),
        /// The boundary of a body that is MIME.
        mime_boundary: Option<HeaderValue> = names::X_MIME_BOUNDARY,
        /// Bytes of the object within a body that is MIME.
        object_length: Option<HeaderValue> = names::X_OBJECT_LENGTH,
        /// The write lock under which it is written: without that it must not be.
        write_lock: Option<HeaderValue> = names::X_WRITE_LOCK,
    }

    /// Take, keep or give back the write lock of an object (LOCK, a verb of our own).
    LockObject {
        target: Target,
        =>
        /// The object's policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The lock, as its holder has named it.
        write_lock: Option<HeaderValue> = names::X_WRITE_LOCK,
        /// For so many seconds; 0 gives it back.
        lease: HeaderField<u64> = names::X_WRITE_LOCK_LEASE,
        /// How long to wait in line, in milliseconds.
        patience: HeaderField<u64> = names::X_WRITE_LOCK_PATIENCE,
    }

    /// Replace what a client says about an object.
    PostObject {
        target: Target,
        =>
        /// The time of the change.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The object's policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The partition power that the ring is to have next, while it is being increased: what is written is to be
        /// found in the object's partition by that, too.
        next_part_power: HeaderField<u64> = names::X_NEXT_PART_POWER,
        /// When the content type was set, where that was before the change.
        content_type_timestamp: HeaderField<Timestamp> = names::CONTENT_TYPE_TIMESTAMP,
        /// Where its listing rows go.
        rows: RowTargets = RowHeaders::ContainerAndQueue,
        /// Upkeep brings the change.
        is_replication: bool = (names::X_REPLICATION, "True"),
        /// What is changed is seen as if it had not expired.
        opens_expired: bool = (names::X_OPEN_EXPIRED, "true"),
        /// Names of headers that are kept with the object.
        replication_headers: Option<HeaderValue> = names::X_REPLICATION_HEADERS,
        /// The write lock under which it is changed: without that it must not be.
        write_lock: Option<HeaderValue> = names::X_WRITE_LOCK,
        /// A GOVERNANCE retention does not hold it up.
        bypasses_governance: bool = (names::X_BYPASS_GOVERNANCE, "true"),
    }

    /// Leave a tombstone.
    DeleteObject {
        target: Target,
        =>
        /// The time of the deletion.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The object's policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// The partition power that the ring is to have next, while it is being increased: what is written is to be
        /// found in the object's partition by that, too.
        next_part_power: HeaderField<u64> = names::X_NEXT_PART_POWER,
        /// The expirer deletes only what still expires at this time.
        if_delete_at: HeaderField<Timestamp> = names::X_IF_DELETE_AT,
        /// Where its listing rows go.
        rows: RowTargets = RowHeaders::Container,
        /// Upkeep brings the deletion.
        is_replication: bool = (names::X_REPLICATION, "True"),
        /// What is deleted is seen as if it had not expired.
        opens_expired: bool = (names::X_OPEN_EXPIRED, "true"),
        /// The write lock under which it is deleted: without that it must not be.
        write_lock: Option<HeaderValue> = names::X_WRITE_LOCK,
        /// A GOVERNANCE retention does not hold it up.
        bypasses_governance: bool = (names::X_BYPASS_GOVERNANCE, "true"),
    }

    /// GET or HEAD of an object. Conditions and the range are among the headers.
    ReadObject {
        target: Target,
        /// HEAD: without the bytes.
        head_only: bool,
        =>
        /// The time that decides about expiry; now when there is none.
        timestamp: HeaderField<Timestamp> = names::X_TIMESTAMP,
        /// The object's policy.
        policy: HeaderField<PolicyIndex> = names::X_POLICY_INDEX,
        /// Metadata that hold the entity tag which conditions are about, separated by commas.
        etag_is_at: Option<HeaderValue> = names::X_ETAG_IS_AT,
        /// Metadata with which the whole object is sent whatever the range, separated by commas.
        ignores_range_if: Option<HeaderValue> = names::X_IGNORE_RANGE_IF,
        /// Upkeep asks.
        is_replication: bool = (names::X_REPLICATION, "True"),
        /// What has expired is seen as if it had not.
        opens_expired: bool = (names::X_OPEN_EXPIRED, "true"),
    }
}
