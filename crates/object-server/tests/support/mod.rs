//! What the tests share: our server on a port, OpenStack's on another, and raw requests to both.
//!
//! Nothing here knows what the right answer is.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod both;
pub mod calls;
pub mod container;
pub mod hanging;
pub mod oracle;
pub mod ours;
pub mod unopenable;
pub mod wire;

use std::time::{SystemTime, UNIX_EPOCH};

/// Timestamps of this run: young enough not to be reclaimed, in the past so that nothing waits.
#[derive(Clone, Copy)]
pub struct Times(pub u64);

impl Times {
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        Self(now - 1000)
    }

    /// `seconds` after the beginning.
    pub fn at(self, seconds: f64) -> String {
        format!("{:016.5}", self.0 as f64 + seconds)
    }

    /// Whole seconds, for `X-Delete-At`.
    pub fn whole(self, seconds: i64) -> String {
        (self.0 as i64 + seconds).to_string()
    }
}
