//! `100 Continue` with headers, and a second one in the middle of a request.
//!
//! Swift's multi-phase PUT has the object server announce what it understands in headers of its
//! first `100 Continue` (`X-Obj-Metadata-Footer: yes`, …) and ask for the commit with a second one.
//! hyper sends a bare `100 Continue` by itself when a body is first read and knows no other. So the
//! byte stream below it is wrapped: an [`Interim`] puts its answer in an outbox that the wrapper
//! writes while hyper waits for the body, and tells the wrapper to leave out hyper's bare one.
//! It also ends connections whose other side stops taking what we write.
//! Always holds: bytes from the outbox only go out while hyper has nothing half-written (it reads
//! the body then), so the two never mix.

use http::HeaderMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use world::{BoxFuture, Clock, Stream};

/// Exactly what hyper writes.
const BARE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[derive(Default)]
struct Outbox {
    bytes: VecDeque<u8>,
    swallow_bare: bool,
    reader: Option<Waker>,
}

/// Sends informational answers on one connection.
#[derive(Clone, Default)]
pub struct Interim(Arc<Mutex<Outbox>>);

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interim")
    }
}

impl Interim {
    /// Sends `100 Continue` with these headers. With `first`, it stands for the bare one that the
    /// first read of the body would send.
    pub fn send_continue(&self, headers: &HeaderMap, first: bool) {
        let mut outbox = self.0.lock();
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

/// The byte stream under hyper.
pub struct InterimStream {
    inner: Box<dyn Stream>,
    interim: Interim,
    /// Bytes taken from the outbox and not written yet.
    draining: VecDeque<u8>,
    clock: Arc<dyn Clock>,
    /// How long the other side may take no byte of what we write.
    patience: Duration,
    /// Runs while it does not.
    stalled: Option<BoxFuture<'static, ()>>,
}

impl InterimStream {
    /// Wraps a connection; the second value is for its requests.
    /// A write that makes no progress for `patience` breaks the connection.
    pub fn new(inner: Box<dyn Stream>, clock: Arc<dyn Clock>, patience: Duration) -> (Self, Interim) {
        let interim = Interim::default();
        let stream = Self {
            inner,
            interim: interim.clone(),
            draining: VecDeque::new(),
            clock,
            patience,
            stalled: None,
        };
        (stream, interim)
    }

    /// Ends a write that has been pending for too long.
    fn watched(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let (clock, patience) = (&self.clock, self.patience);
        let stalled = self.stalled.get_or_insert_with(|| clock.sleep(patience));
        std::task::ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.draining.is_empty() {
                let mut outbox = self.interim.0.lock();
                if outbox.bytes.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.draining = std::mem::take(&mut outbox.bytes);
            }
            let front = self.draining.as_slices().0;
            let written = std::task::ready!(Pin::new(&mut self.inner).poll_write(context, front))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.draining.drain(..written);
        }
    }

    fn swallows(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(BARE) && std::mem::take(&mut self.interim.0.lock().swallow_bare)
    }
}

impl AsyncRead for InterimStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.interim.0.lock().reader = Some(context.waker().clone());
        // A write that has to wait must not keep us from reading; its waker is registered.
        if let Poll::Ready(Err(error)) = this.drain(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for InterimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.swallows(bytes) {
            return Poll::Ready(Ok(BARE.len()));
        }
        std::task::ready!(this.drain(context))?;
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
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
        std::task::ready!(this.drain(context))?;
        let written = Pin::new(&mut this.inner).poll_write_vectored(context, slices);
        this.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}
