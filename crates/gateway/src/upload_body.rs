//! A client's body on its way in: taken in pieces worth sending on.
//!
//! Always holds: what a slow client has sent takes about as much memory as it has bytes; no piece but the last and the
//! one that [`UploadBody::begin`] took is kept back for longer than [`GATHERING`].

use crate::shared::Shared;
use bytes::{Bytes, BytesMut};
use peer::{Body, BodyError};
use request_pipeline::Response;
use std::sync::Arc;
use std::time::Duration;

/// Chunks of a large body are gathered to this size before they go out.
const CHUNK: usize = 64 * 1024;
/// … but what has come is sent on after this time.
const GATHERING: Duration = Duration::from_secs(1);
/// After fewer bytes than this, room for a chunk is made as they come: replicas may hold it for long.
const FEW: usize = 4 * 1024;

/// See the module's header.
pub(crate) struct UploadBody {
    shared: Arc<Shared>,
    body: Body,
    /// What was taken before replicas were asked.
    begun: Option<Bytes>,
}

impl UploadBody {
    pub(crate) fn new(shared: &Arc<Shared>, body: Body) -> Self {
        Self {
            shared: shared.clone(),
            body,
            begun: None,
        }
    }

    /// Waits for a whole piece, or for the end, however long that takes: until then the client costs no replica
    /// anything. `false` when the body has ended.
    pub(crate) async fn begin(&mut self) -> Result<bool, Response> {
        let patience = self.shared.options.client_timeout;
        let Some(first) = self.read(patience).await? else {
            return Ok(false);
        };
        let mut gathered = Gathered::of(first);
        let mut goes_on = true;
        while goes_on && !gathered.is_enough() {
            let next = self.read(patience).await?;
            goes_on = next.is_some();
            next.into_iter().for_each(|more| gathered.add(&more));
        }
        self.begun = Some(gathered.freeze());
        Ok(goes_on)
    }

    /// The next bytes of the client, in pieces worth sending; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Response> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        let Some(first) = self.read(self.shared.options.client_timeout).await? else {
            return Ok(None);
        };
        let mut gathered = Gathered::of(first);
        let clock = &self.shared.world.clock;
        let began = clock.elapsed();
        while !gathered.is_enough() {
            let left = GATHERING.saturating_sub(clock.elapsed().saturating_sub(began));
            // Servers wait for a body for a limited time, too: a slow client's bytes go out a few at a time.
            let Ok(next) = self.shared.world.timeout(left, self.body.next()).await else {
                break;
            };
            let Some(more) = self.received(next)? else { break };
            gathered.add(&more);
        }
        Ok(Some(gathered.freeze()))
    }

    async fn read(&mut self, patience: Duration) -> Result<Option<Bytes>, Response> {
        let next = self.shared.world.timeout(patience, self.body.next()).await;
        next.map_or_else(|_| Err(self.shared.client_stalled()), |next| self.received(next))
    }

    fn received(&self, next: Option<Result<Bytes, BodyError>>) -> Result<Option<Bytes>, Response> {
        next.transpose().map_err(|error| match error {
            BodyError::TimedOut => self.shared.client_stalled(),
            _ => self.shared.client_left(),
        })
    }
}

/// Bytes that are on their way to a piece: one that is large is not copied.
enum Gathered {
    One(Bytes),
    Many(BytesMut),
}

impl Gathered {
    fn of(first: Bytes) -> Self {
        if first.len() >= CHUNK / 2 {
            return Self::One(first);
        }
        let mut gathered = BytesMut::with_capacity(if first.len() < FEW { first.len() } else { CHUNK });
        gathered.extend_from_slice(&first);
        Self::Many(gathered)
    }

    fn is_enough(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(gathered) => gathered.len() >= CHUNK,
        }
    }

    fn add(&mut self, more: &[u8]) {
        match self {
            Self::One(one) => {
                let mut gathered = BytesMut::from(one.as_ref());
                gathered.extend_from_slice(more);
                *self = Self::Many(gathered);
            }
            Self::Many(gathered) => gathered.extend_from_slice(more),
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::One(one) => one,
            Self::Many(gathered) => gathered.freeze(),
        }
    }
}
