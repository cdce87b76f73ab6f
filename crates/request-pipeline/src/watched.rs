//! Watching a body on its way, without touching its bytes.
//!
//! A [`Watched`] body counts what passes and tells its [`Watcher`] once how it ended.
//! Always holds: a body that was declared with a length ends properly only after exactly that many
//! bytes; with fewer it ends in an error, further ones are never passed on. What is in memory already
//! is judged at once and stays in memory ([`Body::as_whole`]). What is logged while a body streams stands in the span
//! in which the body was made, so that it carries the transaction id.

use bytes::Bytes;
use futures_util::Stream;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use peer::{Body, BodyError};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tracing::Span;

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With all its bytes.
    Whole,
    /// Its producer failed, or lied about the length.
    Failed,
    /// Its consumer went away.
    Left,
}

/// Learns about a body.
pub trait Watcher: Send + Unpin + 'static {
    /// So many more bytes have passed.
    fn passed(&mut self, bytes: u64);
    /// Nothing more will pass. Called once.
    fn ended(&mut self, how: End);
}

/// No watcher: for a body whose length alone matters.
impl Watcher for () {
    fn passed(&mut self, _bytes: u64) {}
    fn ended(&mut self, _how: End) {}
}

/// The length that headers declare.
pub fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// `body`, watched; `length` is how many bytes were declared.
pub fn watch(body: Body, length: Option<u64>, mut watcher: impl Watcher) -> Body {
    if let Some(bytes) = body.as_whole() {
        let there = bytes.len() as u64;
        if length.is_none_or(|length| length == there) {
            watcher.passed(there);
            watcher.ended(End::Whole);
            return body;
        }
    }
    let digest = body.digest();
    let (remaining, hint) = (length, length.or(body.length()));
    let watched = Watched {
        body,
        remaining,
        watcher: Some(watcher),
        span: Span::current(),
    };
    let body = Body::stream(watched, hint);
    match digest {
        Some(digest) => body.with_digest(digest),
        None => body,
    }
}

struct Watched<W: Watcher> {
    body: Body,
    remaining: Option<u64>,
    /// Taken when the end has been reported.
    watcher: Option<W>,
    span: Span,
}

impl<W: Watcher> Watched<W> {
    fn tell(&mut self, how: End) {
        if let Some(mut watcher) = self.watcher.take() {
            watcher.ended(how);
        }
    }

    fn fail(&mut self, error: BodyError) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.tell(End::Failed);
        self.body = Body::empty();
        self.remaining = None;
        Poll::Ready(Some(Err(error)))
    }
}

impl<W: Watcher> Stream for Watched<W> {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let frame = ready!(
            this.span
                .in_scope(|| http_body::Body::poll_frame(Pin::new(&mut this.body), context))
        );
        let chunk = match frame {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => return this.fail(error),
            None if this.remaining.is_some_and(|remaining| remaining > 0) => return this.fail(BodyError::Abandoned),
            None => {
                this.tell(End::Whole);
                return Poll::Ready(None);
            }
        };
        let length = chunk.len() as u64;
        if let Some(remaining) = this.remaining {
            if length > remaining {
                return this.fail(BodyError::TooLarge(remaining));
            }
            this.remaining = Some(remaining - length);
        }
        if let Some(watcher) = &mut this.watcher {
            watcher.passed(length);
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}

impl<W: Watcher> Drop for Watched<W> {
    fn drop(&mut self) {
        // The HTTP server stops looking once it has as many bytes as were declared.
        self.tell(match self.remaining {
            Some(0) => End::Whole,
            _ => End::Left,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::sync::mpsc::{Sender, channel};

    struct Tell(Sender<String>);

    impl Watcher for Tell {
        fn passed(&mut self, bytes: u64) {
            self.0.send(bytes.to_string()).unwrap();
        }
        fn ended(&mut self, how: End) {
            self.0.send(format!("{how:?}")).unwrap();
        }
    }

    fn streamed(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|c| Ok(Bytes::from_static(c.as_bytes()))).collect();
        Body::stream(stream::iter(chunks), None)
    }

    async fn events_of(body: Body, length: Option<u64>, looks: usize) -> (Vec<String>, Option<BodyError>) {
        let (sender, receiver) = channel();
        let mut body = watch(body, length, Tell(sender));
        let mut error = None;
        for _ in 0..looks {
            if let Some(Err(found)) = body.next().await {
                error = Some(found);
            }
        }
        drop(body);
        (receiver.try_iter().collect(), error)
    }

    #[tokio::test]
    async fn ends_are_reported_once_and_truly() {
        let ask = events_of(streamed(&["ab", "c"]), Some(3), 3).await;
        assert_eq!(ask, (vec!["2".into(), "1".into(), "Whole".into()], None));
        let ask = events_of(streamed(&["ab", "c"]), Some(3), 2).await;
        assert_eq!(ask.0.last().unwrap(), "Whole", "all declared bytes were taken");
        let ask = events_of(streamed(&["ab", "c"]), Some(3), 1).await;
        assert_eq!(ask.0.last().unwrap(), "Left");
        let ask = events_of(streamed(&["ab"]), Some(3), 5).await;
        assert_eq!(ask, (vec!["2".into(), "Failed".into()], Some(BodyError::Abandoned)));
        let ask = events_of(streamed(&["ab", "cd"]), Some(3), 5).await;
        assert_eq!(ask, (vec!["2".into(), "Failed".into()], Some(BodyError::TooLarge(1))));
        let ask = events_of(streamed(&["ab"]), None, 1).await;
        assert_eq!(ask.0.last().unwrap(), "Left", "its end was never seen");
        let broken = stream::iter([Err(BodyError::TimedOut)]);
        let ask = events_of(Body::stream(broken, None), None, 3).await;
        assert_eq!(ask, (vec!["Failed".into()], Some(BodyError::TimedOut)));
    }

    #[tokio::test]
    async fn what_is_in_memory_stays_there() {
        let (sender, receiver) = channel();
        let body = watch(Body::whole("abc"), Some(3), Tell(sender));
        assert_eq!(body.as_whole().unwrap(), "abc");
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["3", "Whole"]);
        let mut lie = watch(Body::whole("abc"), Some(4), ());
        assert_eq!(lie.next().await, Some(Ok(Bytes::from_static(b"abc"))));
        assert_eq!(lie.next().await, Some(Err(BodyError::Abandoned)));
    }
}
