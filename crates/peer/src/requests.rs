//! The requests of one connection of a server: each gets a seat, an answer, and an end.
//!
//! Always holds: the [`Activity`] of the connection knows of a request from its head to the last byte of its answer;
//! the connection goes on only when the next request can be found on it.

use crate::activity::Activity;
use crate::arrival::Https;
use crate::body::{Body, Unread};
use crate::body_error::BodyError;
use crate::busy::busy;
use crate::call::Response;
use crate::cluster_tls::{CredentialsAge, RoleGuard};
use crate::connections::Connections;
use crate::http_service::{HttpService, plain};
use crate::interim::Interim;
use crate::names::Names;
use crate::refusals::ServerRefusal;
use crate::shares::AccountShare;
use bytes::Bytes;
use http::StatusCode;
use hyper::ext::ReasonPhrase;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use world::Clock;

/// The requests of one connection.
pub(crate) struct ConnectionRequests {
    pub(crate) service: Arc<dyn HttpService>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) interim: Interim,
    pub(crate) names: Names,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) leaving: watch::Receiver<bool>,
    pub(crate) from: SocketAddr,
    pub(crate) https: bool,
    /// What may be asked; everything when there is none.
    pub(crate) guard: Option<RoleGuard>,
    /// Of a connection within the cluster.
    pub(crate) age: Option<CredentialsAge>,
}

impl ConnectionRequests {
    pub(crate) async fn answer(&self, request: http::Request<hyper::body::Incoming>) -> http::Response<Answer> {
        self.activity.begin();
        let mut end = RequestEnd {
            activity: self.activity.clone(),
            _share: None,
        };
        let expects = request.headers().contains_key(http::header::EXPECT);
        // hyper sends no `100 Continue` for a body without bytes. Clients on botocore (the `aws` command, for an empty
        // file) take the final answer for a refusal then, and can read no other one from this connection.
        let is_uncontinued = expects && http_body::Body::is_end_stream(request.body());
        let stays = asks_to_stay(request.headers());
        let unread = Unread::default();
        let mut request =
            request.map(|incoming| Body::wire_of_request(incoming, unread.clone(), self.activity.clone()));
        request.extensions_mut().insert(self.interim.clone());
        if self.https {
            request.extensions_mut().insert(Https);
        }
        let mut response = self.serve(request, &mut end).await;
        let is_read = unread.finish(expects, &*self.clock).await;
        let is_last = *self.leaving.borrow() || self.age.as_ref().is_some_and(CredentialsAge::is_over);
        if !is_read || is_last || is_uncontinued {
            let close = http::HeaderValue::from_static("close");
            response.headers_mut().insert(http::header::CONNECTION, close);
        } else if stays {
            let keep = http::HeaderValue::from_static("keep-alive");
            response.headers_mut().entry(http::header::CONNECTION).or_insert(keep);
        }
        // hyper leaves the length out of a 204, whatever the service says.
        let says_empty = response.status() == StatusCode::NO_CONTENT
            && response.headers_mut().remove(http::header::CONTENT_LENGTH).is_some();
        match says_empty {
            true => self.names.announce_empty(response.headers_mut()),
            false => self.names.announce(response.headers_mut()),
        }
        if let Some(reason) = reason_of(response.status()) {
            response.extensions_mut().insert(reason);
        }
        response.map(|body| Answer { body, end })
    }

    /// With a seat, where one is needed.
    async fn serve(&self, request: http::Request<Body>, end: &mut RequestEnd) -> Response {
        if let Some(guard) = self.guard
            && !guard.allows(request.method(), request.uri().path())
        {
            return self.forbid(guard, &request);
        }
        if !self.service.is_for_monitors(&request, self.from) {
            let Ok(share) = self.connections.share(request.uri().path()) else {
                return busy();
            };
            end._share = share;
            let Some(seat) = self.connections.seat(self.from.ip()).await else {
                return busy();
            };
            self.activity.sit_down(seat);
        }
        let response = self.service.serve(request, self.from).await;
        self.activity.has_begun();
        response
    }
}

impl ConnectionRequests {
    fn forbid(&self, guard: RoleGuard, request: &http::Request<Body>) -> Response {
        let RoleGuard { roles, server } = guard;
        let server = format!("{server:?}").to_lowercase();
        let text = format!(
            "the role {roles} may not send {} to an {server} server",
            request.method()
        );
        self.connections
            .refuse(ServerRefusal::Forbidden, format!("{}: {text}", self.from));
        plain(StatusCode::FORBIDDEN, &text)
    }
}

/// The reason phrase of a status that is OpenStack Swift's own: for others hyper writes that of RFC 9110.
fn reason_of(status: StatusCode) -> Option<ReasonPhrase> {
    let words: &'static [u8] = match status.as_u16() {
        498 => b"Rate Limited",
        499 => b"Client Disconnect",
        _ => return None,
    };
    Some(ReasonPhrase::from_static(words))
}

/// Ends a request when it is dropped.
struct RequestEnd {
    activity: Arc<Activity>,
    _share: Option<AccountShare>,
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        self.activity.finish();
    }
}

/// The body of an answer; when it has been written, the request is over. A chunk is taken from the service only when
/// the client has taken the one before: a slow client holds one.
pub(crate) struct Answer {
    body: Body,
    end: RequestEnd,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        if self.end.activity.has_bytes() {
            // hyper asks again when what it has is written, and is woken for that.
            return Poll::Pending;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Whether the client said that it would like its connection kept; OpenStack's servers then say so, too.
fn asks_to_stay(headers: &http::HeaderMap) -> bool {
    let connection = headers.get(http::header::CONNECTION);
    connection.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}
