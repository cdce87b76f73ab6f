//! What both authenticators share: ACLs tidied for storing, another cluster's container sync, answers that ask for a
//! token.
//!
//! Always holds: the key of container sync is compared in constant time.

use http::Method;
use http::header::{HeaderName, HeaderValue, REFERER, WWW_AUTHENTICATE};
use identity::{AclKind, RequestFacts, clean_container_acl};
use request_pipeline::{ClientRequest, InfoSource, Response, reply};
use subtle::ConstantTimeEq;
use vocabulary::EntityPath;

/// 401 with this challenge.
pub(crate) fn unauthorised(method: &Method, realm: HeaderValue) -> Response {
    let mut response = reply::status_for(method, 401);
    response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    response
}

/// What an authoriser has to know of a request.
pub(crate) fn facts(request: &ClientRequest) -> RequestFacts<'_> {
    let entity = request.entity.as_deref();
    RequestFacts {
        method: &request.method,
        account: entity.map(|entity| entity.account.as_str()),
        container: entity.and_then(|entity| entity.container.as_deref()),
        object: entity.and_then(|entity| entity.object.as_deref()),
        referer: request.header(REFERER.as_str()),
    }
}

/// Whether it is another cluster that brings an object to a container whose key it knows (without a realm; requests
/// of realms are vouched for by `container_sync`).
pub(crate) async fn is_container_sync(request: &ClientRequest, info: &dyn InfoSource) -> bool {
    let Some(given) = request.headers.get("x-container-sync-key") else {
        return false;
    };
    let Some(entity) = request.entity.as_deref().filter(|entity| entity.object.is_some()) else {
        return false;
    };
    let writes = request.method == Method::PUT || request.method == Method::DELETE;
    if !writes || !request.headers.contains_key("x-timestamp") {
        return false;
    }
    let container = entity.container.as_deref().unwrap_or_default();
    let container = info.container(&entity.account, container).await;
    let key = container.sync_key.as_deref().filter(|key| !key.is_empty());
    key.is_some_and(|key| key.as_bytes().ct_eq(given.as_bytes()).into())
}

/// Makes what a container is to be readable and writable by what will be stored.
pub(crate) fn tidy_container_acls(request: &mut ClientRequest) -> Result<(), Box<Response>> {
    let writes = request.method == Method::PUT || request.method == Method::POST;
    let is_container = |entity: &EntityPath| entity.container.is_some() && entity.object.is_none();
    if !writes || !request.entity.as_deref().is_some_and(is_container) {
        return Ok(());
    }
    for (name, kind) in [
        ("x-container-read", AclKind::Read),
        ("x-container-write", AclKind::Write),
    ] {
        let Some(wanted) = request.header(name) else {
            continue;
        };
        let tidy = clean_container_acl(kind, wanted).map_err(|error| Box::new(reply::html(400, error.to_string())))?;
        // Tidying only leaves out; what is left of a header value is one.
        if let Ok(value) = HeaderValue::from_bytes(tidy.as_bytes()) {
            request.headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(())
}
