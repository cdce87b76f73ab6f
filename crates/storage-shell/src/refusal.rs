//! [`Refusal`]: every answer that is not success, and what it looks like on the wire.
//!
//! The texts are OpenStack's, compared by `tests/as_openstack.rs` of both servers. The engines' errors become refusals
//! in the servers, those of devices and their workers here.

use crate::devices::DeviceFault;
use crate::reply::{HTML, empty, page, put_time, whole};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use peer::message::header_names::{X_BACKEND_TIMESTAMP, X_ONE_ITEM_FAILED};
use peer::{BodyError, Response};
use std::borrow::Cow;
use vocabulary::{FaultKind, Timestamp};

const TEXT: &str = "text/plain";

/// Why a request is not done.
#[derive(Debug)]
pub enum Refusal {
    /// A status with a plain text of our own.
    Text(StatusCode, String),
    /// A status with a short text that OpenStack labels as HTML.
    Html(StatusCode, Cow<'static, str>),
    /// A status with its standard page.
    Page(StatusCode),
    /// The standard page, and the timestamp that decided.
    Decided(StatusCode, Option<Timestamp>),
    /// 412 without a body: nothing is there, but `If-Match: *` insists.
    NothingMatches(Option<Timestamp>),
    /// 507: the device of this name cannot serve.
    Device(String),
    /// A whole response.
    Whole(Box<Response>),
}

impl Refusal {
    /// 400 with a plain text.
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::Text(StatusCode::BAD_REQUEST, text.into())
    }

    /// 400 with a text that OpenStack labels as HTML.
    pub fn labelled_bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Html(StatusCode::BAD_REQUEST, text.into())
    }

    /// 404, with the timestamp of a tombstone when there is one.
    pub fn not_found(deleted_at: Option<Timestamp>) -> Self {
        Self::Decided(StatusCode::NOT_FOUND, deleted_at)
    }

    /// 409, with the timestamp of what is newer here.
    pub fn conflict(newest: Option<Timestamp>) -> Self {
        Self::Decided(StatusCode::CONFLICT, newest)
    }

    /// 408 for a body that came too slowly, 400 for one that cannot be read for another reason.
    pub fn unreadable(error: &BodyError) -> Self {
        let status = match error {
            BodyError::TimedOut => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::Text(status, error.to_string())
    }

    /// 503 with `Retry-After`, by which gateways know a device that cannot be used just now from a bad one.
    pub fn busy(device: &str, why: &str) -> Self {
        let text = format!("device {device}: {why}; try another");
        let mut response = whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, text);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        Self::Whole(Box::new(response))
    }

    /// 500 about one object or database of a device that is well, which gateways go on asking for others.
    pub fn one_item(why: impl Into<String>) -> Self {
        let mut response = whole(StatusCode::INTERNAL_SERVER_ERROR, TEXT, why.into());
        response
            .headers_mut()
            .insert(X_ONE_ITEM_FAILED, HeaderValue::from_static("true"));
        Self::Whole(Box::new(response))
    }

    /// 499, the number of nginx and of Swift for a client that went away.
    pub fn client_disconnect() -> Self {
        Self::Page(StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST))
    }

    /// 500 without a reason; the log has it.
    pub fn internal() -> Self {
        Self::Page(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Text(status, _) | Self::Html(status, _) | Self::Page(status) | Self::Decided(status, _) => *status,
            Self::NothingMatches(_) => StatusCode::PRECONDITION_FAILED,
            Self::Device(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Whole(response) => response.status(),
        }
    }

    /// The response.
    pub fn into_response(self) -> Response {
        match self {
            Self::Text(status, text) => whole(status, TEXT, text),
            Self::Html(status, Cow::Borrowed(text)) => whole(status, HTML, text),
            Self::Html(status, Cow::Owned(text)) => whole(status, HTML, text),
            Self::Page(status) => page(status),
            Self::Decided(status, timestamp) => dated(page(status), timestamp),
            Self::NothingMatches(timestamp) => dated(empty(StatusCode::PRECONDITION_FAILED), timestamp),
            Self::Device(name) => whole(
                StatusCode::INSUFFICIENT_STORAGE,
                HTML,
                format!(
                    "<html><h1>Insufficient Storage</h1>\
                     <p>There was not enough space to save the resource. Drive: {name}</p></html>"
                ),
            ),
            Self::Whole(response) => *response,
        }
    }
}

impl From<DeviceFault> for Refusal {
    fn from(DeviceFault { device, fault }: DeviceFault) -> Self {
        match fault.kind {
            FaultKind::Contention => Self::busy(&device, &fault.what),
            FaultKind::Caller => Self::internal(),
            _ => Self::Device(device),
        }
    }
}

fn dated(mut response: Response, timestamp: Option<Timestamp>) -> Response {
    if let Some(timestamp) = timestamp {
        put_time(&mut response, X_BACKEND_TIMESTAMP, timestamp);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocabulary::Fault;

    #[test]
    fn faults_of_devices_are_503_500_and_507() {
        let status = |fault: Fault| {
            Refusal::from(DeviceFault::new("sda", fault))
                .into_response()
                .status()
                .as_u16()
        };
        assert_eq!(status(Fault::new(FaultKind::Contention, "full")), 503);
        let busy = Refusal::from(DeviceFault::new("sda", Fault::new(FaultKind::Contention, "full")));
        assert!(busy.into_response().headers().contains_key(RETRY_AFTER));
        assert_eq!(status(Fault::caller("panicked")), 500);
        assert_eq!(status(Fault::device("gone")), 507);
        assert_eq!(status(Fault::new(FaultKind::NoSpace, "full")), 507);
    }

    #[test]
    fn a_refusal_knows_the_status_of_its_response() {
        for refusal in [
            Refusal::bad_request("why"),
            Refusal::labelled_bad_request("why"),
            Refusal::not_found(None),
            Refusal::NothingMatches(None),
            Refusal::client_disconnect(),
            Refusal::Device("sda".into()),
        ] {
            let status = refusal.status();
            assert_eq!(refusal.into_response().status(), status);
        }
    }
}
