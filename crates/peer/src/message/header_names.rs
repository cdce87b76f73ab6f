//! The names of all headers that Swift's servers say to each other, and those of ours among them.
//!
//! Always holds: no other file of the workspace spells one of them.

use http::HeaderName;
use vocabulary::metadata::Entity;

/// What every header between servers begins with that clients must not send.
pub const BACKEND_PREFIX: &str = "x-backend-";

/// What a listing is to show instead of what was stored: `…-etag`, `…-size`, `…-content-type`.
pub const UPDATE_OVERRIDE_PREFIX: &str = "x-backend-container-update-override-";

/// The same, kept with the object.
pub const STORED_UPDATE_OVERRIDE_PREFIX: &str = "x-object-sysmeta-container-update-override-";

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: HeaderName = HeaderName::from_static($text);)*
    };
}

/// [`X_POLICY_INDEX`] as pending records spell it.
pub const RECORDED_POLICY_INDEX: &str = "X-Backend-Storage-Policy-Index";

// Every message.
names! {
    /// The time of the change; of a read, the time that decides about expiry.
    X_TIMESTAMP = "x-timestamp";
    /// The transaction that the message belongs to.
    X_TRANS_ID = "x-trans-id";
    /// The storage policy of an object, a row or a container.
    X_POLICY_INDEX = "x-backend-storage-policy-index";
    /// The message belongs on the network between storage servers.
    X_USE_REPLICATION_NETWORK = "x-backend-use-replication-network";
    /// Upkeep sends the message: nothing in it is a client's wish.
    X_REPLICATION = "x-backend-replication";
    /// In an answer of 500: one object or database cannot be read or written, its device can.
    X_ONE_ITEM_FAILED = "x-backend-one-item-failed";
}

// Objects.
names! {
    /// What has expired is to be seen as if it had not.
    X_OPEN_EXPIRED = "x-backend-open-expired";
    /// The partition power that the ring is to have next: objects are linked where they belong by that.
    X_NEXT_PART_POWER = "x-backend-next-part-power";
    /// Metadata that hold the entity tag which conditions are about.
    X_ETAG_IS_AT = "x-backend-etag-is-at";
    /// Metadata with which the whole object is sent whatever the range.
    X_IGNORE_RANGE_IF = "x-backend-ignore-range-if-metadata-present";
    /// Names of headers that are to be kept with the object.
    X_REPLICATION_HEADERS = "x-backend-replication-headers";
    /// Whether the expirer's queue is to forget the object.
    X_CLEAN_QUEUE = "x-backend-clean-expiring-object-queue";
    /// Delete only what expires at this time.
    X_IF_DELETE_AT = "x-if-delete-at";
    /// When the object expires, in seconds.
    X_DELETE_AT = "x-delete-at";
    /// In how many seconds the object expires.
    X_DELETE_AFTER = "x-delete-after";
    /// The newest of all replicas is wanted.
    X_NEWEST = "x-newest";
    /// When the content type of a POST was set.
    CONTENT_TYPE_TIMESTAMP = "content-type-timestamp";
    /// In an object server's `100 Continue`: it reads footers.
    X_OBJ_METADATA_FOOTER = "x-obj-metadata-footer";
    /// In an object server's `100 Continue`: it waits for a commit.
    X_OBJ_MULTIPHASE_COMMIT = "x-obj-multiphase-commit";
    /// The body is MIME and ends in a footer.
    X_WANTS_METADATA_FOOTER = "x-backend-obj-metadata-footer";
    /// The body is MIME and a commit follows.
    X_WANTS_MULTIPHASE_COMMIT = "x-backend-obj-multiphase-commit";
    /// The boundary of a body that is MIME.
    X_MIME_BOUNDARY = "x-backend-obj-multipart-mime-boundary";
    /// Bytes of the object within a body that is MIME.
    X_OBJECT_LENGTH = "x-backend-obj-content-length";
    /// The write lock under which an object is written: a random text, a slash, the object's quoted path.
    X_WRITE_LOCK = "x-backend-write-lock";
    /// For how many seconds a write lock is wanted.
    X_WRITE_LOCK_LEASE = "x-backend-write-lock-lease";
    /// For how many milliseconds it is waited for.
    X_WRITE_LOCK_PATIENCE = "x-backend-write-lock-patience";
    /// Upkeep has left the marker of an upload that had been completed: it says nothing of when the upload began.
    X_UPLOAD_REOPENED = "x-object-sysmeta-s3api-upload-reopened";
    /// The tags that S3's clients gave an object.
    X_OBJECT_TAGS = "x-object-transient-sysmeta-s3api-tags";
    /// Where the versions of a container are, among its headers.
    X_VERSIONS_CONTAINER = "x-container-sysmeta-versions-container";
    /// The lock of a bucket, among its container's headers (`vocabulary::object_lock`).
    X_BUCKET_LOCK = "x-container-sysmeta-s3api-object-lock";
    /// Until when an object is retained (`vocabulary::object_lock`).
    X_OBJECT_RETENTION = "x-object-transient-sysmeta-s3api-retention";
    /// Whether an object is under legal hold.
    X_OBJECT_LEGAL_HOLD = "x-object-transient-sysmeta-s3api-legal-hold";
    /// Proves the key of a client with which an object is encrypted (`request_pipeline::CustomerKey`).
    X_CUSTOMER_KEY_PROOF = "x-object-sysmeta-s3api-customer-key";
    /// A GOVERNANCE retention is not to hold the request up: its sender may bypass it.
    X_BYPASS_GOVERNANCE = "x-backend-bypass-governance-retention";
    /// A POST that sets retention or legal hold, and leaves all else as it is; between features of a gateway.
    X_LOCK_CHANGE = "x-backend-object-lock-change";
    /// The segments of the large object that is put are locked as it is; between features of a gateway.
    X_SEGMENTS_LOCKED = "x-backend-object-lock-segments";
    /// A version is to be deleted only while it is not the current one; between upkeep and its gateway.
    X_UNLESS_CURRENT = "x-backend-unless-current";
    /// A deletion leaves a delete marker though versions are suspended; between upkeep and its gateway.
    X_LEAVE_MARKER = "x-backend-leave-delete-marker";
    /// A deletion is a lifecycle rule's; between upkeep and its gateway.
    X_LIFECYCLE = "x-backend-lifecycle-expiration";
    /// In a gateway's answer to a deletion: each primary has deleted the object, has nothing, or something newer.
    X_ALL_PRIMARIES_DONE = "x-backend-all-primaries-done";
    /// Whether there is an object, in the answer to LOCK.
    X_OBJECT_EXISTS = "x-backend-object-exists";
}

// Listing updates that an object server is to send.
names! {
    /// Addresses of container servers, separated by commas.
    X_CONTAINER_HOST = "x-container-host";
    /// Their devices.
    X_CONTAINER_DEVICE = "x-container-device";
    /// The container's partition.
    X_CONTAINER_PARTITION = "x-container-partition";
    /// `account/container` of the shard that takes the row.
    X_CONTAINER_PATH = "x-backend-container-path";
    /// The same, quoted.
    X_QUOTED_CONTAINER_PATH = "x-backend-quoted-container-path";
    /// How far the container is sharded.
    X_ROOT_DB_STATE = "x-container-root-db-state";
    /// The container of the expirer's queue.
    X_DELETE_AT_CONTAINER = "x-delete-at-container";
    /// Addresses of the queue's container servers.
    X_DELETE_AT_HOST = "x-delete-at-host";
    /// Their devices.
    X_DELETE_AT_DEVICE = "x-delete-at-device";
    /// The queue container's partition.
    X_DELETE_AT_PARTITION = "x-delete-at-partition";
}

// Listing updates that a container server is to send.
names! {
    /// Addresses of account servers, separated by commas.
    X_ACCOUNT_HOST = "x-account-host";
    /// Their devices.
    X_ACCOUNT_DEVICE = "x-account-device";
    /// The account's partition.
    X_ACCOUNT_PARTITION = "x-account-partition";
    /// The row is taken by a deleted account, too.
    X_ACCOUNT_OVERRIDE_DELETED = "x-account-override-deleted";
}

// Rows.
names! {
    /// The object's size.
    X_SIZE = "x-size";
    /// The object's content type.
    X_CONTENT_TYPE = "x-content-type";
    /// The object's entity tag.
    X_ETAG = "x-etag";
    /// When its content type was set.
    X_CONTENT_TYPE_TIMESTAMP = "x-content-type-timestamp";
    /// When its metadata were set.
    X_META_TIMESTAMP = "x-meta-timestamp";
    /// When the container was made.
    X_PUT_TIMESTAMP = "x-put-timestamp";
    /// When the container was deleted.
    X_DELETE_TIMESTAMP = "x-delete-timestamp";
    /// Objects in the container.
    X_OBJECT_COUNT = "x-object-count";
    /// Bytes in the container.
    X_BYTES_USED = "x-bytes-used";
}

// Containers and accounts.
names! {
    /// The policy of a new container that asks for none.
    X_DEFAULT_POLICY = "x-backend-storage-policy-default";
    /// A missing container is to be made.
    X_AUTO_CREATE = "x-backend-auto-create";
    /// The change is not one of the container's users.
    X_NO_TIMESTAMP_UPDATE = "x-backend-no-timestamp-update";
    /// `shard` or `object`: what a listing is of.
    X_RECORD_TYPE = "x-backend-record-type";
    /// `full` or `namespace`.
    X_RECORD_SHARD_FORMAT = "x-backend-record-shard-format";
    /// The policy of the listed objects.
    X_RECORD_POLICY_INDEX = "x-backend-record-storage-policy-index";
    /// Deleted shards are listed, too.
    X_INCLUDE_DELETED = "x-backend-include-deleted";
    /// A feature may send UPDATE through the gateway.
    X_ALLOW_PRIVATE_METHODS = "x-backend-allow-private-methods";
    /// A feature may name what belongs to Swift itself.
    X_ALLOW_RESERVED_NAMES = "x-backend-allow-reserved-names";
    /// `Deleted`, of an account that was.
    X_ACCOUNT_STATUS = "x-account-status";
    /// How far the container is sharded.
    X_SHARDING_STATE = "x-backend-sharding-state";
}

// Replies.
names! {
    /// The newest time that the server knows of.
    X_BACKEND_TIMESTAMP = "x-backend-timestamp";
    /// When the object's bytes were written.
    X_DATA_TIMESTAMP = "x-backend-data-timestamp";
    /// When they became durable.
    X_DURABLE_TIMESTAMP = "x-backend-durable-timestamp";
    /// The content type that was or is there.
    X_BACKEND_CONTENT_TYPE = "x-backend-content-type";
    /// When the container was made.
    X_BACKEND_PUT_TIMESTAMP = "x-backend-put-timestamp";
    /// When the container was deleted.
    X_BACKEND_DELETE_TIMESTAMP = "x-backend-delete-timestamp";
    /// When the container came or went.
    X_STATUS_CHANGED_AT = "x-backend-status-changed-at";
    /// Since when a row belongs to a shard.
    X_REDIRECT_TIMESTAMP = "x-backend-redirect-timestamp";
    /// `Location` is quoted.
    X_LOCATION_IS_QUOTED = "x-backend-location-is-quoted";
    /// The sender of a row follows redirects to shards.
    X_ACCEPT_REDIRECT = "x-backend-accept-redirect";
    /// The sender of a row reads quoted locations.
    X_ACCEPT_QUOTED_LOCATION = "x-backend-accept-quoted-location";
}

// Replication.
names! {
    /// The fragment that an SSYNC is about.
    X_SSYNC_FRAGMENT_INDEX = "x-backend-ssync-frag-index";
    /// The place of the sender in the partition.
    X_SSYNC_NODE_INDEX = "x-backend-ssync-node-index";
    /// The receiver takes fragments that are not committed.
    X_ACCEPT_NO_COMMIT = "x-backend-accept-no-commit";
    /// On answers to REPLICATE `sync`: the server takes databases over HTTP. Ours alone say it.
    X_MARTLET_TAKES = "x-martlet-takes";
    /// The body is a database, to be called so until a second request says what becomes of it.
    X_MARTLET_DATABASE = "x-martlet-database";
}

// Between features and the gateway.
names! {
    /// The `X-Timestamp` that a client sent.
    X_INBOUND_TIMESTAMP = "x-backend-inbound-x-timestamp";
    /// The feature that makes up the body.
    X_CONTENT_GENERATOR = "x-backend-content-generator";
    /// The cipher that a body goes through, on its way in and on its way out.
    X_CRYPTO_CIPHER = "x-backend-crypto-cipher";
    /// What is encrypted goes by as it is stored; between upkeep and its gateway.
    X_CRYPTO_AS_STORED = "x-backend-crypto-as-stored";
    /// Of a static large object: every segment was encrypted when the list was put.
    X_SEGMENTS_ENCRYPTED = "x-object-sysmeta-slo-segments-encrypted";
    /// Objects of the fullest replica of a container that `X-Newest` met, which need not be the newest; not sent where
    /// fewer answered than a majority of replicas.
    X_MOST_ROWS = "x-backend-most-rows";
    /// Beside it where that majority are primaries, or handoffs that have had the container for as long as these.
    X_MOST_ROWS_CERTAIN = "x-backend-most-rows-certain";
    /// The container of versions that some replica names of those that `X-Newest` met.
    X_NAMED_VERSIONS = "x-backend-named-versions";
    /// The content type that a link has of its own.
    X_OWN_CONTENT_TYPE = "x-backend-own-content-type";
}

/// Whether `name` is of a header that no client may send or see: system metadata of every kind and everything between
/// servers.
pub fn is_internal(name: &str) -> bool {
    name.starts_with(BACKEND_PREFIX)
        || name.starts_with("x-object-transient-sysmeta")
        || [Entity::Account, Entity::Container, Entity::Object]
            .iter()
            .any(|entity| name.starts_with(entity.system_prefix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_client_may_see() {
        for name in [
            "x-backend-timestamp",
            "x-account-sysmeta-x",
            "x-object-transient-sysmeta-y",
            "x-object-sysmeta-",
        ] {
            assert!(is_internal(name), "{name}");
        }
        assert!(!is_internal("x-object-meta-x-backend-y"));
    }
}
