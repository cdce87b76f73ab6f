//! From an HTTP request to a [`ClientRequest`]: what is asked about what, and its transaction id.
//!
//! Always holds: a path that is not UTF-8 is refused here (412); one with a NUL, which belongs to Swift
//! itself, is refused by the core unless a feature vouches for it; hop-by-hop headers go no further.

use crate::shared::Shared;
use http::HeaderName;
use http::header::{CONNECTION, TE, UPGRADE};
use peer::{AccountPlace, Body, Https};
use request_pipeline::{ClientRequest, Request, Response, reply};
use std::net::SocketAddr;
use std::sync::Arc;
use vocabulary::Limits;
use vocabulary::names::unquote;
use world::World;

static HOP_BY_HOP: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    TE,
    UPGRADE,
    HeaderName::from_static("proxy-connection"),
];

/// Reads the request's line and headers. The refusal is boxed: it is rare and large.
pub(crate) fn recognise(
    shared: &Shared,
    request: http::Request<Body>,
    from: SocketAddr,
) -> Result<ClientRequest, Box<Response>> {
    let (mut head, body) = request.into_parts();
    let tls = head.extensions.get::<Https>().is_some();
    let began = (shared.world.clock.elapsed(), shared.world.clock.now());
    let trans_id = transaction_id(&shared.world, began.1.seconds(), &shared.options.trans_id_suffix);
    if let Some(code) = oversized(&head, &shared.options.limits) {
        // A head beyond all bounds may be no head at all; OpenStack's proxy does not read on either.
        let mut refusal = reply::status(code);
        let close = http::HeaderValue::from_static("close");
        refusal.headers_mut().insert(CONNECTION, close);
        return Err(Box::new(refusal));
    }
    let raw_path: Arc<str> = head.uri.path().into();
    let Ok(path) = unquote(&raw_path) else {
        shared.options.statsd.increment("errors");
        let mut refusal = not_text(&head.method);
        refusal
            .headers_mut()
            .insert("x-trans-id", crate::backend::text(&trans_id));
        refusal
            .headers_mut()
            .insert("x-openstack-request-id", crate::backend::text(&trans_id));
        return Err(Box::new(refusal));
    };
    let mut headers = head.headers;
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    let path = if *path == *raw_path {
        raw_path.clone()
    } else {
        path.into()
    };
    let mut request = Request::new(head.method, raw_path, path);
    request.query = head.uri.query().unwrap_or_default().to_owned();
    (request.headers, request.body) = (headers, body);
    (request.from, request.scheme) = (from, if tls { "https" } else { "http" });
    (request.trans_id, request.began) = (trans_id.into(), began);
    if let Some(place) = head.extensions.remove::<AccountPlace>() {
        request.extensions.insert(place);
    }
    Ok(request)
}

/// The answer to a path that is no text, or is not for clients.
pub(crate) fn not_text(method: &http::Method) -> Response {
    let refusal = reply::html(412, "Invalid UTF8 or contains NULL".into());
    match *method {
        http::Method::HEAD => refusal.map(|_| Body::empty()),
        _ => refusal,
    }
}

/// Bytes that all headers together may have, whatever the configuration says.
const MAX_HEADERS_SIZE: usize = 64 * 1024;

/// The status for a request whose line or headers are too long.
fn oversized(head: &http::request::Parts, limits: &Limits) -> Option<u16> {
    // "METHOD path?query HTTP/1.1\r\n"
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if head.method.as_str().len() + target + 12 >= limits.max_request_line {
        return Some(414);
    }
    // "name: value\r\n"
    let lengths = || {
        head.headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
    };
    (lengths().any(|length| length >= limits.max_header_size) || lengths().sum::<usize>() + 2 > MAX_HEADERS_SIZE)
        .then_some(400)
}

/// `tx`, 21 random hexadecimal digits, the time, and the cluster's suffix.
fn transaction_id(world: &World, seconds: u64, suffix: &str) -> String {
    let (high, low) = (world.random.next_u64(), world.random.next_u64());
    format!("tx{:016x}{:05x}-{seconds:010x}{suffix}", high, low & 0xf_ffff)
}
