//! The last resort: every answer has a transaction id, a panic is a 500, a body is as long as it says.
//!
//! Stands first, and opens the span of the request, which gives every line that is logged meanwhile its transaction id.
//! A client may extend the id with `X-Trans-Id-Extra`.
//! Always holds: below this feature nothing can leave a client without an answer, or with a body cut
//! short that looks whole.

use futures_util::FutureExt;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, StatusCode};
use request_pipeline::{
    ClientRequest, Feature, Next, Response, reply,
    watched::{declared_length, watch},
};
use std::panic::AssertUnwindSafe;
use tracing::Instrument;
use vocabulary::names::quote;

/// Swift's `catch_errors`.
pub struct CatchErrors;

/// Bytes that a client may add to a transaction id.
const EXTRA_LENGTH: usize = 32;

#[async_trait::async_trait]
impl Feature for CatchErrors {
    fn name(&self) -> &'static str {
        "catch_errors"
    }

    async fn handle(&self, mut request: ClientRequest, next: Next) -> Response {
        extend_transaction_id(&mut request);
        let (trans_id, method) = (request.trans_id.clone(), request.method.clone());
        // At the level of errors, so that every line that is logged meanwhile carries the transaction id.
        let span = tracing::error_span!("request", txn = &*trans_id);
        let answer = AssertUnwindSafe(next.run(request))
            .catch_unwind()
            .instrument(span.clone())
            .await;
        let response = answer.unwrap_or_else(|panic| {
            span.in_scope(|| tracing::error!("a request ended in a panic: {}", reason(&*panic)));
            reply::plain(500, "An error occurred")
        });
        stamp(span.in_scope(|| honest(response, &method)), &trans_id)
    }
}

fn extend_transaction_id(request: &mut ClientRequest) {
    if let Some(extra) = request.headers.get("x-trans-id-extra") {
        let shown: String = String::from_utf8_lossy(extra.as_bytes())
            .chars()
            .take(EXTRA_LENGTH)
            .collect();
        request.trans_id = format!("{}-{}", request.trans_id, quote(&shown)).into();
    }
}

fn reason(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

/// The response with a body that ends in an error if it is not as long as declared.
fn honest(mut response: Response, method: &Method) -> Response {
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        // HTTP would have it left out; OpenStack's proxy says it, and its clients look for it.
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if *method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return response;
    }
    let length = declared_length(response.headers());
    if let (Some(length), Some(body)) = (length, response.body().as_whole())
        && body.len() as u64 != length
    {
        tracing::error!("a body of {} bytes was declared to have {length}", body.len());
    }
    response.map(|body| watch(body, length, ()))
}

fn stamp(mut response: Response, trans_id: &str) -> Response {
    // Transaction ids are hexadecimal or percent-encoded; one that is not goes unsaid.
    if let Ok(value) = HeaderValue::from_str(trans_id) {
        response.headers_mut().insert("x-trans-id", value.clone());
        response.headers_mut().insert("x-openstack-request-id", value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, ask, request};
    use bytes::Bytes;
    use peer::{Body, BodyError};

    #[tokio::test]
    async fn panics_become_answers() {
        let response = ask(CatchErrors, request("GET", "/v1/a"), Answer::new(|_| panic!("boom"))).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()["content-type"], "text/plain");
        assert_eq!(response.headers()["x-trans-id"], "tx1");
        assert_eq!(response.body().as_whole().unwrap(), "An error occurred");
    }

    #[tokio::test]
    async fn ids_are_extended_and_stamped() {
        let mut asked = request("GET", "/v1/a");
        asked.headers.insert(
            "x-trans-id-extra",
            HeaderValue::from_static("a\"b/c 0123456789012345678901234567890"),
        );
        let response = ask(CatchErrors, asked, Answer::new(|r| reply::plain(200, &*r.trans_id))).await;
        let id = "tx1-a%22b/c%2001234567890123456789012345";
        assert_eq!(response.headers()["x-openstack-request-id"], id);
        assert_eq!(response.body().as_whole().unwrap(), id);
    }

    #[tokio::test]
    async fn short_bodies_are_errors_except_to_head() {
        let short = || {
            Answer::new(|_| {
                let mut response = reply::plain(200, "abc");
                response
                    .headers_mut()
                    .insert("content-length", HeaderValue::from_static("10"));
                response
            })
        };
        let mut response = ask(CatchErrors, request("GET", "/v1/a/c/o"), short()).await;
        assert_eq!(response.body_mut().next().await, Some(Ok(Bytes::from_static(b"abc"))));
        assert_eq!(response.body_mut().next().await, Some(Err(BodyError::Abandoned)));
        let response = ask(CatchErrors, request("HEAD", "/v1/a/c/o"), short()).await;
        assert_eq!(response.headers()["content-length"], "10");
        let response = ask(
            CatchErrors,
            request("GET", "/x"),
            Answer::new(|_| Response::new(Body::whole("a"))),
        )
        .await;
        assert_eq!(response.body().as_whole().unwrap(), "a");
    }
}
