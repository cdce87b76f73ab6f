//! May the caller do this? Asked once the container's ACL for the verb is known.
//!
//! Always holds: without an authoriser in the pipeline everything is allowed, as in Swift; what only
//! owners may see or set is taken off for everybody else.

use crate::shared::Shared;
use http::HeaderMap;
use request_pipeline::{ClientRequest, Response};

/// `Err` is the answer to send instead.
pub(crate) async fn authorise(shared: &Shared, request: &mut ClientRequest, acl: Option<&str>) -> Result<(), Response> {
    match &request.authorizer {
        Some(_) => request.acl = acl.map(str::to_owned),
        None => request.is_owner = true,
    }
    request.authorise(shared).await
}

/// Takes off a response what only owners may see.
pub(crate) fn hide_from_others(shared: &Shared, request: &ClientRequest, headers: &mut HeaderMap) {
    if !request.is_owner {
        for name in &shared.options.swift_owner_headers {
            headers.remove(name);
        }
    }
}

/// Takes off a request what only owners may set.
pub(crate) fn drop_owners_headers(shared: &Shared, request: &mut ClientRequest) {
    if !request.is_owner {
        for name in &shared.options.swift_owner_headers {
            request.headers.remove(name);
        }
    }
}
