//! `100 Continue` with headers, and a second one in the middle of a request.
//!
//! Swift's multi-phase PUT has the object server announce what it understands in headers of its
//! first `100 Continue` (`X-Obj-Metadata-Footer: yes`, …) and ask for the commit with a second one.
//! hyper sends a bare `100 Continue` by itself when a body is first read and knows no other. So the
//! byte stream below it is wrapped: an [`Interim`] puts its answer in an outbox that the wrapper
//! writes while hyper waits for the body, and tells the wrapper to leave out hyper's bare one.
//! It also ends connections whose other side stops taking what we write, and lets header names pass that
//! hyper refuses (`heads.rs`, `names.rs`).
//! Always holds: bytes from the outbox only go out while hyper has nothing half-written (it reads
//! the body then), so the two never mix.

use crate::activity::Activity;
use crate::heads::{Heads, Side};
use crate::names::{Decoder, Mark, Names, Written};
use http::HeaderMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use world::{BoxFuture, Clock, Stream};

/// Exactly what hyper writes.
const BARE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes of an answer that are read at a time. What is read is held until the client takes it, and hyper makes room for
/// twice what it got when it got all that it asked for: with one byte less, 128 KiB is the most that it makes.
const ANSWER_AT_ONCE: u64 = 128 * 1024 - 1;

#[derive(Default)]
struct Outbox {
    bytes: VecDeque<u8>,
    swallow_bare: bool,
    reader: Option<Waker>,
}

/// Sends informational answers on one connection.
#[derive(Clone, Default)]
pub struct Interim {
    outbox: Arc<Mutex<Outbox>>,
    from: Option<SocketAddr>,
}

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interim")
    }
}

impl Interim {
    /// As [`Interim`], and it is known who is at the other end.
    pub(crate) fn to(self, from: SocketAddr) -> Self {
        Self {
            from: Some(from),
            ..self
        }
    }

    /// The other end of the connection, where it is known.
    pub fn from(&self) -> Option<SocketAddr> {
        self.from
    }

    /// Sends `100 Continue` with these headers. With `first`, it stands for the bare one that the
    /// first read of the body would send.
    pub fn send_continue(&self, headers: &HeaderMap, first: bool) {
        let mut outbox = self.outbox.lock();
        outbox.bytes.extend(b"HTTP/1.1 100 Continue\r\n");
        for (name, value) in headers {
            outbox.bytes.extend(name.as_str().as_bytes());
            outbox.bytes.extend(b": ");
            outbox.bytes.extend(value.as_bytes());
            outbox.bytes.extend(b"\r\n");
        }
        outbox.bytes.extend(b"\r\n");
        outbox.swallow_bare |= first;
        if let Some(reader) = outbox.reader.take() {
            reader.wake();
        }
    }
}

/// The byte stream under hyper, of a server or a client.
pub struct InterimStream {
    inner: Take<Box<dyn Stream>>,
    read_at_once: u64,
    interim: Interim,
    heads: Heads,
    /// Bytes read that had no room yet.
    held: VecDeque<u8>,
    /// A client's: the head of an answer comes next.
    begins: Begin,
    names: Decoder,
    /// Bytes taken from the outbox, or instead of hyper's, and not written yet.
    draining: VecDeque<u8>,
    watch: Option<Watch>,
}

/// How long the other side may take no byte of what we write.
struct Watch {
    activity: Arc<Activity>,
    clock: Arc<dyn Clock>,
    patience: Duration,
    /// Runs while it does not.
    stalled: Option<BoxFuture<'static, ()>>,
}

/// Says that an answer comes next on a connection.
#[derive(Clone, Default)]
pub(crate) struct Begin(Arc<AtomicBool>);

impl Begin {
    pub(crate) fn announce(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl InterimStream {
    /// Wraps a connection to a server; the other values are for its requests and its answers.
    /// A write that makes no progress for `patience` breaks the connection.
    pub(crate) fn of_server(
        inner: Box<dyn Stream>,
        mark: Mark,
        clock: Arc<dyn Clock>,
        patience: Duration,
        activity: Arc<Activity>,
    ) -> (Self, Interim, Names) {
        let watch = Watch {
            activity,
            clock,
            patience,
            stalled: None,
        };
        let (stream, names) = Self::new(inner, Side::Server, mark, Some(watch));
        let interim = stream.interim.clone();
        (stream, interim, names)
    }

    /// Wraps a connection of a client; the other values are for its requests.
    pub(crate) fn of_client(inner: Box<dyn Stream>, mark: Mark) -> (Self, Begin, Names) {
        let (stream, names) = Self::new(inner, Side::Client, mark, None);
        let begins = stream.begins.clone();
        (stream, begins, names)
    }

    fn new(inner: Box<dyn Stream>, side: Side, mark: Mark, watch: Option<Watch>) -> (Self, Names) {
        let (decoder, names) = Decoder::new(mark);
        let read_at_once = match side {
            Side::Server => u64::MAX,
            Side::Client => ANSWER_AT_ONCE,
        };
        let stream = Self {
            inner: inner.take(read_at_once),
            read_at_once,
            interim: Interim::default(),
            heads: Heads::new(side),
            held: VecDeque::new(),
            begins: Begin::default(),
            names: decoder,
            draining: VecDeque::new(),
            watch,
        };
        (stream, names)
    }

    /// Ends a write that has been pending for too long.
    fn watched(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let Some(watch) = &mut self.watch else {
            return written;
        };
        if let Poll::Ready(sent) = &written {
            watch.activity.sent(sent.as_ref().ok().copied().or(Some(0)));
            watch.stalled = None;
            return written;
        }
        watch.activity.sent(None);
        let stalled = watch.stalled.get_or_insert_with(|| watch.clock.sleep(watch.patience));
        std::task::ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.draining.is_empty() {
                let mut outbox = self.interim.outbox.lock();
                if outbox.bytes.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.draining = std::mem::take(&mut outbox.bytes);
            }
            let front = self.draining.as_slices().0;
            let written = std::task::ready!(Pin::new(self.inner.get_mut()).poll_write(context, front))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.draining.drain(..written);
        }
    }

    /// How many of `bytes`, which hyper writes, go out as they are; `Err` with how many of them are
    /// replaced by what is draining.
    fn plain(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        if !self.names.is_awake() {
            return Ok(bytes.len());
        }
        match self.names.take(bytes, &mut self.draining) {
            Written::Plain(plain) => Ok(plain),
            Written::Replaced(replaced) => Err(replaced),
        }
    }

    /// Puts what was held back into `buffer`; whether there was any.
    fn give_held(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let front = self.held.as_slices().0;
        let given = front.len().min(buffer.remaining());
        buffer.put_slice(front.get(..given).unwrap_or_default());
        self.held.drain(..given);
        given > 0
    }

    /// Encodes names in what has been read behind the first `before` bytes of `buffer`.
    fn encode(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        if self.begins.0.load(Ordering::Acquire) {
            self.begins.0.store(false, Ordering::Release);
            self.heads.begin();
        }
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Some(watch) = &self.watch {
            watch.activity.received(read.len());
        }
        if let Some(encoded) = self.heads.pass(read) {
            buffer.set_filled(before);
            self.held.extend(encoded);
            self.give_held(buffer);
        }
    }

    fn swallows(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(BARE) && std::mem::take(&mut self.interim.outbox.lock().swallow_bare)
    }
}

impl AsyncRead for InterimStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.interim.outbox.lock().reader = Some(context.waker().clone());
        // A write that has to wait must not keep us from reading; its waker is registered.
        if let Poll::Ready(Err(error)) = this.drain(context) {
            return Poll::Ready(Err(error));
        }
        if this.give_held(buffer) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        this.inner.set_limit(this.read_at_once);
        std::task::ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        this.encode(buffer, before);
        if this.heads.has_too_many() {
            let why = "more informational answers came than are read";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for InterimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.swallows(bytes) {
            return Poll::Ready(Ok(BARE.len()));
        }
        std::task::ready!(this.drain(context))?;
        let bytes = match this.plain(bytes) {
            Ok(plain) => bytes.get(..plain).unwrap_or(bytes),
            Err(replaced) => return Poll::Ready(Ok(replaced)),
        };
        let written = Pin::new(this.inner.get_mut()).poll_write(context, bytes);
        this.watched(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if slices.first().is_some_and(|first| this.swallows(first)) {
            return Poll::Ready(Ok(BARE.len()));
        }
        if this.names.is_awake()
            && let Some(first) = slices.iter().find(|slice| !slice.is_empty())
        {
            return Pin::new(this).poll_write(context, first);
        }
        std::task::ready!(this.drain(context))?;
        let written = Pin::new(this.inner.get_mut()).poll_write_vectored(context, slices);
        this.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.get_ref().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        std::task::ready!(this.drain(context))?;
        Pin::new(this.inner.get_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        std::task::ready!(this.drain(context))?;
        Pin::new(this.inner.get_mut()).poll_shutdown(context)
    }
}
