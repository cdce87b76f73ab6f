//! [`Reserve`]: the room on a device that clients may not use up.

/// The room that clients may not use up (`fallocate_reserve`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reserve {
    /// That many bytes.
    Bytes(u64),
    /// That share of the file system, 0 to 100.
    Percent(f64),
}

impl Reserve {
    /// Whether nothing is kept free, so that the file system need not be asked.
    pub fn is_off(self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes == 0,
            Self::Percent(percent) => percent <= 0.0,
        }
    }

    /// Whether a file system of `total` bytes with `left` bytes available has only the reserve left, or less.
    pub fn is_short(self, left: u64, total: u64) -> bool {
        !self.is_off()
            && match self {
                Self::Bytes(bytes) => left <= bytes,
                Self::Percent(percent) => left as f64 * 100.0 <= percent * total as f64,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_itself_is_not_room() {
        assert!(Reserve::Bytes(99).is_short(99, 1000) && !Reserve::Bytes(99).is_short(100, 1000));
        assert!(Reserve::Percent(1.0).is_short(10, 1000) && !Reserve::Percent(1.0).is_short(11, 1000));
        assert!(!Reserve::Bytes(0).is_short(0, 1000) && !Reserve::Percent(0.0).is_short(0, 1000));
    }
}
