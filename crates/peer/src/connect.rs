//! How a connection to an HTTP server is made: the network's, TLS inside it where the server wants that, hyper's
//! handshake; and why a server gave no answer.
//!
//! Deliberately absent: pools and requests (`http_client.rs`).

use crate::body::Body;
use crate::cluster_tls::{ClusterClient, CredentialsAge};
use crate::interim::{Begin, InterimStream};
use crate::names::{Mark, Names};
use crate::refused_certificate;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::fmt::Display;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use world::{Stream, World};

/// Headers of an answer. Metadata adds up: a container may carry far more than one request can set.
const MAX_HEADERS: usize = 1024;

/// For the handshake between nodes: as long as a server's response is waited for by default (`node_timeout`).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for a node.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection (`conn_timeout`).
    pub connect: Duration,
    /// For the head of the response once the request is out (`node_timeout`).
    pub response: Duration,
}

/// Why a node gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Nothing listens there, or the network says no.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// No connection in time.
    #[error("no connection in time")]
    ConnectTimeout,
    /// No response in time.
    #[error("no response in time")]
    ResponseTimeout,
    /// The connection broke, or what came over it was not HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The head of the answer is longer, or has more headers, than is read: what was asked for is at fault, not the
    /// node.
    #[error("the head of the answer is too long")]
    TooLong,
    /// The head of the request is longer than storage servers read; not the node's fault.
    #[error("the head of the request is too long")]
    LongRequest,
    /// The body to be sent broke off where it comes from; not the node's fault.
    #[error("the body to send broke off")]
    Abandoned,
    /// The request cannot be put into HTTP; the caller's fault, not the node's.
    #[error("cannot be written as a request: {0:?}")]
    Unspeakable(String),
}

/// A connection that can take a request.
pub(crate) struct HttpConnection {
    pub(crate) requests: SendRequest<Body>,
    pub(crate) begins: Begin,
    pub(crate) names: Names,
    /// Of a connection within the cluster.
    pub(crate) age: Option<CredentialsAge>,
}

impl HttpConnection {
    /// Whether another request may be sent.
    pub(crate) fn is_ready(&self) -> bool {
        self.requests.is_ready() && !self.age.as_ref().is_some_and(CredentialsAge::is_over)
    }
}

/// Makes connections.
pub(crate) struct Connector {
    world: World,
    mark: Mark,
    /// For servers that are asked over TLS.
    tls: Option<TlsConnector>,
    /// For the nodes of this cluster; they are asked in the clear when there is none.
    cluster: Option<ClusterClient>,
}

impl Connector {
    /// With `tls`, also to servers that want it.
    pub(crate) fn new(world: World, tls: Option<TlsConnector>) -> Self {
        let mark = Mark::new(&*world.random);
        Self {
            world,
            mark,
            tls,
            cluster: None,
        }
    }

    /// Nodes are connected to as the cluster's TLS asks for.
    pub(crate) fn secured(self, cluster: Option<ClusterClient>) -> Self {
        Self { cluster, ..self }
    }

    /// A new connection to `host:port`, over TLS or in the clear.
    pub(crate) async fn open(
        &self,
        host: &str,
        port: u16,
        over_tls: bool,
        patience: Duration,
    ) -> Result<HttpConnection, PeerError> {
        let stream = self.world.timeout(patience, self.stream(host, port, over_tls)).await;
        let stream = stream.map_err(|_| PeerError::ConnectTimeout)??;
        let (stream, age) = match &self.cluster {
            Some(cluster) if !over_tls => self.secure(cluster, stream, host, port, patience).await?,
            _ => (stream, None),
        };
        let (stream, begins, names) = InterimStream::of_client(stream, self.mark.clone());
        let (requests, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(no_connection)?;
        // Errors of the connection reach us through the request that is on it.
        self.world.spawn_unrelated(async move { drop(connection.await) });
        Ok(HttpConnection {
            requests,
            begins,
            names,
            age,
        })
    }

    async fn stream(&self, host: &str, port: u16, over_tls: bool) -> Result<Box<dyn Stream>, PeerError> {
        let connecting = self.world.network.connect(host.to_owned(), port);
        let stream = connecting.await.map_err(no_connection)?;
        if !over_tls {
            return Ok(stream);
        }
        let tls = self
            .tls
            .as_ref()
            .ok_or_else(|| no_connection("TLS is not configured"))?;
        let name = ServerName::try_from(host.to_owned()).map_err(no_connection)?;
        let secured = tls.connect(name, stream).await;
        let secured = secured.map_err(|error| match refused_certificate::described(host, &error) {
            Some(why) => no_connection(why),
            None => no_connection(format_args!("TLS: {error}")),
        });
        Ok(Box::new(secured?))
    }

    /// The cluster's handshake. It has more time than a connection, which the kernel takes while a server is busy.
    async fn secure(
        &self,
        cluster: &ClusterClient,
        stream: Box<dyn Stream>,
        host: &str,
        port: u16,
        patience: Duration,
    ) -> Result<(Box<dyn Stream>, Option<CredentialsAge>), PeerError> {
        let patience = patience.max(HANDSHAKE_TIMEOUT);
        let secured = self.world.timeout(patience, cluster.secure(stream, host, port)).await;
        let secured = secured.map_err(|_| PeerError::ConnectTimeout)?;
        secured.map_err(|error| PeerError::Connect(format!("TLS with {host}:{port}: {error}")))
    }
}

fn no_connection(error: impl Display) -> PeerError {
    PeerError::Connect(error.to_string())
}
