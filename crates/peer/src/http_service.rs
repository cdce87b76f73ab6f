//! What stands behind a server's connections.

use crate::body::Body;
use crate::call::Response;
use http::{Method, StatusCode};
use std::net::SocketAddr;

/// Answers HTTP requests.
#[async_trait::async_trait]
pub trait HttpService: Send + Sync {
    /// Answers one request of a client at `from`.
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response;

    /// Whether this request is answered however busy the server is; that must cost little.
    fn is_for_monitors(&self, request: &http::Request<Body>, _from: SocketAddr) -> bool {
        matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path() == "/healthcheck"
    }
}

/// A short text answer.
pub fn plain(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::whole(text.to_owned()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
    response
}
