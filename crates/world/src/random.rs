//! The randomness seam: shuffles, transaction ids, tokens, keys.
//!
//! Always holds: [`OsRandom`] is fit for secrets; it is the kernel's generator, asked for some bytes ahead because
//! each request takes a few. No byte is given twice, and none stays behind in memory once it was given.

use rustix::rand::{GetRandomFlags, getrandom};
use std::cell::RefCell;

/// Bytes that a thread asks the kernel for at once.
const AHEAD: usize = 512;

/// Dice, fit for secrets.
pub trait Random: Send + Sync {
    /// Fills `buffer`.
    fn fill(&self, buffer: &mut [u8]);

    /// 64 random bits.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound` (0 for a bound of 0); the bias is below 2^-32 for bounds below 2^32.
    fn below(&self, bound: usize) -> usize {
        (self.next_u64() % (bound.max(1) as u64)) as usize
    }
}

/// The kernel's generator.
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > AHEAD / 8 {
            return ask_kernel(buffer);
        }
        STORE.with_borrow_mut(|store| store.take(buffer));
    }
}

thread_local! {
    static STORE: RefCell<Store> = const { RefCell::new(Store { bytes: [0; AHEAD], left: 0 }) };
}

/// Random bytes of a thread that have not been given out yet: the first `left` of them.
struct Store {
    bytes: [u8; AHEAD],
    left: usize,
}

impl Store {
    fn take(&mut self, buffer: &mut [u8]) {
        if self.left < buffer.len() {
            ask_kernel(&mut self.bytes);
            self.left = AHEAD;
        }
        self.left -= buffer.len();
        let taken = &mut self.bytes[self.left..][..buffer.len()];
        buffer.copy_from_slice(taken);
        taken.fill(0);
    }
}

fn ask_kernel(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        match getrandom(&mut buffer[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // Without randomness no token or key may be made; going on would be worse than stopping.
            Err(error) => panic!("the kernel's random generator failed: {error}"),
        }
    }
}

/// Puts `items` into random order (Fisher-Yates).
pub fn shuffle<T>(random: &dyn Random, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_twice() {
        let mut given = std::collections::BTreeSet::new();
        for length in (8..=64).cycle().take(1000) {
            let mut bytes = vec![0; length];
            OsRandom.fill(&mut bytes);
            // The first eight of each stand for it: equal ones would be luck of one in 2^44.
            assert!(given.insert(bytes[..8].to_vec()));
        }
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        shuffle(&OsRandom, &mut items);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..50));
    }
}
