//! The memory that bodies may take together which are read as a whole.
//!
//! Lists of names, manifests and S3's documents are read before anything in them is understood, and some of them
//! before it is known who sends them. A request takes room for each piece of its body when that has come, and for what
//! is made of it before it is made; dropping the [`MemorySeat`] gives all of it back. Room is never taken for what a
//! client only promises: clients that send slowly would keep out all others.
//! Always holds: all seats of a room together take no more than the room has, whatever their number; one that finds
//! no more is refused, and its request is answered with 503, so that the client comes again.
//! Deliberately absent: what a single body may have, which its reader knows.

use crate::reply;
use http::header::{HeaderValue, RETRY_AFTER};
use peer::Response;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the bodies of one gateway may take: eight of the largest documents of S3 with all that they are read
/// into, ten of the longest lists of names, or a hundred completions of uploads with a thousand parts each.
const MOST_BYTES: u64 = 256 << 20;

/// Room in memory; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    most: u64,
    taken: AtomicU64,
}

/// What one request has of it, until it is dropped.
#[derive(Debug)]
pub struct MemorySeat {
    room: MemoryRoom,
    bytes: u64,
}

/// There is no more room at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl Default for MemoryRoom {
    fn default() -> Self {
        Self::of(MOST_BYTES)
    }
}

impl MemoryRoom {
    /// Of so many bytes.
    pub fn of(bytes: u64) -> Self {
        Self(Arc::new(Room {
            most: bytes,
            taken: AtomicU64::new(0),
        }))
    }

    /// A seat that takes nothing yet.
    pub fn enter(&self) -> MemorySeat {
        MemorySeat {
            room: self.clone(),
            bytes: 0,
        }
    }

    /// Bytes that are taken at this moment.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> Result<(), NoRoom> {
        let most = self.0.most;
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= most);
        let taken = self.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| ()).map_err(|_| NoRoom)
    }
}

impl MemorySeat {
    /// Takes so many bytes more.
    pub fn grow(&mut self, bytes: u64) -> Result<(), NoRoom> {
        self.room.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes as many bytes as it needs to have `bytes`.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), NoRoom> {
        self.grow(bytes.saturating_sub(self.bytes))
    }
}

impl Drop for MemorySeat {
    fn drop(&mut self) {
        self.room.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl NoRoom {
    /// In words, for the client.
    pub const TEXT: &str = "Too many large requests are being read at this moment. Please try again.";

    /// The answer: 503.
    pub fn answer(self) -> Response {
        let mut response = reply::html(503, Self::TEXT.into());
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("5"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_take_room_until_they_are_dropped() {
        let room = MemoryRoom::of(1000);
        let (mut one, mut other) = (room.enter(), room.enter());
        assert_eq!(one.grow(600), Ok(()));
        assert_eq!(one.grow_to(600), Ok(()));
        assert_eq!(other.grow(401), Err(NoRoom));
        assert_eq!(other.grow_to(400), Ok(()));
        assert_eq!(room.enter().grow(1), Err(NoRoom));
        assert_eq!(room.enter().grow(u64::MAX), Err(NoRoom));
        assert_eq!(room.taken(), 1000);
        drop(one);
        assert_eq!(room.enter().grow(600), Ok(()));
        let answer = NoRoom.answer();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &HeaderValue::from_static("5"))
        );
    }
}
