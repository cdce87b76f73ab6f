//! Versions that S3's object lock can hold (`vocabulary::object_lock`), as they are made and changed.
//!
//! Always holds: a new version of a bucket with a default retention has that, by whichever API it comes, unless its
//! client has asked for another; what no lock could hold as a whole (links, large objects of segments that stay the
//! client's) is not taken into such a bucket.
//! Deliberately absent: what decides between two requests at once (`../object_lock.rs`).

use super::names::VersionId;
use super::{Asked, allow_hidden, authorise_write, show_version};
use peer::message::header_names::{X_OBJECT_RETENTION, X_SEGMENTS_LOCKED};
use request_pipeline::{ClientRequest, ContainerInfo, Next, Response, reply, set_object_lock};
use vocabulary::Timestamp;
use vocabulary::object_lock::ObjectLock;

const NOT_LOCKABLE: &str = "A container whose objects can be locked takes neither links nor large objects made of \
                            segments; use S3's multipart uploads.";

/// Gives a new version the default retention of its bucket.
pub(super) fn lock_new(request: &mut ClientRequest, info: &ContainerInfo, now: Timestamp) -> Result<(), Response> {
    let Some(bucket) = info.bucket_lock() else {
        return Ok(());
    };
    let segments_locked = request.headers.remove(X_SEGMENTS_LOCKED).is_some();
    if is_made_of_others(request) && !segments_locked {
        return Err(reply::plain(409, NOT_LOCKABLE));
    }
    if let Some(default) = bucket
        .default
        .filter(|_| !request.headers.contains_key(X_OBJECT_RETENTION))
    {
        let lock = ObjectLock::of_retention(Some(default.from(now)), now);
        set_object_lock(&mut request.headers, &lock);
    }
    Ok(())
}

fn is_made_of_others(request: &ClientRequest) -> bool {
    ["x-static-large-object", "x-object-manifest", "x-symlink-target"]
        .iter()
        .any(|name| request.headers.contains_key(*name))
}

/// Refuses a POST that would make of a version that can be locked a large object of segments.
pub(super) async fn check_lockable(
    request: &mut ClientRequest,
    info: &ContainerInfo,
    next: &Next,
) -> Result<(), Response> {
    if info.bucket_lock().is_none() || !is_made_of_others(request) {
        return Ok(());
    }
    authorise_write(request, info, next).await?;
    Err(reply::plain(409, NOT_LOCKABLE))
}

/// A POST to a version: a change of what keeps it, and of nothing else.
pub(super) async fn post_version(
    asked: &Asked,
    mut request: ClientRequest,
    id: VersionId,
    info: &ContainerInfo,
    next: Next,
) -> Response {
    if let Err(refusal) = authorise_write(&mut request, info, &next).await {
        return refusal;
    }
    request.query.clear();
    request.aim_at(asked.at(id));
    allow_hidden(&mut request);
    let mut response = next.run(request.preauthorised()).await;
    show_version(&mut response, id);
    response
}
