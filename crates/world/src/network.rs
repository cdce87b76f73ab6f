//! The network seam: listening and connecting, as byte streams.
//!
//! Always holds: real streams send small writes at once (no Nagle delay). Addresses are those of
//! ring files and `bind_ip`: host names are resolved by the system when they are no addresses.

use crate::BoxFuture;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that the system takes of an answer before the client is ready for them. Without a limit it takes up to 4 MiB:
/// as much is read from devices, and held, for a client that takes nothing.
const MOST_UNSENT: u32 = 256 * 1024;
/// ... until [`TRUSTED`] bytes have been sent: many clients that take nothing may come at once.
const FEW_UNSENT: u32 = 32 * 1024;
const TRUSTED: u64 = 512 * 1024;

/// A byte stream both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Accepts connections.
pub trait Listener: Send + Sync {
    /// The next connection and who made it.
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>>;
    /// Where it listens: the port is the real one when 0 was asked for.
    fn address(&self) -> io::Result<SocketAddr>;
}

/// Listening and connecting.
pub trait Network: Send + Sync {
    /// Listens on `host:port` with room for `backlog` connections not yet accepted.
    fn listen(&self, host: &str, port: u16, backlog: u32) -> io::Result<Box<dyn Listener>>;
    /// Sends single messages to `host:port`, whether anything listens there or not.
    fn datagrams(&self, host: &str, port: u16) -> io::Result<Box<dyn Datagrams>>;
    /// Sends single messages to the socket at `path`, which another process has made.
    fn local_datagrams(&self, path: &Path) -> io::Result<Box<dyn Datagrams>>;
    /// Connects to `host:port`. Give it a deadline.
    fn connect(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// The addresses that the system knows for a host name. Blocks, perhaps for long.
pub fn addresses_of(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|found| found.ip()).collect())
}

/// Single messages that may get lost.
pub trait Datagrams: Send + Sync {
    /// Sends one, if that is possible at once.
    fn send(&self, message: &[u8]);
}

/// TCP and UDP on this machine.
pub struct RealNetwork;

impl RealNetwork {
    /// A socket that listens, to be given to [`RealNetwork::accept_on`] in this process or in another.
    pub fn bind(&self, host: &str, port: u16, backlog: u32) -> io::Result<std::net::TcpListener> {
        let address = (host, port)
            .to_socket_addrs()?
            .next()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // Connections inherit it.
        socket.set_tcp_notsent_lowat(FEW_UNSENT)?;
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(socket.into())
    }

    /// Accepts from a socket made by [`RealNetwork::bind`].
    pub fn accept_on(&self, socket: std::net::TcpListener) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(TcpListener(tokio::net::TcpListener::from_std(socket)?)))
    }
}

impl Network for RealNetwork {
    fn listen(&self, host: &str, port: u16, backlog: u32) -> io::Result<Box<dyn Listener>> {
        self.accept_on(self.bind(host, port, backlog)?)
    }

    fn datagrams(&self, host: &str, port: u16) -> io::Result<Box<dyn Datagrams>> {
        let all: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
        // A host that has both is reached the older way: so do OpenStack's programs.
        let to = all.iter().find(|address| address.is_ipv4()).or(all.first());
        let to = *to.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(to)?;
        Ok(Box::new(Udp(socket)))
    }

    fn local_datagrams(&self, path: &Path) -> io::Result<Box<dyn Datagrams>> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(path)?;
        Ok(Box::new(Local(socket)))
    }

    fn connect(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

struct Udp(std::net::UdpSocket);

impl Datagrams for Udp {
    fn send(&self, message: &[u8]) {
        // No listener, or no room: messages may get lost.
        let _ = self.0.send(message);
    }
}

struct Local(UnixDatagram);

impl Datagrams for Local {
    fn send(&self, message: &[u8]) {
        // As above.
        let _ = self.0.send(message);
    }
}

struct TcpListener(tokio::net::TcpListener);

impl Listener for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.0.accept().await?;
            stream.set_nodelay(true)?;
            let accepted = Accepted { stream, sent: 0 };
            Ok((Box::new(accepted) as Box<dyn Stream>, from))
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection that was accepted. More is given to the system at once when the client has shown that it reads.
struct Accepted {
    stream: tokio::net::TcpStream,
    sent: u64,
}

impl Accepted {
    fn count(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            let was_trusted = self.sent >= TRUSTED;
            self.sent = self.sent.saturating_add(bytes as u64);
            if !was_trusted && self.sent >= TRUSTED {
                // Without it answers go out in smaller pieces.
                let _ = SockRef::from(&self.stream).set_tcp_notsent_lowat(MOST_UNSENT);
            }
        }
        written
    }
}

impl AsyncRead for Accepted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
