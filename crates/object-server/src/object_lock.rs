//! Object lock: what a stored lock (`vocabulary::object_lock`) forbids here.
//!
//! This is where no request passes, whichever door it came by: clients of S3 and Swift, the expirer, the reaper, and
//! other nodes' upkeep.
//! Always holds: an object that is held, by this server's own clock, is neither deleted nor overwritten, gets no expiry
//! before its lock ends, and no weaker lock than its sender may set. Upkeep of another node, which brings what a
//! majority has decided (a deletion that bypassed GOVERNANCE, after a legal hold that was taken away), is stopped by a
//! COMPLIANCE retention alone, which no majority can have decided against.
//! Deliberately absent: who may bypass what, and that a majority of the replicas know a lock (the gateway's); what
//! comes as files, by rsync, or to OpenStack's object servers.
//! Tests: `tests/object_lock.rs`.

use crate::expiry;
use crate::request::ObjectRequest;
use http::StatusCode;
use object_engine::rules::{lock_of, set_lock};
use object_engine::{FoundObject, ObjectMetadata};
use storage_shell::Refusal;
use vocabulary::Timestamp;
use vocabulary::object_lock::ObjectLock;

/// Refuses to delete or overwrite what is held at `now`.
pub(crate) fn check_removal(
    found: &FoundObject,
    now: Timestamp,
    is_replication: bool,
    bypasses: bool,
) -> Result<(), Refusal> {
    let lock = lock_of(&found.metadata);
    let is_held = match is_replication {
        true => lock.is_in_compliance(now),
        false => lock.is_held(now, bypasses),
    };
    match is_held {
        true => Err(refusal("the object is held by its retention or legal hold")),
        false => Ok(()),
    }
}

/// Refuses metadata of a client that make an object expire while they hold it.
pub(crate) fn check_expiry(metadata: &ObjectMetadata) -> Result<(), Refusal> {
    let Some(at) = expiry::delete_at(metadata) else {
        return Ok(());
    };
    let at = Timestamp::from_seconds(u64::try_from(at).unwrap_or_default());
    match lock_of(metadata).is_held(at, false) {
        true => Err(refusal(
            "X-Delete-At is before the end of the object's retention or legal hold",
        )),
        false => Ok(()),
    }
}

/// Says among the metadata of a POST what keeps the object from now on: what it says itself and what was said before.
pub(crate) fn keep_lock(
    posted: &mut ObjectMetadata,
    found: &FoundObject,
    request: &ObjectRequest,
    now: Timestamp,
) -> Result<(), Refusal> {
    let old = lock_of(&found.metadata);
    let merged = old.merged(lock_of(posted));
    if merged == ObjectLock::default() {
        return Ok(());
    }
    if !request.is_replication && !old.may_become(&merged, now, request.bypasses_governance) {
        return Err(refusal("the object's retention cannot be weakened"));
    }
    set_lock(posted, merged);
    match request.is_replication {
        true => Ok(()),
        false => check_expiry(posted),
    }
}

fn refusal(why: &str) -> Refusal {
    Refusal::Text(StatusCode::FORBIDDEN, why.to_owned())
}
