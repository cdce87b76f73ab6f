//! The data of versions, moved as they are stored.

use super::names::VersionId;
use super::{Asked, SOURCE, allow_hidden, not_kept};
use crate::encryption;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap};
use peer::message::header_names::{BACKEND_PREFIX, X_BACKEND_TIMESTAMP, X_DATA_TIMESTAMP, X_TIMESTAMP};
use request_pipeline::{ClientRequest, Next, Response};
use vocabulary::{EntityPath, Timestamp};

/// What an answer says of itself rather than of the object.
const NOT_COPIED: [&str; 12] = [
    "accept-ranges",
    "connection",
    "content-length",
    "date",
    "etag",
    "last-modified",
    "vary",
    "x-delete-at",
    "x-openstack-request-id",
    "x-timestamp",
    "x-trans-id",
    "content-location",
];

/// The newest of what lies there, wherever it leads, as it is stored.
pub(super) async fn read_whole(request: &ClientRequest, entity: EntityPath, next: &Next) -> Response {
    let mut get = request.subrequest(Method::GET, entity, SOURCE).preauthorised();
    get.query = "symlink=get".into();
    get.set_header("x-newest", "true");
    allow_hidden(&mut get);
    encryption::read_sealed(&mut get);
    next.clone().run(get).await
}

/// When data was written.
pub(super) fn written_at(headers: &HeaderMap) -> Option<Timestamp> {
    [X_DATA_TIMESTAMP, X_BACKEND_TIMESTAMP, X_TIMESTAMP]
        .iter()
        .find_map(|name| headers.get(name)?.to_str().ok()?.parse().ok())
}

/// Stores what has been read ([`read_whole`]) as the data of a version, as of now or of `at`.
pub(super) async fn store_as(
    asked: &Asked,
    request: &ClientRequest,
    found: Response,
    (id, at): (VersionId, Option<Timestamp>),
    next: &Next,
) -> Result<(), Response> {
    let (head, body) = found.into_parts();
    let mut put = request.subrequest(Method::PUT, asked.at(id), SOURCE).preauthorised();
    allow_hidden(&mut put);
    for (name, value) in &head.headers {
        let word = name.as_str();
        let is_link = word.starts_with("x-symlink-");
        if !NOT_COPIED.contains(&word) && !word.starts_with(BACKEND_PREFIX) && !is_link {
            put.headers.insert(name.clone(), value.clone());
        }
    }
    if let Some(at) = at {
        put.set_header("x-timestamp", &at.internal());
    }
    if let Some(length) = head.headers.get(CONTENT_LENGTH) {
        put.headers.insert(CONTENT_LENGTH, length.clone());
    }
    encryption::carry(&head.extensions, &mut put);
    put.body = body;
    let kept = next.clone().run(put).await;
    match kept.status().is_success() {
        true => Ok(()),
        false => Err(not_kept(&kept, request)),
    }
}
