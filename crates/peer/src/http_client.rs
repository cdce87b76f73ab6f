//! Kept-alive HTTP connections to other nodes and to other people's servers (Keystone).
//!
//! A connection serves one request at a time and goes back to its server's pool once its answer has
//! been read to the end; one that broke is forgotten. A request that meets a connection which the
//! other side closed in the meantime is sent again on a new one, and where that is closed below it, as the server makes
//! room among crowds of others, on a second new one: a request to a node ([`HttpClient::send`]) when none
//! of it has left, or when it may arrive twice (`repeated.rs`), one of [`HttpClient::fetch`] in any case.
//! With `Expect: 100-continue` the body waits for the node's word ([`crate::Feed::started`] then
//! tells the feeder); a node that neither continues nor refuses runs into the response time-out.
//! A body with a footer goes as MIME (`footer_mime.rs`), and only to a node that says it understands it.
//! However many connections a request to a node takes, its answer is awaited for the response time-out in all.
//! Always holds: idle connections are bounded, of one server and of all (`idle.rs`).

use crate::body::Body;
use crate::cluster_tls::ClusterClient;
use crate::connect::{Connector, HttpConnection, PeerError, Timeouts};
use crate::footer_mime;
use crate::idle::{IdleConnections, MAX_IDLE};
use crate::message::Message;
use crate::repeated::{HeldRequest, Repeated};
use crate::{Call, RawCall, Response, Url};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use world::World;

/// Connections that are opened for one request to a node.
const MOST_OPENED: usize = 2;

/// A server of the pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Server {
    /// `host:port`.
    authority: String,
    over_tls: bool,
}

type Pool = Arc<Mutex<IdleConnections<Server, HttpConnection>>>;

/// A response and the connection that its body still comes over.
type Exchanged = (http::Response<Incoming>, HttpConnection);

/// Connections to all servers.
pub struct HttpClient {
    world: World,
    connector: Connector,
    idle: Pool,
}

/// How long the body of an answer may take whose head is enough.
const REST: Duration = Duration::from_secs(1);

impl HttpClient {
    /// No connections yet; only servers that are asked in the clear are reached.
    pub fn new(world: World) -> Self {
        Self::connecting(world, None)
    }

    /// No connections yet; `tls` is for servers whose address begins with `https`.
    pub fn with_tls(world: World, tls: TlsConnector) -> Self {
        Self::connecting(world, Some(tls))
    }

    fn connecting(world: World, tls: Option<TlsConnector>) -> Self {
        Self {
            connector: Connector::new(world.clone(), tls),
            world,
            idle: Pool::default(),
        }
    }

    /// Connects to nodes as the cluster's TLS asks for.
    pub fn secured(self, cluster: Option<ClusterClient>) -> Self {
        Self {
            connector: self.connector.secured(cluster),
            ..self
        }
    }

    /// Sends `call` to the storage node at `host:port`; answers with the response's head while its body streams.
    pub async fn send(&self, host: &str, port: u16, call: Call, timeouts: Timeouts) -> Result<Response, PeerError> {
        let node = Server {
            authority: format!("{host}:{port}"),
            over_tls: false,
        };
        let mut repeated = Repeated::of(&call);
        let (mut request, held) = into_request(&node.authority, call, || self.boundary())?;
        repeated = held.map_or(repeated, Repeated::Held);
        let mut is_repeated = false;
        let mut patience = timeouts.response;
        let (mut kept, mut opened) = (0..MAX_IDLE + 1, 0..MOST_OPENED);
        loop {
            let connection = match kept.next().and_then(|_| self.take_idle(&node)) {
                Some(connection) => connection,
                None => {
                    opened.next();
                    kept = 0..0;
                    (self.connector.open(host, port, node.over_tls, timeouts.connect)).await?
                }
            };
            let began = self.world.clock.elapsed();
            let exchanged = self.exchange(connection, request, patience).await;
            patience = patience.saturating_sub(self.world.clock.elapsed().saturating_sub(began));
            request = match exchanged {
                Ok(exchanged) => return Ok(repeated.judge(self.streaming(node, exchanged), is_repeated)),
                Err((error, _)) if opened.is_empty() => return Err(error),
                Err((_, Some(unsent))) => *unsent,
                // The node may have closed it just as the request left.
                Err((PeerError::Broken(why), None)) => match once_more(&mut repeated, &node.authority)? {
                    Some(request) => {
                        is_repeated = true;
                        request
                    }
                    None => return Err(PeerError::Broken(why)),
                },
                Err((error, None)) => return Err(error),
            };
        }
    }

    /// Sends a request that may arrive twice to the server of `url` and collects the answer: at most `most` bytes, all
    /// of it within `patience`. `request` has no address and no `Host`.
    pub async fn fetch(
        &self,
        url: &Url,
        request: http::Request<Bytes>,
        most: u64,
        patience: Duration,
    ) -> Result<http::Response<Bytes>, PeerError> {
        self.ask_url(url, request, (most, true), patience).await
    }

    /// [`HttpClient::fetch`] where the head of the answer says all: it stands, whatever becomes of the body. One that
    /// is longer than `most`, breaks off or takes longer than [`REST`] costs the connection and nothing else.
    pub async fn tell(
        &self,
        url: &Url,
        request: http::Request<Bytes>,
        most: u64,
        patience: Duration,
    ) -> Result<http::StatusCode, PeerError> {
        let answer = self.ask_url(url, request, (most, false), patience).await?;
        Ok(answer.status())
    }

    async fn ask_url(
        &self,
        url: &Url,
        mut request: http::Request<Bytes>,
        body: (u64, bool),
        patience: Duration,
    ) -> Result<http::Response<Bytes>, PeerError> {
        let server = Server {
            authority: url.authority(),
            over_tls: url.over_tls,
        };
        address(&mut request, &server.authority, url.path().to_owned())?;
        let work = async {
            while let Some(connection) = self.take_idle(&server) {
                // An idle connection may have been closed meanwhile: then the next, or a new one.
                let fetched = self.fetch_on(&server, connection, request.clone(), body, patience);
                if let Ok(response) = fetched.await {
                    return Ok(response);
                }
            }
            let opening = self.connector.open(&url.host, url.port, url.over_tls, patience);
            let connection = opening.await.map_err(|error| match error {
                PeerError::Connect(why) => PeerError::Connect(format!("{}: {why}", server.authority)),
                error => error,
            })?;
            self.fetch_on(&server, connection, request.clone(), body, patience)
                .await
        };
        let longest = if body.1 { patience } else { patience + REST };
        let fetched = self.world.timeout(longest, work).await;
        fetched.map_err(|_| PeerError::ResponseTimeout)?
    }

    async fn fetch_on(
        &self,
        server: &Server,
        connection: HttpConnection,
        request: http::Request<Bytes>,
        (most, is_needed): (u64, bool),
        patience: Duration,
    ) -> Result<http::Response<Bytes>, PeerError> {
        let exchanged = self.exchange(connection, request.map(Body::whole), patience).await;
        let (response, connection) = exchanged.map_err(|(error, _)| error)?;
        let (head, body) = response.into_parts();
        let body = Body::wire(body).collect(most);
        let body = match is_needed {
            true => body.await.map_err(|error| PeerError::Broken(error.to_string()))?,
            false => match self.world.timeout(REST, body).await {
                Ok(Ok(body)) => body,
                Ok(Err(_)) | Err(_) => return Ok(http::Response::from_parts(head, Bytes::new())),
            },
        };
        give_back(&self.idle, server.clone(), connection).await;
        Ok(http::Response::from_parts(head, body))
    }

    /// A MIME boundary that no body has in it.
    fn boundary(&self) -> String {
        let random = &self.world.random;
        format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
    }

    fn take_idle(&self, server: &Server) -> Option<HttpConnection> {
        let mut idle = self.idle.lock();
        idle.take(server, HttpConnection::is_ready)
    }

    /// On failure hands the request back if none of it has left.
    async fn exchange(
        &self,
        mut connection: HttpConnection,
        mut request: http::Request<Body>,
        patience: Duration,
    ) -> Result<Exchanged, (PeerError, Option<Box<http::Request<Body>>>)> {
        connection.begins.announce();
        connection.names.announce(request.headers_mut());
        let sending = connection.requests.try_send_request(request);
        match self.world.timeout(patience, sending).await {
            Err(_) => Err((PeerError::ResponseTimeout, None)),
            Ok(Err(mut failed)) => {
                let unsent = failed.take_message().map(|mut unsent| {
                    connection.names.take_back(unsent.headers_mut());
                    Box::new(unsent)
                });
                let error = failed.into_error();
                let why = match () {
                    () if error.is_user() => PeerError::Abandoned,
                    () if error.is_parse_too_large() => PeerError::TooLong,
                    () => PeerError::Broken(error.to_string()),
                };
                Err((why, unsent))
            }
            Ok(Ok(response)) => Ok((response, connection)),
        }
    }

    /// The response; the connection goes back to the pool once the body has been read.
    fn streaming(&self, node: Server, (response, connection): Exchanged) -> Response {
        let idle = self.idle.clone();
        self.world
            .spawn(async move { give_back(&idle, node, connection).await });
        response.map(Body::wire)
    }
}

/// Puts a connection into the pool once its answer has been read, unless it broke.
async fn give_back(idle: &Pool, server: Server, mut connection: HttpConnection) {
    if connection.requests.ready().await.is_ok() && connection.is_ready() {
        idle.lock().put(server, connection);
    }
}

/// The request again, where it may arrive twice.
fn once_more(repeated: &mut Repeated, node: &str) -> Result<Option<http::Request<Body>>, PeerError> {
    match repeated {
        Repeated::Never => Ok(None),
        Repeated::Call(again) => into_request(node, again.call(), String::new).map(|(request, _)| Some(request)),
        Repeated::Held(held) => Ok(held.request()),
    }
}

/// Says in `request` to whom it goes and what it asks there.
fn address<B>(request: &mut http::Request<B>, server: &str, uri: String) -> Result<(), PeerError> {
    *request.uri_mut() = uri.parse().map_err(|_| PeerError::Unspeakable(uri))?;
    // A whole address is for a proxy on the way: the host is the one behind it.
    let host = request.uri().authority().map_or(server, |authority| authority.as_str());
    let host = http::HeaderValue::from_str(host).map_err(|_| PeerError::Unspeakable(server.to_owned()))?;
    request.headers_mut().insert(HOST, host);
    Ok(())
}

/// Bytes of the head of a request that is sent: storage servers read 64 KiB, into which a header about the connection
/// has to fit as well. A longer one would come back as a broken connection.
pub const LONGEST_HEAD: usize = 64 * 1024 - 128;

fn head_length<B>(request: &http::Request<B>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let headers = request.headers().iter();
    // "METHOD target HTTP/1.1\r\n", "name: value\r\n", "\r\n"
    let lengths = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
    request.method().as_str().len() + target + 14 + lengths.sum::<usize>()
}

/// The HTTP request for `call`, and what is kept of one whose body waits; `boundary` is for a body that must be
/// wrapped.
fn into_request(
    node: &str,
    call: Call,
    boundary: impl FnOnce() -> String,
) -> Result<(http::Request<Body>, Option<HeldRequest>), PeerError> {
    let mut call = with_length(call);
    let mut uri = call.address.url_path();
    if !call.query.is_empty() {
        uri.push('?');
        uri.push_str(&call.query);
    }
    let has_footer = call.body.footer().is_some();
    let body = footer_mime::wrap(&mut call.headers, call.body, boundary);
    let mut request = http::Request::new(body);
    *request.method_mut() = call.method;
    *request.headers_mut() = call.headers;
    address(&mut request, node, uri)?;
    if head_length(&request) > LONGEST_HEAD {
        return Err(PeerError::LongRequest);
    }
    let expects = request
        .headers()
        .get(http::header::EXPECT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if !expects {
        return Ok((request, None));
    }
    let mut held = HeldRequest::new(request, has_footer);
    // Its body is there: this is the first attempt.
    let request = held.request().ok_or(PeerError::Abandoned)?;
    Ok((request, Some(held)))
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
