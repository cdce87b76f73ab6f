//! Accepting connections: the door of storage servers and of the gateway.
//!
//! Each connection is a task; requests on it come one after the other. What is not HTTP/1.x gets
//! hyper's own 400. [`StorageDoor`] turns requests into [`Call`]s for a [`Service`]. Which connections there may be and
//! which have to end: `connections.rs`.
//! Always holds: at most `max_connections` connections are open, and at most `max_clients` requests are worked at;
//! further ones are refused with 503, after a wait; what monitors ask ([`HttpService::is_for_monitors`]) waits for
//! nothing; heads are bounded in count, size and time; after [`Shutdown::begin`] no new connection is taken, requests
//! that run are finished, idle connections are closed: at once, or after [`Linger`], within which a further
//! request is answered, with the notice that it was the last one on its connection.

use crate::arrival::{Arrival, ArrivalError, Arrived};
use crate::busy::{Refusing, turn_away};
use crate::connections::{Admitted, ConnectionLimits, Connections};
pub use crate::http_service::{HttpService, plain};
use crate::interim::InterimStream;
use crate::names::Mark;
use crate::refusals::ServerRefusals;
use crate::requests::ConnectionRequests;
use crate::watch::WatchLimits;
use crate::{Address, Body, Interim, RawCall, Response, Service};
use http::{Method, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use vocabulary::IpNetworks;
use world::{Clock, Listener, Stream, World};

/// Bounds on what clients may do.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// ConnectionRequests at a time.
    pub max_clients: usize,
    /// Connections at a time.
    pub max_connections: usize,
    /// Connections from one address at a time; 0 for any number.
    pub max_connections_per_address: usize,
    /// Addresses that may have any number of them.
    pub max_connections_spared: IpNetworks,
    /// Requests of one account at a time; 0 for any number.
    pub max_requests_per_account: usize,
    /// Requests that only wait for their clients and have given their place to others; beyond that slow ones are ended.
    pub max_slow_requests: usize,
    /// Bytes of long answers that wait in memory for their clients, together.
    pub max_held: usize,
    /// How long a request may wait for others to end.
    pub seat_timeout: Duration,
    /// Headers per request.
    pub max_headers: usize,
    /// Bytes of a request's head.
    pub max_head_size: usize,
    /// How long the head of a request may take from its first byte on.
    pub head_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Bytes a second that a client has to send or take while it is waited for, on average over a little more than
    /// `write_timeout`; 0 for any.
    pub min_transfer_rate: u64,
    /// How long a client may take no byte of an answer.
    pub write_timeout: Duration,
    /// What comes before the first request; as long as a head may take.
    pub arrival: Arrival,
    /// How long idle connections stay after a shutdown has begun.
    pub linger: Linger,
    /// Counts connections.
    pub open: Open,
    /// Counts what is refused.
    pub refusals: ServerRefusals,
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

impl ServerOptions {
    fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            seats: self.max_clients,
            parked: self.max_slow_requests,
            connections: self.max_connections.max(1),
            per_address: self.max_connections_per_address,
            spared: self.max_connections_spared.clone(),
            per_account: self.max_requests_per_account,
            patience: self.seat_timeout,
            held: self.max_held,
            watch: WatchLimits {
                head: self.head_timeout,
                idle: self.idle_timeout,
                min_rate: self.min_transfer_rate,
                // A client that sends or takes nothing is the service's to end, or the connection's.
                window: self.write_timeout + self.write_timeout / 12,
            },
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_clients: 1024,
            max_connections: 8192,
            max_connections_per_address: 0,
            max_connections_spared: IpNetworks::default(),
            max_requests_per_account: 0,
            max_slow_requests: 4096,
            max_held: 512 << 20,
            seat_timeout: Duration::from_secs(10),
            max_headers: 256,
            max_head_size: 64 * 1024,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            min_transfer_rate: 0,
            write_timeout: Duration::from_secs(60),
            arrival: Arrival::default(),
            linger: Linger::default(),
            open: Open::default(),
            refusals: ServerRefusals::default(),
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
    let connections = Connections::start(&world, options.limits(), options.refusals.clone());
    let mark = Mark::new(&*world.random);
    let mut refusing = Refusing::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = begun(&mut shutdown) => return,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, or the client vanished: a moment's rest beats spinning.
                tracing::warn!("cannot accept a connection: {error}");
                connections.make_room();
                world.clock.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(admitted) = connections.admit() else {
            refusing.refuse(&world, stream, &options.arrival);
            continue;
        };
        let connection = Connection {
            clock: world.clock.clone(),
            service: service.clone(),
            options: options.clone(),
            mark: mark.clone(),
            admitted,
            counted: options.open.one_more(),
        };
        // By itself: a future inside another one takes twice its memory.
        world.spawn(connection.receive(stream, from, shutdown.clone()));
    }
}

/// One connection of a client.
struct Connection {
    clock: Arc<dyn Clock>,
    service: Arc<dyn HttpService>,
    options: ServerOptions,
    mark: Mark,
    admitted: Admitted,
    counted: OneOpen,
}

impl Connection {
    /// Whatever has to come first, then requests.
    async fn receive(mut self, stream: Box<dyn Stream>, from: SocketAddr, mut shutdown: watch::Receiver<bool>) {
        // A handshake counts for its address, too. Over TLS there is no page to turn it away with yet.
        let arrival = &self.options.arrival;
        if !arrival.is_plain() && !arrival.require_proxy_protocol && !self.admitted.comes_from(from.ip()) {
            return;
        }
        if arrival.is_plain() {
            let arrived = Arrived {
                stream,
                from,
                https: false,
                guard: None,
                age: None,
            };
            return self.begin(arrived, shutdown).await;
        }
        let receiving = self.options.arrival.receive(stream, from);
        let activity = self.admitted.activity().clone();
        let received = tokio::select! {
            received = world::clock::timeout(&*self.clock, self.options.head_timeout, receiving) => received,
            () = activity.ended() => return,
            () = over(&mut shutdown, &self.options.linger, &*self.clock) => return,
        };
        match received {
            Ok(Ok(arrived)) => self.begin(arrived, shutdown).await,
            Ok(Err(ArrivalError { error, refusal })) => {
                if let Some(refusal) = refusal {
                    let reason = format!("{from}: {error}");
                    self.admitted.connections().refuse(refusal, reason);
                }
                tracing::debug!("connection from {from} was not begun: {error}");
            }
            Err(late) => tracing::debug!("connection from {from} was not begun: {late}"),
        }
    }

    /// Serves, unless its address has as many connections as it may.
    async fn begin(mut self, arrived: Arrived, shutdown: watch::Receiver<bool>) {
        if self.admitted.comes_from(arrived.from.ip()) {
            return self.serve(arrived, shutdown).await;
        }
        turn_away(arrived.stream, &*self.clock).await;
    }

    async fn serve(self, arrived: Arrived, mut shutdown: watch::Receiver<bool>) {
        let Arrived {
            stream,
            from,
            https,
            guard,
            age,
        } = arrived;
        let Self {
            clock,
            service,
            options,
            mark,
            admitted,
            counted: _counted,
        } = self;
        let activity = admitted.activity().clone();
        let (stream, interim, names) =
            InterimStream::of_server(stream, mark, clock.clone(), options.write_timeout, activity.clone());
        let (leaving, ending_clock) = (shutdown.clone(), clock.clone());
        let requests = Arc::new(ConnectionRequests {
            service,
            connections: admitted.connections().clone(),
            activity: activity.clone(),
            interim,
            names,
            clock,
            leaving,
            from,
            https,
            guard,
            age,
        });
        let handler = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let requests = requests.clone();
            async move { Ok::<_, Infallible>(requests.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .max_headers(options.max_headers)
            .max_buf_size(options.max_head_size.max(8192))
            .title_case_headers(true)
            .half_close(false)
            .serve_connection(TokioIo::new(stream), handler);
        let mut connection = pin!(connection);
        let serving = async {
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = over(&mut shutdown, &options.linger, &*ending_clock) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        let ended = tokio::select! {
            ended = serving => ended,
            () = activity.ended() => Ok(()),
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

/// A storage service behind HTTP.
pub struct StorageDoor(pub Arc<dyn Service>);

#[async_trait::async_trait]
impl HttpService for StorageDoor {
    async fn serve(&self, request: http::Request<Body>, from: SocketAddr) -> Response {
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
        let interim = head.extensions.remove::<Interim>().map(|interim| interim.to(from));
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
