//! The answer to a request on its way out, up to its last byte.
//!
//! Always holds: a chunk is taken from the service only when the client has taken the one before, so that a slow client
//! holds one; a chunk longer than [`PIECE`], a listing for example, is sent in pieces and counts in
//! [`Connections::hold`] until the request is over.

use crate::activity::Activity;
use crate::body::Body;
use crate::body_error::BodyError;
use crate::connections::Connections;
use crate::shares::AccountPlace;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes that are given to the connection at a time.
const PIECE: usize = 256 * 1024;

/// Ends a request when it is dropped.
pub(crate) struct RequestEnd {
    connections: Arc<Connections>,
    activity: Arc<Activity>,
    place: Option<AccountPlace>,
}

impl RequestEnd {
    pub(crate) fn of(connections: &Arc<Connections>, activity: &Arc<Activity>) -> Self {
        Self {
            connections: connections.clone(),
            activity: activity.clone(),
            place: None,
        }
    }

    /// What the request counts for there, it counts for until it is over.
    pub(crate) fn counts_in(&mut self, place: AccountPlace) {
        self.place = Some(place);
    }
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        self.connections.let_go(&self.activity);
        self.activity.finish();
    }
}

/// See the module's header. When it has been written, the request is over.
pub(crate) struct Answer {
    body: Body,
    /// What is left of a long chunk.
    rest: Bytes,
    end: RequestEnd,
}

impl Answer {
    pub(crate) fn new(body: Body, end: RequestEnd) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            end,
        }
    }

    /// As much of the chunk as is given to the connection now; the rest is kept.
    fn piece(&mut self, mut chunk: Bytes) -> Bytes {
        if chunk.len() > PIECE {
            self.rest = chunk.split_off(PIECE);
        }
        chunk
    }

    /// The next piece of a long chunk. The last one is a copy: the memory of the whole chunk goes before it is written.
    fn next_piece(&mut self) -> Bytes {
        let rest = std::mem::take(&mut self.rest);
        match rest.len() > PIECE {
            true => self.piece(rest),
            false => Bytes::copy_from_slice(&rest),
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        if self.end.activity.has_bytes() {
            // hyper asks again when what it has is written, and is woken for that.
            return Poll::Pending;
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(http_body::Frame::data(self.next_piece()))));
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        Poll::Ready(Some(match frame.into_data() {
            Ok(chunk) if chunk.len() > PIECE && !self.end.connections.hold(&self.end.activity, chunk.len()) => {
                Err(BodyError::Abandoned)
            }
            Ok(chunk) => Ok(http_body::Frame::data(self.piece(chunk))),
            Err(frame) => Ok(frame),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
