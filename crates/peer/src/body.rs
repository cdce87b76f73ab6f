//! Bodies: bytes that stream, in bounded buffers, with an honest end.
//!
//! A [`Body`] is consumed chunk by chunk. One made with [`Body::channel`] is fed by a [`Feed`],
//! which learns when the consumer takes its first look ([`Feed::started`]): that is the moment a
//! storage service has accepted the request ("100 Continue").
//! Always holds: a body ends with `None` only if its producer said so; a producer that vanishes
//! leaves [`BodyError::Abandoned`]. A channel never holds more than its capacity of chunks.

use crate::Footer;
use crate::activity::Activity;
use crate::body_error::BodyError;
use crate::digest::Digest;
use crate::feed::{FedItem, Feed};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use sync_wrapper::SyncWrapper;
use tokio::sync::{mpsc, oneshot};
use world::{Clock, World};

type Chunk = Result<Bytes, BodyError>;
/// Wrapped so that a body may be looked at from another thread; only its owner polls it.
type ChunkStream = SyncWrapper<Pin<Box<dyn Stream<Item = Chunk> + Send>>>;

enum Source {
    Empty,
    Whole(Bytes),
    Fed {
        chunks: mpsc::Receiver<FedItem>,
        started: Option<oneshot::Sender<()>>,
        over: bool,
    },
    Wire(Wire),
    Stream(ChunkStream),
}

/// Counts what passes.
pub trait Meter: Send + Sync {
    /// So many more bytes have passed.
    fn passed(&self, bytes: u64);
}

/// Bytes that stream; see the module header.
pub struct Body {
    source: Source,
    meter: Option<Arc<dyn Meter>>,
    /// Bytes to come, when known.
    length: Option<u64>,
    digest: Option<Digest>,
    footer: Option<Footer>,
}

impl Body {
    /// No bytes.
    pub fn empty() -> Self {
        Self {
            source: Source::Empty,
            length: Some(0),
            digest: None,
            footer: None,
            meter: None,
        }
    }

    /// These bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            length: Some(bytes.len() as u64),
            source: Source::Whole(bytes),
            digest: None,
            footer: None,
            meter: None,
        }
    }

    /// What comes over a connection.
    pub fn wire(incoming: hyper::body::Incoming) -> Self {
        let length = http_body::Body::size_hint(&incoming).exact();
        Self {
            source: Source::Wire(Wire {
                incoming: Some(incoming),
                unread: None,
                activity: None,
            }),
            length,
            digest: None,
            footer: None,
            meter: None,
        }
    }

    /// The body of a request: what its service leaves unread goes to `unread`; it fails when its client is too slow.
    pub(crate) fn wire_of_request(incoming: hyper::body::Incoming, unread: Unread, activity: Arc<Activity>) -> Self {
        let length = http_body::Body::size_hint(&incoming).exact();
        let wire = Wire {
            incoming: Some(incoming),
            unread: Some(unread),
            activity: Some(activity),
        };
        Self {
            source: Source::Wire(wire),
            length,
            digest: None,
            footer: None,
            meter: None,
        }
    }

    /// Chunks as they come; `length` when known.
    pub fn stream(chunks: impl Stream<Item = Chunk> + Send + 'static, length: Option<u64>) -> Self {
        let chunks: Pin<Box<dyn Stream<Item = Chunk> + Send>> = Box::pin(chunks);
        Self {
            source: Source::Stream(SyncWrapper::new(chunks)),
            length,
            digest: None,
            footer: None,
            meter: None,
        }
    }

    /// A body and the feed that fills it, holding at most `capacity` chunks in between.
    pub fn channel(capacity: usize, length: Option<u64>) -> (Feed, Self) {
        let (sender, chunks) = mpsc::channel(capacity.max(1));
        let (started, on_start) = oneshot::channel();
        let source = Source::Fed {
            chunks,
            started: Some(started),
            over: false,
        };
        (
            Feed {
                sender,
                on_start: Some(on_start),
            },
            Self {
                source,
                length,
                digest: None,
                footer: None,
                meter: None,
            },
        )
    }

    /// Attaches the digest that the producer computes anyway.
    pub fn with_digest(self, digest: Digest) -> Self {
        Self {
            digest: Some(digest),
            ..self
        }
    }

    /// The producer's digest, if the producer is in this process and computes one.
    pub fn digest(&self) -> Option<Digest> {
        self.digest.clone()
    }

    /// Has what passes counted: bytes in memory at once, others as they are taken.
    pub fn metered(self, meter: &Arc<impl Meter + 'static>) -> Self {
        match &self.source {
            Source::Empty => self,
            Source::Whole(bytes) => {
                meter.passed(bytes.len() as u64);
                self
            }
            _ => Self {
                meter: Some(meter.clone()),
                ..self
            },
        }
    }

    /// Attaches headers that the producer will know at the end.
    pub fn with_footer(self, footer: Footer) -> Self {
        Self {
            footer: Some(footer),
            ..self
        }
    }

    /// The headers that belong to the body's end, if the producer is in this process and has any.
    pub fn footer(&self) -> Option<Footer> {
        self.footer.clone()
    }

    /// Bytes to come, when known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// All the bytes, if they are in memory already.
    pub fn as_whole(&self) -> Option<Bytes> {
        match &self.source {
            Source::Empty => Some(Bytes::new()),
            Source::Whole(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }

    /// The next chunk; never an empty one.
    pub async fn next(&mut self) -> Option<Chunk> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// All bytes, if they are at most `limit` and come within `patience`: a sender that stalls or drips holds nothing
    /// up.
    pub async fn collect_within(self, world: &World, limit: u64, patience: Duration) -> Chunk {
        let collected = world.timeout(patience, self.collect(limit)).await;
        collected.unwrap_or(Err(BodyError::TimedOut))
    }

    /// All bytes, if they are at most `limit`.
    pub async fn collect(mut self, limit: u64) -> Chunk {
        if let Some(bytes) = self.as_whole() {
            return if bytes.len() as u64 > limit {
                Err(BodyError::TooLarge(limit))
            } else {
                Ok(bytes)
            };
        }
        let Some(first) = self.next().await.transpose()? else {
            return Ok(Bytes::new());
        };
        let mut second = self.next().await.transpose()?;
        if second.is_none() && first.len() as u64 <= limit {
            return Ok(first);
        }
        let mut all = BytesMut::from(first.as_ref());
        while let Some(chunk) = second {
            all.extend_from_slice(&chunk);
            if all.len() as u64 > limit {
                break;
            }
            second = self.next().await.transpose()?;
        }
        if all.len() as u64 > limit {
            Err(BodyError::TooLarge(limit))
        } else {
            Ok(all.freeze())
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        loop {
            let polled = match &mut self.source {
                Source::Empty => Poll::Ready(None),
                Source::Whole(bytes) => {
                    Poll::Ready(Some(Ok(std::mem::take(bytes))).filter(|c| matches!(c, Ok(b) if !b.is_empty())))
                }
                Source::Fed { chunks, started, over } => poll_fed(chunks, started, over, context),
                Source::Wire(wire) => wire.poll(context),
                Source::Stream(stream) => stream.get_mut().as_mut().poll_next(context),
            };
            match ready!(polled) {
                Some(Ok(chunk)) if chunk.is_empty() => {}
                Some(Ok(chunk)) => {
                    self.length = self.length.map(|l| l.saturating_sub(chunk.len() as u64));
                    if let Some(meter) = &self.meter {
                        meter.passed(chunk.len() as u64);
                    }
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Some(Err(error)) => {
                    self.source = Source::Empty;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    // A reader may look again; a stream that has ended must not be asked.
                    if matches!(self.source, Source::Stream(_)) {
                        self.source = Source::Empty;
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }
}

fn poll_fed(
    chunks: &mut mpsc::Receiver<FedItem>,
    started: &mut Option<oneshot::Sender<()>>,
    over: &mut bool,
    context: &mut Context<'_>,
) -> Poll<Option<Chunk>> {
    if let Some(started) = started.take() {
        // A feeder that does not care when we start is fine.
        let _ = started.send(());
    }
    if *over {
        return Poll::Ready(None);
    }
    let item = ready!(chunks.poll_recv(context));
    Poll::Ready(match item {
        Some(FedItem::Chunk(bytes)) => Some(Ok(bytes)),
        // One that was taken back is empty, and no chunk.
        Some(FedItem::Lent(loan)) => Some(Ok(loan.take_back().unwrap_or_default())),
        Some(FedItem::End) => {
            *over = true;
            None
        }
        Some(FedItem::Fail(error)) => Some(Err(error)),
        None => Some(Err(BodyError::Abandoned)),
    })
}

/// What comes over a connection.
struct Wire {
    /// Taken only when dropped.
    incoming: Option<hyper::body::Incoming>,
    unread: Option<Unread>,
    activity: Option<Arc<Activity>>,
}

impl Wire {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let Some(activity) = &self.activity else {
            return poll_incoming(incoming, context);
        };
        let polled = poll_incoming(incoming, context);
        activity.wants_bytes(polled.is_pending(), context.waker());
        match polled.is_pending() && activity.is_too_slow() {
            true => Poll::Ready(Some(Err(BodyError::TimedOut))),
            false => polled,
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(activity) = &self.activity {
            activity.wants_no_bytes();
        }
        if let (Some(incoming), Some(unread)) = (self.incoming.take(), &self.unread) {
            *unread.0.lock() = Some(incoming);
        }
    }
}

/// What a service has left unread of a request's body: the next request comes behind it.
#[derive(Clone, Default)]
pub(crate) struct Unread(Arc<Mutex<Option<hyper::body::Incoming>>>);

impl Unread {
    /// Bytes read and thrown away to keep a connection.
    const WORTH_READING: u64 = 64 * 1024;
    /// How long to wait for them.
    const PATIENCE: Duration = Duration::from_millis(200);

    /// Whether the connection can go on: reads what is little and comes soon. A client that waits for
    /// "100 Continue" is not asked to send what is not wanted.
    pub(crate) async fn finish(&self, expects: bool, clock: &dyn Clock) -> bool {
        let Some(incoming) = self.0.lock().take() else {
            return true;
        };
        if http_body::Body::is_end_stream(&incoming) {
            return true;
        }
        let little = http_body::Body::size_hint(&incoming)
            .upper()
            .is_some_and(|most| most <= Self::WORTH_READING);
        if expects || !little {
            return false;
        }
        let reading = Body::wire(incoming).collect(Self::WORTH_READING);
        let read = world::clock::timeout(clock, Self::PATIENCE, reading).await;
        read.is_ok_and(|read| read.is_ok())
    }
}

fn poll_incoming(incoming: &mut hyper::body::Incoming, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
    use http_body::Body as _;
    loop {
        match ready!(Pin::new(&mut *incoming).poll_frame(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(BodyError::Broken(error.to_string())))),
            // Trailers carry nothing that Swift's protocols use.
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.get_mut()
            .poll_chunk(context)
            .map(|chunk| chunk.map(|c| c.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Empty => true,
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Wire(wire) => wire.incoming.as_ref().is_none_or(http_body::Body::is_end_stream),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({:?} bytes to come)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_vanished_feeder_is_not_an_end() {
        let (feed, mut body) = Body::channel(2, None);
        assert!(feed.send(Bytes::from_static(b"half")).await);
        drop(feed);
        assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"half"))));
        assert_eq!(body.next().await, Some(Err(BodyError::Abandoned)));
        assert_eq!(body.next().await, None);
    }

    #[tokio::test]
    async fn the_first_look_is_seen_by_the_feeder() {
        let (mut feed, mut body) = Body::channel(1, Some(3));
        let consumer = tokio::spawn(async move {
            let first = body.next().await;
            (first, body.length(), body.next().await)
        });
        assert!(feed.started().await);
        assert!(feed.send(Bytes::from_static(b"abc")).await);
        assert!(feed.finish().await);
        assert_eq!(
            consumer.await.unwrap(),
            (Some(Ok(Bytes::from_static(b"abc"))), Some(0), None)
        );
        let (mut feed, body) = Body::channel(1, None);
        drop(body);
        assert!(!feed.started().await);
    }

    #[tokio::test]
    async fn the_end_may_be_looked_at_twice() {
        let chunks = futures_util::stream::unfold(true, |more| async move {
            more.then_some((Ok(Bytes::from_static(b"x")), false))
        });
        let mut body = Body::stream(chunks, None);
        assert_eq!(body.next().await, Some(Ok(Bytes::from_static(b"x"))));
        assert_eq!((body.next().await, body.next().await), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_waited_for_no_longer_than_its_patience() {
        let (world, patience) = (World::real(), Duration::from_secs(60));
        let dripping = futures_util::stream::unfold(world.clone(), async |world| {
            world.clock.sleep(Duration::from_secs(5)).await;
            Some((Ok(Bytes::from_static(b"x")), world))
        });
        let began = tokio::time::Instant::now();
        let body = Body::stream(dripping, None)
            .collect_within(&world, 1000, patience)
            .await;
        assert_eq!((body, began.elapsed()), (Err(BodyError::TimedOut), patience));
        let whole = Body::whole("x").collect_within(&world, 1000, patience).await;
        assert_eq!(whole, Ok(Bytes::from_static(b"x")));
    }

    #[tokio::test]
    async fn collecting_is_bounded() {
        let chunks = || futures_util::stream::iter([Ok(Bytes::from_static(b"ab")), Ok(Bytes::from_static(b"cd"))]);
        assert_eq!(
            Body::stream(chunks(), None).collect(4).await,
            Ok(Bytes::from_static(b"abcd"))
        );
        assert_eq!(
            Body::stream(chunks(), None).collect(3).await,
            Err(BodyError::TooLarge(3))
        );
        assert_eq!(Body::whole("abcd").collect(3).await, Err(BodyError::TooLarge(3)));
        assert_eq!(Body::empty().collect(0).await, Ok(Bytes::new()));
    }
}
