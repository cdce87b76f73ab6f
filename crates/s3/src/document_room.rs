//! The memory that documents of S3's clients may take together.
//!
//! A document is read as a whole before any of it is understood, and 8 MiB of it may become four times as much. So a
//! request takes room for each piece of its body when that has come, and for the elements in it before they are made;
//! it gives both back when it has been answered. Room is never taken for what a client only promises: clients that
//! send slowly would keep out all others.
//! Always holds: all documents of a gateway together take [`MOST_BYTES`], whatever their number;
//! one that finds no room is refused with 503 `SlowDown`, and the client comes again.
//! Deliberately absent: what a single document may have (`xml.rs`, and the operations' own limits).

use crate::error::{S3Error, SLOW_DOWN};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes. Eight of the largest documents, or 250 completions of uploads with a thousand parts each.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of one permit.
const UNIT: u64 = 1 << 10;
/// What an element takes, twice that while the list that it is in grows. An element has one `<` or two.
const ELEMENT: u64 = 320;

/// The room of one gateway.
#[derive(Clone)]
pub(crate) struct DocumentRoom(Arc<Semaphore>);

/// What one request has of it, until it is dropped.
#[derive(Clone)]
pub(crate) struct DocumentSeat {
    _taken: Arc<OwnedSemaphorePermit>,
}

/// What a request has of it whose body is coming.
pub(crate) struct TakingSeat {
    room: DocumentRoom,
    /// Of the body.
    bytes: u64,
    taken: OwnedSemaphorePermit,
}

impl Default for DocumentRoom {
    fn default() -> Self {
        Self::of(MOST_BYTES)
    }
}

impl DocumentRoom {
    fn of(bytes: u64) -> Self {
        Self(Arc::new(Semaphore::new(
            usize::try_from(bytes / UNIT).unwrap_or(Semaphore::MAX_PERMITS),
        )))
    }

    /// Room for a body of which nothing has come.
    pub(crate) fn enter(&self) -> Result<TakingSeat, S3Error> {
        Ok(TakingSeat {
            room: self.clone(),
            bytes: 0,
            taken: self.take(0)?,
        })
    }

    fn take(&self, permits: u64) -> Result<OwnedSemaphorePermit, S3Error> {
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let room = self.0.clone().try_acquire_many_owned(permits);
        room.map_err(|_| SLOW_DOWN.saying("Too many large documents are being read at this moment. Please try again."))
    }
}

impl TakingSeat {
    /// Room for so many bytes more of the body, and for the texts that are copied from them.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), S3Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        let needed = self.bytes.saturating_mul(2).div_ceil(UNIT);
        let more = needed.saturating_sub(self.taken.num_permits() as u64);
        self.taken.merge(self.room.take(more)?);
        Ok(())
    }

    /// Room for what the whole body is going to be read into as well.
    pub(crate) fn with_elements(mut self, body: &[u8]) -> Result<DocumentSeat, S3Error> {
        let begun = body.iter().filter(|byte| **byte == b'<').count() as u64;
        let elements = begun.min(crate::xml::MAX_ELEMENTS as u64) * ELEMENT;
        self.taken.merge(self.room.take(elements.div_ceil(UNIT))?);
        Ok(DocumentSeat {
            _taken: Arc::new(self.taken),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_take_room_until_they_are_dropped() {
        let room = DocumentRoom::of(64 << 10);
        let code = |error: S3Error| (error.code.name, error.code.status);
        let is_full = |bytes: u64| room.enter().unwrap().grow(bytes).map_err(code) == Err(("SlowDown", 503));
        let mut held = room.enter().unwrap();
        held.grow(30 << 10).unwrap();
        assert!(is_full(3 << 10));
        drop(held);
        let mut held = room.enter().unwrap();
        (0..16).for_each(|_| held.grow(1 << 10).unwrap());
        // A hundred empty elements take as much as eight thousand bytes of text.
        let held = held.with_elements(&b"<a/>".repeat(90)).unwrap();
        assert!(is_full(3 << 10));
        let mut next = room.enter().unwrap();
        next.grow(1 << 10).unwrap();
        assert_eq!(
            next.with_elements(&b"<a/>".repeat(90)).err().map(code),
            Some(("SlowDown", 503))
        );
        drop(held);
        assert!(!is_full(32 << 10));
    }

    #[test]
    fn small_pieces_take_what_they_make_together() {
        let room = DocumentRoom::of(64 << 10);
        let mut held = room.enter().unwrap();
        (0..4096).for_each(|_| held.grow(1).unwrap());
        assert_eq!(held.taken.num_permits(), 8);
    }

    #[test]
    fn one_document_of_the_largest_kind_always_fits() {
        let mut seat = DocumentRoom::default().enter().unwrap();
        seat.grow(8 << 20).unwrap();
        assert!(seat.with_elements(&b"<a/>".repeat(2 << 20)).is_ok());
    }
}
