//! All chance of a simulation, from one seed.
//!
//! Always holds: the same seed gives the same numbers in the same order (SplitMix64; fit for tests only).

use parking_lot::Mutex;
use std::sync::Arc;
use world::Random;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One stream of chance; clones draw from the same.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<u64>>);

impl Dice {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// 64 bits.
    pub fn roll(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(STEP);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn up_to(&self, bound: usize) -> usize {
        (self.roll() % (bound.max(1) as u64)) as usize
    }

    /// A number from `low` up to, but not, `high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.roll() % high.saturating_sub(low).max(1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }
}

impl Random for Dice {
    fn fill(&self, buffer: &mut [u8]) {
        for part in buffer.chunks_mut(8) {
            part.copy_from_slice(&self.roll().to_le_bytes()[..part.len()]);
        }
    }
}
