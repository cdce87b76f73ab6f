//! What is known of an account or a container without asking its server each time.
//!
//! Features and authorisation ask an [`InfoSource`]; the gateway answers from its caches or from
//! the servers. Always holds: names in the maps are lower case and without the prefix that says
//! whose metadata it is.

use std::collections::BTreeMap;
use vocabulary::{EntityPath, Partition, PolicyIndex, Timestamp};

/// An account, as its servers or a cache described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountInfo {
    /// The status of its HEAD: 2xx when it exists, 404, 410 when being deleted, 0 when no server answered.
    pub status: u16,
    /// Objects in all its containers.
    pub object_count: u64,
    /// Its containers.
    pub container_count: u64,
    /// Bytes in all its objects.
    pub bytes_used: u64,
    /// What of that lies in each policy.
    pub policies: BTreeMap<PolicyIndex, PolicyUse>,
    /// `X-Account-Meta-*`.
    pub meta: BTreeMap<String, String>,
    /// `X-Account-Sysmeta-*`.
    pub sysmeta: BTreeMap<String, String>,
}

/// What an account has in one storage policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyUse {
    /// Containers.
    pub container_count: u64,
    /// Objects.
    pub object_count: u64,
    /// Bytes in those.
    pub bytes_used: u64,
}

/// A container, as its servers or a cache described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInfo {
    /// The status of its HEAD: 2xx when it exists, 404, 0 when no server answered.
    pub status: u16,
    /// It is there, but its account is not, and its status is 404: what is in it may be read, and expires, until the
    /// reaper comes.
    pub is_of_gone_account: bool,
    /// The readers (`X-Container-Read`).
    pub read_acl: Option<String>,
    /// The writers (`X-Container-Write`).
    pub write_acl: Option<String>,
    /// The policy of its objects.
    pub policy: PolicyIndex,
    /// Its objects.
    pub object_count: u64,
    /// Bytes in its objects.
    pub bytes_used: u64,
    /// Where container sync takes its objects.
    pub sync_to: Option<String>,
    /// The secret of container sync.
    pub sync_key: Option<String>,
    /// `X-Versions-Location` of old.
    pub versions: Option<String>,
    /// `unsharded`, `sharding`, `sharded`, `collapsed`.
    pub sharding_state: Option<String>,
    /// `X-Container-Meta-*`, those for CORS among them.
    pub meta: BTreeMap<String, String>,
    /// `X-Container-Sysmeta-*`.
    pub sysmeta: BTreeMap<String, String>,
}

impl AccountInfo {
    /// Whether it is there.
    pub fn exists(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether its servers say that there is none, or none any more.
    pub fn is_gone(&self) -> bool {
        matches!(self.status, 404 | 410)
    }

    /// Whether no server could say: nothing of it is known, least of all that it may do everything.
    pub fn is_unknown(&self) -> bool {
        self.status == 0 || self.status >= 500
    }
}

impl ContainerInfo {
    /// Whether it is there.
    pub fn exists(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Where something lives, by the ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityLocation {
    /// Its partition.
    pub partition: Partition,
    /// Address, port and device of each of its primaries.
    pub places: Vec<(String, u16, String)>,
}

/// Describes accounts and containers.
#[async_trait::async_trait]
pub trait InfoSource: Send + Sync {
    /// Of an account; `status` says whether it exists.
    async fn account(&self, account: &str) -> std::sync::Arc<AccountInfo>;
    /// Where something lives, an object of `policy`; nowhere, unless this is a gateway.
    fn location(&self, _entity: &EntityPath, _policy: PolicyIndex) -> EntityLocation {
        EntityLocation::default()
    }
    /// A time for a write, later than all that storage has shown; absent, unless this is a gateway.
    fn write_time(&self) -> Option<Timestamp> {
        None
    }
    /// Of a container; `status` says whether it exists.
    async fn container(&self, account: &str, container: &str) -> std::sync::Arc<ContainerInfo>;
}
