//! Write locks of objects: how a feature writes on a condition that holds until the write is done.
//!
//! A feature names a lock ([`WriteLock::new`]), says so in the request that writes ([`WriteLock::header`]), takes it
//! when the body is there ([`WriteLock::take`]), looks whether its condition holds, and lets the write end. A write
//! whose lock is not held any more on most of the object's primaries fails there, so that nothing depends on how long
//! anything takes.
//! Always holds: a lock that was asked for is given back when its [`WriteLock`] is dropped, and ends with its lease in
//! any case.
//! Deliberately absent: conditions; which servers are asked (the gateway's).

use http::HeaderValue;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vocabulary::names::quote;
use vocabulary::object_lock::ObjectLock;
use vocabulary::{EntityPath, PolicyIndex, Timestamp};
use world::World;

/// What a lock is of, and its name.
#[derive(Debug, Clone)]
pub struct LockName {
    /// The object.
    pub entity: EntityPath,
    /// Its policy.
    pub policy: PolicyIndex,
    /// A random text, then the quoted path of the object.
    pub value: HeaderValue,
    /// The transaction on whose behalf.
    pub trans_id: String,
}

/// The object when its lock was taken: the newest that most of its primaries have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectStanding {
    /// Of the object or its tombstone.
    pub timestamp: Option<Timestamp>,
    /// Whether it is an object.
    pub is_there: bool,
    /// The lock was held all the time since it was taken before.
    pub was_kept: bool,
    /// What keeps the object (S3's object lock), as all of them know it together.
    pub lock: ObjectLock,
}

/// Why a lock was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockRefusal {
    /// Others have it.
    Held,
    /// Too few of the object's primaries answer.
    Unavailable,
    /// Storage servers know no locks: OpenStack's.
    Unknown,
}

/// Where locks are taken.
#[async_trait::async_trait]
pub trait WriteLocks: Send + Sync {
    /// Takes a lock, or keeps it, for `lease`; waits in line for a while.
    async fn take(&self, name: &LockName, lease: Duration) -> Result<ObjectStanding, LockRefusal>;
    /// Gives it back, in the background.
    fn give_back(&self, name: LockName);
}

/// A lock that is held, or is going to be.
pub struct WriteLock {
    locks: Arc<dyn WriteLocks>,
    name: LockName,
    was_asked_for: AtomicBool,
}

impl WriteLock {
    /// Of an object; `random` tells it from all others.
    pub fn new(
        locks: Arc<dyn WriteLocks>,
        entity: EntityPath,
        policy: PolicyIndex,
        random: &str,
        trans_id: &str,
    ) -> Option<Self> {
        let value = HeaderValue::try_from(format!("{random}{}", quote(&entity.path()))).ok()?;
        Some(Self {
            locks,
            name: LockName {
                entity,
                policy,
                value,
                trans_id: trans_id.to_owned(),
            },
            was_asked_for: AtomicBool::new(false),
        })
    }

    /// What the write under it says.
    pub fn header(&self) -> HeaderValue {
        self.name.value.clone()
    }

    /// Takes it, or keeps it for longer.
    pub async fn take(&self, lease: Duration) -> Result<ObjectStanding, LockRefusal> {
        self.was_asked_for.store(true, Ordering::Relaxed);
        self.locks.take(&self.name, lease).await
    }

    /// Does `work` under the lock, which has been taken for `lease` and is kept for as long as that takes. One that
    /// cannot be kept ends a write that names it at the object servers.
    pub async fn keep_while<T>(&self, world: &World, lease: Duration, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = world.timeout(lease / 3, &mut work).await {
                return done;
            }
            let _ = self.take(lease).await;
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        if self.was_asked_for.load(Ordering::Relaxed) {
            self.locks.give_back(self.name.clone());
        }
    }
}
