//! Listening sockets that one worker of a server passes on to the next, so that its further ports are open throughout.
//!
//! A worker writes each socket, along with its port, into a channel as soon as it listens; the overseer keeps the other
//! end and gives it to the next worker, which reads what is in there. The two need not run at the same time: what is in
//! a channel stays open. The ends are inherited as descriptors whose numbers are in the environment.
//! Always holds: a worker that is given no channel (by another build), or may not take it, opens its own socket.
//! Tests: beside the code, `tests/faults/test_reload.py`.

use nix::unistd::close;
use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// In a worker's environment: `TO,FROM`, where to write and, unless it is the first worker, where to read.
pub const CHANNELS: &str = "MARTLET_PORTS";
/// In the environment of an overseer that goes on as another build: what it keeps.
pub const KEPT: &str = "MARTLET_PORTS_KEPT";

/// Longer than a port.
const LONGEST: usize = 16;

/// The end to write to, and the one to keep.
pub fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(socketpair(kind.0, kind.1, kind.2, None)?)
}

/// Programs started from now on inherit it, or not.
pub fn inherit(channel: impl AsFd, inherited: bool) -> io::Result<()> {
    let mut flags = fcntl_getfd(&channel)?;
    flags.set(FdFlags::CLOEXEC, !inherited);
    Ok(fcntl_setfd(channel, flags)?)
}

/// What was inherited under this number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    let this = pidfd_open(getpid(), PidfdFlags::empty());
    let taken = this.and_then(|this| pidfd_getfd(this, number, PidfdGetfdFlags::empty()));
    close(number)?;
    Ok(taken?)
}

/// A worker's side.
#[derive(Default)]
pub struct Passing {
    to: Option<OwnedFd>,
    from: Option<OwnedFd>,
}

impl Passing {
    /// As the overseer said.
    pub fn from_environment() -> Self {
        let listed = std::env::var(CHANNELS).unwrap_or_default();
        let mut ends = listed.split(',').map(|number| inherited(number.parse().ok()?).ok());
        Self {
            to: ends.next().flatten(),
            from: ends.next().flatten(),
        }
    }

    /// Whether there was a worker before this one.
    pub fn is_successor(&self) -> bool {
        self.from.is_some()
    }

    /// The sockets of the worker before, by port.
    pub fn received(&mut self) -> BTreeMap<u16, TcpListener> {
        let Some(from) = self.from.take() else {
            return BTreeMap::new();
        };
        std::iter::from_fn(|| receive(&from).ok().flatten()).collect()
    }

    /// For the worker after this one.
    pub fn pass_on(&self, port: u16, socket: &TcpListener) {
        if let Some(to) = &self.to
            && let Err(error) = send(to, port, socket.as_fd())
        {
            tracing::warn!("port {port} will be closed for a moment when this worker is replaced: {error}");
        }
    }
}

fn send(to: &OwnedFd, port: u16, socket: BorrowedFd<'_>) -> io::Result<()> {
    let sockets = [socket];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    along.push(SendAncillaryMessage::ScmRights(&sockets));
    let port = port.to_string();
    sendmsg(to, &[IoSlice::new(port.as_bytes())], &mut along, SendFlags::DONTWAIT)?;
    Ok(())
}

/// The next one; none when there are no more.
fn receive(from: &OwnedFd) -> io::Result<Option<(u16, TcpListener)>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; LONGEST];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = recvmsg(from, &mut [IoSliceMut::new(&mut text)], &mut along, flags)?.bytes;
    let port = std::str::from_utf8(text.get(..length).unwrap_or_default());
    let port = port.ok().and_then(|port| port.parse().ok());
    let mut sockets = along.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    Ok(port.zip(sockets.next().map(TcpListener::from)))
}

/// For the environment.
pub fn numbers<'a>(channels: impl IntoIterator<Item = &'a OwnedFd>) -> String {
    let numbers = channels.into_iter().map(|channel| channel.as_raw_fd().to_string());
    numbers.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_on_is_received_once_and_open_meanwhile() {
        let (to, from) = channel().unwrap();
        let first = Passing {
            to: Some(to),
            from: None,
        };
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        first.pass_on(address.port(), &socket);
        drop((first, socket));
        let connection = std::net::TcpStream::connect(address).unwrap();
        let mut second = Passing {
            to: None,
            from: Some(from),
        };
        let received = second.received();
        let (_, peer) = received[&address.port()].accept().unwrap();
        assert_eq!(peer, connection.local_addr().unwrap());
        assert!(second.received().is_empty());
    }
}
