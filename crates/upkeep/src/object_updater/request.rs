//! What container servers are asked for a record, and what their refusals mean.
//!
//! Always holds: the headers of a record are sent as they were recorded; a redirection is followed only to a
//! container's path.

use super::NAME;
use crate::ring_client::{NodeResponse, user_agent};
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::{ListingUpdate, PendingUpdate};
use peer::Target;
use peer::message::header_names::X_LOCATION_IS_QUOTED;
use peer::message::{HeaderField, RequestContext, RowChange, UpdateContainer};
use std::sync::Arc;
use vocabulary::names::unquote;
use vocabulary::{EntityPath, Partition};

/// Whether a server that says this may yet take the rows one by one.
pub(super) fn refuses_batches(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::NOT_FOUND || status == StatusCode::NOT_IMPLEMENTED
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

/// The message that a record holds, without where it goes. Headers that HTTP cannot carry are left out.
pub(super) fn recorded(update: &ListingUpdate) -> (RequestContext, UpdateContainer) {
    let header = |(name, value): &(String, Vec<u8>)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(value).ok()?))
    };
    let mut headers: HeaderMap = update.headers.iter().filter_map(header).collect();
    let context = RequestContext::decode(&mut headers);
    let nowhere = Target {
        device: "".into(),
        partition: Partition(0),
        path: Arc::new(EntityPath::account("")),
    };
    let mut message = UpdateContainer::decode(nowhere, headers);
    if update.op == "DELETE" {
        message.change = RowChange::Delete;
    }
    (context, message)
}

/// The recorded message, and what OpenStack's updater adds.
pub(super) fn row_update(update: &ListingUpdate) -> (RequestContext, UpdateContainer) {
    let (context, mut message) = recorded(update);
    if message.policy == HeaderField::Absent {
        message.policy = update.policy.into();
    }
    message.accepts_redirect = Some(HeaderValue::from_static("true"));
    message.accepts_quoted_location = Some(HeaderValue::from_static("true"));
    let context = RequestContext {
        user_agent: Some(user_agent(NAME)),
        ..context
    };
    (context, message)
}

/// The shard that a container server names instead of itself.
pub(super) fn redirect(response: &NodeResponse) -> Option<String> {
    let response = response.response.as_ref().ok()?;
    if response.status() != StatusCode::MOVED_PERMANENTLY {
        return None;
    }
    let text = |name: HeaderName| response.headers().get(name)?.to_str().ok();
    let location = text(LOCATION)?;
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => location.trim_start_matches('/'),
    };
    let quoted = text(X_LOCATION_IS_QUOTED).is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let path = if quoted { unquote(path).ok()? } else { path.to_owned() };
    container_of(&path).map(|_| path)
}
