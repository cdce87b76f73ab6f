//! What deletions take: the gateway, the locks, and the bucket that they are in.
//!
//! Always holds: a held lock ends with its lease, whatever becomes of the process.

use super::LifecycleFigures;
use super::unlisted::UnlistedBuckets;
use crate::internal_client::{InternalClient, InternalRequest, UnexpectedStatus};
use crate::peer_failures::PeerFailures;
use crate::ring_client::RingClient;
use http::{HeaderName, Method};
use lifecycle::{DayLength, LifecycleRules};
use peer::message::header_names::{X_CRYPTO_AS_STORED, X_NEWEST};
use std::sync::Arc;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, PolicyIndex};
use world::World;

/// By which upload an object was made.
pub(super) const UPLOAD_OF_OBJECT: HeaderName = HeaderName::from_static("x-object-sysmeta-s3api-upload-id");

/// Which version something is, or the key shows.
pub(super) const VERSION_ID: HeaderName = HeaderName::from_static("x-object-version-id");

/// A bucket with rules, and the time by which it is judged.
pub(super) struct RuledBucket {
    /// Its container.
    pub(super) path: EntityPath,
    pub(super) rules: LifecycleRules,
    /// The rules as they are stored.
    pub(super) stored: String,
    /// Where its versions are, as it is stored, if the container has, or had, versions.
    pub(super) versions: Option<String>,
    pub(super) policy: PolicyIndex,
    /// The second since 1970 that things are due by.
    pub(super) now: u64,
    pub(super) day: DayLength,
}

impl RuledBucket {
    /// Whether the container has, or had, versions.
    pub(super) fn keeps_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// The container of its versions.
    pub(super) fn hidden(&self) -> Option<EntityPath> {
        let name = unquote(self.versions.as_deref()?).ok()?;
        Some(EntityPath::account(self.path.account.as_str()).with_container(name))
    }
}

/// Deletes through upkeep's gateway.
pub(super) struct Remover {
    pub(super) world: World,
    pub(super) client: InternalClient,
    /// For what the next pass does if it fails: a bucket whose servers are down must not hold up others.
    pub(super) once: InternalClient,
    /// The servers of buckets.
    pub(super) containers: RingClient,
    pub(super) locks: Arc<dyn KeyLocks>,
    /// Deletions at the same time.
    pub(super) concurrency: usize,
    /// Rows of a page.
    pub(super) page: usize,
    pub(super) failures: Arc<PeerFailures>,
    pub(super) unlisted: UnlistedBuckets,
}

/// Why a lock was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLockRefusal {
    /// Another request has it, or too few servers answer.
    Held,
    /// Storage servers know no locks: OpenStack's.
    Unknown,
}

/// Where write locks of keys are taken.
#[async_trait::async_trait]
pub trait KeyLocks: Send + Sync {
    /// Takes the lock of an object of this policy.
    async fn take(&self, key: EntityPath, policy: PolicyIndex) -> Result<Box<dyn HeldKeyLock>, KeyLockRefusal>;
}

/// A lock that is held until it is dropped, or its lease ends.
#[async_trait::async_trait]
pub trait HeldKeyLock: Send + Sync {
    /// Whether most of the key's servers had an object when the lock was taken.
    fn is_there(&self) -> bool;
    /// Keeps it for longer; whether it was held all the time.
    async fn keep(&self) -> bool;
}

/// What was done about something that is due.
pub(super) struct Attended {
    pub(super) figures: LifecycleFigures,
    /// What servers did not do that were asked for.
    pub(super) fault: Option<ServerFault>,
}

impl ServerFault {
    /// What an error says of the servers of a key. 500 is of the thing itself, which cannot be read.
    pub(super) fn of(error: &UnexpectedStatus, key: String) -> Option<Self> {
        (error.is_of_servers() && error.status != 500).then_some(Self::Key(key))
    }
}

/// A HEAD of the newest of what is there. What is encrypted stays so, as no rule needs a key.
pub(super) fn look(path: EntityPath, query: String) -> InternalRequest {
    let head = InternalRequest {
        query,
        ..InternalRequest::new(Method::HEAD, path)
    };
    head.with(X_NEWEST, "true").with(X_CRYPTO_AS_STORED, "true")
}

/// What servers did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// What concerns this key.
    Key(String),
    /// To list what is left beside delete markers.
    Markers,
}

/// An upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueUpload {
    pub(super) key: String,
    pub(super) id: String,
}

impl DueUpload {
    /// Of the name of a marker; parts are none.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let (key, id) = name.rsplit_once('/')?;
        let is_part = id.bytes().all(|byte| byte.is_ascii_digit());
        (!is_part && !key.is_empty()).then(|| Self {
            key: key.to_owned(),
            id: id.to_owned(),
        })
    }
}
