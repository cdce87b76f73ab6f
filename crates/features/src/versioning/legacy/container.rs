//! How a container says where its versions go: `X-Versions-Location` and `X-History-Location`, stored as
//! `X-Container-Sysmeta-Versions-Location` and `-Mode`.
//!
//! Always holds: only one of the two is set; setting one wins over removing it in the same request; a bucket with an
//! object lock has neither, nor has a container that the same request is to make keep versions by itself, where
//! OpenStack's accepts both and keeps them twice.

use super::super::object_versioning::{BOTH_MODES, SWITCH};
use super::{HISTORY, STACK};
use http::{HeaderMap, HeaderName, HeaderValue};
use peer::message::header_names::X_BUCKET_LOCK;
use request_pipeline::{ClientRequest, Next, Response, is_true, reply};

const VERSIONS: HeaderName = HeaderName::from_static("x-versions-location");
const OF_HISTORY: HeaderName = HeaderName::from_static("x-history-location");
const REMOVALS: [&str; 2] = ["x-remove-versions-location", "x-remove-history-location"];
const STORED_LOCATION: HeaderName = HeaderName::from_static("x-container-sysmeta-versions-location");
const STORED_MODE: HeaderName = HeaderName::from_static("x-container-sysmeta-versions-mode");

/// Answers a PUT or POST of a container.
pub(super) async fn write(allowed: bool, mut request: ClientRequest, next: Next) -> Response {
    if let Err(refusal) = translate(allowed, &mut request.headers) {
        return *refusal;
    }
    let is_set = request
        .headers
        .get(STORED_LOCATION)
        .is_some_and(|location| !location.is_empty());
    let is_switched_on = request
        .headers
        .get(SWITCH)
        .is_some_and(|value| std::str::from_utf8(value.as_bytes()).is_ok_and(is_true));
    if is_set && is_switched_on {
        return reply::html(400, BOTH_MODES.into());
    }
    if is_set && is_locked(&request, &next).await {
        let text = "A container whose objects can be locked keeps versions by itself.";
        return reply::html(409, text.into());
    }
    read(request, next).await
}

/// Whether the container is a bucket with an object lock, which its older writes would pass by.
async fn is_locked(request: &ClientRequest, next: &Next) -> bool {
    if request.headers.contains_key(X_BUCKET_LOCK) {
        return true;
    }
    let Some(entity) = request.entity.as_deref() else {
        return false;
    };
    let container = entity.container.as_deref().unwrap_or_default();
    let info = next.info().container(&entity.account, container).await;
    info.bucket_lock().is_some()
}

/// Answers with where versions go, as clients say it.
pub(super) async fn read(request: ClientRequest, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let location = headers.remove(STORED_LOCATION).filter(|location| !location.is_empty());
    let mode = headers.remove(STORED_MODE);
    if let Some(location) = location {
        let of_history = mode.is_some_and(|mode| mode.as_bytes() == HISTORY.as_bytes());
        headers.insert(if of_history { OF_HISTORY } else { VERSIONS }, location);
    }
    response
}

/// Turns what the client says into what is stored.
fn translate(allowed: bool, headers: &mut HeaderMap) -> Result<(), Box<Response>> {
    let (versions, history) = (headers.remove(VERSIONS), headers.remove(OF_HISTORY));
    let mut is_removal = versions.is_some() || history.is_some();
    for name in REMOVALS {
        is_removal |= headers.remove(name).is_some_and(|value| !value.is_empty());
    }
    let set = |value: Option<HeaderValue>| value.filter(|value| !value.is_empty());
    let (location, mode) = match (set(versions), set(history)) {
        (Some(_), Some(_)) => {
            let text = "Only one of x-versions-location or x-history-location may be specified";
            return Err(Box::new(reply::plain(400, text)));
        }
        (Some(location), None) => (location, STACK),
        (None, Some(location)) => (location, HISTORY),
        (None, None) => {
            if is_removal {
                headers.insert(STORED_LOCATION, HeaderValue::from_static(""));
                headers.insert(STORED_MODE, HeaderValue::from_static(""));
            }
            return Ok(());
        }
    };
    let refuse = |text: &str| Err(Box::new(reply::html(412, text.into())));
    if !allowed {
        return refuse("Versioned Writes is disabled");
    }
    if location.as_bytes().contains(&b'/') {
        return refuse("Container name cannot contain slashes");
    }
    headers.insert(STORED_LOCATION, location);
    headers.insert(STORED_MODE, HeaderValue::from_static(mode));
    Ok(())
}
