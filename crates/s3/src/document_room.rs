//! The memory that documents of S3's clients may take together.
//!
//! A document is read as a whole before any of it is understood, and 8 MiB of it may become four times as much. So a
//! request takes room for its body before that is read, and for the elements in it before they are made; it gives both
//! back when it has been answered.
//! Always holds: all documents of a gateway together take [`MOST_BYTES`], whatever their number;
//! one that finds no room is refused with 503 `SlowDown`, before it is read, and the client comes again.
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
    _body: Arc<OwnedSemaphorePermit>,
    _elements: Option<Arc<OwnedSemaphorePermit>>,
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

    /// Room for a body of so many bytes, and for the texts that are copied from it.
    pub(crate) fn of_body(&self, length: u64) -> Result<DocumentSeat, S3Error> {
        Ok(DocumentSeat {
            _body: self.take(length.saturating_mul(2))?,
            _elements: None,
        })
    }

    /// Room for what the body is going to be read into as well.
    pub(crate) fn of_elements(&self, seat: DocumentSeat, body: &[u8]) -> Result<DocumentSeat, S3Error> {
        let begun = body.iter().filter(|byte| **byte == b'<').count() as u64;
        Ok(DocumentSeat {
            _elements: Some(self.take(begun.min(crate::xml::MAX_ELEMENTS as u64) * ELEMENT)?),
            ..seat
        })
    }

    fn take(&self, bytes: u64) -> Result<Arc<OwnedSemaphorePermit>, S3Error> {
        let permits = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let room = self.0.clone().try_acquire_many_owned(permits);
        room.map(Arc::new)
            .map_err(|_| SLOW_DOWN.saying("Too many large documents are being read at this moment. Please try again."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_take_room_until_they_are_dropped() {
        let room = DocumentRoom::of(64 << 10);
        let code = |seat: Result<DocumentSeat, S3Error>| seat.err().map(|error| (error.code.name, error.code.status));
        let held = room.of_body(30 << 10).unwrap();
        assert_eq!(code(room.of_body(3 << 10)), Some(("SlowDown", 503)));
        drop(held);
        let held = room.of_body(16 << 10).unwrap();
        // A hundred empty elements take as much as eight thousand bytes of text.
        let held = room.of_elements(held, &b"<a/>".repeat(90)).unwrap();
        assert_eq!(code(room.of_body(3 << 10)), Some(("SlowDown", 503)));
        assert_eq!(
            code(room.of_elements(held.clone(), &b"<a/>".repeat(90))),
            Some(("SlowDown", 503))
        );
        drop(held);
        assert!(room.of_body(32 << 10).is_ok());
    }

    #[test]
    fn one_document_of_the_largest_kind_always_fits() {
        let room = DocumentRoom::default();
        let seat = room.of_body(8 << 20).unwrap();
        assert!(room.of_elements(seat, &b"<a/>".repeat(2 << 20)).is_ok());
    }
}
