//! A buffer whose place in memory suits writes past the page cache.
//!
//! Always holds: [`AlignedBuffer::bytes`] begins at a multiple of [`DIRECT_UNIT`].

use world::files::DIRECT_UNIT;

/// Gathers bytes until it is full.
pub(crate) struct AlignedBuffer {
    /// Larger than needed by one unit, to find an aligned beginning in it.
    storage: Vec<u8>,
    start: usize,
    filled: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// Room for `capacity` bytes, a multiple of the unit.
    pub(crate) fn new(capacity: usize) -> Self {
        let storage = vec![0; capacity + DIRECT_UNIT];
        let start = storage.as_ptr().align_offset(DIRECT_UNIT).min(DIRECT_UNIT);
        Self {
            storage,
            start,
            filled: 0,
            capacity,
        }
    }

    /// Takes as many bytes as there is room for; says how many.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity - self.filled);
        let at = self.start + self.filled;
        self.storage[at..at + count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        count
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.filled]
    }

    /// Whether there is no more room.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.capacity
    }

    /// Forgets what it holds.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_in_order() {
        let mut buffer = AlignedBuffer::new(2 * DIRECT_UNIT);
        assert_eq!(buffer.bytes().as_ptr().align_offset(DIRECT_UNIT), 0);
        let long: Vec<u8> = (0..3 * DIRECT_UNIT).map(|i| (i % 251) as u8).collect();
        assert_eq!(buffer.fill(&long[..10]), 10);
        assert_eq!(buffer.fill(&long[10..]), 2 * DIRECT_UNIT - 10);
        assert!(buffer.is_full());
        assert_eq!(buffer.bytes(), &long[..2 * DIRECT_UNIT]);
        buffer.clear();
        assert_eq!(buffer.bytes(), b"");
    }
}
