//! What a connection goes through before its first request: the PROXY preamble, then TLS; or the TLS of a cluster.
//!
//! A load balancer speaks the preamble in the clear and then TLS, as its protocol has it, or all of it
//! within TLS, as OpenStack expects it; where both are on, the first byte tells.
//! Always holds: where a preamble is required nothing is served without; the whole is bounded in time
//! (by the caller) and in bytes.

use crate::cluster_tls::{ClusterArrival, CredentialsAge, RoleGuard};
use crate::proxied::{self, Parsed, Preamble};
use crate::refusals::ServerRefusal;
use crate::tls::Tls;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use world::Stream;

/// How TLS begins.
const HANDSHAKE: u8 = 0x16;

/// The port that balancers end TLS on.
const HTTPS: u16 = 443;

/// Read at a time while a preamble is expected.
const STEP: usize = 512;

/// Bytes read of a refused connection, so that it sees the answer.
const READ_AFTER_REFUSAL: u64 = 16 * 1024;

const REFUSAL: &[u8] = b"HTTP/1.1 400 Invalid PROXY line\r\nContent-Type: text/plain\r\nContent-Length: 18\r\n\
    Connection: close\r\n\r\nInvalid PROXY line";

/// What connections have to do first; nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// Shake hands.
    pub tls: Option<Tls>,
    /// Say who they are passed on for.
    pub require_proxy_protocol: bool,
    /// Show a certificate of the cluster; with this, neither of the others.
    pub cluster: Option<ClusterArrival>,
}

/// In a request's extensions when the client speaks TLS, to us or to the balancer before us.
#[derive(Debug, Clone, Copy)]
pub struct Https;

/// A connection that is ready for requests.
pub(crate) struct Arrived {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) from: SocketAddr,
    pub(crate) https: bool,
    /// What may be asked; everything when there is none.
    pub(crate) guard: Option<RoleGuard>,
    /// Of a connection within the cluster.
    pub(crate) age: Option<CredentialsAge>,
}

/// Why a connection did not get as far as requests.
#[derive(Debug)]
pub(crate) struct ArrivalError {
    pub(crate) error: io::Error,
    /// As what it counts, when it was refused.
    pub(crate) refusal: Option<ServerRefusal>,
}

impl From<io::Error> for ArrivalError {
    fn from(error: io::Error) -> Self {
        Self { error, refusal: None }
    }
}

impl Arrival {
    /// Whether there is nothing to do.
    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none() && !self.require_proxy_protocol && self.cluster.is_none()
    }

    /// Give it a deadline.
    pub(crate) async fn receive(&self, stream: Box<dyn Stream>, from: SocketAddr) -> Result<Arrived, ArrivalError> {
        let mut arrived = Arrived {
            stream,
            from,
            https: false,
            guard: None,
            age: None,
        };
        if let Some(cluster) = &self.cluster {
            arrived.show_certificates(cluster).await?;
            return Ok(arrived);
        }
        match (&self.tls, self.require_proxy_protocol) {
            (None, false) => {}
            (None, true) => arrived.learn().await?,
            (Some(tls), false) => arrived.shake_hands(tls).await?,
            (Some(tls), true) => {
                if arrived.first_byte().await? == HANDSHAKE {
                    arrived.shake_hands(tls).await?;
                    arrived.learn().await?;
                } else {
                    arrived.learn().await?;
                    arrived.shake_hands(tls).await?;
                }
            }
        }
        Ok(arrived)
    }
}

impl Arrived {
    fn put_back(&mut self, bytes: Vec<u8>) {
        let stream = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
        self.stream = Box::new(Prefixed {
            first: bytes,
            given: 0,
            stream,
        });
    }

    async fn first_byte(&mut self) -> io::Result<u8> {
        let byte = self.stream.read_u8().await?;
        self.put_back(vec![byte]);
        Ok(byte)
    }

    async fn shake_hands(&mut self, tls: &Tls) -> io::Result<()> {
        let stream = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
        self.stream = tls.accept(stream).await?;
        self.https = true;
        Ok(())
    }

    /// The TLS of a cluster, or none where that is allowed.
    async fn show_certificates(&mut self, cluster: &ClusterArrival) -> Result<(), ArrivalError> {
        if self.first_byte().await? != HANDSHAKE {
            return match cluster.required {
                false => Ok(()),
                true => Err(ArrivalError {
                    error: io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "it does not begin with a TLS handshake",
                    ),
                    refusal: Some(ServerRefusal::Plain),
                }),
            };
        }
        let stream = std::mem::replace(&mut self.stream, Box::new(tokio::io::empty()));
        let (stream, guard, age) = cluster.accept(stream).await.map_err(|error| ArrivalError {
            error,
            refusal: Some(ServerRefusal::Handshake),
        })?;
        self.stream = stream;
        (self.guard, self.age) = (Some(guard), Some(age));
        self.https = true;
        Ok(())
    }

    /// Reads the preamble.
    async fn learn(&mut self) -> io::Result<()> {
        let mut read = Vec::with_capacity(STEP);
        let Preamble { addresses, length } = loop {
            match proxied::parse(&read) {
                Parsed::Whole(preamble) => break preamble,
                Parsed::Bad => return self.refuse().await,
                Parsed::Incomplete => {
                    read.reserve(STEP);
                    if self.stream.read_buf(&mut read).await? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        };
        if let Some((source, destination)) = addresses {
            self.from = source;
            self.https |= destination.port() == HTTPS;
        }
        self.put_back(read.split_off(length));
        Ok(())
    }

    async fn refuse(&mut self) -> io::Result<()> {
        self.stream.write_all(REFUSAL).await?;
        self.stream.shutdown().await?;
        let mut rest = (&mut self.stream).take(READ_AFTER_REFUSAL);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        Err(io::Error::new(io::ErrorKind::InvalidData, "no PROXY line came first"))
    }
}

/// A stream of which some bytes have been read already.
struct Prefixed {
    first: Vec<u8>,
    given: usize,
    stream: Box<dyn Stream>,
}

impl AsyncRead for Prefixed {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.first.get(this.given..).unwrap_or_default();
        if left.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let given = left.len().min(buffer.remaining());
        buffer.put_slice(left.get(..given).unwrap_or_default());
        this.given += given;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Prefixed {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
