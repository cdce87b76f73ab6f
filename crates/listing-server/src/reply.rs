//! Answers: statuses with OpenStack's pages, refusals, and engine errors as statuses.
//!
//! The texts are OpenStack's, compared by `tests/as_openstack.rs`. This is the one place where
//! engine errors become status codes.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use listing_engine::Error;
use peer::{Body, Response};
use vocabulary::{FaultKind, Timestamp};
use world::WorkerError;

const HTML: &str = "text/html; charset=UTF-8";

/// Why a request is not done.
pub(crate) enum Refusal {
    /// A status with a text of our own.
    Text(StatusCode, String),
    /// The same, which OpenStack labels as HTML.
    Html(StatusCode, String),
    /// A status with its standard page.
    Page(StatusCode),
    /// The device of this name cannot serve.
    Device(String),
    /// A whole answer.
    Whole(Box<Response>),
}

impl Refusal {
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::Text(StatusCode::BAD_REQUEST, text.into())
    }

    /// 400 with a text that OpenStack labels as HTML.
    pub(crate) fn labelled_bad_request(text: impl Into<String>) -> Self {
        Self::Html(StatusCode::BAD_REQUEST, text.into())
    }

    pub(crate) fn not_found() -> Self {
        Self::Page(StatusCode::NOT_FOUND)
    }

    pub(crate) fn conflict() -> Self {
        Self::Page(StatusCode::CONFLICT)
    }

    /// What went wrong with a database on `device`.
    pub(crate) fn from_engine(error: &Error, device: &str) -> Self {
        match error.kind() {
            FaultKind::Absent | FaultKind::Conflict => return Self::not_found(),
            FaultKind::NoSpace | FaultKind::Device => {
                tracing::error!("device {device}: {error}");
                return Self::Device(device.to_owned());
            }
            FaultKind::Contention => tracing::warn!("{error}"),
            _ => tracing::error!("{error}"),
        }
        let status = match error.kind() {
            FaultKind::Contention => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::Text(status, error.to_string())
    }

    pub(crate) fn from_workers(error: WorkerError, device: &str) -> Self {
        match error {
            WorkerError::Busy => Self::Text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("device {device} has more requests than it can take; try another"),
            ),
            WorkerError::Panicked => Self::Page(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// What it will be answered with.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Text(status, _) | Self::Html(status, _) | Self::Page(status) => *status,
            Self::Whole(response) => response.status(),
            Self::Device(_) => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    pub(crate) fn into_response(self) -> Response {
        match self {
            Self::Text(status, text) => answer(status, "text/plain", text),
            Self::Html(status, text) => answer(status, HTML, text),
            Self::Page(status) => page(status),
            Self::Whole(response) => *response,
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

/// A status with its standard page.
pub(crate) fn page(status: StatusCode) -> Response {
    answer(status, HTML, standard_page(status))
}

/// A status with these bytes.
pub(crate) fn answer(status: StatusCode, content_type: &str, body: impl Into<bytes::Bytes>) -> Response {
    let body = Body::whole(body.into());
    let length = body.length().unwrap_or_default();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    put(&mut response, "content-type", content_type);
    if status != StatusCode::NO_CONTENT {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Takes the body away, as HEAD and 204 want it; the length stays.
pub(crate) fn without_body(response: Response) -> Response {
    let (parts, _) = response.into_parts();
    Response::from_parts(parts, Body::empty())
}

/// Sets a header; text that HTTP cannot carry is left out.
pub(crate) fn put(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

/// Sets a header whose name is made up; names that HTTP cannot carry are left out.
pub(crate) fn put_named(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::from_bytes(value.as_bytes()),
    ) {
        response.headers_mut().insert(name, value);
    }
}

/// Sets a header to a number.
pub(crate) fn put_number(response: &mut Response, name: &'static str, number: u64) {
    response
        .headers_mut()
        .insert(HeaderName::from_static(name), HeaderValue::from(number));
}

/// Sets a header to a timestamp in internal form.
pub(crate) fn put_time(response: &mut Response, name: &'static str, time: Timestamp) {
    put(response, name, &time.internal());
}

/// Sets the content type.
pub(crate) fn put_content_type(response: &mut Response, content_type: &str) {
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
}

fn standard_page(status: StatusCode) -> &'static str {
    match status.as_u16() {
        202 => "<html><h1>Accepted</h1><p>The request is accepted for processing.</p></html>",
        201 | 204 => "",
        400 => {
            "<html><h1>Bad Request</h1><p>The server could not comply with the request since it is either \
             malformed or otherwise incorrect.</p></html>"
        }
        404 => "<html><h1>Not Found</h1><p>The resource could not be found.</p></html>",
        405 => "<html><h1>Method Not Allowed</h1><p>The method is not allowed for this resource.</p></html>",
        406 => {
            "<html><h1>Not Acceptable</h1><p>The resource is not available in a format acceptable to your \
             browser.</p></html>"
        }
        409 => "<html><h1>Conflict</h1><p>There was a conflict when trying to complete your request.</p></html>",
        501 => "<html><h1>Not Implemented</h1><p>The requested method is not implemented by this server.</p></html>",
        _ => {
            "<html><h1>Internal Error</h1>\
             <p>The server was unable to complete the request; its log says why.</p></html>"
        }
    }
}
