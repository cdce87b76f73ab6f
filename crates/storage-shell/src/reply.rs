//! Replies and their headers, spelled as OpenStack's storage servers do.
//!
//! Always holds: a header value that HTTP cannot carry is left out; a reply 204 has no length.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use peer::{Body, Response};
use std::fmt::Display;
use std::io::Write;
use vocabulary::Timestamp;

pub(crate) const HTML: &str = "text/html; charset=UTF-8";

/// A status with its standard page.
pub fn page(status: StatusCode) -> Response {
    whole(status, HTML, standard_page(status))
}

/// A status without a body.
pub fn empty(status: StatusCode) -> Response {
    whole(status, HTML, Bytes::new())
}

/// A status with these bytes.
pub fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let body = Body::whole(body.into());
    let length = body.length().unwrap_or_default();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if status != StatusCode::NO_CONTENT {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Takes the body away, as HEAD wants it; the length stays.
pub fn without_body(response: Response) -> Response {
    response.map(|_| Body::empty())
}

/// A header value of what `value` prints; `None` when HTTP cannot carry it. Allocates once.
pub fn header_value(value: impl Display) -> Option<HeaderValue> {
    let mut room = [0; 128];
    let mut left = &mut room[..];
    let unused = match write!(left, "{value}") {
        Ok(()) => left.len(),
        Err(_) => return HeaderValue::try_from(value.to_string()).ok(),
    };
    let length = room.len() - unused;
    HeaderValue::from_bytes(&room[..length]).ok()
}

/// Sets a header to a text.
pub fn put(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        response.headers_mut().insert(name, value);
    }
}

/// Sets a header whose name is made up; a name that HTTP cannot carry is left out.
pub fn put_named(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::from_bytes(value.as_bytes()),
    ) {
        response.headers_mut().insert(name, value);
    }
}

/// Sets a header to a number.
pub fn put_number(response: &mut Response, name: HeaderName, number: u64) {
    response.headers_mut().insert(name, HeaderValue::from(number));
}

/// Sets a header to a timestamp in internal form.
pub fn put_time(response: &mut Response, name: HeaderName, time: Timestamp) {
    if let Some(value) = header_value(time) {
        response.headers_mut().insert(name, value);
    }
}

fn standard_page(status: StatusCode) -> &'static str {
    match status.as_u16() {
        201 | 204 => "",
        202 => "<html><h1>Accepted</h1><p>The request is accepted for processing.</p></html>",
        400 => {
            "<html><h1>Bad Request</h1><p>The server could not comply with the request since it is either \
             malformed or otherwise incorrect.</p></html>"
        }
        403 => "<html><h1>Forbidden</h1><p>Access was denied to this resource.</p></html>",
        404 => "<html><h1>Not Found</h1><p>The resource could not be found.</p></html>",
        405 => "<html><h1>Method Not Allowed</h1><p>The method is not allowed for this resource.</p></html>",
        406 => {
            "<html><h1>Not Acceptable</h1><p>The resource is not available in a format acceptable to your \
             browser.</p></html>"
        }
        408 => {
            "<html><h1>Request Timeout</h1>\
             <p>The server has waited too long for the request to be sent by the client.</p></html>"
        }
        409 => "<html><h1>Conflict</h1><p>There was a conflict when trying to complete your request.</p></html>",
        412 => "<html><h1>Precondition Failed</h1><p>A precondition for this request was not met.</p></html>",
        416 => "<html><h1>Requested Range Not Satisfiable</h1><p>The Range requested is not available.</p></html>",
        422 => "<html><h1>Unprocessable Entity</h1><p>Unable to process the contained instructions</p></html>",
        499 => "<html><h1>Client Disconnect</h1><p>The client was disconnected during request.</p></html>",
        501 => "<html><h1>Not Implemented</h1><p>The requested method is not implemented by this server.</p></html>",
        _ => {
            "<html><h1>Internal Error</h1>\
             <p>The server was unable to complete the request; its log says why.</p></html>"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_is_printed_however_long() {
        for length in [0, 1, 127, 128, 129, 1000] {
            let text = "x".repeat(length);
            assert_eq!(header_value(&text).unwrap().as_bytes(), text.as_bytes());
        }
        assert_eq!(header_value("a\nb"), None);
    }
}
