//! GET and HEAD of objects and of their versions.
//!
//! Always holds: an answer says which version it is (`null` when it is none); paths of hidden objects
//! become the object's own with `?version-id=`; a delete marker is 404.

use super::names::VersionId;
use super::{Asked, DELETE_MARKER, VERSION_ID, allow_hidden, show_version};
use http::header::{CONTENT_LOCATION, CONTENT_TYPE};
use request_pipeline::{ClientRequest, Next, Response, reply, set_header};
use vocabulary::names::{quote, unquote};

const LINK_TARGET: &str = "x-symlink-target";

/// The current version, or the one that is asked for.
pub(super) async fn get_or_head(
    asked: &Asked,
    request: ClientRequest,
    wanted: Option<VersionId>,
    next: Next,
) -> Response {
    match wanted {
        Some(id @ VersionId::At(_)) => version(asked, request, id, next).await,
        Some(VersionId::Null) => null(asked, request, next).await,
        None => current(asked, request, next).await,
    }
}

async fn current(asked: &Asked, request: ClientRequest, next: Next) -> Response {
    let own_path = request.path.clone();
    let mut response = next.run(request).await;
    let id = name_version(asked, &mut response, &own_path);
    show_version(&mut response, id);
    response
}

/// Shows the client's own names where the answer has hidden ones; says which version it is about.
fn name_version(asked: &Asked, response: &mut Response, own_path: &str) -> VersionId {
    let hidden = &asked.versioned.hidden;
    let text = |name: &str| {
        let value = response.headers().get(name)?;
        unquote(std::str::from_utf8(value.as_bytes()).ok()?).ok()
    };
    let located = text(CONTENT_LOCATION.as_str()).and_then(|path| hidden.read_path(&path));
    let linked = text(LINK_TARGET).and_then(|target| hidden.read_target(&target, &asked.entity.account));
    if let Some((_, id)) = located {
        let path = format!("{}?version-id={id}", quote(own_path));
        set_header(response.headers_mut(), "content-location", &path);
        return id;
    }
    if let Some((object, id)) = linked {
        let container = asked.entity.container.as_deref().unwrap_or_default();
        let target = format!("{}?version-id={id}", quote(&format!("{container}/{object}")));
        set_header(response.headers_mut(), LINK_TARGET, &target);
        return id;
    }
    VersionId::Null
}

/// A version by its id; the hidden container has no ACL, so that only owners get this far.
async fn version(asked: &Asked, mut request: ClientRequest, id: VersionId, next: Next) -> Response {
    let method = request.method.clone();
    request.aim_at(asked.at(id));
    allow_hidden(&mut request);
    let mut response = next.run(request).await;
    if is_delete_marker(&response) {
        let kind = response.headers().get(CONTENT_TYPE).cloned();
        let mut missing = reply::status_for(&method, 404);
        if let Some(kind) = kind {
            missing.headers_mut().insert(CONTENT_TYPE, kind);
        }
        show_version(&mut missing, id);
        return missing;
    }
    if !matches!(response.status().as_u16(), 401 | 403 | 404) {
        show_version(&mut response, id);
    }
    response
}

fn is_delete_marker(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    response.status().is_success() && kind.is_some_and(|kind| kind == DELETE_MARKER)
}

/// What was written while versioning was not enabled, if that is what is there.
async fn null(asked: &Asked, request: ClientRequest, next: Next) -> Response {
    let (method, own_path) = (request.method.clone(), request.path.clone());
    let mut response = next.run(request).await;
    if !matches!(response.status().as_u16(), 200..=399 | 412 | 416) {
        return response;
    }
    match name_version(asked, &mut response, &own_path) {
        VersionId::Null => {
            show_version(&mut response, VersionId::Null);
            response
        }
        VersionId::At(_) => reply::status_for(&method, 404),
    }
}

/// What may be done with an object, whichever version is there.
pub(super) async fn options(request: ClientRequest, next: Next) -> Response {
    let mut response = next.run(request).await;
    show_version(&mut response, VersionId::Null);
    response
}

/// `?version-id=null` where there never were versions: the object itself.
pub(super) async fn unversioned(request: ClientRequest, next: Next) -> Response {
    let reads = matches!(request.method.as_str(), "GET" | "HEAD");
    let mut response = next.run(request).await;
    if reads && response.status().is_success() && !response.headers().contains_key(VERSION_ID) {
        show_version(&mut response, VersionId::Null);
    }
    response
}
