//! [`Refusal`]: every answer that is not success, and what it looks like on the wire.
//!
//! The texts are OpenStack's, compared by `tests/as_openstack.rs`. This is the one place where
//! engine errors become status codes.

use crate::devices::Trouble;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use object_engine::EngineError;
use peer::{Body, Response};
use vocabulary::{FaultKind, Timestamp};

pub(crate) const X_BACKEND_TIMESTAMP: HeaderName = HeaderName::from_static("x-backend-timestamp");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=UTF-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// Why a request is not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A status with a plain text of our own.
    Text(StatusCode, String),
    /// A status with a short text that OpenStack labels as HTML.
    Html(StatusCode, &'static str),
    /// A status with its standard page.
    Page(StatusCode),
    /// The standard page, and the timestamp that decided.
    Decided(StatusCode, Option<Timestamp>),
    /// Nothing there, but `If-Match: *` insists: no body.
    NothingMatches(Option<Timestamp>),
    /// The device of this name cannot serve.
    Device(String),
}

impl Refusal {
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::Text(StatusCode::BAD_REQUEST, text.into())
    }

    /// 404, with the tombstone's timestamp when there is one.
    pub(crate) fn not_found(deleted_at: Option<Timestamp>) -> Self {
        Self::Decided(StatusCode::NOT_FOUND, deleted_at)
    }

    /// 409: something newer is here.
    pub(crate) fn conflict(newest: Timestamp) -> Self {
        Self::Decided(StatusCode::CONFLICT, Some(newest))
    }

    /// 499, as nginx and Swift say it.
    pub(crate) fn client_disconnect() -> Self {
        Self::Page(StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST))
    }

    /// What went wrong on `device`, as an answer.
    pub(crate) fn from_trouble(trouble: Trouble, device: &str) -> Self {
        match trouble {
            Trouble::Busy => Self::Text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("device {device} has more requests than it can take; try another"),
            ),
            Trouble::Panicked => Self::Page(StatusCode::INTERNAL_SERVER_ERROR),
            Trouble::Out => Self::Device(device.to_owned()),
            Trouble::Engine(error) => Self::from_engine(&error, device),
        }
    }

    pub(crate) fn from_engine(error: &EngineError, device: &str) -> Self {
        match error.kind() {
            FaultKind::Absent => Self::not_found(error.deleted_at()),
            FaultKind::NoSpace | FaultKind::Device => Self::Device(device.to_owned()),
            // Two names with one hash; Swift forbids the second.
            FaultKind::Data if matches!(error, EngineError::Collision { .. }) => Self::Page(StatusCode::FORBIDDEN),
            FaultKind::Data => Self::not_found(None),
            _ => Self::Text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }

    pub(crate) fn into_response(self) -> Response {
        match self {
            Self::Text(status, text) => answer(status, TEXT, text),
            Self::Html(status, text) => answer(status, HTML, text),
            Self::Page(status) => page(status),
            Self::Decided(status, timestamp) => dated(page(status), timestamp),
            Self::NothingMatches(timestamp) => dated(empty(StatusCode::PRECONDITION_FAILED), timestamp),
            Self::Device(name) => answer(
                StatusCode::INSUFFICIENT_STORAGE,
                HTML,
                format!(
                    "<html><h1>Insufficient Storage</h1>\
                     <p>There was not enough space to save the resource. Drive: {name}</p></html>"
                ),
            ),
        }
    }
}

fn dated(mut response: Response, timestamp: Option<Timestamp>) -> Response {
    if let Some(timestamp) = timestamp {
        put_header(&mut response, X_BACKEND_TIMESTAMP, &timestamp.internal());
    }
    response
}

/// A status with its standard page.
pub(crate) fn page(status: StatusCode) -> Response {
    answer(status, HTML, standard_page(status))
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HTML);
    if status != StatusCode::NO_CONTENT {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    response
}

/// Sets a header whose value is text of our own making; values that HTTP cannot carry are left out.
pub(crate) fn put_header(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn answer(status: StatusCode, content_type: HeaderValue, body: impl Into<bytes::Bytes>) -> Response {
    let body = Body::whole(body.into());
    let length = body.length().unwrap_or_default();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn standard_page(status: StatusCode) -> &'static str {
    match status.as_u16() {
        202 => "<html><h1>Accepted</h1><p>The request is accepted for processing.</p></html>",
        403 => "<html><h1>Forbidden</h1><p>Access was denied to this resource.</p></html>",
        404 => "<html><h1>Not Found</h1><p>The resource could not be found.</p></html>",
        405 => "<html><h1>Method Not Allowed</h1><p>The method is not allowed for this resource.</p></html>",
        408 => {
            "<html><h1>Request Timeout</h1>\
             <p>The server has waited too long for the request to be sent by the client.</p></html>"
        }
        409 => "<html><h1>Conflict</h1><p>There was a conflict when trying to complete your request.</p></html>",
        412 => "<html><h1>Precondition Failed</h1><p>A precondition for this request was not met.</p></html>",
        416 => "<html><h1>Requested Range Not Satisfiable</h1><p>The Range requested is not available.</p></html>",
        422 => "<html><h1>Unprocessable Entity</h1><p>Unable to process the contained instructions</p></html>",
        499 => "<html><h1>Client Disconnect</h1><p>The client was disconnected during request.</p></html>",
        _ => {
            "<html><h1>Internal Error</h1>\
             <p>The server was unable to complete the request; its log says why.</p></html>"
        }
    }
}
