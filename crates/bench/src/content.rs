//! What bodies are made of: bytes that no compression and no deduplication makes less of, and that can be checked.
//!
//! A body is a function of its object's name: the same name has the same bytes in every run, as far as it is long, so
//! that a reader can decide whether it is what was written.
//! Always holds: two names share no block of eight bytes but by chance.

pub mod hashed;

use crate::workload::BodyContent;

/// Random bytes that all bodies are made from.
const BLOCK: usize = 1 << 20;

/// Makes bodies.
pub struct Contents {
    block: Vec<u64>,
}

/// One body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentKey {
    content: BodyContent,
    /// Where in the block it begins, in words.
    start: usize,
    /// What its words differ by from the block's.
    pattern: u64,
}

impl ContentKey {
    /// Zeros: for requests without a body.
    pub const ZEROS: ContentKey = ContentKey {
        content: BodyContent::Zero,
        start: 0,
        pattern: 0,
    };
}

impl Contents {
    /// The same in every run.
    pub fn new() -> Self {
        let mut dice = fastrand::Rng::with_seed(0x006d_6172_746c_6574);
        Self {
            block: (0..BLOCK / 8).map(|_| dice.u64(..)).collect(),
        }
    }

    /// The body of an object.
    pub fn key(&self, container: &str, object: &str, content: BodyContent) -> ContentKey {
        let pattern = hash(container, object);
        ContentKey {
            content,
            start: (pattern.rotate_left(20) as usize) % self.block.len(),
            pattern,
        }
    }

    /// Fills `piece` with the bytes of a body from `offset` on.
    pub fn fill(&self, key: ContentKey, offset: u64, piece: &mut [u8]) {
        if key.content == BodyContent::Zero {
            return piece.fill(0);
        }
        let mut offset = offset as usize;
        let mut rest = piece;
        while !rest.is_empty() {
            let within = offset % 8;
            let first = (key.start + offset / 8) % self.block.len();
            if within == 0 && rest.len() >= 8 {
                // As many whole words as the block has from here on.
                let words = (rest.len() / 8).min(self.block.len() - first);
                let (now, later) = rest.split_at_mut(words * 8);
                for (bytes, word) in now.chunks_exact_mut(8).zip(&self.block[first..]) {
                    bytes.copy_from_slice(&(word ^ key.pattern).to_le_bytes());
                }
                offset += words * 8;
                rest = later;
            } else {
                let bytes = (self.block[first] ^ key.pattern).to_le_bytes();
                let taken = rest.len().min(8 - within);
                let (now, later) = rest.split_at_mut(taken);
                now.copy_from_slice(&bytes[within..within + taken]);
                offset += taken;
                rest = later;
            }
        }
    }

    /// Whether `piece` is what a body has from `offset` on.
    pub fn fits(&self, key: ContentKey, offset: u64, piece: &[u8]) -> bool {
        let mut expected = [0; 4096];
        let mut offset = offset;
        piece.chunks(expected.len()).all(|piece| {
            let expected = &mut expected[..piece.len()];
            self.fill(key, offset, expected);
            offset += piece.len() as u64;
            expected == piece
        })
    }
}

impl Default for Contents {
    fn default() -> Self {
        Self::new()
    }
}

/// FNV-1a of both names, mixed as SplitMix64 mixes, so that names that differ in a digit have nothing in common.
fn hash(container: &str, object: &str) -> u64 {
    let bytes = container.bytes().chain([b'/']).chain(object.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::Contents;
    use crate::workload::BodyContent;
    use proptest::prelude::*;

    #[test]
    fn zeros_are_zeros() {
        let contents = Contents::new();
        let key = contents.key("c", "o", BodyContent::Zero);
        assert!(contents.fits(key, 5, &[0; 100]) && !contents.fits(key, 5, &[0, 1]));
    }

    proptest! {
        #[test]
        fn pieces_are_parts_of_the_whole(
            offset in 0_usize..3_000_000,
            length in 0_usize..10_000,
            cut in 0_usize..10_000,
        ) {
            let contents = Contents::new();
            let key = contents.key("container", "object", BodyContent::Random);
            let mut whole = vec![0; length];
            contents.fill(key, offset as u64, &mut whole);
            let (front, back) = whole.split_at(cut.min(length));
            prop_assert!(contents.fits(key, offset as u64, front));
            prop_assert!(contents.fits(key, (offset + front.len()) as u64, back));
            if length > 16 {
                let other = contents.key("container", "object2", BodyContent::Random);
                prop_assert!(!contents.fits(other, offset as u64, &whole));
                whole[length / 2] ^= 1;
                prop_assert!(!contents.fits(key, offset as u64, &whole));
            }
        }
    }
}
