//! What container servers are asked for a record or a batch, and what their refusals mean.
//!
//! Always holds: the headers of a record are sent as they were recorded; a redirection is followed only to a
//! container's path.

use super::NAME;
use super::batch::RowBatch;
use crate::ring_client::{Answer, user_agent};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::PendingUpdate;
use vocabulary::EntityPath;
use vocabulary::names::unquote;

/// Whether a server that says this may yet take the rows one by one.
pub(super) fn refuses_batches(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::NOT_FOUND || status == StatusCode::NOT_IMPLEMENTED
}

pub(super) fn batch_headers(batch: &RowBatch) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert("user-agent", user_agent(NAME));
    headers.insert("x-backend-storage-policy-index", HeaderValue::from(batch.policy.0));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    // Digits and dots.
    if let Ok(timestamp) = HeaderValue::from_str(&batch.timestamp.internal()) {
        headers.insert("x-timestamp", timestamp);
    }
    headers
}

/// The container (or shard) that the row belongs to, and the row's path in it.
pub(super) fn destination(pending: &PendingUpdate) -> Option<(EntityPath, EntityPath)> {
    let update = &pending.update;
    let container = match update.container_path.as_deref() {
        Some(path) => container_of(path)?,
        None => EntityPath::account(update.account.clone()).with_container(update.container.clone()),
    };
    let path = container.with_object(update.object.clone());
    Some((container, path))
}

/// `account/container`.
pub(super) fn container_of(path: &str) -> Option<EntityPath> {
    let path = EntityPath::split(path).ok()?;
    (path.container.is_some() && path.object.is_none()).then_some(path)
}

/// The recorded headers, and what OpenStack's updater adds. What HTTP cannot carry is left out.
pub(super) fn headers(pending: &PendingUpdate) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    for (name, value) in &pending.update.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert("user-agent", user_agent(NAME));
    let policy = HeaderValue::from(pending.update.policy.0);
    headers.entry("x-backend-storage-policy-index").or_insert(policy);
    headers.insert("x-backend-accept-redirect", HeaderValue::from_static("true"));
    headers.insert("x-backend-accept-quoted-location", HeaderValue::from_static("true"));
    headers
}

/// The shard that a container server names instead of itself.
pub(super) fn redirect(answer: &Answer) -> Option<String> {
    let response = answer.answer.as_ref().ok()?;
    if response.status() != StatusCode::MOVED_PERMANENTLY {
        return None;
    }
    let text = |name: &str| response.headers().get(name)?.to_str().ok();
    let location = text("location")?;
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => location.trim_start_matches('/'),
    };
    let quoted = text("x-backend-location-is-quoted").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let path = if quoted { unquote(path).ok()? } else { path.to_owned() };
    container_of(&path).map(|_| path)
}
