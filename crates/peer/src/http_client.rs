//! Kept-alive HTTP connections to other nodes.
//!
//! A connection serves one request at a time and goes back to its node's pool once its answer has
//! been read to the end; one that broke is forgotten. A request that meets a connection which the
//! other side closed in the meantime is sent again on a new one, but only when none of it has left.
//! With `Expect: 100-continue` the body waits for the node's word ([`crate::Feed::started`] then
//! tells the feeder); a node that neither continues nor refuses runs into the response time-out.
//! A body with a footer goes as MIME (`footer.rs`), and only to a node that says it understands it.
//! Always holds: at most [`MAX_IDLE`] idle connections per node.

use crate::body::{Body, BodyError};
use crate::cluster_tls::ClusterClient;
use crate::footer;
use crate::interim::{Begin, InterimStream};
use crate::message::Message;
use crate::message::header_names::X_OBJ_METADATA_FOOTER;
use crate::names::{Mark, Names};
use crate::peers::{PeerError, Timeouts};
use crate::{Call, RawCall, Response};
use futures_util::Stream;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use world::World;

/// Idle connections kept per node.
const MAX_IDLE: usize = 64;

/// Headers of an answer. Metadata adds up: a container may carry far more than one request can set.
const MAX_HEADERS: usize = 1024;

type Pool = Arc<Mutex<HashMap<String, Vec<Sender>>>>;

/// A connection that can take a request.
struct Sender {
    requests: SendRequest<Body>,
    begins: Begin,
    names: Names,
}

/// Connections to all nodes.
pub struct HttpClient {
    world: World,
    idle: Pool,
    mark: Mark,
    /// How connections begin; plain when there is none.
    cluster: Option<ClusterClient>,
}

impl HttpClient {
    /// No connections yet.
    pub fn new(world: World) -> Self {
        Self {
            mark: Mark::new(&*world.random),
            world,
            idle: Pool::default(),
            cluster: None,
        }
    }

    /// Connects as the cluster's TLS asks for.
    pub fn secured(self, cluster: Option<ClusterClient>) -> Self {
        Self { cluster, ..self }
    }

    /// Sends `call` to `host:port`; answers with the response's head while its body streams.
    pub async fn send(&self, host: &str, port: u16, call: Call, timeouts: Timeouts) -> Result<Response, PeerError> {
        let node = format!("{host}:{port}");
        let mut request = into_request(&node, call, || self.boundary())?;
        for _ in 0..=MAX_IDLE {
            let Some(sender) = self.take_idle(&node) else { break };
            match self.exchange(&node, sender, request, timeouts).await {
                Ok(response) => return Ok(response),
                Err((_, Some(unsent))) => request = *unsent,
                Err((error, None)) => return Err(error),
            }
        }
        let sender = self.connect(host, port, timeouts).await?;
        self.exchange(&node, sender, request, timeouts)
            .await
            .map_err(|(error, _)| error)
    }

    /// A MIME boundary that no body has in it.
    fn boundary(&self) -> String {
        let random = &self.world.random;
        format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
    }

    fn take_idle(&self, node: &str) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let senders = idle.get_mut(node)?;
        std::iter::from_fn(|| senders.pop()).find(|sender| sender.requests.is_ready())
    }

    async fn connect(&self, host: &str, port: u16, timeouts: Timeouts) -> Result<Sender, PeerError> {
        let connecting = self.world.network.connect(host.to_owned(), port);
        let stream = self
            .world
            .timeout(timeouts.connect, connecting)
            .await
            .map_err(|_| PeerError::ConnectTimeout)?
            .map_err(|error| PeerError::Connect(error.to_string()))?;
        let stream = self.secure(stream, host, port, timeouts).await?;
        let (stream, begins, names) = InterimStream::of_client(stream, self.mark.clone());
        let (requests, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| PeerError::Connect(error.to_string()))?;
        // Errors of the connection reach us through the request that is on it.
        self.world.spawn_unrelated(async move { drop(connection.await) });
        Ok(Sender {
            requests,
            begins,
            names,
        })
    }

    /// The handshake has as much time as the connection had.
    async fn secure(
        &self,
        stream: Box<dyn world::Stream>,
        host: &str,
        port: u16,
        timeouts: Timeouts,
    ) -> Result<Box<dyn world::Stream>, PeerError> {
        let Some(cluster) = &self.cluster else {
            return Ok(stream);
        };
        let secured = self.world.timeout(timeouts.connect, cluster.secure(stream, host, port));
        let secured = secured.await.map_err(|_| PeerError::ConnectTimeout)?;
        secured.map_err(|error| PeerError::Connect(format!("TLS with {host}:{port}: {error}")))
    }

    /// On failure hands the request back if none of it has left.
    async fn exchange(
        &self,
        node: &str,
        mut sender: Sender,
        mut request: http::Request<Body>,
        timeouts: Timeouts,
    ) -> Result<Response, (PeerError, Option<Box<http::Request<Body>>>)> {
        sender.begins.announce();
        sender.names.announce(request.headers_mut());
        let sending = sender.requests.try_send_request(request);
        let response = match self.world.timeout(timeouts.response, sending).await {
            Err(_) => return Err((PeerError::ResponseTimeout, None)),
            Ok(Err(mut failed)) => {
                let unsent = failed.take_message().map(|mut unsent| {
                    sender.names.take_back(unsent.headers_mut());
                    Box::new(unsent)
                });
                let error = failed.into_error();
                let why = match error.is_user() {
                    true => PeerError::Abandoned,
                    false => PeerError::Broken(error.to_string()),
                };
                return Err((why, unsent));
            }
            Ok(Ok(response)) => response,
        };
        self.give_back_when_ready(node.to_owned(), sender);
        Ok(response.map(Body::wire))
    }

    fn give_back_when_ready(&self, node: String, mut sender: Sender) {
        let idle = self.idle.clone();
        self.world.spawn(async move {
            if sender.requests.ready().await.is_ok() {
                let mut idle = idle.lock();
                let senders = idle.entry(node).or_default();
                if senders.len() < MAX_IDLE {
                    senders.push(sender);
                }
            }
        });
    }
}

/// The HTTP request for `call`; `boundary` is for a body that must be wrapped.
fn into_request(node: &str, call: Call, boundary: impl FnOnce() -> String) -> Result<http::Request<Body>, PeerError> {
    let mut call = with_length(call);
    let mut uri = call.address.url_path();
    if !call.query.is_empty() {
        uri.push('?');
        uri.push_str(&call.query);
    }
    let has_footer = call.body.footer().is_some();
    let body = footer::wrap(&mut call.headers, call.body, boundary);
    let mut request = http::Request::new(body);
    *request.method_mut() = call.method;
    *request.uri_mut() = uri.parse().map_err(|_| PeerError::Unspeakable(uri))?;
    *request.headers_mut() = call.headers;
    // A whole address is for a proxy on the way: the host is the one behind it.
    let host = request.uri().authority().map_or(node, |authority| authority.as_str());
    let host = http::HeaderValue::from_str(host).map_err(|_| PeerError::Unspeakable(node.to_owned()))?;
    request.headers_mut().insert(http::header::HOST, host);
    let expects = request
        .headers()
        .get(http::header::EXPECT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    Ok(match expects {
        true => hold_until_continue(request, has_footer),
        false => request,
    })
}

/// The call with the length that its body has, where the message leaves it to the body.
fn with_length(call: Call) -> RawCall {
    let (is_put, has_none) = match &call.message {
        Message::PutObject(put) => (put.content_length.is_none() && put.transfer_encoding.is_none(), false),
        Message::PostObject(_) | Message::DeleteObject(_) => (false, true),
        _ => (false, false),
    };
    let length = call.body.length();
    let mut call = call.into_raw();
    let headers = &mut call.headers;
    match length {
        Some(length) if is_put => drop(headers.insert(CONTENT_LENGTH, length.into())),
        None if is_put => drop(headers.insert(TRANSFER_ENCODING, http::HeaderValue::from_static("chunked"))),
        _ if has_none => drop(headers.entry(CONTENT_LENGTH).or_insert(0.into())),
        _ => {}
    }
    call
}

/// Keeps the body back until the node has said `100 Continue`; one with a footer for good when the node
/// does not say with it that it reads those.
fn hold_until_continue(request: http::Request<Body>, has_footer: bool) -> http::Request<Body> {
    let (open, gate) = oneshot::channel();
    let open = Mutex::new(Some(open));
    let mut request = request.map(|body| {
        let (length, digest) = (body.length(), body.digest());
        let held = Body::stream(Held { gate: Some(gate), body }, length);
        digest.into_iter().fold(held, Body::with_digest)
    });
    hyper::ext::on_informational(&mut request, move |informational| {
        if informational.status() == http::StatusCode::CONTINUE
            && let Some(open) = open.lock().take()
            && (!has_footer || says_yes(informational.headers().get(X_OBJ_METADATA_FOOTER)))
        {
            // The body may be gone already; then there is nothing to open.
            let _ = open.send(());
        }
    });
    request
}

fn says_yes(value: Option<&http::HeaderValue>) -> bool {
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"yes"))
}

struct Held {
    gate: Option<oneshot::Receiver<()>>,
    body: Body,
}

impl Stream for Held {
    type Item = Result<bytes::Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(gate) = &mut self.gate {
            if ready!(Pin::new(gate).poll(context)).is_err() {
                // Refused with a final answer: nothing of the body is wanted.
                return Poll::Ready(Some(Err(BodyError::Abandoned)));
            }
            self.gate = None;
        }
        http_body::Body::poll_frame(Pin::new(&mut self.body), context)
            .map(|frame| frame.map(|f| f.map(|f| f.into_data().unwrap_or_default())))
    }
}
