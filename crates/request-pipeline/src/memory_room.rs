//! The memory that bodies may take together which are read as a whole.
//!
//! Lists of names, manifests and S3's documents are read before anything in them is understood, and some of them
//! before it is known who sends them. A request takes room for each piece of its body when that has come, and for what
//! is made of it before it is made; dropping the [`MemorySeat`] gives all of it back. Room is never taken for what a
//! client only promises: clients that send slowly would keep out all others.
//! Each seat is a tenant's: an account or a user that is known to be the client's, or else the client's address. A
//! tenant may have as much as it leaves free: alone half of the room, beside one that has that a quarter, and so on. So
//! one tenant never keeps out the others, and none needs to be known in advance; many together leave little.
//! Always holds: all seats of a room together take no more than the room has, whatever their number, and those of a
//! tenant no more than is left free; one that finds no more is refused, and its request is answered with 503, so that
//! the client comes again; a tenant without seats takes no memory.
//! Deliberately absent: what a single body may have, which its reader knows.

use crate::reply;
use http::header::{HeaderValue, RETRY_AFTER};
use parking_lot::Mutex;
use peer::{Response, client_network};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Bytes that the bodies of one gateway may take: eight of the largest documents of S3 with all that they are read
/// into, or two hundred completions of uploads with a thousand parts each; half as many of one client alone.
const MOST_BYTES: u64 = 256 << 20;

/// Room in memory; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    most: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u64,
    /// None of them nothing.
    tenants: HashMap<Arc<str>, u64>,
}

/// What one request has of it, until it is dropped.
#[derive(Debug)]
pub struct MemorySeat {
    room: MemoryRoom,
    tenant: Arc<str>,
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
            taken: Mutex::default(),
        }))
    }

    /// A seat of this tenant that takes nothing yet.
    pub fn enter(&self, tenant: impl Into<Arc<str>>) -> MemorySeat {
        MemorySeat {
            room: self.clone(),
            tenant: tenant.into(),
            bytes: 0,
        }
    }

    /// A seat of the clients at this address.
    pub fn enter_from(&self, address: IpAddr) -> MemorySeat {
        self.enter(client_network(address).to_string())
    }

    /// Bytes that are taken at this moment.
    pub fn taken(&self) -> u64 {
        self.0.taken.lock().all
    }

    fn take(&self, tenant: &Arc<str>, bytes: u64) -> Result<(), NoRoom> {
        if bytes == 0 {
            return Ok(());
        }
        let mut taken = self.0.taken.lock();
        let own = taken.tenants.get(tenant).copied().unwrap_or_default();
        let all = taken.all.checked_add(bytes).ok_or(NoRoom)?;
        let free = self.0.most.checked_sub(all).ok_or(NoRoom)?;
        // No more than `all`.
        let own = own + bytes;
        if own > free {
            return Err(NoRoom);
        }
        taken.all = all;
        taken.tenants.insert(tenant.clone(), own);
        Ok(())
    }

    fn give_back(&self, tenant: &Arc<str>, bytes: u64) {
        let mut taken = self.0.taken.lock();
        taken.all -= bytes;
        if let Some(own) = taken.tenants.get_mut(tenant) {
            *own -= bytes;
            if *own == 0 {
                taken.tenants.remove(tenant);
            }
        }
    }
}

impl MemorySeat {
    /// Another of the same tenant.
    pub fn other(&self) -> Self {
        self.in_another(&self.room)
    }

    /// One of the same tenant in another room.
    pub fn in_another(&self, room: &MemoryRoom) -> Self {
        room.enter(self.tenant.clone())
    }

    /// Bytes that it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes so many bytes more.
    pub fn grow(&mut self, bytes: u64) -> Result<(), NoRoom> {
        self.room.take(&self.tenant, bytes)?;
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
        if self.bytes > 0 {
            self.room.give_back(&self.tenant, self.bytes);
        }
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
        let (mut one, mut other) = (room.enter("a"), room.enter("b"));
        assert_eq!(one.grow(500), Ok(()));
        assert_eq!(one.grow_to(500), Ok(()));
        assert_eq!(other.grow(251), Err(NoRoom));
        assert_eq!(other.grow_to(250), Ok(()));
        assert_eq!(room.enter("c").grow(u64::MAX), Err(NoRoom));
        assert_eq!(room.taken(), 750);
        drop(one);
        assert_eq!(room.enter("a").grow(375), Ok(()));
        drop(other);
        assert_eq!(room.taken(), 0);
        assert!(room.0.taken.lock().tenants.is_empty());
        let answer = NoRoom.answer();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &HeaderValue::from_static("5"))
        );
    }

    #[test]
    fn a_tenant_leaves_as_much_as_it_has() {
        let room = MemoryRoom::of(1024);
        let greedy = |tenant: &str| {
            let mut seats: Vec<MemorySeat> = Vec::new();
            loop {
                let mut seat = room.enter(tenant);
                if seat.grow(1).is_err() {
                    return seats;
                }
                seats.push(seat);
            }
        };
        let held: Vec<Vec<MemorySeat>> = ["a", "b", "a", "c", "d"].into_iter().map(greedy).collect();
        let sizes: Vec<usize> = held.iter().map(Vec::len).collect();
        assert_eq!(sizes, [512, 256, 0, 128, 64]);
        assert_eq!(room.enter("e").grow(32), Ok(()));
    }
}
