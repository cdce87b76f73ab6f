//! Bodies of other nodes' upkeep that are read as a whole before any of it is understood: lists in JSON.
//!
//! Always holds: such bodies take [`MOST_BYTES`] together, whatever their number, besides those of at most [`SMALL`]
//! bytes, and what they are read into about [`MOST_VALUES`]; a body comes within [`PATIENCE`]; a request that finds no
//! room in that time gets 503, one that would never fit 413.
//! Deliberately absent: how slowly a body may come otherwise (`transfer.rs`), what it says.

use crate::Refusal;
use bytes::Bytes;
use http::StatusCode;
use peer::{Body, BodyError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use world::World;

/// Bytes of bodies; of the largest lists of rows that servers send, which have 64 MiB, there may be a few.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of values that bodies are read into: `[{"":0},{"":0},…` takes about a hundred times as many as it has itself.
const MOST_VALUES: u64 = 512 << 20;
/// There are at most as many of these as requests.
const SMALL: u64 = 64 << 10;
/// For room, and again for the body.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bytes of one permit.
const UNIT: u64 = 1 << 10;
/// What a value takes, twice that while its list grows, and what an object takes in addition.
const VALUE: u64 = 160;
const OBJECT: u64 = 640;

/// The room for such bodies in one server.
pub struct WholeBodies {
    bytes: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

/// A body that has come; it takes room until it is dropped.
pub struct WholeBody {
    /// The body.
    pub bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// The room of the values that a body is read into.
pub struct ValueRoom {
    _room: OwnedSemaphorePermit,
}

impl Default for WholeBodies {
    fn default() -> Self {
        let semaphore = |bytes: u64| Arc::new(Semaphore::new(usize::try_from(bytes / UNIT).unwrap_or(usize::MAX)));
        Self {
            bytes: semaphore(MOST_BYTES),
            values: semaphore(MOST_VALUES),
        }
    }
}

impl WholeBodies {
    /// Waits for the body, which may have `most` bytes.
    pub async fn collect(&self, world: &World, body: Body, most: u64) -> Result<WholeBody, Refusal> {
        let length = body.length().unwrap_or(most);
        if length > most {
            return Err(Refusal::unreadable(&BodyError::TooLarge(most)));
        }
        let room = match length > SMALL {
            true => {
                let room = self.bytes.clone().acquire_many_owned(permits(length));
                let room = world.timeout(PATIENCE, room).await.map_err(|_| busy())?;
                Some(room.map_err(|_| busy())?)
            }
            false => None,
        };
        let bytes = body.collect_within(world, most, PATIENCE).await;
        let bytes = bytes.map_err(|error| Refusal::unreadable(&error))?;
        Ok(WholeBody { bytes, _room: room })
    }

    /// Room for reading the body as JSON. There is no waiting for it, because the body takes room already.
    pub fn room_for_values(&self, body: &WholeBody) -> Result<ValueRoom, Refusal> {
        let size = size_of_values(&body.bytes);
        if size > MOST_VALUES {
            let why = "the list has more entries than can be read at once".to_owned();
            return Err(Refusal::Text(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let room = self.values.clone().try_acquire_many_owned(permits(size));
        Ok(ValueRoom {
            _room: room.map_err(|_| busy())?,
        })
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn busy() -> Refusal {
    Refusal::Text(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many large requests of upkeep at a time".to_owned(),
    )
}

/// About as many bytes as the values of a JSON text take, no fewer.
fn size_of_values(json: &[u8]) -> u64 {
    let size = |byte: &u8| match byte {
        b'{' => OBJECT + VALUE,
        b',' | b'[' => VALUE,
        _ => 1,
    };
    json.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bodies_wait_for_room_and_are_refused_in_the_end() {
        let (world, bodies) = (World::real(), WholeBodies::default());
        let most = 64 << 20;
        let large = || Body::stream(futures_util::stream::iter([Ok(Bytes::from_static(b"[]"))]), None);
        let mut held = vec![];
        for _ in 0..MOST_BYTES / most {
            held.push(bodies.collect(&world, large(), most).await.ok().unwrap());
        }
        // Those that are small wait for none.
        assert!(bodies.collect(&world, Body::whole("[]"), most).await.is_ok());
        let too_large = bodies.collect(&world, Body::whole(vec![0; 9]), 8).await;
        assert_eq!(too_large.err().unwrap().status(), StatusCode::BAD_REQUEST);
        let mut waiting = Box::pin(bodies.collect(&world, large(), most));
        let patience = tokio::time::timeout(Duration::from_millis(20), &mut waiting).await;
        assert!(patience.is_err());
        held.pop();
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn what_a_body_is_read_into_is_bounded() {
        let (world, bodies) = (World::real(), WholeBodies::default());
        let body = |entry: &str, count: usize| format!("[{}]", vec![entry; count].join(","));
        let read = async |text: String| bodies.collect(&world, Body::whole(text), 64 << 20).await.ok().unwrap();
        let rows = body(&format!("{{\"name\":\"{}\",\"size\":1}}", "x".repeat(60)), 10_000);
        let rows = read(rows).await;
        let room = bodies.room_for_values(&rows).ok().unwrap();
        let bomb = read(body("{\"\":0}", 1_000_000)).await;
        let status = |room: Result<ValueRoom, Refusal>| room.err().map(|refusal| refusal.status());
        assert_eq!(
            status(bodies.room_for_values(&bomb)),
            Some(StatusCode::PAYLOAD_TOO_LARGE)
        );
        let half = read(body("{\"\":0}", 500_000)).await;
        assert_eq!(status(bodies.room_for_values(&half)), None);
        let held = bodies.room_for_values(&half).ok();
        assert_eq!(
            status(bodies.room_for_values(&half)),
            Some(StatusCode::SERVICE_UNAVAILABLE)
        );
        drop((room, held));
        assert_eq!(status(bodies.room_for_values(&half)), None);
    }
}
