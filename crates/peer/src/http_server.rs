//! Accepting connections: the door of storage servers and of the gateway.
//!
//! Each connection is a task; requests on it come one after the other. What is not HTTP/1.x gets
//! hyper's own 400. [`StorageDoor`] turns requests into [`Call`]s for a [`Service`].
//! Always holds: at most `max_clients` connections are open (further ones wait in the backlog); heads
//! are bounded in count and size; after [`Shutdown::begin`] no new connection is taken, requests that
//! run are finished, idle connections are closed: at once, or after [`Linger`], within which a further
//! request is answered, with the notice that it was the last one on its connection.

use crate::arrival::{Arrival, Arrived, Https};
use crate::body::Unread;
use crate::interim::InterimStream;
use crate::names::Mark;
use crate::{Address, Body, Interim, RawCall, Response, Service};
use http::{Method, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use world::{Clock, Listener, Stream, World};

/// Answers HTTP requests.
#[async_trait::async_trait]
pub trait HttpService: Send + Sync {
    /// Answers one request of a client at `from`.
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response;
}

/// Bounds on what clients may do.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Connections at a time.
    pub max_clients: usize,
    /// Headers per request.
    pub max_headers: usize,
    /// Bytes of a request's head.
    pub max_head_size: usize,
    /// How long the head of a request may take, and how long an idle connection is kept.
    pub head_timeout: Duration,
    /// How long a client may take no byte of an answer.
    pub write_timeout: Duration,
    /// What comes before the first request; as long as a head may take.
    pub arrival: Arrival,
    /// How long idle connections stay after a shutdown has begun.
    pub linger: Linger,
    /// Counts connections.
    pub open: Open,
}

/// How many connections are open; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Open(Arc<AtomicU64>);

impl Open {
    /// Now.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn one_more(&self) -> OneOpen {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneOpen(self.clone())
    }
}

/// A connection that counts as long as this lives.
struct OneOpen(Open);

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long idle connections are kept once a shutdown has begun; no time unless one is set.
///
/// A peer that closes an idle connection may do so while a request is on its way, which then fails. With time
/// to linger, a client that uses its connections hears of the end by an answer instead.
#[derive(Debug, Clone, Default)]
pub struct Linger(Arc<AtomicU64>);

impl Linger {
    /// From now on; to be set before the shutdown begins.
    pub fn set(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_clients: 1024,
            max_headers: 256,
            max_head_size: 64 * 1024,
            head_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            arrival: Arrival::default(),
            linger: Linger::default(),
            open: Open::default(),
        }
    }
}

/// Ends servers and tells when they have ended.
pub struct Shutdown {
    begin: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            begin: watch::Sender::new(false),
        }
    }
}

impl Shutdown {
    /// No new connections; running requests finish.
    pub fn begin(&self) {
        self.begin.send_replace(true);
    }

    /// Completes once every server and connection that watches has ended.
    pub async fn finished(&self) {
        self.begin.closed().await;
    }

    /// For servers, and for whatever else has to end with them.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.begin.subscribe()
    }
}

async fn begun(shutdown: &mut watch::Receiver<bool>) {
    // A sender that is gone means the process is ending, too.
    drop(shutdown.wait_for(|begun| *begun).await);
}

/// Completes once idle connections may be closed.
async fn over(shutdown: &mut watch::Receiver<bool>, linger: &Linger, clock: &dyn Clock) {
    begun(shutdown).await;
    let time = linger.time();
    if !time.is_zero() {
        clock.sleep(time).await;
    }
}

/// Accepts and serves connections until `shutdown` begins.
pub async fn serve(
    world: World,
    listener: Box<dyn Listener>,
    service: Arc<dyn HttpService>,
    options: ServerOptions,
    mut shutdown: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(options.max_clients.max(1)));
    let mark = Mark::new(&*world.random);
    loop {
        let Ok(seat) = room.clone().acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = begun(&mut shutdown) => return,
        };
        match accepted {
            Ok((stream, from)) => {
                let connection = Connection {
                    clock: world.clock.clone(),
                    service: service.clone(),
                    options: options.clone(),
                    mark: mark.clone(),
                };
                let connection = connection.receive(stream, from, shutdown.clone());
                let counted = options.open.one_more();
                world.spawn(async move {
                    connection.await;
                    drop((seat, counted));
                });
            }
            Err(error) => {
                // Out of file descriptors, or the client vanished: a moment's rest beats spinning.
                tracing::warn!("cannot accept a connection: {error}");
                world.clock.sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// One connection of a client.
struct Connection {
    clock: Arc<dyn Clock>,
    service: Arc<dyn HttpService>,
    options: ServerOptions,
    mark: Mark,
}

impl Connection {
    /// Whatever has to come first, then requests.
    async fn receive(self, stream: Box<dyn Stream>, from: SocketAddr, mut shutdown: watch::Receiver<bool>) {
        if self.options.arrival.is_plain() {
            let https = false;
            return self.serve(Arrived { stream, from, https }, shutdown).await;
        }
        let receiving = self.options.arrival.receive(stream, from);
        let received = tokio::select! {
            received = world::clock::timeout(&*self.clock, self.options.head_timeout, receiving) => received,
            () = over(&mut shutdown, &self.options.linger, &*self.clock) => return,
        };
        match received {
            Ok(Ok(arrived)) => self.serve(arrived, shutdown).await,
            Ok(Err(error)) => tracing::debug!("connection from {from} was not begun: {error}"),
            Err(late) => tracing::debug!("connection from {from} was not begun: {late}"),
        }
    }

    async fn serve(self, arrived: Arrived, mut shutdown: watch::Receiver<bool>) {
        let Arrived { stream, from, https } = arrived;
        let Self {
            clock,
            service,
            options,
            mark,
        } = self;
        let (stream, interim, names) = InterimStream::of_server(stream, mark, clock.clone(), options.write_timeout);
        let (leaving, ending_clock) = (shutdown.clone(), clock.clone());
        let handler = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let (service, interim, clock, names) = (service.clone(), interim.clone(), clock.clone(), names.clone());
            let leaving = leaving.clone();
            async move {
                let expects = request.headers().contains_key(http::header::EXPECT);
                let stays = asks_to_stay(request.headers());
                let unread = Unread::default();
                let mut request = request.map(|incoming| Body::wire_of_request(incoming, unread.clone()));
                request.extensions_mut().insert(interim);
                if https {
                    request.extensions_mut().insert(Https);
                }
                let mut response = service.serve(request, from).await;
                if !unread.finish(expects, &*clock).await || *leaving.borrow() {
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
                    true => names.announce_empty(response.headers_mut()),
                    false => names.announce(response.headers_mut()),
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.head_timeout)
            .max_headers(options.max_headers)
            .max_buf_size(options.max_head_size.max(8192))
            .title_case_headers(true)
            .half_close(false)
            .serve_connection(TokioIo::new(stream), handler);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = over(&mut shutdown, &options.linger, &*ending_clock) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            // Clients vanish all the time; what a request lost by it is logged where the request is.
            if error.is_parse() || error.is_parse_too_large() {
                // hyper has answered by itself; no service knows of it.
                tracing::info!("what {from} sent is no request and was refused: {error}");
            } else {
                tracing::debug!("connection from {from} ended: {error}");
            }
        }
    }
}

/// Whether the client said that it would like its connection kept; OpenStack's servers then say so, too.
fn asks_to_stay(headers: &http::HeaderMap) -> bool {
    let connection = headers.get(http::header::CONNECTION);
    connection.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}

/// A storage service behind HTTP.
pub struct StorageDoor(pub Arc<dyn Service>);

#[async_trait::async_trait]
impl HttpService for StorageDoor {
    async fn serve(&self, request: http::Request<Body>, _from: SocketAddr) -> Response {
        let (mut head, body) = request.into_parts();
        let address = match Address::parse(&head.method, head.uri.path()) {
            Ok(address) => address,
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        if let Address::Plain(path) = &address
            && path == "/healthcheck"
            && matches!(head.method, Method::GET | Method::HEAD)
        {
            return plain(StatusCode::OK, "OK");
        }
        let interim = head.extensions.remove::<Interim>();
        let query = head.uri.query().unwrap_or_default().to_owned();
        let call = RawCall {
            method: head.method,
            address,
            query,
            headers: head.headers,
            body,
            interim,
        };
        self.0.call(call.into()).await
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
