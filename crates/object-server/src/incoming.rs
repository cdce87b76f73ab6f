//! How a body arrives: piece by piece, with a deadline for each and for all, and with the length promised.
//!
//! Always holds: a body that ends is exactly as long as was promised; one that is too slow, too long or
//! cut short is a [`Refusal`].

use crate::batch::{BodyBatch, Gathering};
use crate::mime::{MimeEvent, MimeSplitter, NotMime, PartHead};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use peer::{Body, BodyError};
use std::time::Duration;
use storage_shell::Refusal;
use telemetry::Statsd;
use world::World;

/// The body of a PUT.
pub(crate) struct IncomingBody {
    world: World,
    body: Body,
    patience: Duration,
    deadline: Duration,
    /// Bytes promised, when they were.
    promised: Option<u64>,
    /// Bytes at most, promised or not.
    limit: u64,
    received: u64,
    statsd: Statsd,
    /// What the last batch had no room for.
    rest: Bytes,
}

impl IncomingBody {
    pub(crate) fn new(world: &World, body: Body, promised: Option<u64>, limits: BodyLimits) -> Self {
        Self {
            body,
            patience: limits.patience,
            deadline: world.clock.elapsed().saturating_add(limits.whole),
            world: world.clone(),
            promised,
            limit: limits.bytes,
            received: 0,
            statsd: Statsd::default(),
            rest: Bytes::new(),
        }
    }

    /// Counts bodies that take longer than the whole of one may.
    pub(crate) fn with_statsd(self, statsd: &Statsd) -> Self {
        let statsd = statsd.clone();
        Self { statsd, ..self }
    }

    /// The next piece; `None` at the proper end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        let late = Refusal::Page(StatusCode::REQUEST_TIMEOUT);
        let left = self.deadline.saturating_sub(self.world.clock.elapsed());
        if left.is_zero() {
            self.statsd.increment("PUT.timeouts");
            return Err(late);
        }
        match self.world.timeout(self.patience.min(left), self.body.next()).await {
            Err(_) if left < self.patience => {
                self.statsd.increment("PUT.timeouts");
                Err(late)
            }
            Err(_) | Ok(Some(Err(BodyError::TimedOut))) => Err(late),
            Ok(Some(Err(_))) => Err(Refusal::client_disconnect()),
            Ok(Some(Ok(bytes))) => self.count(bytes).map(Some),
            Ok(None) if self.promised.is_some_and(|promised| self.received < promised) => {
                Err(Refusal::client_disconnect())
            }
            Ok(None) => Ok(None),
        }
    }

    fn count(&mut self, bytes: Bytes) -> Result<Bytes, Refusal> {
        self.received += bytes.len() as u64;
        if self.promised.is_some_and(|promised| self.received > promised) {
            return Err(Refusal::bad_request("the body is longer than its Content-Length"));
        }
        if self.received > self.limit {
            return Err(too_large());
        }
        Ok(bytes)
    }

    /// All of it, for bodies that are known to be small.
    pub(crate) async fn all(mut self) -> Result<Bytes, Refusal> {
        if let Some(bytes) = self.body.as_whole() {
            let bytes = self.count(bytes)?;
            return match self.promised {
                Some(promised) if promised > self.received => Err(Refusal::client_disconnect()),
                _ => Ok(bytes),
            };
        }
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::from(first.as_ref());
        all.extend_from_slice(&second);
        while let Some(more) = self.next().await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }
}

impl IncomingBody {
    /// The next pieces, enough for a write; none at the end.
    pub(crate) async fn batch(&mut self) -> Result<BodyBatch, Refusal> {
        let mut gathering = Gathering::begin(&self.world, &mut self.rest);
        while !gathering.is_enough() {
            let Some(piece) = self.next().await? else { break };
            self.rest = gathering.take(piece);
        }
        Ok(gathering.finish())
    }
}

/// How much and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// For the next piece.
    pub(crate) patience: Duration,
    /// For the whole body.
    pub(crate) whole: Duration,
    /// Bytes.
    pub(crate) bytes: u64,
}

pub(crate) fn too_large() -> Refusal {
    Refusal::Text(StatusCode::PAYLOAD_TOO_LARGE, "Your request is too large.".into())
}

/// A body wrapped in MIME; see `mime.rs`.
pub(crate) struct MimeBody {
    incoming: IncomingBody,
    splitter: MimeSplitter,
    /// The part has been read to its end.
    part_over: bool,
    /// It was the last.
    over: bool,
    /// What the last batch of the part had no room for.
    rest: Bytes,
}

impl MimeBody {
    pub(crate) fn new(incoming: IncomingBody, boundary: &str) -> Self {
        Self {
            incoming,
            splitter: MimeSplitter::new(boundary),
            part_over: true,
            over: false,
            rest: Bytes::new(),
        }
    }

    async fn event(&mut self) -> Result<MimeEvent, Refusal> {
        loop {
            let event = self.splitter.next_event();
            match event.map_err(|NotMime(why)| Refusal::bad_request(format!("invalid MIME document: {why}")))? {
                MimeEvent::Hungry => match self.incoming.next().await? {
                    Some(bytes) => self.splitter.feed(&bytes),
                    None => return Err(Refusal::client_disconnect()),
                },
                event => return Ok(event),
            }
        }
    }

    /// The head of the next part; `None` after the last.
    pub(crate) async fn part(&mut self) -> Result<Option<PartHead>, Refusal> {
        if self.over {
            return Ok(None);
        }
        match self.event().await? {
            MimeEvent::Part(head) => {
                self.part_over = false;
                Ok(Some(head))
            }
            _ => Ok(None),
        }
    }

    /// The next bytes of the part, enough for a write; none at its end.
    pub(crate) async fn batch(&mut self) -> Result<BodyBatch, Refusal> {
        let mut gathering = Gathering::begin(&self.incoming.world, &mut self.rest);
        while !gathering.is_enough() && !self.part_over {
            match self.event().await? {
                MimeEvent::Data(bytes) => self.rest = gathering.take(bytes),
                end => {
                    self.part_over = true;
                    self.over = end == MimeEvent::End;
                }
            }
        }
        Ok(gathering.finish())
    }

    /// The whole part, if it is no longer than `limit`.
    pub(crate) async fn document(&mut self, limit: usize) -> Result<Vec<u8>, Refusal> {
        let mut document = Vec::new();
        loop {
            let batch = self.batch().await?;
            if batch.is_empty() {
                return Ok(document);
            }
            batch.pieces.iter().for_each(|piece| document.extend_from_slice(piece));
            if document.len() > limit {
                return Err(Refusal::bad_request("a MIME document is too long"));
            }
        }
    }

    /// Takes what comes after the last part, so that the connection can go on.
    pub(crate) async fn drain(mut self) {
        while let Ok(Some(_)) = self.incoming.next().await {}
    }
}
