//! The requests of one connection of a server: each gets a seat, an answer, and an end.
//!
//! Always holds: the [`Activity`] of the connection knows of a request from its head to the last byte of its answer;
//! the connection goes on only when the next request can be found on it.

use crate::activity::Activity;
use crate::answer::{Answer, RequestEnd};
use crate::arrival::Https;
use crate::body::{Body, Unread};
use crate::busy::busy;
use crate::call::Response;
use crate::cluster_tls::{CredentialsAge, RoleGuard};
use crate::connections::Connections;
use crate::http_service::{HttpService, plain};
use crate::interim::Interim;
use crate::names::Names;
use crate::refusals::ServerRefusal;
use http::StatusCode;
use hyper::ext::ReasonPhrase;
use std::net::SocketAddr;
use std::sync::Arc;
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
        let mut end = RequestEnd::of(&self.connections, &self.activity);
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
        let date = response.headers_mut().entry(http::header::DATE);
        date.or_insert_with(|| self.connections.date());
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
        response.map(|body| Answer::new(body, end))
    }

    /// With a seat, where one is needed.
    async fn serve(&self, mut request: http::Request<Body>, end: &mut RequestEnd) -> Response {
        if let Some(guard) = self.guard
            && !guard.allows(request.method(), request.uri().path())
        {
            return self.forbid(guard, &request);
        }
        if !self.service.is_for_monitors(&request, self.from) {
            if let Some(place) = self.connections.account_place() {
                end.counts_in(place.clone());
                request.extensions_mut().insert(place);
            }
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

/// Whether the client said that it would like its connection kept; OpenStack's servers then say so, too.
fn asks_to_stay(headers: &http::HeaderMap) -> bool {
    let connection = headers.get(http::header::CONNECTION);
    connection.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}
