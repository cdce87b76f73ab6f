//! The options of `copy`.

use crate::declare::options;
use std::time::Duration;

options! {
    /// `[filter:copy]`.
    pub struct CopySettings {
        /// Seconds between the signs of life that a copy with heartbeat=on gives.
        yield_frequency: Duration = "10",
    }
}
