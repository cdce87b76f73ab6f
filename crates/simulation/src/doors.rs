//! How a node's services are reached: by messages, or by the bytes of `peer`'s own HTTP; and what may prevent it.

use crate::bugs::Bug;
use crate::cluster::SimCluster;
use crate::executor::TaskOwner;
use crate::net::Between;
use crate::sockets::Sockets;
use crate::topology::OBJECTS;
use peer::http_server::{ServerOptions, Shutdown, serve};
use peer::{Service, StorageDoor};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use world::{BoxFuture, Listener, Stream, World};

/// Requests that a server works at, and connections that it has, at a time.
const SEATS: usize = 16;
const CONNECTIONS: usize = 64;
/// Connections of a client that asks for nothing: more than there are seats, or places.
const IDLE: [usize; 2] = [24, 80];

impl SimCluster {
    /// Serves at `port` of a node, as long as that process of it.
    pub(crate) fn serve(
        &self,
        (number, port): (usize, u16),
        (home, world): (TaskOwner, &World),
        service: Arc<dyn Service>,
        doors: &Shutdown,
    ) -> io::Result<()> {
        self.net.open(number, port, home, service.clone());
        if !self.config.over_bytes {
            return Ok(());
        }
        let listener = world.network.listen("", port, 0)?;
        let listener = match self.config.bug {
            Some(Bug::SeatsConnections) => Box::new(SeatedListener {
                listener,
                seats: Arc::new(Semaphore::new(SEATS)),
            }),
            _ => listener,
        };
        let options = ServerOptions {
            max_clients: SEATS,
            max_connections: CONNECTIONS,
            ..ServerOptions::default()
        };
        let door = Arc::new(StorageDoor(service));
        world.spawn_unrelated(serve(world.clone(), listener, door, options, doors.watch()));
        Ok(())
    }

    /// Servers take no further connection, and close those that are idle.
    pub(crate) fn close_doors(&self) {
        let processes = self.nodes.iter().filter_map(|node| node.process.as_ref());
        processes.for_each(|process| process.doors.begin());
    }

    /// A client has idle connections from one node to all others' object servers.
    pub(crate) fn sit_idle(&self, from: usize, home: TaskOwner) {
        let count = IDLE[self.dice.up_to(IDLE.len())];
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            let port = OBJECTS;
            for _ in 0..count {
                let says = self.dice.chance(50);
                let idle = idle(self.sockets.clone(), Between { from, to, port }, says);
                self.executor.spawn(home, Box::pin(async move { drop(idle.await) }));
            }
        }
    }
}

/// A connection over which nothing is asked; half a head may come over it.
async fn idle(sockets: Sockets, between: Between, says: bool) -> io::Result<()> {
    let mut stream = sockets.dial(between).await?;
    if says {
        stream.write_all(b"GET /d/0/AUTH_a/c/o HTTP/1.1\r\nHost").await?;
    }
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// A bug: a connection has a seat from its beginning to its end.
struct SeatedListener {
    listener: Box<dyn Listener>,
    seats: Arc<Semaphore>,
}

impl Listener for SeatedListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let seat = self.seats.clone().acquire_owned().await.map_err(io::Error::other)?;
            let (stream, from) = self.listener.accept().await?;
            Ok((Box::new(SeatedStream { stream, _seat: seat }) as Box<dyn Stream>, from))
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.listener.address()
    }
}

struct SeatedStream {
    stream: Box<dyn Stream>,
    _seat: OwnedSemaphorePermit,
}

impl AsyncRead for SeatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for SeatedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
