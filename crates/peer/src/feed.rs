//! The writing end of a [`Body`](crate::Body) that is a channel.
//!
//! Always holds: a feed that is dropped before its end makes the body fail.

use crate::body_error::BodyError;
use crate::loan::Loan;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// What is in the channel.
pub(crate) enum FedItem {
    /// Bytes of the body; the consumer does not see a chunk without any.
    Chunk(Bytes),
    /// The same, which the feeder may take back.
    Lent(Loan),
    End,
    Fail(BodyError),
}

/// Fills a [`Body`](crate::Body). Dropping it without [`Feed::finish`] makes the body fail, not end.
pub struct Feed {
    pub(crate) sender: mpsc::Sender<FedItem>,
    pub(crate) on_start: Option<oneshot::Receiver<()>>,
}

impl Feed {
    /// Waits until the consumer takes its first look; `false` if it never will.
    pub async fn started(&mut self) -> bool {
        match self.on_start.take() {
            None => true,
            Some(receiver) => receiver.await.is_ok(),
        }
    }

    /// Hands over a chunk, waiting for room; `false` if the consumer has gone.
    pub async fn send(&self, chunk: Bytes) -> bool {
        self.sender.send(FedItem::Chunk(chunk)).await.is_ok()
    }

    /// As [`Feed::send`], of a chunk that can be taken back until the consumer looks at it; `None` if it has gone.
    pub async fn lend(&self, chunk: Bytes) -> Option<Loan> {
        let loan = Loan::of(chunk);
        self.sender.send(FedItem::Lent(loan.clone())).await.ok()?;
        Some(loan)
    }

    /// Waits until a chunk can be handed over at once; `false` if the consumer has gone. A chunk that is made only then
    /// is not held for a slow consumer beside the one that it has not taken.
    pub async fn ready(&self) -> bool {
        self.sender.reserve().await.is_ok()
    }

    /// Waits until the consumer has taken all chunks and asks for the next one; `false` if it has gone.
    pub async fn asked(&self) -> bool {
        // `Body` passes over a chunk without bytes.
        self.send(Bytes::new()).await && self.ready().await
    }

    /// The body is whole. `false` if the consumer has gone.
    pub async fn finish(self) -> bool {
        self.sender.send(FedItem::End).await.is_ok()
    }

    /// The body must not be used.
    pub async fn fail(self, error: BodyError) {
        // A consumer that has gone needs no telling.
        let _ = self.sender.send(FedItem::Fail(error)).await;
    }
}
