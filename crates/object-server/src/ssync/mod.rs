//! SSYNC, the receiving side: what of a sender's partition is missing here, and taking it.
//!
//! The sender's lines come in the request's body, ours go out in the answer's, at the same time; the words
//! are `peer::ssync`'s. What comes is carried out by the same code as any PUT, POST and DELETE.
//! Always holds: at most `replication_concurrency` exchanges at a time, `replication_concurrency_per_device`
//! on one device, one per partition; a sender that stalls costs `client_timeout`; room is taken in
//! proportion to the objects that are missing, and refused beyond [`MOST_WISHES`].
//! Deliberately absent: fragments (`X-Backend-Ssync-Frag-Index` is read and has no say yet).
//!
//! | question | file |
//! |---|---|
//! | who may, in which order, what is said when it fails | this one |
//! | offers and wishes | `missing.rs` |
//! | the requests that follow | `updates.rs` |
//! | many of them at the same time | `under_way.rs` |
//! | small objects, written together | `lot.rs` |

mod lot;
mod missing;
mod room;
mod under_way;
mod updates;

pub(crate) use room::Room;

use crate::devices::{Lane, Trouble};
use crate::refusal::{Refusal, empty};
use crate::replicate::Place;
use crate::service::Shared;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use object_engine::{EngineError, ObjectEngine};
use peer::ssync::{ERROR, LineError, Lines};
use peer::{Body, Feed, RawCall, Response};
use std::sync::Arc;

const ACCEPT_NO_COMMIT: HeaderName = HeaderName::from_static("x-backend-accept-no-commit");
/// Pieces of our answer that may wait for the network.
const PIECES: usize = 4;
/// Wishes for one exchange; each takes some 40 bytes.
const MOST_WISHES: usize = 4 << 20;

/// Why an exchange ends before its end.
enum End {
    /// The sender is told.
    Say(u16, String),
    /// The sender has gone, or has stopped in the middle; there is nobody to tell.
    Gone(String),
}

impl End {
    /// The sender does not keep to the protocol.
    fn nonsense(what: impl std::fmt::Display) -> Self {
        Self::Say(0, what.to_string())
    }
}

impl From<LineError> for End {
    fn from(error: LineError) -> Self {
        match error {
            LineError::TooLong => Self::nonsense(error),
            LineError::Late(_) => Self::Say(408, error.to_string()),
            LineError::Broken(_) | LineError::Early => Self::Gone(error.to_string()),
        }
    }
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Busy => Self::Say(503, "the device has more requests than it can take".into()),
            Trouble::Panicked => Self::Say(500, "a job failed unexpectedly".into()),
            Trouble::Out => Self::Say(507, "the device is out of service".into()),
            Trouble::Engine(error) => Self::Say(507, error.to_string()),
        }
    }
}

/// One exchange.
struct Exchange {
    shared: Arc<Shared>,
    place: Place,
    lines: Lines,
    feed: Feed,
}

/// Answers an SSYNC: at once with its head, what is to be said follows.
pub(crate) async fn ssync(shared: &Arc<Shared>, call: RawCall) -> Result<Response, Refusal> {
    let place = Place::of(call.address, &call.headers, &shared.options)?;
    check_fragment(&call.headers)?;
    let (engine_ready, device) = (|engine: &dyn ObjectEngine| engine.check(), place.device.clone());
    let ready = shared.devices.run(&device, Lane::Replication, engine_ready).await;
    ready.map_err(|trouble| Refusal::from_trouble(trouble, &device))?;
    let (feed, body) = Body::channel(PIECES, None);
    let exchange = Exchange {
        lines: Lines::new(&shared.world, call.body, shared.options.client_timeout),
        shared: shared.clone(),
        place,
        feed,
    };
    shared.world.spawn(exchange.run());
    let mut response = empty(StatusCode::OK).map(|_| body);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
        .headers_mut()
        .insert(ACCEPT_NO_COMMIT, HeaderValue::from_static("True"));
    Ok(response)
}

fn check_fragment(headers: &HeaderMap) -> Result<(), Refusal> {
    for name in ["x-backend-ssync-frag-index", "x-backend-ssync-node-index"] {
        let value = headers.get(name).map(|value| value.to_str().unwrap_or("?").trim());
        if value.is_some_and(|value| !matches!(value, "" | "None") && value.parse::<u32>().is_err()) {
            return Err(Refusal::Html(
                StatusCode::BAD_REQUEST,
                "Invalid X-Backend-Ssync-Frag-Index",
            ));
        }
    }
    Ok(())
}

impl Exchange {
    async fn run(mut self) {
        let outcome = self.converse().await;
        let place = format!("{}/{}", self.place.device, self.place.key.partition);
        match outcome {
            Ok(()) => {}
            Err(End::Gone(why)) => {
                // Dropping the feed makes our answer fail, too.
                tracing::warn!("ssync receiver ({place}): the sender went away: {why}");
                return;
            }
            Err(End::Say(status, why)) => {
                tracing::warn!("ssync receiver ({place}): {why}");
                self.feed.send(format!("{ERROR} {status} {why:?}\n").into()).await;
            }
        }
        self.feed.finish().await;
    }

    async fn converse(&mut self) -> Result<(), End> {
        // The head goes out with the first piece, and the sender waits for it.
        self.say("\r\n").await?;
        let _room = self.shared.room.enter(&self.shared, &self.place.device).await?;
        let (key, wait) = (self.place.key, self.shared.options.replication.lock_timeout);
        let locked = self
            .on_device(move |engine| engine.replica().lock_partition(key, wait))
            .await;
        let _locked = locked.map_err(|trouble| match trouble {
            Trouble::Engine(error) if is_locked(&error) => End::Say(0, error.to_string()),
            other => other.into(),
        })?;
        self.missing_check().await?;
        self.updates().await
    }

    async fn say(&self, text: impl Into<Bytes>) -> Result<(), End> {
        let patience = self.shared.options.client_timeout;
        match self.shared.world.timeout(patience, self.feed.send(text.into())).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(End::Gone("it does not listen".into())),
            Err(late) => Err(End::Gone(late.to_string())),
        }
    }

    async fn on_device<T: Send + 'static>(
        &self,
        job: impl FnOnce(&dyn ObjectEngine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let ran = self
            .shared
            .devices
            .run(&self.place.device, Lane::Replication, job)
            .await;
        ran.map(|(result, _)| result)
    }

    async fn expect(&mut self, wanted: &str) -> Result<(), End> {
        match self.lines.next().await? {
            Some(line) if line == wanted => Ok(()),
            Some(line) => Err(End::nonsense(format!(
                "Looking for {wanted} got {:?}",
                String::from_utf8_lossy(&line[..line.len().min(120)])
            ))),
            None => Err(End::Gone(format!("it ended before {wanted}"))),
        }
    }
}

fn is_locked(error: &EngineError) -> bool {
    matches!(error, EngineError::Io { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}
