//! The network as the processes of one node have it: they listen and connect, and speak `peer`'s own HTTP.
//!
//! Deliberately absent: datagrams, names of hosts; what becomes of the bytes (`connections.rs`).

use crate::connections::{SimStream, connection};
use crate::executor::TaskOwner;
use crate::net::{Between, Net};
use crate::topology::{address, node_of};
use futures_util::future::select;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use world::{BoxFuture, Datagrams, Listener, Network, Stream};

/// How long the answer to a request that comes twice is waited for.
const REPEATED_FOR: Duration = Duration::from_secs(30);
/// Where repeated requests are while they are under way.
const UNDER_WAY: TaskOwner = TaskOwner(0);

/// By node and port.
type Backlogs = BTreeMap<(usize, u16), Arc<Backlog>>;

/// All ports that connections are accepted at; clones are the same ones.
#[derive(Clone)]
pub(crate) struct Sockets {
    net: Net,
    backlogs: Arc<Mutex<Backlogs>>,
}

impl Sockets {
    /// None yet.
    pub(crate) fn new(net: Net) -> Self {
        let backlogs = Arc::default();
        Self { net, backlogs }
    }

    /// Nothing is accepted at a node any more.
    pub(crate) fn close(&self, node: usize) {
        let mut backlogs = self.backlogs.lock();
        let closed: Vec<_> = backlogs.extract_if(.., |(number, _), _| *number == node).collect();
        drop(backlogs);
        closed.iter().for_each(|(_, backlog)| backlog.clear());
    }

    /// A new connection, once its handshake has gone forth and back.
    pub(crate) async fn dial(self, between: Between) -> io::Result<SimStream> {
        let Between { from, to, port } = between;
        let net = &self.net;
        net.travel().await;
        let is_silent = net.is_cut(from, to) || net.is_cut(to, from) || net.is_down(to);
        if is_silent && net.dice().chance(70) {
            net.note(|| format!("n{from}>n{to}:{port}: no connection"));
            return std::future::pending().await;
        }
        let backlog = self.backlogs.lock().get(&(to, port)).cloned();
        let accepting = backlog.filter(|_| !is_silent);
        let accepted = accepting.ok_or(io::ErrorKind::ConnectionRefused).map(|backlog| {
            let sockets = self.clone();
            let again = move |request| sockets.send_again(between, request);
            let (ours, theirs) = connection(net.clone(), between, Arc::new(again));
            backlog.push(theirs, from);
            ours
        });
        net.travel().await;
        Ok(accepted?)
    }

    /// Sends a request once more, some time later, as a client that lost patience does.
    fn send_again(&self, between: Between, request: Vec<u8>) {
        let (sockets, net) = (self.clone(), self.net.clone());
        let patience = net.executor().sleep(REPEATED_FOR);
        let asking = async move {
            net.travel().await;
            net.travel().await;
            let Between { from, to, port } = between;
            net.note(|| format!("n{from}>n{to}:{port}: {} bytes again", request.len()));
            let mut stream = sockets.dial(between).await?;
            stream.write_all(&request).await?;
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // Nothing waits for the answer.
        let repeated = async move { drop(select(Box::pin(asking), patience).await) };
        self.net.executor().spawn(UNDER_WAY, Box::pin(repeated));
    }
}

/// Connections that wait to be accepted at one port.
#[derive(Default)]
struct Backlog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    streams: VecDeque<(SimStream, usize)>,
    accepting: Option<Waker>,
}

impl Backlog {
    fn push(&self, stream: SimStream, from: usize) {
        let mut waiting = self.0.lock();
        waiting.streams.push_back((stream, from));
        if let Some(accepting) = waiting.accepting.take() {
            accepting.wake();
        }
    }

    /// Drops all that was not accepted.
    fn clear(&self) {
        let waiting = std::mem::take(&mut *self.0.lock());
        drop(waiting);
    }
}

struct SimListener {
    backlog: Arc<Backlog>,
    address: SocketAddr,
}

impl Listener for SimListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(std::future::poll_fn(|context| {
            let mut waiting = self.backlog.0.lock();
            match waiting.streams.pop_front() {
                Some((stream, from)) => {
                    Poll::Ready(Ok((Box::new(stream) as Box<dyn Stream>, socket_address(from, 40_000))))
                }
                None => {
                    waiting.accepting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

fn socket_address(node: usize, port: u16) -> SocketAddr {
    let host = address(node).parse().unwrap_or(Ipv4Addr::LOCALHOST);
    (host, port).into()
}

/// The network as a node has it.
pub(crate) struct SimNetwork {
    pub(crate) sockets: Sockets,
    pub(crate) node: usize,
}

impl Network for SimNetwork {
    fn listen(&self, _host: &str, port: u16, _backlog: u32) -> io::Result<Box<dyn Listener>> {
        let backlog = Arc::new(Backlog::default());
        self.sockets.backlogs.lock().insert((self.node, port), backlog.clone());
        let address = socket_address(self.node, port);
        Ok(Box::new(SimListener { backlog, address }))
    }

    fn datagrams(&self, _host: &str, _port: u16) -> io::Result<Box<dyn Datagrams>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn local_datagrams(&self, _path: &Path) -> io::Result<Box<dyn Datagrams>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (sockets, from) = (self.sockets.clone(), self.node);
        Box::pin(async move {
            let to = node_of(&host).ok_or(io::ErrorKind::HostUnreachable)?;
            let stream = sockets.dial(Between { from, to, port }).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
