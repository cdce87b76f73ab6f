//! A buffer whose place in memory suits writes past the page cache.
//!
//! Always holds: [`AlignedBuffer::bytes`] begins at a multiple of [`DIRECT_UNIT`].

use world::files::DIRECT_UNIT;

/// Gathers bytes until it is full. It takes memory only while it has bytes.
pub(crate) struct AlignedBuffer {
    /// Larger than needed by one unit, to find an aligned beginning in it; nothing before the first byte.
    storage: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// Room for `capacity` bytes, a multiple of the unit.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            storage: Vec::new(),
            start: 0,
            capacity,
        }
    }

    /// Takes as many bytes as there is room for; says how many.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        if self.storage.is_empty() {
            self.storage.reserve_exact(self.capacity + DIRECT_UNIT);
            self.start = self.storage.as_ptr().align_offset(DIRECT_UNIT).min(DIRECT_UNIT);
            self.storage.resize(self.start, 0);
        }
        let count = bytes.len().min(self.capacity - self.bytes().len());
        // Never more than what was reserved: the beginning stays where it is.
        self.storage.extend_from_slice(&bytes[..count]);
        count
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.start..]
    }

    /// Whether there is no more room.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes().len() == self.capacity
    }

    /// Forgets what it holds, and gives its memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_in_order() {
        let mut buffer = AlignedBuffer::new(2 * DIRECT_UNIT);
        assert_eq!(buffer.storage.capacity(), 0, "memory without bytes");
        let long: Vec<u8> = (0..3 * DIRECT_UNIT).map(|i| (i % 251) as u8).collect();
        assert_eq!(buffer.fill(&long[..10]), 10);
        assert_eq!(buffer.fill(&long[10..]), 2 * DIRECT_UNIT - 10);
        assert_eq!(buffer.bytes().as_ptr().align_offset(DIRECT_UNIT), 0);
        assert!(buffer.is_full());
        assert_eq!(buffer.bytes(), &long[..2 * DIRECT_UNIT]);
        buffer.clear();
        assert_eq!(buffer.bytes(), b"");
        assert_eq!(buffer.storage.capacity(), 0, "memory without bytes");
    }
}
