//! Rows: what a storage server says about an object, or a container server about its container.
//!
//! Rows travel as they are given; how a row meets the one already stored is `merge.rs`.

use crate::Kind;
use crate::composite::Times;
use vocabulary::{PolicyIndex, Timestamp};

/// Content type of the row that a deleted object leaves.
pub const DELETED_CONTENT_TYPE: &str = "application/deleted";
/// Entity tag of the row that a deleted object leaves.
pub const DELETED_ETAG: &str = "noetag";

/// What happened to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// The object's name.
    pub name: String,
    /// When its data was written.
    pub timestamp: Timestamp,
    /// Its size in bytes.
    pub size: u64,
    /// Its content type, `swift_bytes` included.
    pub content_type: String,
    /// The MD5 of its data.
    pub etag: String,
    /// Whether it is gone.
    pub deleted: bool,
    /// The policy that keeps it.
    pub policy: PolicyIndex,
    /// When the content type was written, if not with the data.
    pub content_type_timestamp: Option<Timestamp>,
    /// When the metadata was written, if not with the content type.
    pub meta_timestamp: Option<Timestamp>,
}

impl ObjectRow {
    /// The row of an object deleted at `timestamp`.
    pub fn deleted(name: impl Into<String>, timestamp: Timestamp, policy: PolicyIndex) -> Self {
        Self {
            name: name.into(),
            timestamp,
            size: 0,
            content_type: DELETED_CONTENT_TYPE.into(),
            etag: DELETED_ETAG.into(),
            deleted: true,
            policy,
            content_type_timestamp: None,
            meta_timestamp: None,
        }
    }

    /// The three timestamps, missing ones equal to the one before.
    pub(crate) fn times(&self) -> Times {
        let content_type = self.content_type_timestamp.unwrap_or(self.timestamp);
        Times {
            data: self.timestamp,
            content_type,
            meta: self.meta_timestamp.unwrap_or(content_type),
        }
    }
}

/// What one container reports to its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRow {
    /// The container's name.
    pub name: String,
    /// When it was last created.
    pub put_timestamp: Timestamp,
    /// When it was last deleted; [`Timestamp::ZERO`] for never.
    pub delete_timestamp: Timestamp,
    /// How many objects it has.
    pub object_count: u64,
    /// How many bytes they have.
    pub bytes_used: u64,
    /// Its storage policy.
    pub policy: PolicyIndex,
}

impl ContainerRow {
    /// Deleted after it was created, and empty.
    pub fn is_deleted(&self) -> bool {
        self.delete_timestamp > self.put_timestamp && self.object_count == 0
    }
}

/// A row of either schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// For container databases.
    Object(ObjectRow),
    /// For account databases.
    Container(ContainerRow),
}

impl Row {
    /// The kind of database that takes it.
    pub fn kind(&self) -> Kind {
        match self {
            Row::Object(_) => Kind::Container,
            Row::Container(_) => Kind::Account,
        }
    }
}

/// `0` for never, as OpenStack spells it in SQLite; otherwise the internal form.
pub(crate) fn spell(time: Timestamp) -> String {
    match time == Timestamp::ZERO {
        true => "0".into(),
        false => time.internal(),
    }
}
