//! Object lock among headers: that of an object (`vocabulary::object_lock`), and that of a bucket.
//!
//! A feature that is to spare what is held asks [`object_lock_in`] the headers of a HEAD of its own; headers that
//! clients send or see have no locks (the gatekeeper takes them off).

use crate::info::ContainerInfo;
use http::{HeaderMap, HeaderValue};
use peer::message::header_names::{X_OBJECT_LEGAL_HOLD, X_OBJECT_RETENTION};
use vocabulary::object_lock::{BUCKET_LOCK, BucketLock, ObjectLock};

/// What keeps the object that these headers are of.
pub fn object_lock_in(headers: &HeaderMap) -> ObjectLock {
    let value = |name| headers.get(name).map(HeaderValue::as_bytes);
    ObjectLock::read(value(X_OBJECT_RETENTION), value(X_OBJECT_LEGAL_HOLD))
}

/// Says in the headers of a write what is to keep the object; what is not set stays as it is.
pub fn set_object_lock(headers: &mut HeaderMap, lock: &ObjectLock) {
    for (name, value) in [
        (X_OBJECT_RETENTION, lock.stored_retention()),
        (X_OBJECT_LEGAL_HOLD, lock.stored_hold()),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
}

impl ContainerInfo {
    /// The lock of the bucket that this container is; one that cannot be read counts as one without a default.
    pub fn bucket_lock(&self) -> Option<BucketLock> {
        let stored = self.sysmeta.get(BUCKET_LOCK).filter(|stored| !stored.is_empty())?;
        Some(stored.parse().unwrap_or_default())
    }
}

/// The requests of a client that may bypass GOVERNANCE retentions, and says so: among the extensions of a request, and
/// so of those that features make of it.
#[derive(Debug, Clone, Copy)]
pub struct BypassesGovernance;
