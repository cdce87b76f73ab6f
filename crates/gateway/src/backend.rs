//! One question to one storage node: what every call carries, time-outs, and what its answer
//! says about the node.
//!
//! Always holds: every call names the transaction; requests that wait for an answer are counted (`silence.rs`); a
//! node that gives no answer, or a 5xx, is counted against it (`suppression.rs`), but not where the head of the request
//! or of its answer is longer than is read; a 507 takes it out at once, but for a write, which may only have been too
//! large for the room that is left.

use crate::nodes::Node;
use crate::route::Route;
use crate::shared::Shared;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use peer::message::header_names::{BACKEND_PREFIX, X_ONE_ITEM_FAILED};
use peer::message::{Message, RequestContext};
use peer::{AskedDevice, Body, Call, PeerError, Response, Target, Timeouts};
pub(crate) use request_pipeline::constraints::joined;
use request_pipeline::{ClientRequest, reply};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;
use vocabulary::{EntityPath, Partition};

/// Bytes of an answer to a write that are kept; those are error pages.
const MAX_REPLY: u64 = 64 * 1024;

/// A node's whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, bounded.
    pub body: Bytes,
    /// It is known to be a primary's.
    pub is_primarys: bool,
}

/// What is asked, whichever node it goes to.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) context: RequestContext,
    pub(crate) message: Message,
}

impl Question {
    /// On whose behalf, and what.
    pub(crate) fn new(context: RequestContext, message: impl Into<Message>) -> Self {
        let message = message.into();
        Self { context, message }
    }

    /// As a call for `node`.
    pub(crate) fn call(&self, route: &Route, node: &Node) -> Call {
        let message = self.message.sent_to(&node.device, route.partition);
        Call::new(self.context.clone(), message)
    }
}

/// The entity of `path`, on a device that is not chosen yet.
pub(crate) fn target(path: Arc<EntityPath>) -> Target {
    Target {
        device: Arc::default(),
        partition: Partition::default(),
        path,
    }
}

/// Whether the answer to this is made of many rows, and may take long.
fn is_listing(message: &Message) -> bool {
    match message {
        Message::ReadContainer(read) => !read.head_only,
        Message::ReadAccount(read) => !read.head_only,
        _ => false,
    }
}

impl Shared {
    /// Sends `call` to `node`. `None` when the node could not answer properly (it is then counted
    /// against it); 5xx answers count too, but are handed on.
    pub(crate) async fn ask(&self, node: &Node, call: Call, limit: Duration) -> Option<Response> {
        let asked = self.silence.asked(node);
        self.exchange(node, call, limit, Some(asked)).await
    }

    /// The same of a call whose answer rightly comes late: while it is awaited the device is not taken for silent.
    pub(crate) async fn ask_patiently(&self, node: &Node, call: Call, limit: Duration) -> Option<Response> {
        self.exchange(node, call, limit, None).await
    }

    async fn exchange(
        &self,
        node: &Node,
        call: Call,
        limit: Duration,
        asked: Option<AskedDevice<Node>>,
    ) -> Option<Response> {
        let timeouts = Timeouts {
            connect: self.options.conn_timeout,
            response: limit,
        };
        let method = call.message.method();
        let (is_listing, asked_at) = (is_listing(&call.message), self.world.clock.elapsed());
        let began = self.measures.then(|| self.world.clock.elapsed());
        let (ip, port) = node.address(&call.context);
        let span = tracing::debug_span!("sub-request", %method, device = %node.device);
        match self.peers.send(ip, port, call, timeouts).instrument(span).await {
            Ok(response) => {
                let was_silent = match asked {
                    Some(asked) => asked.answered(),
                    None => self.silence.has_answered(node),
                };
                if was_silent {
                    self.suppression.forgive(node);
                }
                self.write_clock.see(response.headers());
                self.server_clocks.see(&node.ip, response.headers());
                if let Some(began) = began {
                    self.timings
                        .note(node, self.world.clock.elapsed().saturating_sub(began));
                }
                self.judge(node, &method, &response);
                Some(response)
            }
            // A client that breaks off its uploads must not take healthy nodes out of service.
            Err(error @ (PeerError::Abandoned | PeerError::Unspeakable(_))) => {
                tracing::debug!("{method} to {}:{}/{}: {error}", node.ip, node.port, node.device);
                None
            }
            // What a storage server would answer, if it could.
            Err(PeerError::LongRequest) => Some(reply::status_for(&method, 431)),
            // Nor must one object or container that has come to have very much metadata.
            Err(error @ PeerError::TooLong) => {
                tracing::warn!("{method} to {}:{}/{}: {error}", node.ip, node.port, node.device);
                None
            }
            // Nor must listings of a container that take too long, while the node answers others.
            Err(PeerError::ResponseTimeout) if is_listing && self.silence.has_answered_since(node, asked_at) => {
                let Node { ip, port, device, .. } = node;
                tracing::warn!("{ip}:{port}/{device} takes too long for a listing, and answers other requests");
                None
            }
            Err(error) => {
                self.suppression.error(node, &format!("{method}: {error}"));
                None
            }
        }
    }

    fn judge(&self, node: &Node, method: &Method, response: &Response) {
        let status = response.status();
        match status.as_u16() {
            // No room for this write, be it a tombstone, says nothing about what the device already has, nor does no
            // room for these metadata, of which ext4 keeps 4 KiB for a file; a device that is gone says so to its next
            // reader.
            507 if !matches!(*method, Method::GET | Method::HEAD) => {
                let next = match *method {
                    Method::PUT | Method::DELETE => ": a handoff takes the write",
                    _ => "",
                };
                tracing::warn!(
                    "{}:{}/{} has no room, or is gone (507){next}",
                    node.ip,
                    node.port,
                    node.device
                );
            }
            507 => self.suppression.out_of_service(node),
            // 529 is a storage server's own rate limit: it is well, only busy.
            529 => {}
            // So is one that asks to be tried again soon: to leave it alone for a minute would make the others as busy.
            503 if response.headers().contains_key(RETRY_AFTER) => {}
            // One object or database that cannot be read must not take its device from all others.
            500 if response.headers().contains_key(X_ONE_ITEM_FAILED) => {}
            500.. => self.suppression.error(node, &format!("answered {status}")),
            _ => {}
        }
    }

    /// The answer with its body, which must come within `limit`.
    pub(crate) async fn whole(&self, node: &Node, response: Response, limit: Duration) -> Option<Reply> {
        let (head, body) = response.into_parts();
        match self.world.timeout(limit, body.collect(MAX_REPLY)).await {
            Ok(Ok(body)) => Some(Reply {
                status: head.status.as_u16(),
                headers: head.headers,
                body,
                is_primarys: false,
            }),
            Ok(Err(error)) => {
                self.suppression.error(node, &format!("its answer broke off: {error}"));
                None
            }
            Err(error) => {
                self.suppression.error(node, &format!("its answer stalled: {error}"));
                None
            }
        }
    }
}

/// The context of a message of this gateway.
pub(crate) fn own_context(trans_id: &str) -> RequestContext {
    RequestContext {
        trans_id: Some(trans_id.into()),
        user_agent: Some(HeaderValue::from_static("proxy-server martlet")),
        ..RequestContext::default()
    }
}

/// The context of messages that answer `request`; what it carries is taken out of `headers`.
pub(crate) fn context_of(request: &ClientRequest, headers: &mut HeaderMap) -> RequestContext {
    let own = own_context(&request.trans_id);
    RequestContext {
        trans_id: own.trans_id,
        user_agent: own.user_agent,
        ..RequestContext::decode(headers)
    }
}

/// What features say to storage (clients' own `X-Backend-*` never come this far).
pub(crate) fn features_headers(request: &ClientRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    copy_headers(&request.headers, &mut headers, |name| {
        name.as_str().starts_with(BACKEND_PREFIX)
    });
    headers
}

/// A header value from text that this program made; what cannot be one becomes empty.
pub(crate) fn text(value: &str) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

/// A header's text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    std::str::from_utf8(headers.get(name)?.as_bytes()).ok()
}

/// Copies the headers that `wanted` names.
pub(crate) fn copy_headers(from: &HeaderMap, to: &mut HeaderMap, wanted: impl Fn(&HeaderName) -> bool) {
    for name in from.keys().filter(|name| wanted(name)) {
        if let Some(value) = joined(from, name) {
            to.insert(name.clone(), value);
        }
    }
}

/// A reply as a response.
pub(crate) fn response_of(reply: Reply) -> Response {
    let mut response = Response::new(Body::whole(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = reply.headers;
    response
}
