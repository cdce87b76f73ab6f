//! Listing updates that no container server took: the `async_pending` records.
//!
//! `<device>/async_pending[-N]/<suffix>/<hash>-<timestamp>` holds a pickled dictionary that OpenStack
//! Swift's object-updater (or ours) sends later. A newer record of the same object and moment
//! replaces an older one. Reading them back and working through them: `pending_updates.rs`. Golden files:
//! `tests/golden/async.json`.

use crate::files::xattrs::latin1_to_utf8;
use pickle::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use vocabulary::{PathHash, PolicyIndex, Timestamp};

/// One row that a container's listing still has to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingUpdate {
    /// The object's policy.
    pub policy: PolicyIndex,
    /// The hash of account, container and object as they are in the record.
    pub hash: PathHash,
    /// When the object was written or deleted.
    pub timestamp: Timestamp,
    /// `PUT` or `DELETE`.
    pub op: String,
    /// The account.
    pub account: String,
    /// The container.
    pub container: String,
    /// The object.
    pub object: String,
    /// The headers to send, with their raw bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// What the proxy knew about the container's sharding.
    pub db_state: Option<String>,
    /// `account/container` of the shard to send it to instead.
    pub container_path: Option<String>,
}

/// A [`ListingUpdate`] whose parts stand elsewhere: what a row says, without a copy of it.
#[derive(Debug)]
pub struct ListingUpdateRef<'a> {
    /// The object's policy.
    pub policy: PolicyIndex,
    /// The hash of account, container and object as they are in the record.
    pub hash: PathHash,
    /// When the object was written or deleted.
    pub timestamp: Timestamp,
    /// `PUT` or `DELETE`.
    pub op: &'a str,
    /// The account.
    pub account: &'a str,
    /// The container.
    pub container: &'a str,
    /// The object.
    pub object: &'a str,
    /// The headers to send, with their raw bytes.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
    /// What the proxy knew about the container's sharding.
    pub db_state: Option<&'a str>,
    /// `account/container` of the shard to send it to instead.
    pub container_path: Option<&'a str>,
}

impl From<ListingUpdateRef<'_>> for ListingUpdate {
    fn from(update: ListingUpdateRef<'_>) -> Self {
        let headers = update.headers.into_iter();
        Self {
            policy: update.policy,
            hash: update.hash,
            timestamp: update.timestamp,
            op: update.op.to_owned(),
            account: update.account.to_owned(),
            container: update.container.to_owned(),
            object: update.object.to_owned(),
            headers: headers
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
            db_state: update.db_state.map(str::to_owned),
            container_path: update.container_path.map(str::to_owned),
        }
    }
}

impl ListingUpdate {
    /// The same update, whose parts stand here.
    pub fn borrowed(&self) -> ListingUpdateRef<'_> {
        ListingUpdateRef {
            policy: self.policy,
            hash: self.hash,
            timestamp: self.timestamp,
            op: &self.op,
            account: &self.account,
            container: &self.container,
            object: &self.object,
            headers: (self.headers.iter())
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            db_state: self.db_state.as_deref(),
            container_path: self.container_path.as_deref(),
        }
    }

    /// The record as OpenStack Swift pickles it.
    pub fn encode(&self) -> Vec<u8> {
        pickle::dumps_protocol0(&Value::Dict(self.entries()))
    }

    /// What stands in the record, in OpenStack Swift's order.
    pub(crate) fn entries(&self) -> Vec<(Value, Value)> {
        let text = |text: &str| Value::str(text);
        let header = |(name, value): &(String, Vec<u8>)| {
            let value = String::from_utf8_lossy(&latin1_to_utf8(value)).into_owned();
            (text(name), Value::str(value))
        };
        let mut entries = vec![
            (text("op"), text(&self.op)),
            (text("account"), text(&self.account)),
            (text("container"), text(&self.container)),
            (text("obj"), text(&self.object)),
            (
                text("headers"),
                Value::Headers(self.headers.iter().map(header).collect()),
            ),
            (text("db_state"), self.db_state.as_deref().map_or(Value::None, text)),
        ];
        entries.extend(
            self.container_path
                .as_deref()
                .map(|path| (text("container_path"), text(path))),
        );
        entries
    }

    /// The directory and name of the record on a device.
    pub fn place(&self, device: &Path) -> (PathBuf, String) {
        let directory = device
            .join(self.policy.directory("async_pending"))
            .join(self.hash.suffix());
        (directory, format!("{}-{}", self.hash, self.timestamp))
    }
}
