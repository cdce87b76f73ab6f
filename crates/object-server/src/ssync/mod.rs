//! SSYNC, the receiving side: what of a sender's partition is missing here, and taking it.
//!
//! The sender's lines come in the request's body, ours go out in the answer's, at the same time; the words
//! are `peer::ssync`'s. What comes is carried out by the same code as any PUT, POST and DELETE.
//! Always holds: at most `replication_concurrency` exchanges at a time, `replication_concurrency_per_device`
//! on one device, one per partition; a sender that stalls, or is slower than `min_transfer_rate`,
//! costs `client_timeout` or little more; an exchange takes no longer than `max_upload_time`, and its wishes no more
//! than 18 MiB, those of all exchanges 72 MiB. Objects beyond that are passed over: when those that were wished for are
//! here, the exchange ends with an error, so that no sender takes the rest for being here, too, and its next exchange
//! brings more.
//! Deliberately absent: fragments (`X-Backend-Ssync-Frag-Index` is read and has no say yet).
//!
//! | question | file |
//! |---|---|
//! | who may, in which order, what is said when it fails | this one |
//! | offers and wishes | `missing.rs` |
//! | the requests that follow | `updates.rs` |
//! | many of them at the same time | `running.rs` |
//! | small objects, written together | `put_batch.rs` |

mod missing;
mod put_batch;
mod running;
mod updates;

use crate::devices::ObjectDevice;
use crate::exchange_slots::NoSlot;
use crate::refusal::refused_by;
use crate::replicate::PartitionAddress;
use crate::state::ObjectServerState;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use object_engine::EngineError;
use peer::message::Ssync;
use peer::message::header_names::X_ACCEPT_NO_COMMIT;
use peer::ssync::{ERROR, LineError, Lines};
use peer::{Body, BodyError, Feed, Response};
use std::sync::Arc;
use std::time::Duration;
use storage_shell::{DeviceFault, Lane, Refusal, empty};
use vocabulary::{Fault, FaultKind};

/// Pieces of our answer that may wait for the network.
const PIECES: usize = 4;
/// Why an exchange ends before its end.
enum ExchangeEnd {
    /// The sender gets this as an error.
    Say(u16, String),
    /// The sender has gone, or has stopped in the middle; nothing can be sent to it.
    Gone(String),
}

impl ExchangeEnd {
    /// The sender does not keep to the protocol.
    fn nonsense(what: impl std::fmt::Display) -> Self {
        Self::Say(0, what.to_string())
    }
}

impl From<LineError> for ExchangeEnd {
    fn from(error: LineError) -> Self {
        match error {
            LineError::TooLong => Self::nonsense(error),
            LineError::Late(_) | LineError::Broken(BodyError::TimedOut) => Self::Say(408, error.to_string()),
            LineError::Broken(_) | LineError::Early => Self::Gone(error.to_string()),
        }
    }
}

impl From<DeviceFault> for ExchangeEnd {
    fn from(DeviceFault { fault, .. }: DeviceFault) -> Self {
        match fault.kind {
            FaultKind::Caller => Self::Say(500, fault.what),
            _ => fault.into(),
        }
    }
}

impl From<EngineError> for ExchangeEnd {
    fn from(error: EngineError) -> Self {
        Fault::from(error).into()
    }
}

impl From<Fault> for ExchangeEnd {
    fn from(Fault { kind, what }: Fault) -> Self {
        let status = match kind {
            FaultKind::Contention => 503,
            FaultKind::Item => 500,
            _ => 507,
        };
        Self::Say(status, what)
    }
}

impl From<NoSlot> for ExchangeEnd {
    fn from(none: NoSlot) -> Self {
        match none {
            NoSlot::Node => Self::Say(503, "this node takes part in enough exchanges".into()),
            NoSlot::Device(device, waited) => {
                Self::Say(0, format!("{waited:?}: device {device} takes part in enough exchanges"))
            }
        }
    }
}

/// One exchange.
struct Exchange {
    state: Arc<ObjectServerState>,
    place: PartitionAddress,
    lines: Lines,
    feed: Feed,
    /// When it has to be over.
    end: Duration,
    /// Offers that there was no room to wish for.
    passed_over: u64,
}

/// Answers an SSYNC: at once with its head, what is to be said follows.
pub(crate) async fn ssync(state: &Arc<ObjectServerState>, message: Ssync, body: Body) -> Result<Response, Refusal> {
    check_fragment(&message)?;
    let place = PartitionAddress::of(message.target, &message.policy, &state.options)?;
    let is_ready = |device: &ObjectDevice| device.engine().check().map_err(refused_by(device));
    state.devices.run(&place.device, Lane::Replication, is_ready).await?;
    let (feed, answer) = Body::channel(PIECES, None);
    let body = state.options.minimum_rate().watch(&state.world, body);
    let exchange = Exchange {
        lines: Lines::new(&state.world, body, state.options.client_timeout),
        state: state.clone(),
        place,
        feed,
        end: state
            .world
            .clock
            .elapsed()
            .saturating_add(state.options.max_upload_time),
        passed_over: 0,
    };
    state.world.spawn(exchange.run());
    let mut response = empty(StatusCode::OK).map(|_| answer);
    response.headers_mut().remove(CONTENT_LENGTH);
    response
        .headers_mut()
        .insert(X_ACCEPT_NO_COMMIT, HeaderValue::from_static("True"));
    Ok(response)
}

fn check_fragment(message: &Ssync) -> Result<(), Refusal> {
    for value in [&message.fragment_index, &message.node_index] {
        let value = value.as_ref().map(|value| value.to_str().unwrap_or("?").trim());
        if value.is_some_and(|value| !matches!(value, "" | "None") && value.parse::<u32>().is_err()) {
            return Err(Refusal::labelled_bad_request("Invalid X-Backend-Ssync-Frag-Index"));
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
            Err(ExchangeEnd::Gone(why)) => {
                // Dropping the feed makes our answer fail, too.
                tracing::warn!("ssync receiver ({place}): the sender went away: {why}");
                return;
            }
            Err(ExchangeEnd::Say(status, why)) => {
                tracing::warn!("ssync receiver ({place}): {why}");
                self.feed.send(format!("{ERROR} {status} {why:?}\n").into()).await;
            }
        }
        self.feed.finish().await;
    }

    async fn converse(&mut self) -> Result<(), ExchangeEnd> {
        // The head goes out with the first piece, and the sender waits for it.
        self.say("\r\n").await?;
        let _slot = self
            .state
            .exchange_slots
            .take(&self.state.world, &self.place.device)
            .await?;
        let (key, wait) = (self.place.key, self.state.options.replication.lock_timeout);
        let lock = move |device: &ObjectDevice| {
            let locked = device.engine().replica().lock_partition(key, wait);
            locked.map_err(|error| match is_locked(&error) {
                true => ExchangeEnd::Say(0, error.to_string()),
                false => error.into(),
            })
        };
        let _locked = self.on_device(lock).await?;
        self.missing_check().await?;
        self.updates().await
    }

    /// Refuses to go on for ever with a sender that keeps to its rate.
    fn check_time(&self) -> Result<(), ExchangeEnd> {
        match self.state.world.clock.elapsed() < self.end {
            true => Ok(()),
            false => Err(ExchangeEnd::Say(
                408,
                "the exchange takes longer than max_upload_time".into(),
            )),
        }
    }

    async fn say(&self, text: impl Into<Bytes>) -> Result<(), ExchangeEnd> {
        let patience = self.state.options.client_timeout;
        match self.state.world.timeout(patience, self.feed.send(text.into())).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ExchangeEnd::Gone("it does not listen".into())),
            Err(late) => Err(ExchangeEnd::Gone(late.to_string())),
        }
    }

    async fn on_device<T: Send + 'static>(
        &self,
        job: impl FnOnce(&ObjectDevice) -> Result<T, ExchangeEnd> + Send + 'static,
    ) -> Result<T, ExchangeEnd> {
        self.state.devices.run(&self.place.device, Lane::Replication, job).await
    }

    async fn expect(&mut self, wanted: &str) -> Result<(), ExchangeEnd> {
        match self.lines.next().await? {
            Some(line) if line == wanted => Ok(()),
            Some(line) => Err(ExchangeEnd::nonsense(format!(
                "Looking for {wanted} got {:?}",
                String::from_utf8_lossy(&line[..line.len().min(120)])
            ))),
            None => Err(ExchangeEnd::Gone(format!("it ended before {wanted}"))),
        }
    }
}

fn is_locked(error: &EngineError) -> bool {
    matches!(error, EngineError::Io { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}
