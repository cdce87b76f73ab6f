//! Bugs of both ends of object replication: done to the lines of SSYNC as they pass.
//!
//! A sender says each request's head in one piece, so that a line never lies in two.

use super::{Bug, Bugged};
use crate::disk::SimFiles;
use bytes::Bytes;
use futures_util::stream::unfold;
use peer::message::Message;
use peer::ssync::{MISSING_END, MISSING_START, UPDATES_END, UPDATES_START};
use peer::{Body, Call, Response, Service};
use vocabulary::Timestamp;

impl Bugged {
    /// Takes part in an exchange, with the bug.
    pub(super) async fn exchange(&self, call: Call) -> Response {
        match self.bug {
            Bug::ForgetsReplicas if self.world.random.below(3) == 0 => {
                let mut offered = call.body;
                let reading = async move { while offered.next().await.is_some_and(|piece| piece.is_ok()) {} };
                self.executor.spawn(self.home, Box::pin(reading));
                Response::new(Body::whole(format!("{}{}", wishes(), end())))
            }
            Bug::SyncsNoReplicas => {
                let lying = Lying::begin(&self.files);
                let response = self.inner.call(call).await;
                response.map(|body| changed(body, move |piece| lying.on(piece)))
            }
            Bug::TakesOlderReplicas => {
                let now = self.world.clock.now();
                let body = changed(call.body, move |piece| newer(&piece, now));
                self.inner.call(Call { body, ..call }).await
            }
            Bug::KeepsDeletionsToItself => {
                let body = changed(call.body, |piece| without_deletions(&piece));
                self.inner.call(Call { body, ..call }).await
            }
            _ => self.inner.call(call).await,
        }
    }
}

/// Syncs are not done until it is dropped.
struct Lying(SimFiles);

impl Lying {
    fn begin(files: &SimFiles) -> Self {
        files.lie(true);
        Self(files.clone())
    }

    /// Another exchange may have ended meanwhile.
    fn on(&self, piece: Bytes) -> Bytes {
        self.0.lie(true);
        piece
    }
}

impl Drop for Lying {
    fn drop(&mut self) {
        self.0.lie(false);
    }
}

/// A service whose short answers are taken for whole ones.
pub(crate) struct Trusting<S>(pub(crate) S);

#[async_trait::async_trait]
impl<S: Service> Service for Trusting<S> {
    async fn call(&self, call: Call) -> Response {
        let is_exchange = matches!(call.message, Message::Ssync(_));
        let response = self.0.call(call).await;
        match is_exchange {
            true => response.map(completed),
            false => response,
        }
    }
}

/// What is missing at its end is made up.
fn completed(body: Body) -> Body {
    let state = Some((body, String::new()));
    let pieces = unfold(state, |state| async move {
        let (mut body, mut received) = state?;
        if let Some(Ok(piece)) = body.next().await {
            received.push_str(&String::from_utf8_lossy(&piece));
            return Some((Ok(piece), Some((body, received))));
        }
        let rest = match (received.contains(MISSING_END), received.contains(UPDATES_END)) {
            (_, true) => return None,
            (true, false) => end(),
            (false, false) => format!("\r\n{}{}", wishes(), end()),
        };
        Some((Ok(rest.into()), None))
    });
    Body::stream(pieces, None)
}

fn wishes() -> String {
    format!("{MISSING_START}\r\n\r\n{MISSING_END}\r\n")
}

fn end() -> String {
    format!("{UPDATES_START}\r\n{UPDATES_END}\r\n")
}

/// Every piece, as `change` makes it.
fn changed(body: Body, change: impl Fn(Bytes) -> Bytes + Send + Sync + 'static) -> Body {
    let pieces = unfold((body, change), |(mut body, change)| async move {
        loop {
            let piece = body.next().await?.map(&change);
            if !piece.as_ref().is_ok_and(Bytes::is_empty) {
                return Some((piece, (body, change)));
            }
        }
    });
    Body::stream(pieces, None)
}

/// The piece with what `change` makes of each of its lines.
fn by_line(piece: &Bytes, change: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Bytes {
    let lines = piece.split_inclusive(|byte| *byte == b'\n');
    lines.filter_map(change).flatten().collect::<Vec<u8>>().into()
}

/// Offers and requests are of now.
fn newer(piece: &Bytes, now: Timestamp) -> Bytes {
    by_line(piece, |line| {
        let text = String::from_utf8_lossy(line);
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(match words[..] {
            [hash, _] if hash.len() == 32 && line.ends_with(b"\r\n") => {
                format!("{hash} {}\r\n", now.internal()).into_bytes()
            }
            ["X-Timestamp:", _] => format!("X-Timestamp: {}\r\n", now.internal()).into_bytes(),
            _ => line.to_vec(),
        })
    })
}

fn without_deletions(piece: &Bytes) -> Bytes {
    let mut within = false;
    by_line(piece, |line| {
        within |= line.starts_with(b"DELETE /");
        let passes = !within;
        within &= line != b"\r\n";
        passes.then(|| line.to_vec())
    })
}
